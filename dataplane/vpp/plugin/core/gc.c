/* Deferred release, pools and maps: memory that workers read without locks is released when no worker can read it
 * any more. */
#include <stdlib.h>
#include "internal.h"

void
cv_quiesce (cv_main_t *m, uint32_t worker)
{
  cv_worker_t *w = &m->workers[worker];
  cv_publish (&w->epoch, w->epoch + 1);
  cv_publish (&w->in_frame, 0);
}

/* note queues an object for release. If there is no memory for the queue entry, the object is leaked, which is safe. */
static void
note (cv_main_t *m, cv_retired_t thing)
{
  cv_retired_t *r = malloc (sizeof (*r));
  if (!r)
    return;
  *r = thing;
  r->next = m->retired;
  m->retired = r;
}

void
cv_retire (cv_main_t *m, void *ptr)
{
  if (ptr)
    note (m, (cv_retired_t){ .ptr = ptr });
}

void
cv_retire_element (cv_main_t *m, cv_pool_t *pool, uint32_t index)
{
  note (m, (cv_retired_t){ .pool = pool, .index = index });
}

static bool
passed (const cv_main_t *m, const cv_batch_t *b)
{
  for (uint32_t i = 0; i < m->n_workers; i++)
    if (__atomic_load_n (&m->workers[i].in_frame, __ATOMIC_SEQ_CST) && cv_load_acquire (&m->workers[i].epoch) == b->epochs[i])
      return false;
  return true;
}

static void
release (cv_main_t *m, cv_batch_t *b)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (uint32_t i = b->connections[ip6], next; i != CV_NO_INDEX; i = next)
      {
	next = m->table[ip6].connections[i].next;
	cv_connection_release (&m->table[ip6], i);
      }
  for (cv_retired_t *r = b->things, *next; r; r = next)
    {
      next = r->next;
      if (r->pool)
	cv_pool_put (r->pool, r->index);
      else
	free (r->ptr);
      free (r);
    }
  free (b);
}

/* close_batch moves all objects retired until now into a batch, with the current epochs of the workers. */
static void
close_batch (cv_main_t *m)
{
  bool any = m->retired != NULL;
  for (int ip6 = 0; ip6 < 2; ip6++)
    any |= m->table[ip6].buckets && cv_load (&m->table[ip6].retired) != CV_NO_INDEX;
  cv_batch_t *b = any ? malloc (sizeof (*b) + sizeof (uint64_t) * m->n_workers) : NULL;
  if (!b)
    return;
  *b = (cv_batch_t){ .things = m->retired, .connections = { CV_NO_INDEX, CV_NO_INDEX } };
  m->retired = NULL;
  for (int ip6 = 0; ip6 < 2; ip6++)
    if (m->table[ip6].buckets)
      b->connections[ip6] = __atomic_exchange_n (&m->table[ip6].retired, CV_NO_INDEX, __ATOMIC_ACQ_REL);
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < m->n_workers; i++)
    b->epochs[i] = cv_load_acquire (&m->workers[i].epoch);
  *m->last_batch = b;
  m->last_batch = &b->next;
}

void
cv_gc (cv_main_t *m)
{
  close_batch (m);
  while (m->batches && passed (m, m->batches))
    {
      cv_batch_t *b = m->batches;
      if (!(m->batches = b->next))
	m->last_batch = &m->batches;
      release (m, b);
    }
}

/* cv_gc_free releases everything; no worker may run any more. */
void
cv_gc_free (cv_main_t *m)
{
  close_batch (m);
  for (cv_batch_t *b = m->batches, *next; b; b = next)
    {
      next = b->next;
      release (m, b);
    }
  m->batches = NULL;
}

uint32_t
cv_pool_get (cv_pool_t *p)
{
  uint32_t i = p->free;
  if (p->n && i != CV_NO_INDEX)
    {
      p->free = *(uint32_t *) cv_pool_at (p, i);
      memset (cv_pool_at (p, i), 0, p->size);
      return i;
    }
  i = p->n;
  if (i >> CV_CHUNK_BITS >= CV_CHUNKS)
    return CV_NO_INDEX;
  if (!p->chunks[i >> CV_CHUNK_BITS])
    {
      uint8_t *c = calloc (CV_CHUNK, p->size);
      if (!c)
	return CV_NO_INDEX;
      cv_publish (&p->chunks[i >> CV_CHUNK_BITS], c);
    }
  if (!p->n++)
    p->free = CV_NO_INDEX;
  return i;
}

void
cv_pool_put (cv_pool_t *p, uint32_t i)
{
  *(uint32_t *) cv_pool_at (p, i) = p->free;
  p->free = i;
}

void
cv_pool_free (cv_pool_t *p)
{
  for (uint32_t i = 0; i < CV_CHUNKS && p->chunks[i]; i++)
    free (p->chunks[i]);
}

static void
put_slot (cv_map_slots_t *s, uint64_t v)
{
  uint32_t i = (uint32_t) (v >> 32);
  while (s->slots[i & s->mask])
    i++;
  cv_publish (&s->slots[i & s->mask], v);
  s->used++;
}

/* grow copies the map, without tombstones, to one with space for twice the entries. */
static bool
grow (cv_main_t *m, cv_map_t *map)
{
  uint32_t size = 16;
  while (size < (map->n + 1) * 4)
    size *= 2;
  cv_map_slots_t *old = map->slots, *s = calloc (1, sizeof (*s) + sizeof (uint64_t) * size);
  if (!s)
    return false;
  s->mask = size - 1;
  for (uint32_t i = 0; old && i <= old->mask; i++)
    if (old->slots[i] && (uint32_t) old->slots[i] != CV_MAP_DEAD)
      put_slot (s, old->slots[i]);
  cv_publish (&map->slots, s);
  cv_retire (m, old);
  return true;
}

bool
cv_map_add (cv_main_t *m, cv_map_t *map, uint32_t hash, uint32_t index)
{
  if ((!map->slots || (map->slots->used + 1) * 2 > map->slots->mask + 1) && !grow (m, map))
    return false;
  put_slot (map->slots, (uint64_t) hash << 32 | (index + 1));
  map->n++;
  return true;
}

void
cv_map_del (cv_map_t *map, uint32_t hash, uint32_t index)
{
  cv_map_slots_t *s = map->slots;
  if (!s)
    return;
  for (uint32_t i = hash; s->slots[i & s->mask]; i++)
    if (s->slots[i & s->mask] == ((uint64_t) hash << 32 | (index + 1)))
      {
	cv_publish (&s->slots[i & s->mask], (uint64_t) hash << 32 | CV_MAP_DEAD);
	map->n--;
	return;
      }
}
