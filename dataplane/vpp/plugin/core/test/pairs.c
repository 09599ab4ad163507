/* Tests of pairs of addresses between which all TCP and UDP passes (pairs.h). Each flow is sent once, so only its pair can let it pass. */
#include <pthread.h>
#include <time.h>
#include "policy.h"

#define PASS(n, iface, k) check (offer_fast (n, 0, iface, k) == CV_VERDICT_PASS, "reason %d", (n)->p.reason)
#define DROP(n, iface, k, why) check (offer_fast (n, 0, iface, k) == CV_VERDICT_DROP && (n)->p.reason == (why), "verdict %d, reason %d", (n)->p.verdict, (n)->p.reason)

static const char *const C[] = { "10.1.1.4", "fd00::4" };

enum
{
  POD_C = 6,
};

static uint16_t next_port;

static pkt_t
flow (const char *from, const char *to, uint8_t proto, uint16_t dport)
{
  return build (from, to, proto, (uint16_t) (32768 + next_port++ % 30000), dport, CV_TCP_SYN, 9);
}

/* stored reports whether a new flow between two ends takes the fast path. */
static bool
stored (net_t *n, uint32_t worker, uint32_t iface, const char *from, const char *to)
{
  bool all = true;
  for (int i = 0; i < 2; i++)
    {
      pkt_t k = flow (from, to, i ? CV_PROTO_TCP : CV_PROTO_UDP, 5001);
      bool here = recalled (n, worker, iface, &k);
      cv_quiesce (n->m, worker);
      check (!i || here == all, "TCP and UDP differ");
      all = here;
    }
  return all;
}

/* store sends a flow between two ends, which stores the pair if that is possible, and reports whether the pair is stored. */
static bool
store (net_t *n, uint32_t iface, const char *from, const char *to)
{
  pkt_t k = flow (from, to, CV_PROTO_UDP, 5001);
  PASS (n, iface, &k);
  return stored (n, 0, iface, from, to);
}

static net_t
three_pods (uint32_t workers)
{
  net_t n = world (1000, workers);
  endpoint (&n, POD_C, CV_ROLE_POD, 1, 0, C[0], C[1]);
  return n;
}

static void
which_pairs (int ip6)
{
  net_t n = three_pods (2);
  check (!stored (&n, 0, POD_A, A[ip6], R[ip6]), "nothing has passed");
  check (store (&n, POD_A, A[ip6], R[ip6]) && store (&n, OVERLAY, R[ip6], A[ip6]) && store (&n, POD_B, B[ip6], C[ip6]) && store (&n, UPLINK, R[ip6], B[ip6]));
  check (!stored (&n, 0, POD_B, A[ip6], R[ip6]) && !stored (&n, 0, OVERLAY, A[ip6], R[ip6]), "by another interface");
  check (!stored (&n, 0, POD_A, R[ip6], A[ip6]) && !stored (&n, 0, POD_A, A[ip6], C[ip6]), "other addresses");
  check (!stored (&n, 1, POD_A, A[ip6], R[ip6]), "another worker has not seen them");
  check (!store (&n, POD_A, A[ip6], B[ip6]), "connections to a backend are in the table");
  check (!store (&n, POD_A, A[ip6], NODE[ip6]) && !store (&n, HOST, R[ip6], A[ip6]), "nodes");
  pkt_t k = flow (A[ip6], OUT[ip6], CV_PROTO_UDP, 53);
  PASS (&n, POD_A, &k);
  check (!stored (&n, 0, POD_A, A[ip6], OUT[ip6]), "outside");
  check (!store (&n, OVERLAY, OUT[ip6], A[ip6]), "outside");
  k = build (A[ip6], C[ip6], CV_PROTO_SCTP, 7, 7, 1, 9);
  PASS (&n, POD_A, &k);
  check (!stored (&n, 0, POD_A, A[ip6], C[ip6]), "SCTP");
  k = build (C[ip6], A[ip6], ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP, 7, 7, ip6 ? 128 : 8, 9);
  PASS (&n, POD_C, &k);
  check (!stored (&n, 0, POD_C, C[ip6], A[ip6]), "ICMP");
  check (stored (&n, 0, POD_A, A[ip6], R[ip6]));
  k = build (A[ip6], R[ip6], CV_PROTO_SCTP, 7, 7, 1, 9);
  check (!recalled (&n, 0, POD_A, &k), "SCTP");
  n.now += CV_TICKS_PER_SECOND;
  check (!stored (&n, 0, POD_A, A[ip6], R[ip6]), "in the next second");
  cv_free (n.m);
}

