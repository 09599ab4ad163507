/* Trains: datagrams of equal length that the kernel carries as one packet, and segments, if necessary, where they leave the machine. A
 * large TCP packet in VXLAN is sent as trains; a received train is joined to a large packet again before it enters VPP's graph. */
#include "headers.h"

enum
{
  UDP_HEADER = 8,
  UDP_LENGTH = 4,
  UDP_CHECKSUM = 6,
  VXLAN_HEADER = 8,
  VXLAN_HAS_VNI = 8,
  ETHERNET_HEADER = 14,
  LONGEST = 65535, /* maximum length of an IP packet */
  OUTER_MAX = 256, /* maximum bytes before the VXLAN header for joining */
};

/* ---- sending ---- */

/* shape describes the trains of a packet. */
typedef struct
{
  uint32_t outer;   /* bytes of headers up to and including UDP */
  uint32_t each;    /* payload of each datagram except the last */
  uint32_t per;	    /* datagrams per train */
} shape_t;

static shape_t
shape_of (const cv_segmenter_t *s)
{
  shape_t f = { .outer = s->h.layers[0].l4 + UDP_HEADER };
  f.each = s->h.headers - f.outer + s->gso_size;
  uint32_t most = (LONGEST - f.outer) / f.each, trains;
  if (most < 2)
    return f;
  trains = (s->n_segments - 1) / most + 1;
  f.per = (s->n_segments - 1) / trains + 1; /* trains of about equal length */
  return f;
}

bool
cv_train_fits (const cv_segmenter_t *s, uint32_t shortest)
{
  const cv_layer_t *l = &s->h.layers[0];
  if (s->h.n_layers != 2 || !l->udp || l->l3 != ETHERNET_HEADER || s->n_segments < 2)
    return false;
  shape_t f = shape_of (s);
  if (f.per < 2)
    return false;
  uint32_t last = (s->n_segments - 1) % f.per; /* datagrams before the last one, in the last train */
  uint32_t tail = s->total - s->h.headers - (s->n_segments - 1) * s->gso_size;
  return f.outer + last * f.each + s->h.headers - f.outer + tail > shortest;
}

/* refer lists the pieces that contain the next n bytes of payload, and adds the bytes to sum. It returns the number of pieces; 0: not
 * enough room. */
static uint32_t
refer (cv_segmenter_t *s, uint32_t n, cv_piece_t *out, uint32_t room, uint64_t *sum)
{
  uint32_t used = 0, at = 0;
  while (at < n)
    {
      const cv_piece_t *from = &s->in[s->piece];
      uint32_t here = from->len - s->offset, some = n - at < here ? n - at : here;
      if (!here)
	{
	  s->piece++;
	  s->offset = 0;
	  continue;
	}
      if (used == room)
	return 0;
      out[used++] = (cv_piece_t){ from->data + s->offset, some };
      *sum += cv_sum (from->data + s->offset, some, at);
      s->offset += some;
      at += some;
    }
  s->left -= n;
  return used;
}

/* partial_udp leaves the checksum to the kernel: the checksum field contains the sum of the pseudo header. */
static void
partial_udp (const cv_layer_t *l, uint8_t *p, uint32_t total)
{
  cv_layer_finish (l, p, total);
  uint8_t *udp = p + l->l4;
  cv_put16 (udp + UDP_LENGTH, total - l->l4);
  uint16_t sum = (uint16_t) ~cv_sum_finish (cv_pseudo_sum (l, p, CV_PROTO_IS_UDP) + cv_sum (udp + UDP_LENGTH, 2, 0));
  memcpy (udp + UDP_CHECKSUM, &sum, 2);
}

uint32_t
cv_train_write (cv_segmenter_t *s, uint8_t *room, cv_piece_t *out, cv_virtio_t *virtio)
{
  const cv_layer_t *l = &s->h.layers[0];
  shape_t f = shape_of (s);
  uint32_t n_out = 1, total = f.outer, n = 0, inner = s->h.headers - f.outer;
  if (s->next == s->n_segments)
    return 0;
  memcpy (room, s->in[0].data, f.outer);
  for (; n < f.per && s->next < s->n_segments; n++)
    {
      uint32_t payload = s->left < s->gso_size ? s->left : s->gso_size;
      uint8_t *p = room + n * inner; /* the headers of a segment follow those of the previous segment */
      uint64_t sum = 0;
      memcpy (p + f.outer, s->in[0].data + f.outer, inner);
      out[n_out++] = (cv_piece_t){ p + f.outer, inner };
      uint32_t used = refer (s, payload, out + n_out, CV_TRAIN_PIECES - n_out, &sum);
      if (!used)
	return 0;
      n_out += used;
      total += inner + payload;
      cv_segment_finish (s, p, s->h.headers + payload, sum);
      s->next++;
    }
  partial_udp (l, room, total);
  out[0] = (cv_piece_t){ room, f.outer };
  *virtio = (cv_virtio_t){ .flags = CV_VIRTIO_NEEDS_CSUM, .gso_type = n > 1 ? CV_VIRTIO_UDP : 0, .hdr_len = (uint16_t) f.outer,
			   .gso_size = (uint16_t) f.each, .csum_start = l->l4, .csum_offset = UDP_CHECKSUM };
  return n_out;
}

