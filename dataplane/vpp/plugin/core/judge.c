/* Evaluation of network policy for a flow. README.md describes the rules. */
#include "policy.h"

/* ---- one rule ---- */

typedef enum
{
  NO,
  YES,
  UNSURE, /* everything that is known matches, but a set is not known */
} match_t;

static bool
has_port (const cv_rule_t *r, uint16_t port)
{
  for (uint8_t i = 0; i < r->n_ports; i++)
    if (port >= r->ports[i].first && port <= r->ports[i].last)
      return true;
  return !r->n_ports;
}

/* matches_packet checks the protocol, the family and the ICMP type and code, but not ports. */
static bool
matches_packet (const cv_rule_t *r, const cv_flow_t *f)
{
  if (r->proto && r->proto != f->proto)
    return false;
  if (r->family && r->family != (f->ip6 ? 6 : 4))
    return false;
  if (r->flags & CV_RULE_ICMP_TYPE && r->icmp_type != f->icmp_type)
    return false;
  if (r->flags & CV_RULE_ICMP_CODE && r->icmp_code != f->icmp_code)
    return false;
  return true;
}

/* in_networks and in_ports combine the result of a set with the previous result sofar. */
static match_t
in_networks (const cv_main_t *m, uint32_t set, const cv_addr_t *a, bool ip6, match_t sofar)
{
  if (set == CV_NO_INDEX || sofar == NO)
    return sofar;
  const cv_set_state_t *s = cv_set_at (m, set);
  if (!cv_set_known (s) || s->kind != CV_SET_NETWORKS)
    return UNSURE;
  if (cv_set_contains (m, set, a, ip6))
    return sofar;
  return cv_set_known (s) ? NO : UNSURE; /* the members may be missing because the set is being removed */
}

static match_t
in_ports (const cv_main_t *m, uint32_t set, const cv_flow_t *f, match_t sofar)
{
  if (set == CV_NO_INDEX || sofar == NO)
    return sofar;
  const cv_set_state_t *s = cv_set_at (m, set);
  if (!cv_set_known (s) || s->kind != CV_SET_PORTS)
    return UNSURE;
  if (cv_set_contains_port (m, set, &f->dst, f->ip6, f->proto, f->dport))
    return sofar;
  return cv_set_known (s) ? NO : UNSURE;
}

/* matches checks all conditions except ports. */
static match_t
matches (const cv_main_t *m, const cv_rule_state_t *r, const cv_flow_t *f)
{
  if (!matches_packet (&r->rule, f))
    return NO;
  match_t sofar = in_networks (m, r->source, &f->src, f->ip6, YES);
  sofar = in_networks (m, r->destination, &f->dst, f->ip6, sofar);
  return in_ports (m, r->service, f, sofar);
}

/* ---- all rules of an endpoint ---- */

/* first_of_class returns the first rule of a class that is less than best and matches a port, or best. */
static uint32_t
first_of_class (const cv_index_t *x, const cv_rule_class_t *c, const cv_rule_state_t *rules, uint16_t port, uint32_t best)
{
  if (c->steps)
    {
      uint32_t rule = cv_class_rule (c, port);
      return rule < best ? rule : best; /* CV_NO_INDEX is the greatest number */
    }
  for (uint32_t i = 0; i < c->n && x->order[c->start + i] < best; i++)
    if (has_port (&rules[x->order[c->start + i]].rule, port))
      return x->order[c->start + i];
  return best;
}

/* unsure_of_class is used if not all sets of a class are known. Rules of the class that deny or pass then decide; rules that
 * allow do not. */
static uint32_t
unsure_of_class (const cv_index_t *x, const cv_rule_class_t *c, const cv_rule_state_t *rules, uint16_t port, uint32_t best)
{
  for (uint32_t i = 0; i < c->n && x->order[c->start + i] < best; i++)
    {
      const cv_rule_t *r = &rules[x->order[c->start + i]].rule;
      if (r->action != CV_RULE_ALLOW && has_port (r, port))
	return x->order[c->start + i];
    }
  return best;
}

