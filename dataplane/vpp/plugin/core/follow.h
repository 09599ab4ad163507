/* Functions that the files of the data path share: flows without connection, and packets of known connections (step 4 of README.md). */
#ifndef CONTIV_CV_FOLLOW_H
#define CONTIV_CV_FOLLOW_H

#include "policy.h"

/* ---- IPv6 extension headers ---- */

#define CV_MAX_EXTENSIONS 8
#define CV_FRAGMENT_HEADER 44

/* cv_is_extension reports whether a header is an extension header other than the fragment header. */
static inline bool
cv_is_extension (uint8_t proto)
{
  switch (proto)
    {
    case 0:   /* hop-by-hop options */
    case 43:  /* routing */
    case 51:  /* authentication */
    case 60:  /* destination options */
    case 135: /* mobility */
    case 139:
    case 140:
      return true;
    default:
      return false;
    }
}

/* cv_extension_len returns the length of an extension header, of which 8 bytes can be read. */
static inline uint32_t
cv_extension_len (uint8_t proto, const uint8_t *h)
{
  return proto == 51 ? (h[1] + 2u) * 4 : (h[1] + 1u) * 8;
}

/* ---- flows that pass ----
 *
 * Most packets do not belong to a service. Each worker stores flows that passed without a connection for the rest of the second, as long
 * as configuration and policy do not change: one load replaces about five lookups. A new connection removes its flows from all caches. A
 * worker that stores such a flow again at the same moment is wrong at most until the end of the second. UDP connections that only policy
 * needs are stored, too: no packet ends them, and the first packet of each in a second refreshes their idle timer. All other UDP
 * connections, and open TCP connections, are stored with their place in the table: packets without SYN, RST and FIN are followed and
 * translated without a lookup (recall.c). */

/* pass_when identifies a second together with the configuration and policy of a moment. */
static inline uint64_t
pass_when (const cv_main_t *m, const cv_worker_t *w)
{
  uint64_t changes = cv_load_acquire (&m->config_epoch) + cv_load_acquire (&m->policy_epoch); /* grows with each change of either */
  return (changes << 32 | w->second) * 0x9e3779b97f4a7c15;
}

static inline uint64_t
pass_tag_of (uint64_t when, uint64_t hash, uint32_t sw_if_index)
{
  return hash ^ when ^ (sw_if_index + 1ull) * 0xc2b2ae3d27d4eb4f;
}

static inline uint64_t
pass_tag (const cv_main_t *m, const cv_worker_t *w, uint64_t hash, uint32_t sw_if_index)
{
  return pass_tag_of (pass_when (m, w), hash, sw_if_index);
}

/* cv_enter begins a worker's frame: until cv_quiesce, no memory that the worker can read is released. */
static inline void
cv_enter (cv_worker_t *w, uint32_t now)
{
  if (cv_unlikely (w->second != now / CV_TICKS_PER_SECOND))
    w->second = now / CV_TICKS_PER_SECOND;
  if (cv_unlikely (!w->in_frame))
    __atomic_store_n (&w->in_frame, 1, __ATOMIC_SEQ_CST);
}

static inline cv_pass_set_t *
pass_set (cv_worker_t *w, uint64_t hash)
{
  return &w->pass[hash % CV_PASS_SETS];
}

/* has_passed reports whether all packets of the flow pass and no connection must follow them. */
static inline bool
has_passed (cv_worker_t *w, uint64_t hash, uint64_t tag)
{
  const cv_pass_set_t *s = pass_set (w, hash);
  return (s->tag[0] == tag && !s->ref[0]) || (s->tag[1] == tag && !s->ref[1]);
}

/* store_passed stores a flow that passed. The set keeps this flow and the previous one. */
static inline void
store_passed (cv_worker_t *w, uint64_t hash, uint64_t tag, uint64_t ref)
{
  cv_pass_set_t *s = pass_set (w, hash);
  int way = s->tag[1] == tag;
  if (!way && s->tag[0] != tag)
    {
      s->tag[1] = s->tag[0];
      s->ref[1] = s->ref[0];
    }
  s->tag[way] = tag;
  s->ref[way] = ref;
}

static inline void
clear_passed (cv_main_t *m, uint64_t hash)
{
  for (uint32_t i = 0; i < m->n_workers; i++)
    for (int way = 0; way < CV_PASS_WAYS; way++)
      cv_store (&pass_set (&m->workers[i], hash)->tag[way], 0);
}

static inline void
verdict (cv_packet_t *p, cv_verdict_t v, cv_reason_t r)
{
  p->verdict = v;
  p->reason = r;
}

static inline void
drop_packet (cv_main_t *m, uint32_t worker, cv_packet_t *p, cv_reason_t r)
{
  verdict (p, CV_VERDICT_DROP, r);
  cv_count (m, worker, r);
}

