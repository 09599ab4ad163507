/* What the files of network policy share: sets, policies, and what an endpoint has of them. judge.c decides. */
#ifndef CONTIV_CV_POLICY_H
#define CONTIV_CV_POLICY_H

#include "internal.h"

/* ---- sets: sets.c ---- */

/* A member of any set, 40 bytes. All are in one table, under their set and what they are. */
typedef struct
{
  uint32_t next_free;
  uint32_t set;
  uint32_t before, after; /* in the list of the set; CV_NO_INDEX: the end */
  cv_addr_t addr;
  uint16_t port; /* wire */
  uint8_t len, proto;
  bool ip6;
} cv_member_state_t;

_Static_assert (sizeof (cv_member_state_t) <= 40, "a member and its places in the table take 56 bytes at most");

/* A place is a member's index plus 1; 0 is free. */
typedef struct cv_set_slots
{
  uint32_t mask, used; /* used counts places that are dead */
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
  uint32_t users; /* rules */
  uint32_t n, first;
  uint64_t lengths[2][3]; /* of prefixes, by family, as bits */
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

/* cv_set_known: what the set contains is known. */
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

/* From a port on, which rule of a class is the first that has it; CV_NO_INDEX: none. */
typedef struct
{
  uint16_t from;
  uint32_t rule;
} cv_port_step_t;

/* Rules that differ in action and ports only. */
typedef struct
{
  uint32_t first; /* of its rules */
  uint32_t start, n; /* in the order of the index */
  uint32_t n_steps;
  cv_port_step_t *steps; /* NULL: few rules */
} cv_rule_class_t;

/* The index of a side, index.c. Rules are numbered from 0 in the side. */
typedef struct
{
  uint32_t n;
  bool by_port; /* a rule has a set of ports */
  uint32_t n_bounds;
  uint16_t *bounds; /* 0, and the ports at which what rules name begins or has ended, in order */
  uint32_t *order; /* rules by class, in a class by number */
  cv_rule_class_t classes[]; /* by their first rules */
} cv_index_t;

typedef struct
{
  uint32_t n[2];
  cv_index_t *index[2];
  cv_rule_state_t rule[]; /* ingress, then egress */
} cv_rules_t;

/* Ports for which a decision holds. */
typedef struct
{
  uint16_t first, last;
} cv_ports_t;

/* cv_index_narrow cuts a range to the ports around one port that no rule of the side distinguishes from it. */
void cv_index_narrow (const cv_index_t *x, uint16_t port, cv_ports_t *range);
cv_index_t *cv_index_make (const cv_rule_state_t *rules, uint32_t n);
void cv_index_free (cv_index_t *x);
void cv_index_retire (cv_main_t *m, cv_index_t *x);
/* cv_class_rule is the first rule of a class with steps that has a port, CV_NO_INDEX: none. */
uint32_t cv_class_rule (const cv_rule_class_t *c, uint16_t port);

typedef struct
{
  uint32_t next_free;
  bool defined; /* false: deleted, and endpoints still have it */
  uint32_t users; /* endpoints */
  uint64_t id;
  cv_rules_t *rules;
  char name[CV_NAME_LEN];
} cv_policy_state_t;

typedef struct
{
  uint32_t policy; /* CV_NO_INDEX: the end of a tier */
  uint8_t action;  /* of a policy: CV_RULE_PASS, it holds for what the pod sends to its node, too */
} cv_item_t;

typedef struct cv_police
{
  bool open; /* it lets everything through, on both sides: as if there were none */
  bool for_node; /* some policy holds for what the pod sends to its node */
  char name[CV_NAME_LEN];
  uint8_t otherwise[2];
  uint32_t n[2];
  cv_item_t item[]; /* ingress, then egress */
} cv_police_t;

/* An address of a pod, or of the node itself: where packets to it go. */
typedef struct
{
  uint32_t next_free;
  uint32_t sw_if_index;
  cv_addr_t addr;
  bool ip6;
} cv_address_t;

/* cv_addresses_set makes the addresses of an endpoint those of e, NULL: none. */
bool cv_addresses_set (cv_main_t *m, uint32_t sw_if_index, const cv_endpoint_t *old, const cv_endpoint_t *e);
void cv_police_remove (cv_main_t *m, uint32_t sw_if_index);
void cv_policies_free (cv_main_t *m);

static inline uint32_t
cv_address_hash (const cv_main_t *m, const cv_addr_t *a, bool ip6)
{
  return cv_hash_addr (m, a, ip6);
}

/* Walks the endpoints that have an address: for (i = hash; cv_address_next (m, slots, hash, a, ip6, &i, &sw_if_index);) */
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

/* cv_policy_changed: all connections are judged again with their next packet. */
static inline void
cv_policy_changed (cv_main_t *m)
{
  __atomic_fetch_add (&m->policy_epoch, 1, __ATOMIC_RELEASE);
}

/* ---- judging: judge.c ---- */

/* A flow, with the addresses that its client and its backend use. */
typedef struct
{
  cv_addr_t src, dst;
  uint16_t sport, dport; /* wire */
  uint8_t proto, icmp_type, icmp_code;
  bool ip6;
} cv_flow_t;

typedef enum
{
  CV_FREE, /* neither end has policy, or policy does not hold between them */
  CV_ALLOWED,
  CV_DENIED,
} cv_judgement_t;

/* What the policy of one side of an endpoint makes of a flow. */
typedef struct
{
  uint8_t action;
  bool passed;		/* a rule has passed it on */
  uint64_t policy;	/* 0: none of the rules decided */
  uint32_t index, rule; /* the policy's, and the rule's in its side; rule CV_NO_INDEX: none */
} cv_decision_t;

/* What a decision depends on, besides policy. */
typedef struct
{
  cv_addr_t src, dst;
  uint64_t rest;
  uint16_t port; /* for ICMP the type and code */
  uint32_t near, far; /* places among what a worker has decided: for this port, and for ranges of ports */
} cv_decided_key_t;

cv_decided_key_t cv_decided_key (const cv_main_t *m, uint32_t sw_if_index, cv_side_t side, const cv_flow_t *f, bool to_node);
/* cv_decided_find is what was decided on such a flow, if that was on policy of this epoch; the rule counts it. */
bool cv_decided_find (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, cv_side_t side, cv_decision_t *d);
/* cv_decided_keep keeps a decision and the ports for which it holds. epoch was read before all that it depends on. */
void cv_decided_keep (cv_main_t *m, uint32_t worker, const cv_decided_key_t *k, uint32_t epoch, const cv_decision_t *d, cv_ports_t range);

/* cv_judge decides on a flow whose client is behind an interface; CV_NO_INDEX: behind another node. */
cv_judgement_t cv_judge (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, const cv_flow_t *f, uint32_t now);

/* cv_never_judged: no policy holds for what an interface sends to an address, nor for what comes back, whatever the ports. It may be false where that is so. */
bool cv_never_judged (const cv_main_t *m, uint32_t sw_if_index, const cv_flow_t *f);

/* What a connection was judged under: policy_epoch << 2, and these. */
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

/* cv_may_pass judges a packet of a connection, and the connection if policy has changed. It is for those that cv_judged_open does
 * not let pass at once. */
bool cv_may_pass (cv_main_t *m, uint32_t worker, const cv_packet_t *p, cv_connection_t *c, uint32_t direction, uint32_t now);
/* cv_interface_of is where packets of an address come from: a pod's or the node's own interface, CV_NO_INDEX: another node. */
uint32_t cv_interface_of (const cv_main_t *m, const cv_addr_t *a, bool ip6);
bool cv_connection_allowed (cv_main_t *m, uint32_t worker, cv_connection_t *c, uint32_t now);

/* cv_judged_open: the connection may pass, and the packet is not one that cv_may_pass has to look at. */
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
