/* Pairs of addresses between which all TCP and UDP of an interface passes without a connection. Each flow has a place of its own in the
 * flow cache (follow.h), and 10,000 places do not fit into the processor's caches. A pair has one place for all its flows. */
#ifndef CONTIV_CV_PAIRS_H
#define CONTIV_CV_PAIRS_H

#include "internal.h"

/* cv_pair_ip4 takes both addresses in the order in which they are in a packet. */
static inline uint64_t
cv_pair_ip4 (const cv_main_t *m, uint64_t addresses)
{
  return cv_mum (addresses ^ m->seed[3], m->seed[0] | 1);
}

static inline uint64_t
cv_pair_ip6 (const cv_main_t *m, const uint64_t src[2], const uint64_t dst[2])
{
  uint64_t a = cv_mum (src[0] ^ m->seed[1], src[1] ^ m->seed[2]);
  uint64_t b = cv_mum (dst[0] ^ m->seed[3], dst[1] ^ m->seed[0]);
  return cv_mum (a ^ m->seed[2], b ^ m->seed[1]);
}

static inline uint64_t
cv_pair (const cv_main_t *m, const cv_tuple_t *t)
{
  if (t->ip6)
    return cv_pair_ip6 (m, t->src.u64, t->dst.u64);
  uint64_t src = t->src.u64[0], dst = t->dst.u64[0];
  return cv_pair_ip4 (m, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? src | dst << 32 : src | dst >> 32);
}

static inline cv_pair_set_t *
pair_set (cv_worker_t *w, uint64_t pair)
{
  return &w->pairs[pair % CV_PAIR_SETS];
}

/* store_pair stores a pair for the rest of the second, unless there are connections with these addresses, or with others that share the
 * counter. It first stores and then reads the counter; count_pair first counts and then clears. Therefore at least one of the two
 * detects the other. */
static inline void
store_pair (cv_main_t *m, cv_worker_t *w, uint64_t pair, uint64_t tag)
{
  cv_pair_set_t *s = pair_set (w, pair);
  if (s->tag[0] == tag || s->tag[1] == tag)
    return;
  uint64_t *at = &s->tag[w->pairs_stored++ % CV_PAIR_WAYS];
  cv_store (at, tag);
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
  if (cv_load (&m->connected[pair % CV_CONNECTED]))
    cv_store (at, 0);
  else
    w->paired = w->second;
}

/* count_pair counts a connection by the addresses of one of its keys. It clears the pair even if there was a connection before: the
 * worker that created that one may not have cleared the pair yet. */
static inline void
count_pair (cv_main_t *m, const cv_tuple_t *key)
{
  uint64_t pair = cv_pair (m, key);
  cv_add (&m->connected[pair % CV_CONNECTED], 1);
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < m->n_workers; i++)
    for (int way = 0; way < CV_PAIR_WAYS; way++)
      cv_store (&pair_set (&m->workers[i], pair)->tag[way], 0);
}

static inline void
uncount_pair (cv_main_t *m, const cv_tuple_t *key)
{
  cv_add (&m->connected[cv_pair (m, key) % CV_CONNECTED], -1u);
}

/* cv_passes_by_pair reports whether all TCP and UDP from one address to another on an interface passes without a connection, as long as
 * configuration and policy do not change; pairs.c. */
bool cv_passes_by_pair (const cv_main_t *m, const cv_packet_t *p, const cv_endpoint_state_t *e);

#endif
