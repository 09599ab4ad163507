/* Tests of network policy: each function tests one scenario; main runs all. */
#include "policy.h"

#define PASS(n, iface, k) check (transmit (n, iface, k) == CV_VERDICT_PASS, "reason %d", (n)->p.reason)
#define DENY(n, iface, k)                                                                                                        \
  check (transmit (n, iface, k) == CV_VERDICT_DROP && (n)->p.reason == CV_POLICY, "verdict %d, reason %d", (n)->p.verdict, (n)->p.reason)

static const char *const OWN[] = { "172.30.1.2", "fd30::2" }; /* addresses of the node's own stack */

static net_t
policed_world (void)
{
  net_t n = world (1000, 1);
  endpoint (&n, HOST, CV_ROLE_HOST, 0, 0, OWN[0], OWN[1]);
  return n;
}

static void
connect_both_ways (net_t *n, uint32_t from, const char *src, uint32_t to, const char *dst, uint8_t proto, uint16_t sport, uint16_t dport)
{
  pkt_t k = build (src, dst, proto, sport, dport, SYN, 5);
  PASS (n, from, &k);
  pkt_t r = answer (&k, SYN | ACK);
  PASS (n, to, &r);
  k = build (src, dst, proto, sport, dport, ACK, 5);
  PASS (n, from, &k);
}

/* Ingress of B: only from A, only TCP 80. Egress of A is not restricted. */
static void
ingress (void)
{
  net_t n = policed_world ();
  set_of_a (&n);
  cv_rule_t r = allow (100, 0, CV_PROTO_TCP, 80);
  admit (&n, r);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_TCP, 40000, 80);
      pkt_t k = build (A[ip6], B[ip6], CV_PROTO_TCP, 40000, 81, SYN, 0);
      DENY (&n, POD_A, &k);
      k = build (A[ip6], B[ip6], CV_PROTO_UDP, 40000, 80, 0, 5);
      DENY (&n, POD_A, &k);
      k = build (A[ip6], B[ip6], 47, 0, 0, 0, 5);
      DENY (&n, POD_A, &k);
      k = build (R[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      DENY (&n, OVERLAY, &k);
      k = build (OUT[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      DENY (&n, UPLINK, &k);
      /* connections that B opens are not restricted, and get their answers */
      connect_both_ways (&n, POD_B, B[ip6], POD_A, A[ip6], CV_PROTO_UDP, 5000, 53);
      connect_both_ways (&n, POD_B, B[ip6], OVERLAY, R[ip6], CV_PROTO_TCP, 5000, 53);
      /* traffic of the node itself is allowed, but not traffic that the node forwards */
      connect_both_ways (&n, HOST, OWN[ip6], POD_B, B[ip6], CV_PROTO_TCP, 6000, 9000);
      connect_both_ways (&n, POD_B, B[ip6], HOST, OWN[ip6], CV_PROTO_TCP, 6000, 9000);
      k = build (OUT[ip6], B[ip6], CV_PROTO_TCP, 6000, 80, SYN, 0);
      DENY (&n, HOST, &k);
      /* packets with the node's address from another interface are not from the node */
      k = build (OWN[ip6], B[ip6], CV_PROTO_TCP, 6001, 80, SYN, 0);
      DENY (&n, UPLINK, &k);
      /* B to itself through its service: port 8080 is not allowed to others */
      k = build (B[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      PASS (&n, POD_B, &k);
      k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      DENY (&n, POD_A, &k);
    }
  check (counted (&n, CV_POLICY) == 16, "%lu", (unsigned long) counted (&n, CV_POLICY));
  cv_free (n.m);
}

/* For a service, policy applies to the backend's port, on both sides; the client is identified by its address before source NAT. */
static void
services (void)
{
  net_t n = policed_world ();
  for (int ip6 = 0; ip6 < 2; ip6++)
    check (backend (&n, 10 + ip6, B[ip6], 8080, CV_BACKEND_MASQ, true) == CV_OK);
  set_of (&n, 100, CV_SET_NETWORKS);
  set_of (&n, 101, CV_SET_PORTS);
  for (int ip6 = 0; ip6 < 2; ip6++)
    check (member (&n, 100, A[ip6], true) == CV_OK && port_member (&n, 101, B[ip6], CV_PROTO_TCP, 8080, true) == CV_OK);
  cv_rule_t in = allow (100, 0, CV_PROTO_TCP, 8080), out = { .action = CV_RULE_ALLOW, .proto = CV_PROTO_TCP, .service = 101 };
  check (policy (&n, 1, CV_INGRESS, &in, 1) == CV_OK && policy (&n, 2, CV_EGRESS, &out, 1) == CV_OK);
  check (police (&n, POD_B, 1, 0) == CV_OK && police (&n, POD_A, 0, 2) == CV_OK);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, MASQ[ip6], 40000, B[ip6], 8080);
      pkt_t r = answer (&k, SYN | ACK);
      PASS (&n, POD_B, &r);
      expect (&r, VIP[ip6], 80, A[ip6], 40000);
      connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_TCP, 41000, 8080);
      k = build (A[ip6], B[ip6], CV_PROTO_TCP, 41000, 8081, SYN, 0);
      DENY (&n, POD_A, &k);
      k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 40000, 80, 0, 4);
      DENY (&n, POD_A, &k);
      cv_addr_t chosen = addr (B[ip6]); /* the address that the trace shows */
      check (cv_addr_equal (&n.p.tuple.dst, &chosen) && n.p.tuple.dport == htons (8080));
      expect (&k, A[ip6], 40000, VIP[ip6], 80);
      k = build (A[ip6], OUT[ip6], CV_PROTO_TCP, 40000, 443, SYN, 4);
      DENY (&n, POD_A, &k);
      k = build (OUT[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      DENY (&n, UPLINK, &k);
      /* denied after the port in the set has been removed */
      check (port_member (&n, 101, B[ip6], CV_PROTO_TCP, 8080, false) == CV_OK);
      k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 80, ACK, 9);
      DENY (&n, POD_A, &k);
      r = build (B[ip6], MASQ[ip6], CV_PROTO_TCP, 8080, 40000, ACK, 9);
      DENY (&n, POD_B, &r);
      check (port_member (&n, 101, B[ip6], CV_PROTO_TCP, 8080, true) == CV_OK);
      k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 80, ACK, 9);
      PASS (&n, POD_A, &k);
    }
  /* no connection is counted for a backend that policy denied */
  sleep_ticks (&n, 20);
  cv_free (n.m);
}

