/* Rewriting of packets and of the packets inside ICMP errors, and building answers to rejected packets. */
#include "rewrite.h"

/* ---- CRC32c of SCTP (RFC 9260). It has no pseudo header. The checksum is updated for the changed word, shifted by the
 * bytes after it ---- */

#define CRC32C_POLY 0x82f63b78u

/* multiply multiplies two polynomials modulo CRC32c's, bit-reflected. */
static uint32_t
multiply (uint32_t a, uint32_t b)
{
  uint32_t r = 0;
  for (uint32_t bit = 1u << 31; bit; bit >>= 1)
    {
      if (a & bit)
	r ^= b;
      b = b & 1 ? b >> 1 ^ CRC32C_POLY : b >> 1;
    }
  return r;
}

/* shift returns x to the power of 8n: the effect of n zero bytes after a word. */
static uint32_t
shift (uint32_t n)
{
  uint32_t r = 1u << 31, x8 = 1u << 23;
  for (; n; n >>= 1, x8 = multiply (x8, x8))
    if (n & 1)
      r = multiply (r, x8);
  return r;
}

static uint32_t
le32 (const uint8_t *b)
{
  return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t) b[3] << 24;
}

/* sctp_ports writes the ports of an SCTP packet of len bytes, and updates its checksum. */
static void
sctp_ports (uint8_t *h, uint32_t len, const uint16_t ports[2])
{
  uint8_t before[4];
  memcpy (before, h, 4);
  memcpy (h, ports, 4);
  uint32_t diff = le32 (before) ^ le32 (h);
  if (!diff || len < 12)
    return;
  /* the CRC register differs after four bytes by diff times x^32; then len - 4 bytes follow */
  uint32_t crc = le32 (h + 8) ^ multiply (diff, shift (len));
  h[8] = (uint8_t) crc;
  h[9] = (uint8_t) (crc >> 8);
  h[10] = (uint8_t) (crc >> 16);
  h[11] = (uint8_t) (crc >> 24);
}

/* ---- sums ---- */

static uint64_t
sum_addr (const cv_addr_t *a)
{
  return (uint64_t) a->u32[0] + a->u32[1] + a->u32[2] + a->u32[3];
}

/* minus returns the one's complement difference of two sums. */
static uint16_t
minus (uint64_t after, uint64_t before)
{
  return cv_fold ((uint64_t) cv_fold (after) + (uint16_t) ~cv_fold (before));
}

/* cv_deltas computes the changes of the checksums by translation from key[0] to the reverse of key[1]. A sum does not
 * depend on the order. */
void
cv_deltas (cv_connection_t *c)
{
  const cv_tuple_t *k = c->key;
  uint64_t addr[2], ports[2];
  for (int i = 0; i < 2; i++)
    {
      addr[i] = (uint64_t) cv_fold (sum_addr (&k[i].src)) + cv_fold (sum_addr (&k[i].dst));
      bool icmp = k[i].proto == CV_PROTO_ICMP || k[i].proto == CV_PROTO_ICMP6;
      ports[i] = icmp ? k[i].sport : (uint64_t) k[i].sport + k[i].dport;
    }
  bool pseudo = k[0].proto != CV_PROTO_ICMP;
  c->ip_delta = minus (addr[1], addr[0]);
  c->l4_delta = minus (ports[1] + (pseudo ? addr[1] : 0), ports[0] + (pseudo ? addr[0] : 0));
}

/* sctp_len returns the length of the SCTP packet after the IP headers; 0: not known. */
static uint32_t
sctp_len (const cv_packet_t *p)
{
  uint32_t total = p->tuple.ip6 ? 40u + (uint32_t) (p->ip[4] << 8 | p->ip[5]) : (uint32_t) (p->ip[2] << 8 | p->ip[3]);
  return total > p->l4 ? total - p->l4 : 0;
}

/* cv_translate writes the addresses and ports of the other key into a packet that matched key[direction]. */
void
cv_translate (cv_packet_t *p, const cv_connection_t *c, uint32_t direction)
{
  const cv_tuple_t *to = &c->key[!direction];
  uint8_t *h = p->ip + p->l4;
  translate_addresses (p->ip, c, direction, to->ip6);
  if (!p->l4)
    return;
  uint16_t ports[2] = { to->dport, to->sport };
  switch (p->proto)
    {
    case CV_PROTO_TCP:
    case CV_PROTO_UDP:
      translate_ports (h, p->proto, p->l4_checksum_offloaded, c, direction, to->ip6);
      break;
    case CV_PROTO_SCTP:
      sctp_ports (h, sctp_len (p), ports);
      break;
    default: /* ICMP echo */
      memcpy (h + 4, ports, 2);
      cv_checksum_add (h + 2, delta_of (c->l4_delta, direction));
    }
}

