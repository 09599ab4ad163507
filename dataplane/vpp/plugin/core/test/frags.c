/* Tests of the fragment tables (shell/frag.c): known ports and waiting fragments, the limits, random use compared with a model, and
 * several threads. Each buffer that a table accepts is returned exactly once. frags [rounds [seed]]. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../shell/frag.h"
#include "check.h"

static uint32_t
rnd (uint64_t *state, uint32_t n)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t) (*state >> 20) % n;
}

/* piece returns a fragment between two of the hosts. */
static cv_packet_t
piece (bool ip6, uint8_t proto, uint32_t src, uint32_t dst, uint32_t id)
{
  cv_packet_t p = { .proto = proto, .frag_id = id };
  p.tuple.ip6 = ip6;
  p.tuple.src.u32[ip6 ? 3 : 0] = src;
  p.tuple.dst.u32[ip6 ? 3 : 0] = dst;
  return p;
}

static void
learn (frags_t *f, cv_packet_t p, uint16_t ports, uint32_t now, frags_out_t *go, frags_out_t *gone)
{
  p.tuple.sport = ports;
  p.tuple.dport = (uint16_t) ~ports;
  p.tcp_flags = (uint8_t) ports;
  frags_learn (f, &p, now, go, gone);
}

/* has_ports reports whether a fragment has the ports and the protocol of a first fragment of UDP. */
static bool
has_ports (const cv_packet_t *p, uint16_t ports)
{
  uint16_t other = (uint16_t) ~ports;
  return p->sport == ports && p->dport == other && p->tcp_flags == (uint8_t) ports && p->transport == 17;
}

static void
test_order (void)
{
  frags_t *f = frags_new (64, 100, 1);
  frags_out_t go, gone;
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      cv_packet_t p = piece (ip6, 17, 1, 2, 7), q;
      for (uint32_t b = 0; b < 3; b++)
	check (frags_find (f, &p, 100 + b, 10, &gone) == FRAG_WAITS && !gone.n);
      learn (f, p, 4711, 10, &go, &gone);
      check (go.n == 3 && go.buffers[0] == 100 && go.buffers[1] == 101 && go.buffers[2] == 102 && !gone.n);
      check (frags_find (f, &p, 200, 10 + FRAG_LIFETIME, &gone) == FRAG_KNOWN && has_ports (&p, 4711));
      /* fragments of another packet that share some fields do not match */
      q = piece (ip6, 17, 1, 2, 8);
      check (frags_find (f, &q, 300, 11, &gone) == FRAG_WAITS, "another number");
      q = piece (ip6, 17, 1, 3, 7);
      check (frags_find (f, &q, 301, 11, &gone) == FRAG_WAITS, "another destination");
      q = piece (ip6, 17, 3, 2, 7);
      check (frags_find (f, &q, 302, 11, &gone) == FRAG_WAITS, "another source");
      q = piece (ip6, 6, 1, 2, 7);
      check (frags_find (f, &q, 303, 11 + FRAG_LIFETIME, &gone) == (ip6 ? FRAG_KNOWN : FRAG_WAITS), "another protocol");
      check (!ip6 || has_ports (&q, 4711), "the protocol is not that of the first fragment");
      /* after a pause the same identification belongs to another packet */
      p = piece (ip6, 17, 1, 2, 7);
      check (frags_find (f, &p, 304, 12 + 3 * FRAG_LIFETIME, &gone) == FRAG_WAITS, "the same number later");
      while (frags_expire (f, 0, true, &gone))
	;
    }
  frags_free (f);
}

