/* Tests of segmentation: packets of all forms are segmented, and each segment is checked byte by byte by independent code. Damaged
 * packets must not cause reads or writes outside their memory. segment [rounds [seed]]. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include "../headers.h"
#include "../codel.h"
#include "check.h"

#define MAX_PACKET 70000

static uint64_t state = 88172645463325252ull;

static uint32_t
rnd (uint32_t n)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t) (state >> 20) % n;
}

/* ---- the reference: as described in the RFCs, one byte at a time ---- */

static uint32_t
ref_sum (const uint8_t *b, uint32_t n, uint32_t sum)
{
  for (uint32_t i = 0; i < n; i++)
    {
      sum += i & 1 ? b[i] : (uint32_t) b[i] << 8;
      sum = (sum & 0xffff) + (sum >> 16);
    }
  return sum;
}

/* ref_l4 returns 0xffff if the checksum of the len bytes at l4 is correct. */
static uint32_t
ref_l4 (const uint8_t *ip, bool ip6, const uint8_t *l4, uint32_t len, uint8_t proto)
{
  uint8_t pseudo[4] = { (uint8_t) (len >> 8), (uint8_t) len, 0, proto };
  uint32_t sum = ip6 ? ref_sum (ip + 8, 32, 0) : ref_sum (ip + 12, 8, 0);
  return ref_sum (l4, len, ref_sum (pseudo, 4, sum));
}

/* ---- packets ---- */

typedef enum
{
  PLAIN,
  VLAN,
  QINQ,
  VXLAN4,
  VXLAN6,
  SRV6,
  IPIP,
  N_SHAPES,
} shape_t;

typedef struct
{
  uint8_t data[MAX_PACKET];
  uint32_t len, l3, l4, headers, payload;
  bool ip6, ethernet;
} packet_t;

static void
put (packet_t *k, const void *b, uint32_t n)
{
  memcpy (k->data + k->len, b, n);
  k->len += n;
}

static void
put_ethernet (packet_t *k, bool ip6, int vlans)
{
  uint8_t h[14];
  for (int i = 0; i < 12; i++)
    h[i] = (uint8_t) rnd (256);
  cv_put16 (h + 12, vlans ? 0x8100 : ip6 ? 0x86dd : 0x0800);
  put (k, h, 14);
  for (; vlans; vlans--)
    {
      uint8_t tag[4] = { 0, 7 };
      cv_put16 (tag + 2, vlans > 1 ? 0x8100 : ip6 ? 0x86dd : 0x0800);
      put (k, tag, 4);
    }
}

static void
put_ip (packet_t *k, bool ip6, uint8_t proto, uint32_t extra, int extension)
{
  uint8_t h[60] = { 0 };
  for (uint32_t i = 0; i < sizeof (h); i++)
    h[i] = (uint8_t) rnd (256);
  if (!ip6)
    {
      h[0] = (uint8_t) (0x40 | (5 + extra));
      cv_put16 (h + 6, rnd (2) << 14);
      h[9] = proto;
      put (k, h, 20 + 4 * extra);
      return;
    }
  h[0] = 0x60;
  h[6] = extension >= 0 ? (uint8_t) extension : proto;
  put (k, h, 40);
  if (extension < 0)
    return;
  h[0] = proto;
  h[1] = (uint8_t) extra;
  for (uint32_t n = 0; n <= extra; n++)
    put (k, n ? h + 20 : h, 8);
}

static void
put_vxlan (packet_t *k)
{
  uint8_t h[16] = { 1, 2, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 10, 0 };
  put (k, h, 16);
}

/* build creates a TCP packet with a payload, in the form that VPP has before segmentation: outer lengths and checksums are arbitrary. */
static void
build (packet_t *k, shape_t shape, bool ip6, uint32_t payload, uint8_t flags)
{
  k->len = 0;
  k->ip6 = ip6;
  k->ethernet = true;
  switch (shape)
    {
    case VXLAN4:
    case VXLAN6:
      put_ethernet (k, shape == VXLAN6, (int) rnd (2));
      put_ip (k, shape == VXLAN6, 17, 0, -1);
      put_vxlan (k);
      break;
    case SRV6:
      put_ethernet (k, true, 0);
      put_ip (k, true, ip6 ? 41 : 4, rnd (4), 43);
      break;
    case IPIP:
      put_ethernet (k, false, 0);
      put_ip (k, false, ip6 ? 41 : 4, 0, -1);
      break;
    default:
      k->ethernet = shape != PLAIN || rnd (4);
    }
  if (k->ethernet && shape != SRV6 && shape != IPIP)
    put_ethernet (k, ip6, shape == VLAN ? 1 : shape == QINQ ? 2 : 0);
  k->l3 = k->len;
  put_ip (k, ip6, 6, rnd (3), ip6 && rnd (3) == 0 ? (rnd (2) ? 0 : 60) : -1);
  k->l4 = k->len;
  uint8_t tcp[60];
  for (uint32_t i = 0; i < sizeof (tcp); i++)
    tcp[i] = (uint8_t) rnd (256);
  uint32_t words = 5 + rnd (11);
  tcp[12] = (uint8_t) (words << 4);
  tcp[13] = flags;
  put (k, tcp, words * 4);
  k->headers = k->len;
  if (k->len - k->l3 + payload > 65535)
    payload = 65535 - (k->len - k->l3);
  k->payload = payload;
  for (uint32_t i = 0; i < payload; i++)
    k->data[k->len++] = (uint8_t) rnd (256);
  if (ip6)
    cv_put16 (k->data + k->l3 + 4, k->len - k->l3 - 40);
  else
    cv_put16 (k->data + k->l3 + 2, k->len - k->l3);
}

