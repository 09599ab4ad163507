/* Fast path for packets whose flow has already passed: most packets. It has the same effect on their
 * connection as the full path (follow.h); it only omits the lookup and the source check, which was done before. */
#include "follow.h"
#include "pairs.h"
#include "rewrite.h"

/* The code for both families is generated from the same functions. */
#define BY_FAMILY static inline __attribute__ ((always_inline))

typedef enum
{
  OTHER,
  UDP,
  TCP,	/* TCP that neither opens nor ends a connection */
  RARE, /* any other TCP */
} kind_t;

/* A packet in progress. */
typedef struct
{
  uint64_t tag, ref;
  const cv_pass_set_t *set;
  cv_connection_t *connection; /* the connection of ref */
  const cv_brief_t *packet;
  uint32_t bit;
  uint8_t kind;
} flow_t;

BY_FAMILY uint32_t
header (bool ip6)
{
  return ip6 ? 40 : 20;
}

/* The first eight bytes of a plain IPv4 header, under HEAD_MASK, equal PLAIN_HEAD. The mask selects version, header length, the flag
 * "more fragments" and the fragment offset. */
#define PLAIN_HEAD (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0x45 : 0x45ull << 56)
#define HEAD_MASK  (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0xff3f0000000000ff : 0xff00000000003fff)

/* is_plain reports whether a packet is IPv6 without extension headers, or IPv4 without options and fragmentation. */
BY_FAMILY bool
is_plain (const cv_brief_t *b, bool ip6)
{
  uint64_t head;
  if (cv_unlikely (b->len < header (ip6) + 8))
    return false;
  if (ip6)
    return b->ip[0] >> 4 == 6;
  memcpy (&head, b->ip, 8);
  return (head & HEAD_MASK) == PLAIN_HEAD;
}

BY_FAMILY uint64_t
hash_of (const cv_main_t *m, const uint8_t *ip, uint8_t proto, bool ip6)
{
  uint64_t addresses[4];
  uint32_t ports;
  memcpy (&ports, ip + header (ip6), 4);
  memcpy (addresses, ip + (ip6 ? 8 : 12), ip6 ? 32 : 8);
  return ip6 ? cv_hash_ip6 (m, addresses, addresses + 2, cv_tail (ports, proto, true)) : cv_hash_ip4 (m, addresses[0], cv_tail (ports, proto, false));
}

BY_FAMILY uint8_t
kind_of (const cv_brief_t *b, bool ip6)
{
  if (cv_unlikely (!is_plain (b, ip6)))
    return OTHER;
  const uint8_t *ip = b->ip;
  uint8_t proto = ip[ip6 ? 6 : 9];
  if (proto != CV_PROTO_TCP)
    return cv_likely (proto == CV_PROTO_UDP) ? UDP : OTHER;
  if (cv_unlikely (b->len < header (ip6) + 20))
    return OTHER;
  return cv_likely (plain_ack (ip[header (ip6) + 13])) ? TCP : RARE;
}

_Static_assert (sizeof (((cv_config_t *) 0)->tunnel_ports) == 8, "all tunnel ports are read at once");

/* ports_matter reports whether the ports matter: cv_parse drops UDP from DHCP servers and UDP to a tunnel. */
BY_FAMILY bool
ports_matter (const cv_main_t *m, const uint8_t *udp)
{
  const uint64_t each = 0x0001000100010001;
  uint32_t source = (uint32_t) (udp[0] << 8 | udp[1]);
  uint64_t ports;
  memcpy (&ports, m->config.tunnel_ports, 8);
  uint64_t differences = ports ^ each * (uint64_t) (udp[2] << 8 | udp[3]);
  bool tunnel = (differences - each) & ~differences & each << 15; /* one of the four is 0; also true for port 0, which then takes the full path */
  return tunnel | (source == CV_DHCP4_SERVER_PORT) | (source == CV_DHCP6_SERVER_PORT);
}

/* passes_by_pair reports whether the addresses alone show that the packet passes. Most packets belong to few pairs, whose places stay in
 * the processor's first-level cache. */
BY_FAMILY bool
passes_by_pair (const cv_main_t *m, cv_worker_t *w, const cv_brief_t *b, uint64_t when, uint8_t kind, bool ip6)
{
  uint64_t addresses[4];
  memcpy (addresses, b->ip + (ip6 ? 8 : 12), ip6 ? 32 : 8);
  uint64_t pair = ip6 ? cv_pair_ip6 (m, addresses, addresses + 2) : cv_pair_ip4 (m, addresses[0]);
  uint64_t tag = pass_tag_of (when, pair, b->sw_if_index);
  const cv_pair_set_t *s = pair_set (w, pair);
  if (cv_unlikely (s->tag[0] != tag) && s->tag[1] != tag)
    return false;
  const uint8_t *l4 = b->ip + header (ip6);
  if (kind == UDP)
    return cv_likely (!ports_matter (m, l4));
  return cv_likely (kind == TCP) || !cv_hides_opener (l4[13], (uint16_t) (l4[0] << 8 | l4[1]), (uint16_t) (l4[2] << 8 | l4[3]));
}

/* read_flow reads the tuple of a TCP or UDP packet, like cv_parse. */
BY_FAMILY void
read_flow (const cv_main_t *m, cv_worker_t *w, const cv_brief_t *b, uint64_t when, uint8_t kind, flow_t *f, bool ip6)
{
  uint64_t hash = hash_of (m, b->ip, kind == UDP ? CV_PROTO_UDP : CV_PROTO_TCP, ip6);
  f->kind = kind;
  f->tag = pass_tag_of (when, hash, b->sw_if_index);
  f->set = pass_set (w, hash);
  __builtin_prefetch (f->set);
}

