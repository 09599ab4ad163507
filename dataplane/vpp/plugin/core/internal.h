/* Types and functions that the files of the core share. cv.h is the public interface. */
#ifndef CONTIV_CV_INTERNAL_H
#define CONTIV_CV_INTERNAL_H

#include <string.h>
#include "cv.h"

#define cv_likely(x)   __builtin_expect (!!(x), 1)
#define cv_unlikely(x) __builtin_expect (!!(x), 0)
#define CV_CACHE_LINE  64
#define CV_ALIGNED     __attribute__ ((aligned (CV_CACHE_LINE)))

#define cv_load(p)	   __atomic_load_n (p, __ATOMIC_RELAXED)
#define cv_load_acquire(p) __atomic_load_n (p, __ATOMIC_ACQUIRE)
#define cv_store(p, v)	   __atomic_store_n (p, v, __ATOMIC_RELAXED)
#define cv_publish(p, v)   __atomic_store_n (p, v, __ATOMIC_RELEASE)
#define cv_add(p, v)	   __atomic_fetch_add (p, v, __ATOMIC_RELAXED)

enum
{
  CV_PROTO_ICMP = 1,
  CV_PROTO_TCP = 6,
  CV_PROTO_UDP = 17,
  CV_PROTO_ICMP6 = 58,
  CV_PROTO_SCTP = 132,
  CV_PROTO_AFFINITY = 255, /* not a protocol number of the wire: records of session affinity (a client's backend), stored in the same table */
};

enum
{
  CV_DHCP4_SERVER_PORT = 67,
  CV_DHCP6_SERVER_PORT = 547,
};

enum
{
  CV_TCP_FIN = 1,
  CV_TCP_SYN = 2,
  CV_TCP_RST = 4,
  CV_TCP_ACK = 16,
};

/* ---- time ---- */

#define CV_TICKS_PER_SECOND 10
#define CV_TCP_CLOSING	    3600 /* seconds after one FIN: same value as the close_wait timeout of conntrack that Kubernetes sets */
#define CV_TCP_CLOSED	    10
#define CV_TCP_RESET	    120 /* after a reset that its receiver may have discarded: TCP retransmits at most this far apart */
#define CV_TCP_WINDOW	    (16u << 20) /* maximum bytes in flight if the receiver's window scale is not known */
#define CV_TCP_SEGMENT	    (1u << 16) /* maximum bytes that may be retransmitted with a FIN */
#define CV_DENIED_TIMEOUT   300 /* a connection that policy denies; TCP retransmits at most two minutes apart */
#define CV_GONE_CLOSING	    60 /* a half-closed connection to a deleted backend */

/* ---- deferred release: gc.c ---- */

struct cv_pool;

typedef struct cv_retired
{
  struct cv_retired *next;
  void *ptr;		/* memory to free, or */
  struct cv_pool *pool; /* pool to which the element index is returned */
  uint32_t index;
} cv_retired_t;

typedef struct cv_batch
{
  struct cv_batch *next;
  uint32_t connections[2]; /* heads of lists by cv_connection_t.next */
  cv_retired_t *things;
  uint64_t epochs[]; /* epochs of all workers at the time when the batch was closed */
} cv_batch_t;

/* ---- chunked pools: elements keep their address ---- */

#define CV_CHUNK_BITS 12
#define CV_CHUNK      (1u << CV_CHUNK_BITS)
#define CV_CHUNKS     4096u

typedef struct cv_pool
{
  uint32_t size;  /* of an element */
  uint32_t n;	  /* elements ever used */
  uint32_t free;  /* head of the list of free elements, which is linked by their first four bytes */
  uint8_t *chunks[CV_CHUNKS];
} cv_pool_t;

static inline void *
cv_pool_at (const cv_pool_t *p, uint32_t i)
{
  return cv_load_acquire (&p->chunks[i >> CV_CHUNK_BITS]) + (size_t) (i & (CV_CHUNK - 1)) * p->size;
}

uint32_t cv_pool_get (cv_pool_t *p); /* returns a zeroed element; CV_NO_INDEX: out of memory */
void cv_pool_put (cv_pool_t *p, uint32_t i);
void cv_pool_free (cv_pool_t *p);

/* ---- maps from a hash to a pool index: one writer, any number of readers ---- */

typedef struct
{
  uint32_t mask, used; /* used includes tombstones */
  uint64_t slots[];
} cv_map_slots_t;