static bool
decide_by_policy (const cv_main_t *m, uint32_t index, cv_side_t side, const cv_flow_t *f, cv_ports_t *range, cv_decision_t *d)
{
  cv_policy_state_t *s = cv_pool_at (&m->policies, index);
  cv_rules_t *rules = cv_load_acquire (&s->rules);
  cv_rule_state_t *r = rules->rule + (side ? rules->n[0] : 0);
  const cv_index_t *x = rules->index[side];
  uint16_t port = cv_host_port (f->dport);
  uint32_t best = CV_NO_INDEX;
  match_t how = NO;
  cv_index_narrow (x, port, range);
  for (uint32_t i = 0; i < x->n && x->classes[i].first < best; i++)
    {
      const cv_rule_class_t *c = &x->classes[i];
      uint32_t rule = first_of_class (x, c, r, port, best);
      if (rule == best)
	continue; /* regardless of the content of the sets */
      match_t match = matches (m, &r[c->first], f);
      if (match != YES)
	rule = match == NO ? best : unsure_of_class (x, c, r, port, best);
      if (rule != best)
	{
	  best = rule;
	  how = match;
	}
    }
  if (best == CV_NO_INDEX)
    return false;
  cv_add (&r[best].matched, 1);
  *d = (cv_decision_t){ .action = how == YES ? r[best].rule.action : CV_RULE_DENY, .policy = s->id, .index = index, .rule = best, .passed = d->passed };
  return true;
}

/* decide_by_police evaluates the tiers in order. A flow to the pod's own node is allowed by the first policy that does not apply
 * to such flows, and at the end of the tiers. The decision also holds for a range of ports, which each evaluated policy narrows. */
static cv_decision_t
decide_by_police (const cv_main_t *m, const cv_police_t *p, cv_side_t side, const cv_flow_t *f, bool to_node, cv_ports_t *range)
{
  const cv_item_t *item = p->item + (side ? p->n[0] : 0);
  bool passed = false;   /* a rule of this tier has passed the flow on */
  bool holds = !to_node; /* this tier has a policy that applies to the flow */
  cv_decision_t d = { 0 };
  for (uint32_t i = 0; i < p->n[side]; i++, item++)
    {
      if (item->policy != CV_NO_INDEX)
	{
	  if (passed)
	    continue;
	  if (to_node && !item->action)
	    return (cv_decision_t){ .action = CV_RULE_ALLOW, .rule = CV_NO_INDEX, .passed = d.passed };
	  holds = true;
	  if (!decide_by_policy (m, item->policy, side, f, range, &d))
	    continue;
	  if (d.action != CV_RULE_PASS)
	    return d;
	  passed = d.passed = true;
	  continue;
	}
      if (!passed && holds && item->action != CV_RULE_PASS)
	return (cv_decision_t){ .action = item->action, .rule = CV_NO_INDEX, .passed = d.passed };
      passed = false;
      holds = !to_node;
    }
  return (cv_decision_t){ .action = to_node ? CV_RULE_ALLOW : p->otherwise[side], .rule = CV_NO_INDEX, .passed = d.passed };
}

/* ---- denied flows ---- */

static void
report (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, cv_side_t side, const cv_flow_t *f, const cv_decision_t *d, uint32_t now)
{
  cv_denied_ring_t *ring = &m->workers[worker].denied;
  if (ring->tick != now)
    {
      ring->tick = now;
      ring->in_tick = 0;
    }
  if (ring->in_tick++ >= CV_DENIED_FLOWS_A_TICK)
    return;
  cv_denied_t *at = &ring->flows[ring->n % CV_DENIED_FLOWS];
  /* readers compare the sequence before and after to detect that the flow was overwritten while they read it */
  cv_publish (&at->sequence, 0);
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
  uint64_t sequence = __atomic_add_fetch (&m->denied_sequence, 1, __ATOMIC_RELAXED);
  cv_denied_t flow = { .when = now, .sw_if_index = sw_if_index, .side = (uint8_t) side, .proto = f->proto, .icmp_type = f->icmp_type,
		       .icmp_code = f->icmp_code, .ip6 = f->ip6, .src = f->src, .dst = f->dst, .sport = cv_host_port (f->sport),
		       .dport = cv_host_port (f->dport), .policy = d->policy, .rule = d->policy ? d->rule : 0 };
  memcpy ((uint8_t *) at + sizeof (at->sequence), (uint8_t *) &flow + sizeof (flow.sequence), sizeof (flow) - sizeof (flow.sequence));
  cv_publish (&at->sequence, sequence);
  cv_publish (&ring->n, ring->n + 1);
}

_Static_assert (offsetof (cv_denied_t, sequence) == 0, "the sequence is first");

