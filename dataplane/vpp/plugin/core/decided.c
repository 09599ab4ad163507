/* Recent policy decisions of a worker. A policy may have many rules, and there may be many flows between the same two ends. With this
 * cache, each flow except the first has the same cost, however many rules there are. A decision holds for all ports that no rule
 * distinguishes. */
#include "policy.h"

#define RANGES 4 /* number of places for port ranges of one pair of ends: a power of two */

cv_decided_key_t
cv_decided_key (const cv_main_t *m, uint32_t sw_if_index, cv_side_t side, const cv_flow_t *f, bool to_node)
{
  bool icmp = f->proto == CV_PROTO_ICMP || f->proto == CV_PROTO_ICMP6;
  cv_decided_key_t k = { .src = f->src, .dst = f->dst, .port = icmp ? (uint16_t) (f->icmp_type << 8 | f->icmp_code) : cv_host_port (f->dport) };
  k.rest = (uint64_t) sw_if_index << 32 | (uint64_t) f->proto << 8 | (uint64_t) side << 2 | (uint64_t) to_node << 1 | f->ip6;
  uint32_t hash = cv_hash_addr (m, &k.src, (uint64_t) cv_hash_addr (m, &k.dst, k.rest) << 32 | (uint32_t) k.rest);
  k.near = (hash + k.port * 0x9e3779b1u) & (CV_DECIDED - 1);
  k.far = hash >> 16 & (CV_DECIDED - 1);
  return k;
}

static inline bool
holds (const cv_decided_t *v, const cv_decided_key_t *k, uint32_t epoch)
{
  return v->action && v->epoch == epoch && v->rest == k->rest && v->first <= k->port && k->port <= v->last && cv_addr_equal (&v->src, &k->src) &&
	 cv_addr_equal (&v->dst, &k->dst);
}

bool
cv_decided_find (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, cv_side_t side, cv_decision_t *d)
{
  const cv_decided_t *all = m->workers[worker].decided, *v = &all[k->near];
  for (uint32_t i = 0; !holds (v, k, epoch); i++)
    {
      if (i == RANGES)
	return false;
      v = &all[k->far ^ i];
    }
  *d = (cv_decision_t){ .action = v->action, .index = v->index, .rule = v->rule };
  if (d->rule == CV_NO_INDEX)
    return true;
  const cv_policy_state_t *s = cv_pool_at (&m->policies, d->index);
  cv_rules_t *rules = cv_load_acquire (&s->rules);
  d->policy = s->id;
  if (d->rule < rules->n[side]) /* otherwise policy is changing at this moment */
    cv_add (&rules->rule[(side ? rules->n[0] : 0) + d->rule].matched, 1);
  return true;
}

void
cv_decided_keep (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, const cv_decision_t *d, cv_ports_t range)
{
  if (d->passed) /* several rules count such a flow */
    return;
  bool icmp = (k->rest >> 8 & 0xff) == CV_PROTO_ICMP || (k->rest >> 8 & 0xff) == CV_PROTO_ICMP6;
  if (icmp)
    range = (cv_ports_t){ k->port, k->port };
  uint32_t place = range.first == range.last ? k->near : k->far ^ (range.first * 0x9e3779b1u >> 16 & (RANGES - 1));
  m->workers[worker].decided[place] = (cv_decided_t){
    .src = k->src, .dst = k->dst, .rest = k->rest, .epoch = epoch, .index = d->index, .rule = d->rule, .first = range.first, .last = range.last,
    .action = d->action
  };
}
