/* Header parsing, and the checks that need no connection: sources and tunnel ports (steps 1 to 3 of README.md). */
#include "follow.h"

enum
{
  ND_ROUTER_SOLICITATION = 133,
  ND_ROUTER_ADVERTISEMENT = 134,
  ND_NEIGHBOR_SOLICITATION = 135,
  ND_NEIGHBOR_ADVERTISEMENT = 136,
  ND_REDIRECT = 137,
};

static inline uint16_t
be16 (const uint8_t *b)
{
  return (uint16_t) (b[0] << 8 | b[1]);
}

static inline uint16_t
wire16 (uint16_t host)
{
  uint8_t b[2] = { (uint8_t) (host >> 8), (uint8_t) host };
  uint16_t v;
  memcpy (&v, b, 2);
  return v;
}

static inline void
done (cv_packet_t *p, cv_verdict_t verdict, cv_reason_t reason)
{
  p->verdict = verdict;
  p->reason = reason;
  p->no_connection = true;
}

static inline void
drop (cv_packet_t *p, cv_reason_t reason)
{
  done (p, CV_VERDICT_DROP, reason);
}

/* end_with removes the bytes after the length of a fragment. The receiver ignores these bytes, and takes the bytes at this position from
 * another fragment. */
static void
end_with (cv_packet_t *p, uint32_t total)
{
  if (p->len > total)
    p->len = total;
}

/* skip_extensions finds the transport header after IPv6's extension headers. It returns false if they are malformed or too many. At a
 * fragment header it stops and sets *fragment, unless virtual reassembly has provided the ports. */
static bool
skip_extensions (cv_packet_t *p, uint32_t *at, uint8_t *proto, bool *fragment)
{
  for (int n = 0; n <= CV_MAX_EXTENSIONS; n++)
    {
      const uint8_t *h = p->ip + *at;
      uint32_t len = 8;
      bool is_fragment = *proto == CV_FRAGMENT_HEADER;
      if (!is_fragment && !cv_is_extension (*proto))
	return true;
      if (is_fragment)
	end_with (p, 40u + be16 (p->ip + 4));
      if (*at + 8 > p->len)
	return false;
      if (!is_fragment)
	len = cv_extension_len (*proto, h);
      else
	{
	  memcpy (&p->frag_id, h + 4, 4);
	  if (be16 (h + 2) & 0xfff8)
	    p->later_fragment = true;
	  if (!p->reassembled)
	    {
	      *fragment = true;
	      return true;
	    }
	}
      *proto = h[0];
      *at += len;
      if (*at > p->len)
	return false;
      if (p->later_fragment)
	return true;
    }
  return false;
}

bool
cv_own_address (const cv_endpoint_state_t *e, const cv_addr_t *a, bool ip6)
{
  for (uint8_t i = 0; i < e->config.n_addresses; i++)
    if (e->config.addresses[i].ip6 == ip6 && cv_addr_equal (&e->config.addresses[i].addr, a))
      return true;
  return false;
}

static inline bool
link_local (const cv_addr_t *a)
{
  return a->u8[0] == 0xfe && (a->u8[1] & 0xc0) == 0x80;
}

static void
spoofed (cv_main_t *m, const cv_endpoint_state_t *e, cv_packet_t *p)
{
  cv_add (&((cv_owner_t *) cv_pool_at (&m->owners, e->owner))->spoofed, 1);
  drop (p, CV_SPOOFED);
}

static bool
is_listener (uint8_t type)
{
  return (type >= 130 && type <= 132) || type == 143; /* RFC 2710, 3810 */
}

/* source_allowed reports whether a POD endpoint may send this packet; type is the ICMPv6 type, 0 for all other packets.
 *
 * VPP stores the source of each neighbour solicitation and the target of each advertisement, 50 000 in total. Therefore both must be
 * addresses of the pod: with link-local addresses, of which there are 2^64, a pod could fill the table, and then no other pod could be
 * added. */
static bool
source_allowed (const cv_endpoint_state_t *e, const cv_packet_t *p, uint8_t type)
{
  const cv_tuple_t *t = &p->tuple;
  if (type == ND_ROUTER_ADVERTISEMENT || type == ND_REDIRECT)
    return false;
  if (t->proto == CV_PROTO_UDP && p->l4 && (t->sport == wire16 (CV_DHCP4_SERVER_PORT) || t->sport == wire16 (CV_DHCP6_SERVER_PORT)))
    return false;
  if (type == ND_NEIGHBOR_ADVERTISEMENT)
    {
      cv_addr_t target;
      if ((uint32_t) p->l4 + 24 > p->len)
	return false;
      memcpy (&target, p->ip + p->l4 + 8, 16);
      if (!cv_own_address (e, &target, true))
	return false;
    }
  if (cv_likely (cv_own_address (e, &t->src, t->ip6)))
    return true;
  if (!t->ip6)
    return false;
  if (link_local (&t->src))
    return type == ND_ROUTER_SOLICITATION || is_listener (type);
  /* duplicate address detection, and the multicast listener report that precedes it */
  return cv_addr_is_zero (&t->src) && (type == ND_NEIGHBOR_SOLICITATION || is_listener (type));
}