typedef struct
{
  cv_map_slots_t *slots; /* NULL: empty */
  uint32_t n;
} cv_map_t;

#define CV_MAP_DEAD UINT32_MAX

/* Iterates over the entries with a hash: for (i = hash; cv_map_next (map, hash, &i, &index);) */
static inline bool
cv_map_next (const cv_map_slots_t *s, uint32_t hash, uint32_t *i, uint32_t *index)
{
  uint64_t v;
  if (!s)
    return false;
  while ((v = cv_load_acquire (&s->slots[*i & s->mask])))
    {
      (*i)++;
      if ((uint32_t) (v >> 32) == hash && (uint32_t) v != CV_MAP_DEAD)
	{
	  *index = (uint32_t) v - 1;
	  return true;
	}
    }
  return false;
}

bool cv_map_add (cv_main_t *m, cv_map_t *map, uint32_t hash, uint32_t index);
void cv_map_del (cv_map_t *map, uint32_t hash, uint32_t index);

/* ---- connections ---- */

enum
{
  CV_CONN_TRANSLATED = 1,
  CV_CONN_AFFINITY = 2,
  CV_CONN_OF_BACKEND = 4, /* its owner is the endpoint of the backend, which sent the first packet seen here; the client is identified by its
                           * address */
  CV_CONN_ICMP_REPLY = 8, /* its first packet was an echo reply */
  CV_CONN_PORTS_CHANGE = 64,
  CV_CONN_FOREIGN = 32, /* with CV_CONN_AFFINITY: its client is not a pod of this node */
  CV_CONN_BEHIND_HOST = 16, /* its client is behind a HOST endpoint, the owner, and is not the host itself: answers go back through that endpoint */
};

/* Bits of cv_connection_t.fins. Each is shifted left by the direction. */
enum
{
  CV_FIN = 1,	   /* a FIN that its receiver has acknowledged */
  CV_RESET = 4,	   /* a reset that may have been discarded */
  CV_FIN_SENT = 16, /* a FIN that is not acknowledged yet */
  CV_WENT_ON = 64,  /* the sender of a FIN or a reset seems to continue; the other end has not confirmed this */
};

#define CV_STATE_ANSWERED 5 /* new, and the backend has answered; reported as CV_STATE_NEW */

/* Content of cv_connection_t.end until there is a FIN: the data length and the window scale from the SYN of the other direction. */
#define CV_END_OF_SYN	  (1u << 31)
#define CV_END_DATA_SHIFT 8
#define CV_END_OF_UNKNOWN_SCALE (CV_END_OF_SYN | 8) /* a window of 16 MB, which is CV_TCP_WINDOW */

/* 128 bytes, two cache lines. key[0] is the tuple that the client sends, key[1] the tuple that the backend answers with. */
typedef struct
{
  cv_tuple_t key[2];
  uint32_t last_seen; /* ticks */
  uint32_t owner;	 /* owner record of the endpoint that created it; CV_NO_INDEX: none */
  union
  {
    struct
    {
      union
      {
	uint32_t next;	 /* in the lists of free and of retired connections */
	uint32_t serial; /* of a live connection: differs from the serials of all earlier connections in this slot; never 0 */
      };
      uint8_t alive, state, flags, fins;
    };
    uint64_t life; /* all five fields in one word, to check with one load whether a known connection lets a packet through */
  };
  uint32_t backend;	 /* CV_NO_INDEX: none */
  uint16_t ip_delta, l4_delta; /* what translation of key[0] adds to the checksums */
  union
  {
    uint32_t timeout;	/* of an affinity record, ticks */
    uint32_t frontends; /* value of m->frontends_epoch at the last lookup of the client's frontend. A connection without backend: there was
                         * none. UDP with a backend: it led to the backend */
  };
  uint32_t judged;   /* policy.h */
  uint32_t acked[2]; /* TCP: last acknowledgement number of each direction, in wire order; before the first one the number that is expected;
                      * 0: not known */
  uint32_t end[2];   /* sequence number after the FIN of each direction; without a FIN: CV_END_OF_SYN with data length and window scale, or 0 */
} CV_ALIGNED cv_connection_t;

_Static_assert (sizeof (cv_tuple_t) == 40, "tuple");
_Static_assert (sizeof (cv_connection_t) == 128, "connection");
_Static_assert (offsetof (cv_connection_t, fins) == offsetof (cv_connection_t, life) + 7, "life");
_Static_assert (offsetof (cv_connection_t, last_seen) >= CV_CACHE_LINE, "what cv_recall reads of a connection is in one cache line");