/* A change cuts open connections in both directions, and they stay cut while their ends continue to send. */
static void
cut (void)
{
  net_t n = policed_world ();
  set_of_a (&n);
  cv_rule_t r = allow (100, 0, CV_PROTO_TCP, 80);
  admit (&n, r);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_TCP, 40000, 80);
      check (member (&n, 100, A[ip6], false) == CV_OK);
      for (int i = 0; i < 100; i++)
	{
	  pkt_t back = build (B[ip6], A[ip6], CV_PROTO_TCP, 80, 40000, ACK, 100), k = build (A[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, ACK, 9);
	  DENY (&n, POD_B, &back);
	  DENY (&n, POD_A, &k);
	  sleep_ticks (&n, 100);
	}
      pkt_t k = build (A[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      DENY (&n, POD_A, &k);
      check (member (&n, 100, A[ip6], true) == CV_OK);
      k = build (A[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, ACK, 9);
      PASS (&n, POD_A, &k);
      pkt_t back = build (B[ip6], A[ip6], CV_PROTO_TCP, 80, 40000, ACK, 9);
      PASS (&n, POD_B, &back);
      /* a policy with other rules, and an endpoint that denies everything */
      cv_rule_t other = allow (100, 0, CV_PROTO_TCP, 81);
      check (policy (&n, 1, CV_INGRESS, &other, 1) == CV_OK);
      k = build (A[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, ACK, 9);
      DENY (&n, POD_A, &k);
      check (policy (&n, 1, CV_INGRESS, &r, 1) == CV_OK);
      PASS (&n, POD_A, &k);
      check (closed (&n, POD_A) == CV_OK);
      DENY (&n, POD_A, &k);
      check (cv_endpoint_policy_set (n.m, POD_A, NULL) == CV_OK);
      PASS (&n, POD_A, &k);
    }
  cv_free (n.m);
}

/* A UDP connection that policy allows takes the fast path within a second, in both directions, and loses it with each change. */
static void
fast_path (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = policed_world ();
      set_of_a (&n);
      cv_rule_t r = allow (100, 0, CV_PROTO_UDP, 53), other = allow (100, 0, CV_PROTO_UDP, 54);
      admit (&n, r);
      pkt_t k = build (A[ip6], B[ip6], CV_PROTO_UDP, 40000, 53, 0, 5), back = answer (&k, 0);
      PASS (&n, POD_A, &k);
      check (!recalled (&n, 0, POD_A, &k) && !recalled (&n, 0, POD_B, &back), "the connection is new");
      PASS (&n, POD_B, &back);
      check (recalled (&n, 0, POD_B, &back) && !recalled (&n, 0, POD_A, &back), "the answers, and from their sender only");
      PASS (&n, POD_A, &k);
      check (recalled (&n, 0, POD_A, &k));
      sleep_ticks (&n, CV_TICKS_PER_SECOND);
      check (!recalled (&n, 0, POD_A, &k), "once a second the connection is seen");
      PASS (&n, POD_A, &k);
      check (recalled (&n, 0, POD_A, &k));
      check (member (&n, 100, A[ip6], false) == CV_OK);
      check (!recalled (&n, 0, POD_A, &k) && !recalled (&n, 0, POD_B, &back));
      DENY (&n, POD_A, &k);
      check (!recalled (&n, 0, POD_A, &k), "what is denied has no fast path");
      check (member (&n, 100, A[ip6], true) == CV_OK);
      PASS (&n, POD_A, &k);
      check (policy (&n, 1, CV_INGRESS, &other, 1) == CV_OK);
      check (!recalled (&n, 0, POD_A, &k));
      DENY (&n, POD_A, &k);
      check (policy (&n, 1, CV_INGRESS, &r, 1) == CV_OK);
      PASS (&n, POD_A, &k);
      check (recalled (&n, 0, POD_A, &k) && closed (&n, POD_A) == CV_OK && !recalled (&n, 0, POD_A, &k));
      DENY (&n, POD_A, &k);
      cv_free (n.m);
    }
  /* a connection with packets for an hour is not idle */
  net_t n = policed_world ();
  set_of (&n, 100, CV_SET_NETWORKS);
  cv_rule_t r = allow (0, 0, CV_PROTO_UDP, 53);
  admit (&n, r);
  pkt_t k = build (A[0], B[0], CV_PROTO_UDP, 40000, 53, 0, 5), back = answer (&k, 0);
  PASS (&n, POD_A, &k);
  PASS (&n, POD_B, &back);
  uint32_t at = n.p.connection;
  for (int i = 0; i < 12000; i++)
    {
      if (!recalled (&n, 0, POD_A, &k))
	PASS (&n, POD_A, &k);
      sleep_ticks (&n, 3);
    }
  cv_tuple_t t = { .src = addr (A[0]), .dst = addr (B[0]), .sport = htons (40000), .dport = htons (53), .proto = CV_PROTO_UDP };
  uint32_t direction;
  check (cv_table_find (&n.m->table[0], &t, cv_hash (n.m, &t), &direction) == at, "the connection is another one");
  cv_free (n.m);
}

/* Connections that are older than the first policy of their ends: allowed connections continue, whichever end sends first. */
static void
first_policy (void)
{
  net_t n = policed_world ();
  set_of (&n, 100, CV_SET_NETWORKS);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_TCP, 40000, 80);
      connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_TCP, 40001, 81);
      connect_both_ways (&n, OVERLAY, R[ip6], POD_B, B[ip6], CV_PROTO_TCP, 40000, 80);
      connect_both_ways (&n, POD_B, B[ip6], OVERLAY, R[ip6], CV_PROTO_TCP, 40009, 80);
      check (member (&n, 100, A[ip6], true) == CV_OK && member (&n, 100, R[ip6], true) == CV_OK);
    }
  check (n_connections (&n) == 0);
  cv_rule_t r = allow (100, 0, CV_PROTO_TCP, 80);
  check (policy (&n, 1, CV_INGRESS, &r, 1) == CV_OK && policy (&n, 2, CV_EGRESS, NULL, 0) == CV_OK && police (&n, POD_B, 1, 2) == CV_OK);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      pkt_t k = build (B[ip6], A[ip6], CV_PROTO_TCP, 80, 40000, ACK, 0);
      PASS (&n, POD_B, &k);
      k = build (B[ip6], R[ip6], CV_PROTO_TCP, 80, 40000, ACK, 0);
      PASS (&n, POD_B, &k);
      k = build (R[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, ACK, 0);
      PASS (&n, OVERLAY, &k);
      /* not allowed: neither end can revive the connection */
      k = build (B[ip6], A[ip6], CV_PROTO_TCP, 81, 40001, ACK, 0);
      DENY (&n, POD_B, &k);
      k = build (A[ip6], B[ip6], CV_PROTO_TCP, 40001, 81, ACK, 0);
      DENY (&n, POD_A, &k);
      k = build (R[ip6], B[ip6], CV_PROTO_TCP, 80, 40009, ACK, 0);
      DENY (&n, OVERLAY, &k);
      k = build (B[ip6], R[ip6], CV_PROTO_TCP, 40009, 80, ACK, 0);
      DENY (&n, POD_B, &k);
      /* a forged answer enables nothing but answers: B cannot open a connection */
      k = build (B[ip6], A[ip6], CV_PROTO_TCP, 80, 40000, SYN, 0);
      DENY (&n, POD_B, &k);
      k = build (B[ip6], A[ip6], CV_PROTO_TCP, 80, 40077, SYN, 0);
      DENY (&n, POD_B, &k);
      k = build (A[ip6], B[ip6], CV_PROTO_TCP, 40000, 80, ACK, 0);
      PASS (&n, POD_A, &k);
      /* ports that do not show the direction: both directions would have to be allowed */
      k = build (A[ip6], B[ip6], CV_PROTO_TCP, 2000, 80, ACK, 0);
      DENY (&n, POD_A, &k);
      /* UDP has no packets in midstream */
      k = build (B[ip6], A[ip6], CV_PROTO_UDP, 80, 40000, 0, 0);
      DENY (&n, POD_B, &k);
      /* the connection of the remote client is judged again like others */
      check (member (&n, 100, R[ip6], false) == CV_OK);
      k = build (B[ip6], R[ip6], CV_PROTO_TCP, 80, 40000, ACK, 0);
      DENY (&n, POD_B, &k);
    }
  cv_free (n.m);
}

/* Connections whose ports do not show which end has opened them are in the table from their SYN on. After the first policy the allowed ones
 * continue, and a denied client cannot pass as a server. */