/* follow_again sends a packet along the connection that has let the flow's packets through. It returns false if the connection has ended
 * or is ending. */
BY_FAMILY bool
follow_again (const flow_t *f, bool tcp, uint32_t now, bool ip6)
{
  uint64_t ref = f->ref;
  cv_connection_t *c = f->connection;
  uint32_t direction = ref & 1;
  uint8_t *ip = f->packet->ip, *l4 = ip + header (ip6);
  if (cv_unlikely (!lets_through (c, ref, tcp)))
    return false;
  if (tcp && memcmp (l4 + 8, &c->acked[direction], 4))
    acknowledge (c, direction, l4);
  if (cv_unlikely (c->last_seen != now))
    cv_store (&c->last_seen, now);
  if (!(ref & CV_REF_TRANSLATED))
    return true;
  translate_addresses (ip, c, direction, ip6);
  translate_ports (l4, tcp ? CV_PROTO_TCP : CV_PROTO_UDP, f->packet->l4_checksum_offloaded, c, direction, ip6);
  return true;
}

/* recall looks up pairs before flows, or after them for packets whose flow it has not found. */
BY_FAMILY cv_recalled_t
recall (cv_main_t *m, cv_worker_t *w, const cv_brief_t *packets, uint32_t n, uint32_t now, bool ip6, bool pairs_first)
{
  flow_t flows[CV_RECALL_MAX], *follow[CV_RECALL_MAX];
  uint8_t *connections = (uint8_t *) m->table[ip6].connections;
  cv_recalled_t result = { 0 };
  uint32_t n_follow = 0, by_pair = 0;
  uint64_t when = pass_when (m, w);
  for (uint32_t i = 0, bit = 1; i < n; i++, bit += bit)
    {
      const cv_brief_t *b = &packets[i];
      uint8_t kind = kind_of (b, ip6);
      flows[i].kind = OTHER;
      if (cv_unlikely (kind == OTHER))
	continue;
      if (pairs_first && passes_by_pair (m, w, b, when, kind, ip6))
	by_pair |= bit;
      else
	read_flow (m, w, b, when, kind, &flows[i], ip6);
    }
  for (uint32_t i = 0, bit = 1; i < n; i++, bit += bit)
    {
      flow_t *f = &flows[i];
      if (cv_unlikely (f->kind == OTHER))
	continue;
      const cv_pass_set_t *s = f->set;
      uint64_t ref = s->ref[0];
      if (cv_unlikely (s->tag[0] != f->tag))
	{
	  if (s->tag[1] != f->tag)
	    {
	      if (!pairs_first && w->paired == w->second && passes_by_pair (m, w, &packets[i], when, f->kind, ip6))
		by_pair |= bit;
	      continue;
	    }
	  ref = s->ref[1];
	}
      if (!ref)
	{
	  result.passed |= bit;
	  continue;
	}
      if (cv_unlikely (f->kind == RARE))
	continue;
      _Static_assert (sizeof (cv_connection_t) == 2 << 6, "a reference has the place from bit 1 on");
      f->connection = (cv_connection_t *) (connections + ((ref & (CV_REF_TRANSLATED - 2)) << 6));
      f->packet = &packets[i];
      f->ref = ref;
      f->bit = bit;
      follow[n_follow++] = f;
      __builtin_prefetch (&f->connection->last_seen, 1);
      if (ref & CV_REF_TRANSLATED)
	__builtin_prefetch (f->connection);
    }
  for (uint32_t k = 0; k < n_follow; k++)
    {
      const flow_t *f = follow[k];
      if (cv_likely (f->kind == TCP) ? cv_unlikely (!follow_again (f, true, now, ip6)) : cv_unlikely (!follow_again (f, false, now, ip6)))
	continue;
      result.passed |= f->bit;
      if (f->ref & CV_REF_TRANSLATED)
	result.translated |= f->bit;
    }
  result.passed |= by_pair;
  w->pairs_first = __builtin_popcount (by_pair) > __builtin_popcount (result.passed) / 2;
  return result;
}

BY_FAMILY cv_recalled_t
recall_family (cv_main_t *m, cv_worker_t *w, const cv_brief_t *packets, uint32_t n, uint32_t now, bool ip6)
{
  return w->pairs_first ? recall (m, w, packets, n, now, ip6, true) : recall (m, w, packets, n, now, ip6, false);
}

/* Packets that are followed here overtake packets of the same call that take the full path. All are in one frame, so they may also have
 * been reordered on their way. */
cv_recalled_t
cv_recall (cv_main_t *m, uint32_t worker, const cv_brief_t *packets, uint32_t n, uint32_t now)
{
  cv_worker_t *w = &m->workers[worker];
  cv_recalled_t r = { 0 };
  cv_enter (w, now);
  if (n)
    r = packets[0].ip[0] >> 4 == 6 ? recall_family (m, w, packets, n, now, true) : recall_family (m, w, packets, n, now, false);
  w->counters[CV_PASSED] += (uint32_t) __builtin_popcount (r.passed & ~r.translated);
  w->counters[CV_TRANSLATED] += (uint32_t) __builtin_popcount (r.translated);
  return r;
}