#define CV_BUCKET_SLOTS 7

/* One cache line. A slot is fingerprint << 32 | connection << 1 | direction, plus 1; 0 means free. */
typedef struct
{
  uint32_t lock; /* bit 0: locked; the other bits count the moves of keys of this bucket */
  uint32_t spilled; /* number of keys of this bucket that are stored in their other bucket */
  uint64_t slots[CV_BUCKET_SLOTS];
} CV_ALIGNED cv_bucket_t;

typedef struct
{
  cv_bucket_t *buckets; /* NULL until the first endpoint is set */
  cv_connection_t *connections;
  uint64_t bucket_mask;
  uint32_t capacity;
  uint32_t high;	/* connections ever used */
  uint32_t free_lock, free; /* list of free connections */
  uint32_t n;		/* in use, including affinity records */
  uint32_t n_affinities;
  uint32_t n_foreign;	/* affinity records of clients that are not pods of this node */
  uint32_t retired;	/* list: any thread pushes, the sweep takes the whole list */
  uint32_t cursor;	/* position of the sweep */
} cv_table_t;

typedef enum
{
  CV_INSERTED,
  CV_TAKEN,
  CV_TABLE_FULL,
} cv_insert_t;

void *cv_pages (size_t size); /* zeroed memory; in huge pages if the kernel has free ones */
void cv_pages_free (void *p, size_t size);
bool cv_table_make (cv_table_t *t, uint32_t connections);
void cv_table_free (cv_table_t *t);
cv_insert_t cv_table_insert (const cv_main_t *m, cv_table_t *t, const cv_tuple_t *key, uint64_t hash, uint32_t connection, uint32_t direction);
/* cv_table_move moves a key to its other bucket. It returns false if the key has gone in the meantime, or if no slot is free. */
bool cv_table_move (const cv_main_t *m, cv_table_t *t, uint64_t slot, cv_bucket_t *from, cv_bucket_t *to);
void cv_table_remove (cv_table_t *t, uint64_t hash, uint32_t connection, uint32_t direction);
uint32_t cv_connection_alloc (cv_table_t *t);
void cv_connection_release (cv_table_t *t, uint32_t connection);

/* ---- configuration objects ---- */

typedef struct
{
  uint32_t next_free;
  uint32_t sw_if_index;
  bool alive;
  uint32_t connections[2];
  uint64_t spoofed, refused;
  uint64_t denied[2]; /* flows denied by its policy, by side */
  uint32_t unjudged;  /* tick of the last UDP packet to or from the pod that passed while the pod had no policy; 0: none */
} cv_owner_t;

typedef struct
{
  cv_endpoint_t config;
  uint32_t owner;
  uint32_t limit;
} cv_endpoint_state_t;

typedef struct
{
  cv_endpoint_state_t *state; /* NULL: no endpoint */
  struct cv_police *police;   /* policy of the endpoint; NULL: none */
} cv_endpoint_slot_t;

typedef struct
{
  uint32_t next_free;
  uint32_t connections;
  cv_addr_t addr;
  uint16_t port;
  uint8_t flags;
  bool ip6, gone;
  uint64_t service_id;
} cv_backend_state_t;

/* A version of the backends of a service: the members, sorted by address and port, then those that get new connections, in the same order,
 * then the Maglev table. */
typedef struct
{
  uint32_t n, n_picks, maglev_n; /* maglev_n: size of the Maglev table, 0: none */
  uint32_t member[];
} cv_members_t;

static inline const uint32_t *
cv_picks (const cv_members_t *l)
{
  return l->member + l->n;
}

typedef struct
{
  uint32_t next_free;
  bool defined;
  uint8_t flags;
  uint64_t id;
  uint32_t users; /* number of targets of frontends that refer to it */
  uint32_t next_emptying, prev_emptying;
  uint8_t emptying; /* sweeps until the last backend is removed; 0: no removal is pending */
  cv_members_t *members; /* NULL: none */
  char name[CV_NAME_LEN];
} cv_service_t;

typedef struct
{
  cv_frontend_key_t key;
  cv_frontend_t config;
  uint32_t service[2]; /* pool indices: in_cluster, outside; CV_NO_INDEX: none */
  uint32_t ranges;
} cv_frontend_state_t;

