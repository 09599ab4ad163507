/* The core of the contiv plugin: connections, services, source NAT and the source check, independent of VPP.
 *
 * Data path: cv_parse, cv_prefetch, cv_decide, in this order, for each packet, on any number of workers at the same time. cv_recall runs
 * before them and finds the packets that need none of them. Groups of about 8 to 32 packets are fastest: call cv_parse for all of them,
 * then cv_prefetch for all, then cv_decide for all.
 *
 * Control plane: all other functions, one caller at a time, while workers run. Memory that workers may still read is released by
 * cv_sweep after each of them has called cv_quiesce.
 *
 * README.md in the parent directory describes the rules. All numbers in structs are in host order unless a comment says "wire";
 * addresses and ports are always in wire order. */
#ifndef CONTIV_CV_H
#define CONTIV_CV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CV_NAME_LEN 64
#define CV_ENDPOINT_ADDRESSES 32
#define CV_TUNNEL_PORTS 4
#define CV_SNATS 1024
#define CV_NO_INDEX UINT32_MAX

/* An address of either family, in wire order. IPv4 is in u32[0], the rest is zero. */
typedef union
{
  uint8_t u8[16];
  uint32_t u32[4];
  uint64_t u64[2];
} cv_addr_t;

typedef struct
{
  cv_addr_t addr;
  uint8_t len; /* prefix length */
  bool ip6;
} cv_prefix_t;

typedef enum
{
  CV_ROLE_NONE,
  CV_ROLE_POD,
  CV_ROLE_HOST,
  CV_ROLE_UPLINK,
  CV_ROLE_OVERLAY,
} cv_role_t;

typedef enum
{
  CV_CLASS_OUTSIDE,
  CV_CLASS_POD,
  CV_CLASS_NODE,
} cv_class_t;

typedef enum
{
  CV_ACTION_NONE,
  CV_ACTION_BALANCE,
  CV_ACTION_REJECT,
  CV_ACTION_DROP,
} cv_action_t;

/* Results of the control plane. */
typedef enum
{
  CV_OK = 0,
  CV_INVALID = -1,
  CV_NOT_FOUND = -2,
  CV_NO_MEMORY = -3,
} cv_result_t;

typedef struct
{
  uint32_t connections_max;      /* per family, fixed when the core is created */
  uint32_t set_members_max;	 /* of one set, fixed when the core is created; 0: 1 048 576 */
  uint32_t endpoint_connections; /* 0: 16 384 */
  uint16_t tunnel_ports[CV_TUNNEL_PORTS]; /* host order, 0: unused */
  uint32_t tcp_established, tcp_transitory, udp, udp_stream, icmp, sctp; /* seconds, 0: default */
} cv_config_t;

typedef struct
{
  char name[CV_NAME_LEN];
  cv_role_t role;
  uint32_t egress;
  uint32_t max_connections;
  uint32_t table;    /* of a HOST: routing table for answers to clients behind the host; 0: none, such clients count as the host */
  uint32_t index[2]; /* the shell's FIB index of that table, by family */
  uint8_t n_addresses;
  struct
  {
    cv_addr_t addr;
    bool ip6;
  } addresses[CV_ENDPOINT_ADDRESSES];
} cv_endpoint_t;

typedef struct
{
  char name[CV_NAME_LEN];
  cv_addr_t ip4, ip6; /* zero: none */
  uint16_t port_low, port_high; /* host order, 0: default */
} cv_snat_t;

#define CV_SERVICE_MAGLEV 1
#define CV_BACKEND_MASQ 1
#define CV_BACKEND_KEEP 2 /* no new connections while the service has a backend without this flag */
#define CV_BACKEND_FLAGS (CV_BACKEND_MASQ | CV_BACKEND_KEEP)
#define CV_TARGET_MASQ 1

typedef struct
{
  uint8_t action, flags;
  uint64_t service;
} cv_target_t;

typedef struct
{
  cv_addr_t addr;
  uint16_t port; /* wire */
  uint8_t proto;
  bool ip6;
} cv_frontend_key_t;

typedef struct
{
  char name[CV_NAME_LEN];
  cv_target_t in_cluster, outside;
  uint64_t ranges, affinity_group;
  uint32_t affinity_timeout;
} cv_frontend_t;

typedef struct
{
  cv_addr_t addr;
  uint16_t port; /* wire */
  bool ip6;
  uint8_t flags;
} cv_backend_t;

