/* Table of the ports of fragmented packets: frag.h. */
#include <stdlib.h>
#include <string.h>
#include "frag.h"

#define WAYS 4

/* The fields that all fragments of a packet have in common (RFC 791, RFC 8200). */
typedef struct
{
  cv_addr_t src, dst;
  uint32_t id;
  uint8_t proto, ip6; /* proto: set for IPv4 only */
  uint16_t zero;
} frag_key_t;

typedef struct
{
  frag_key_t key;
  uint32_t seen;  /* when the last fragment arrived */
  uint32_t since; /* when the first of the waiting fragments arrived */
  uint16_t sport, dport;
  uint8_t tcp_flags, transport;
  bool used, known;
  uint8_t n_waiting;
  uint32_t waiting[FRAG_WAITING];
} entry_t;

struct frags
{
  uint32_t lock;
  uint32_t waiting, max_waiting;
  uint32_t cursor; /* position of frags_expire */
  uint32_t mask;   /* number of sets minus 1 */
  uint64_t seed;
  entry_t entries[];
};

frags_t *
frags_new (uint32_t packets, uint32_t max_waiting, uint64_t seed)
{
  uint32_t sets = 1;
  while (sets * WAYS < packets)
    sets *= 2;
  frags_t *f = calloc (1, sizeof (*f) + (size_t) sets * WAYS * sizeof (entry_t));
  if (!f)
    return NULL;
  f->mask = sets - 1;
  f->max_waiting = max_waiting;
  f->seed = seed;
  return f;
}

void
frags_free (frags_t *f)
{
  free (f);
}

static void
lock (frags_t *f)
{
  while (__atomic_exchange_n (&f->lock, 1, __ATOMIC_ACQUIRE))
    while (__atomic_load_n (&f->lock, __ATOMIC_RELAXED))
      ;
}

static void
unlock (frags_t *f)
{
  __atomic_store_n (&f->lock, 0, __ATOMIC_RELEASE);
}

static frag_key_t
key_of (const cv_packet_t *p)
{
  frag_key_t k = { .src = p->tuple.src, .dst = p->tuple.dst, .id = p->frag_id, .ip6 = p->tuple.ip6 };
  if (!k.ip6)
    k.proto = p->proto;
  return k;
}

static uint32_t
set_of (const frags_t *f, const frag_key_t *k)
{
  uint64_t h = f->seed, words[sizeof (*k) / 8];
  memcpy (words, k, sizeof (*k));
  for (uint32_t i = 0; i < sizeof (*k) / 8; i++)
    {
      __uint128_t m = (__uint128_t) (h ^ words[i]) * 0x9e3779b97f4a7c15ull;
      h = (uint64_t) m ^ (uint64_t) (m >> 64) ^ f->seed;
    }
  return (uint32_t) (h >> 32) & f->mask;
}

/* age returns the time since seen. Another thread may have a later tick, so the result is 0 in that case. */
static uint32_t
age (uint32_t now, uint32_t seen)
{
  int32_t d = (int32_t) (now - seen);
  return d > 0 ? (uint32_t) d : 0;
}

static void
give (frags_t *f, entry_t *e, frags_out_t *out)
{
  out->n = e->n_waiting;
  memcpy (out->buffers, e->waiting, e->n_waiting * sizeof (e->waiting[0]));
  __atomic_store_n (&f->waiting, f->waiting - e->n_waiting, __ATOMIC_RELAXED);
  e->n_waiting = 0;
}

/* place finds the entry of a packet. If the packet has no entry, place evicts the entry of the set that has been
 * idle for the longest time, and creates a new one. */
static entry_t *
place (frags_t *f, const frag_key_t *k, uint32_t now, frags_out_t *gone)
{
  entry_t *set = f->entries + (size_t) set_of (f, k) * WAYS, *oldest = set;
  for (entry_t *e = set; e < set + WAYS; e++)
    {
      if (e->used && !memcmp (&e->key, k, sizeof (*k)))
	{
	  if (age (now, e->seen) > FRAG_LIFETIME)
	    e->known = false; /* same identification, but another packet */
	  e->seen = now;
	  return e;
	}
      if (oldest->used && (!e->used || age (now, e->seen) > age (now, oldest->seen)))
	oldest = e;
    }
  if (oldest->n_waiting)
    give (f, oldest, gone);
  *oldest = (entry_t){ .key = *k, .seen = now, .used = true };
  return oldest;
}

void
frags_learn (frags_t *f, const cv_packet_t *p, uint32_t now, frags_out_t *go, frags_out_t *gone)
{
  frag_key_t k = key_of (p);
  go->n = gone->n = 0;
  lock (f);
  entry_t *e = place (f, &k, now, gone);
  e->known = true;
  e->sport = p->tuple.sport;
  e->dport = p->tuple.dport;
  e->tcp_flags = p->tcp_flags;
  e->transport = p->proto;
  if (e->n_waiting)
    give (f, e, go);
  unlock (f);
}

frag_result_t
frags_find (frags_t *f, cv_packet_t *p, uint32_t buffer, uint32_t now, frags_out_t *gone)
{
  frag_key_t k = key_of (p);
  frag_result_t result = FRAG_KNOWN;
  gone->n = 0;
  lock (f);
  entry_t *e = place (f, &k, now, gone);
  if (e->known)
    {
      p->sport = e->sport;
      p->dport = e->dport;
      p->tcp_flags = e->tcp_flags;
      p->transport = e->transport;
    }
  else if (e->n_waiting < FRAG_WAITING && f->waiting < f->max_waiting)
    {
      if (!e->n_waiting)
	e->since = now;
      e->waiting[e->n_waiting++] = buffer;
      __atomic_store_n (&f->waiting, f->waiting + 1, __ATOMIC_RELAXED);
      result = FRAG_WAITS;
    }
  else
    result = FRAG_REFUSED;
  unlock (f);
  return result;
}

bool
frags_expire (frags_t *f, uint32_t now, bool all, frags_out_t *gone)
{
  gone->n = 0;
  if (!__atomic_load_n (&f->waiting, __ATOMIC_RELAXED))
    return false;
  lock (f);
  uint32_t n = (f->mask + 1) * WAYS;
  for (uint32_t i = 0; i < n && !gone->n; i++)
    {
      entry_t *e = f->entries + f->cursor;
      f->cursor = (f->cursor + 1) % n;
      if (e->n_waiting && (all || age (now, e->since) > FRAG_WAIT))
	give (f, e, gone);
    }
  unlock (f);
  return gone->n;
}
