/* The table of connections: buckets of one cache line, two places for a key, readers without locks. */
#include <stdlib.h>
#include <sys/mman.h>
#include "internal.h"

#define HUGE_PAGE (2ul << 20)

static size_t
rounded (size_t size)
{
  return (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

/* cv_pages maps memory that is aligned to huge pages: a look-up touches two or three far places, each of which needs an entry of the TLB. */
void *
cv_pages (size_t size)
{
  size_t n = rounded (size);
  uint8_t *p = mmap (NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  size_t before = -(uintptr_t) p & (HUGE_PAGE - 1);
  if (before)
    munmap (p, before);
  if (before != HUGE_PAGE)
    munmap (p + before + n, HUGE_PAGE - before);
  /* without them it is slower, and works */
  (void) madvise (p + before, n, MADV_HUGEPAGE);
  return p + before;
}

void
cv_pages_free (void *p, size_t size)
{
  if (p)
    munmap (p, rounded (size));
}

static uint64_t
n_buckets (uint32_t connections)
{
  /* two keys a connection; at most five of seven slots are used on average */
  uint64_t want = (uint64_t) connections * 2 / 5 + 1, n = 64;
  while (n < want)
    n *= 2;
  return n;
}

bool
cv_table_make (cv_table_t *t, uint32_t connections)
{
  uint64_t n = n_buckets (connections);
  *t = (cv_table_t){ .bucket_mask = n - 1, .capacity = connections, .free = CV_NO_INDEX, .retired = CV_NO_INDEX };
  t->connections = cv_pages (sizeof (cv_connection_t) * connections);
  cv_bucket_t *buckets = cv_pages (sizeof (cv_bucket_t) * n);
  if (!t->connections || !buckets)
    {
      cv_pages_free (t->connections, sizeof (cv_connection_t) * connections);
      cv_pages_free (buckets, sizeof (cv_bucket_t) * n);
      t->connections = NULL;
      return false;
    }
  cv_publish (&t->buckets, buckets);
  return true;
}

void
cv_table_free (cv_table_t *t)
{
  if (!t->buckets)
    return;
  cv_pages_free (t->buckets, sizeof (cv_bucket_t) * (t->bucket_mask + 1));
  cv_pages_free (t->connections, sizeof (cv_connection_t) * t->capacity);
  t->buckets = NULL;
}

static bool
try_lock (uint32_t *lock)
{
  uint32_t free = 0;
  return __atomic_compare_exchange_n (lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void
relax (void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ volatile ("yield");
#endif
}

static void
lock (uint32_t *l)
{
  while (!try_lock (l))
    relax ();
}

static void
unlock (uint32_t *l)
{
  __atomic_store_n (l, 0, __ATOMIC_RELEASE);
}

static cv_bucket_t *
other_bucket (const cv_table_t *t, uint64_t hash)
{
  return &t->buckets[cv_mum (hash, 0x9e3779b97f4a7c15) & t->bucket_mask];
}

/* lock_both locks the key's first bucket, and its other one, which may be the same. */
static cv_bucket_t *
lock_both (cv_bucket_t *first, cv_bucket_t *other)
{
  lock (&first->lock);
  while (other != first && !try_lock (&other->lock))
    {
      /* another thread may hold it and wait for the first */
      unlock (&first->lock);
      relax ();
      lock (&first->lock);
    }
  return other;
}

static int
free_slot (const cv_bucket_t *b)
{
  for (int i = 0; i < CV_BUCKET_SLOTS; i++)
    if (!cv_load (&b->slots[i]))
      return i;
  return -1;
}

/* All insertions of one key hold the lock of its first bucket, so that a key is there once. */
cv_insert_t
cv_table_insert (cv_table_t *t, const cv_tuple_t *key, uint64_t hash, uint32_t connection, uint32_t direction)
{
  cv_bucket_t *first = &t->buckets[hash & t->bucket_mask], *other = other_bucket (t, hash);
  uint64_t slot = (hash >> 32) << 32 | (((uint64_t) connection << 1 | direction) + 1);
  uint32_t ignored;
  lock_both (first, other);
  cv_insert_t result = CV_TABLE_FULL;
  int i;
  if (cv_table_find (t, key, hash, &ignored) != CV_NO_INDEX)
    result = CV_TAKEN;
  else if ((i = free_slot (first)) >= 0)
    {
      cv_publish (&first->slots[i], slot);
      result = CV_INSERTED;
    }
  else if (other != first && (i = free_slot (other)) >= 0)
    {
      /* readers look there because of the count, so the count comes first */
      cv_publish (&first->spilled, first->spilled + 1);
      cv_publish (&other->slots[i], slot);
      result = CV_INSERTED;
    }
  if (other != first)
    unlock (&other->lock);
  unlock (&first->lock);
  return result;
}

void
cv_table_remove (cv_table_t *t, uint64_t hash, uint32_t connection, uint32_t direction)
{
  cv_bucket_t *first = &t->buckets[hash & t->bucket_mask], *other = other_bucket (t, hash);
  uint64_t slot = (hash >> 32) << 32 | (((uint64_t) connection << 1 | direction) + 1);
  lock_both (first, other);
  bool found = false;
  for (int i = 0; i < CV_BUCKET_SLOTS && !found; i++)
    if (cv_load (&first->slots[i]) == slot)
      {
	cv_publish (&first->slots[i], 0);
	found = true;
      }
  for (int i = 0; i < CV_BUCKET_SLOTS && !found && other != first; i++)
    if (cv_load (&other->slots[i]) == slot)
      {
	cv_publish (&other->slots[i], 0);
	cv_publish (&first->spilled, first->spilled - 1);
	found = true;
      }
  if (other != first)
    unlock (&other->lock);
  unlock (&first->lock);
}

uint32_t
cv_connection_alloc (cv_table_t *t)
{
  lock (&t->free_lock);
  uint32_t i = t->free;
  if (i != CV_NO_INDEX)
    t->free = t->connections[i].next;
  else if (t->high < t->capacity)
    {
      i = t->high;
      cv_publish (&t->high, i + 1);
    }
  unlock (&t->free_lock);
  return i;
}

void
cv_connection_release (cv_table_t *t, uint32_t i)
{
  lock (&t->free_lock);
  t->connections[i].next = t->free;
  t->free = i;
  unlock (&t->free_lock);
}
