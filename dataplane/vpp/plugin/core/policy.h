/* Types and functions that the network policy files share: sets, policies, and the policy of an endpoint. judge.c evaluates them. */
#ifndef CONTIV_CV_POLICY_H
#define CONTIV_CV_POLICY_H

#include "internal.h"

/* ---- sets: sets.c ---- */

/* A member of a set, 40 bytes. The members of all sets are in one hash table, keyed by their set and their value. */
typedef struct
{
  uint32_t next_free;
  uint32_t set;
  uint32_t before, after; /* doubly linked list of the set's members; CV_NO_INDEX: the end */
  cv_addr_t addr;
  uint16_t port; /* wire */
  uint8_t len, proto;
  bool ip6;
} cv_member_state_t;

_Static_assert (sizeof (cv_member_state_t) <= 40, "a member and its places in the table take 56 bytes at most");

/* A slot holds a member's index plus 1; 0 means free. */
typedef struct cv_set_slots
{
  uint32_t mask, used; /* used includes the slots of removed members */
  uint32_t slots[];
} cv_set_slots_t;

typedef struct
{
  uint8_t len;
  uint32_t n;
} cv_length_t;

typedef struct
{
  uint32_t next_free;
  bool defined, overfull;
  uint8_t kind;
  uint64_t id;
  uint32_t users; /* number of rules that refer to the set */
  uint32_t n, first;
  uint64_t lengths[2][3]; /* prefix lengths in use, by family, as bits */
  cv_length_t *counts[2];
  uint32_t n_counts[2];
  char name[CV_NAME_LEN];
} cv_set_state_t;

uint32_t cv_set_get (cv_main_t *m, uint64_t id, bool make);
void cv_set_put (cv_main_t *m, uint32_t index);
void cv_sets_free (cv_main_t *m);

static inline const cv_set_state_t *
cv_set_at (const cv_main_t *m, uint32_t i)
{
  return cv_pool_at (&m->sets, i);
}

/* cv_set_known reports whether the content of the set is complete: the set is defined and has not exceeded its maximum. */
static inline bool
cv_set_known (const cv_set_state_t *s)
{
  return cv_load_acquire (&s->defined) && !cv_load (&s->overfull);
}

bool cv_set_contains (const cv_main_t *m, uint32_t set, const cv_addr_t *a, bool ip6);
bool cv_set_contains_port (const cv_main_t *m, uint32_t set, const cv_addr_t *a, bool ip6, uint8_t proto, uint16_t wire);

/* ---- policies and endpoints: policy.c ---- */

typedef struct
{
  cv_rule_t rule;
  uint32_t source, destination, service; /* sets; CV_NO_INDEX: any */
  uint64_t matched;
} cv_rule_state_t;

/* From this port on, rule is the first rule of a class that matches the port; CV_NO_INDEX: none. */
typedef struct
{
  uint16_t from;
  uint32_t rule;
} cv_port_step_t;

/* Rules that differ only in action and ports. */
typedef struct
{
  uint32_t first; /* the first of its rules */
  uint32_t start, n; /* the range of its rules in order of the index */
  uint32_t n_steps;
  cv_port_step_t *steps; /* NULL: the class has few rules and is scanned */
} cv_rule_class_t;

/* The index of the rules of one side; index.c. Rules are numbered from 0 in the side. */
typedef struct
{
  uint32_t n;
  bool by_port; /* a rule has a set of ports as a condition */
  uint32_t n_bounds;
  uint16_t *bounds; /* sorted: 0, each port at which a range of a rule begins, and each first port after a range */
  uint32_t *order; /* rules sorted by class, within a class by number */
  cv_rule_class_t classes[]; /* sorted by their first rules */
} cv_index_t;

typedef struct
{
  uint32_t n[2];
  cv_index_t *index[2];
  cv_rule_state_t rule[]; /* ingress rules, then egress rules */
} cv_rules_t;

/* Range of ports for which a decision holds. */
typedef struct
{
  uint16_t first, last;
} cv_ports_t;