/* ---- pieces: memory of exact size, so that ASAN detects each access outside ---- */

typedef struct
{
  cv_piece_t at[CV_PIECES + 8];
  uint32_t n;
} pieces_t;

static void
add_piece (pieces_t *s, const uint8_t *from, uint32_t len)
{
  s->at[s->n].data = malloc (len ? len : 1);
  s->at[s->n].len = len;
  if (from && len)
    memcpy (s->at[s->n].data, from, len);
  s->n++;
}

/* cut splits bytes into pieces, the first of which has at least first bytes. */
static pieces_t
cut (const uint8_t *from, uint32_t len, uint32_t first)
{
  pieces_t s = { .n = 0 };
  uint32_t at = first < len ? first + rnd (rnd (2) ? 2048 : 9) : len, most = 1 + rnd (4000);
  at = at < len ? at : len;
  add_piece (&s, from, at);
  if (len - at > (CV_PIECES - 2) * (most / 2))
    most = len;
  while (at < len)
    {
      uint32_t n = s.n + 1 == CV_PIECES ? len - at : most / 2 + rnd (most / 2 + 1);
      if (rnd (20) == 0 && s.n < 40)
	n = 0;
      n = n < len - at ? n : len - at;
      add_piece (&s, from ? from + at : NULL, n);
      at += n;
    }
  return s;
}

static uint32_t
join (const pieces_t *s, uint8_t *to)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n; n += s->at[i++].len)
    memcpy (to + n, s->at[i].data, s->at[i].len);
  return n;
}

static void
release (pieces_t *s)
{
  while (s->n)
    free (s->at[--s->n].data);
}

/* ---- checks ---- */

/* check_outside checks lengths and checksums of the outer layers of a packet of len bytes. */
static void
check_outside (const cv_headers_t *h, const uint8_t *b, uint32_t len)
{
  for (int i = 0; i < h->n_layers; i++)
    {
      const cv_layer_t *l = &h->layers[i];
      const uint8_t *ip = b + l->l3;
      if (l->ip6)
	check (cv_get16 (ip + 4) == len - l->l3 - 40);
      else
	check (cv_get16 (ip + 2) == len - l->l3 && ref_sum (ip, (ip[0] & 15) * 4u, 0) == 0xffff);
      if (!l->udp)
	continue;
      check (cv_get16 (b + l->l4 + 4) == len - l->l4);
      if (l->ip6)
	check (ref_l4 (ip, true, b + l->l4, len - l->l4, 17) == 0xffff);
      else
	check (!b[l->l4 + 6] && !b[l->l4 + 7]);
    }
}

static void
check_segment (const packet_t *k, const cv_segmenter_t *s, const uint8_t *b, uint32_t len, uint32_t n, uint32_t gso_size)
{
  uint32_t at = n * gso_size, payload = len - k->headers;
  bool last = n + 1 == s->n_segments;
  const uint8_t *ip = b + k->l3, *tcp = b + k->l4, *was = k->data + k->l4;
  check (payload == (last ? k->payload - at : gso_size), "segment %u of %u", n, s->n_segments);
  check (!memcmp (b + k->headers, k->data + k->headers + at, payload));
  check (ref_l4 (ip, k->ip6, tcp, len - k->l4, 6) == 0xffff, "segment %u: checksum", n);
  check (cv_get32 (tcp + 4) == cv_get32 (was + 4) + at);
  uint8_t flags = was[13];
  if (!last)
    flags &= (uint8_t) ~9;
  if (n)
    flags &= 0x7f;
  check (tcp[13] == flags);
  if (!k->ip6)
    check (cv_get16 (ip + 4) == (uint16_t) (cv_get16 (k->data + k->l3 + 4) + n));
  check_outside (&s->h, b, len);
}