/* Reasons for which a packet is dropped, and other events that each worker counts. The shell exports them as VPP's error counters. */
#define CV_FOREACH_REASON(_)                                                                                                     \
  _ (PASSED, "passed")                                                                                                           \
  _ (TRANSLATED, "translated")                                                                                                   \
  _ (CREATED, "connections created")                                                                                             \
  _ (SPOOFED, "source that is not the pod's")                                                                                    \
  _ (TUNNEL, "tunnel packet of a pod")                                                                                           \
  _ (MALFORMED, "headers cut off or too many")                                                                                   \
  _ (RANGES, "client outside of the source ranges")                                                                              \
  _ (NO_LOCAL, "no local backend")                                                                                               \
  _ (REJECTED, "rejected, no backend")                                                                                           \
  _ (REJECTED_SILENTLY, "rejected without an answer, too many")                                                                  \
  _ (FULL, "connection table full")                                                                                              \
  _ (LIMIT, "endpoint has too many connections")                                                                                 \
  _ (NO_PORT, "no free port for source NAT")                                                                                     \
  _ (NO_SNAT, "no address for source NAT")                                                                                      \
  _ (POLICY, "denied by network policy")                                                                                         \
  _ (SCTP_FRAGMENT, "SCTP fragment that needs other ports")

typedef enum
{
#define _(name, text) CV_##name,
  CV_FOREACH_REASON (_)
#undef _
    CV_N_REASONS
} cv_reason_t;

typedef enum
{
  CV_VERDICT_PASS,   /* continues along the feature arc, possibly rewritten */
  CV_VERDICT_DROP,
  CV_VERDICT_REJECT, /* the shell builds the answer: cv_reject */
  CV_VERDICT_REASSEMBLE, /* a fragment: for a later fragment the shell fills in the ports; it sets reassembled and calls cv_parse again */
} cv_verdict_t;

/* A tuple, the key of a lookup, in wire order. ICMP echo: the identifier is used as both ports. */
typedef struct
{
  cv_addr_t src, dst;
  uint16_t sport, dport;
  uint8_t proto;
  uint8_t ip6;
  uint16_t zero;
} cv_tuple_t;

typedef struct
{
  /* set by the shell */
  uint8_t *ip;          /* the IP header */
  uint32_t len;         /* bytes that are readable from ip on: those of the first buffer */
  uint32_t sw_if_index; /* of the endpoint */
  bool l4_checksum_offloaded; /* TCP and UDP checksums are computed completely at a later stage: do not change them */
  bool reassembled;     /* the four fields below come from virtual reassembly */
  bool later_fragment;  /* has no transport header; cv_parse also sets it when the packet needs reassembly */
  uint16_t sport, dport; /* wire */
  uint8_t tcp_flags; /* ICMP: the type */
  uint8_t transport; /* protocol of the first fragment's transport header: a later IPv6 fragment may have any value in its header */
  /* set by cv_parse */
  cv_tuple_t tuple; /* for a packet to a service that policy denies, cv_decide writes the backend as destination */
  uint64_t hash;
  uint32_t frag_id; /* fragment identification, wire; fragments only */
  uint16_t l4;    /* offset of the transport header, 0: not in this packet */
  uint16_t inner, inner_l4; /* ICMP errors: offsets of the packet inside and of its transport header */
  uint8_t proto;  /* transport protocol */
  uint8_t verdict; /* CV_VERDICT_PASS: cv_decide continues; any other verdict is final */
  uint8_t reason;
  bool icmp_error;
  bool no_connection; /* protocol without connections, or processing is complete */
  bool stateless;     /* protocol without connections whose packets policy judges one by one */
  uint8_t icmp_code;
  uint32_t table; /* index of the table that routes the packet, or the answer to a rejected packet; CV_NO_INDEX: the interface's table. Also
                   * set by cv_decide */
  /* set by cv_decide */
  uint32_t connection; /* for the trace; CV_NO_INDEX: none */
} cv_packet_t;

typedef struct cv_main cv_main_t;

/* ---- network policy ---- */

typedef enum
{
  CV_RULE_ALLOW = 1,
  CV_RULE_DENY,
  CV_RULE_PASS, /* the next tier decides */
} cv_rule_action_t;

typedef enum
{
  CV_SET_NETWORKS = 1, /* set of prefixes */
  CV_SET_PORTS,	       /* set of (address, protocol, port) */
} cv_set_kind_t;

typedef enum
{
  CV_INGRESS, /* traffic to the endpoint */
  CV_EGRESS,  /* traffic from the endpoint */
} cv_side_t;