/* A SYN whose ports do not show that its sender is the client does not pass by its pair: its connection must be in the table. */
static void
hidden_openers (int ip6)
{
  static const struct
  {
    uint16_t sport, dport;
    uint8_t flags;
    bool passes;
  } cases[] = {
    { 40000, 80, SYN, true }, { 40000, 40000, SYN, false }, { 2000, 80, SYN, false }, { 80, 40000, SYN, false }, { 40001, 40001, SYN | ACK, true },
    { 40001, 40001, ACK, true }, { 40001, 40001, RST, true }, { 40001, 40001, FIN | ACK, true }, { 40001, 40001, SYN | RST, true },
  };
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    {
      net_t n = three_pods (1);
      check (store (&n, POD_A, A[ip6], C[ip6]));
      pkt_t k = build (A[ip6], C[ip6], CV_PROTO_TCP, cases[i].sport, cases[i].dport, cases[i].flags, 0);
      check (recalled (&n, 0, POD_A, &k) == cases[i].passes, "case %zu", i);
      PASS (&n, POD_A, &k);
      check (n_connections (&n) == !cases[i].passes, "case %zu: %u connections", i, n_connections (&n));
      cv_free (n.m);
    }
}

/* UDP ports whose packets are dropped for any addresses. */
static void
ports (int ip6)
{
  net_t n = three_pods (1);
  cv_config_t c = { .tunnel_ports = { 4789, 0, 8472, 9999 } };
  check (cv_config_set (n.m, &c) == CV_OK);
  uint16_t tunnels[] = { 4789, 8472, 9999 };
  for (int i = 0; i < 3; i++)
    {
      check (store (&n, POD_A, A[ip6], R[ip6]) && store (&n, OVERLAY, R[ip6], A[ip6]));
      pkt_t k = flow (A[ip6], R[ip6], CV_PROTO_UDP, tunnels[i]);
      DROP (&n, POD_A, &k, CV_TUNNEL);
      k = flow (A[ip6], R[ip6], CV_PROTO_UDP, 0);
      PASS (&n, POD_A, &k);
      k = flow (A[ip6], R[ip6], CV_PROTO_TCP, tunnels[i]);
      check (recalled (&n, 0, POD_A, &k), "TCP has no tunnel ports");
    }
  for (uint32_t port = 1; port < 65536; port++)
    {
      pkt_t k = build (A[ip6], R[ip6], CV_PROTO_UDP, 7, (uint16_t) port, 0, 9);
      check (recalled (&n, 0, POD_A, &k) == (port != 4789 && port != 8472 && port != 9999), "port %u", port);
      k = build (A[ip6], R[ip6], CV_PROTO_UDP, (uint16_t) port, 7, 0, 9);
      check (recalled (&n, 0, POD_A, &k) == (port != 67 && port != 547), "source port %u", port);
      if (port == 67 || port == 547)
	DROP (&n, POD_A, &k, CV_SPOOFED);
      k = build (A[ip6], R[ip6], CV_PROTO_TCP, (uint16_t) port, (uint16_t) port, CV_TCP_ACK, 9);
      check (recalled (&n, 0, POD_A, &k), "TCP, port %u", port);
    }
  cv_free (n.m);
}

