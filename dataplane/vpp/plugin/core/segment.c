/* Segmentation of TCP packets, like in a NIC; preparation of packets for it, and for devices that do it themselves. */
#include "headers.h"

enum
{
  TCP_SEQ = 4,
  TCP_FLAGS = 13,
  TCP_CHECKSUM = 16,
  FIN = 0x01,
  PSH = 0x08,
  CWR = 0x80,
};

static const cv_layer_t *
innermost (const cv_headers_t *h)
{
  return &h->layers[h->n_layers - 1];
}

/* lengths_agree reports whether the length in the packet's IP header equals the actual length. */
static bool
lengths_agree (const cv_headers_t *h, const uint8_t *p, uint32_t total)
{
  const cv_layer_t *l = innermost (h);
  return l->ip6 ? cv_get16 (p + l->l3 + 4) + 40u == total - l->l3 : cv_get16 (p + l->l3 + 2) == total - l->l3;
}

cv_gso_t
cv_segment_begin (cv_segmenter_t *s, const cv_piece_t *in, uint32_t n_in, uint32_t gso_size, bool ethernet)
{
  if (!n_in || n_in > CV_PIECES || !cv_headers_read (&s->h, in[0].data, in[0].len, ethernet))
    return CV_GSO_MALFORMED;
  s->in = in;
  s->n_in = n_in;
  s->total = cv_pieces_len (in, n_in);
  s->n_segments = 1;
  s->next = 0;
  if (s->h.proto != CV_PROTO_IS_TCP)
    return CV_GSO_ONE;
  if (!gso_size || !lengths_agree (&s->h, in[0].data, s->total))
    return CV_GSO_MALFORMED;
  s->gso_size = gso_size;
  s->piece = 0;
  s->offset = s->h.headers;
  s->left = s->total - s->h.headers;
  s->n_segments = s->left ? (s->left - 1) / gso_size + 1 : 1;
  if (s->n_segments > CV_SEGMENTS)
    return CV_GSO_SIZE;
  return s->n_segments == 1 ? CV_GSO_ONE : CV_GSO_OK;
}

static uint32_t
payload_len (const cv_segmenter_t *s)
{
  return s->left < s->gso_size ? s->left : s->gso_size;
}

uint32_t
cv_segment_len (const cv_segmenter_t *s)
{
  return s->next < s->n_segments ? s->h.headers + payload_len (s) : 0;
}

/* copy_payload copies the next n bytes of payload, and returns their sum. */
static uint64_t
copy_payload (cv_segmenter_t *s, const cv_piece_t *out, uint32_t n)
{
  uint64_t sum = 0;
  uint32_t to = s->h.headers, at = 0;
  s->left -= n;
  while (n)
    {
      const cv_piece_t *from = &s->in[s->piece];
      uint32_t here = from->len - s->offset, room = out->len - to, some = n;
      if (!here)
	{
	  s->piece++;
	  s->offset = 0;
	  continue;
	}
      if (!room)
	{
	  out++;
	  to = 0;
	  continue;
	}
      some = some < here ? some : here;
      some = some < room ? some : room;
      memcpy (out->data + to, from->data + s->offset, some);
      sum += cv_sum (out->data + to, some, at);
      s->offset += some;
      to += some;
      at += some;
      n -= some;
    }
  return sum;
}

void
cv_segment_finish (const cv_segmenter_t *s, uint8_t *p, uint32_t total, uint64_t payload)
{
  const cv_layer_t *l = innermost (&s->h);
  uint8_t *tcp = p + l->l4, len[2];
  bool last = s->next + 1 == s->n_segments;
  cv_put32 (tcp + TCP_SEQ, cv_get32 (tcp + TCP_SEQ) + s->next * s->gso_size);
  if (!last)
    tcp[TCP_FLAGS] &= (uint8_t) ~(FIN | PSH);
  if (s->next)
    tcp[TCP_FLAGS] &= (uint8_t) ~CWR;
  memset (tcp + TCP_CHECKSUM, 0, 2);
  cv_put16 (len, total - l->l4);
  uint16_t sum = cv_sum_finish (cv_pseudo_sum (l, p, CV_PROTO_IS_TCP) + cv_sum (len, 2, 0) + cv_sum (tcp, s->h.headers - l->l4, 0) + payload);
  memcpy (tcp + TCP_CHECKSUM, &sum, 2);
  if (!l->ip6)
    cv_put16 (p + l->l3 + 4, cv_get16 (p + l->l3 + 4) + s->next);
  cv_layer_finish (l, p, total);
}

/* finish_tunnels writes the lengths and checksums of the tunnels around the packet, the inner ones first. payload is the sum
 * of the bytes after the first headers bytes. All headers have an even length. */