static void
segments (uint32_t rounds)
{
  static packet_t k;
  static uint8_t got[MAX_PACKET];
  for (uint32_t r = 0; r < rounds; r++)
    {
      static const uint32_t sizes[] = { 0, 1, 1398, 1399, 2796, 9001, 32767, 65535 };
      uint32_t payload = rnd (2) ? sizes[rnd (8)] : rnd (20000), gso_size = 520 + rnd (2000);
      build (&k, rnd (N_SHAPES), rnd (2), payload, (uint8_t) rnd (256));
      if (rnd (8) == 0)
	gso_size = 1 + rnd (9000);
      pieces_t in = cut (k.data, k.len, k.headers);
      cv_segmenter_t s;
      cv_gso_t result = cv_segment_begin (&s, in.at, in.n, gso_size, k.ethernet);
      uint32_t want = k.payload ? (k.payload - 1) / gso_size + 1 : 1;
      if (want > CV_SEGMENTS)
	check (result == CV_GSO_SIZE);
      else
	{
	  check (result == (want == 1 ? CV_GSO_ONE : CV_GSO_OK), "%d", result);
	  check (s.n_segments == want && s.h.headers == k.headers);
	  for (uint32_t n = 0; n < want; n++)
	    {
	      uint32_t len = cv_segment_len (&s);
	      pieces_t out = cut (NULL, len, k.headers);
	      cv_segment_next (&s, out.at, out.n);
	      check (join (&out, got) == len);
	      check_segment (&k, &s, got, len, n, gso_size);
	      release (&out);
	    }
	  check (cv_segment_len (&s) == 0);
	}
      release (&in);
    }
}

/* A device that does segmentation gets the sum of the pseudo header, and nothing else changes. */
static void
keep (void)
{
  static packet_t k;
  static uint8_t got[MAX_PACKET];
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      cv_segmenter_t s;
      build (&k, PLAIN, ip6, 30000, 0x10);
      pieces_t in = cut (k.data, k.len, k.headers);
      check (cv_segment_begin (&s, in.at, in.n, 1400, k.ethernet) == CV_GSO_OK && cv_segment_keep (&s));
      join (&in, got);
      uint8_t len[4] = { (uint8_t) ((k.len - k.l4) >> 8), (uint8_t) (k.len - k.l4), 0, 6 };
      uint32_t pseudo = ref_sum (len, 4, ip6 ? ref_sum (got + k.l3 + 8, 32, 0) : ref_sum (got + k.l3 + 12, 8, 0));
      check (cv_get16 (got + k.l4 + 16) == pseudo, "%x %x", cv_get16 (got + k.l4 + 16), pseudo);
      memcpy (got + k.l4 + 16, k.data + k.l4 + 16, 2);
      check (!memcmp (got, k.data, k.len));
      release (&in);
      build (&k, VXLAN4, ip6, 30000, 0x10);
      in = cut (k.data, k.len, k.headers);
      check (cv_segment_begin (&s, in.at, in.n, 1400, true) == CV_GSO_OK && !cv_segment_keep (&s));
      release (&in);
    }
}

/* same_segments checks that a packet without its last segment is cut into the same segments as before. FIN and PSH are on the last one. */
static void
same_segments (const packet_t *k, const packet_t *now, uint32_t gso_size, uint32_t n)
{
  static uint8_t a[MAX_PACKET], b[MAX_PACKET];
  pieces_t in[2] = { cut (k->data, k->len, k->headers), cut (now->data, now->len, k->headers) };
  cv_segmenter_t s[2];
  check (cv_segment_begin (&s[0], in[0].at, in[0].n, gso_size, true) == CV_GSO_OK);
  check (cv_segment_begin (&s[1], in[1].at, in[1].n, gso_size, true) == CV_GSO_OK && s[1].n_segments == n);
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t len = cv_segment_len (&s[0]);
      check (len == cv_segment_len (&s[1]));
      cv_segment_next (&s[0], &(cv_piece_t){ a, len }, 1);
      cv_segment_next (&s[1], &(cv_piece_t){ b, len }, 1);
      check_segment (now, &s[1], b, len, i, gso_size);
      if (i + 1 < n)
	check (!memcmp (a, b, len), "segment %u", i);
    }
  release (&in[0]);
  release (&in[1]);
}