/* ---- known connections ---- */

static inline bool
owner_gone (const cv_main_t *m, const cv_connection_t *c)
{
  uint32_t owner = cv_load (&c->owner);
  return owner != CV_NO_INDEX && !cv_load (&((cv_owner_t *) cv_pool_at (&m->owners, owner))->alive);
}

/* cv_follow_rare follows a packet with SYN, RST or FIN, or of a connection that is not in plain open state; tcp.c. */
void cv_follow_rare (const cv_packet_t *p, cv_connection_t *c, uint32_t direction);

static inline uint32_t
word_at (const void *at)
{
  const uint8_t *b = at;
  return (uint32_t) b[0] << 24 | (uint32_t) b[1] << 16 | (uint32_t) b[2] << 8 | b[3];
}

/* window returns the maximum amount of unacknowledged data that a direction may have sent: the receiver's largest window. */
static inline uint32_t
window (const cv_connection_t *c, uint32_t direction)
{
  if (cv_unlikely (c->fins & (CV_FIN | CV_FIN_SENT) << direction) || cv_unlikely (!(c->end[direction] & CV_END_OF_SYN)))
    return CV_TCP_WINDOW;
  return 65535u << (c->end[direction] & 15);
}

/* older reports whether the connection is older than its entry in this table. The first acknowledgement seen may then be forged. */
static inline bool
older (const cv_connection_t *c)
{
  return !(c->fins & (CV_FIN | CV_FIN_SENT) << 1 || c->end[1] & CV_END_OF_SYN);
}

/* acknowledge stores an acknowledgement if it is plausible: the other direction can have sent the data that it acknowledges. If a forged
 * acknowledgement were accepted, the resets of the connection's ends would be discarded, and a reset of the forger would end the
 * connection (RFC 5961, 5). An acknowledgement that is too far ahead is accepted if its segment begins exactly where the other end
 * expects it: a part of the connection did not pass this node. */
static inline void
acknowledge (cv_connection_t *c, uint32_t direction, const uint8_t *tcp)
{
  uint32_t ahead = word_at (tcp + 8) - word_at (&c->acked[direction]);
  if (!ahead)
    return;
  if (cv_likely (ahead <= window (c, !direction)) || older (c) || (ahead < 1u << 31 && !memcmp (tcp + 4, &c->acked[!direction], 4)))
    memcpy (&c->acked[direction], tcp + 8, 4);
}

static inline void
follow_tcp (const cv_packet_t *p, cv_connection_t *c, uint32_t direction)
{
  if (cv_unlikely (p->tcp_flags & (CV_TCP_SYN | CV_TCP_RST | CV_TCP_FIN)) || cv_unlikely (c->state != CV_STATE_OPEN) || cv_unlikely (c->fins))
    cv_follow_rare (p, c, direction);
  else if (cv_likely (p->tcp_flags & CV_TCP_ACK))
    acknowledge (c, direction, p->ip + p->l4);
}

/* cv_led_elsewhere reports whether a frontend now matches the packets of a connection without a backend; decide.c. */
bool cv_led_elsewhere (const cv_main_t *m, const cv_packet_t *p, cv_connection_t *c);

/* led_elsewhere reports whether there is now a service for a connection that began without one. It does the lookup once after each change
 * of a frontend. */
static inline bool
led_elsewhere (const cv_main_t *m, const cv_packet_t *p, cv_connection_t *c)
{
  return cv_load (&c->backend) == CV_NO_INDEX && cv_unlikely (cv_load (&c->frontends) != cv_load (&m->frontends_epoch)) && cv_led_elsewhere (m, p, c);
}

/* starts_again reports whether this packet opens a new connection while the table still contains an old one. */
static inline bool
starts_again (cv_main_t *m, const cv_packet_t *p, cv_connection_t *c, uint32_t direction)
{
  switch (p->proto)
    {
    case CV_PROTO_TCP:
      if ((p->tcp_flags & (CV_TCP_SYN | CV_TCP_ACK | CV_TCP_RST)) != CV_TCP_SYN)
	return false;
      if (c->state == CV_STATE_CLOSED || owner_gone (m, c))
	return true;
      /* answered: the client may already have the answer, and continues with this backend */
      return !direction && c->state != CV_STATE_OPEN && c->state != CV_STATE_ANSWERED && (cv_backend_gone (m, c) || led_elsewhere (m, p, c));
    case CV_PROTO_UDP:
      return !direction && (cv_unlikely (owner_gone (m, c)) || (cv_may_be_unserved (m, c) && !cv_still_served (m, c)) || led_elsewhere (m, p, c));
    case CV_PROTO_SCTP:
      /* 1: INIT */
      return !direction && p->l4 && (uint32_t) p->l4 + 12 < p->len && p->ip[p->l4 + 12] == 1 &&
	     (cv_backend_gone (m, c) || led_elsewhere (m, p, c));
    default:
      return !direction && led_elsewhere (m, p, c);
    }
}