typedef struct
{
  uint32_t next_free;
  uint64_t new_connections;
  cv_frontend_state_t *state;
} cv_frontend_slot_t;

/* Counts the backends of all services that have this address and port. A direct connection to such an address and port is tracked. */
typedef struct
{
  uint32_t next_free;
  uint32_t n;
  cv_addr_t addr;
  uint16_t port;
  bool ip6;
} cv_direct_t;

typedef struct
{
  uint32_t next_free;
  cv_prefix_t prefix;
  uint8_t class;
} cv_network_t;

typedef struct
{
  uint32_t n;
  cv_prefix_t prefix[];
} cv_prefixes_t;

typedef struct
{
  uint32_t next_free;
  uint64_t id;
  uint32_t users;
  cv_prefixes_t *prefixes;
} cv_range_t;

/* ---- workers ---- */

#define CV_DENIED_FLOWS	       256 /* a power of two */
#define CV_DENIED_FLOWS_A_TICK 8

/* The most recent denied flows of a worker. */
typedef struct
{
  uint32_t tick, in_tick;
  uint64_t n;
  cv_denied_t flows[CV_DENIED_FLOWS];
} cv_denied_ring_t;

#define CV_DECIDED 1024 /* a power of two */

/* A cached decision of the policy of one side of an endpoint for a flow. No rule matches on the client's port, so the decision holds for
 * all flows between two ends, and for all ports of the server up to the next one that a rule names. It holds as long as policy_epoch is
 * unchanged: policy_epoch counts each change of rules, of sets and of the policies of endpoints. */
typedef struct
{
  cv_addr_t src, dst;
  uint64_t rest; /* the other fields of the key: decided.c */
  uint32_t epoch;
  uint32_t index, rule; /* CV_NO_INDEX: no rule decided */
  uint16_t first, last; /* port range; for ICMP both are type and code */
  uint8_t action; /* 0: free */
} CV_ALIGNED cv_decided_t;

#define CV_PASS_SETS 32768
#define CV_PASS_WAYS 2

/* Flows with one hash. Other workers only clear tags; everything else is accessed by the owning worker only. */
typedef struct
{
  uint64_t tag[CV_PASS_WAYS];
  uint64_t ref[CV_PASS_WAYS]; /* reference to the connection that must follow each packet of the flow: follow.h; 0: none */
} cv_pass_set_t;

#define CV_PAIR_SETS 4096
#define CV_PAIR_WAYS 2

/* Pairs of addresses with one hash: pairs.h. Other workers only clear tags; everything else is accessed by the owning worker only. */
typedef struct
{
  uint64_t tag[CV_PAIR_WAYS];
} cv_pair_set_t;

typedef struct
{
  uint32_t in_frame;
  uint32_t second; /* second of the last packet */
  uint64_t epoch;
  uint64_t rng[2];
  uint32_t scanned; /* tick of the last search through a complete port range */
  uint32_t serial;  /* serial of the last connection that this worker created */
  uint64_t counters[CV_N_REASONS];
  cv_denied_ring_t denied;
  cv_decided_t decided[CV_DECIDED];
  cv_pass_set_t pass[CV_PASS_SETS]; /* flows passed in this second: follow.h */
  bool pairs_first;	 /* lookup by pair comes first, because most of the recent hits were by pair */
  uint32_t paired;	 /* the second in which the last pair was stored */
  uint32_t pairs_stored; /* counter; its lowest bits select the next way */
  cv_pair_set_t pairs[CV_PAIR_SETS] CV_ALIGNED;
} CV_ALIGNED cv_worker_t;

/* ---- limits for VPP's neighbour table: neighbours.c ---- */

#define CV_NEIGHBOUR_BUDGETS 1024

typedef struct
{
  uint32_t fresh;			    /* all addresses that are not expected, together */
  uint32_t addresses[CV_NEIGHBOUR_BUDGETS]; /* expected addresses, by hash */
} cv_neighbour_budget_t;

/* Sizes of arrays of counters that are indexed by hash. If most counters are in use, hardly any pair can be stored, and each flow uses
 * its own place. */
#define CV_CONNECTED 262144
#define CV_SERVED    262144 /* 100,000 services use a third of it */

typedef enum
{
  CV_SERVED_FRONTEND,
  CV_SERVED_BACKEND,
} cv_served_t;

#define CV_ENDPOINT_CHUNKS 4096
#define CV_ENDPOINT_CHUNK  256

