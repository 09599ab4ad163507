/* Processing of packets that have a connection, or may get one: steps 4 to 10 of README.md. */
#include "follow.h"
#include "pairs.h"

void
cv_prefetch (cv_main_t *m, const cv_packet_t *p)
{
  if (p->no_connection || p->icmp_error)
    return;
  const cv_table_t *t = &m->table[p->tuple.ip6];
  const cv_bucket_t *b = &t->buckets[p->hash & t->bucket_mask];
  for (int i = 0; i < CV_BUCKET_SLOTS; i++)
    {
      uint64_t s = cv_load (&b->slots[i]);
      if (s >> 32 == p->hash >> 32 && (uint32_t) s)
	{
	  const cv_connection_t *c = &t->connections[((uint32_t) s - 1) >> 1];
	  __builtin_prefetch (c, 1);
	  __builtin_prefetch ((const uint8_t *) c + CV_CACHE_LINE, 1);
	  return;
	}
    }
}

static bool
is_icmp (const cv_packet_t *p)
{
  return p->proto == CV_PROTO_ICMP || p->proto == CV_PROTO_ICMP6;
}

/* ---- services ---- */

static const cv_backend_state_t *
backend_at (const cv_main_t *m, uint32_t i)
{
  return cv_pool_at (&m->backends, i);
}

/* count_backend counts a connection to a backend. If the backend has been deleted in the meantime, it undoes this and returns false. */
static bool
count_backend (cv_main_t *m, uint32_t i)
{
  cv_backend_state_t *b = cv_pool_at (&m->backends, i);
  __atomic_fetch_add (&b->connections, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n (&b->gone, __ATOMIC_SEQ_CST))
    return true;
  cv_add (&b->connections, -1u);
  return false;
}