static void
first_policy_any_ports (int ip6)
{
  static const uint16_t ports[][2] = { { 40000, 50000 }, { 2000, 80 }, { 2000, 50000 } }; /* client, server */
  for (size_t i = 0; i < sizeof (ports) / sizeof (*ports); i++)
    {
      uint16_t client = ports[i][0], server = ports[i][1];
      net_t n = policed_world ();
      set_of (&n, 100, CV_SET_NETWORKS);
      check (member (&n, 100, R[ip6], true) == CV_OK);
      connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_UDP, 40000, 53); /* stores the pairs */
      connect_both_ways (&n, OVERLAY, R[ip6], POD_B, B[ip6], CV_PROTO_UDP, 40000, 53);
      connect_both_ways (&n, OVERLAY, R[ip6], POD_B, B[ip6], CV_PROTO_TCP, client, server);
      connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_TCP, client, server);
      connect_both_ways (&n, POD_B, B[ip6], POD_A, A[ip6], CV_PROTO_TCP, client, server);
      connect_both_ways (&n, HOST, OWN[ip6], POD_B, B[ip6], CV_PROTO_TCP, client, server);
      check (n_connections (&n) == 4, "%u connections", n_connections (&n));
      admit (&n, allow (100, 0, CV_PROTO_TCP, server));
      pkt_t k = build (R[ip6], B[ip6], CV_PROTO_TCP, client, server, ACK, 5), back = answer (&k, ACK);
      PASS (&n, POD_B, &back);
      PASS (&n, OVERLAY, &k);
      k = build (A[ip6], B[ip6], CV_PROTO_TCP, client, server, ACK, 5);
      back = answer (&k, ACK);
      DENY (&n, POD_B, &back);
      DENY (&n, POD_A, &k);
      k = build (B[ip6], A[ip6], CV_PROTO_TCP, client, server, ACK, 5);
      back = answer (&k, ACK);
      PASS (&n, POD_A, &back);
      PASS (&n, POD_B, &k);
      k = build (OWN[ip6], B[ip6], CV_PROTO_TCP, client, server, ACK, 5);
      back = answer (&k, ACK);
      PASS (&n, POD_B, &back);
      PASS (&n, HOST, &k);
      cv_free (n.m);
    }
}

/* Connections that only their ports put into the table take half of an endpoint's connections at most, and half of the table. Above this they
 * pass without. */
static void
room_for_any_ports (void)
{
  net_t n = world (1000, 1);
  endpoint (&n, POD_A, CV_ROLE_POD, 0, 20, A[0], A[1]);
  for (uint16_t i = 0; i < 100; i++)
    {
      pkt_t k = build (A[0], R[0], CV_PROTO_TCP, (uint16_t) (2000 + i), 80, SYN, 0);
      PASS (&n, POD_A, &k);
    }
  check (n_connections (&n) == 10, "%u connections", n_connections (&n));
  for (uint16_t i = 0; i < 10; i++)
    {
      pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, (uint16_t) (2000 + i), 80, SYN, 0);
      PASS (&n, POD_A, &k);
    }
  check (n_connections (&n) == 20);
  cv_free (n.m);

  n = world (1000, 1);
  for (uint32_t i = 0; i < 2000; i++) /* of several pods; none of them reaches its own limit */
    {
      pkt_t k = build (i & 1 ? A[0] : B[0], R[0], CV_PROTO_TCP, (uint16_t) (2000 + i), 80, SYN, 0);
      PASS (&n, i & 1 ? POD_A : POD_B, &k);
    }
  uint32_t half = n.m->config.connections_max / 2;
  check (n_connections (&n) == half, "%u connections", n_connections (&n));
  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, 2000, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  check (n_connections (&n) == half + 1);
  cv_free (n.m);
}

/* UDP flows that are older than the first policy of a pod: a denied client is cut although the pod sends first and continues to send.
 * Allowed clients and the pod's own flows continue. */
static void
first_policy_udp (int ip6)
{
  net_t n = policed_world ();
  set_of (&n, 100, CV_SET_NETWORKS);
  check (member (&n, 100, R[ip6], true) == CV_OK);
  connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_UDP, 40000, 53);
  connect_both_ways (&n, POD_A, A[ip6], POD_B, B[ip6], CV_PROTO_UDP, 5000, 5000);
  connect_both_ways (&n, OVERLAY, R[ip6], POD_B, B[ip6], CV_PROTO_UDP, 40000, 53);
  connect_both_ways (&n, POD_B, B[ip6], POD_A, A[ip6], CV_PROTO_UDP, 40001, 53);
  check (n_connections (&n) == 0);
  admit (&n, allow (100, 0, CV_PROTO_UDP, 53));
  pkt_t back = build (B[ip6], R[ip6], CV_PROTO_UDP, 53, 40000, 0, 5), k = build (R[ip6], B[ip6], CV_PROTO_UDP, 40000, 53, 0, 5);
  PASS (&n, POD_B, &back);
  PASS (&n, OVERLAY, &k);
  check (member (&n, 100, R[ip6], false) == CV_OK);
  DENY (&n, POD_B, &back); /* R is the client of the connection, although the first packet was the pod's */
  DENY (&n, OVERLAY, &k);
  k = build (B[ip6], A[ip6], CV_PROTO_UDP, 40001, 53, 0, 5);
  back = answer (&k, 0);
  PASS (&n, POD_B, &k);
  PASS (&n, POD_A, &back);
  for (int i = 0; i < 40; i++)
    {
      for (uint16_t ports = 0; ports < 2; ports++)
	{
	  k = build (A[ip6], B[ip6], CV_PROTO_UDP, ports ? 5000 : 40000, ports ? 5000 : 53, 0, 5);
	  back = answer (&k, 0);
	  DENY (&n, POD_B, &back);
	  DENY (&n, POD_A, &k);
	}
      sleep_ticks (&n, 10 * CV_TICKS_PER_SECOND);
    }
  /* a denied client is allowed again */
  k = build (A[ip6], B[ip6], CV_PROTO_UDP, 40000, 53, 0, 5);
  back = answer (&k, 0);
  check (member (&n, 100, A[ip6], true) == CV_OK);
  PASS (&n, POD_B, &back);
  PASS (&n, POD_A, &k);
  /* no flow can be older now: the pod opens new ones from any port */
  connect_both_ways (&n, POD_B, B[ip6], POD_A, A[ip6], CV_PROTO_UDP, 54, 40002);
  cv_free (n.m);
}

/* The same for a flow whose packets pass by the pair that TCP between the same ends has stored. */
static void
first_policy_udp_by_pair (int ip6)
{
  net_t n = policed_world ();
  connect_both_ways (&n, OVERLAY, R[ip6], POD_B, B[ip6], CV_PROTO_UDP, 40000, 53);
  pkt_t tcp = build (R[ip6], B[ip6], CV_PROTO_TCP, 40001, 80, ACK, 5), k = build (R[ip6], B[ip6], CV_PROTO_UDP, 40000, 53, 0, 5), back = answer (&k, 0);
  for (int i = 0; i < 40; i++)
    {
      sleep_ticks (&n, 10 * CV_TICKS_PER_SECOND);
      PASS (&n, OVERLAY, &tcp);
      check (recalled (&n, 0, OVERLAY, &k));
    }
  check (n_connections (&n) == 0);
  admit (&n, allow (100, 0, CV_PROTO_UDP, 53));
  DENY (&n, POD_B, &back);
  DENY (&n, OVERLAY, &k);
  cv_free (n.m);
}

/* The same for the first egress policy of a client: the answers do not let its packets pass. */
static void
first_egress_policy_udp (int ip6)
{
  net_t n = policed_world ();
  connect_both_ways (&n, POD_A, A[ip6], OVERLAY, R[ip6], CV_PROTO_UDP, 40000, 53);
  check (policy (&n, 2, CV_EGRESS, NULL, 0) == CV_OK && police (&n, POD_A, 0, 2) == CV_OK);
  pkt_t k = build (A[ip6], R[ip6], CV_PROTO_UDP, 40000, 53, 0, 5), back = answer (&k, 0);
  DENY (&n, OVERLAY, &back);
  DENY (&n, POD_A, &k);
  cv_free (n.m);
}

/* A pod that has had its policy from its first packet on opens flows from any port at once. */
static void
policy_from_the_start (int ip6)
{
  net_t n = policed_world ();
  set_of (&n, 100, CV_SET_NETWORKS);
  admit (&n, allow (100, 0, CV_PROTO_UDP, 53));
  connect_both_ways (&n, POD_A, A[ip6], OVERLAY, R[ip6], CV_PROTO_UDP, 40000, 53);
  connect_both_ways (&n, POD_B, B[ip6], POD_A, A[ip6], CV_PROTO_UDP, 53, 40000);
  cv_free (n.m);
}