void
cv_denied_walk (cv_main_t *m, uint64_t after, void (*f) (void *, const cv_denied_t *), void *ctx)
{
  for (uint32_t w = 0; w < m->n_workers; w++)
    {
      const cv_denied_ring_t *ring = &m->workers[w].denied;
      uint64_t n = cv_load_acquire (&ring->n);
      for (uint64_t i = n > CV_DENIED_FLOWS ? n - CV_DENIED_FLOWS : 0; i < n; i++)
	{
	  const cv_denied_t *at = &ring->flows[i % CV_DENIED_FLOWS];
	  uint64_t sequence = cv_load_acquire (&at->sequence);
	  cv_denied_t copy = *at;
	  __atomic_thread_fence (__ATOMIC_ACQUIRE);
	  if (!sequence || sequence <= after || cv_load (&at->sequence) != sequence)
	    continue;
	  copy.sequence = sequence;
	  f (ctx, &copy);
	}
    }
}

/* ---- flows ---- */

static bool
has_address (const cv_endpoint_state_t *e, const cv_addr_t *a, bool ip6)
{
  for (uint8_t i = 0; i < e->config.n_addresses; i++)
    if (e->config.addresses[i].ip6 == ip6 && cv_addr_equal (&e->config.addresses[i].addr, a))
      return true;
  return false;
}

static bool
link_local (const cv_flow_t *f)
{
  return f->ip6 && f->dst.u8[0] == 0xfe && (f->dst.u8[1] & 0xc0) == 0x80;
}

/* side_allows evaluates the policy of one end. */
static cv_judgement_t
side_allows (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, const cv_endpoint_state_t *e, cv_side_t side, const cv_flow_t *f, bool to_node, uint32_t now)
{
  uint32_t epoch = cv_policy_epoch (m); /* before all that the decision depends on */
  const cv_police_t *p = cv_load_acquire (&cv_endpoint_slot (m, sw_if_index)->police);
  if (!p || p->open || e->config.role != CV_ROLE_POD || (to_node && !p->for_node))
    return CV_FREE;
  cv_decision_t d;
  cv_decided_key_t key = cv_decided_key (m, sw_if_index, side, f, to_node);
  if (!cv_decided_find (m, worker, &key, epoch, side, &d))
    {
      cv_ports_t range = { 0, UINT16_MAX };
      d = decide_by_police (m, p, side, f, to_node, &range);
      cv_decided_keep (m, worker, &key, epoch, &d, range);
    }
  if (d.action == CV_RULE_ALLOW)
    return CV_ALLOWED;
  cv_add (&((cv_owner_t *) cv_pool_at (&m->owners, e->owner))->denied[side], 1);
  report (m, worker, sw_if_index, side, f, &d, now);
  return CV_DENIED;
}

/* neighbours reports whether a packet belongs to neighbour or router discovery. Such packets never leave the link. */
static bool
neighbours (const cv_flow_t *f)
{
  return f->proto == CV_PROTO_ICMP6 && (f->icmp_type == 133 || f->icmp_type == 135 || f->icmp_type == 136);
}

typedef enum
{
  ORDINARY,
  EXEMPT, /* from a pod to itself, to a link-local address, or of neighbour discovery */
  FROM_NODE,
  TO_NODE,
} kind_t;

/* kind_of classifies a flow. Flows from the node itself to its pods are allowed. Flows from pods to their node are allowed
 * unless a policy of the pod applies to them. */
static kind_t
kind_of (const cv_main_t *m, uint32_t from, const cv_endpoint_state_t *client, const cv_flow_t *f, const cv_map_slots_t *addresses, uint32_t hash)
{
  bool pod = client && client->config.role == CV_ROLE_POD;
  if (client && client->config.role == CV_ROLE_HOST && has_address (client, &f->src, f->ip6))
    return FROM_NODE;
  /* VPP itself terminates packets from a pod to a link-local address */
  if (pod && link_local (f))
    return EXEMPT;
  uint32_t at = hash, to;
  while (cv_address_next (m, addresses, hash, &f->dst, f->ip6, &at, &to))
    {
      const cv_endpoint_state_t *e = cv_endpoint (m, to);
      if (to == from)
	return EXEMPT;
      if (e && e->config.role == CV_ROLE_HOST)
	return pod && !neighbours (f) ? TO_NODE : EXEMPT;
    }
  return ORDINARY;
}

/* answered_under_policy reports whether the answers of a pod that has the destination address are judged, unless they belong to
 * a connection. */
static bool
answered_under_policy (const cv_main_t *m, const cv_flow_t *f, const cv_map_slots_t *addresses, uint32_t hash)
{
  uint32_t at = hash, to;
  while (cv_address_next (m, addresses, hash, &f->dst, f->ip6, &at, &to))
    {
      const cv_police_t *p = cv_load_acquire (&cv_endpoint_slot (m, to)->police);
      if (p && p->for_node)
	return true;
    }
  return false;
}

