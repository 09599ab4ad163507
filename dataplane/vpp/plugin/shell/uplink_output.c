/* Packets sent by an AF_PACKET uplink: all use one socket, so that the kernel and its queueing discipline get them in order. */
#include <errno.h>
#include "uplink.h"
#include "offload.h"
#include <vnet/ethernet/ethernet.h>

static const cv_virtio_t plain; /* no work is left to the kernel */

/* write_packet sends a packet to the kernel. It returns 0 or errno. */
static int
write_packet (int fd, const cv_piece_t *pieces, u32 n, const cv_virtio_t *virtio)
{
  struct iovec iov[CV_TRAIN_PIECES + 1] = { { (void *) virtio, sizeof (*virtio) } };
  struct msghdr m = { .msg_iov = iov, .msg_iovlen = n + 1 };
  for (u32 i = 0; i < n; i++)
    iov[i + 1] = (struct iovec){ pieces[i].data, pieces[i].len };
  return sendmsg (fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* ---- large packets ---- */

static contiv_uplink_result_t
send_trains (contiv_uplink_t *u, cv_segmenter_t *s)
{
  u8 room[CV_TRAIN_ROOM];
  cv_piece_t pieces[CV_TRAIN_PIECES];
  cv_virtio_t virtio;
  for (u32 n, sent = 0; (n = cv_train_write (s, room, pieces, &virtio)); sent++)
    {
      int error = write_packet (u->tx, pieces, n, &virtio);
      u->no_trains = error == EINVAL && !sent;
      if (error)
	return CONTIV_UPLINK_REFUSED;
    }
  return CONTIV_UPLINK_SENT;
}

contiv_uplink_result_t
contiv_uplink_large (vlib_main_t *vm, contiv_uplink_t *u, cv_segmenter_t *s)
{
  const cv_layer_t *l = &s->h.layers[0];
  bool tunnel = s->h.n_layers > 1;
  if (tunnel ? u->no_trains || !cv_train_fits (s, u->longest) :
	       s->total <= u->longest || l->l3 != sizeof (ethernet_header_t) || s->n_in > CV_TRAIN_PIECES)
    return CONTIV_UPLINK_CUT;
  if (!u->cuts && !contiv_peer_can (vm, u, s->in[0].data))
    return CONTIV_UPLINK_CUT;
  if (tunnel)
    return send_trains (u, s);
  if (!cv_segment_keep (s))
    return CONTIV_UPLINK_CUT;
  cv_virtio_t virtio = { .flags = CV_VIRTIO_NEEDS_CSUM, .gso_type = l->ip6 ? CV_VIRTIO_TCP6 : CV_VIRTIO_TCP4, .hdr_len = s->h.headers,
			 .gso_size = (u16) s->gso_size, .csum_start = l->l4, .csum_offset = 16 };
  return write_packet (u->tx, s->in, s->n_in, &virtio) ? CONTIV_UPLINK_REFUSED : CONTIV_UPLINK_SENT;
}

/* ---- single packets ---- */

void
contiv_outbox_send (vlib_main_t *vm, contiv_outbox_t *o)
{
  u32 sent = 0;
  while (sent < o->n)
    {
      int n = sendmmsg (o->u->tx, o->messages + sent, o->n - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0)
	sent += (u32) n;
      else if (errno == EMSGSIZE || errno == EINVAL)
	{
	  sent++; /* skip only this packet */
	  o->refused++;
	}
      else if (errno != EINTR)
	{
	  o->refused += o->n - sent;
	  break;
	}
    }
  if (o->n)
    vlib_buffer_free (vm, o->buffers, o->n);
  o->n = o->n_iov = 0;
  o->u = 0;
}

void
contiv_outbox_add (vlib_main_t *vm, contiv_outbox_t *o, contiv_uplink_t *u, u32 bi)
{
  cv_piece_t pieces[CV_PIECES];
  u32 n = contiv_pieces (vm, vlib_get_buffer (vm, bi), pieces);
  if (!n)
    {
      vlib_buffer_free_one (vm, bi);
      o->refused++;
      return;
    }
  if (o->u != u || o->n == CONTIV_OUTBOX || o->n_iov + n + 1 > CONTIV_OUTBOX_PIECES)
    contiv_outbox_send (vm, o);
  struct iovec *iov = o->iov + o->n_iov;
  iov[0] = (struct iovec){ (void *) &plain, sizeof (plain) };
  for (u32 i = 0; i < n; i++)
    iov[i + 1] = (struct iovec){ pieces[i].data, pieces[i].len };
  o->messages[o->n] = (struct mmsghdr){ .msg_hdr = { .msg_iov = iov, .msg_iovlen = n + 1 } };
  o->buffers[o->n++] = bi;
  o->n_iov += n + 1;
  o->u = u;
}
