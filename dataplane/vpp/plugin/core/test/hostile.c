/* Attacks by a hostile pod or a hostile neighbour, and races between two workers. Each function tests one scenario; main runs all. */
#include <pthread.h>
#include <time.h>
#include "policy.h"

/* A pod or an external machine sends forged answers to a victim that has policy. Each creates a connection, which counts for its sender:
 * the victim can still open connections. */
static void
forged_answers (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (int far = 0; far < 2; far++)
      {
	net_t n = world (4096, 1);
	endpoint (&n, POD_A, CV_ROLE_POD, 0, 50, A[0], A[1]);
	endpoint (&n, POD_B, CV_ROLE_POD, 0, 50, B[0], B[1]);
	endpoint (&n, UPLINK, CV_ROLE_UPLINK, 0, 50, NULL, NULL);
	cv_rule_t all = { .action = CV_RULE_ALLOW };
	admit (&n, all);
	const char *from = far ? OUT[ip6] : A[ip6];
	uint32_t refused = 0;
	for (uint16_t port = 0; port < 500; port++)
	  {
	    pkt_t k = build (from, B[ip6], CV_PROTO_TCP, 443, (uint16_t) (40000 + port), ACK, 0);
	    refused += transmit (&n, far ? UPLINK : POD_A, &k) == CV_VERDICT_DROP && n.p.reason == CV_LIMIT;
	  }
	check (refused == 450, "%u of 500 were refused", refused);
	pkt_t k = build (B[ip6], R[ip6], CV_PROTO_TCP, 50000, 443, SYN, 0);
	check (transmit (&n, POD_B, &k) == CV_VERDICT_PASS, "the victim is refused: reason %d", n.p.reason);
	k = answer (&k, SYN | ACK);
	check (transmit (&n, OVERLAY, &k) == CV_VERDICT_PASS, "reason %d", n.p.reason);
	/* the connections created in this way are judged like all others */
	check (closed (&n, POD_B) == CV_OK);
	k = build (from, B[ip6], CV_PROTO_TCP, 443, 40000, ACK, 0);
	check (transmit (&n, far ? UPLINK : POD_A, &k) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "reason %d", n.p.reason);
	cv_free (n.m);
      }
}

/* Protocol 255 is that of the affinity records in the table. No packet matches them. */
static void
reserved_protocol (void)
{
  net_t n = world (1000, 1);
  cv_frontend_t f = balanced (10);
  cv_addr_t group = addr ("10.99.0.1");
  f.affinity_group = group.u32[0];
  f.affinity_timeout = 1000;
  frontend (&n, VIP[0], CV_PROTO_TCP, 80, f);
  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, 40000, 80, SYN, 0);
  check (transmit (&n, POD_A, &k) == CV_VERDICT_PASS && n.m->table[0].n_affinities == 1);
  k = build (A[0], "10.99.0.1", CV_PROTO_AFFINITY, 0, 0, 0, 20);
  check (transmit (&n, POD_A, &k) == CV_VERDICT_DROP && n.p.connection == CV_NO_INDEX, "connection %u, reason %d", n.p.connection, n.p.reason);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      k = build (R[ip6], B[ip6], CV_PROTO_AFFINITY, 0, 0, 0, 20);
      check (transmit (&n, OVERLAY, &k) == CV_VERDICT_DROP && n.p.reason == CV_MALFORMED, "reason %d", n.p.reason);
    }
  cv_free (n.m);
}

/* The sweep examines a connection at the moment at which the worker that created it ends it, because its endpoint was deleted. */
static void
given_up (void)
{
  net_t n = world (1000, 1);
  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, 40000, 80, SYN, 0);
  check (transmit (&n, POD_A, &k) == CV_VERDICT_PASS);
  cv_connection_t *c = &n.m->table[0].connections[n.p.connection];
  cv_owner_t *o = cv_pool_at (&n.m->owners, c->owner);
  c->owner = CV_NO_INDEX;
  o->connections[0]--;
  c->flags |= CV_CONN_BEHIND_HOST;
  k = answer (&k, SYN | ACK);
  transmit (&n, POD_B, &k);
  sleep_ticks (&n, 15);
  check (n_connections (&n) == 0, "%u", n_connections (&n));
  cv_free (n.m);
}