/* sum16 returns the sum of bytes; an odd last byte counts as if a zero byte followed. */
static uint64_t
sum16 (const uint8_t *b, uint32_t n)
{
  uint64_t sum = 0;
  uint16_t v;
  for (; n >= 2; n -= 2, b += 2)
    {
      memcpy (&v, b, 2);
      sum += v;
    }
  if (n)
    {
      uint8_t last[2] = { *b, 0 };
      memcpy (&v, last, 2);
      sum += v;
    }
  return sum;
}

/* translate_inner rewrites the packet inside an ICMP error: addresses, ports, and the checksum if it is there. */
static void
translate_inner (uint8_t *in, uint32_t header, uint32_t len, const cv_tuple_t *to, uint16_t ip_delta, uint16_t l4_delta)
{
  set_addresses (in, &to->src, &to->dst, to->ip6, ip_delta);
  uint8_t *h = in + header;
  uint32_t room = len - header;
  uint16_t ports[2] = { to->sport, to->dport };
  switch (to->proto)
    {
    case CV_PROTO_ICMP:
    case CV_PROTO_ICMP6:
      memcpy (h + 4, ports, 2);
      cv_checksum_add (h + 2, l4_delta);
      return;
    case CV_PROTO_UDP:
      udp_checksum (h + 6, l4_delta, to->ip6);
      break;
    case CV_PROTO_TCP:
      if (room >= 18)
	cv_checksum_add (h + 16, l4_delta);
      break;
    }
  memcpy (h, ports, 4);
}

/* cv_translate_error translates an ICMP error about the connection that travels in the given direction, like
 * key[direction]. */
void
cv_translate_error (cv_packet_t *p, const cv_connection_t *c, uint32_t direction)
{
  const cv_tuple_t *from = &c->key[direction], *to = &c->key[!direction];
  uint8_t *in = p->ip + p->inner, *h = p->ip + p->l4;
  uint32_t inner_len = p->len - p->inner, header = p->inner_l4 - p->inner;
  bool ip6 = to->ip6;
  uint16_t ip_delta = delta_of (c->ip_delta, direction);
  uint16_t l4_delta = delta_of (c->l4_delta, direction);
  uint32_t changed = header + 20 < inner_len ? header + 20 : inner_len;
  uint64_t before = sum16 (in, changed);

  translate_inner (in, header, inner_len, to, ip_delta, l4_delta);
  uint64_t after = sum16 (in, changed);

  /* the source of the error is not translated, unless it is an end of the connection */
  cv_addr_t src = p->tuple.src;
  if (cv_addr_equal (&src, &from->src))
    src = to->dst;
  uint64_t outer_before = (uint64_t) cv_fold (sum_addr (&p->tuple.src)) + cv_fold (sum_addr (&p->tuple.dst));
  uint64_t outer_after = (uint64_t) cv_fold (sum_addr (&src)) + cv_fold (sum_addr (&to->src));
  set_addresses (p->ip, &src, &to->src, ip6, minus (outer_after, outer_before));
  if (ip6)
    {
      before += outer_before;
      after += outer_after;
    }
  cv_checksum_add (h + 2, minus (after, before));
}

/* ---- answers to rejected packets ---- */

static uint16_t
swap16 (uint16_t v)
{
  return (uint16_t) (v << 8 | v >> 8);
}

static void
put16 (uint8_t *b, uint32_t v)
{
  b[0] = (uint8_t) (v >> 8);
  b[1] = (uint8_t) v;
}

static void
put_checksum (uint8_t *field, uint64_t sum)
{
  uint16_t c = ~cv_fold (sum);
  memcpy (field, &c, 2);
}