/* A packet that signals congestion is marked if both ends use ECN. Otherwise it loses its last segment, if it may. */
static void
congested (uint32_t rounds)
{
  static packet_t k, now;
  uint32_t marked = 0, without = 0;
  for (uint32_t r = 0; r < rounds; r++)
    {
      uint32_t gso_size = 520 + rnd (2000), removed = 0;
      uint8_t flags = rnd (4) ? 0x10 | (uint8_t) rnd (2) << 3 : (uint8_t) rnd (256);
      build (&k, rnd (8) ? QINQ : VXLAN4, rnd (2), 1 + rnd (60000), flags);
      bool tunnel = k.l3 > 40;
      uint8_t *ip = k.data + k.l3, *tos = ip + 1;
      int shift = k.ip6 ? 4 : 0, ecn = rnd (4) ? 0 : (int) rnd (4);
      *tos = (uint8_t) ((*tos & ~(3 << shift)) | ecn << shift);
      cv_layer_finish (&(cv_layer_t){ .l3 = (uint16_t) k.l3, .ip6 = k.ip6 }, k.data, k.len);
      cv_headers_t h;
      check (cv_headers_read (&h, k.data, k.len, true));
      now = k;
      uint32_t n = (k.payload - 1) / gso_size + 1;
      if (n > CV_SEGMENTS)
	continue;
      bool late = rnd (2);
      cv_congested_t result = cv_congested (now.data, &h, k.len, gso_size, late, &removed);
      if (tunnel || (!ecn && (n < 3 || flags & (late ? 0x27 : 0x2f))))
	{
	  check (result == CV_CONGESTED_NOT && !memcmp (now.data, k.data, k.len));
	  continue;
	}
      check (result == (ecn ? CV_CONGESTED_MARKED : CV_CONGESTED_CUT), "%d", result);
      check (k.ip6 || ref_sum (now.data + k.l3, (ip[0] & 15) * 4u, 0) == 0xffff);
      if (ecn)
	{
	  *tos |= (uint8_t) (3 << shift);
	  cv_layer_finish (&(cv_layer_t){ .l3 = (uint16_t) k.l3, .ip6 = k.ip6 }, k.data, k.len);
	  check (!memcmp (now.data, k.data, k.len));
	  marked++;
	  continue;
	}
      check (removed == k.payload - (n - 1) * gso_size);
      now.len -= removed;
      now.payload -= removed;
      same_segments (&k, &now, gso_size, n - 1);
      without++;
    }
  check (marked && without);
}

/* An ICMP error that was created from a packet of several segments in a tunnel: only the tunnel is completed. */
static void
tunnels (void)
{
  static packet_t k;
  static uint8_t got[MAX_PACKET];
  for (int n = 0; n < 200; n++)
    {
      cv_segmenter_t s;
      build (&k, n & 1 ? VXLAN6 : VXLAN4, false, rnd (3000), 0x10);
      k.data[k.l3 + 9] = 1;
      cv_layer_finish (&(cv_layer_t){ .l3 = (uint16_t) k.l3, .l4 = (uint16_t) k.l4 }, k.data, k.len);
      pieces_t in = cut (k.data, k.len, k.headers);
      check (cv_segment_begin (&s, in.at, in.n, 1400, true) == CV_GSO_ONE);
      cv_tunnels_finish (&s);
      check_outside (&s.h, got, join (&in, got));
      release (&in);
    }
}

/* ---- packets from TAPs ---- */

static cv_virtio_t
honest (const packet_t *k, uint16_t gso_size)
{
  return (cv_virtio_t){ .flags = CV_VIRTIO_NEEDS_CSUM, .gso_type = k->ip6 ? CV_VIRTIO_TCP6 : CV_VIRTIO_TCP4, .gso_size = gso_size,
			.hdr_len = (uint16_t) k->headers, .csum_start = (uint16_t) k->l4, .csum_offset = 16 };
}

static cv_gso_t
take (const packet_t *k, const cv_virtio_t *v, uint32_t mtu, uint8_t *got)
{
  cv_headers_t h;
  pieces_t in = cut (k->data, k->len, k->headers);
  cv_gso_t result = cv_offload_take (in.at, in.n, v, mtu, &h);
  if (result == CV_GSO_OK)
    check (h.n_layers == 1 && h.layers[0].l3 == k->l3 && h.layers[0].l4 == k->l4 && h.headers == k->headers);
  join (&in, got);
  release (&in);
  return result;
}

static void
from_taps (void)
{
  static packet_t k;
  static uint8_t got[MAX_PACKET];
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (shape_t shape = VLAN; shape <= QINQ; shape++)
      {
	build (&k, shape, ip6, 30000, 0x10);
	uint32_t around = k.headers - k.l3;
	cv_virtio_t v = honest (&k, 1398);
	check (take (&k, &v, around + 1398, got) == CV_GSO_OK && !memcmp (got, k.data, k.len));
	check (take (&k, &v, around + 1397, got) == CV_GSO_SIZE);
	check (take (&k, &v, 0, got) == CV_GSO_OK);
	v.gso_size = 7;
	check (take (&k, &v, 0, got) == CV_GSO_SIZE);
	v.gso_size = 0;
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
	v = honest (&k, 1398), v.csum_offset = 6;
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
	v = honest (&k, 1398), v.csum_start = 1;
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
	v = honest (&k, 1398), v.flags = 0;
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
	for (int type = 0; type < 256; type++)
	  {
	    v = honest (&k, 1398), v.gso_type = (uint8_t) type;
	    check (take (&k, &v, 0, got) == (type == 0 ? CV_GSO_ONE : type == (ip6 ? 4 : 1) ? CV_GSO_OK : CV_GSO_MALFORMED));
	  }
	k.len--; /* the length in the IP header is greater than the actual length */
	v = honest (&k, 1398);
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
	k.len += 2;
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
	build (&k, shape, ip6, 1398, 0x10); /* one segment: the checksum must be completed */
	cv_segmenter_t s;
	v = honest (&k, 1398);
	cv_piece_t piece = { k.data, k.len };
	check (cv_segment_begin (&s, &piece, 1, 1398, true) == CV_GSO_ONE && cv_segment_keep (&s));
	check (take (&k, &v, 0, got) == CV_GSO_ONE && ref_l4 (got + k.l3, ip6, got + k.l4, k.len - k.l4, 6) == 0xffff);
	v.gso_type = 0;
	check (take (&k, &v, 0, got) == CV_GSO_ONE && ref_l4 (got + k.l3, ip6, got + k.l4, k.len - k.l4, 6) == 0xffff);
	v.csum_start = 0xffff;
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
	v = honest (&k, 0), v.gso_type = 0, v.csum_offset = 0xfff0;
	check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
      }
  build (&k, VXLAN4, false, 30000, 0x10); /* a tunnel of the pod itself: the pod's kernel must segment it */
  cv_virtio_t v = honest (&k, 1398);
  check (take (&k, &v, 0, got) == CV_GSO_MALFORMED);
}

