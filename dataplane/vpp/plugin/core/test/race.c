/* Workers and the control plane run at the same time: race [seconds]. The connections of each client keep their backend and
 * their ports during all changes. At the end, no object is left and all counters are correct. */
#include <pthread.h>
#include <time.h>
#include "policy.h"

enum
{
  WORKERS = 4,
  FLOWS = 400,
};

static net_t race_net;
static volatile bool stop;
static uint64_t sent, lost;

typedef struct
{
  uint32_t worker;
  uint64_t rng, sent, lost;
} thread_t;

static uint32_t
rnd (thread_t *t, uint32_t n)
{
  t->rng ^= t->rng << 13;
  t->rng ^= t->rng >> 7;
  t->rng ^= t->rng << 17;
  return (uint32_t) (t->rng >> 20) % n;
}

/* conversation opens a connection, exchanges packets and closes it. The backend may change only at the first packet. */
static void
conversation (thread_t *t)
{
  net_t n = race_net;
  int ip6 = (int) rnd (t, 2);
  uint16_t port = (uint16_t) (10000 + t->worker * FLOWS + rnd (t, FLOWS));
  n.now = cv_load (&race_net.now);
  pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, port, 80, CV_TCP_SYN, 0), r;
  t->sent++;
  if (offer_fast (&n, t->worker, POD_A, &k) != CV_VERDICT_PASS)
    {
      t->lost++;
      return;
    }
  check (sealed (&k));
  ends_t first = ends (&k);
  check (strcmp (first.dst, VIP[ip6]), "not translated: connection %u, reason %d, no connection %d", n.p.connection, n.p.reason, n.p.no_connection);
  uint32_t at = !strcmp (first.dst, B[ip6]) ? POD_B : !strcmp (first.dst, A[ip6]) ? POD_A : OVERLAY;
  for (int i = 0; i < 6; i++)
    {
      uint8_t flags = i < 4 ? CV_TCP_ACK : CV_TCP_ACK | CV_TCP_FIN;
      r = build (first.dst, first.src, CV_PROTO_TCP, first.dport, first.sport, i ? flags : CV_TCP_SYN | CV_TCP_ACK, 9);
      check (offer_fast (&n, t->worker, at, &r) == CV_VERDICT_PASS && sealed (&r), "reason %d", n.p.reason);
      expect (&r, VIP[ip6], 80, A[ip6], port);
      k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, port, 80, flags, 9);
      check (offer_fast (&n, t->worker, POD_A, &k) == CV_VERDICT_PASS && sealed (&k), "reason %d", n.p.reason);
      expect (&k, first.src, first.sport, first.dst, first.dport);
    }
  /* and one shared flow that all workers use */
  k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, (uint16_t) (20000 + rnd (t, 8)), 80, 0, 3);
  if (offer_fast (&n, t->worker, POD_A, &k) == CV_VERDICT_PASS)
    check (sealed (&k));
}

static void *
work (void *arg)
{
  thread_t *t = arg;
  while (!stop)
    conversation (t);
  __atomic_fetch_add (&sent, t->sent, __ATOMIC_RELAXED);
  __atomic_fetch_add (&lost, t->lost, __ATOMIC_RELAXED);
  return NULL;
}

/* churn_policy changes policy that does not affect the conversations: they stay allowed all the time. */
static void
churn_policy (thread_t *t)
{
  char a[40], name[CV_NAME_LEN] = "others";
  int ip6 = (int) rnd (t, 2);
  snprintf (a, sizeof (a), ip6 ? "fd00:9::%u" : "10.9.0.%u", rnd (t, 200) + 1);
  member (&race_net, 100, a, rnd (t, 2));
  port_member (&race_net, 101, a, CV_PROTO_TCP, 80, rnd (t, 2));
  cv_rule_t rules[] = { { .action = CV_RULE_DENY, .source = 100 }, { .action = CV_RULE_DENY, .service = 101 }, { .action = CV_RULE_DENY, .destination = 100 },
			{ .action = CV_RULE_ALLOW, .source = rnd (t, 2) ? 102 : 0 }, { .action = CV_RULE_ALLOW } };
  policy (&race_net, 1, rnd (t, 2), rules, 5);
  check (cv_set_set (race_net.m, 102, name, CV_SET_NETWORKS) == CV_OK && member (&race_net, 102, a, true) == CV_OK);
  if (rnd (t, 3) == 0)
    cv_set_del (race_net.m, 102);
  cv_rule_t all = { .action = CV_RULE_ALLOW };
  cv_policy_t both = { .name = "all", .n = { 1, 1 }, .rules = { &all, &all } };
  check (cv_policy_set (race_net.m, 2, &both) == CV_OK && cv_policy_set (race_net.m, 3, &both) == CV_OK);
  cv_tier_item_t items[] = { { .policy = 1 }, { .policy = 2 }, { .action = CV_RULE_DENY }, { .policy = 3 }, { .action = CV_RULE_DENY } };
  cv_endpoint_policy_t p = { .name = "x", .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .n = { 3 + 2 * rnd (t, 2), 3 }, .items = { items, items } };
  uint32_t i = rnd (t, 2) ? POD_A : POD_B;
  check (cv_endpoint_policy_set (race_net.m, i, rnd (t, 4) ? &p : NULL) != CV_INVALID);
  /* a policy that is deleted directly after its last endpoint got another policy */
  check (cv_policy_set (race_net.m, 4, &both) == CV_OK);
  cv_tier_item_t going[] = { { .policy = 4 }, { .action = CV_RULE_DENY } };
  cv_endpoint_policy_t of_going = { .name = "y", .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .n = { 2, 2 }, .items = { going, going } };
  check (cv_endpoint_policy_set (race_net.m, i, &of_going) == CV_OK);
  for (volatile uint32_t wait = rnd (t, 20000); wait; wait--)
    ;
  check (cv_endpoint_policy_set (race_net.m, i, rnd (t, 2) ? &p : NULL) == CV_OK && cv_policy_del (race_net.m, 4) == CV_OK);
}

