/* Packets received from an AF_PACKET uplink, in their order: frames up to the MTU come from the ring. Longer frames, which the kernel
 * has not segmented or has joined, are read by recvmsg. */
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include "uplink.h"
#include "offload.h"
#include <vnet/devices/devices.h>
#include <vnet/ethernet/ethernet.h>
#include <vnet/feature/feature.h>
#include <vnet/interface/rx_queue_funcs.h>

#define LARGE_A_CALL 32
#define TAG	     4 /* bytes of a VLAN tag */
#define MACS	     12

extern vlib_node_registration_t contiv_uplink_input_node;

/* The packets that one call receives. */
typedef struct
{
  vlib_main_t *vm;
  vlib_node_runtime_t *node;
  contiv_uplink_t *u;
  u32 n, n_bytes, n_packets;
  u32 counts[CONTIV_N_OFFLOAD];
  u32 buffers[VLIB_FRAME_SIZE];
  u16 nexts[VLIB_FRAME_SIZE];
} received_t;

/* A frame in the kernel's representation, with its VLAN tag stored separately. */
typedef struct
{
  u8 *data;
  u32 len;
  cv_virtio_t virtio;
  u32 tag; /* in network order; 0: none */
} arrived_t;

static void
deliver (received_t *r)
{
  if (r->n)
    vlib_buffer_enqueue_to_next (r->vm, r->node, r->buffers, r->nexts, r->n);
  r->n = 0;
}

/* ---- buffers ---- */

/* copy copies pieces into new buffers; NULL: there are not enough buffers. */
static vlib_buffer_t *
copy (received_t *r, const cv_piece_t *pieces, u32 len, u32 *first)
{
  u32 size = vlib_buffer_get_default_data_size (r->vm), n = (len + size - 1) / size, indices[CONTIV_FRAME_MAX / 1024], used = 0, at = 0;
  u32 got = n <= ARRAY_LEN (indices) ? vlib_buffer_alloc (r->vm, indices, n) : 0;
  if (!n || got != n)
    {
      vlib_buffer_free (r->vm, indices, got);
      return 0;
    }
  for (u32 left = len; left; used++)
    {
      vlib_buffer_t *b = vlib_get_buffer (r->vm, indices[used]);
      b->current_data = 0;
      b->current_length = (u16) clib_min (left, size);
      left -= b->current_length;
      for (u32 to = 0; to < b->current_length;)
	{
	  u32 some = clib_min (pieces->len - at, b->current_length - to);
	  clib_memcpy_fast (b->data + to, pieces->data + at, some);
	  to += some;
	  at += some;
	  if (at == pieces->len)
	    {
	      pieces++;
	      at = 0;
	    }
	}
      if (left)
	{
	  b->next_buffer = indices[used + 1];
	  b->flags |= VLIB_BUFFER_NEXT_PRESENT;
	}
    }
  vlib_buffer_t *b = vlib_get_buffer (r->vm, indices[0]);
  b->total_length_not_including_first_buffer = len - b->current_length;
  b->flags |= VLIB_BUFFER_TOTAL_LENGTH_VALID;
  *first = indices[0];
  return b;
}

/* set_tunnelled: VPP's MTU check uses the difference between the offset of the transport header, which does not change, and that of the
 * IP header, which ip4-local sets to the tunnel's. Therefore the former is written as if the packet had no tunnel. The output node
 * parses the headers itself. */
static void
set_tunnelled (vlib_buffer_t *b, const cv_headers_t *h)
{
  const cv_layer_t *outer = &h->layers[0], *l = &h->layers[h->n_layers - 1];
  vnet_buffer (b)->l4_hdr_offset = b->current_data + outer->l3 + (l->l4 - l->l3);
}

/* put_tag inserts the VLAN tag, which the kernel has removed, into a buffer that has room for it before the data. */
static void
put_tag (vlib_buffer_t *b, u32 tag)
{
  u8 *p = vlib_buffer_get_current (b);
  memmove (p - TAG, p, MACS);
  clib_memcpy (p - TAG + MACS, &tag, TAG);
  vlib_buffer_advance (b, -TAG);
  vnet_buffer (b)->l2_hdr_offset = b->current_data;
}

