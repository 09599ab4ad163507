/* Tests of the connection table alone: filled with random keys, compared with a model, and with readers while writers move keys. "table
 * bench" measures lookups. */
#include <pthread.h>
#include <time.h>
#include "packets.h"

static uint64_t state = 88172645463325252ull;

static uint64_t
rnd (void)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1d;
}

/* small is a table with few buckets. Each connection needs two slots. */
typedef struct
{
  cv_main_t *m;
  cv_table_t t;
  uint64_t mask; /* the bucket mask with which it was created */
  uint32_t connections;
} small_t;

static small_t
small (uint64_t buckets, uint32_t connections)
{
  cv_config_t c = { .connections_max = 1 };
  small_t s = { .m = cv_new (&c, 1, 4711), .connections = connections };
  check (s.m && cv_table_make (&s.t, connections) && s.t.bucket_mask + 1 >= buckets);
  s.mask = s.t.bucket_mask;
  s.t.bucket_mask = buckets - 1;
  return s;
}

static void
end (small_t *s)
{
  s->t.bucket_mask = s->mask;
  cv_table_free (&s->t);
  cv_free (s->m);
}

static cv_tuple_t
some_key (uint32_t i, int ip6)
{
  cv_tuple_t k = { .src.u32 = { htonl (0x0a000000 | i >> 8), 0, 0, 0 }, .dst.u32 = { htonl (0x0a600001), 0, 0, 0 }, .proto = CV_PROTO_TCP, .ip6 = (uint8_t) ip6 };
  k.sport = htons ((uint16_t) (1024 + (i & 255)));
  k.dport = htons (80);
  if (ip6)
    k.src.u32[3] = i;
  return k;
}

static cv_insert_t
insert (small_t *s, uint32_t i, uint32_t direction)
{
  const cv_tuple_t *k = &s->t.connections[i].key[direction];
  return cv_table_insert (s->m, &s->t, k, cv_hash (s->m, k), i, direction);
}

static void
remove_key (small_t *s, uint32_t i, uint32_t direction)
{
  cv_table_remove (&s->t, cv_hash (s->m, &s->t.connections[i].key[direction]), i, direction);
}

static bool
found (const small_t *s, uint32_t i, uint32_t direction)
{
  const cv_tuple_t *k = &s->t.connections[i].key[direction];
  uint32_t d, at = cv_table_find (&s->t, k, cv_hash (s->m, k), &d);
  return at == i && d == direction;
}

/* counts checks that each key is in one of its buckets, and that each bucket counts its keys that are in their other bucket. It returns
 * the number of keys. */
static uint64_t
counts (const small_t *s)
{
  const cv_table_t *t = &s->t;
  uint32_t *spilled = calloc (t->bucket_mask + 1, sizeof (*spilled));
  uint64_t n = 0;
  for (uint64_t b = 0; b <= t->bucket_mask; b++)
    for (int i = 0; i < CV_BUCKET_SLOTS; i++)
      {
	uint64_t slot = t->buckets[b].slots[i];
	if (!slot)
	  continue;
	uint32_t ref = (uint32_t) slot - 1;
	uint64_t hash = cv_hash (s->m, &t->connections[ref >> 1].key[ref & 1]), first = hash & t->bucket_mask;
	check (slot >> 32 == hash >> 32);
	n++;
	if (first == b)
	  continue;
	check ((cv_mum (hash, 0x9e3779b97f4a7c15) & t->bucket_mask) == b, "a key is in a bucket that is not its own");
	spilled[first]++;
      }
  for (uint64_t b = 0; b <= t->bucket_mask; b++)
    check (spilled[b] == t->buckets[b].spilled && !(t->buckets[b].lock & 1), "bucket %lu: %u keys elsewhere, counted %u, lock %u", (unsigned long) b, spilled[b],
	   t->buckets[b].spilled, t->buckets[b].lock);
  free (spilled);
  return n;
}

/* Random keys fill 95 % of the slots, and none is rejected. */
static void
filled (int ip6)
{
  for (uint64_t buckets = 1024; buckets <= 65536; buckets *= 8)
    {
      uint32_t n = (uint32_t) (buckets * CV_BUCKET_SLOTS * 95 / 200);
      small_t s = small (buckets, n + n / 2);
      for (uint32_t i = 0; i < n; i++)
	for (uint32_t d = 0; d < 2; d++)
	  {
	    s.t.connections[i].key[d] = some_key (d ? (uint32_t) rnd () >> 8 : i, ip6);
	    s.t.connections[i].key[d].dport = htons ((uint16_t) (80 + d));
	    cv_insert_t r = insert (&s, i, d);
	    check (r == CV_INSERTED || (r == CV_TAKEN && d), "%lu buckets: key %u of %u: %d", (unsigned long) buckets, 2 * i + d, 2 * n, r);
	    if (r == CV_TAKEN)
	      d--; /* replaced by another random key */
	  }
      check (counts (&s) == 2 * (uint64_t) n);
      for (uint32_t i = 0; i < n; i++)
	check (found (&s, i, 0) && found (&s, i, 1) && insert (&s, i, 0) == CV_TAKEN);
      for (uint32_t i = 0; i < n; i++)
	{
	  remove_key (&s, i, 0);
	  remove_key (&s, i, 1);
	}
      check (counts (&s) == 0);
      end (&s);
    }
}