/* move_to makes the connection one of another backend. It returns false if that backend has been deleted in the meantime. */
static bool
move_to (cv_main_t *m, cv_connection_t *c, uint32_t backend)
{
  uint32_t old = cv_load (&c->backend);
  if (old == backend)
    return !cv_backend_gone (m, c);
  if (old == CV_NO_INDEX || !count_backend (m, backend))
    return false;
  if (__atomic_compare_exchange_n (&c->backend, &old, backend, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    uncount_backend (m, old);
  else
    uncount_backend (m, backend); /* another thread has moved or ended the connection */
  return true;
}

bool
cv_still_served (cv_main_t *m, cv_connection_t *c)
{
  const cv_tuple_t *client = &c->key[0], *answer = &c->key[1];
  uint32_t epoch = cv_load_acquire (&m->frontends_epoch); /* must come before the lookup */
  const cv_frontend_slot_t *slot = cv_frontend_find (m, &client->dst, client->proto, client->dport, client->ip6);
  const cv_frontend_state_t *f = slot ? cv_load_acquire (&slot->state) : NULL;
  cv_backend_t k = { .addr = answer->src, .port = answer->sport, .ip6 = answer->ip6 };
  for (int i = 0; f && i < 2; i++)
    {
      if (f->service[i] == CV_NO_INDEX)
	continue;
      const cv_members_t *l = cv_load_acquire (&((const cv_service_t *) cv_pool_at (&m->services, f->service[i]))->members);
      bool found;
      uint32_t at = cv_member_at (m, l, &k, &found);
      if (!found || !move_to (m, c, l->member[at]))
	continue;
      cv_store (&c->frontends, epoch);
      return true;
    }
  return false;
}

static uint32_t
pick (cv_worker_t *w, const cv_members_t *l, const cv_packet_t *p)
{
  const uint32_t *picks = cv_picks (l);
  if (!l->maglev_n)
    return picks[below (w, l->n_picks)];
  /* without the seed, so that all nodes choose the same backend */
  const cv_tuple_t *t = &p->tuple;
  uint64_t h = cv_mum (t->src.u64[0] ^ 0x9e3779b97f4a7c15, t->src.u64[1] ^ 0xc2b2ae3d27d4eb4f ^ (uint64_t) t->sport << 16 ^ t->proto);
  return picks[l->n_picks + h % l->maglev_n];
}

/* affinity_key returns the key of the affinity record of a client. */
static cv_tuple_t
affinity_key (const cv_packet_t *p, uint64_t group)
{
  return (cv_tuple_t){ .src = p->tuple.src, .dst.u64 = { group & 0xffffffff, group >> 32 }, .proto = CV_PROTO_AFFINITY, .ip6 = p->tuple.ip6 };
}

/* stored_backend returns the client's stored backend if the service still has it and it gets new connections, else CV_NO_INDEX. */
static uint32_t
stored_backend (const cv_main_t *m, const cv_packet_t *p, const cv_members_t *l, uint32_t record)
{
  const cv_connection_t *c = &m->table[p->tuple.ip6].connections[record];
  cv_backend_t k = { .addr = c->key[1].src, .port = c->key[1].sport, .ip6 = p->tuple.ip6 };
  bool found;
  uint32_t at = cv_member_at (m, l, &k, &found);
  return found && (l->n_picks == l->n || !(cv_load (&backend_at (m, l->member[at])->flags) & CV_BACKEND_KEEP)) ? l->member[at] : CV_NO_INDEX;
}

/* store_backend stores a client's backend. Affinity records use at most a quarter of the table. Clients that are not pods of this node
 * use at most half of that, so that external machines cannot use up the records of pods. */
static void
store_backend (cv_main_t *m, const cv_packet_t *p, const cv_endpoint_state_t *e, const cv_frontend_t *f, uint32_t record, uint32_t backend, uint32_t now)
{
  bool foreign = e->config.role != CV_ROLE_POD;
  cv_table_t *t = &m->table[p->tuple.ip6];
  const cv_backend_state_t *b = backend_at (m, backend);
  bool new = record == CV_NO_INDEX;
  if (new && (cv_load (&t->n_affinities) >= t->capacity / 4 || (foreign && cv_load (&t->n_foreign) >= t->capacity / 8) ||
	      (record = cv_connection_alloc (t)) == CV_NO_INDEX))
    return; /* the client's next connection may get any backend */
  cv_connection_t *c = &t->connections[record];
  if (new)
    {
      memset (c, 0, sizeof (*c));
      c->key[0] = affinity_key (p, f->affinity_group);
      c->owner = c->backend = CV_NO_INDEX;
      c->flags = foreign ? CV_CONN_AFFINITY | CV_CONN_FOREIGN : CV_CONN_AFFINITY;
    }
  c->key[1].src = b->addr;
  c->key[1].sport = b->port;
  c->timeout = f->affinity_timeout * CV_TICKS_PER_SECOND;
  cv_store (&c->last_seen, now);
  if (!new)
    return;
  if (cv_table_insert (m, t, &c->key[0], cv_hash (m, &c->key[0]), record, 0) != CV_INSERTED)
    {
      cv_connection_release (t, record);
      return;
    }
  cv_add (&t->n, 1);
  cv_add (&t->n_affinities, 1);
  if (foreign)
    cv_add (&t->n_foreign, 1);
  cv_publish (&c->alive, 1);
}

/* choose selects a backend and counts a connection to it. CV_NO_INDEX: the service has none. */
static uint32_t
choose (cv_main_t *m, uint32_t worker, const cv_packet_t *p, const cv_endpoint_state_t *e, const cv_frontend_t *f, const cv_service_t *s, uint32_t now)
{
  cv_worker_t *w = &m->workers[worker];
  for (int attempt = 0; attempt < 8; attempt++)
    {
      const cv_members_t *l = cv_load_acquire (&s->members);
      uint32_t record = CV_NO_INDEX, backend = CV_NO_INDEX, ignored;
      if (!l)
	return CV_NO_INDEX;
      if (f->affinity_group)
	{
	  cv_tuple_t k = affinity_key (p, f->affinity_group);
	  record = cv_table_find (&m->table[k.ip6], &k, cv_hash (m, &k), &ignored);
	  if (record != CV_NO_INDEX && !cv_expired (m, &m->table[k.ip6].connections[record], now))
	    backend = stored_backend (m, p, l, record);
	}
      if (backend == CV_NO_INDEX)
	backend = pick (w, l, p);
      if (!count_backend (m, backend))
	continue;
      if (f->affinity_group)
	store_backend (m, p, e, f, record, backend, now);
      return backend;
    }
  return CV_NO_INDEX;
}

static bool
tunnel_port (const cv_main_t *m, uint16_t wire)
{
  for (int i = 0; i < CV_TUNNEL_PORTS; i++)
    if (m->config.tunnel_ports[i] && m->config.tunnel_ports[i] == host16 (wire))
      return true;
  return false;
}

/* masquerade_for returns the source address to which a backend can answer: the address of the node's pod network for backends in the
 * cluster, the node's own address for backends outside. */
static const cv_snat_t *
masquerade_for (const cv_main_t *m, const cv_addr_t *backend, bool ip6)
{
  const cv_snat_t *node = cv_load_acquire (&m->snats[1]);
  bool outside = cv_class_of (m, backend, ip6) == CV_CLASS_OUTSIDE;
  if (outside && node && !cv_addr_is_zero (ip6 ? &node->ip6 : &node->ip4))
    return node;
  return cv_load_acquire (&m->snats[0]);
}

static void
reject (cv_main_t *m, uint32_t worker, cv_packet_t *p)
{
  verdict (p, CV_VERDICT_REJECT, CV_REJECTED);
  cv_count (m, worker, CV_REJECTED);
}

/* ---- network policy ---- */

/* judge evaluates policy for the plan of a new connection from the packet's sender. */
static cv_judgement_t
judge (cv_main_t *m, uint32_t worker, const cv_packet_t *p, cv_plan_t *plan, uint32_t epoch, uint32_t now)
{
  cv_flow_t f = cv_flow_of (p);
  f.dst = plan->dst;
  if (!is_icmp (p))
    f.dport = plan->dport;
  cv_judgement_t result = cv_judge (m, worker, p->sw_if_index, &f, now);
  plan->judged = cv_judged (epoch, result);
  return result;
}

/* is_in_cluster reports whether a client is in the cluster: on this node. Pods of other nodes use the services on their own nodes; they reach
 * this node only by its own addresses, like external machines. This also applies to clients for which the host forwards. */
static bool
is_in_cluster (const cv_endpoint_state_t *e, bool behind)
{
  return !behind && (e->config.role == CV_ROLE_HOST || e->config.role == CV_ROLE_POD);
}

static void
balance (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_endpoint_state_t *e, const cv_frontend_state_t *f, uint32_t frontends, bool behind, uint32_t now)
{
  bool in_cluster = is_in_cluster (e, behind);
  uint32_t epoch = cv_policy_epoch (m);
  const cv_target_t *target = in_cluster ? &f->config.in_cluster : &f->config.outside;
  /* a reset that belongs to no connection must not open one */
  if (p->proto == CV_PROTO_TCP && p->tcp_flags & CV_TCP_RST)
    {
      drop_packet (m, worker, p, CV_REJECTED_SILENTLY);
      return;
    }
  const cv_service_t *s = cv_pool_at (&m->services, f->service[!in_cluster]);
  uint32_t backend = choose (m, worker, p, e, &f->config, s, now);
  if (backend == CV_NO_INDEX)
    {
      reject (m, worker, p);
      return;
    }
  const cv_backend_state_t *b = backend_at (m, backend);
  cv_plan_t plan = {
    .endpoint = e, .dst = b->addr, .dport = b->port, .backend = backend, .flags = behind ? CV_CONN_BEHIND_HOST : 0, .frontends = frontends
  };
  if (judge (m, worker, p, &plan, epoch, now) == CV_DENIED)
    {
      p->tuple.dst = b->addr; /* for the trace: policy was evaluated for the backend */
      p->tuple.dport = b->port;
      uncount_backend (m, backend);
      drop_packet (m, worker, p, CV_POLICY);
      return;
    }
  plan.masquerade = target->flags & CV_TARGET_MASQ || cv_load (&b->flags) & CV_BACKEND_MASQ || cv_addr_equal (&b->addr, &p->tuple.src);
  plan.snat = masquerade_for (m, &b->addr, b->ip6);
  if (e->config.role == CV_ROLE_POD && p->proto == CV_PROTO_UDP && tunnel_port (m, b->port))
    {
      uncount_backend (m, backend);
      drop_packet (m, worker, p, CV_TUNNEL);
      return;
    }
  cv_connect (m, worker, p, &plan, now);
}

/* behind_host reports whether the host forwards packets for the packet's client. */
static bool
behind_host (const cv_endpoint_state_t *e, const cv_tuple_t *t)
{
  return e->config.role == CV_ROLE_HOST && e->config.table && !cv_own_address (e, &t->src, t->ip6);
}

static void
at_frontend (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_endpoint_state_t *e, cv_frontend_slot_t *slot, uint32_t frontends, uint32_t now)
{
  const cv_frontend_state_t *f = cv_load_acquire (&slot->state);
  const cv_tuple_t *t = &p->tuple;
  if (f->ranges != CV_NO_INDEX && !cv_in_ranges (m, f->ranges, &t->src, t->ip6))
    {
      drop_packet (m, worker, p, CV_RANGES);
      return;
    }
  bool behind = behind_host (e, t);
  switch ((is_in_cluster (e, behind) ? &f->config.in_cluster : &f->config.outside)->action)
    {
    case CV_ACTION_BALANCE:
      cv_add (&slot->new_connections, 1);
      balance (m, worker, p, e, f, frontends, behind, now);
      break;
    case CV_ACTION_DROP:
      drop_packet (m, worker, p, CV_NO_LOCAL);
      break;
    default:
      reject (m, worker, p);
    }
  if (behind && p->verdict == CV_VERDICT_REJECT)
    p->table = table_behind (e, t->ip6);
}

/* ---- packets without a connection ---- */

static bool
has_ports (const cv_packet_t *p)
{
  return p->proto == CV_PROTO_TCP || p->proto == CV_PROTO_UDP || p->proto == CV_PROTO_SCTP;
}

static bool
is_echo (const cv_packet_t *p)
{
  return p->l4 && p->proto == (p->tuple.ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP);
}

/* routed_unicast reports whether the destination is a routable unicast address: not multicast, broadcast, loopback or link-local. */
static bool
routed_unicast (const cv_tuple_t *t)
{
  if (!t->ip6)
    return t->dst.u8[0] && t->dst.u8[0] < 224 && t->dst.u8[0] != 127 && !(t->dst.u8[0] == 169 && t->dst.u8[1] == 254);
  return t->dst.u8[0] != 0xff && !(t->dst.u8[0] == 0xfe && (t->dst.u8[1] & 0xc0) == 0x80) && (t->dst.u64[0] || t->dst.u32[2]);
}

/* frontend_of finds the frontend for a packet: first by port, then by address only. */
static cv_frontend_slot_t *
frontend_of (const cv_main_t *m, const cv_packet_t *p)
{
  const cv_tuple_t *t = &p->tuple;
  cv_frontend_slot_t *slot = has_ports (p) ? cv_frontend_find (m, &t->dst, p->proto, t->dport, t->ip6) : NULL;
  return slot ? slot : cv_frontend_find (m, &t->dst, 0, 0, t->ip6);
}

bool
cv_led_elsewhere (const cv_main_t *m, const cv_packet_t *p, cv_connection_t *c)
{
  uint32_t epoch = cv_load_acquire (&m->frontends_epoch);
  if (frontend_of (m, p))
    return true;
  cv_store (&c->frontends, epoch);
  return false;
}

/* in_midstream reports whether this packet cannot be the first packet of a connection. */
static bool
in_midstream (const cv_packet_t *p)
{
  if (p->proto == CV_PROTO_TCP)
    return (p->tcp_flags & (CV_TCP_SYN | CV_TCP_ACK)) != CV_TCP_SYN;
  return p->proto == CV_PROTO_SCTP && p->l4 && (uint32_t) p->l4 + 12 < p->len && p->ip[p->l4 + 12] != 1;
}

static cv_opener_t
opener_of (const cv_packet_t *p)
{
  return cv_opener (host16 (p->tuple.sport), host16 (p->tuple.dport));
}

static cv_flow_t
reversed (const cv_flow_t *f)
{
  return (cv_flow_t){ .src = f->dst, .dst = f->src, .sport = f->dport, .dport = f->sport, .proto = f->proto, .ip6 = f->ip6 };
}

/* by_receiver changes a plan to a connection that the packet's receiver has opened. The connection counts for the packet's sender, not for
 * the client: otherwise any machine could use up a pod's connections. */
static void
by_receiver (const cv_packet_t *p, cv_plan_t *plan)
{
  plan->reversed = true;
  plan->flags = CV_CONN_OF_BACKEND;
  plan->dst = p->tuple.src;
  plan->dport = p->tuple.sport;
}

/* judge_open judges a packet of a connection that was opened before its ends had policy and therefore is not in the table. It fills in
 * the plan of a connection that its client may have opened. */
static cv_judgement_t
judge_open (cv_main_t *m, uint32_t worker, const cv_packet_t *p, cv_plan_t *plan, uint32_t epoch, uint32_t now)
{
  cv_flow_t forth = cv_flow_of (p), back = reversed (&forth);
  uint32_t receiver = cv_interface_of (m, &forth.dst, forth.ip6);
  cv_opener_t opener = opener_of (p);
  cv_judgement_t result = opener == CV_RECEIVER ? CV_FREE : cv_judge (m, worker, p->sw_if_index, &forth, now);
  if (opener != CV_SENDER && result != CV_DENIED)
    {
      cv_judgement_t r = cv_judge (m, worker, receiver, &back, now);
      result = r > result ? r : result;
    }
  plan->judged = cv_judged (epoch, result);
  if (opener == CV_RECEIVER && result == CV_ALLOWED)
    by_receiver (p, plan);
  return result;
}

/* answers_denied judges the opposite direction of a UDP packet that policy allows. UDP has no packet that opens a flow. If a pod with a new
 * policy sends to a client that the policy denies, the flow may be older than the policy; as a flow that the pod opens it would let the
 * client's packets pass as answers. Therefore both directions must be allowed, unless the ports show that the sender is the client. If the
 * answer is true, the plan is that of a denied connection: it remains denied when the time for old flows is over. */
static bool
answers_denied (cv_main_t *m, uint32_t worker, const cv_packet_t *p, cv_plan_t *plan, uint32_t epoch, uint32_t now)
{
  cv_opener_t opener = opener_of (p);
  if (p->proto != CV_PROTO_UDP || opener == CV_SENDER)
    return false;
  cv_flow_t forth = cv_flow_of (p), back = reversed (&forth);
  uint32_t receiver = cv_interface_of (m, &forth.dst, forth.ip6);
  if (!cv_was_unjudged (m, p->sw_if_index, now) && !cv_was_unjudged (m, receiver, now))
    return false;
  cv_judgement_t result = cv_judge (m, worker, receiver, &back, now);
  if (result == CV_DENIED || (opener == CV_RECEIVER && result == CV_ALLOWED))
    {
      plan->judged = cv_judged (epoch, result);
      by_receiver (p, plan);
    }
  return result == CV_DENIED;
}

/* note_unjudged records that UDP between the two ends of a packet passes. After by_pair, all UDP between them may pass by the pair. */
static void
note_unjudged (cv_main_t *m, const cv_packet_t *p, bool by_pair, uint32_t now)
{
  if (p->proto != CV_PROTO_UDP && !by_pair)
    return;
  cv_note_unjudged (m, p->sw_if_index, now);
  cv_note_unjudged (m, cv_interface_of (m, &p->tuple.dst, p->tuple.ip6), now);
}

static bool
is_pod (const cv_main_t *m, const cv_addr_t *a, bool ip6)
{
  uint32_t at = cv_interface_of (m, a, ip6);
  const cv_endpoint_state_t *e = at == CV_NO_INDEX ? NULL : cv_endpoint (m, at);
  return e && e->config.role == CV_ROLE_POD;
}

/* needs_memory reports whether a packet opens a connection of a pod that judge_open would misjudge if the pod got policy later. */
static bool
needs_memory (const cv_main_t *m, const cv_packet_t *p, cv_role_t role)
{
  if (in_midstream (p) || !p->l4)
    return false;
  if (p->proto == CV_PROTO_TCP ? !cv_hides_opener (p->tcp_flags, host16 (p->tuple.sport), host16 (p->tuple.dport)) :
				 p->proto != CV_PROTO_SCTP || opener_of (p) == CV_SENDER)
    return false;
  return role == CV_ROLE_POD || is_pod (m, &p->tuple.dst, p->tuple.ip6);
}

/* answered_by_egress reports whether the answers of a pod to an external machine would get the pod's egress source address unless they
 * belong to a connection. */
static bool
answered_by_egress (const cv_main_t *m, const cv_tuple_t *t)
{
  uint32_t to = cv_interface_of (m, &t->dst, t->ip6);
  const cv_endpoint_state_t *e = to == CV_NO_INDEX ? NULL : cv_endpoint (m, to);
  return e && e->config.role == CV_ROLE_POD && e->config.egress && cv_class_of (m, &t->src, t->ip6) == CV_CLASS_OUTSIDE;
}

/* plain forwards a packet that does not belong to a service and is not translated. */
static void
plain (cv_main_t *m, uint32_t worker, cv_packet_t *p, cv_plan_t *plan, bool can_connect, uint64_t tag, uint32_t epoch, uint32_t now)
{
  const cv_tuple_t *t = &p->tuple;
  cv_role_t role = plan->endpoint->config.role;
  bool open = can_connect && cv_load (&m->n_policed) && in_midstream (p);
  cv_judgement_t judgement = open ? judge_open (m, worker, p, plan, epoch, now) : judge (m, worker, p, plan, epoch, now);
  if (judgement == CV_DENIED)
    {
      drop_packet (m, worker, p, CV_POLICY);
      return;
    }
  if (can_connect && judgement == CV_ALLOWED && answers_denied (m, worker, p, plan, epoch, now))
    {
      cv_connect_denied (m, worker, p, plan, now);
      return;
    }
  bool to_backend = has_ports (p) && (role == CV_ROLE_POD || role == CV_ROLE_HOST) && cv_is_backend (m, &t->dst, t->dport, t->ip6);
  bool answered = can_connect && role == CV_ROLE_UPLINK && answered_by_egress (m, t);
  if (can_connect && (judgement == CV_ALLOWED || to_backend || answered))
    {
      cv_connect (m, worker, p, plan, now);
      return;
    }
  if (can_connect && needs_memory (m, p, role) && cv_connect_if_room (m, worker, p, plan, now))
    return;
  /* for ICMP other than echo, policy depends on the type, which is not in the hash */
  if (judgement == CV_FREE && !(p->stateless && is_icmp (p)))
    {
      bool by_pair = cv_passes_by_pair (m, p, plan->endpoint);
      note_unjudged (m, p, by_pair, now);
      store_passed (&m->workers[worker], p->hash, tag, 0);
      if (by_pair)
	{
	  uint64_t pair = cv_pair (m, t);
	  store_pair (m, &m->workers[worker], pair, tag ^ p->hash ^ pair); /* tag of the same moment, for another hash */
	}
    }
  cv_count (m, worker, CV_PASSED);
}

static __attribute__ ((noinline)) void
unknown (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t now)
{
  const cv_endpoint_state_t *e = cv_endpoint (m, p->sw_if_index);
  const cv_tuple_t *t = &p->tuple;
  if (!e)
    {
      drop_packet (m, worker, p, CV_SPOOFED);
      return;
    }
  /* must come before reading anything that may change: a decision by an old configuration must not be stored for the new one */
  uint64_t tag = pass_tag (m, &m->workers[worker], p->hash, p->sw_if_index);
  uint32_t epoch = cv_policy_epoch (m), frontends = cv_load_acquire (&m->frontends_epoch);
  cv_frontend_slot_t *slot = p->stateless ? NULL : frontend_of (m, p);
  if (slot)
    {
      at_frontend (m, worker, p, e, slot, frontends, now);
      return;
    }
  bool can_connect = !p->stateless && (has_ports (p) || is_echo (p));
  cv_tuple_t back = cv_reverse (t);
  if (cv_tuple_equal (&back, t))
    can_connect = false; /* from an address and port to itself: both keys would be equal */
  cv_plan_t plan = { .endpoint = e, .dst = t->dst, .dport = t->dport, .backend = CV_NO_INDEX, .frontends = frontends };
  if (can_connect && e->config.role == CV_ROLE_POD && e->config.egress && routed_unicast (t) && cv_class_of (m, &t->dst, t->ip6) == CV_CLASS_OUTSIDE)
    {
      const cv_snat_t *s = cv_load_acquire (&m->snats[e->config.egress]);
      /* a family without an address for source NAT keeps its source address */
      if (!s || !cv_addr_is_zero (t->ip6 ? &s->ip6 : &s->ip4))
	{
	  plan.masquerade = true;
	  plan.snat = s;
	  if (judge (m, worker, p, &plan, epoch, now) == CV_DENIED)
	    drop_packet (m, worker, p, CV_POLICY);
	  else
	    cv_connect (m, worker, p, &plan, now);
	  return;
	}
    }
  plain (m, worker, p, &plan, can_connect, tag, epoch, now);
}

void
cv_decide (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t now)
{
  if (p->no_connection)
    return;
  if (cv_unlikely (p->icmp_error))
    {
      cv_error_packet (m, worker, p, now);
      return;
    }
  uint32_t direction, i = p->stateless ? CV_NO_INDEX : cv_table_find (&m->table[p->tuple.ip6], &p->tuple, p->hash, &direction);
  if (i != CV_NO_INDEX && cv_likely (follow (m, worker, p, i, direction, now)))
    return;
  unknown (m, worker, p, now);
}