typedef struct
{
  cv_prefix_t prefix; /* a host prefix in a set of ports */
  uint8_t proto;
  uint16_t port; /* wire */
} cv_set_member_t;

#define CV_RULE_PORTS	  8
#define CV_RULE_ICMP_TYPE 1
#define CV_RULE_ICMP_CODE 2
#define CV_POLICY_RULES	  16384 /* maximum, both sides together */
#define CV_POLICY_ITEMS	  8192

/* A rule matches a flow that meets all of its conditions. */
typedef struct
{
  uint8_t action;
  uint8_t family; /* 0: any, 4, 6 */
  uint8_t proto;  /* 0: any */
  uint8_t flags;  /* which of the two fields below are conditions */
  uint8_t icmp_type, icmp_code;
  uint8_t n_ports; /* 0: any */
  struct
  {
    uint16_t first, last; /* host order */
  } ports[CV_RULE_PORTS];
  uint64_t source, destination; /* sets of networks; 0: any */
  uint64_t service;		/* set of ports: destination address, protocol and port; 0: any */
} cv_rule_t;

typedef struct
{
  char name[CV_NAME_LEN];
  uint32_t n[2]; /* by side */
  const cv_rule_t *rules[2];
} cv_policy_t;

/* A tier is a sequence of policies, followed by an item with policy 0. The action of that item applies if no rule of the policies
 * matches. */
typedef struct
{
  uint64_t policy;
  uint8_t action;
} cv_tier_item_t;

typedef struct
{
  char name[CV_NAME_LEN];
  uint8_t otherwise[2]; /* by side: ALLOW or DENY if all tiers pass */
  uint32_t n[2];
  const cv_tier_item_t *items[2];
} cv_endpoint_policy_t;

/* A denied flow with the addresses that its ends use, without service translation and source NAT. */
typedef struct
{
  uint64_t sequence; /* counts from 1 */
  uint32_t when;     /* ticks */
  uint32_t sw_if_index; /* endpoint whose policy denies the flow */
  uint8_t side;
  uint8_t proto, icmp_type, icmp_code;
  bool ip6;
  cv_addr_t src, dst;
  uint16_t sport, dport; /* host order */
  uint64_t policy;	 /* 0: no rule denied it, but the end of a tier or of all tiers */
  uint32_t rule;	 /* number of the rule in the policy's side */
} cv_denied_t;

/* cv_new creates the core for a number of workers; it returns NULL if out of memory. The connection table is allocated with the first
 * endpoint. */
cv_main_t *cv_new (const cv_config_t *config, uint32_t n_workers, uint64_t seed);
void cv_free (cv_main_t *m);

/* ---- data path; worker is less than n_workers, now counts tenths of seconds from an arbitrary start ---- */

/* cv_is_tunnel_port reports whether UDP packets to a port, in wire order, are tunnel packets between nodes. */
bool cv_is_tunnel_port (const cv_main_t *m, uint16_t wire);

/* The input of cv_recall for a packet; the fields have the same meaning as in cv_packet_t. */
typedef struct
{
  uint8_t *ip;
  uint32_t len;
  uint32_t sw_if_index;
  bool l4_checksum_offloaded;
} cv_brief_t;

#define CV_RECALL_MAX 32

/* Sets of packets, as bits by packet number. */
typedef struct
{
  uint32_t passed;
  uint32_t translated; /* the subset of passed that was rewritten */
} cv_recalled_t;

/* cv_recall is a fast path in front of cv_parse for TCP and UDP packets of flows that this worker has passed before, in this second and
 * with this configuration. Packets in its result pass, are counted, and need no further processing. The tag of a flow includes the
 * interface and the addresses, so its source has been checked. All other packets are unchanged. n is at most CV_RECALL_MAX; all packets
 * are of one family. */
cv_recalled_t cv_recall (cv_main_t *m, uint32_t worker, const cv_brief_t *packets, uint32_t n, uint32_t now);

/* cv_parse reads the headers, checks source and tunnel port, and computes the tuple and its hash. */
void cv_parse (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t now);
/* cv_prefetch prefetches the cache lines that cv_decide is going to read. */
void cv_prefetch (cv_main_t *m, const cv_packet_t *p);
/* cv_decide looks up or creates the connection, and rewrites the packet in place. Its result is p->verdict and p->reason. */
void cv_decide (cv_main_t *m, uint32_t worker, cv_packet_t *p, uint32_t now);
/* cv_quiesce declares that the worker holds no pointer into the core. Call it once per frame. */
void cv_quiesce (cv_main_t *m, uint32_t worker);