static void
sums (void)
{
  static uint8_t b[9000];
  for (uint32_t i = 0; i < sizeof (b); i++)
    b[i] = (uint8_t) rnd (256);
  for (int n = 0; n < 2000; n++)
    {
      uint32_t at = rnd (200), len = n < 600 ? (uint32_t) n : rnd (8000), split = rnd (len + 1);
      uint16_t want = htons ((uint16_t) ~ref_sum (b + at, len, 0));
      check (cv_sum_finish (cv_sum (b + at, len, 0)) == want, "%u bytes", len);
      check (cv_sum_finish (cv_sum (b + at, split, 0) + cv_sum (b + at + split, len - split, split)) == want, "%u of %u bytes", split, len);
    }
  memset (b, 0xff, sizeof (b)); /* maximum number of carries */
  check (cv_sum_finish (cv_sum (b, 8999, 0)) == htons ((uint16_t) ~ref_sum (b, 8999, 0)));
}

/* ---- joining ---- */

/* plain builds a packet that may be joined. */
static void
plain (packet_t *k, bool ip6, uint32_t payload, uint8_t flags, uint32_t options)
{
  k->len = 0;
  k->ip6 = ip6;
  k->ethernet = true;
  put_ethernet (k, ip6, 0);
  k->l3 = k->len;
  put_ip (k, ip6, 6, 0, -1);
  if (!ip6)
    cv_put16 (k->data + k->l3 + 6, 0x4000);
  k->l4 = k->len;
  uint8_t tcp[60];
  for (uint32_t i = 0; i < sizeof (tcp); i++)
    tcp[i] = (uint8_t) rnd (256);
  tcp[12] = (uint8_t) ((5 + options) << 4);
  tcp[13] = flags;
  tcp[18] = tcp[19] = 0;
  put (k, tcp, 20 + 4 * options);
  k->headers = k->len;
  k->payload = payload;
  for (uint32_t i = 0; i < payload; i++)
    k->data[k->len++] = (uint8_t) rnd (256);
  if (ip6)
    cv_put16 (k->data + k->l3 + 4, k->len - k->l3 - 40);
  else
    cv_put16 (k->data + k->l3 + 2, k->len - k->l3);
}

/* segments_of segments k into pieces of exact size. */
static uint32_t
segments_of (packet_t *k, uint32_t gso_size, cv_piece_t *out)
{
  cv_segmenter_t s;
  cv_piece_t in = { k->data, k->len };
  cv_gso_t result = cv_segment_begin (&s, &in, 1, gso_size, true);
  check (result == CV_GSO_OK || result == CV_GSO_ONE);
  uint32_t n = 0;
  for (uint32_t len; (len = cv_segment_len (&s)); n++)
    {
      out[n] = (cv_piece_t){ malloc (len), len };
      cv_segment_next (&s, &out[n], 1);
    }
  return n;
}

/* Segments are joined to the original packet again. */
static void
joins (uint32_t rounds)
{
  static packet_t k;
  static uint8_t got[MAX_PACKET];
  for (uint32_t r = 0; r < rounds; r++)
    {
      bool ip6 = rnd (2);
      uint32_t gso_size = 500 + rnd (3000), most = gso_size * CV_JOINED < 60000 ? gso_size * CV_JOINED : 60000;
      plain (&k, ip6, 1 + rnd (most), rnd (2) ? 0x10 : 0x18, rnd (11));
      cv_piece_t parts[CV_SEGMENTS];
      cv_join_t first, next;
      uint32_t n = segments_of (&k, gso_size, parts), len = parts[0].len;
      check (cv_join_read (&first, parts[0].data, parts[0].len));
      memcpy (got + len - first.payload, parts[0].data + first.headers, first.payload);
      for (uint32_t i = 1; i < n; i++)
	{
	  check (cv_join_read (&next, parts[i].data, parts[i].len) && cv_join_same (&first, &next));
	  memcpy (got + len, parts[i].data + next.headers, next.payload);
	  len += next.payload;
	  check (cv_join (&first, &next), "%u of %u", i, n);
	}
      check (first.n == n && first.gso_size == (n > 1 ? gso_size : k.payload) && first.headers + first.payload == k.len);
      cv_join_finish (&first);
      memcpy (got, parts[0].data, first.headers);
      cv_segmenter_t s;
      cv_piece_t whole = { got, len }, was = { k.data, k.len };
      check (cv_segment_begin (&s, &was, 1, gso_size, true) <= CV_GSO_ONE && cv_segment_keep (&s));
      cv_layer_finish (&s.h.layers[0], k.data, k.len);
      check (len == k.len && !memcmp (got, k.data, len));
      check (cv_segment_begin (&s, &whole, 1, gso_size, true) == (n > 1 ? CV_GSO_OK : CV_GSO_ONE));
      while (n)
	free (parts[--n].data);
    }
}