static double
seconds (void)
{
  struct timespec t;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* remove_all creates services with one backend each and removes them, the backends first. It returns the time of one removal. */
static double
remove_all (uint32_t services)
{
  net_t n = world (1000, 1);
  for (uint32_t i = 0; i < services; i++)
    {
      service (&n, 1000 + i, 0);
      check (backend (&n, 1000 + i, B[0], 8080, 0, true) == CV_OK);
    }
  double begin = seconds ();
  for (uint32_t i = 0; i < services; i++)
    check (backend (&n, 1000 + i, B[0], 8080, 0, false) == CV_OK);
  for (uint32_t i = 0; i < services; i++)
    check (cv_service_del (n.m, 1000 + i) == CV_OK);
  double took = (seconds () - begin) / services;
  sleep_ticks (&n, 5);
  check (n.m->emptying == CV_NO_INDEX && n.m->draining == CV_NO_INDEX);
  cv_free (n.m);
  return took;
}

/* A namespace with many services is deleted at once: one removal costs the same for any number of services that wait for the sweep. */
static void
many_removals (void)
{
  double few = remove_all (2000), many = remove_all (64000);
  check (many < 8 * few + 1e-6, "a removal takes %.0f ns among 2,000, %.0f ns among 64,000", few * 1e9, many * 1e9);
  printf ("a removal takes %.0f ns among 2,000 services, %.0f ns among 64,000\n", few * 1e9, many * 1e9);
}

/* The last backend of a service is removed, added again, and removed again, while other services do the same. */
static void
emptying (void)
{
  net_t n = world (1000, 1);
  for (uint64_t i = 0; i < 5; i++)
    {
      service (&n, 20 + i, 0);
      check (backend (&n, 20 + i, B[0], 8080, 0, true) == CV_OK && backend (&n, 20 + i, B[0], 8080, 0, false) == CV_OK);
    }
  check (backend (&n, 22, B[0], 8080, 0, true) == CV_OK); /* in the middle of the list */
  check (backend (&n, 24, A[0], 8080, 0, true) == CV_OK); /* the head of the list */
  check (cv_service_del (n.m, 20) == CV_OK);		  /* the end of the list */
  check (backend (&n, 22, B[0], 8080, 0, false) == CV_OK && backend (&n, 22, B[0], 8080, 0, true) == CV_OK);
  sleep_ticks (&n, 10);
  for (uint64_t i = 21; i < 25; i++)
    check (backend (&n, i, i == 24 ? A[0] : B[0], 8080, 0, false) == (i == 22 || i == 24 ? CV_OK : CV_NOT_FOUND), "service %lu", (unsigned long) i);
  sleep_ticks (&n, 10);
  check (n.m->emptying == CV_NO_INDEX);
  cv_free (n.m);
}

/* ---- a set to which a rule that denies refers is removed while a worker evaluates it ---- */

static net_t shared;
static uint32_t state; /* 0: wait, 1: evaluate the set, 2: end */
static uint32_t waits;

static void *
ask_all_the_time (void *arg)
{
  (void) arg;
  net_t n = shared;
  for (uint32_t s; (s = cv_load_acquire (&state)) != 2;)
    {
      cv_publish (&waits, !s);
      if (!s)
	continue;
      pkt_t k = build (R[0], B[0], CV_PROTO_UDP, 40000, 80, 0, 0);
      check (offer (&n, 0, OVERLAY, &k) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "it passed: verdict %d, reason %d", n.p.verdict, n.p.reason);
    }
  return NULL;
}

static void
removed_set (void)
{
  net_t n = shared = world (1000, 1);
  char name[CV_NAME_LEN] = "set";
  cv_rule_t rules[] = { { .action = CV_RULE_DENY, .source = 7 }, { .action = CV_RULE_ALLOW } };
  check (policy (&n, 1, CV_INGRESS, rules, 2) == CV_OK && police (&n, POD_B, 1, 0) == CV_OK);
  pthread_t thread;
  check (!pthread_create (&thread, NULL, ask_all_the_time, NULL));
  for (double end = seconds () + 0.5; seconds () < end;)
    {
      cv_publish (&state, 0);
      while (!cv_load_acquire (&waits))
	;
      check (cv_set_set (n.m, 7, name, CV_SET_NETWORKS) == CV_OK && member (&n, 7, R[0], true) == CV_OK);
      cv_publish (&state, 1);
      while (cv_load_acquire (&waits))
	;
      for (volatile uint32_t i = 0; i < (n.now * 37 & 1023); i++)
	;
      check (cv_set_del (n.m, 7) == CV_OK);
      n.now++;
      cv_sweep (n.m, NOW_START);
    }
  cv_publish (&state, 2);
  pthread_join (thread, NULL);
  cv_free (n.m);
}

/* ---- a client is removed from a set while a worker judges its packet: a decision to allow must not be stored for the time after the
 * change ---- */

static void *
send_all_the_time (void *arg)
{
  (void) arg;
  net_t n = shared;
  for (uint32_t s; (s = cv_load_acquire (&state)) != 2;)
    {
      pkt_t k = build (R[0], B[0], CV_PROTO_UDP, 40000, 80, 0, 0);
      cv_verdict_t v = offer_fast (&n, 0, OVERLAY, &k);
      check (!s || (v == CV_VERDICT_DROP && n.p.reason == CV_POLICY), "it passed: verdict %d, reason %d", v, n.p.reason);
      cv_publish (&waits, s);
    }
  return NULL;
}

static void
changed_while_judged (void)
{
  net_t n = shared = world (1000, 1);
  set_of (&n, 7, CV_SET_NETWORKS);
  cv_rule_t r = { .action = CV_RULE_ALLOW, .source = 7 };
  admit (&n, r);
  state = waits = 0;
  pthread_t thread;
  check (!pthread_create (&thread, NULL, send_all_the_time, NULL));
  for (double end = seconds () + 0.5; seconds () < end;)
    {
      check (member (&n, 7, R[0], true) == CV_OK);
      for (volatile uint32_t i = 0; i < (n.now * 37 & 255); i++)
	;
      check (member (&n, 7, R[0], false) == CV_OK);
      cv_publish (&state, 1); /* packets that the worker processes from now on */
      while (!cv_load_acquire (&waits))
	;
      cv_publish (&state, 0);
      while (cv_load_acquire (&waits))
	;
      n.now++;
      cv_sweep (n.m, NOW_START);
    }
  cv_publish (&state, 2);
  pthread_join (thread, NULL);
  cv_free (n.m);
}

/* ---- a pod floods from all workers at the same time: its limit is exact ---- */

enum
{
  FLOODERS = 4,
  LIMIT = 50,
};

static pthread_barrier_t together;

static void *
flood (void *arg)
{
  uint32_t worker = (uint32_t) (uintptr_t) arg;
  net_t n = shared;
  for (uint16_t round = 0; round < 300; round++)
    {
      pthread_barrier_wait (&together);
      for (uint16_t k = 0; k < 2 * LIMIT; k++)
	{
	  pkt_t p = build (A[0], VIP[0], CV_PROTO_TCP, (uint16_t) (10000 + worker * 1000 + k), 80, SYN, 0);
	  offer_fast (&n, worker, POD_A, &p);
	}
      pthread_barrier_wait (&together);
      if (worker == 0)
	{
	  check (n_connections (&n) == LIMIT, "%u connections, the limit is %u", n_connections (&n), LIMIT);
	  check (cv_endpoint_del (n.m, POD_A) == CV_OK);
	  sleep_ticks (&n, 30);
	  endpoint (&n, POD_A, CV_ROLE_POD, 1, LIMIT, A[0], A[1]);
	}
    }
  return NULL;
}

static void
limit_of_all_workers (void)
{
  pthread_t threads[FLOODERS];
  shared = world (4096, FLOODERS);
  endpoint (&shared, POD_A, CV_ROLE_POD, 1, LIMIT, A[0], A[1]);
  pthread_barrier_init (&together, NULL, FLOODERS);
  for (uintptr_t i = 0; i < FLOODERS; i++)
    check (!pthread_create (&threads[i], NULL, flood, (void *) i));
  for (int i = 0; i < FLOODERS; i++)
    pthread_join (threads[i], NULL);
  check (n_connections (&shared) == 0, "%u are left", n_connections (&shared));
  cv_free (shared.m);
}

int
main (void)
{
  forged_answers ();
  reserved_protocol ();
  given_up ();
  many_removals ();
  emptying ();
  removed_set ();
  changed_while_judged ();
  limit_of_all_workers ();
  puts ("ok");
  return 0;
}