struct cv_main
{
  cv_config_t config;
  uint64_t seed[4];
  uint64_t config_epoch;
  uint32_t policy_epoch; /* counts changes of policy and of its inputs */
  uint32_t n_policed;	 /* number of endpoints that have policy */
  uint32_t frontends_epoch; /* changes with every change of a frontend */
  uint32_t n_workers;
  cv_worker_t *workers;
  cv_table_t table[2];
  cv_endpoint_slot_t *endpoints[CV_ENDPOINT_CHUNKS];
  uint32_t n_endpoints;
  cv_snat_t *snats[CV_SNATS];
  cv_pool_t owners, backends, services, frontends, directs, networks, ranges, addresses, sets, members, policies;
  cv_map_t service_map, frontend_map, direct_map, network_map, range_map, address_map, set_map, policy_map;
  struct cv_set_slots *member_slots; /* sets.c */
  uint64_t denied_sequence;
  cv_neighbour_budget_t neighbours[2]; /* by family */
  uint32_t connected[CV_CONNECTED];    /* number of keys of connections, by the hash of their addresses: pairs.h */
  uint32_t served[2][CV_SERVED];       /* number of frontends and of backends, by the hash of their address */
  uint32_t network_lens[2][129]; /* number of networks with this length */
  uint64_t network_mask[2][3];	 /* the lengths in use, as bits */
  /* objects that are released when all workers have passed a quiescent state */
  cv_batch_t *batches, **last_batch;
  cv_retired_t *retired;
  uint32_t dead_owners; /* list of the owners of deleted endpoints, by next_free */
  uint32_t emptying; /* list of services whose last backend is about to be removed, by next_emptying */
  uint32_t draining; /* list of removed backends that still have connections, by next_free */
};

void cv_retire (cv_main_t *m, void *ptr);
void cv_retire_element (cv_main_t *m, cv_pool_t *pool, uint32_t index);
void cv_gc (cv_main_t *m);
void cv_gc_free (cv_main_t *m);
static inline void
cv_changed (cv_main_t *m)
{
  __atomic_fetch_add (&m->config_epoch, 1, __ATOMIC_RELEASE);
}

static inline cv_endpoint_slot_t *
cv_endpoint_slot (const cv_main_t *m, uint32_t sw_if_index)
{
  if (cv_unlikely (sw_if_index >= CV_ENDPOINT_CHUNKS * CV_ENDPOINT_CHUNK))
    return NULL;
  cv_endpoint_slot_t *c = cv_load_acquire (&m->endpoints[sw_if_index / CV_ENDPOINT_CHUNK]);
  return c ? &c[sw_if_index % CV_ENDPOINT_CHUNK] : NULL;
}

static inline cv_endpoint_state_t *
cv_endpoint (const cv_main_t *m, uint32_t sw_if_index)
{
  if (cv_unlikely (sw_if_index >= CV_ENDPOINT_CHUNKS * CV_ENDPOINT_CHUNK))
    return NULL;
  cv_endpoint_slot_t *c = cv_load_acquire (&m->endpoints[sw_if_index / CV_ENDPOINT_CHUNK]);
  return c ? cv_load_acquire (&c[sw_if_index % CV_ENDPOINT_CHUNK].state) : NULL;
}

/* cv_backend_gone reports whether the connection has a backend that was deleted. Any thread may replace the connection's backend. */
static inline bool
cv_backend_gone (const cv_main_t *m, const cv_connection_t *c)
{
  uint32_t i = cv_load (&c->backend);
  return i != CV_NO_INDEX && cv_load (&((cv_backend_state_t *) cv_pool_at (&m->backends, i))->gone);
}

/* cv_may_be_unserved reports whether a UDP connection to a backend has to be looked up again: its backend has gone, or a frontend has
 * changed. */
static inline bool
cv_may_be_unserved (const cv_main_t *m, const cv_connection_t *c)
{
  return cv_load (&c->backend) != CV_NO_INDEX &&
	 cv_unlikely (cv_backend_gone (m, c) || cv_load (&c->frontends) != cv_load (&m->frontends_epoch));
}

static inline void
cv_count (cv_main_t *m, uint32_t worker, cv_reason_t r)
{
  m->workers[worker].counters[r]++;
}

/* ---- hashes ---- */

