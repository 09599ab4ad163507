/* Packets for the tests of the core: built with correct checksums, which are computed again for the check afterwards. */
#ifndef CONTIV_TEST_PACKETS_H
#define CONTIV_TEST_PACKETS_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include "../internal.h"
#include "check.h"

#define SYN CV_TCP_SYN
#define ACK CV_TCP_ACK
#define FIN CV_TCP_FIN
#define RST CV_TCP_RST

typedef struct
{
  uint8_t data[2048];
  uint32_t len;
} pkt_t;

static inline cv_addr_t
addr (const char *s)
{
  cv_addr_t a = { 0 };
  check (inet_pton (strchr (s, ':') ? AF_INET6 : AF_INET, s, &a) == 1, "%s", s);
  return a;
}

static inline bool
is6 (const char *s)
{
  return strchr (s, ':') != NULL;
}

static inline const char *
text (const cv_addr_t *a, bool ip6)
{
  static char buf[4][INET6_ADDRSTRLEN];
  static int n;
  n = (n + 1) % 4;
  return inet_ntop (ip6 ? AF_INET6 : AF_INET, a, buf[n], sizeof (buf[n]));
}

static inline uint32_t
be_sum (const uint8_t *b, uint32_t n, uint32_t sum)
{
  for (uint32_t i = 0; i < n; i++)
    sum += i & 1 ? b[i] : (uint32_t) b[i] << 8;
  while (sum >> 16)
    sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

static inline uint32_t
crc32c (const uint8_t *b, uint32_t n)
{
  uint32_t crc = ~0u;
  for (uint32_t i = 0; i < n; i++)
    {
      crc ^= b[i];
      for (int k = 0; k < 8; k++)
	crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
  return ~crc;
}

static inline uint32_t
header_len (const pkt_t *k)
{
  return k->data[0] >> 4 == 6 ? 40 : (k->data[0] & 15) * 4;
}

static inline uint8_t
proto_of (const pkt_t *k)
{
  return k->data[0] >> 4 == 6 ? k->data[6] : k->data[9];
}

/* l4_sum returns the one's complement sum of the transport with its pseudo header: 0xffff if the checksum is correct. */
static inline uint32_t
l4_sum (const pkt_t *k)
{
  uint32_t h = header_len (k), n = k->len - h, sum = 0;
  uint8_t proto = proto_of (k);
  if (proto != CV_PROTO_ICMP)
    {
      sum = k->data[0] >> 4 == 6 ? be_sum (k->data + 8, 32, 0) : be_sum (k->data + 12, 8, 0);
      sum += proto + n;
    }
  return be_sum (k->data + h, n, sum);
}

static inline int
checksum_at (uint8_t proto)
{
  switch (proto)
    {
    case CV_PROTO_TCP:
      return 16;
    case CV_PROTO_UDP:
      return 6;
    case CV_PROTO_ICMP:
    case CV_PROTO_ICMP6:
      return 2;
    default:
      return -1;
    }
}

static inline void
seal (pkt_t *k)
{
  uint32_t h = header_len (k);
  uint8_t *d = k->data, proto = proto_of (k);
  if (d[0] >> 4 == 6)
    {
      d[4] = (uint8_t) ((k->len - 40) >> 8);
      d[5] = (uint8_t) (k->len - 40);
    }
  else
    {
      d[2] = (uint8_t) (k->len >> 8);
      d[3] = (uint8_t) k->len;
      d[10] = d[11] = 0;
      uint32_t s = ~be_sum (d, h, 0);
      d[10] = (uint8_t) (s >> 8);
      d[11] = (uint8_t) s;
    }
  int at = checksum_at (proto);
  if (at >= 0)
    {
      d[h + at] = d[h + at + 1] = 0;
      uint32_t s = ~l4_sum (k) & 0xffff;
      if (!s && proto == CV_PROTO_UDP)
	s = 0xffff;
      d[h + at] = (uint8_t) (s >> 8);
      d[h + at + 1] = (uint8_t) s;
    }
  else if (proto == CV_PROTO_SCTP)
    {
      memset (d + h + 8, 0, 4);
      uint32_t c = crc32c (d + h, k->len - h);
      memcpy (d + h + 8, &c, 4); /* the tests run on little-endian machines */
    }
}

static inline bool
sealed (const pkt_t *k)
{
  pkt_t c = *k;
  if (proto_of (k) == CV_PROTO_UDP && k->data[0] >> 4 == 4 && !k->data[header_len (k) + 6] && !k->data[header_len (k) + 7])
    return true;
  seal (&c);
  return !memcmp (c.data, k->data, k->len);
}

#define BEHIND_ALL 78 /* sequence number after the SYN, the payload and the FIN of the packets that build creates; also their acknowledgement
                       * number */

/* build creates a packet. For ICMP, sport is the identifier and flags the type. The TCP numbers are those of a regular conversation: the
 * receiver accepts all such packets, in any order. */
static inline pkt_t
build (const char *src, const char *dst, uint8_t proto, uint16_t sport, uint16_t dport, uint8_t flags, uint32_t payload)
{
  pkt_t k = { 0 };
  cv_addr_t s = addr (src), d = addr (dst);
  bool ip6 = is6 (src);
  uint32_t h = ip6 ? 40 : 20;
  if (ip6)
    {
      k.data[0] = 0x60;
      k.data[6] = proto;
      k.data[7] = 64;
      memcpy (k.data + 8, &s, 16);
      memcpy (k.data + 24, &d, 16);
    }
  else
    {
      k.data[0] = 0x45;
      k.data[8] = 64;
      k.data[9] = proto;
      memcpy (k.data + 12, &s, 4);
      memcpy (k.data + 16, &d, 4);
    }
  uint8_t *t = k.data + h;
  uint32_t l4 = proto == CV_PROTO_TCP ? 20 : proto == CV_PROTO_SCTP ? 16 : 8;
  if (proto == CV_PROTO_ICMP || proto == CV_PROTO_ICMP6)
    {
      t[0] = flags;
      t[4] = (uint8_t) (sport >> 8);
      t[5] = (uint8_t) sport;
    }
  else
    {
      t[0] = (uint8_t) (sport >> 8);
      t[1] = (uint8_t) sport;
      t[2] = (uint8_t) (dport >> 8);
      t[3] = (uint8_t) dport;
    }
  if (proto == CV_PROTO_TCP)
    {
      t[12] = 0x50;
      t[13] = flags;
      uint32_t seq = BEHIND_ALL - (flags & CV_TCP_SYN ? 1 : payload + (flags & CV_TCP_FIN));
      for (int i = 0; i < 4; i++)
	t[4 + i] = (uint8_t) (seq >> (24 - 8 * i));
      t[11] = flags & CV_TCP_ACK ? BEHIND_ALL : 0;
    }
  if (proto == CV_PROTO_UDP)
    {
      t[4] = (uint8_t) ((8 + payload) >> 8);
      t[5] = (uint8_t) (8 + payload);
    }
  if (proto == CV_PROTO_SCTP)
    t[12] = flags;
  for (uint32_t i = 0; i < payload; i++)
    t[l4 + i] = (uint8_t) (i * 7 + 3);
  k.len = h + l4 + payload;
  seal (&k);
  return k;
}

typedef struct
{
  char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
  uint16_t sport, dport;
} ends_t;

static inline ends_t
ends (const pkt_t *k)
{
  ends_t e;
  bool ip6 = k->data[0] >> 4 == 6;
  const uint8_t *t = k->data + header_len (k);
  inet_ntop (ip6 ? AF_INET6 : AF_INET, k->data + (ip6 ? 8 : 12), e.src, sizeof (e.src));
  inet_ntop (ip6 ? AF_INET6 : AF_INET, k->data + (ip6 ? 24 : 16), e.dst, sizeof (e.dst));
  e.sport = (uint16_t) (t[0] << 8 | t[1]);
  e.dport = (uint16_t) (t[2] << 8 | t[3]);
  return e;
}

/* answer returns the packet that the other end sends back. */
static inline pkt_t
answer (const pkt_t *k, uint8_t flags)
{
  ends_t e = ends (k);
  return build (e.dst, e.src, proto_of (k), e.dport, e.sport, flags, 10);
}

/* icmp_error returns an ICMP error about a packet, sent by a router or by an end. */
static inline pkt_t
icmp_error (const char *from, const pkt_t *about, uint32_t keep)
{
  ends_t e = ends (about);
  bool ip6 = is6 (from);
  uint32_t n = about->len < keep ? about->len : keep;
  pkt_t k = build (from, e.src, ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP, 0, 0, ip6 ? 1 : 3, 0);
  memcpy (k.data + k.len, about->data, n);
  k.len += n;
  seal (&k);
  return k;
}

#define NOW_START 1000

typedef struct
{
  cv_main_t *m;
  uint32_t now;
  cv_packet_t p; /* the last packet */
  uint32_t recalled; /* packets with a connection that took the fast path */
} net_t;

/* recalled reports whether the packet would take the fast path. */
static inline bool
recalled (net_t *n, uint32_t worker, uint32_t sw_if_index, const pkt_t *k)
{
  pkt_t copy = *k;
  cv_brief_t b = { copy.data, k->len, sw_if_index, false };
  return cv_recall (n->m, worker, &b, k->len > 0, n->now).passed;
}

/* connection_of finds the connection of a TCP or UDP packet without options and extension headers; NULL: none. */
static inline cv_connection_t *
connection_of (const net_t *n, const uint8_t *ip, uint32_t len)
{
  bool ip6 = len >= 48 && ip[0] >> 4 == 6;
  uint32_t header = ip6 ? 40 : 20, direction;
  if (!ip6 && (len < 28 || ip[0] != 0x45))
    return NULL;
  cv_tuple_t t = { .proto = ip[ip6 ? 6 : 9], .ip6 = ip6 };
  memcpy (&t.src, ip + (ip6 ? 8 : 12), ip6 ? 16 : 4);
  memcpy (&t.dst, ip + (ip6 ? 24 : 16), ip6 ? 16 : 4);
  memcpy (&t.sport, ip + header, 2);
  memcpy (&t.dport, ip + header + 2, 2);
  const cv_table_t *table = &n->m->table[ip6];
  uint32_t i = table->buckets && t.proto != CV_PROTO_AFFINITY ? cv_table_find (table, &t, cv_hash (n->m, &t), &direction) : CV_NO_INDEX;
  return i == CV_NO_INDEX ? NULL : &table->connections[i];
}

/* go_long sends a packet through the full path. */
static inline void
go_long (net_t *n, uint32_t worker, cv_packet_t *p)
{
  cv_parse (n->m, worker, p, n->now);
  cv_prefetch (n->m, p);
  cv_decide (n->m, worker, p, n->now);
}

/* go sends a packet through the full path, and checks that the fast path, if it accepts the packet, does the same to the packet and to
 * its connection. */
static inline void
go (net_t *n, uint32_t worker, cv_packet_t *p)
{
  if (p->reassembled || !p->len)
    {
      go_long (n, worker, p);
      return;
    }
  uint8_t *copy = malloc (p->len); /* of exact size, so that ASAN detects each read beyond the end */
  memcpy (copy, p->ip, p->len);
  cv_connection_t *c = connection_of (n, p->ip, p->len), before, after;
  if (c)
    before = *c;
  cv_brief_t brief = { copy, p->len, p->sw_if_index, p->l4_checksum_offloaded };
  cv_recalled_t r = cv_recall (n->m, worker, &brief, 1, n->now);
  if (c)
    {
      after = *c;
      *c = before;
    }
  go_long (n, worker, p);
  check (!(r.translated & ~r.passed));
  if (r.passed)
    {
      check (p->verdict == CV_VERDICT_PASS && p->reason == (r.translated ? CV_TRANSLATED : CV_PASSED) && p->table == CV_NO_INDEX, "verdict %d, reason %d", p->verdict, p->reason);
      n->recalled += !p->no_connection;
      check (!memcmp (copy, p->ip, p->len), "the fast path makes another packet");
      check (!c || p->no_connection || !memcmp (&after, c, sizeof (after)), "the fast path does something else to the connection");
    }
  else
    check (!c || !memcmp (&after, &before, sizeof (after)), "the fast path does something to a connection of a packet that does not pass");
  free (copy);
}

static inline cv_verdict_t
offer (net_t *n, uint32_t worker, uint32_t sw_if_index, pkt_t *k)
{
  n->p = (cv_packet_t){ .ip = k->data, .len = k->len, .sw_if_index = sw_if_index };
  go (n, worker, &n->p);
  cv_quiesce (n->m, worker);
  return n->p.verdict;
}

/* offer_fast processes a packet like the node: a packet that the fast path accepts does not take the full path. p contains only the
 * verdict. */
static inline cv_verdict_t
offer_fast (net_t *n, uint32_t worker, uint32_t sw_if_index, pkt_t *k)
{
  cv_brief_t brief = { k->data, k->len, sw_if_index, false };
  n->p = (cv_packet_t){ .ip = k->data, .len = k->len, .sw_if_index = sw_if_index, .connection = CV_NO_INDEX };
  if (!cv_recall (n->m, worker, &brief, 1, n->now).passed)
    go_long (n, worker, &n->p);
  cv_quiesce (n->m, worker);
  return n->p.verdict;
}

/* transmit is offer for a packet whose checksums must be correct afterwards, for any verdict. */
static inline cv_verdict_t
transmit (net_t *n, uint32_t sw_if_index, pkt_t *k)
{
  cv_verdict_t v = offer (n, 0, sw_if_index, k);
  check (sealed (k), "wrong checksum after verdict %d, reason %d", v, n->p.reason);
  return v;
}

static inline void
sleep_ticks (net_t *n, uint32_t ticks)
{
  for (uint32_t i = 0; i < ticks; i++)
    cv_sweep (n->m, ++n->now);
}

#endif