static void
test_bounds (void)
{
  frags_out_t go, gone;
  frags_t *f = frags_new (64, FRAG_WAITING + 4, 2);
  cv_packet_t p = piece (false, 17, 1, 2, 7), q = piece (false, 17, 1, 2, 8);
  for (uint32_t b = 0; b < FRAG_WAITING; b++)
    check (frags_find (f, &p, b, 10, &gone) == FRAG_WAITS);
  check (frags_find (f, &p, 99, 10, &gone) == FRAG_REFUSED, "too many of a packet");
  for (uint32_t b = 0; b < 4; b++)
    check (frags_find (f, &q, 50 + b, 10, &gone) == FRAG_WAITS);
  check (frags_find (f, &q, 99, 10, &gone) == FRAG_REFUSED, "too many in all");
  /* no fragment is returned before its time, and all are returned afterwards */
  check (!frags_expire (f, 10 + FRAG_WAIT, false, &gone));
  uint32_t n = 0;
  while (frags_expire (f, 11 + FRAG_WAIT, false, &gone))
    n += gone.n;
  check (n == FRAG_WAITING + 4, "%u", n);
  learn (f, p, 1, 12 + FRAG_WAIT, &go, &gone);
  check (!go.n && !gone.n);
  frags_free (f);

  /* later fragments do not extend the wait */
  f = frags_new (64, FRAG_WAITING, 2);
  for (uint32_t b = 0; b < FRAG_WAITING; b++)
    check (frags_find (f, &p, b, 10, &gone) == FRAG_WAITS);
  for (uint32_t now = 11; now <= 11 + FRAG_WAIT; now++)
    check (frags_find (f, &p, 99, now, &gone) == FRAG_REFUSED);
  check (frags_expire (f, 11 + FRAG_WAIT, false, &gone) && gone.n == FRAG_WAITING, "%u", gone.n);
  check (frags_find (f, &p, 1, 11 + FRAG_WAIT, &gone) == FRAG_WAITS, "the packet may wait again");
  check (!frags_expire (f, 12 + FRAG_WAIT, false, &gone), "from now on");
  while (frags_expire (f, 0, true, &gone))
    ;
  frags_free (f);

  /* one set of four places: a fifth packet evicts the one that was idle for the longest time */
  f = frags_new (1, 100, 3);
  for (uint32_t id = 0; id < 4; id++)
    {
      p = piece (true, 17, 1, 2, id);
      check (frags_find (f, &p, id, 10 + (id + 2) % 4, &gone) == FRAG_WAITS && !gone.n);
    }
  p = piece (true, 17, 1, 2, 9);
  check (frags_find (f, &p, 9, 14, &gone) == FRAG_WAITS && gone.n == 1 && gone.buffers[0] == 2, "%u: %u", gone.n, gone.buffers[0]);
  frags_free (f); /* the caller owns the waiting fragments, as after frags_expire of all */
}

/* Two threads: one reads a tick that is older than the current one of the other. */
static void
test_ticks (void)
{
  frags_out_t go, gone;
  frags_t *f = frags_new (1, 100, 3);
  cv_packet_t p = piece (false, 17, 1, 2, 7), q;
  learn (f, p, 4711, 10, &go, &gone);
  check (frags_find (f, &p, 1, 9, &gone) == FRAG_KNOWN && has_ports (&p, 4711), "taken for another packet");
  for (uint32_t id = 0; id < 3; id++)
    {
      q = piece (false, 17, 3, 4, id);
      check (frags_find (f, &q, id, 5, &gone) == FRAG_WAITS);
    }
  p = piece (false, 17, 1, 2, 7);
  check (frags_find (f, &p, 1, 10, &gone) == FRAG_KNOWN);
  q = piece (false, 17, 3, 4, 9);
  check (frags_find (f, &q, 9, 9, &gone) == FRAG_WAITS && gone.n == 1 && gone.buffers[0] == 0, "the newest has made room");
  check (!frags_expire (f, 4, false, &gone), "before its time");
  frags_free (f);
}

#define IDS	64
#define BUFFERS 100000