/* table_behind returns the table that leads to the clients behind a HOST endpoint. */
static inline uint32_t
table_behind (const cv_endpoint_state_t *e, bool ip6)
{
  return e && e->config.table ? e->config.index[ip6] : CV_NO_INDEX;
}

/* answers_by returns the table that routes a packet of a connection. Without this table, VPP's own routes would send an answer directly
 * to the client. It would bypass the host, whose connection tracking must see it. */
static inline uint32_t
answers_by (const cv_main_t *m, const cv_connection_t *c, uint32_t direction)
{
  if (cv_likely (!(c->flags & CV_CONN_BEHIND_HOST)) || !direction)
    return CV_NO_INDEX;
  uint32_t owner = cv_load (&c->owner);
  if (cv_unlikely (owner == CV_NO_INDEX))
    return CV_NO_INDEX; /* its endpoint was deleted while the connection was created */
  return table_behind (cv_endpoint (m, ((const cv_owner_t *) cv_pool_at (&m->owners, owner))->sw_if_index), c->key[0].ip6);
}

/* carry sends a packet along its connection. */
static inline void
carry (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t i, uint32_t direction, uint32_t now)
{
  cv_connection_t *c = &m->table[p->tuple.ip6].connections[i];
  if (p->proto == CV_PROTO_TCP)
    {
      if (!p->later_fragment)
	follow_tcp (p, c, direction);
    }
  else if (cv_unlikely (direction && c->state == CV_STATE_NEW))
    c->state = CV_STATE_OPEN;
  if (c->last_seen != now)
    cv_store (&c->last_seen, now);
  p->connection = i;
  if (c->flags & CV_CONN_TRANSLATED)
    {
      if (cv_unlikely (p->proto == CV_PROTO_SCTP && p->reassembled && c->flags & CV_CONN_PORTS_CHANGE))
	{
	  /* the checksum covers other fragments, which are not available here */
	  drop_packet (m, worker, p, CV_SCTP_FRAGMENT);
	  return;
	}
      cv_translate (p, c, direction);
      p->table = answers_by (m, c, direction);
      p->reason = CV_TRANSLATED;
    }
  cv_count (m, worker, p->reason);
}

/* plain_ack reports whether a segment neither opens nor ends anything. */
static inline bool
plain_ack (uint8_t tcp_flags)
{
  return (tcp_flags & (CV_TCP_SYN | CV_TCP_RST | CV_TCP_FIN | CV_TCP_ACK)) == CV_TCP_ACK;
}

/* Reference to a connection that cv_recall stores with a flow: serial << 32, place << 1, direction, and whether it is translated. */
#define CV_REF_TRANSLATED (1u << 31)

/* life_of returns cv_connection_t.life with these fields. It is written explicitly because this produces the shortest code. */
static inline uint64_t
life_of (uint64_t serial, uint64_t alive, uint64_t state, uint64_t flags, uint64_t fins)
{
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? serial | alive << 32 | state << 40 | flags << 48 | fins << 56 :
						     serial << 32 | alive << 24 | state << 16 | flags << 8 | fins;
}

/* lets_through reports whether the connection is the one that was stored, and lets the flow's packets through as long as configuration
 * and policy do not change. TCP: the connection is open, and neither end has begun to close it. Answers to clients behind a HOST need a
 * table, so they are not stored. */
static inline bool
lets_through (const cv_connection_t *c, uint64_t ref, bool tcp)
{
  uint64_t read = life_of (UINT32_MAX, 255, tcp ? 255 : 0, CV_CONN_TRANSLATED | CV_CONN_AFFINITY | CV_CONN_BEHIND_HOST, 255);
  uint64_t want = life_of (ref >> 32, 1, tcp ? CV_STATE_OPEN : 0, ref / CV_REF_TRANSLATED & CV_CONN_TRANSLATED, 0);
  return (cv_load_acquire (&c->life) & read) == want;
}

_Static_assert (CV_CONN_TRANSLATED == 1, "a bit of a reference");

/* store_known stores the flow of a packet that its connection has let through. tag must be older than all inputs of this decision. UDP
 * without translation passes unchanged. */
static inline void
store_known (cv_worker_t *w, const cv_packet_t *p, const cv_connection_t *c, uint32_t i, uint32_t direction, uint64_t tag)
{
  bool tcp = p->proto == CV_PROTO_TCP, translated = c->flags & CV_CONN_TRANSLATED;
  uint64_t ref = (uint64_t) cv_load (&c->serial) << 32 | i << 1 | direction | (translated ? CV_REF_TRANSLATED : 0);
  if (!tcp && !translated && cv_load (&c->backend) == CV_NO_INDEX)
    store_passed (w, p->hash, tag, 0);
  else if (lets_through (c, ref, tcp))
    store_passed (w, p->hash, tag, ref);
}