/* Packets that must not be joined. Each of the first 74 bytes, which are headers, is changed, one at a time. */
static void
apart (void)
{
  static packet_t k;
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (uint32_t at = 0; at < 74; at++)
      {
	cv_piece_t parts[CV_SEGMENTS];
	cv_join_t first, next;
	plain (&k, ip6, 3000, 0x10, 3);
	uint32_t n = segments_of (&k, 1000, parts);
	check (n == 3 && cv_join_read (&first, parts[0].data, parts[0].len));
	parts[1].data[at] ^= 0x20; /* a header */
	check (!cv_join_read (&next, parts[1].data, parts[1].len) || !cv_join_same (&first, &next) || !cv_join (&first, &next), "byte %u", at);
	parts[1].data[at] ^= 0x20;
	parts[1].data[parts[1].len - 1 - at] ^= 0x20; /* the payload: the checksum is wrong */
	check (cv_join_read (&next, parts[1].data, parts[1].len) && cv_join_same (&first, &next) && !cv_join (&first, &next));
	parts[1].data[parts[1].len - 1 - at] ^= 0x20;
	check (cv_join_read (&next, parts[2].data, parts[2].len) && !cv_join (&first, &next)); /* a packet is missing */
	check (cv_join_read (&next, parts[1].data, parts[1].len) && cv_join (&first, &next) && !cv_join (&first, &next)); /* the same packet twice */
	while (n)
	  free (parts[--n].data);
      }
  for (int flags = 0; flags < 256; flags++)
    {
      cv_piece_t part;
      cv_join_t j;
      plain (&k, flags & 1, 100, (uint8_t) flags, 0);
      segments_of (&k, 1000, &part);
      check (cv_join_read (&j, part.data, part.len) == (flags == 0x10 || flags == 0x18));
      free (part.data);
    }
}

/* ---- trains ---- */

/* flat copies several pieces to one, of exact size. */
static cv_piece_t
flat (const cv_piece_t *in, uint32_t n)
{
  cv_piece_t p = { malloc (cv_pieces_len (in, n)), 0 };
  for (uint32_t i = 0; i < n; p.len += in[i++].len)
    memcpy (p.data + p.len, in[i].data, in[i].len);
  return p;
}

/* check_train checks that the kernel would segment the train, and complete its checksum. */
static void
check_train (const cv_piece_t *p, const cv_virtio_t *v, uint32_t shortest)
{
  cv_layer_t l;
  check (p->len > shortest && p->len <= 65535 && cv_udp_read (&l, p->data, p->len));
  check (v->gso_type == CV_VIRTIO_UDP && v->csum_start == l.l4 && v->hdr_len == l.l4 + 8);
  uint8_t *udp = p->data + l.l4, len[4] = { udp[4], udp[5], 0, 17 };
  check (cv_get16 (udp + 4) == p->len - l.l4);
  check (cv_get16 (udp + 6) == ref_sum (len, 4, l.ip6 ? ref_sum (p->data + l.l3 + 8, 32, 0) : ref_sum (p->data + l.l3 + 12, 8, 0)));
}

/* unload takes all datagrams from a train; each must equal the segment that segmentation would have created. n is the number of segments
 * before this train; the result includes those of this train. */
static uint32_t
unload (const packet_t *k, const cv_segmenter_t *s, cv_train_t *t, uint32_t n, uint32_t gso_size)
{
  cv_carriage_t out;
  uint8_t *room = malloc (CV_SEGMENT_HEADERS);
  for (t->tunnel = false; cv_train_next (t, room, &out); n++)
    {
      cv_piece_t d = flat (out.pieces, out.n_pieces);
      cv_layer_t l;
      check (!out.gso_size && d.len == out.len && cv_udp_read (&l, d.data, d.len));
      check (ref_l4 (d.data + l.l3, l.ip6, d.data + l.l4, d.len - l.l4, 17) == 0xffff, "segment %u: UDP checksum", n);
      if (!l.ip6)
	memset (d.data + l.l4 + 6, 0, 2);
      check_segment (k, s, d.data, d.len, n, gso_size);
      free (d.data);
    }
  free (room);
  return n;
}