static inline uint64_t
cv_mum (uint64_t a, uint64_t b)
{
  __uint128_t p = (__uint128_t) a * b;
  return (uint64_t) p ^ (uint64_t) (p >> 64);
}

/* Fields that are read together are written together: a load that needs the data of several earlier stores stalls the processor (no
 * store forwarding). */

static inline void
cv_set_ip4 (cv_addr_t *a, const uint8_t *wire)
{
  uint32_t v;
  memcpy (&v, wire, 4);
  a->u64[0] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : (uint64_t) v << 32;
  a->u64[1] = 0;
}

/* cv_tail returns the part of a tuple that follows the addresses. ports holds source and destination port, in wire order. */
static inline uint64_t
cv_tail (uint32_t ports, uint8_t proto, bool ip6)
{
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ports | (uint64_t) proto << 32 | (uint64_t) ip6 << 40 :
						     (uint64_t) ports << 32 | (uint64_t) proto << 24 | (uint64_t) ip6 << 16;
}

static inline void
cv_set_tail (cv_tuple_t *t, uint32_t ports, uint8_t proto, bool ip6)
{
  uint64_t v = cv_tail (ports, proto, ip6);
  memcpy (&t->sport, &v, 8);
}

static inline uint64_t
cv_tuple_tail (const cv_tuple_t *t)
{
  uint64_t v;
  memcpy (&v, &t->sport, 8);
  return v;
}

/* cv_hash_ip4 takes both addresses in the order in which they are in a packet. */
static inline uint64_t
cv_hash_ip4 (const cv_main_t *m, uint64_t addresses, uint64_t tail)
{
  return cv_mum (cv_mum (addresses ^ m->seed[0], tail ^ m->seed[1]), m->seed[2] | 1);
}

static inline uint64_t
cv_hash_ip6 (const cv_main_t *m, const uint64_t src[2], const uint64_t dst[2], uint64_t tail)
{
  uint64_t a = cv_mum (src[0] ^ m->seed[0], src[1] ^ m->seed[1]);
  uint64_t b = cv_mum (dst[0] ^ m->seed[2], dst[1] ^ m->seed[3]);
  return cv_mum (a ^ tail ^ m->seed[3], b ^ m->seed[0]);
}

static inline uint64_t
cv_hash (const cv_main_t *m, const cv_tuple_t *t)
{
  if (t->ip6)
    return cv_hash_ip6 (m, t->src.u64, t->dst.u64, cv_tuple_tail (t));
  uint64_t src = t->src.u64[0], dst = t->dst.u64[0];
  return cv_hash_ip4 (m, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? src | dst << 32 : src | dst >> 32, cv_tuple_tail (t));
}

static inline uint32_t
cv_hash_addr (const cv_main_t *m, const cv_addr_t *a, uint64_t extra)
{
  return (uint32_t) (cv_mum (cv_mum (a->u64[0] ^ m->seed[1], a->u64[1] ^ m->seed[2]) ^ extra, m->seed[3] | 1) >> 16);
}

static inline bool
cv_addr_equal (const cv_addr_t *a, const cv_addr_t *b)
{
  return ((a->u64[0] ^ b->u64[0]) | (a->u64[1] ^ b->u64[1])) == 0;
}

static inline bool
cv_addr_is_zero (const cv_addr_t *a)
{
  return (a->u64[0] | a->u64[1]) == 0;
}

static inline bool
cv_tuple_equal (const cv_tuple_t *a, const cv_tuple_t *b)
{
  return ((a->src.u64[0] ^ b->src.u64[0]) | (a->src.u64[1] ^ b->src.u64[1]) | (a->dst.u64[0] ^ b->dst.u64[0]) |
	  (a->dst.u64[1] ^ b->dst.u64[1]) | (cv_tuple_tail (a) ^ cv_tuple_tail (b))) == 0;
}

static inline cv_tuple_t
cv_reverse (const cv_tuple_t *t)
{
  return (cv_tuple_t){ .src = t->dst, .dst = t->src, .sport = t->dport, .dport = t->sport, .proto = t->proto, .ip6 = t->ip6 };
}

/* cv_table_find returns the connection and the direction of a key, or CV_NO_INDEX. While a key is moved, it is in both buckets for a
 * moment. Therefore a reader that finds the key in neither bucket searches again if one of the bucket's keys has moved in the meantime. */
