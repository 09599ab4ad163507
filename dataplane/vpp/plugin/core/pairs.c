/* Selection of the address pairs that can be stored, and the addresses of frontends and backends on which this depends. */
#include "pairs.h"
#include "policy.h"

static uint32_t *
served_at (cv_main_t *m, cv_served_t what, const cv_addr_t *a, bool ip6)
{
  return &m->served[what][cv_hash_addr (m, a, ip6) % CV_SERVED];
}

void
cv_served_add (cv_main_t *m, cv_served_t what, const cv_addr_t *a, bool ip6)
{
  cv_add (served_at (m, what, a, ip6), 1);
}

void
cv_served_del (cv_main_t *m, cv_served_t what, const cv_addr_t *a, bool ip6)
{
  cv_add (served_at (m, what, a, ip6), -1u);
}

/* may_be_served reports whether the address is that of a frontend or a backend, or has the same hash as one. */
static bool
may_be_served (const cv_main_t *m, cv_served_t what, const cv_addr_t *a, bool ip6)
{
  return cv_load (&m->served[what][cv_hash_addr (m, a, ip6) % CV_SERVED]);
}

/* cv_passes_by_pair excludes rare cases, and packets for which more than the addresses counts: packets to or from a machine that is not
 * a pod, and packets of the host. */
bool
cv_passes_by_pair (const cv_main_t *m, const cv_packet_t *p, const cv_endpoint_state_t *e)
{
  const cv_tuple_t *t = &p->tuple;
  if (p->proto != CV_PROTO_TCP && p->proto != CV_PROTO_UDP)
    return false;
  if (e->config.role == CV_ROLE_HOST || may_be_served (m, CV_SERVED_FRONTEND, &t->dst, t->ip6))
    return false;
  /* the connection of a pod to a backend is stored in the table */
  if (e->config.role == CV_ROLE_POD && may_be_served (m, CV_SERVED_BACKEND, &t->dst, t->ip6))
    return false;
  if (cv_class_of (m, &t->src, t->ip6) != CV_CLASS_POD || cv_class_of (m, &t->dst, t->ip6) != CV_CLASS_POD)
    return false;
  cv_flow_t f = cv_flow_of (p);
  return cv_never_judged (m, p->sw_if_index, &f);
}