/* cv_index_narrow narrows a range to the ports around port that no rule of the side distinguishes from port. */
void cv_index_narrow (const cv_index_t *x, uint16_t port, cv_ports_t *range);
cv_index_t *cv_index_make (const cv_rule_state_t *rules, uint32_t n);
void cv_index_free (cv_index_t *x);
void cv_index_retire (cv_main_t *m, cv_index_t *x);
/* cv_class_rule returns the first rule of a class with steps that matches a port, or CV_NO_INDEX. */
uint32_t cv_class_rule (const cv_rule_class_t *c, uint16_t port);

typedef struct
{
  uint32_t next_free;
  bool defined; /* false: the policy is deleted, and endpoints still refer to it */
  uint32_t users; /* number of endpoints that refer to it */
  uint64_t id;
  cv_rules_t *rules;
  char name[CV_NAME_LEN];
} cv_policy_state_t;

typedef struct
{
  uint32_t policy; /* CV_NO_INDEX: the end of a tier */
  uint8_t action;  /* with a policy: CV_RULE_PASS if the policy also applies to traffic from the pod to its node */
} cv_item_t;

typedef struct cv_police
{
  bool open; /* allows everything on both sides, like an endpoint without policy */
  bool for_node; /* at least one policy also applies to traffic from the pod to its node */
  char name[CV_NAME_LEN];
  uint8_t otherwise[2];
  uint32_t n[2];
  cv_item_t item[]; /* ingress items, then egress items */
} cv_police_t;

/* An address of a pod or of the node itself, and the interface to which packets to it go. */
typedef struct
{
  uint32_t next_free;
  uint32_t sw_if_index;
  cv_addr_t addr;
  bool ip6;
} cv_address_t;

/* cv_addresses_set replaces the addresses of an endpoint by those of e; NULL: removes all. */
bool cv_addresses_set (cv_main_t *m, uint32_t sw_if_index, const cv_endpoint_t *old, const cv_endpoint_t *e);
void cv_police_remove (cv_main_t *m, uint32_t sw_if_index);
void cv_policies_free (cv_main_t *m);

static inline uint32_t
cv_address_hash (const cv_main_t *m, const cv_addr_t *a, bool ip6)
{
  return cv_hash_addr (m, a, ip6);
}

/* Iterates over the endpoints that have an address: for (i = hash; cv_address_next (m, slots, hash, a, ip6, &i, &sw_if_index);) */
static inline bool
cv_address_next (const cv_main_t *m, const cv_map_slots_t *s, uint32_t hash, const cv_addr_t *a, bool ip6, uint32_t *i, uint32_t *sw_if_index)
{
  uint32_t index;
  while (cv_map_next (s, hash, i, &index))
    {
      const cv_address_t *at = cv_pool_at (&m->addresses, index);
      if (at->ip6 == ip6 && cv_addr_equal (&at->addr, a))
	{
	  *sw_if_index = at->sw_if_index;
	  return true;
	}
    }
  return false;
}

/* cv_policy_changed increments the policy epoch. Each connection is then judged again at its next packet. */
static inline void
cv_policy_changed (cv_main_t *m)
{
  __atomic_fetch_add (&m->policy_epoch, 1, __ATOMIC_RELEASE);
}

/* ---- judging: judge.c ---- */

/* A flow with the addresses of its client and its backend, before source NAT and after service translation. */
typedef struct
{
  cv_addr_t src, dst;
  uint16_t sport, dport; /* wire */
  uint8_t proto, icmp_type, icmp_code;
  bool ip6;
} cv_flow_t;

typedef enum
{
  CV_FREE, /* neither end has policy, or policy does not apply between them */
  CV_ALLOWED,
  CV_DENIED,
} cv_judgement_t;

/* The result of evaluating the policy of one side of an endpoint for a flow. */
typedef struct
{
  uint8_t action;
  bool passed;		/* a rule has passed the flow to the next tier */
  uint64_t policy;	/* 0: no rule decided */
  uint32_t index, rule; /* index: of the policy; rule: its number in the side, CV_NO_INDEX: none */
} cv_decision_t;

/* The inputs of a decision, except the policy. */
typedef struct
{
  cv_addr_t src, dst;
  uint64_t rest;
  uint16_t port; /* for ICMP: type and code */
  uint32_t near, far; /* places in the worker's cache of decisions: for this port alone, and for port ranges */
} cv_decided_key_t;

