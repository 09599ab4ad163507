/* The connection table: buckets of one cache line, two possible buckets for a key, readers without locks. */
#include <stdlib.h>
#include <sys/mman.h>
#include "internal.h"

#define HUGE_PAGE (2ul << 20)

static size_t
rounded (size_t size)
{
  return (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

/* cv_pages maps memory that is aligned to huge pages: a lookup accesses two or three distant locations, and each needs a TLB entry. */
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
  /* without huge pages the table works, but is slower */
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
  /* two keys per connection; on average at most five of seven slots are used */
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
  uint32_t free = cv_load (lock) & ~1u;
  return __atomic_compare_exchange_n (lock, &free, free | 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
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
  cv_publish (l, *l & ~1u);
}

static cv_bucket_t *
first_bucket (const cv_table_t *t, uint64_t hash)
{
  return &t->buckets[hash & t->bucket_mask];
}

static cv_bucket_t *
other_bucket (const cv_table_t *t, uint64_t hash)
{
  return &t->buckets[cv_mum (hash, 0x9e3779b97f4a7c15) & t->bucket_mask];
}

/* lock_both locks the first bucket and the other bucket of a key, which may be the same bucket. */
static void
lock_both (cv_bucket_t *first, cv_bucket_t *other)
{
  lock (&first->lock);
  while (other != first && !try_lock (&other->lock))
    {
      /* another thread may hold this lock and wait for the first */
      unlock (&first->lock);
      relax ();
      lock (&first->lock);
    }
}

static void
unlock_both (cv_bucket_t *first, cv_bucket_t *other)
{
  if (other != first)
    unlock (&other->lock);
  unlock (&first->lock);
}

static int
free_slot (const cv_bucket_t *b)
{
  for (int i = 0; i < CV_BUCKET_SLOTS; i++)
    if (!cv_load (&b->slots[i]))
      return i;
  return -1;
}

/* ---- making room for a key whose two buckets are full ----
 *
 * Each key in these buckets has another bucket. If that bucket has a free slot, the key moves there; otherwise a key of that bucket may
 * move, and so on. This is a breadth-first search that ends after a number of buckets. It takes no lock, so each move checks again that
 * nothing has changed. Workers are in a frame while they insert, so no connection that a slot refers to is reused for another key in the
 * meantime. */

enum
{
  ROOM_BUCKETS = 64, /* buckets to visit for one key */
  ROOM_SEARCHES = 4,
};

typedef struct
{
  cv_bucket_t *bucket;
  int32_t from;	  /* the step with the bucket that the key comes from; -1: none */
  uint64_t moved; /* slot of that key */
} room_step_t;

static uint64_t
slot_hash (const cv_main_t *m, const cv_table_t *t, uint64_t slot)
{
  uint32_t ref = (uint32_t) slot - 1;
  return cv_hash (m, &t->connections[ref >> 1].key[ref & 1]);
}

/* The order is important for readers: first the copy, then the count of moves, then the removal of the original. */
bool
cv_table_move (const cv_main_t *m, cv_table_t *t, uint64_t slot, cv_bucket_t *from, cv_bucket_t *to)
{
  uint64_t hash = slot_hash (m, t, slot);
  cv_bucket_t *first = first_bucket (t, hash), *other = other_bucket (t, hash);
  if (!(from == first && to == other) && !(from == other && to == first))
    return false;
  lock_both (first, other);
  int at = 0, free = free_slot (to);
  while (at < CV_BUCKET_SLOTS && cv_load (&from->slots[at]) != slot)
    at++;
  bool can = at < CV_BUCKET_SLOTS && free >= 0 && slot_hash (m, t, slot) == hash;
  if (can)
    {
      if (to == other)
	cv_publish (&first->spilled, first->spilled + 1);
      cv_publish (&to->slots[free], slot);
      cv_publish (&first->lock, first->lock + 2);
      cv_publish (&from->slots[at], 0);
      if (to == first)
	cv_publish (&first->spilled, first->spilled - 1);
    }
  unlock_both (first, other);
  return can;
}

/* make_room frees a slot in one of two buckets. It returns false if that is not possible. After true, another worker may already have
 * taken the slot. */
static bool
make_room (const cv_main_t *m, cv_table_t *t, cv_bucket_t *first, cv_bucket_t *other)
{
  room_step_t steps[ROOM_BUCKETS] = { { .bucket = first, .from = -1 }, { .bucket = other, .from = -1 } };
  int32_t n = first == other ? 1 : 2;
  for (int32_t at = 0; at < n; at++)
    for (int i = 0; i < CV_BUCKET_SLOTS; i++)
      {
	cv_bucket_t *b = steps[at].bucket;
	uint64_t slot = cv_load_acquire (&b->slots[i]);
	if (!slot)
	  return true; /* a slot has become free in the meantime */
	uint64_t hash = slot_hash (m, t, slot);
	cv_bucket_t *to = first_bucket (t, hash);
	if (to == b)
	  to = other_bucket (t, hash);
	if (to == b)
	  continue;
	if (free_slot (to) < 0)
	  {
	    if (n < ROOM_BUCKETS)
	      steps[n++] = (room_step_t){ .bucket = to, .from = at, .moved = slot };
	    continue;
	  }
	for (int32_t k = at;; k = steps[k].from)
	  {
	    if (!cv_table_move (m, t, slot, steps[k].bucket, to) || steps[k].from < 0)
	      return true;
	    slot = steps[k].moved;
	    to = steps[k].bucket;
	  }
      }
  return false;
}

/* put inserts a key if one of its buckets has a free slot. All insertions of a key hold the lock of its first bucket, so that the key is
 * never stored twice. */
static cv_insert_t
put (cv_table_t *t, const cv_tuple_t *key, uint64_t hash, uint64_t slot)
{
  cv_bucket_t *first = first_bucket (t, hash), *other = other_bucket (t, hash);
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
      /* readers look in the other bucket only if the count is not zero, so the count must come first */
      cv_publish (&first->spilled, first->spilled + 1);
      cv_publish (&other->slots[i], slot);
      result = CV_INSERTED;
    }
  unlock_both (first, other);
  return result;
}

cv_insert_t
cv_table_insert (const cv_main_t *m, cv_table_t *t, const cv_tuple_t *key, uint64_t hash, uint32_t connection, uint32_t direction)
{
  uint64_t slot = (hash >> 32) << 32 | (((uint64_t) connection << 1 | direction) + 1);
  cv_insert_t result;
  for (int searches = 0; (result = put (t, key, hash, slot)) == CV_TABLE_FULL; searches++)
    if (searches == ROOM_SEARCHES || !make_room (m, t, first_bucket (t, hash), other_bucket (t, hash)))
      break;
  return result;
}

void
cv_table_remove (cv_table_t *t, uint64_t hash, uint32_t connection, uint32_t direction)
{
  cv_bucket_t *first = first_bucket (t, hash), *other = other_bucket (t, hash);
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
  unlock_both (first, other);
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