static void
finish_tunnels (const cv_headers_t *h, uint8_t *p, uint32_t total, uint32_t headers, uint64_t payload)
{
  for (int i = h->n_layers - 2; i >= 0; i--)
    {
      const cv_layer_t *l = &h->layers[i];
      cv_layer_finish (l, p, total);
      if (!l->udp)
	continue;
      uint8_t *udp = p + l->l4;
      bool had = udp[6] || udp[7];
      cv_put16 (udp + 4, total - l->l4);
      memset (udp + 6, 0, 2);
      if (!l->ip6 && !had)
	continue; /* IPv4 does not require a UDP checksum */
      uint16_t sum = cv_sum_finish (cv_pseudo_sum (l, p, CV_PROTO_IS_UDP) + cv_sum (udp + 4, 2, 0) + cv_sum (udp, headers - l->l4, 0) + payload);
      if (!sum)
	sum = 0xffff;
      memcpy (udp + 6, &sum, 2);
    }
}

void
cv_segment_next (cv_segmenter_t *s, const cv_piece_t *out, uint32_t n_out)
{
  uint32_t n = payload_len (s), total = s->h.headers + n;
  (void) n_out;
  memcpy (out[0].data, s->in[0].data, s->h.headers);
  uint64_t payload = copy_payload (s, out, n);
  cv_segment_finish (s, out[0].data, total, payload);
  finish_tunnels (&s->h, out[0].data, total, s->h.headers, payload);
  s->next++;
}

bool
cv_segment_keep (const cv_segmenter_t *s)
{
  if (s->h.n_layers != 1)
    return false;
  const cv_layer_t *l = innermost (&s->h);
  uint8_t *p = s->in[0].data, len[2];
  cv_put16 (len, s->total - l->l4);
  uint16_t sum = (uint16_t) ~cv_sum_finish (cv_pseudo_sum (l, p, CV_PROTO_IS_TCP) + cv_sum (len, 2, 0));
  memcpy (p + l->l4 + TCP_CHECKSUM, &sum, 2);
  return true;
}

void
cv_tunnels_finish (const cv_segmenter_t *s)
{
  uint8_t *p = s->in[0].data;
  uint64_t payload = 0;
  uint32_t at = 0;
  for (uint32_t i = 1; i < s->n_in; at += s->in[i++].len)
    payload += cv_sum (s->in[i].data, s->in[i].len, s->in[0].len + at);
  finish_tunnels (&s->h, p, s->total, s->in[0].len, payload);
}

/* agrees reports whether the packet and the virtio header describe the same TCP packet. */
static bool
agrees (const cv_segmenter_t *s, const cv_virtio_t *virtio)
{
  const cv_layer_t *l = innermost (&s->h);
  return s->h.proto == CV_PROTO_IS_TCP && virtio->gso_type == (l->ip6 ? CV_VIRTIO_TCP6 : CV_VIRTIO_TCP4) &&
	 virtio->flags & CV_VIRTIO_NEEDS_CSUM && virtio->csum_start == l->l4 && virtio->csum_offset == TCP_CHECKSUM;
}

cv_gso_t
cv_offload_take (const cv_piece_t *in, uint32_t n_in, const cv_virtio_t *virtio, uint32_t mtu, cv_headers_t *h)
{
  if (!virtio->gso_type)
    return !(virtio->flags & CV_VIRTIO_NEEDS_CSUM) || cv_complete_checksum (in, n_in, virtio->csum_start, virtio->csum_offset) ?
	     CV_GSO_ONE :
	     CV_GSO_MALFORMED;
  cv_segmenter_t s;
  cv_gso_t result = cv_segment_begin (&s, in, n_in, virtio->gso_size, true);
  if (result == CV_GSO_MALFORMED || result == CV_GSO_SIZE)
    return result;
  const cv_layer_t *l = innermost (&s.h);
  if (s.h.n_layers != 1 || !agrees (&s, virtio))
    return CV_GSO_MALFORMED;
  *h = s.h;
  if (result == CV_GSO_ONE)
    return cv_complete_checksum (in, n_in, virtio->csum_start, virtio->csum_offset) ? CV_GSO_ONE : CV_GSO_MALFORMED;
  return mtu && s.h.headers - l->l3 + s.gso_size > mtu ? CV_GSO_SIZE : CV_GSO_OK;
}

cv_gso_t
cv_uplink_take (const cv_piece_t *in, uint32_t n_in, const cv_virtio_t *virtio, cv_headers_t *h)
{
  cv_segmenter_t s;
  cv_gso_t result = cv_segment_begin (&s, in, n_in, virtio->gso_size, true);
  if (result == CV_GSO_SIZE)
    return result;
  if (result == CV_GSO_MALFORMED || s.h.n_layers > 2 || !agrees (&s, virtio))
    return CV_GSO_MALFORMED;
  if (result == CV_GSO_ONE)
    return cv_complete_checksum (in, n_in, virtio->csum_start, virtio->csum_offset) ? CV_GSO_ONE : CV_GSO_MALFORMED;
  const cv_layer_t *l = &s.h.layers[0];
  *h = s.h;
  if (s.h.n_layers == 1)
    return CV_GSO_OK;
  if (!l->udp || s.total - l->l3 > 65535)
    return CV_GSO_MALFORMED;
  cv_layer_finish (l, in[0].data, s.total);
  cv_put16 (in[0].data + l->l4 + 4, s.total - l->l4);
  if (!l->ip6)
    memset (in[0].data + l->l4 + 6, 0, 2);
  return CV_GSO_OK;
}