static void
icmp (void)
{
  net_t n = policed_world ();
  set_of_a (&n);
  cv_rule_t rules[3] = { allow (100, 0, CV_PROTO_ICMP, 0), allow (100, 0, CV_PROTO_ICMP6, 0), allow (100, 0, CV_PROTO_UDP, 53) };
  rules[0].flags = rules[1].flags = CV_RULE_ICMP_TYPE;
  rules[0].icmp_type = 8, rules[1].icmp_type = 128;
  check (policy (&n, 1, CV_INGRESS, rules, 3) == CV_OK && police (&n, POD_B, 1, 0) == CV_OK && policy (&n, 2, CV_EGRESS, NULL, 0) == CV_OK);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      uint8_t proto = ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP, ask = ip6 ? 128 : 8, tell = ip6 ? 129 : 0;
      pkt_t k = build (A[ip6], B[ip6], proto, 7, 0, ask, 8);
      PASS (&n, POD_A, &k);
      k = build (B[ip6], A[ip6], proto, 7, 0, tell, 8);
      PASS (&n, POD_B, &k);
      k = build (A[ip6], B[ip6], proto, 9, 0, tell, 8);
      DENY (&n, POD_A, &k);
      /* B may send an echo request to A with A's identifier; if B is not allowed to, it cannot use the connection of A's request */
      k = build (B[ip6], A[ip6], proto, 7, 0, ask, 8);
      PASS (&n, POD_B, &k);
      k = build (A[ip6], B[ip6], proto, 7, 0, tell, 8);
      PASS (&n, POD_A, &k);
      check (police (&n, POD_B, 1, 2) == CV_OK);
      k = build (B[ip6], A[ip6], proto, 7, 0, ask, 8);
      DENY (&n, POD_B, &k);
      k = build (B[ip6], A[ip6], proto, 7, 0, tell, 8);
      PASS (&n, POD_B, &k);
      check (police (&n, POD_B, 1, 0) == CV_OK);
      /* errors pass with the connection to which they belong */
      pkt_t u = build (A[ip6], B[ip6], CV_PROTO_UDP, 4000, 53, 0, 8);
      PASS (&n, POD_A, &u);
      pkt_t e = icmp_error (B[ip6], &u, 64);
      PASS (&n, POD_B, &e);
      pkt_t mine = build (B[ip6], A[ip6], CV_PROTO_UDP, 4001, 99, 0, 8);
      PASS (&n, POD_B, &mine);
      e = icmp_error (A[ip6], &mine, 64);
      PASS (&n, POD_A, &e);
      pkt_t none = build (B[ip6], A[ip6], CV_PROTO_UDP, 4002, 99, 0, 8);
      e = icmp_error (A[ip6], &none, 64);
      DENY (&n, POD_A, &e);
      /* about a connection of other ends, sent to B */
      pkt_t far = build (R[ip6], A[ip6], CV_PROTO_UDP, 4003, 99, 0, 8);
      PASS (&n, OVERLAY, &far);
      e = icmp_error (A[ip6], &far, 64);
      cv_addr_t to = addr (B[ip6]);
      memcpy (e.data + (ip6 ? 24 : 16), &to, ip6 ? 16 : 4);
      seal (&e);
      DENY (&n, POD_A, &e);
      check (member (&n, 100, A[ip6], false) == CV_OK);
      e = icmp_error (B[ip6], &u, 64);
      DENY (&n, POD_B, &e);
      check (member (&n, 100, A[ip6], true) == CV_OK);
      /* other messages do not belong to a connection */
      k = build (A[ip6], B[ip6], proto, 0, 0, ip6 ? 200 : 13, 8);
      DENY (&n, POD_A, &k);
      k = build (A[ip6], R[ip6], proto, 0, 0, ip6 ? 200 : 13, 8);
      PASS (&n, POD_A, &k);
    }
  /* neighbour discovery of a pod that may send nothing */
  check (closed (&n, POD_A) == CV_OK);
  pkt_t k = build (A[1], "fe80::1", CV_PROTO_ICMP6, 0, 0, 135, 16);
  PASS (&n, POD_A, &k);
  k = build (A[1], R[1], CV_PROTO_ICMP6, 0, 0, 135, 16);
  DENY (&n, POD_A, &k);
  k = build (A[1], OWN[1], CV_PROTO_ICMP6, 0, 0, 135, 16);
  PASS (&n, POD_A, &k);
  cv_free (n.m);
}

/* A pod whose policy allows everything has no extra cost: its flows have no connections. */
static void
open_pods (void)
{
  net_t n = policed_world ();
  check (police (&n, POD_A, 0, 0) == CV_OK && police (&n, POD_B, 0, 0) == CV_OK && !n.m->n_policed);
  connect_both_ways (&n, POD_A, A[0], POD_B, B[0], CV_PROTO_TCP, 40000, 80);
  check (n_connections (&n) == 0);
  cv_rule_t r = allow (0, 0, CV_PROTO_TCP, 80);
  check (policy (&n, 1, CV_INGRESS, &r, 1) == CV_OK && police (&n, POD_B, 1, 0) == CV_OK && n.m->n_policed == 1);
  connect_both_ways (&n, POD_A, A[0], OVERLAY, R[0], CV_PROTO_TCP, 40000, 80);
  check (n_connections (&n) == 0);
  connect_both_ways (&n, POD_A, A[0], POD_B, B[0], CV_PROTO_TCP, 40000, 80);
  connect_both_ways (&n, POD_B, B[0], POD_A, A[0], CV_PROTO_UDP, 40000, 80);
  check (n_connections (&n) == 2);
  check (police (&n, POD_B, 0, 0) == CV_OK && !n.m->n_policed);
  check (police (&n, POD_B, 1, 0) == CV_OK && cv_endpoint_del (n.m, POD_B) == CV_OK && !n.m->n_policed);
  cv_free (n.m);
}