static void
trace (received_t *r, vlib_buffer_t *b, u32 next, u32 len)
{
  u32 n = vlib_get_trace_count (r->vm, r->node);
  if (!n || !vlib_trace_buffer (r->vm, r->node, next, b, 0))
    return;
  vlib_set_trace_count (r->vm, r->node, n - 1);
  contiv_offload_trace_t *t = vlib_add_trace (r->vm, r->node, b, sizeof (*t));
  *t = (contiv_offload_trace_t){ .sw_if_index = r->u->sw_if_index, .length = len, .gso_size = vnet_buffer2 (b)->gso_size,
				 .result = CONTIV_N_OFFLOAD, .is_large = b->flags & VNET_BUFFER_F_GSO };
}

/* accept_packet sends a packet into the graph; gso_size 0: it is a single packet. */
static void
accept_packet (received_t *r, const cv_piece_t *pieces, u32 len, const cv_headers_t *h, u32 gso_size, u32 tag)
{
  u32 index, next = VNET_DEVICE_INPUT_NEXT_ETHERNET_INPUT;
  vlib_buffer_t *b = copy (r, pieces, len, &index);
  if (!b)
    {
      r->counts[CONTIV_OFFLOAD_NO_BUFFER]++;
      return;
    }
  vnet_buffer (b)->sw_if_index[VLIB_RX] = r->u->sw_if_index;
  vnet_buffer (b)->sw_if_index[VLIB_TX] = ~0;
  contiv_set_whole (b);
  if (gso_size)
    {
      contiv_set_large (b, h, (u16) gso_size);
      b->flags |= VNET_BUFFER_F_L4_CHECKSUM_COMPUTED | VNET_BUFFER_F_L4_CHECKSUM_CORRECT; /* the checksum of a tunnel need not be correct */
      if (h->n_layers > 1)
	set_tunnelled (b, h);
      r->counts[CONTIV_LARGE]++;
    }
  if (tag)
    put_tag (b, tag);
  vnet_feature_start_device_input (r->u->sw_if_index, &next, b);
  trace (r, b, next, len);
  r->n_packets++;
  r->n_bytes += len;
  r->buffers[r->n] = index;
  r->nexts[r->n++] = (u16) next;
  if (r->n == VLIB_FRAME_SIZE)
    deliver (r);
}

/* ---- frames ---- */

static void
unload (received_t *r, cv_train_t *t, u32 tag)
{
  u8 room[CV_SEGMENT_HEADERS];
  cv_carriage_t c;
  u16 port;
  clib_memcpy (&port, t->data + t->outer.l4 + 2, sizeof (port));
  t->tunnel = cv_is_tunnel_port (contiv_main.core, port);
  while (cv_train_next (t, room, &c))
    {
      if (c.gso_size)
	r->counts[CONTIV_JOINED] += c.n_pieces - 2;
      accept_packet (r, c.pieces, c.len, &c.h, c.gso_size, tag);
    }
}

/* take creates packets from a frame for which work is left to a device. */
static void
take (received_t *r, const arrived_t *a)
{
  cv_piece_t piece = { a->data, a->len };
  cv_train_t t;
  cv_headers_t h;
  if (a->virtio.gso_type == CV_VIRTIO_UDP && cv_train_read (&t, a->data, a->len, &a->virtio))
    {
      unload (r, &t, a->tag);
      return;
    }
  switch (a->virtio.gso_type == CV_VIRTIO_UDP ? CV_GSO_MALFORMED : cv_uplink_take (&piece, 1, &a->virtio, &h))
    {
    case CV_GSO_OK:
      accept_packet (r, &piece, a->len, &h, a->virtio.gso_size, a->tag);
      break;
    case CV_GSO_ONE:
      r->counts[CONTIV_COMPLETED]++;
      accept_packet (r, &piece, a->len, 0, 0, a->tag);
      break;
    default:
      r->counts[CONTIV_OFFLOAD_MALFORMED]++;
    }
}

static void
take_any (received_t *r, const arrived_t *a)
{
  cv_piece_t piece = { a->data, a->len };
  if (PREDICT_FALSE (a->len < sizeof (ethernet_header_t)))
    r->counts[CONTIV_OFFLOAD_MALFORMED]++;
  else if (PREDICT_FALSE (a->virtio.gso_type || a->virtio.flags & CV_VIRTIO_NEEDS_CSUM))
    take (r, a);
  else if (PREDICT_FALSE (a->len > r->u->longest)) /* its segment size is not known */
    r->counts[CONTIV_OFFLOAD_MALFORMED]++;
  else if (PREDICT_TRUE (a->tag || !contiv_peer_frame (r->vm, r->u, a->data, a->len)))
    accept_packet (r, &piece, a->len, 0, 0, a->tag);
}