/* cv_check_source does only the source check, for the multicast arcs; true: pass. */
bool cv_check_source (cv_main_t *m, uint32_t worker, cv_packet_t *p);
/* cv_check_arp checks the sender of an ARP packet by protocol address (wire) and hardware address; true: pass. */
bool cv_check_arp (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, uint32_t sender, const uint8_t *hardware);
/* The claim of a neighbour discovery message: address and hardware address. */
typedef struct
{
  cv_addr_t address;
  const uint8_t *hardware; /* NULL: the message has none */
  bool stored;		   /* VPP stores the claim: it has a hardware address and is not a router solicitation from a link-local address */
} cv_claim_t;
/* cv_read_claim reads an IPv6 solicitation (of a neighbour or a router) or neighbour advertisement without extension headers. It returns
 * false for other messages and for truncated ones. */
bool cv_read_claim (const uint8_t *ip, uint32_t len, cv_claim_t *claim);
/* cv_may_store_neighbour counts a claim that VPP is about to store. It returns false if there are too many in this second. Each address
 * of a pod's endpoint and of a node has a budget of its own, as does each address that the caller expects, because VPP has stored it or
 * waits for it. All other addresses of a family share one budget. */
bool cv_may_store_neighbour (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, const cv_addr_t *a, bool ip6, bool expected, uint32_t now);
/* cv_is_node reports whether a network of class NODE consists of only this address. It may be called by any thread between
 * cv_may_store_neighbour and cv_quiesce, and by the main thread. */
bool cv_is_node (const cv_main_t *m, const cv_addr_t *a, bool ip6);
/* cv_claims_group reports whether a hardware address is a group address, which is invalid for a neighbour. */
bool cv_claims_group (const uint8_t *hardware);

/* cv_reject builds the answer to a rejected packet: an IP packet without link header, from the packet's destination to its source. It
 * returns the length; 0: no answer. out has room for 1 280 bytes; p->ip and p->len are those of the original packet. */
uint32_t cv_reject (const cv_packet_t *p, uint8_t *out);

/* ---- control plane ---- */

/* cv_sweep ends expired connections and releases memory that no worker reads any more. Call it ten times per second. */
void cv_sweep (cv_main_t *m, uint32_t now);
/* cv_idle reports whether there is nothing to sweep. */
bool cv_idle (const cv_main_t *m);

cv_result_t cv_config_set (cv_main_t *m, const cv_config_t *config); /* connections_max is ignored */
void cv_config_get (const cv_main_t *m, cv_config_t *config);       /* defaults are filled in */

cv_result_t cv_endpoint_set (cv_main_t *m, uint32_t sw_if_index, const cv_endpoint_t *e);
cv_result_t cv_endpoint_del (cv_main_t *m, uint32_t sw_if_index);
cv_result_t cv_network_set (cv_main_t *m, const cv_prefix_t *p, cv_class_t class); /* CV_CLASS_OUTSIDE: removes the network */
cv_result_t cv_snat_set (cv_main_t *m, uint32_t id, const cv_snat_t *s);           /* NULL: removes the entry */
cv_result_t cv_service_set (cv_main_t *m, uint64_t id, const char *name, uint8_t flags);
cv_result_t cv_service_del (cv_main_t *m, uint64_t id);
cv_result_t cv_backend_set (cv_main_t *m, uint64_t service, const cv_backend_t *b);
cv_result_t cv_backend_del (cv_main_t *m, uint64_t service, const cv_backend_t *b);
cv_result_t cv_frontend_set (cv_main_t *m, const cv_frontend_key_t *k, const cv_frontend_t *f);
cv_result_t cv_frontend_del (cv_main_t *m, const cv_frontend_key_t *k);
cv_result_t cv_range_set (cv_main_t *m, uint64_t id, const cv_prefix_t *p, bool is_add);

/* A set that is undefined, or that was given more members than the maximum, matches no address in a rule that allows. In a rule that
 * denies or passes, it matches every address, and the rule then denies. */