/* The answer of a pod with egress NAT to an external machine keeps its source. */
static void
from_outside (void)
{
  net_t n = policed_world ();
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      pkt_t k = build (OUT[ip6], A[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      PASS (&n, UPLINK, &k);
      expect (&k, OUT[ip6], 40000, A[ip6], 80);
      pkt_t r = answer (&k, SYN | ACK);
      PASS (&n, POD_A, &r);
      expect (&r, A[ip6], 80, OUT[ip6], 40000);
      k = build (NODE[ip6], A[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      PASS (&n, UPLINK, &k);
    }
  check (n_connections (&n) == 2);
  cv_free (n.m);
}

/* Later fragments are judged by the ports of their first fragment. */
static void
fragments (void)
{
  net_t n = policed_world ();
  cv_rule_t r = allow (0, 0, CV_PROTO_UDP, 53);
  admit (&n, r);
  for (int ports = 0; ports < 3; ports++)
    {
      pkt_t k = build (A[0], B[0], CV_PROTO_UDP, 1000, 53, 0, 800);
      k.data[6] = 0x20, k.data[7] = 100;
      seal (&k);
      n.p = (cv_packet_t){ .ip = k.data, .len = k.len, .sw_if_index = POD_A, .reassembled = true, .transport = CV_PROTO_UDP };
      if (ports)
	n.p.sport = htons (1000), n.p.dport = htons (ports == 1 ? 53 : 54);
      cv_parse (n.m, 0, &n.p, n.now);
      cv_decide (n.m, 0, &n.p, n.now);
      check (n.p.verdict == (ports == 1 ? CV_VERDICT_PASS : CV_VERDICT_DROP), "ports %d: %d", ports, n.p.reason);
    }
  /* a tunnel port does not bypass policy */
  pkt_t k = build (R[0], B[0], CV_PROTO_UDP, 1000, 4789, 0, 50);
  DENY (&n, UPLINK, &k);
  k = build (R[0], NODE[0], CV_PROTO_UDP, 1000, 4789, 0, 50);
  PASS (&n, UPLINK, &k);
  cv_free (n.m);
}

/* A later IPv6 fragment is judged by the protocol of its first fragment, whatever its own header says: it may name the first extension header
 * of the packet, or anything else. */
static void
fragment_protocols (void)
{
  static const uint8_t claimed[] = { CV_PROTO_TCP, CV_PROTO_UDP, CV_PROTO_SCTP, CV_PROTO_ICMP6, 60, 0, 59, 47 };
  net_t n = policed_world ();
  cv_rule_t r = allow (0, 0, CV_PROTO_TCP, 53);
  admit (&n, r);
  for (int tcp = 0; tcp < 2; tcp++)
    for (size_t i = 0; i < sizeof (claimed); i++)
      {
	pkt_t k = build (A[1], B[1], 44, 0, 0, 0, 100);
	memcpy (k.data + 40, (uint8_t[8]){ claimed[i], 0, 1, 0, 1, 2, 3, 4 }, 8);
	n.p = (cv_packet_t){ .ip = k.data, .len = k.len, .sw_if_index = POD_A, .reassembled = true, .sport = htons (1000), .dport = htons (53),
			     .transport = tcp ? CV_PROTO_TCP : CV_PROTO_UDP };
	go (&n, 0, &n.p);
	cv_quiesce (n.m, 0);
	check (n.p.verdict == (tcp ? CV_VERDICT_PASS : CV_VERDICT_DROP) && n.p.proto == n.p.transport, "protocol %u, header %u: verdict %d, reason %d",
	       n.p.transport, claimed[i], n.p.verdict, n.p.reason);
      }
  cv_free (n.m);
}

/* as_first turns a TCP packet into the first fragment of a packet, with the given number of bytes of its payload; the rest of the packet
 * follows as padding. */
static void
as_first (pkt_t *k, uint32_t bytes)
{
  if (k->data[0] >> 4 == 4)
    {
      k->data[2] = 0, k->data[3] = (uint8_t) (20 + bytes);
      k->data[6] = 0x20;
      return;
    }
  memmove (k->data + 48, k->data + 40, k->len - 40);
  memcpy (k->data + 40, (uint8_t[8]){ CV_PROTO_TCP, 0, 0, 1, 1, 2, 3, 4 }, 8);
  k->data[6] = 44;
  k->data[4] = 0, k->data[5] = (uint8_t) (8 + bytes);
  k->len += 8;
}

/* A server that may not open connections hides a SYN: the first fragment has no TCP flags, and the flags of an answer are in the padding
 * after it. */
static void
hidden_flags (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = policed_world ();
      cv_rule_t r = allow (0, 0, CV_PROTO_TCP, 80);
      check (policy (&n, 1, CV_INGRESS, &r, 1) == CV_OK && policy (&n, 2, CV_EGRESS, NULL, 0) == CV_OK && police (&n, POD_B, 1, 2) == CV_OK);
      pkt_t k = build (B[ip6], A[ip6], CV_PROTO_TCP, 80, 40000, SYN, 0);
      DENY (&n, POD_B, &k);
      for (uint32_t bytes = 0; bytes <= 24; bytes += 8)
	{
	  k = build (B[ip6], A[ip6], CV_PROTO_TCP, 80, 40000, ACK, 12);
	  as_first (&k, bytes);
	  n.p = (cv_packet_t){ .ip = k.data, .len = k.len, .sw_if_index = POD_B, .reassembled = true };
	  go (&n, 0, &n.p);
	  cv_quiesce (n.m, 0);
	  check (bytes < 20 ? n.p.verdict == CV_VERDICT_DROP && n.p.reason == CV_MALFORMED : n.p.verdict == CV_VERDICT_PASS,
		 "%u bytes: verdict %d, reason %d", bytes, n.p.verdict, n.p.reason);
	}
      cv_free (n.m);
    }
}

/* The unknown content of a set allows nothing. */
static void
unknown_sets (void)
{
  cv_config_t c = { .connections_max = 100, .set_members_max = 3 };
  net_t n = { .m = cv_new (&c, 1, 1), .now = NOW_START };
  endpoint (&n, POD_A, CV_ROLE_POD, 0, 0, A[0], A[1]);
  endpoint (&n, POD_B, CV_ROLE_POD, 0, 0, B[0], B[1]);
  endpoint (&n, OVERLAY, CV_ROLE_OVERLAY, 0, 0, NULL, NULL);
  cv_rule_t rules[2] = { { .action = CV_RULE_DENY, .source = 5, .proto = CV_PROTO_TCP, .n_ports = 1, .ports = { { 7, 7 } } }, { .action = CV_RULE_ALLOW, .source = 6 } };
  check (policy (&n, 1, CV_INGRESS, rules, 2) == CV_OK && police (&n, POD_B, 1, 0) == CV_OK);
  pkt_t other = build (R[0], B[0], CV_PROTO_TCP, 40000, 8, SYN, 0), seven = build (R[0], B[0], CV_PROTO_TCP, 40000, 7, SYN, 0);
  DENY (&n, OVERLAY, &other); /* 6 is not known */
  set_of (&n, 6, CV_SET_NETWORKS);
  check (member (&n, 6, R[0], true) == CV_OK);
  PASS (&n, OVERLAY, &other);
  DENY (&n, OVERLAY, &seven); /* 5 is not known */
  set_of (&n, 5, CV_SET_NETWORKS);
  PASS (&n, OVERLAY, &seven);
  for (int i = 1; i <= 4; i++)
    {
      char a[40];
      snprintf (a, sizeof (a), "10.9.9.%d", i);
      check (member (&n, 5, a, true) == (i < 4 ? CV_OK : CV_NO_MEMORY));
      check (member (&n, 6, a, true) == (i < 3 ? CV_OK : CV_NO_MEMORY));
    }
  DENY (&n, OVERLAY, &other); /* 6 was given more members than the maximum */
  check (cv_set_del (n.m, 6) == CV_OK);
  set_of (&n, 6, CV_SET_NETWORKS);
  check (member (&n, 6, R[0], true) == CV_OK);
  PASS (&n, OVERLAY, &other);
  DENY (&n, OVERLAY, &seven); /* 5 was given more members than the maximum */
  check (cv_set_del (n.m, 5) == CV_OK);
  set_of (&n, 5, CV_SET_PORTS);
  DENY (&n, OVERLAY, &seven); /* a set of another kind */
  check (cv_set_del (n.m, 5) == CV_OK && cv_set_del (n.m, 5) == CV_NOT_FOUND);
  rules[0].action = CV_RULE_PASS;
  check (policy (&n, 1, CV_INGRESS, rules, 2) == CV_OK);
  DENY (&n, OVERLAY, &seven);
  cv_free (n.m);
}

/* A deleted policy stays in effect for its endpoints, until they get another policy or the policy is set again. */
static void
deleted_policy (void)
{
  net_t n = policed_world ();
  cv_rule_t all = allow (0, 0, 0, 0), one = allow (0, 0, CV_PROTO_TCP, 80);
  admit (&n, one);
  check (cv_policy_del (n.m, 1) == CV_OK && cv_policy_del (n.m, 1) == CV_NOT_FOUND && police (&n, POD_A, 1, 0) == CV_NOT_FOUND);
  pkt_t k = build (A[0], B[0], CV_PROTO_TCP, 40000, 80, SYN, 0), u = build (A[0], B[0], CV_PROTO_UDP, 40000, 80, 0, 0);
  PASS (&n, POD_A, &k);
  DENY (&n, POD_A, &u);
  check (policy (&n, 1, CV_INGRESS, &all, 1) == CV_OK);
  PASS (&n, POD_A, &u);
  check (cv_policy_del (n.m, 1) == CV_OK && policy (&n, 2, CV_INGRESS, &one, 1) == CV_OK && police (&n, POD_B, 2, 0) == CV_OK);
  DENY (&n, POD_A, &u);
  sleep_ticks (&n, 3);
  check (police (&n, POD_B, 1, 0) == CV_NOT_FOUND && policy (&n, 1, CV_INGRESS, &one, 1) == CV_OK);
  cv_free (n.m);
}

static void
tiers (void)
{
  net_t n = policed_world ();
  cv_rule_t admin[2] = { { .action = CV_RULE_PASS, .proto = CV_PROTO_TCP, .n_ports = 1, .ports = { { 80, 80 } } }, { .action = CV_RULE_DENY, .proto = CV_PROTO_TCP } };
  cv_rule_t user = allow (0, 0, 0, 0);
  check (policy (&n, 1, CV_INGRESS, admin, 2) == CV_OK && policy (&n, 2, CV_INGRESS, &user, 1) == CV_OK && policy (&n, 3, CV_INGRESS, NULL, 0) == CV_OK);
  struct
  {
    cv_tier_item_t items[6];
    uint32_t n;
    bool p80, p81, udp; /* protocols and ports that pass */
  } cases[] = {
    { { { 1, 0 }, { 0, CV_RULE_PASS } }, 2, true, false, true },
    { { { 1, 0 }, { 0, CV_RULE_DENY } }, 2, true, false, false },
    { { { 1, 0 }, { 0, CV_RULE_ALLOW }, { 3, 0 }, { 0, CV_RULE_DENY } }, 4, false, false, true },
    { { { 1, 0 }, { 2, 0 }, { 0, CV_RULE_PASS }, { 3, 0 }, { 0, CV_RULE_DENY } }, 5, false, false, true },
    { { { 1, 0 }, { 0, CV_RULE_PASS }, { 3, 0 }, { 2, 0 }, { 0, CV_RULE_DENY } }, 5, true, false, true },
    { { { 2, 0 }, { 1, 0 }, { 0, CV_RULE_DENY } }, 3, true, true, true },
    { { { 0, CV_RULE_DENY } }, 1, false, false, false },
    { { { 0, 0 } }, 0, true, true, true },
  };
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    {
      cv_endpoint_policy_t p = { .name = "b", .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .n = { cases[i].n, 0 }, .items = { cases[i].items, NULL } };
      check (cv_endpoint_policy_set (n.m, POD_B, &p) == CV_OK);
      pkt_t a = build (A[0], B[0], CV_PROTO_TCP, 40000, 80, SYN, 0), b = build (A[0], B[0], CV_PROTO_TCP, 40000, 81, SYN, 0);
      pkt_t c = build (A[0], B[0], CV_PROTO_UDP, 40000, 81, 0, 0);
      check ((transmit (&n, POD_A, &a) == CV_VERDICT_PASS) == cases[i].p80, "case %zu", i);
      check ((transmit (&n, POD_A, &b) == CV_VERDICT_PASS) == cases[i].p81, "case %zu", i);
      check ((transmit (&n, POD_A, &c) == CV_VERDICT_PASS) == cases[i].udp, "case %zu", i);
    }
  cv_free (n.m);
}

/* A neighbour solicitation for the node, to which no policy applies, does not let other packets pass: no other ICMP type, and no echo
 * without an identifier. */
static void
solicitation_of_the_node (void)
{
  net_t n = policed_world ();
  cv_rule_t deny = { .action = CV_RULE_DENY };
  check (policy (&n, 1, CV_EGRESS, &deny, 1) == CV_OK);
  cv_tier_item_t items[] = { { 1, CV_RULE_PASS }, { 0, CV_RULE_DENY } };
  cv_endpoint_policy_t p = { .name = "b", .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .n = { 0, 2 }, .items = { NULL, items } };
  check (cv_endpoint_policy_set (n.m, POD_B, &p) == CV_OK);
  const uint8_t denied[] = { 127, 128, 129, 139, 140, 200, 255 };
  for (size_t i = 0; i < sizeof (denied); i++)
    {
      pkt_t k = build (B[1], OWN[1], CV_PROTO_ICMP6, 0, 0, 135, 24);
      PASS (&n, POD_B, &k);
      k = build (B[1], OWN[1], CV_PROTO_ICMP6, 0, 0, denied[i], 24);
      check (offer (&n, 0, POD_B, &k) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "type %u: verdict %d, reason %d", denied[i], n.p.verdict, n.p.reason);
    }
  cv_free (n.m);
}

/* Traffic from a pod to its own node is subject to the policies that apply to it; the node can reach the pod, and gets its answers. */
static void
own_node (void)
{
  net_t n = policed_world ();
  network (&n, OWN[0], 32, CV_CLASS_NODE);
  network (&n, OWN[1], 128, CV_CLASS_NODE);
  cv_rule_t rules[2] = { { .action = CV_RULE_PASS, .proto = CV_PROTO_TCP, .n_ports = 1, .ports = { { 443, 443 } } }, { .action = CV_RULE_DENY } };
  check (policy (&n, 1, CV_EGRESS, rules, 2) == CV_OK && policy (&n, 2, CV_EGRESS, NULL, 0) == CV_OK);
  cv_tier_item_t items[] = { { 1, CV_RULE_PASS }, { 0, CV_RULE_PASS }, { 2, 0 }, { 0, CV_RULE_DENY } };
  cv_endpoint_policy_t p = { .name = "b", .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .n = { 0, 4 }, .items = { NULL, items } };
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      uint8_t icmp = ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP;
      check (cv_endpoint_policy_set (n.m, POD_B, NULL) == (ip6 ? CV_OK : CV_NOT_FOUND));
      /* connections that were open before: that of the node continues, that of the pod is cut */
      connect_both_ways (&n, HOST, OWN[ip6], POD_B, B[ip6], CV_PROTO_TCP, 40000, 9000);
      connect_both_ways (&n, POD_B, B[ip6], HOST, OWN[ip6], CV_PROTO_TCP, 40000, 22);
      check (cv_endpoint_policy_set (n.m, POD_B, &p) == CV_OK);
      pkt_t k = build (B[ip6], OWN[ip6], CV_PROTO_TCP, 9000, 40000, ACK, 5);
      PASS (&n, POD_B, &k);
      k = build (B[ip6], OWN[ip6], CV_PROTO_TCP, 40000, 22, ACK, 5);
      DENY (&n, POD_B, &k);
      k = build (OWN[ip6], B[ip6], CV_PROTO_TCP, 22, 40000, ACK, 5);
      DENY (&n, HOST, &k);
      /* new connections */
      connect_both_ways (&n, HOST, OWN[ip6], POD_B, B[ip6], CV_PROTO_TCP, 41000, 9000);
      connect_both_ways (&n, HOST, OWN[ip6], POD_B, B[ip6], CV_PROTO_UDP, 41000, 53);
      connect_both_ways (&n, POD_B, B[ip6], HOST, OWN[ip6], CV_PROTO_TCP, 41001, 443);
      const uint8_t denied[] = { CV_PROTO_TCP, CV_PROTO_UDP, CV_PROTO_SCTP, 47, icmp };
      for (size_t i = 0; i < sizeof (denied); i++)
	{
	  uint8_t echo = ip6 ? 128 : 8;
	  k = build (B[ip6], OWN[ip6], denied[i], 41002, 22, denied[i] == icmp ? echo : SYN, 16);
	  DENY (&n, POD_B, &k);
	}
      /* not through the connection that the node has opened */
      k = build (B[ip6], OWN[ip6], CV_PROTO_TCP, 9000, 41000, SYN, 0);
      DENY (&n, POD_B, &k);
      /* another pod of the node is not restricted */
      connect_both_ways (&n, POD_A, A[ip6], HOST, OWN[ip6], CV_PROTO_TCP, 41001, 22);
    }
  /* policy does not apply to neighbour discovery */
  cv_flow_t f = { .src = addr (B[1]), .dst = addr (OWN[1]), .proto = CV_PROTO_ICMP6, .ip6 = true };
  for (int type = 0; type < 256; type++)
    {
      f.icmp_type = (uint8_t) type;
      check ((cv_judge (n.m, 0, POD_B, &f, n.now) == CV_FREE) == (type == 133 || type == 135 || type == 136), "type %d", type);
    }
  cv_free (n.m);
}

static uint32_t seen;

static void
count_denied (void *ctx, const cv_denied_t *d)
{
  uint64_t *last = ctx;
  check (d->sequence > *last && d->side == CV_INGRESS && d->sw_if_index == POD_B && d->proto == CV_PROTO_TCP && d->dport == 81);
  check (d->policy == 1 && d->rule == 1);
  *last = d->sequence;
  seen++;
}

static void
count_matched (void *ctx, uint64_t id, const cv_policy_t *p, const uint64_t *matched[2])
{
  const uint64_t *want = ctx;
  check (id == 1 && p->n[0] == 2 && p->n[1] == 0 && !strcmp (p->name, "ns/policy") && p->rules[0][1].ports[0].last == 90);
  check (matched[0][0] == want[0] && matched[0][1] == want[1], "%lu, %lu", (unsigned long) matched[0][0], (unsigned long) matched[0][1]);
}

static void
check_endpoint (void *ctx, uint32_t i, const cv_endpoint_policy_t *p, const uint64_t denied[2])
{
  check (i == POD_B && p->n[0] == 2 && p->n[1] == 0 && p->items[0][0].policy == 1 && p->items[0][1].action == CV_RULE_DENY && !strcmp (p->name, "ns/pod"));
  check (denied[0] == *(uint64_t *) ctx && !denied[1]);
}

/* Denied flows are counted, and the most recent ones are listed. */
static void
denied_flows (void)
{
  net_t n = policed_world ();
  cv_rule_t rules[2] = { allow (0, 0, CV_PROTO_TCP, 80), { .action = CV_RULE_DENY, .proto = CV_PROTO_TCP, .n_ports = 1, .ports = { { 81, 90 } } } };
  check (policy (&n, 1, CV_INGRESS, rules, 2) == CV_OK && police (&n, POD_B, 1, 0) == CV_OK);
  for (uint16_t i = 0; i < 1000; i++)
    {
      pkt_t k = build (A[0], B[0], CV_PROTO_TCP, 10000 + i, 81, SYN, 0);
      DENY (&n, POD_A, &k);
      if (i % 20 == 0)
	n.now++;
    }
  uint64_t last = 0, want[2] = { 0, 1000 }, all = 1000;
  cv_denied_walk (n.m, 0, count_denied, &last);
  check (seen == CV_DENIED_FLOWS && last >= CV_DENIED_FLOWS, "%u", seen);
  cv_denied_walk (n.m, last, count_denied, &last);
  check (seen == CV_DENIED_FLOWS);
  cv_policy_walk (n.m, count_matched, want);
  cv_endpoint_policy_walk (n.m, check_endpoint, &all);
  /* unchanged rules keep their counters */
  check (policy (&n, 1, CV_INGRESS, rules, 2) == CV_OK);
  cv_policy_walk (n.m, count_matched, want);
  cv_free (n.m);
}

static void
refusals (void)
{
  net_t n = policed_world ();
  char name[CV_NAME_LEN] = "x";
  check (cv_set_set (n.m, 0, name, CV_SET_NETWORKS) == CV_INVALID && cv_set_set (n.m, 1, name, 3) == CV_INVALID && cv_set_set (n.m, 1, name, 0) == CV_INVALID);
  check (member (&n, 1, A[0], true) == CV_NOT_FOUND);
  set_of (&n, 1, CV_SET_NETWORKS);
  set_of (&n, 2, CV_SET_PORTS);
  check (cv_set_set (n.m, 1, name, CV_SET_PORTS) == CV_INVALID);
  check (port_member (&n, 1, A[0], CV_PROTO_TCP, 80, true) == CV_INVALID && member (&n, 2, A[0], true) == CV_INVALID);
  check (port_member (&n, 2, A[0], CV_PROTO_TCP, 0, true) == CV_INVALID && port_member (&n, 2, A[0], 0, 80, true) == CV_INVALID);
  cv_set_member_t bad = network_member ("10.1.1.1", 24);
  check (cv_set_member_set (n.m, 1, &bad, true) == CV_INVALID);
  bad = network_member ("10.1.1.0", 33);
  check (cv_set_member_set (n.m, 1, &bad, true) == CV_INVALID);
  check (member (&n, 1, A[0], false) == CV_NOT_FOUND && member (&n, 1, A[0], true) == CV_OK && member (&n, 1, A[0], true) == CV_OK);
  cv_rule_t bad_rules[] = {
    { .action = 0 }, { .action = 4 }, { .action = 1, .family = 5 }, { .action = 1, .n_ports = 1 }, { .action = 1, .proto = 6, .n_ports = 9 },
    { .action = 1, .proto = 6, .n_ports = 1, .ports = { { 2, 1 } } }, { .action = 1, .proto = 6, .flags = 1 }, { .action = 1, .proto = 1, .flags = 2 },
    { .action = 1, .proto = 1, .flags = 4 },
  };
  for (size_t i = 0; i < sizeof (bad_rules) / sizeof (*bad_rules); i++)
    check (policy (&n, 1, CV_INGRESS, &bad_rules[i], 1) == CV_INVALID, "%zu", i);
  check (policy (&n, 0, CV_INGRESS, NULL, 0) == CV_INVALID && cv_policy_del (n.m, 1) == CV_NOT_FOUND);
  check (police (&n, POD_B, 7, 0) == CV_NOT_FOUND && police (&n, 99, 0, 0) == CV_NOT_FOUND && police (&n, HOST, 0, 0) == CV_INVALID);
  check (cv_endpoint_policy_set (n.m, POD_B, NULL) == CV_NOT_FOUND);
  check (policy (&n, 7, CV_INGRESS, NULL, 0) == CV_OK && police (&n, POD_B, 7, 0) == CV_OK);
  cv_tier_item_t items[] = { { 7, 0 }, { 7, 1 }, { 0, 0 }, { 0, 9 } };
  for (int i = 0; i < 4; i++)
    {
      cv_endpoint_policy_t p = { .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .n = { 1, 0 }, .items = { &items[i], NULL } };
      check (cv_endpoint_policy_set (n.m, POD_B, &p) == CV_INVALID, "%d", i);
    }
  cv_tier_item_t node[] = { { 7, CV_RULE_PASS }, { 0, CV_RULE_DENY } };
  cv_endpoint_policy_t in = { .otherwise = { CV_RULE_ALLOW, CV_RULE_ALLOW }, .n = { 2, 0 }, .items = { node, NULL } };
  check (cv_endpoint_policy_set (n.m, POD_B, &in) == CV_INVALID); /* the node can always reach its pods */
  cv_endpoint_policy_t p = { .otherwise = { CV_RULE_PASS, CV_RULE_ALLOW } };
  check (cv_endpoint_policy_set (n.m, POD_B, &p) == CV_INVALID);
  check (cv_policy_del (n.m, 7) == CV_OK && cv_endpoint_del (n.m, POD_B) == CV_OK && cv_policy_del (n.m, 7) == CV_NOT_FOUND);
  cv_free (n.m);
}

/* A large set: the memory of a member, and that lookups find exactly its members. */
static void
large_set (void)
{
  net_t n = policed_world ();
  set_of (&n, 1, CV_SET_NETWORKS);
  cv_set_member_t e = { .prefix = { .len = 32 } };
  for (uint32_t i = 0; i < 300000; i++)
    {
      e.prefix.addr.u32[0] = htonl (0x0a000000 + i);
      check (cv_set_member_set (n.m, 1, &e, true) == CV_OK);
      if (i % 3 == 0)
	check (cv_set_member_set (n.m, 1, &e, false) == CV_OK);
      if (i % 1000 == 0)
	sleep_ticks (&n, 1);
    }
  size_t bytes = sizeof (cv_member_state_t) + sizeof (uint32_t) * (n.m->member_slots->mask + 1ull) / 200000;
  check (bytes <= 64, "%zu", bytes);
  for (uint32_t i = 0; i < 300100; i++)
    {
      e.prefix.addr.u32[0] = htonl (0x0a000000 + i);
      check (cv_set_contains (n.m, cv_set_get (n.m, 1, false), &e.prefix.addr, false) == (i < 300000 && i % 3));
    }
  /* adding and removing members repeatedly does not grow the table */
  uint32_t mask = n.m->member_slots->mask;
  for (uint32_t i = 0; i < 300000; i++)
    {
      e.prefix.addr.u32[0] = htonl (0x0b000000 + i);
      check (cv_set_member_set (n.m, 1, &e, true) == CV_OK && cv_set_member_set (n.m, 1, &e, false) == CV_OK);
      if (i % 1000 == 0)
	sleep_ticks (&n, 1);
    }
  check (n.m->member_slots->mask == mask);
  check (cv_set_del (n.m, 1) == CV_OK);
  sleep_ticks (&n, 5);
  cv_free (n.m);
}

static uint32_t
any (uint32_t n)
{
  static uint64_t seed = 1;
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t) (seed >> 33) % n;
}