/* ---- receiving ---- */

bool
cv_train_read (cv_train_t *t, uint8_t *data, uint32_t len, const cv_virtio_t *virtio)
{
  cv_layer_t *l = &t->outer;
  if (virtio->gso_type != CV_VIRTIO_UDP || !(virtio->flags & CV_VIRTIO_NEEDS_CSUM) || !cv_udp_read (l, data, len))
    return false;
  uint32_t ip_len = l->ip6 ? cv_get16 (data + l->l3 + 4) + 40u : cv_get16 (data + l->l3 + 2);
  if (virtio->csum_start != l->l4 || virtio->csum_offset != UDP_CHECKSUM || ip_len != len - l->l3 || cv_get16 (data + l->l4 + UDP_LENGTH) != len - l->l4)
    return false;
  uint32_t payload = len - l->l4 - UDP_HEADER;
  if (!virtio->gso_size || !payload || (payload - 1) / virtio->gso_size >= CV_SEGMENTS)
    return false;
  t->data = data;
  t->len = len;
  t->at = l->l4 + UDP_HEADER;
  t->size = virtio->gso_size;
  return true;
}

/* whole_udp writes the headers of a single datagram. */
static void
whole_udp (const cv_layer_t *l, uint8_t *p, const cv_piece_t *payload)
{
  uint8_t *udp = p + l->l4;
  uint32_t total = l->l4 + UDP_HEADER + payload->len;
  cv_layer_finish (l, p, total);
  cv_put16 (udp + UDP_LENGTH, total - l->l4);
  memset (udp + UDP_CHECKSUM, 0, 2);
  uint16_t sum = cv_sum_finish (cv_pseudo_sum (l, p, CV_PROTO_IS_UDP) + cv_sum (udp + UDP_LENGTH, 2, 0) + cv_sum (udp, UDP_HEADER, 0) +
				cv_sum (payload->data, payload->len, 0));
  if (!sum)
    sum = 0xffff;
  memcpy (udp + UDP_CHECKSUM, &sum, 2);
}

/* rest returns the datagram that begins at t->at. */
static cv_piece_t
rest (const cv_train_t *t)
{
  uint32_t left = t->len - t->at;
  return (cv_piece_t){ t->data + t->at, left < t->size ? left : t->size };
}

static bool
segment_in (const cv_piece_t *d, cv_join_t *k)
{
  return d->len > VXLAN_HEADER && d->data[0] == VXLAN_HAS_VNI && cv_join_read (k, d->data + VXLAN_HEADER, d->len - VXLAN_HEADER);
}

/* join appends the following datagrams to the first, as long as they can be joined. */
static void
join (cv_train_t *t, cv_carriage_t *out, cv_join_t *first)
{
  const uint8_t *vxlan = out->pieces[1].data;
  while (t->at < t->len)
    {
      cv_piece_t d = rest (t);
      cv_join_t k;
      if (!segment_in (&d, &k) || memcmp (vxlan, d.data, VXLAN_HEADER) || !cv_join_same (first, &k) || !cv_join (first, &k))
	return;
      out->pieces[out->n_pieces++] = (cv_piece_t){ k.data + k.headers, k.payload };
      out->len += k.payload;
      t->at += d.len;
    }
}

/* joined writes the headers of the joined packet. */
static void
joined (const cv_train_t *t, cv_carriage_t *out, const cv_join_t *first, uint8_t *p)
{
  const cv_layer_t *l = &t->outer;
  uint16_t inner = (uint16_t) (l->l4 + UDP_HEADER + VXLAN_HEADER + ETHERNET_HEADER);
  cv_join_finish (first);
  partial_udp (l, p, out->len);
  if (!l->ip6)
    memset (p + l->l4 + UDP_CHECKSUM, 0, 2); /* no checksum */
  out->gso_size = first->gso_size;
  out->h = (cv_headers_t){ .n_layers = 2, .proto = CV_PROTO_IS_TCP, .headers = (uint16_t) (inner - ETHERNET_HEADER + first->headers) };
  out->h.layers[0] = *l;
  out->h.layers[1] = (cv_layer_t){ .l3 = inner, .l4 = (uint16_t) (inner + (first->ip6 ? 40 : 20)), .ip6 = first->ip6 };
}

bool
cv_train_next (cv_train_t *t, uint8_t *room, cv_carriage_t *out)
{
  uint32_t outer = t->outer.l4 + UDP_HEADER;
  cv_join_t first;
  if (t->at >= t->len)
    return false;
  cv_piece_t d = rest (t);
  memcpy (room, t->data, outer);
  out->pieces[0] = (cv_piece_t){ room, outer };
  out->pieces[1] = d;
  out->n_pieces = 2;
  out->len = outer + d.len;
  out->gso_size = 0;
  t->at += d.len;
  if (t->tunnel && outer <= OUTER_MAX && segment_in (&d, &first))
    {
      join (t, out, &first);
      if (first.n > 1)
	{
	  joined (t, out, &first, room);
	  return true;
	}
    }
  whole_udp (&t->outer, room, &d);
  return true;
}