/* may_be_recalled reports whether the packet is of a kind that cv_recall handles. */
static inline bool
may_be_recalled (const cv_packet_t *p)
{
  return p->proto == CV_PROTO_UDP || (p->proto == CV_PROTO_TCP && !p->later_fragment && plain_ack (p->tcp_flags));
}

/* follow processes a packet of a known connection. It returns false if the connection has ended and the packet starts a new one. */
static inline bool
follow (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t i, uint32_t direction, uint32_t now)
{
  /* must come before reading anything that may change */
  uint64_t tag = may_be_recalled (p) ? pass_tag (m, &m->workers[worker], p->hash, p->sw_if_index) : 0;
  if (cv_unlikely (starts_again (m, p, &m->table[p->tuple.ip6].connections[i], direction)))
    {
      cv_connection_end (m, p->tuple.ip6, i);
      return false;
    }
  cv_connection_t *c = &m->table[p->tuple.ip6].connections[i];
  if (cv_unlikely (!cv_judged_open (m, p, c, direction)) && cv_unlikely (!cv_may_pass (m, worker, p, c, direction, now)))
    {
      /* the connection stays denied as long as its ends continue to send */
      cv_store (&c->last_seen, now);
      p->connection = i;
      drop_packet (m, worker, p, CV_POLICY);
      return true;
    }
  carry (m, worker, p, i, direction, now);
  if (may_be_recalled (p))
    store_known (&m->workers[worker], p, c, i, direction, tag);
  return true;
}

/* ---- new connections: connect.c ---- */

typedef enum
{
  CV_SENDER,
  CV_RECEIVER,
  CV_EITHER,
} cv_opener_t;

/* cv_opener guesses from the ports of a packet which end opened a connection that is older than the policy of its ends: most clients have a
 * port above 32 767, and most servers a lower one (RFC 6056, and Linux' default). */
static inline cv_opener_t
cv_opener (uint16_t sport, uint16_t dport)
{
  bool from_high = sport >= 32768, to_high = dport >= 32768;
  return from_high == to_high ? CV_EITHER : from_high ? CV_SENDER : CV_RECEIVER;
}

/* cv_hides_opener reports whether a TCP packet opens a connection, and cv_opener would not show this by the packets that follow. */
static inline bool
cv_hides_opener (uint8_t tcp_flags, uint16_t sport, uint16_t dport)
{
  return (tcp_flags & (CV_TCP_SYN | CV_TCP_ACK | CV_TCP_RST)) == CV_TCP_SYN && cv_opener (sport, dport) != CV_SENDER;
}

/* cv_plan_t describes a connection to be created. */
typedef struct
{
  const cv_endpoint_state_t *endpoint;
  cv_addr_t dst;
  uint16_t dport;	  /* wire */
  bool masquerade;	  /* apply source NAT with snat */
  const cv_snat_t *snat;
  uint32_t backend;	  /* already counted; CV_NO_INDEX: none */
  uint32_t judged;	  /* result of policy: judged of cv_connection_t */
  uint8_t flags;	  /* additional CV_CONN_* flags */
  bool reversed;	  /* the packet was sent by the backend */
  uint32_t frontends;	  /* value of m->frontends_epoch before the lookup of frontends */
} cv_plan_t;

uint64_t cv_random (cv_worker_t *w);

/* below returns a random number that is less than n. */
static inline uint32_t
below (cv_worker_t *w, uint32_t n)
{
  return (uint32_t) (((cv_random (w) >> 32) * n) >> 32);
}

static inline uint16_t
host16 (uint16_t wire)
{
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (uint16_t) (wire << 8 | wire >> 8) : wire;
}

static inline void
uncount_backend (cv_main_t *m, uint32_t backend)
{
  if (backend != CV_NO_INDEX)
    cv_add (&((cv_backend_state_t *) cv_pool_at (&m->backends, backend))->connections, -1u);
}

/* cv_connect creates the connection of a plan and sends the packet along it. */
void cv_connect (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_plan_t *plan, uint32_t now);
/* cv_connect_if_room is cv_connect for a packet that passes in any case. It returns false, and does nothing, if there is no room. */
bool cv_connect_if_room (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_plan_t *plan, uint32_t now);
/* cv_connect_denied drops the packet, and adds the denied connection of a plan if there is room. */
void cv_connect_denied (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_plan_t *plan, uint32_t now);
void cv_error_packet (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t now);

#endif