static uint16_t
any_port (void)
{
  static const uint16_t ports[] = { 0, 79, 80, 81, 82, 8079, 8080, 8081, 65534, 65535 };
  return any (3) ? ports[any (10)] : (uint16_t) any (65536);
}

static void
any_rules (net_t *n, uint64_t id)
{
  static const uint8_t protocols[] = { 0, CV_PROTO_TCP, CV_PROTO_UDP, CV_PROTO_ICMP, CV_PROTO_ICMP6 };
  cv_rule_t rules[2][6] = { 0 };
  cv_policy_t p = { .name = "any", .n = { 6, 6 }, .rules = { rules[0], rules[1] } };
  for (int i = 0; i < 12; i++)
    {
      cv_rule_t *r = &rules[i / 6][i % 6];
      *r = (cv_rule_t){ .action = (uint8_t) (CV_RULE_ALLOW + any (any (4) ? 2 : 3)), .proto = protocols[any (5)] };
      if (any (3))
	*(i < 6 ? &r->source : &r->destination) = 100 + any (3);
      if (r->proto == CV_PROTO_TCP || r->proto == CV_PROTO_UDP)
	{
	  r->n_ports = (uint8_t) any (3);
	  for (int k = 0; k < r->n_ports; k++)
	    {
	      uint16_t one = any_port (), other = any (2) ? one : any_port ();
	      r->ports[k].first = one < other ? one : other;
	      r->ports[k].last = one < other ? other : one;
	    }
	  r->service = any (id == 1 ? 20 : 4) ? 0 : 103;
	}
      else if (r->proto)
	{
	  r->flags = CV_RULE_ICMP_TYPE | (any (2) ? CV_RULE_ICMP_CODE : 0);
	  r->icmp_type = (uint8_t) any (3);
	  r->icmp_code = (uint8_t) any (2);
	}
    }
  check (cv_policy_set (n->m, id, &p) == CV_OK);
}