cv_judgement_t
cv_judge (cv_main_t *m, uint32_t worker, uint32_t from, const cv_flow_t *f, uint32_t now)
{
  if (cv_likely (!cv_load (&m->n_policed)))
    return CV_FREE;
  const cv_map_slots_t *addresses = cv_load_acquire (&m->address_map.slots);
  uint32_t hash = cv_address_hash (m, &f->dst, f->ip6), at = hash, to;
  const cv_endpoint_state_t *client = from == CV_NO_INDEX ? NULL : cv_endpoint (m, from);
  switch (kind_of (m, from, client, f, addresses, hash))
    {
    case EXEMPT:
      return CV_FREE;
    case FROM_NODE:
      return answered_under_policy (m, f, addresses, hash) ? CV_ALLOWED : CV_FREE;
    case TO_NODE:
      return side_allows (m, worker, from, client, CV_EGRESS, f, true, now);
    case ORDINARY:
      break;
    }
  cv_judgement_t all = client ? side_allows (m, worker, from, client, CV_EGRESS, f, false, now) : CV_FREE;
  /* two interfaces may have the same address for a moment: both must allow the flow */
  while (all != CV_DENIED && cv_address_next (m, addresses, hash, &f->dst, f->ip6, &at, &to))
    {
      const cv_endpoint_state_t *e = cv_endpoint (m, to);
      cv_judgement_t one = e ? side_allows (m, worker, to, e, CV_INGRESS, f, false, now) : CV_FREE;
      all = one > all ? one : all;
    }
  return all;
}

static bool
has_policy (const cv_main_t *m, uint32_t sw_if_index)
{
  const cv_police_t *p = cv_endpoint (m, sw_if_index) ? cv_load_acquire (&cv_endpoint_slot (m, sw_if_index)->police) : NULL;
  return p && !p->open;
}

/* any_has_policy checks all interfaces that have an address: for a moment there may be two. */
static bool
any_has_policy (const cv_main_t *m, const cv_map_slots_t *addresses, const cv_addr_t *a, bool ip6)
{
  uint32_t hash = cv_address_hash (m, a, ip6), at = hash, i;
  while (cv_address_next (m, addresses, hash, a, ip6, &at, &i))
    if (has_policy (m, i))
      return true;
  return false;
}

bool
cv_never_judged (const cv_main_t *m, uint32_t from, const cv_flow_t *f)
{
  if (cv_likely (!cv_load (&m->n_policed)))
    return true;
  const cv_map_slots_t *addresses = cv_load_acquire (&m->address_map.slots);
  if (kind_of (m, from, cv_endpoint (m, from), f, addresses, cv_address_hash (m, &f->dst, f->ip6)) != ORDINARY)
    return false;
  /* an endpoint with policy is a pod, and a pod sends only from its own addresses */
  return !any_has_policy (m, addresses, &f->src, f->ip6) && !any_has_policy (m, addresses, &f->dst, f->ip6);
}

/* ---- UDP flows that are older than the policy of their ends ---- */

static cv_owner_t *
pod_at (const cv_main_t *m, uint32_t sw_if_index)
{
  const cv_endpoint_state_t *e = sw_if_index == CV_NO_INDEX ? NULL : cv_endpoint (m, sw_if_index);
  return e && e->config.role == CV_ROLE_POD ? cv_pool_at (&m->owners, e->owner) : NULL;
}

void
cv_note_unjudged (cv_main_t *m, uint32_t sw_if_index, uint32_t now)
{
  cv_owner_t *o = pod_at (m, sw_if_index);
  if (o && cv_load (&o->unjudged) != now && !has_policy (m, sw_if_index))
    cv_store (&o->unjudged, now);
}

bool
cv_was_unjudged (const cv_main_t *m, uint32_t sw_if_index, uint32_t now)
{
  const cv_owner_t *o = pod_at (m, sw_if_index);
  uint32_t at = o ? cv_load (&o->unjudged) : 0;
  return at && (int32_t) (now - at) < (int32_t) (cv_load (&m->config.udp_stream) * CV_TICKS_PER_SECOND) && has_policy (m, sw_if_index);
}

/* ---- connections ---- */

/* flow_of returns the flow of a connection. */
static cv_flow_t
flow_of (const cv_connection_t *c)
{
  cv_flow_t f = { .src = c->key[0].src, .dst = c->key[1].src, .sport = c->key[0].sport, .dport = c->key[1].sport, .proto = c->key[0].proto, .ip6 = c->key[0].ip6 };
  if (f.proto == CV_PROTO_ICMP || f.proto == CV_PROTO_ICMP6)
    {
      f.sport = f.dport = 0;
      f.icmp_type = c->flags & CV_CONN_ICMP_REPLY ? (f.ip6 ? 129 : 0) : (f.ip6 ? 128 : 8);
    }
  return f;
}

