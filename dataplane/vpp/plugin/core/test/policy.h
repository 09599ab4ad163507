/* Network policy for the tests: helper functions that create sets, policies and the policies of endpoints. */
#ifndef CONTIV_TEST_POLICY_H
#define CONTIV_TEST_POLICY_H

#include "../policy.h"
#include "world.h"

static inline void
set_of (net_t *n, uint64_t id, cv_set_kind_t kind)
{
  char name[CV_NAME_LEN] = "set";
  check (cv_set_set (n->m, id, name, kind) == CV_OK);
}

static inline cv_set_member_t
network_member (const char *a, uint8_t len)
{
  return (cv_set_member_t){ .prefix = { .addr = addr (a), .len = len, .ip6 = is6 (a) } };
}

static inline cv_result_t
member (net_t *n, uint64_t set, const char *a, bool add)
{
  cv_set_member_t e = network_member (a, is6 (a) ? 128 : 32);
  return cv_set_member_set (n->m, set, &e, add);
}

static inline cv_result_t
port_member (net_t *n, uint64_t set, const char *a, uint8_t proto, uint16_t port, bool add)
{
  cv_set_member_t e = network_member (a, is6 (a) ? 128 : 32);
  e.proto = proto;
  e.port = htons (port);
  return cv_set_member_set (n->m, set, &e, add);
}

/* policy creates a policy with rules for one side; the other side has none. */
static inline cv_result_t
policy (net_t *n, uint64_t id, cv_side_t side, const cv_rule_t *rules, uint32_t count)
{
  cv_policy_t p = { .name = "ns/policy" };
  p.n[side] = count;
  p.rules[side] = rules;
  return cv_policy_set (n->m, id, &p);
}

/* police gives an endpoint one tier for each side whose policy is not 0; each tier ends with deny. */
static inline cv_result_t
police (net_t *n, uint32_t sw_if_index, uint64_t ingress, uint64_t egress)
{
  cv_tier_item_t items[2][2] = { { { .policy = ingress }, { .action = CV_RULE_DENY } }, { { .policy = egress }, { .action = CV_RULE_DENY } } };
  cv_endpoint_policy_t p = { .name = "ns/pod", .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .items = { items[0], items[1] } };
  p.n[0] = ingress ? 2 : 0;
  p.n[1] = egress ? 2 : 0;
  return cv_endpoint_policy_set (n->m, sw_if_index, &p);
}

static inline cv_result_t
closed (net_t *n, uint32_t sw_if_index)
{
  cv_endpoint_policy_t p = { .name = "ns/pod", .otherwise = { CV_RULE_DENY, CV_RULE_DENY } };
  return cv_endpoint_policy_set (n->m, sw_if_index, &p);
}

/* allow returns a rule that allows a set of peers to a port. */
static inline cv_rule_t
allow (uint64_t source, uint64_t destination, uint8_t proto, uint16_t port)
{
  cv_rule_t r = { .action = CV_RULE_ALLOW, .proto = proto, .source = source, .destination = destination };
  if (port)
    r.n_ports = 1, r.ports[0].first = r.ports[0].last = port;
  return r;
}

/* set_of_a creates set 100 with the addresses of A. */
static inline void
set_of_a (net_t *n)
{
  set_of (n, 100, CV_SET_NETWORKS);
  for (int ip6 = 0; ip6 < 2; ip6++)
    check (member (n, 100, A[ip6], true) == CV_OK);
}

/* admit gives B policy 1, whose only ingress rule is r. */
static inline void
admit (net_t *n, cv_rule_t r)
{
  check (policy (n, 1, CV_INGRESS, &r, 1) == CV_OK && police (n, POD_B, 1, 0) == CV_OK);
}

#endif
