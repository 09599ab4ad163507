/* The short way of packets whose flow has passed already: most packets, where most traffic is of no service. */
#include "follow.h"

/* read_flow reads the tuple of a TCP or UDP packet without IPv4 options, extension headers or fragmentation, as cv_parse does. False: it is
 * another kind of packet. */
static inline bool
read_flow (const cv_brief_t *b, cv_tuple_t *t)
{
  const uint8_t *ip = b->ip, *l4;
  uint32_t rest, ports;
  uint8_t proto;
  bool ip6 = ip[0] != 0x45;
  if (!ip6)
    {
      if (cv_unlikely (b->len < 28 || (ip[6] & 0x3f) | ip[7]))
	return false;
      proto = ip[9];
      cv_set_ip4 (&t->src, ip + 12);
      cv_set_ip4 (&t->dst, ip + 16);
      l4 = ip + 20;
      rest = b->len - 20;
    }
  else
    {
      if (cv_unlikely (ip[0] >> 4 != 6 || b->len < 48))
	return false;
      proto = ip[6];
      memcpy (&t->src, ip + 8, 16);
      memcpy (&t->dst, ip + 24, 16);
      l4 = ip + 40;
      rest = b->len - 40;
    }
  if (proto == CV_PROTO_TCP ? cv_unlikely (rest < 20) : cv_unlikely (proto != CV_PROTO_UDP))
    return false;
  memcpy (&ports, l4, 4);
  cv_set_tail (t, ports, proto, ip6);
  return true;
}

uint32_t
cv_recall (cv_main_t *m, uint32_t worker, const cv_brief_t *packets, uint32_t n, uint32_t now)
{
  cv_worker_t *w = &m->workers[worker];
  uint64_t hash[CV_RECALL_MAX], tag[CV_RECALL_MAX];
  uint32_t known = 0, passed = 0;
  cv_enter (w, now);
  for (uint32_t i = 0; i < n; i++)
    {
      cv_tuple_t t;
      if (cv_unlikely (!read_flow (&packets[i], &t)))
	continue;
      hash[i] = cv_hash (m, &t);
      tag[i] = pass_tag (m, w, hash[i], packets[i].sw_if_index);
      __builtin_prefetch (pass_set (w, hash[i]));
      known |= 1u << i;
    }
  for (uint32_t i = 0; i < n; i++)
    if (known >> i & 1 && has_passed (w, hash[i], tag[i]))
      passed |= 1u << i;
  w->counters[CV_PASSED] += (uint32_t) __builtin_popcount (passed);
  return passed;
}