static uint32_t
client_interface (const cv_main_t *m, const cv_connection_t *c)
{
  if (c->flags & CV_CONN_OF_BACKEND)
    return cv_interface_of (m, &c->key[0].src, c->key[0].ip6);
  if (c->owner == CV_NO_INDEX)
    return CV_NO_INDEX;
  return ((cv_owner_t *) cv_pool_at (&m->owners, c->owner))->sw_if_index;
}

static bool
owner_alive (const cv_main_t *m, const cv_connection_t *c)
{
  return c->owner == CV_NO_INDEX || cv_load (&((cv_owner_t *) cv_pool_at (&m->owners, c->owner))->alive);
}

/* cv_connection_allowed reports whether policy allows a connection. It judges the connection again if policy has changed. */
bool
cv_connection_allowed (cv_main_t *m, uint32_t worker, cv_connection_t *c, uint32_t now)
{
  uint32_t epoch = cv_policy_epoch (m), judged = cv_load (&c->judged);
  if (judged >> 2 != (epoch & UINT32_MAX >> 2))
    {
      cv_flow_t f = flow_of (c);
      cv_judgement_t j = owner_alive (m, c) ? cv_judge (m, worker, client_interface (m, c), &f, now) : cv_load (&m->n_policed) ? CV_DENIED : CV_FREE;
      judged = cv_judged (epoch, j);
      cv_store (&c->judged, judged);
    }
  return !(judged & CV_JUDGED_DENIED);
}

/* opens_backwards reports whether a packet starts something new against the direction of its connection. ICMP: each packet that
 * is neither a request of the client nor an answer to the client. */
static bool
opens_backwards (const cv_packet_t *p, const cv_connection_t *c, uint32_t direction)
{
  switch (p->proto)
    {
    case CV_PROTO_TCP:
      return direction && (p->tcp_flags & (CV_TCP_SYN | CV_TCP_ACK)) == CV_TCP_SYN;
    case CV_PROTO_SCTP:
      return direction && p->l4 && (uint32_t) p->l4 + 12 < p->len && p->ip[p->l4 + 12] == 1;
    case CV_PROTO_ICMP:
    case CV_PROTO_ICMP6:
      {
	bool request = p->tcp_flags == (p->tuple.ip6 ? 128 : 8);
	return c->flags & CV_CONN_ICMP_REPLY ? direction || request : request == (bool) direction;
      }
    default:
      return false;
    }
}

/* against returns the flow of such a packet: an echo reply belongs to the request in the opposite direction. */
static cv_flow_t
against (const cv_packet_t *p, const cv_connection_t *c, uint32_t direction)
{
  cv_flow_t f = flow_of (c);
  bool icmp = p->proto == CV_PROTO_ICMP || p->proto == CV_PROTO_ICMP6;
  bool request = p->tcp_flags == (p->tuple.ip6 ? 128 : 8);
  if (icmp)
    f.icmp_type = f.ip6 ? 128 : 8;
  if (icmp ? request == !direction : !direction)
    return f;
  cv_addr_t a = f.src;
  uint16_t port = f.sport;
  f.src = f.dst;
  f.dst = a;
  f.sport = f.dport;
  f.dport = port;
  return f;
}

/* cv_interface_of returns the interface from which packets of an address come: that of a pod or of the node itself; CV_NO_INDEX:
 * another node. */
uint32_t
cv_interface_of (const cv_main_t *m, const cv_addr_t *a, bool ip6)
{
  uint32_t hash = cv_address_hash (m, a, ip6), at = hash, sw_if_index;
  return cv_address_next (m, cv_load_acquire (&m->address_map.slots), hash, a, ip6, &at, &sw_if_index) ? sw_if_index : CV_NO_INDEX;
}

bool
cv_may_pass (cv_main_t *m, uint32_t worker, const cv_packet_t *p, cv_connection_t *c, uint32_t direction, uint32_t now)
{
  if (!cv_connection_allowed (m, worker, c, now))
    return false;
  if (cv_likely (!(cv_load (&c->judged) & CV_JUDGED_POLICED) || !opens_backwards (p, c, direction)))
    return true;
  cv_flow_t f = against (p, c, direction);
  return cv_judge (m, worker, cv_interface_of (m, &f.src, f.ip6), &f, now) != CV_DENIED;
}