/* Changes for addresses of a stored pair: a service, a backend, another class, a tunnel port. */
static void
changes (int ip6)
{
  net_t n = three_pods (1);
  for (int port = 80; port >= 0; port -= 80)
    {
      check (store (&n, POD_A, A[ip6], C[ip6]));
      cv_frontend_key_t key = place (C[ip6], port ? CV_PROTO_TCP : 0, (uint16_t) port);
      cv_frontend_t f = balanced (10 + (uint64_t) ip6);
      if (!port)
	f = (cv_frontend_t){ .name = "all", .in_cluster = { CV_ACTION_DROP, 0, 0 }, .outside = { CV_ACTION_DROP, 0, 0 } };
      check (cv_frontend_set (n.m, &key, &f) == CV_OK);
      pkt_t k = flow (A[ip6], C[ip6], CV_PROTO_TCP, 80);
      if (port)
	{
	  check (!store (&n, POD_A, A[ip6], C[ip6]), "an address of a frontend");
	  PASS (&n, POD_A, &k);
	  expect (&k, A[ip6], -1, B[ip6], 8080);
	}
      else
	DROP (&n, POD_A, &k, CV_NO_LOCAL);
      check (cv_frontend_set (n.m, &key, &f) == CV_OK && cv_frontend_del (n.m, &key) == CV_OK);
      k = flow (A[ip6], C[ip6], CV_PROTO_UDP, 5001);
      PASS (&n, POD_A, &k);
      check (stored (&n, 0, POD_A, A[ip6], C[ip6]) == !port, "the connection to the frontend");
      sleep_ticks (&n, 610);
    }
  check (store (&n, POD_A, A[ip6], C[ip6]) && store (&n, OVERLAY, R[ip6], C[ip6]));
  check (backend (&n, 10 + (uint64_t) ip6, C[ip6], 8080, 0, true) == CV_OK);
  pkt_t k = flow (A[ip6], C[ip6], CV_PROTO_TCP, 8080);
  PASS (&n, POD_A, &k);
  check (n.p.connection != CV_NO_INDEX && !store (&n, POD_A, A[ip6], C[ip6]), "a direct connection to a backend");
  check (store (&n, OVERLAY, R[ip6], C[ip6]), "from another node it has none");
  check (backend (&n, 10 + (uint64_t) ip6, C[ip6], 8080, 0, false) == CV_OK);
  check (!store (&n, POD_A, A[ip6], C[ip6]), "the connection is still there");
  sleep_ticks (&n, 610);
  check (store (&n, POD_A, A[ip6], C[ip6]));
  network (&n, C[ip6], ip6 ? 128 : 32, CV_CLASS_NODE);
  check (!store (&n, POD_A, A[ip6], C[ip6]), "a node");
  check (!store (&n, POD_C, C[ip6], A[ip6]), "a node");
  check (cv_endpoint_del (n.m, POD_A) == CV_OK);
  k = flow (A[ip6], R[ip6], CV_PROTO_UDP, 5001);
  DROP (&n, POD_A, &k, CV_SPOOFED);
  cv_free (n.m);
}

/* A policy of either end, in either direction, takes effect at the next packet, and no pair is stored as long as the policy exists. */
static void
policies (int ip6)
{
  for (int i = 0; i < 4; i++)
    {
      net_t n = three_pods (1);
      cv_rule_t none = { .action = CV_RULE_ALLOW, .proto = CV_PROTO_SCTP };
      check (policy (&n, 1, CV_INGRESS, &none, 1) == CV_OK && policy (&n, 2, CV_EGRESS, &none, 1) == CV_OK);
      uint32_t pod = i < 2 ? POD_A : POD_C;
      bool egress = i & 1;
      check (store (&n, POD_A, A[ip6], C[ip6]) && store (&n, POD_C, C[ip6], A[ip6]) && store (&n, POD_B, B[ip6], R[ip6]));
      check (police (&n, pod, egress ? 0 : 1, egress ? 2 : 0) == CV_OK);
      bool forth = egress == (pod == POD_A); /* whether the policy denies connections that A opens */
      pkt_t k = flow (A[ip6], C[ip6], CV_PROTO_TCP, 5001), back = flow (C[ip6], A[ip6], CV_PROTO_TCP, 5001);
      check (offer_fast (&n, 0, POD_A, &k) == (forth ? CV_VERDICT_DROP : CV_VERDICT_PASS), "case %d", i);
      check (offer_fast (&n, 0, POD_C, &back) == (forth ? CV_VERDICT_PASS : CV_VERDICT_DROP), "case %d", i);
      check (!stored (&n, 0, POD_A, A[ip6], C[ip6]) && !stored (&n, 0, POD_C, C[ip6], A[ip6]));
      /* a segment of a connection that is older than the policy */
      for (int j = 0; j < 4; j++)
	{
	  k = build (j & 1 ? A[ip6] : C[ip6], j & 1 ? C[ip6] : A[ip6], CV_PROTO_TCP, j & 2 ? 40000 : 80, j & 2 ? 80 : 40000, CV_TCP_ACK, 9);
	  offer_fast (&n, 0, j & 1 ? POD_A : POD_C, &k);
	  check (!stored (&n, 0, POD_A, A[ip6], C[ip6]) && !stored (&n, 0, POD_C, C[ip6], A[ip6]), "case %d, segment %d", i, j);
	}
      check (store (&n, POD_B, B[ip6], R[ip6]), "policy of others");
      cv_endpoint_policy_t everything = { .name = "ns/pod", .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW } };
      check (cv_endpoint_policy_set (n.m, pod, &everything) == CV_OK);
      k = flow (A[ip6], R[ip6], CV_PROTO_UDP, 5001);
      PASS (&n, POD_A, &k);
      check (store (&n, POD_A, A[ip6], R[ip6]), "a policy that allows everything");
      /* another interface has the sender's address for a moment, with a policy */
      endpoint (&n, 9, CV_ROLE_POD, 0, 0, A[0], A[1]);
      check (police (&n, 9, egress ? 0 : 1, egress ? 2 : 0) == CV_OK);
      k = flow (A[ip6], R[ip6], CV_PROTO_UDP, 5001);
      offer_fast (&n, 0, POD_A, &k);
      check (!stored (&n, 0, POD_A, A[ip6], R[ip6]), "the sender's address has a policy");
      endpoint (&n, 9, CV_ROLE_POD, 0, 0, C[0], C[1]);
      check (police (&n, 9, egress ? 0 : 1, egress ? 2 : 0) == CV_OK);
      cv_endpoint_policy_set (n.m, POD_C, NULL); /* it may have no policy */
      k = build (B[ip6], C[ip6], CV_PROTO_TCP, 80, 40000, CV_TCP_ACK, 9); /* an answer to C, in midstream */
      offer_fast (&n, 0, POD_B, &k);
      check (!stored (&n, 0, POD_B, B[ip6], C[ip6]), "the receiver's address has a policy");
      check (cv_endpoint_del (n.m, 9) == CV_OK);
      check (cv_endpoint_policy_set (n.m, pod, NULL) == CV_OK || pod == POD_C);
      k = flow (A[ip6], R[ip6], CV_PROTO_UDP, 5001);
      PASS (&n, POD_A, &k);
      check (store (&n, POD_A, A[ip6], R[ip6]), "without policy");
      cv_free (n.m);
    }
}