/* Each datagram of a sent train equals the segment that segmentation would have created. */
static void
trains (uint32_t rounds)
{
  static packet_t k;
  for (uint32_t r = 0; r < rounds; r++)
    {
      const uint32_t shortest = 1522;
      uint32_t gso_size = 520 + rnd (2000), n = 0;
      build (&k, rnd (2) ? VXLAN4 : VXLAN6, rnd (2), rnd (4) ? 20000 + rnd (46000) : rnd (9000), (uint8_t) rnd (256));
      pieces_t in = cut (k.data, k.len, k.headers);
      cv_segmenter_t s;
      cv_virtio_t v;
      bool fits = cv_segment_begin (&s, in.at, in.n, gso_size, true) == CV_GSO_OK && cv_train_fits (&s, shortest);
      check (fits || k.payload < 65535 / 2 || s.h.layers[0].l3 != 14 || s.n_segments > CV_SEGMENTS);
      uint8_t *room = malloc (CV_TRAIN_ROOM);
      static cv_piece_t pieces[CV_TRAIN_PIECES];
      for (uint32_t used; fits && (used = cv_train_write (&s, room, pieces, &v));)
	{
	  cv_piece_t p = flat (pieces, used);
	  cv_train_t t;
	  check_train (&p, &v, shortest);
	  check (cv_train_read (&t, p.data, p.len, &v));
	  n = unload (&k, &s, &t, n, gso_size);
	  free (p.data);
	}
      check (!fits || n == s.n_segments);
      free (room);
      release (&in);
    }
}

/* Received trains are joined again: the payload is the same, and each packet could be segmented again. */
static void
unites (uint32_t rounds)
{
  static packet_t k, around;
  static cv_piece_t pieces[CV_TRAIN_PIECES];
  static uint8_t got[MAX_PACKET];
  for (uint32_t r = 0; r < rounds; r++)
    {
      uint32_t gso_size = 800 + rnd (1200), most = 30 * gso_size, packets = 0, payload = 0, trains = 0, used;
      plain (&k, rnd (2), 2000 + rnd (most), rnd (2) ? 0x10 : 0x18, rnd (11));
      around.len = 0;
      bool outer6 = rnd (2);
      put_ethernet (&around, outer6, 0);
      put_ip (&around, outer6, 17, 0, -1);
      put_vxlan (&around);
      memmove (k.data + around.len, k.data, k.len);
      memcpy (k.data, around.data, around.len);
      cv_piece_t in = { k.data, k.len + around.len };
      cv_segmenter_t s;
      cv_virtio_t v;
      check (cv_segment_begin (&s, &in, 1, gso_size, true) == CV_GSO_OK && cv_train_fits (&s, 1500));
      uint8_t *room = malloc (CV_TRAIN_ROOM);
      for (; (used = cv_train_write (&s, room, pieces, &v)); trains++)
	{
	  cv_piece_t p = flat (pieces, used);
	  cv_train_t t;
	  cv_carriage_t out;
	  check (cv_train_read (&t, p.data, p.len, &v));
	  for (t.tunnel = true; cv_train_next (&t, room, &out); packets++)
	    {
	      cv_piece_t d = flat (out.pieces, out.n_pieces);
	      cv_segmenter_t again;
	      check (d.len == out.len && cv_segment_begin (&again, &d, 1, out.gso_size ? out.gso_size : gso_size, true) == (out.gso_size ? CV_GSO_OK : CV_GSO_ONE));
	      check (!out.gso_size || (out.gso_size == gso_size && out.h.headers == again.h.headers && out.h.n_layers == again.h.n_layers &&
				       !memcmp (out.h.layers, again.h.layers, 2 * sizeof (cv_layer_t))));
	      memcpy (got + payload, d.data + again.h.headers, d.len - again.h.headers);
	      payload += d.len - again.h.headers;
	      free (d.data);
	    }
	  free (p.data);
	}
      check (packets == trains, "%u packets of %u trains", packets, trains);
      check (payload == k.payload && !memcmp (got, k.data + around.len + k.headers, payload));
      free (room);
    }
}

/* Large packets also arrive from an uplink, with and without VXLAN. */
static void
from_uplinks (void)
{
  static packet_t k;
  static const shape_t shapes[] = { VLAN, VXLAN4, VXLAN6 };
  for (int n = 0; n < 60; n++)
    {
      cv_headers_t h;
      build (&k, shapes[n % 3], n & 1, 30000, 0x10);
      cv_virtio_t v = honest (&k, 1398);
      pieces_t in = cut (k.data, k.len, k.headers);
      check (cv_uplink_take (in.at, in.n, &v, &h) == CV_GSO_OK && h.headers == k.headers && h.layers[h.n_layers - 1].l4 == k.l4);
      v.csum_start++;
      check (cv_uplink_take (in.at, in.n, &v, &h) == CV_GSO_MALFORMED);
      v = honest (&k, 30000); /* one segment: a single packet, whose checksum is completed */
      check (cv_uplink_take (in.at, in.n, &v, &h) == CV_GSO_ONE);
      release (&in);
    }
}