cv_decided_key_t cv_decided_key (const cv_main_t *m, uint32_t sw_if_index, cv_side_t side, const cv_flow_t *f, bool to_node);
/* cv_decided_find returns a cached decision for such a flow, if it was made in this policy epoch, and increments the counter of its
 * rule. */
bool cv_decided_find (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, cv_side_t side, cv_decision_t *d);
/* cv_decided_keep caches a decision and the ports for which it holds. epoch must have been read before all inputs of the decision. */
void cv_decided_keep (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, const cv_decision_t *d, cv_ports_t range);

/* cv_judge evaluates policy for a flow whose client is behind the interface sw_if_index; CV_NO_INDEX: behind another node. */
cv_judgement_t cv_judge (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, const cv_flow_t *f, uint32_t now);

/* cv_never_judged reports whether no policy applies to packets from an interface to an address, nor to the answers, for all ports. It
 * may return false although none applies. */
bool cv_never_judged (const cv_main_t *m, uint32_t sw_if_index, const cv_flow_t *f);

/* Flags in the result of judging a connection, which is stored as policy_epoch << 2 | flags. */
enum
{
  CV_JUDGED_DENIED = 1,
  CV_JUDGED_POLICED = 2,
};

static inline uint32_t
cv_judged (uint32_t epoch, cv_judgement_t j)
{
  return epoch << 2 | (j == CV_DENIED ? CV_JUDGED_DENIED : j == CV_ALLOWED ? CV_JUDGED_POLICED : 0);
}

static inline uint32_t
cv_policy_epoch (const cv_main_t *m)
{
  return cv_load_acquire (&m->policy_epoch);
}

/* cv_may_pass judges a packet of a connection, and also the connection if policy has changed. It is for the packets for which
 * cv_judged_open returns false. */
bool cv_may_pass (cv_main_t *m, uint32_t worker, const cv_packet_t *p, cv_connection_t *c, uint32_t direction, uint32_t now);
/* cv_note_unjudged records that a UDP packet to or from an interface has passed, if the interface is that of a pod without policy. */
void cv_note_unjudged (cv_main_t *m, uint32_t sw_if_index, uint32_t now);
/* cv_was_unjudged reports whether an interface belongs to a pod with policy that may have UDP flows from the time before it had policy. */
bool cv_was_unjudged (const cv_main_t *m, uint32_t sw_if_index, uint32_t now);
/* cv_interface_of returns the interface from which packets of an address come: that of a pod or of the node itself; CV_NO_INDEX: another
 * node. */
uint32_t cv_interface_of (const cv_main_t *m, const cv_addr_t *a, bool ip6);
bool cv_connection_allowed (cv_main_t *m, uint32_t worker, cv_connection_t *c, uint32_t now);

/* cv_judged_open reports whether the connection is allowed and the packet need not be checked by cv_may_pass. */
static inline bool
cv_judged_open (const cv_main_t *m, const cv_packet_t *p, const cv_connection_t *c, uint32_t direction)
{
  uint32_t differs = cv_load (&c->judged) ^ cv_policy_epoch (m) << 2;
  if (cv_likely (!differs))
    return true;
  if (differs != CV_JUDGED_POLICED)
    return false;
  return p->proto == CV_PROTO_UDP || (p->proto == CV_PROTO_TCP && !(direction && p->tcp_flags & CV_TCP_SYN));
}

static inline uint16_t
cv_host_port (uint16_t wire)
{
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (uint16_t) (wire << 8 | wire >> 8) : wire;
}

static inline cv_flow_t
cv_flow_of (const cv_packet_t *p)
{
  const cv_tuple_t *t = &p->tuple;
  cv_flow_t f = { .src = t->src, .dst = t->dst, .sport = t->sport, .dport = t->dport, .proto = p->proto, .ip6 = t->ip6 };
  if (p->proto == CV_PROTO_ICMP || p->proto == CV_PROTO_ICMP6)
    {
      f.sport = f.dport = 0;
      f.icmp_type = p->tcp_flags;
      f.icmp_code = p->icmp_code;
    }
  return f;
}

#endif