/* of_local_pod reports whether the source address is that of a pod on this node. No packet from the network may have such a source. */
static bool
of_local_pod (const cv_main_t *m, const cv_tuple_t *t)
{
  uint32_t at = cv_interface_of (m, &t->src, t->ip6);
  const cv_endpoint_state_t *e = at == CV_NO_INDEX ? NULL : cv_endpoint (m, at);
  return e && e->config.role == CV_ROLE_POD;
}

/* from_its_place does step 1, the source check. Any source is accepted from the host, because the host forwards packets. */
static inline bool
from_its_place (const cv_main_t *m, const cv_endpoint_state_t *e, const cv_packet_t *p, uint8_t type)
{
  if (cv_likely (e->config.role == CV_ROLE_POD))
    return source_allowed (e, p, type);
  return e->config.role == CV_ROLE_HOST || cv_likely (!of_local_pod (m, &p->tuple));
}

bool
cv_is_tunnel_port (const cv_main_t *m, uint16_t wire)
{
  uint16_t port = wire16 (wire); /* swapping twice restores the value */
  if (!port)
    return false;
  for (int i = 0; i < CV_TUNNEL_PORTS; i++)
    if (cv_load (&m->config.tunnel_ports[i]) == port)
      return true;
  return false;
}

/* read_network reads the addresses and the position of the transport header. If it returns false, p has its verdict. */
static bool
read_network (cv_packet_t *p, uint32_t *l4, uint8_t *proto, bool *fragment)
{
  cv_tuple_t *t = &p->tuple;
  memset (t, 0, sizeof (*t));
  p->l4 = 0;
  p->icmp_error = p->no_connection = p->stateless = false;
  p->icmp_code = 0;
  p->verdict = CV_VERDICT_PASS;
  p->reason = CV_PASSED;
  p->connection = p->table = CV_NO_INDEX;
  if (p->len >= 20 && p->ip[0] >> 4 == 4)
    {
      uint32_t header = (p->ip[0] & 15u) * 4;
      cv_set_ip4 (&t->src, p->ip + 12);
      cv_set_ip4 (&t->dst, p->ip + 16);
      *l4 = header;
      *proto = p->ip[9];
      uint16_t frag = be16 (p->ip + 6);
      *fragment = (frag & 0x3fff) && !p->reassembled;
      p->frag_id = 0;
      memcpy (&p->frag_id, p->ip + 4, 2);
      if (frag & 0x1fff)
	p->later_fragment = true;
      if (cv_unlikely (frag & 0x3fff))
	end_with (p, be16 (p->ip + 2));
      if (header >= 20 && header <= p->len)
	return true;
    }
  else if (p->len >= 40 && p->ip[0] >> 4 == 6)
    {
      t->ip6 = 1;
      memcpy (&t->src, p->ip + 8, 16);
      memcpy (&t->dst, p->ip + 24, 16);
      *l4 = 40;
      *proto = p->ip[6];
      if (skip_extensions (p, l4, proto, fragment))
	return true;
    }
  drop (p, CV_MALFORMED);
  return false;
}

/* both returns two ports in the order in which they are in a packet. */
static inline uint32_t
both (uint16_t sport, uint16_t dport)
{
  uint16_t ports[2] = { sport, dport };
  uint32_t v;
  memcpy (&v, ports, 4);
  return v;
}

/* read_ports reads the ports, or the ICMP identifier, and the ICMPv6 type. It returns false if the packet is too short. */
static bool
read_ports (cv_packet_t *p, uint32_t l4, uint32_t *ports, uint8_t *type)
{
  const cv_tuple_t *t = &p->tuple;
  const uint8_t *h = p->ip + l4;
  uint8_t proto = p->proto;
  *type = 0;
  *ports = 0;
  if (p->later_fragment)
    {
      *ports = both (p->sport, p->dport);
      p->no_connection = !p->sport && !p->dport;
      return true;
    }
  uint32_t need = proto == CV_PROTO_TCP ? 20 : proto == CV_PROTO_SCTP ? 12 : 8;
  switch (proto)
    {
    case CV_PROTO_TCP:
    case CV_PROTO_UDP:
    case CV_PROTO_SCTP:
      if (l4 + need > p->len)
	return false;
      memcpy (ports, h, 4);
      if (proto == CV_PROTO_TCP)
	p->tcp_flags = h[13];
      break;
    case CV_PROTO_ICMP:
    case CV_PROTO_ICMP6:
      if (l4 + need > p->len)
	return false;
      p->tcp_flags = h[0];
      p->icmp_code = h[1];
      if (proto == (t->ip6 ? CV_PROTO_ICMP : CV_PROTO_ICMP6))
	{
	  p->no_connection = true;
	  return true;
	}
      if (t->ip6 ? h[0] == 128 || h[0] == 129 : h[0] == 8 || h[0] == 0)
	{
	  uint16_t identifier;
	  memcpy (&identifier, h + 4, 2);
	  *ports = both (identifier, identifier);
	}
      else if (t->ip6 ? h[0] >= 1 && h[0] <= 4 : h[0] == 3 || h[0] == 11 || h[0] == 12)
	p->icmp_error = true;
      else
	p->no_connection = true;
      *type = t->ip6 ? h[0] : 0;
      break;
    case CV_PROTO_AFFINITY: /* reserved by IANA: such a packet would match our own affinity records */
      return false;
    default:
      /* no ports: only a frontend for the whole address can match */
      return true;
    }
  p->l4 = (uint16_t) l4;
  return true;
}