static void
any_change (net_t *n)
{
  const char *const *ends[] = { A, B, R, OUT, OWN };
  const char *a = ends[any (5)][any (2)];
  switch (any (4))
    {
    case 0:
      any_rules (n, 1 + any (2));
      return;
    case 1:
      member (n, 100 + any (3), a, any (2));
      return;
    case 2:
      port_member (n, 103, a, any (2) ? CV_PROTO_TCP : CV_PROTO_UDP, (uint16_t) (80 + any (2)), any (2));
      return;
    default:
      {
	cv_tier_item_t items[2][4] = { 0 };
	cv_endpoint_policy_t p = { .name = "any", .otherwise = { CV_RULE_ALLOW, CV_RULE_DENY }, .n = { 4, 4 }, .items = { items[0], items[1] } };
	for (int side = 0; side < 2; side++)
	  for (int tier = 0; tier < 2; tier++)
	    {
	      items[side][2 * tier] = (cv_tier_item_t){ .policy = 1 + any (2), .action = side && any (2) ? CV_RULE_PASS : 0 };
	      items[side][2 * tier + 1].action = (uint8_t) (CV_RULE_ALLOW + any (3));
	    }
	check (cv_endpoint_policy_set (n->m, any (2) ? POD_A : POD_B, &p) == CV_OK);
      }
    }
}