/* A connection removes the pairs of both its keys from the caches of all workers, from both places, and blocks them until it has ended. */
static void
connections (int ip6)
{
  for (uint32_t worker = 0; worker < 3; worker++)
    {
      net_t n = three_pods (3);
      for (uint32_t w = 0; w < 3; w++)
	{
	  pkt_t k = flow (B[ip6], C[ip6], CV_PROTO_UDP, 5001);
	  n.m->workers[w].pairs_stored = worker; /* either place of the set */
	  check (offer_fast (&n, w, POD_B, &k) == CV_VERDICT_PASS && stored (&n, w, POD_B, B[ip6], C[ip6]));
	}
      pkt_t k = build (C[ip6], VIP[ip6], CV_PROTO_UDP, 6000, 80, 0, 9);
      check (offer_fast (&n, worker, POD_C, &k) == CV_VERDICT_PASS);
      expect (&k, C[ip6], 6000, B[ip6], 8080);
      for (uint32_t w = 0; w < 3; w++)
	{
	  check (!stored (&n, w, POD_B, B[ip6], C[ip6]), "worker %u", w);
	  pkt_t back = build (B[ip6], C[ip6], CV_PROTO_UDP, 8080, 6000, 0, 9);
	  check (offer_fast (&n, w, POD_B, &back) == CV_VERDICT_PASS);
	  expect (&back, VIP[ip6], 80, C[ip6], 6000);
	  k = flow (B[ip6], C[ip6], CV_PROTO_UDP, 5001);
	  check (offer_fast (&n, w, POD_B, &k) == CV_VERDICT_PASS && !stored (&n, w, POD_B, B[ip6], C[ip6]), "stored beside a connection");
	}
      cv_tuple_t t = { .src = addr (C[ip6]), .dst = addr (VIP[ip6]), .sport = htons (6000), .dport = htons (80), .proto = CV_PROTO_UDP, .ip6 = (uint8_t) ip6 };
      check (cv_connection_del (n.m, &t) == CV_OK && store (&n, POD_B, B[ip6], C[ip6]));
      for (uint32_t i = 0; i < CV_CONNECTED; i++)
	check (!n.m->connected[i], "a count is left");
      cv_free (n.m);
    }
}