/* answer_header writes an IP header from the packet's destination to its source. It returns the header's length. */
static uint32_t
answer_header (const cv_packet_t *p, uint8_t *out, uint8_t proto, uint32_t payload)
{
  uint32_t alen = p->tuple.ip6 ? 16 : 4;
  const uint8_t *src = p->tuple.ip6 ? p->ip + 8 : p->ip + 12;
  if (p->tuple.ip6)
    {
      memset (out, 0, 40);
      out[0] = 0x60;
      put16 (out + 4, payload);
      out[6] = proto;
      out[7] = 64;
      memcpy (out + 8, src + alen, alen);
      memcpy (out + 24, src, alen);
      return 40;
    }
  memset (out, 0, 20);
  out[0] = 0x45;
  put16 (out + 2, 20 + payload);
  out[6] = 0x40; /* flag "do not fragment" */
  out[8] = 64;
  out[9] = proto;
  memcpy (out + 12, src + alen, alen);
  memcpy (out + 16, src, alen);
  put_checksum (out + 10, sum16 (out, 20));
  return 20;
}

static uint64_t
pseudo_sum (const uint8_t *ip, uint8_t proto, uint32_t payload)
{
  bool ip6 = ip[0] >> 4 == 6;
  uint64_t sum = ip6 ? sum16 (ip + 8, 32) : sum16 (ip + 12, 8);
  return sum + swap16 ((uint16_t) payload) + swap16 (proto);
}

/* reset builds the answer to a TCP segment (RFC 9293, 3.10.7.1). */
static uint32_t
reset (const cv_packet_t *p, uint8_t *out)
{
  const uint8_t *h = p->ip + p->l4;
  if (p->tcp_flags & CV_TCP_RST)
    return 0;
  uint32_t n = answer_header (p, out, CV_PROTO_TCP, 20);
  uint8_t *t = out + n;
  memset (t, 0, 20);
  memcpy (t, h + 2, 2);
  memcpy (t + 2, h, 2);
  t[12] = 5 << 4;
  if (p->tcp_flags & CV_TCP_ACK)
    {
      memcpy (t + 4, h + 8, 4);
      t[13] = CV_TCP_RST;
    }
  else
    {
      uint32_t total = p->tuple.ip6 ? 40u + (uint32_t) (p->ip[4] << 8 | p->ip[5]) : (uint32_t) (p->ip[2] << 8 | p->ip[3]);
      uint32_t header = p->l4 + (h[12] >> 4) * 4u;
      uint32_t data = total > header ? total - header : 0;
      data += !!(p->tcp_flags & CV_TCP_SYN) + !!(p->tcp_flags & CV_TCP_FIN);
      uint32_t seq = (uint32_t) h[4] << 24 | h[5] << 16 | h[6] << 8 | h[7];
      seq += data;
      put16 (t + 8, seq >> 16);
      put16 (t + 10, seq & 0xffff);
      t[13] = CV_TCP_RST | CV_TCP_ACK;
    }
  put_checksum (t + 16, pseudo_sum (out, CV_PROTO_TCP, 20) + sum16 (t, 20));
  return n + 20;
}

/* unreachable builds an ICMP port unreachable message (RFC 792, RFC 4443) with as much of the packet as is allowed. */
static uint32_t
unreachable (const cv_packet_t *p, uint8_t *out)
{
  bool ip6 = p->tuple.ip6;
  uint32_t room = ip6 ? 1280 - 48 : 576 - 28, n = p->len < room ? p->len : room;
  uint32_t total = ip6 ? 40u + (uint32_t) (p->ip[4] << 8 | p->ip[5]) : (uint32_t) (p->ip[2] << 8 | p->ip[3]);
  if (n > total)
    n = total;
  uint8_t proto = ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP;
  uint32_t header = answer_header (p, out, proto, 8 + n);
  uint8_t *h = out + header;
  memset (h, 0, 8);
  h[0] = ip6 ? 1 : 3;
  h[1] = ip6 ? 4 : 3;
  memcpy (h + 8, p->ip, n);
  put_checksum (h + 2, (ip6 ? pseudo_sum (out, proto, 8 + n) : 0) + sum16 (h, 8 + n));
  return header + 8 + n;
}

uint32_t
cv_reject (const cv_packet_t *p, uint8_t *out)
{
  const cv_addr_t *src = &p->tuple.src;
  bool multicast = p->tuple.ip6 ? src->u8[0] == 0xff : src->u8[0] >= 224;
  if (p->later_fragment || p->icmp_error || multicast || cv_addr_is_zero (src))
    return 0;
  if (p->proto == CV_PROTO_TCP)
    return p->l4 ? reset (p, out) : 0;
  return unreachable (p, out);
}