/* damaged_train: a train with changed or missing bytes must not cause reads or writes outside its memory. */
static void
damaged_train (uint32_t rounds)
{
  static packet_t k;
  static cv_piece_t pieces[CV_TRAIN_PIECES];
  for (uint32_t r = 0; r < rounds; r++)
    {
      uint8_t *room = malloc (CV_TRAIN_ROOM);
      cv_segmenter_t s;
      cv_virtio_t v;
      build (&k, rnd (2) ? VXLAN4 : VXLAN6, rnd (2), 3000 + rnd (3000), (uint8_t) (rnd (2) ? 0x10 : rnd (256)));
      cv_piece_t in = { k.data, k.len };
      if (cv_segment_begin (&s, &in, 1, 700, true) == CV_GSO_OK && cv_train_fits (&s, 1500))
	{
	  cv_piece_t p = flat (pieces, cv_train_write (&s, room, pieces, &v));
	  for (uint32_t n = rnd (5); n; n--)
	    p.data[rnd (rnd (2) ? k.headers : p.len)] ^= (uint8_t) (1 << rnd (8));
	  if (rnd (3) == 0)
	    {
	      cv_piece_t shorter = flat (&(cv_piece_t){ p.data, rnd (p.len) + 1 }, 1);
	      free (p.data);
	      p = shorter;
	    }
	  if (rnd (3) == 0)
	    v.gso_size = (uint16_t) rnd (rnd (2) ? 200 : 65536);
	  if (rnd (6) == 0)
	    v.csum_start = (uint16_t) rnd (65536);
	  cv_train_t t;
	  cv_carriage_t out;
	  if (cv_train_read (&t, p.data, p.len, &v))
	    for (t.tunnel = rnd (2); cv_train_next (&t, room, &out);)
	      free (flat (out.pieces, out.n_pieces).data);
	  cv_headers_t h;
	  v.gso_type = (uint8_t) rnd (6);
	  cv_uplink_take (&p, 1, &v, &h);
	  free (p.data);
	}
      free (room);
    }
}

/* ---- damaged packets ---- */

static void
damaged (uint32_t rounds)
{
  static packet_t k;
  for (uint32_t r = 0; r < rounds; r++)
    {
      build (&k, rnd (N_SHAPES), rnd (2), rnd (4000), (uint8_t) rnd (256));
      for (uint32_t n = rnd (4); n; n--)
	k.data[rnd (k.headers)] ^= (uint8_t) (1 << rnd (8));
      if (rnd (3) == 0)
	k.len = rnd (k.len) + 1;
      pieces_t in = cut (k.data, k.len, rnd (4) ? k.headers : rnd (k.len));
      cv_headers_t h;
      cv_join_t a, b;
      if (cv_join_read (&a, in.at[0].data, in.at[0].len) && cv_join_read (&b, in.at[0].data, in.at[0].len) && cv_join_same (&a, &b))
	cv_join (&a, &b);
      cv_virtio_t v = honest (&k, (uint16_t) (rnd (2) ? 1400 : rnd (65536)));
      switch (rnd (6))
	{
	case 0:
	  v.csum_start = (uint16_t) rnd (65536), v.csum_offset = (uint16_t) rnd (65536);
	  break;
	case 1:
	  v.gso_type = (uint8_t) rnd (256), v.flags = (uint8_t) rnd (256);
	}
      cv_offload_take (in.at, in.n, &v, rnd (2) * 1500, &h);
      cv_segmenter_t s;
      cv_gso_t result = cv_segment_begin (&s, in.at, in.n, v.gso_size, rnd (5) > 0);
      if (result == CV_GSO_ONE)
	cv_tunnels_finish (&s);
      if (result == CV_GSO_OK && rnd (4) == 0)
	cv_segment_keep (&s);
      for (uint32_t len; result == CV_GSO_OK && (len = cv_segment_len (&s));)
	{
	  pieces_t out = cut (NULL, len, s.h.headers);
	  cv_segment_next (&s, out.at, out.n);
	  release (&out);
	}
      release (&in);
    }
}

int
main (int argc, char **argv)
{
  uint32_t rounds = argc > 1 ? (uint32_t) atoi (argv[1]) : 3000;
  if (argc > 2)
    state += strtoull (argv[2], NULL, 0) * 0x9e3779b97f4a7c15ull;
  sums ();
  segments (rounds);
  congested (rounds);
  keep ();
  tunnels ();
  from_taps ();
  joins (rounds);
  apart ();
  trains (rounds);
  unites (rounds);
  from_uplinks ();
  damaged (rounds * 20);
  damaged_train (rounds * 20);
  puts ("ok");
  return 0;
}
