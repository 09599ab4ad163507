/* ICMP errors: matched to a connection and translated by the packet that they contain (step 5 of README.md). */
#include "follow.h"

/* skip_inner_extensions moves *header and t->proto from the IPv6 header of the packet inside, of len bytes, to its transport header. It returns
 * false if that is not in the packet, or behind too many extension headers. The packet may be a first fragment. */
static bool
skip_inner_extensions (const uint8_t *b, uint32_t len, uint32_t *header, uint8_t *proto)
{
  for (int n = 0; n <= CV_MAX_EXTENSIONS; n++)
    {
      const uint8_t *h = b + *header;
      if (*header + 8 > len)
	return false;
      if (*proto == CV_FRAGMENT_HEADER)
	{
	  if ((h[2] << 8 | h[3]) & 0xfff8) /* a later fragment */
	    return false;
	  *header += 8;
	}
      else if (cv_is_extension (*proto))
	*header += cv_extension_len (*proto, h);
      else
	return true;
      *proto = h[0];
    }
  return false;
}

/* read_inner reads the packet inside an ICMP error. It returns false if that packet has no ports or is too short. Addresses that are
 * missing are zero. */
static bool
read_inner (cv_packet_t *p, cv_tuple_t *t)
{
  uint32_t in = p->l4 + 8u, header;
  const uint8_t *b = p->ip + in;
  memset (t, 0, sizeof (*t));
  t->ip6 = p->tuple.ip6;
  if (t->ip6)
    {
      if (in + 48 > p->len || b[0] >> 4 != 6)
	return false;
      header = 40;
      t->proto = b[6];
      memcpy (&t->src, b + 8, 16);
      memcpy (&t->dst, b + 24, 16);
      if (!skip_inner_extensions (b, p->len - in, &header, &t->proto))
	return false;
    }
  else
    {
      if (in + 28 > p->len || b[0] >> 4 != 4)
	return false;
      header = (b[0] & 15u) * 4;
      if (header < 20 || in + header + 8 > p->len)
	return false;
      t->proto = b[9];
      memcpy (&t->src, b + 12, 4);
      memcpy (&t->dst, b + 16, 4);
      if ((b[6] << 8 | b[7]) & 0x1fff) /* a later fragment */
	return false;
    }
  const uint8_t *h = b + header;
  p->inner = (uint16_t) in;
  p->inner_l4 = (uint16_t) (in + header);
  switch (t->proto)
    {
    case CV_PROTO_TCP:
    case CV_PROTO_UDP:
    case CV_PROTO_SCTP:
      memcpy (&t->sport, h, 2);
      memcpy (&t->dport, h + 2, 2);
      return true;
    case CV_PROTO_ICMP:
    case CV_PROTO_ICMP6:
      if (t->proto != (t->ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP) || (t->ip6 ? h[0] != 128 && h[0] != 129 : h[0] != 8 && h[0] != 0))
	return false;
      memcpy (&t->sport, h + 4, 2);
      t->dport = t->sport;
      return true;
    default:
      return false;
    }
}

/* error_allowed reports whether policy allows an error. An error passes with its connection; without one it is judged like any other
 * packet. */
static bool
error_allowed (cv_main_t *m, uint32_t worker, const cv_packet_t *p, cv_connection_t *c, const cv_tuple_t *inner, uint32_t now)
{
  cv_flow_t f = { .src = p->tuple.src, .dst = p->tuple.dst, .proto = p->proto, .ip6 = p->tuple.ip6, .icmp_type = p->tcp_flags, .icmp_code = p->icmp_code };
  if (c && cv_addr_equal (&inner->src, &p->tuple.dst))
    return cv_connection_allowed (m, worker, c, now);
  return cv_judge (m, worker, p->sw_if_index, &f, now) != CV_DENIED;
}

/* cv_error_packet translates an ICMP error. The packet inside travelled in the opposite direction, so the reverse of its tuple is the
 * key for this direction. */
void
cv_error_packet (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t now)
{
  cv_tuple_t inner;
  uint32_t direction, i = CV_NO_INDEX;
  cv_table_t *t = &m->table[p->tuple.ip6];
  if (read_inner (p, &inner))
    {
      cv_tuple_t key = cv_reverse (&inner);
      i = cv_table_find (t, &key, cv_hash (m, &key), &direction);
    }
  cv_connection_t *c = i == CV_NO_INDEX ? NULL : &t->connections[i];
  const cv_endpoint_state_t *e = cv_endpoint (m, p->sw_if_index);
  bool translated = c && c->flags & CV_CONN_TRANSLATED, policed = cv_load (&m->n_policed);
  /* A pod is not a router: it may report only packets that were sent to its own addresses. Otherwise it could end the connections of
   * other pods, including connections that are not in the table of this node: those of pods without policy and of pods of other nodes. */
  if (e ? e->config.role == CV_ROLE_POD && !cv_own_address (e, &inner.dst, inner.ip6) : translated || (c && policed))
    {
      drop_packet (m, worker, p, CV_SPOOFED);
      return;
    }
  if (policed && !error_allowed (m, worker, p, c, &inner, now))
    {
      drop_packet (m, worker, p, CV_POLICY);
      return;
    }
  if (translated)
    {
      p->connection = i;
      p->reason = CV_TRANSLATED;
      p->table = answers_by (m, c, direction);
      cv_translate_error (p, c, direction);
    }
  cv_count (m, worker, p->reason);
}