/* Keys are added to and removed from a table that is 90 % full. A model describes the expected content. */
static void
beside_model (void)
{
  enum { BUCKETS = 64, KEYS = BUCKETS * CV_BUCKET_SLOTS * 2 };
  small_t s = small (BUCKETS, KEYS);
  static bool in[KEYS];
  uint32_t n = 0, most = BUCKETS * CV_BUCKET_SLOTS * 9 / 10;
  for (uint32_t i = 0; i < KEYS; i++)
    s.t.connections[i].key[0] = some_key (i, i & 1);
  for (uint32_t round = 0; round < 400000; round++)
    {
      uint32_t i = (uint32_t) (rnd () >> 32) % KEYS;
      check (found (&s, i, 0) == in[i], "round %u: key %u", round, i);
      if (in[i])
	{
	  check (insert (&s, i, 0) == CV_TAKEN);
	  if (n == most || rnd () >> 62 == 0)
	    {
	      remove_key (&s, i, 0);
	      in[i] = false;
	      n--;
	    }
	}
      else if (n < most)
	{
	  check (insert (&s, i, 0) == CV_INSERTED, "round %u: refused with %u of %u slots taken", round, n, BUCKETS * CV_BUCKET_SLOTS);
	  in[i] = true;
	  n++;
	}
      if (round % 1000 == 0)
	check (counts (&s) == n);
    }
  check (n > most * 9 / 10, "%u keys in the end", n);
  end (&s);
}

/* A table without a free slot rejects keys, and accepts keys again when a slot is free. */
static void
no_slot_left (void)
{
  enum { BUCKETS = 8, SLOTS = BUCKETS * CV_BUCKET_SLOTS };
  small_t s = small (BUCKETS, 4 * SLOTS);
  uint32_t n = 0, last = 0;
  for (uint32_t i = 0; i < 4 * SLOTS; i++)
    {
      s.t.connections[i].key[0] = some_key (i, 0);
      cv_insert_t r = insert (&s, i, 0);
      check (r == CV_INSERTED || r == CV_TABLE_FULL);
      if (r == CV_INSERTED)
	last = i, n++;
    }
  check (n == SLOTS && counts (&s) == n, "%u of %u", n, SLOTS);
  remove_key (&s, last, 0);
  check (insert (&s, last, 0) == CV_INSERTED && counts (&s) == n);
  end (&s);
}

/* ---- readers while writers run ---- */

enum
{
  WRITERS = 2,
  READERS = 2,
  RESIDENTS = 300, /* keys that stay */
  GUESTS = 700,	   /* keys that are added and removed; together 97 % of the slots */
  RACE_BUCKETS = 128,
};

static small_t race;
static bool stop;
static uint32_t moves;

/* Returns the moves of all keys, which their buckets count. */
static uint32_t
moves_of_all (void)
{
  uint32_t n = 0;
  for (uint64_t b = 0; b < RACE_BUCKETS; b++)
    n += cv_load (&race.t.buckets[b].lock) >> 1;
  return n;
}

static uint32_t
moves_of_one (void)
{
  return cv_load (&moves);
}

/* Waits some seconds. On a busy machine it waits until there were enough moves, but at most a minute. */
static void
wait_moves (int seconds, uint32_t (*count) (void))
{
  time_t begin = time (NULL);
  while (time (NULL) < begin + seconds || (count () <= 1000 && time (NULL) < begin + 60))
    nanosleep (&(struct timespec) { .tv_nsec = 10 * 1000 * 1000 }, NULL);
}

static void *
read_residents (void *arg)
{
  (void) arg;
  for (uint32_t i = 0; !cv_load (&stop); i++)
    check (found (&race, i % RESIDENTS, 0), "key %u is there, and was not found", i % RESIDENTS);
  return NULL;
}

static void *
read_one (void *arg)
{
  (void) arg;
  while (!cv_load (&stop))
    check (found (&race, 0, 0), "the key is there, and was not found");
  return NULL;
}

static void *
write_guests (void *arg)
{
  uint64_t x = 4711 + (uintptr_t) arg;
  uint32_t from = RESIDENTS + (uint32_t) (uintptr_t) arg * (GUESTS / WRITERS);
  bool in[GUESTS / WRITERS] = { 0 };
  while (!cv_load (&stop))
    {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      uint32_t i = (uint32_t) (x >> 32) % (GUESTS / WRITERS);
      check (found (&race, from + i, 0) == in[i]);
      if (in[i])
	{
	  remove_key (&race, from + i, 0);
	  in[i] = false;
	}
      else
	{
	  cv_insert_t r = insert (&race, from + i, 0);
	  check (r != CV_TAKEN);
	  in[i] = r == CV_INSERTED;
	}
    }
  for (uint32_t i = 0; i < GUESTS / WRITERS; i++)
    if (in[i])
      remove_key (&race, from + i, 0);
  return NULL;
}