/* Rejected connections, expired connections and deleted services leave no count behind. */
static void
counts (int ip6)
{
  net_t n = three_pods (1);
  endpoint (&n, POD_C, CV_ROLE_POD, 1, 3, C[0], C[1]);
  for (uint16_t i = 0; i < 6; i++)
    {
      pkt_t k = build (C[ip6], VIP[ip6], CV_PROTO_UDP, (uint16_t) (6000 + i), 80, 0, 9);
      check ((offer_fast (&n, 0, POD_C, &k) == CV_VERDICT_PASS) == (i < 3));
    }
  cv_frontend_t sticky = balanced (10 + (uint64_t) ip6);
  sticky.affinity_group = 7, sticky.affinity_timeout = 1;
  frontend (&n, VIP[ip6], CV_PROTO_UDP, 81, sticky);
  pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 6000, 81, 0, 9);
  PASS (&n, POD_A, &k);
  for (uint32_t i = 1; i <= POD_C; i++)
    cv_endpoint_del (n.m, i);
  for (int v = 0; v < 2; v++)
    {
      check (cv_service_del (n.m, 10 + (uint64_t) v) == CV_OK);
      for (int i = 0; i < 5; i++)
	{
	  cv_frontend_key_t key = place (VIP[v], (uint8_t[]){ CV_PROTO_TCP, CV_PROTO_UDP, CV_PROTO_SCTP, 0, CV_PROTO_UDP }[i], i < 3 ? 80 : i == 3 ? 0 : 81);
	  check (cv_frontend_del (n.m, &key) == CV_OK || i == 4);
	}
    }
  sleep_ticks (&n, 100);
  for (uint32_t i = 0; i < CV_CONNECTED; i++)
    check (!n.m->connected[i], "a count of connections is left");
  for (uint32_t i = 0; i < 2 * CV_SERVED; i++)
    check (!(&n.m->served[0][0])[i], "a count of services is left");
  cv_free (n.m);
}

/* ---- two workers at the same time ---- */

static net_t both;
static uint32_t at_port; /* client port of the current connection; 0: none */
static bool stop;

/* answers sends packets that store the pair, and the backend's answers, which must be translated. */
static void *
answers (void *arg)
{
  net_t n = both;
  uint64_t *translated = arg;
  while (!__atomic_load_n (&stop, __ATOMIC_RELAXED))
    {
      pkt_t k = build (B[0], C[0], CV_PROTO_UDP, 7, (uint16_t) (1 + ++*translated % 1000), 0, 9);
      check (offer_fast (&n, 0, POD_B, &k) == CV_VERDICT_PASS, "reason %d", n.p.reason);
      uint32_t port = __atomic_load_n (&at_port, __ATOMIC_SEQ_CST);
      if (!port)
	continue;
      k = build (B[0], C[0], CV_PROTO_UDP, 8080, (uint16_t) port, 0, 9);
      check (offer_fast (&n, 0, POD_B, &k) == CV_VERDICT_PASS, "reason %d", n.p.reason);
      bool plain = !strcmp (ends (&k).src, B[0]);
      check (!plain || __atomic_load_n (&at_port, __ATOMIC_SEQ_CST) != port, "an answer passed without translation");
    }
  return NULL;
}

/* No answer passes by its pair after the packet that it answers has been sent. */
static void
race (time_t seconds)
{
  both = three_pods (2);
  net_t n = both;
  pthread_t thread;
  uint64_t n_sent = 0, n_opened = 0;
  check (!pthread_create (&thread, NULL, answers, &n_sent));
  for (time_t end = time (NULL) + seconds; time (NULL) < end;)
    {
      uint16_t port = (uint16_t) (10000 + n_opened++ % 50000);
      pkt_t k = build (C[0], VIP[0], CV_PROTO_UDP, port, 80, 0, 9);
      if (n_opened % 10 == 0)
	cv_sweep (n.m, n.now);
      if (offer_fast (&n, 1, POD_C, &k) != CV_VERDICT_PASS)
	{
	  check (n.p.reason == CV_FULL, "reason %d", n.p.reason); /* the other thread waits for a processor, inside a frame: no slot is released */
	  continue;
	}
      __atomic_store_n (&at_port, port, __ATOMIC_SEQ_CST);
      for (volatile uint32_t i = n_opened % 64 * 30; i; i--)
	;
      __atomic_store_n (&at_port, 0, __ATOMIC_SEQ_CST);
      cv_tuple_t t = { .src = addr (C[0]), .dst = addr (VIP[0]), .sport = htons (port), .dport = htons (80), .proto = CV_PROTO_UDP };
      check (cv_connection_del (n.m, &t) == CV_OK);
      for (volatile uint32_t i = n_opened % 32 * 30; i; i--)
	;
    }
  __atomic_store_n (&stop, true, __ATOMIC_RELAXED);
  pthread_join (thread, NULL);
  check (n_opened > 100 && n_sent > 100, "%lu connections, %lu packets", (unsigned long) n_opened, (unsigned long) n_sent);
  printf ("%lu connections, %lu packets beside them\n", (unsigned long) n_opened, (unsigned long) n_sent);
  cv_free (both.m);
}

int
main (int argc, char **argv)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      which_pairs (ip6);
      hidden_openers (ip6);
      ports (ip6);
      changes (ip6);
      policies (ip6);
      connections (ip6);
      counts (ip6);
    }
  race (argc > 1 ? atoi (argv[1]) : 1);
  puts ("ok");
  return 0;
}