cv_result_t cv_set_set (cv_main_t *m, uint64_t id, const char *name, cv_set_kind_t kind); /* the kind of a set never changes */
cv_result_t cv_set_del (cv_main_t *m, uint64_t id);					  /* removes the members, too */
cv_result_t cv_set_member_set (cv_main_t *m, uint64_t set, const cv_set_member_t *member, bool is_add);
cv_result_t cv_policy_set (cv_main_t *m, uint64_t id, const cv_policy_t *p); /* replaces all rules atomically */
cv_result_t cv_policy_del (cv_main_t *m, uint64_t id); /* endpoints that refer to the policy keep its rules until they get another policy */
/* cv_endpoint_policy_set returns CV_NOT_FOUND if the endpoint or a policy does not exist; p NULL removes the endpoint's policy. */
cv_result_t cv_endpoint_policy_set (cv_main_t *m, uint32_t sw_if_index, const cv_endpoint_policy_t *p);

/* Walk functions. The callback must not call the core. */
typedef struct
{
  uint32_t connections[2]; /* by family: IPv4, IPv6 */
  uint64_t spoofed, refused;
  uint64_t denied[2]; /* by side */
} cv_endpoint_stats_t;
void cv_endpoint_walk (cv_main_t *m, void (*f) (void *ctx, uint32_t sw_if_index, const cv_endpoint_t *, const cv_endpoint_stats_t *), void *ctx);
/* cv_network_walk visits at most max slots from a cursor on (0: the first). It returns the next cursor, 0 at the end. */
uint32_t cv_network_walk (cv_main_t *m, uint32_t cursor, uint32_t max, void (*f) (void *ctx, const cv_prefix_t *, cv_class_t), void *ctx);
void cv_snat_walk (cv_main_t *m, void (*f) (void *ctx, uint32_t id, const cv_snat_t *), void *ctx);
void cv_service_walk (cv_main_t *m, void (*f) (void *ctx, uint64_t id, const char *name, uint8_t flags, uint32_t n_backends), void *ctx);
void cv_backend_walk (cv_main_t *m, uint64_t service, /* 0: all */
		      void (*f) (void *ctx, uint64_t service, const cv_backend_t *, bool draining, uint32_t connections), void *ctx);
void cv_frontend_walk (cv_main_t *m, void (*f) (void *ctx, const cv_frontend_key_t *, const cv_frontend_t *, uint64_t new_connections), void *ctx);
void cv_range_walk (cv_main_t *m, void (*f) (void *ctx, uint64_t id, const cv_prefix_t *), void *ctx);

void cv_set_walk (cv_main_t *m, void (*f) (void *ctx, uint64_t id, const char *name, cv_set_kind_t, uint32_t n_members, bool overfull), void *ctx);
void cv_set_member_walk (cv_main_t *m, uint64_t set, /* 0: all */
		     void (*f) (void *ctx, uint64_t set, const cv_set_member_t *), void *ctx);
/* matched: how often each rule of a side has decided, by side. */
void cv_policy_walk (cv_main_t *m, void (*f) (void *ctx, uint64_t id, const cv_policy_t *, const uint64_t *matched[2]), void *ctx);
void cv_endpoint_policy_walk (cv_main_t *m, void (*f) (void *ctx, uint32_t sw_if_index, const cv_endpoint_policy_t *, const uint64_t denied[2]), void *ctx);
/* cv_denied_walk visits the denied flows with a sequence greater than after, in each worker from the oldest to the newest. */
void cv_denied_walk (cv_main_t *m, uint64_t after, void (*f) (void *ctx, const cv_denied_t *), void *ctx);

typedef enum
{
  CV_STATE_NEW = 1,
  CV_STATE_OPEN,
  CV_STATE_CLOSING,
  CV_STATE_CLOSED,
} cv_state_t;

typedef struct
{
  uint8_t proto, state;
  bool ip6;
  cv_addr_t client, frontend, source, backend;
  uint16_t client_port, frontend_port, source_port, backend_port; /* wire */
  uint32_t sw_if_index;
  uint32_t idle, expires; /* seconds */
  bool denied;		  /* policy denies the connection */
} cv_connection_info_t;

/* cv_connection_walk visits at most max slots from a cursor on (0: the first). It returns the next cursor, 0 at the end. */
uint32_t cv_connection_walk (cv_main_t *m, bool ip6, uint32_t cursor, uint32_t max, uint32_t now,
			     void (*f) (void *ctx, const cv_connection_info_t *), void *ctx);
cv_result_t cv_connection_del (cv_main_t *m, const cv_tuple_t *as_client_sends);

typedef struct
{
  uint32_t connections[2], connections_max;
  uint64_t counters[CV_N_REASONS]; /* sums over all workers */
} cv_stats_t;
void cv_stats_get (const cv_main_t *m, cv_stats_t *s);

#endif