static void
readers_beside_writers (int seconds)
{
  pthread_t threads[READERS + WRITERS];
  race = small (RACE_BUCKETS, RESIDENTS + GUESTS);
  for (uint32_t i = 0; i < RESIDENTS + GUESTS; i++)
    race.t.connections[i].key[0] = some_key (i, 0);
  for (uint32_t i = 0; i < RESIDENTS; i++)
    check (insert (&race, i, 0) == CV_INSERTED);
  for (uintptr_t i = 0; i < READERS + WRITERS; i++)
    check (!pthread_create (&threads[i], NULL, i < READERS ? read_residents : write_guests, (void *) (i < READERS ? i : i - READERS)));
  wait_moves (seconds, moves_of_all);
  cv_store (&stop, true);
  for (int i = 0; i < READERS + WRITERS; i++)
    pthread_join (threads[i], NULL);
  uint32_t n = moves_of_all ();
  check (n > 1000, "only %u keys have moved", n);
  check (counts (&race) == RESIDENTS, "%lu keys are left", (unsigned long) counts (&race));
  printf ("%u keys moved beside readers\n", n);
  end (&race);
}

/* One key moves between its buckets continuously. Readers always find it. */
static void *
move_all_the_time (void *arg)
{
  cv_table_t *t = &race.t;
  uint64_t hash = cv_hash (race.m, &t->connections[0].key[0]);
  cv_bucket_t *first = &t->buckets[hash & t->bucket_mask], *other = &t->buckets[cv_mum (hash, 0x9e3779b97f4a7c15) & t->bucket_mask];
  uint64_t slot = *(uint64_t *) arg;
  check (first != other);
  for (; !cv_load (&stop); cv_store (&moves, moves + 1))
    check (cv_table_move (race.m, t, slot, first, other) && !cv_table_move (race.m, t, slot, first, other) && cv_table_move (race.m, t, slot, other, first));
  return NULL;
}

static void
readers_beside_one_move (int seconds)
{
  pthread_t threads[READERS + 1];
  race = small (RACE_BUCKETS, RESIDENTS + GUESTS);
  race.t.connections[0].key[0] = some_key (7, 0);
  check (insert (&race, 0, 0) == CV_INSERTED);
  uint64_t slot = 0;
  for (uint64_t b = 0; b < RACE_BUCKETS; b++)
    slot |= race.t.buckets[b].slots[0];
  stop = false;
  moves = 0;
  check (!pthread_create (&threads[0], NULL, move_all_the_time, &slot));
  for (int i = 1; i <= READERS; i++)
    check (!pthread_create (&threads[i], NULL, read_one, NULL));
  wait_moves (seconds, moves_of_one);
  cv_store (&stop, true);
  for (int i = 0; i <= READERS; i++)
    pthread_join (threads[i], NULL);
  check (moves > 1000 && counts (&race) == 1);
  printf ("one key moved %u times beside readers\n", moves);
  end (&race);
}

/* ---- clocks ---- */

#if defined(__x86_64__)
static double
clocks_each (const small_t *s, uint32_t n, bool known)
{
  double best = 1e9;
  for (int round = 0; round < 5; round++)
    {
      uint32_t got = 0, d;
      uint64_t begin = __builtin_ia32_rdtsc ();
      for (uint32_t i = 0; i < n; i++)
	{
	  cv_tuple_t k = some_key (known ? i : i + n, 0);
	  got += cv_table_find (&s->t, &k, cv_hash (s->m, &k), &d) != CV_NO_INDEX;
	}
      double each = (double) (__builtin_ia32_rdtsc () - begin) / n;
      check (got <= (known ? n : 0));
      best = each < best ? each : best;
    }
  return best;
}

static void
bench (void)
{
  for (uint64_t buckets = 512; buckets <= 512 << 8; buckets <<= 8)
    for (uint32_t percent = 45; percent <= 90; percent += 45)
      {
	uint32_t n = (uint32_t) (buckets * CV_BUCKET_SLOTS * percent / 100), refused = 0;
	small_t s = small (buckets, n);
	uint64_t begin = __builtin_ia32_rdtsc ();
	for (uint32_t i = 0; i < n; i++)
	  {
	    s.t.connections[i].key[0] = some_key (i, 0);
	    refused += insert (&s, i, 0) != CV_INSERTED;
	  }
	double each = (double) (__builtin_ia32_rdtsc () - begin) / n;
	printf ("%7lu buckets, %u %% full: %u of %u refused; insert %4.0f clocks", (unsigned long) buckets, percent, refused, n, each);
	printf (", found %4.0f, not found %4.0f\n", clocks_each (&s, n, true), clocks_each (&s, n, false));
	end (&s);
      }
}
#endif

int
main (int argc, char **argv)
{
#if defined(__x86_64__)
  if (argc > 1 && !strcmp (argv[1], "bench"))
    {
      bench ();
      return 0;
    }
#endif
  filled (0);
  filled (1);
  beside_model ();
  no_slot_left ();
  int seconds = argc > 1 ? atoi (argv[1]) : 2;
  readers_beside_writers (seconds);
  readers_beside_one_move (seconds);
  puts ("ok");
  return 0;
}