/* headers does steps 1 and 3. If it returns false, the packet has its verdict. */
static inline bool
headers (cv_main_t *m, cv_packet_t *p, const cv_endpoint_state_t *e)
{
  uint32_t l4 = 0, ports = 0;
  uint8_t type = 0;
  bool fragment = false;
  if (cv_unlikely (!p->reassembled))
    p->later_fragment = false;
  if (cv_unlikely (!read_network (p, &l4, &p->proto, &fragment)))
    return false;
  if (cv_unlikely (p->later_fragment && p->reassembled))
    p->proto = p->transport;
  bool whole = !fragment && read_ports (p, l4, &ports, &type);
  cv_set_tail (&p->tuple, ports, p->proto, p->tuple.ip6);
  if (cv_unlikely (fragment))
    {
      if (!from_its_place (m, e, p, 0))
	{
	  spoofed (m, e, p);
	  return false;
	}
      done (p, CV_VERDICT_REASSEMBLE, CV_PASSED);
      return false;
    }
  if (cv_unlikely (!whole))
    {
      drop (p, CV_MALFORMED);
      return false;
    }
  if (cv_unlikely (!from_its_place (m, e, p, type)))
    {
      spoofed (m, e, p);
      return false;
    }
  return true;
}

void
cv_parse (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t now)
{
  cv_worker_t *w = &m->workers[worker];
  cv_enter (w, now);
  const cv_endpoint_state_t *e = cv_endpoint (m, p->sw_if_index);
  if (cv_unlikely (!e))
    {
      /* the endpoint is deleted, and VPP is about to disable the feature on its interface */
      memset (&p->tuple, 0, sizeof (p->tuple));
      p->connection = p->table = CV_NO_INDEX;
      p->icmp_error = p->stateless = false;
      drop (p, CV_SPOOFED);
    }
  else if (headers (m, p, e) && p->proto == CV_PROTO_UDP && cv_unlikely (cv_is_tunnel_port (m, p->tuple.dport)))
    {
      if (e->config.role == CV_ROLE_POD)
	drop (p, CV_TUNNEL);
      p->no_connection = true;
    }
  if (p->no_connection && p->verdict == CV_VERDICT_PASS && cv_unlikely (cv_load (&m->n_policed)))
    {
      p->no_connection = false;
      p->stateless = true;
    }
  if (p->no_connection)
    {
      w->counters[p->reason]++;
      return;
    }
  p->hash = cv_hash (m, &p->tuple);
  if (!p->icmp_error && has_passed (w, p->hash, pass_tag (m, w, p->hash, p->sw_if_index)))
    {
      p->no_connection = true;
      w->counters[CV_PASSED]++;
      return;
    }
  __builtin_prefetch (&m->table[p->tuple.ip6].buckets[p->hash & m->table[p->tuple.ip6].bucket_mask]);
}

bool
cv_check_source (cv_main_t *m, uint32_t worker, cv_packet_t *p)
{
  cv_worker_t *w = &m->workers[worker];
  if (!w->in_frame)
    __atomic_store_n (&w->in_frame, 1, __ATOMIC_SEQ_CST);
  const cv_endpoint_state_t *e = cv_endpoint (m, p->sw_if_index);
  if (!e)
    return false;
  if (headers (m, p, e) || p->verdict == CV_VERDICT_REASSEMBLE)
    return true;
  w->counters[p->reason]++;
  return false;
}

bool
cv_check_arp (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, uint32_t sender, const uint8_t *hardware)
{
  cv_worker_t *w = &m->workers[worker];
  if (!w->in_frame)
    __atomic_store_n (&w->in_frame, 1, __ATOMIC_SEQ_CST);
  const cv_endpoint_state_t *e = cv_endpoint (m, sw_if_index);
  if (!e)
    return false;
  cv_addr_t a = { .u32 = { sender } };
  /* sender 0: a probe (RFC 5227), which claims no address */
  if (!cv_claims_group (hardware) && (e->config.role != CV_ROLE_POD || !sender || cv_own_address (e, &a, false)))
    return true;
  cv_add (&((cv_owner_t *) cv_pool_at (&m->owners, e->owner))->spoofed, 1);
  w->counters[CV_SPOOFED]++;
  return false;
}