/* weigh returns the sum of the counters of rules, each with a different weight. */
static void
weigh (void *sum, uint64_t id, const cv_policy_t *p, const uint64_t *matched[2])
{
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < p->n[side]; i++)
      *(uint64_t *) sum += matched[side][i] * (id * 100 + (uint64_t) side * 10 + i);
}

static uint64_t
weight (net_t *n)
{
  uint64_t sum = 0;
  cv_policy_walk (n->m, weigh, &sum);
  return sum;
}

/* Decisions and counters are the same as without cached decisions, for random flows and random changes. */
static void
decided_before (void)
{
  net_t n = policed_world ();
  static cv_decided_t before[CV_DECIDED];
  const char *const *ends[] = { A, B, R, OUT, OWN };
  static const uint8_t protocols[2][3] = { { CV_PROTO_TCP, CV_PROTO_UDP, CV_PROTO_ICMP }, { CV_PROTO_TCP, CV_PROTO_UDP, CV_PROTO_ICMP6 } };
  uint32_t from[] = { POD_A, POD_B, CV_NO_INDEX, UPLINK, HOST }, seen[3] = { 0 }, again = 0;
  for (uint64_t id = 100; id < 104; id++)
    set_of (&n, id, id < 103 ? CV_SET_NETWORKS : CV_SET_PORTS);
  cv_set_member_t half = network_member ("8.8.0.0", 23);
  check (cv_set_member_set (n.m, 100, &half, true) == CV_OK);
  any_rules (&n, 1);
  any_rules (&n, 2);
  for (int i = 0; i < 60000; i++)
    {
      if (!any (40))
	any_change (&n);
      uint32_t src = any (5);
      cv_flow_t f = { .ip6 = any (2) };
      f.src = addr (ends[src][f.ip6]);
      if (src == 3 && !f.ip6) /* so many sources that they share places */
	f.src.u32[0] = htonl (0x08080000 + any (1024));
      f.dst = addr (ends[any (3) ? 1 : any (5)][f.ip6]);
      f.proto = protocols[f.ip6][any (3)];
      f.sport = (uint16_t) any (UINT16_MAX);
      if (f.proto == CV_PROTO_TCP || f.proto == CV_PROTO_UDP)
	f.dport = htons (any_port ());
      else
	{
	  f.icmp_type = (uint8_t) any (3);
	  f.icmp_code = (uint8_t) any (2);
	}
      memcpy (before, n.m->workers[0].decided, sizeof (before));
      uint32_t at = from[any (4) ? src : any (5)];
      uint64_t counted = weight (&n);
      cv_judgement_t j = cv_judge (n.m, 0, at, &f, n.now);
      counted = weight (&n) - counted;
      again += !memcmp (before, n.m->workers[0].decided, sizeof (before)) && j != CV_FREE;
      memcpy (before, n.m->workers[0].decided, sizeof (before));
      memset (n.m->workers[0].decided, 0, sizeof (before));
      uint64_t should = weight (&n);
      cv_judgement_t want = cv_judge (n.m, 0, at, &f, n.now);
      should = weight (&n) - should;
      memcpy (n.m->workers[0].decided, before, sizeof (before));
      check (j == want, "flow %d: %d, and %d if nothing was decided before", i, j, want);
      check (counted == should, "flow %d counts %lu, and should count %lu", i, (unsigned long) counted, (unsigned long) should);
      seen[j]++;
      if (i % 500 == 0)
	sleep_ticks (&n, 1);
    }
  check (seen[CV_FREE] > 100 && seen[CV_ALLOWED] > 1000 && seen[CV_DENIED] > 1000 && again > 1000, "%u %u %u, %u again", seen[0], seen[1], seen[2], again);
  cv_free (n.m);
}

int
main (void)
{
  ingress ();
  services ();
  cut ();
  fast_path ();
  first_policy ();
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      first_policy_any_ports (ip6);
      first_policy_udp (ip6);
      first_policy_udp_by_pair (ip6);
      first_egress_policy_udp (ip6);
      policy_from_the_start (ip6);
    }
  room_for_any_ports ();
  icmp ();
  open_pods ();
  from_outside ();
  fragments ();
  fragment_protocols ();
  hidden_flags ();
  unknown_sets ();
  deleted_policy ();
  tiers ();
  own_node ();
  solicitation_of_the_node ();
  denied_flows ();
  refusals ();
  large_set ();
  decided_before ();
  puts ("ok");
  return 0;
}