/* fetch reads a frame that did not fit into the ring. */
static bool
fetch (const contiv_uplink_queue_t *q, arrived_t *a)
{
  static __thread u8 data[CONTIV_FRAME_MAX];
  struct iovec iov[] = { { &a->virtio, sizeof (a->virtio) }, { data, sizeof (data) } };
  struct msghdr m = { .msg_iov = iov, .msg_iovlen = ARRAY_LEN (iov) };
  ssize_t len = recvmsg (q->fd, &m, MSG_DONTWAIT);
  if (len < 0 && errno == ENETDOWN) /* the kernel reports this error once */
    len = recvmsg (q->fd, &m, MSG_DONTWAIT);
  if (len < (ssize_t) sizeof (a->virtio) || m.msg_flags & MSG_TRUNC)
    return false;
  a->data = data;
  a->len = (u32) len - sizeof (a->virtio);
  return true;
}

static u32
tag_of (const struct tpacket2_hdr *h)
{
  u32 type = h->tp_status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : ETHERNET_TYPE_VLAN;
  return h->tp_status & TP_STATUS_VLAN_VALID ? clib_host_to_net_u32 (type << 16 | h->tp_vlan_tci) : 0;
}

/* receive reads the frames of one queue; true: there may be more. */
static bool
receive (vlib_main_t *vm, vlib_node_runtime_t *node, contiv_uplink_t *u, contiv_uplink_queue_t *q, u32 *packets)
{
  received_t r = { .vm = vm, .node = node, .u = u };
  u32 n = 0, n_large = 0;
  for (; n < VLIB_FRAME_SIZE && n_large < LARGE_A_CALL; n++)
    {
      struct tpacket2_hdr *h = (void *) (q->ring + (size_t) q->next * u->frame);
      if (!(__atomic_load_n (&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
	break;
      arrived_t a = { .data = (u8 *) h + h->tp_mac, .len = h->tp_snaplen, .tag = tag_of (h) };
      clib_memcpy (&a.virtio, a.data - sizeof (struct virtio_net_hdr), sizeof (a.virtio));
      bool large = h->tp_status & TP_STATUS_COPY;
      n_large += large;
      if (large ? fetch (q, &a) : h->tp_len == h->tp_snaplen)
	take_any (&r, &a);
      else
	r.counts[large ? CONTIV_OFFLOAD_MALFORMED : CONTIV_OFFLOAD_NO_ROOM]++;
      __atomic_store_n (&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
      q->next = (q->next + 1) % u->n_frames;
    }
  deliver (&r);
  vlib_increment_combined_counter (vnet_get_main ()->interface_main.combined_sw_if_counters + VNET_INTERFACE_COUNTER_RX, vm->thread_index,
				   u->sw_if_index, r.n_packets, r.n_bytes);
  vnet_device_increment_rx_packets (vm->thread_index, r.n_packets);
  for (u32 i = 0; i < CONTIV_N_OFFLOAD; i++)
    if (r.counts[i])
      vlib_node_increment_counter (vm, node->node_index, i, r.counts[i]);
  *packets += r.n_packets;
  return n == VLIB_FRAME_SIZE || n_large == LARGE_A_CALL;
}

VLIB_NODE_FN (contiv_uplink_input_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  contiv_main_t *cm = &contiv_main;
  u32 packets = 0;
  vnet_hw_if_rxq_poll_vector_t *pv, *all = vnet_hw_if_get_rxq_poll_vector (vm, node);
  vec_foreach (pv, all)
    {
      contiv_uplink_t *u = pv->dev_instance < vec_len (cm->uplinks) ? cm->uplinks[pv->dev_instance] : 0;
      if (!u || pv->queue_id >= vec_len (u->queues))
	continue;
      contiv_uplink_queue_t *q = &u->queues[pv->queue_id];
      if (receive (vm, node, u, q, &packets))
	vnet_hw_if_rx_queue_set_int_pending (vnet_get_main (), q->index);
    }
  return packets;
}

VLIB_REGISTER_NODE (contiv_uplink_input_node) = {
  .name = "contiv-uplink-input",
  .sibling_of = "device-input",
  .type = VLIB_NODE_TYPE_INPUT,
  .state = VLIB_NODE_STATE_DISABLED,
  .flags = VLIB_NODE_FLAG_TRACE_SUPPORTED,
  .format_trace = format_contiv_offload_trace,
  .n_errors = CONTIV_N_OFFLOAD,
  .error_counters = contiv_offload_errors,
};
