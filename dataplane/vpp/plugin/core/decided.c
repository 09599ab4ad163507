/* What a worker has decided on flows lately. The rules of a policy may be many, and flows between the same two ends are, too: each of them but the first
 * costs the same, however many rules there are. */
#include "policy.h"

cv_decided_key_t
cv_decided_key (const cv_main_t *m, uint32_t sw_if_index, cv_side_t side, const cv_flow_t *f, bool to_node)
{
  bool icmp = f->proto == CV_PROTO_ICMP || f->proto == CV_PROTO_ICMP6;
  uint16_t kind = icmp ? (uint16_t) (f->icmp_type << 8 | f->icmp_code) : f->dport;
  cv_decided_key_t k = { .src = f->src, .dst = f->dst };
  k.rest = (uint64_t) sw_if_index << 32 | (uint64_t) kind << 16 | (uint64_t) f->proto << 8 | (uint64_t) side << 2 | (uint64_t) to_node << 1 | f->ip6;
  k.place = cv_hash_addr (m, &k.src, (uint64_t) cv_hash_addr (m, &k.dst, k.rest) << 32 | (uint32_t) k.rest) & (CV_DECIDED - 1);
  return k;
}

bool
cv_decided_find (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, cv_side_t side, cv_decision_t *d)
{
  const cv_decided_t *v = &m->workers[worker].decided[k->place];
  if (!v->action || v->epoch != epoch || v->rest != k->rest || !cv_addr_equal (&v->src, &k->src) || !cv_addr_equal (&v->dst, &k->dst))
    return false;
  *d = (cv_decision_t){ .action = v->action, .policy = v->policy, .index = v->index, .rule = v->rule };
  if (d->rule == CV_NO_INDEX)
    return true;
  cv_rules_t *rules = cv_load_acquire (&((cv_policy_state_t *) cv_pool_at (&m->policies, d->index))->rules);
  if (d->rule < rules->n[side]) /* else policy is changing now */
    cv_add (&rules->rule[(side ? rules->n[0] : 0) + d->rule].matched, 1);
  return true;
}

void
cv_decided_keep (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, const cv_decision_t *d)
{
  if (d->passed) /* several rules count such a flow */
    return;
  m->workers[worker].decided[k->place] = (cv_decided_t){
    .src = k->src, .dst = k->dst, .rest = k->rest, .policy = d->policy, .epoch = epoch, .index = d->index, .rule = d->rule, .action = d->action
  };
}