static inline uint32_t
cv_table_find (const cv_table_t *t, const cv_tuple_t *key, uint64_t hash, uint32_t *direction)
{
  const cv_bucket_t *first = &t->buckets[hash & t->bucket_mask], *b = first;
  uint64_t fp = hash >> 32;
  uint32_t moves = cv_load_acquire (&first->lock) >> 1, now;
  for (;;)
    {
      for (int i = 0; i < CV_BUCKET_SLOTS; i++)
	{
	  uint64_t s = cv_load_acquire (&b->slots[i]);
	  if (s >> 32 != fp || !(uint32_t) s)
	    continue;
	  uint32_t ref = (uint32_t) s - 1;
	  if (cv_tuple_equal (&t->connections[ref >> 1].key[ref & 1], key))
	    {
	      *direction = ref & 1;
	      return ref >> 1;
	    }
	}
      if (b == first && cv_unlikely (cv_load_acquire (&first->spilled)))
	{
	  b = &t->buckets[cv_mum (hash, 0x9e3779b97f4a7c15) & t->bucket_mask];
	  if (b != first)
	    continue;
	}
      if (cv_likely ((now = cv_load_acquire (&first->lock) >> 1) == moves))
	return CV_NO_INDEX;
      moves = now;
      b = first;
    }
}

/* ---- checksums (RFC 1624), one's complement sums in any byte order ---- */

static inline uint16_t
cv_fold (uint64_t sum)
{
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t) ((sum & 0xffff) + (sum >> 16));
}

static inline void
cv_checksum_add (uint8_t *field, uint16_t delta)
{
  uint16_t c;
  memcpy (&c, field, 2);
  uint32_t sum = (uint32_t) (uint16_t) ~c + delta;
  c = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
  memcpy (field, &c, 2);
}

/* ---- functions that are shared between the files ---- */

uint32_t cv_range_get (cv_main_t *m, uint64_t id, bool make);
void cv_range_put (cv_main_t *m, uint32_t index);
uint32_t cv_hash_id (const cv_main_t *m, uint64_t id);
cv_class_t cv_class_of (const cv_main_t *m, const cv_addr_t *a, bool ip6);
bool cv_in_ranges (const cv_main_t *m, uint32_t range, const cv_addr_t *a, bool ip6);
cv_frontend_slot_t *cv_frontend_find (const cv_main_t *m, const cv_addr_t *a, uint8_t proto, uint16_t port, bool ip6);
void cv_release_drained (cv_main_t *m);
void cv_empty_services (cv_main_t *m);
/* cv_served_add counts a frontend, or an address and port of backends, by the address. The caller calls it before cv_changed. */
void cv_served_add (cv_main_t *m, cv_served_t what, const cv_addr_t *a, bool ip6);
void cv_served_del (cv_main_t *m, cv_served_t what, const cv_addr_t *a, bool ip6);
bool cv_is_backend (const cv_main_t *m, const cv_addr_t *a, uint16_t port, bool ip6);
cv_addr_t cv_masked (const cv_addr_t *a, uint8_t len);
uint32_t cv_member_at (const cv_main_t *m, const cv_members_t *l, const cv_backend_t *k, bool *found);
bool cv_prefix_contains (const cv_prefix_t *p, const cv_addr_t *a);
bool cv_prefix_valid (const cv_prefix_t *p);
bool cv_name_valid (const char *name);
bool cv_own_address (const cv_endpoint_state_t *e, const cv_addr_t *a, bool ip6); /* reports whether the endpoint has the address */

uint32_t cv_timeout (const cv_main_t *m, const cv_connection_t *c); /* in ticks */
bool cv_expired (const cv_main_t *m, const cv_connection_t *c, uint32_t now);
/* cv_still_served reports whether the client's frontend still leads to the connection's backend (address, protocol and port), by this
 * service or by another one. The connection then belongs to the backend of the service that the frontend names now; decide.c. */
bool cv_still_served (cv_main_t *m, cv_connection_t *c);
/* cv_connection_end removes a connection from the table. It returns false if another caller has removed it. */
bool cv_connection_end (cv_main_t *m, bool ip6, uint32_t connection);

void cv_translate (cv_packet_t *p, const cv_connection_t *c, uint32_t direction);
void cv_translate_error (cv_packet_t *p, const cv_connection_t *c, uint32_t direction);
void cv_deltas (cv_connection_t *c);

static inline uint8_t *
cv_src (const cv_packet_t *p)
{
  return p->ip + (p->tuple.ip6 ? 8 : 12);
}

#endif