static void
churn (thread_t *t)
{
  int ip6 = (int) rnd (t, 2);
  char a[40];
  snprintf (a, sizeof (a), ip6 ? "fd00:3::%u" : "10.1.3.%u", rnd (t, 30) + 1);
  backend (&race_net, 10 + (uint64_t) ip6, a, 8080, 0, rnd (t, 2));
  snprintf (a, sizeof (a), ip6 ? "fd98::%u" : "10.98.0.%u", rnd (t, 200) + 1);
  cv_frontend_key_t k = place (a, CV_PROTO_TCP, 80);
  cv_frontend_t f = balanced (10 + (uint64_t) ip6);
  if (rnd (t, 2))
    cv_frontend_set (race_net.m, &k, &f);
  else
    cv_frontend_del (race_net.m, &k);
  /* the frontend of the shared flows leads to one of two services in turn; both have the backend */
  cv_frontend_key_t shared = place (VIP[ip6], CV_PROTO_UDP, 80);
  uint64_t other = 20 + (uint64_t) ip6;
  service (&race_net, other, 0);
  check (backend (&race_net, other, B[ip6], 8080, 0, true) == CV_OK);
  f = balanced (rnd (t, 2) ? other : 10 + (uint64_t) ip6);
  check (cv_frontend_set (race_net.m, &shared, &f) == CV_OK);
  if (f.in_cluster.service != other)
    check (cv_service_del (race_net.m, other) == CV_OK);
  network (&race_net, "10.2.0.0", 16, CV_CLASS_POD);
  if (rnd (t, 4) == 0)
    {
      endpoint (&race_net, 9, CV_ROLE_POD, 0, 0, "10.1.1.9", NULL);
      cv_endpoint_del (race_net.m, 9);
    }
  /* at most ten times as fast as real time: a worker that loses the processor for seconds still finds its connections */
  if (rnd (t, 50) == 0)
    cv_store (&race_net.now, race_net.now + 1);
  cv_sweep (race_net.m, race_net.now);
}

int
main (int argc, char **argv)
{
  time_t end = time (NULL) + (argc > 1 ? atoi (argv[1]) : 3);
  race_net = world (20000, WORKERS);
  set_of (&race_net, 100, CV_SET_NETWORKS);
  set_of (&race_net, 101, CV_SET_PORTS);
  pthread_t threads[WORKERS];
  thread_t state[WORKERS], self = { .rng = 4711 };
  for (uint32_t i = 0; i < WORKERS; i++)
    {
      state[i] = (thread_t){ .worker = i, .rng = 977 + i };
      check (!pthread_create (&threads[i], NULL, work, &state[i]));
    }
  while (time (NULL) < end)
    {
      churn (&self);
      churn_policy (&self);
      struct timespec t = { .tv_nsec = 200000 };
      nanosleep (&t, NULL);
    }
  stop = true;
  for (int i = 0; i < WORKERS; i++)
    pthread_join (threads[i], NULL);
  check (lost * 1000 < sent, "%lu of %lu lost", (unsigned long) lost, (unsigned long) sent);
  for (uint32_t i = 1; i <= 5; i++)
    cv_endpoint_del (race_net.m, i);
  cv_service_del (race_net.m, 10);
  cv_service_del (race_net.m, 11);
  cv_service_del (race_net.m, 20);
  cv_service_del (race_net.m, 21);
  sleep_ticks (&race_net, 40);
  check (n_connections (&race_net) == 0 && cv_idle (race_net.m), "%u left", n_connections (&race_net));
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (uint64_t i = 0; i <= race_net.m->table[ip6].bucket_mask; i++)
      for (int j = 0; j < CV_BUCKET_SLOTS; j++)
	check (!race_net.m->table[ip6].buckets[i].slots[j] && !race_net.m->table[ip6].buckets[i].spilled, "bucket %lu", (unsigned long) i);
  cv_free (race_net.m);
  printf ("ok: %lu connections, %lu refused\n", (unsigned long) sent, (unsigned long) lost);
  return 0;
}