/* Comparison with a model: the buffers in the table, and the last ports of each packet. */
static void
test_random (uint32_t rounds, uint64_t seed)
{
  static bool inside[BUFFERS];
  struct
  {
    bool known;
    uint16_t ports;
    uint32_t seen;
  } model[2][IDS] = { 0 };
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  uint32_t limit = 1 + rnd (&state, 60), now = 1000, waiting = 0, known = 0, given = 0;
  frags_t *f = frags_new (1 + rnd (&state, 40), limit, seed);
  frags_out_t out[2];
  memset (inside, 0, sizeof (inside));
  for (uint32_t r = 0; r < rounds; r++)
    {
      bool ip6 = rnd (&state, 2);
      uint32_t id = rnd (&state, IDS), buffer = r % BUFFERS;
      cv_packet_t p = piece (ip6, 17, 1, 2, id);
      out[0].n = out[1].n = 0;
      now += !rnd (&state, 40);
      switch (rnd (&state, 8))
	{
	case 0:
	  frags_expire (f, now, false, &out[0]);
	  break;
	case 1:
	case 2:
	  learn (f, p, (uint16_t) r, now, &out[0], &out[1]);
	  model[ip6][id].known = true;
	  model[ip6][id].ports = (uint16_t) r;
	  model[ip6][id].seen = now;
	  break;
	default:
	  if (inside[buffer])
	    continue;
	  frag_result_t result = frags_find (f, &p, buffer, now, &out[0]);
	  if (result == FRAG_KNOWN)
	    {
	      check (model[ip6][id].known && has_ports (&p, model[ip6][id].ports), "ports without a first fragment");
	      check (now - model[ip6][id].seen <= FRAG_LIFETIME, "ports of another packet");
	      known++;
	    }
	  if (result == FRAG_WAITS)
	    {
	      inside[buffer] = true;
	      waiting++;
	    }
	  model[ip6][id].seen = now;
	}
      for (int k = 0; k < 2; k++)
	for (uint32_t i = 0; i < out[k].n; i++, waiting--, given++)
	  {
	    check (out[k].buffers[i] < BUFFERS && inside[out[k].buffers[i]], "buffer %u twice", out[k].buffers[i]);
	    inside[out[k].buffers[i]] = false;
	  }
      check (waiting <= limit, "%u wait", waiting);
    }
  while (frags_expire (f, now, true, &out[0]))
    waiting -= out[0].n;
  check (!waiting, "%u buffers are lost", waiting);
  check (known && given, "nothing has been tested");
  frags_free (f);
}

#define THREADS 4

static frags_t *shared;
static uint32_t taken, returned;

static void *
one_thread (void *arg)
{
  uint64_t state = (uintptr_t) arg * 77 + 5;
  for (uint32_t r = 0; r < 100000; r++)
    {
      cv_packet_t p = piece (false, 17, 1, 2, rnd (&state, 32));
      frags_out_t go = { 0 }, gone = { 0 };
      if (rnd (&state, 3))
	{
	  if (frags_find (shared, &p, r, 10 + r / 3000, &gone) == FRAG_WAITS)
	    __atomic_fetch_add (&taken, 1, __ATOMIC_RELAXED);
	}
      else if (rnd (&state, 3))
	learn (shared, p, (uint16_t) r, 10 + r / 3000, &go, &gone);
      else
	frags_expire (shared, 10 + r / 3000, false, &gone);
      __atomic_fetch_add (&returned, go.n + gone.n, __ATOMIC_RELAXED);
    }
  return NULL;
}

static void
test_threads (void)
{
  pthread_t threads[THREADS];
  frags_out_t gone;
  shared = frags_new (16, 40, 9);
  for (uintptr_t i = 0; i < THREADS; i++)
    check (!pthread_create (&threads[i], NULL, one_thread, (void *) (i + 1)));
  for (int i = 0; i < THREADS; i++)
    pthread_join (threads[i], NULL);
  while (frags_expire (shared, 0, true, &gone))
    returned += gone.n;
  check (taken && taken == returned, "%u taken, %u returned", taken, returned);
  frags_free (shared);
}

int
main (int argc, char **argv)
{
  uint32_t rounds = argc > 1 ? (uint32_t) strtoul (argv[1], NULL, 0) : 100000;
  uint64_t seed = argc > 2 ? strtoul (argv[2], NULL, 0) : 1;
  test_order ();
  test_bounds ();
  test_ticks ();
  for (uint32_t i = 0; i < 20; i++)
    test_random (rounds, seed * 20 + i);
  test_threads ();
  printf ("%u buffers waited and came back\n", returned);
  return 0;
}
