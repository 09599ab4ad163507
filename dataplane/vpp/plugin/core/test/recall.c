/* Tests of the fast path for packets that have a connection. All tests check with every packet that it has the same effect as the full
 * path: go in packets.h. */
#include "policy.h"

/* Processing of a packet like in the node. */
#define PASS(n, iface, k) check (offer_fast (n, 0, iface, k) == CV_VERDICT_PASS, "reason %d", (n)->p.reason)
#define FAST(n, iface, k) check (recalled (n, 0, iface, k), "it takes the full path")
#define FULL(n, iface, k) check (!recalled (n, 0, iface, k), "it takes the fast path")

enum
{
  CLIENT_AT = 1000001, /* sequence numbers that both ends have acknowledged */
  SERVER_AT = 4294967290u,
};

/* A connection of a client to port 80, and the interfaces from which its ends send. */
typedef struct
{
  uint32_t iface[2];
  const char *src, *dst, *answers; /* answers: the address that answers */
  uint16_t port, dport, answers_port;
} conn_t;

static pkt_t
segment (const conn_t *c, bool back, uint8_t flags, uint32_t seq, uint32_t ack)
{
  pkt_t k = back ? build (c->answers, c->src, CV_PROTO_TCP, c->answers_port, c->port, flags, 9) : build (c->src, c->dst, CV_PROTO_TCP, c->port, c->dport, flags, 9);
  uint8_t *t = k.data + header_len (&k);
  for (int i = 0; i < 4; i++)
    {
      t[4 + i] = (uint8_t) (seq >> (24 - 8 * i));
      t[8 + i] = (uint8_t) (ack >> (24 - 8 * i));
    }
  seal (&k);
  return k;
}

static void
from (net_t *n, const conn_t *c, bool back, uint8_t flags, uint32_t seq, uint32_t ack)
{
  pkt_t k = segment (c, back, flags, seq, ack);
  PASS (n, c->iface[back], &k);
  check (sealed (&k), "wrong checksum");
}

/* open_short opens a connection, and sends the packets that enable the fast path for both directions. */
static void
open_short (net_t *n, const conn_t *c)
{
  from (n, c, false, SYN, CLIENT_AT - 1, 0);
  from (n, c, true, SYN | ACK, SERVER_AT - 1, CLIENT_AT + 9); /* the SYN contains data */
  from (n, c, false, ACK, CLIENT_AT, SERVER_AT + 9);
  from (n, c, true, ACK, SERVER_AT, CLIENT_AT + 9);
}

static cv_connection_t *
connection (const net_t *n, const conn_t *c)
{
  pkt_t k = segment (c, false, ACK, 0, 0);
  cv_connection_t *found = connection_of (n, k.data, k.len);
  check (found != NULL);
  return found;
}

/* with_policy returns a node in which B accepts TCP to ports 80 and 8080 from A. */
static net_t
with_policy (void)
{
  net_t n = world (1000, 2);
  set_of_a (&n);
  admit (&n, (cv_rule_t){ .action = CV_RULE_ALLOW, .proto = CV_PROTO_TCP, .source = 100, .n_ports = 2, .ports = { { 80, 80 }, { 8080, 8080 } } });
  return n;
}

static conn_t
policed (int ip6, uint16_t port)
{
  return (conn_t){ { POD_A, POD_B }, A[ip6], B[ip6], B[ip6], port, 80, 80 };
}

static conn_t
served (int ip6, uint16_t port)
{
  return (conn_t){ { POD_A, POD_B }, A[ip6], VIP[ip6], B[ip6], port, 80, 8080 };
}

/* Packets that neither open nor end a connection take the fast path, from the interface of their sender, for the rest of the second. */
static void
which_packets (void)
{
  for (int i = 0; i < 4; i++)
    {
      int ip6 = i & 1;
      net_t n = with_policy ();
      conn_t c = i < 2 ? policed (ip6, 40000) : served (ip6, 40000);
      from (&n, &c, false, SYN, CLIENT_AT - 1, 0);
      pkt_t k = segment (&c, false, ACK, CLIENT_AT, SERVER_AT), back = segment (&c, true, ACK, SERVER_AT, CLIENT_AT);
      FULL (&n, POD_A, &k);
      from (&n, &c, true, SYN | ACK, SERVER_AT - 1, CLIENT_AT);
      FULL (&n, POD_B, &back);
      from (&n, &c, false, ACK, CLIENT_AT, SERVER_AT);
      FAST (&n, POD_A, &k);
      FULL (&n, POD_B, &back);
      from (&n, &c, true, ACK, SERVER_AT, CLIENT_AT);
      FAST (&n, POD_B, &back);
      FULL (&n, POD_B, &k);
      FULL (&n, OVERLAY, &k);
      FULL (&n, POD_A, &back);
      check (!recalled (&n, 1, POD_A, &k), "another worker has not seen it");
      cv_quiesce (n.m, 1);
      for (uint8_t flags = 0; flags < 64; flags++)
	{
	  pkt_t other = segment (&c, false, flags, CLIENT_AT + 1000000, SERVER_AT);
	  check (recalled (&n, 0, POD_A, &other) == ((flags & (SYN | FIN | RST | ACK)) == ACK), "flags %x", flags);
	}
      n.now += CV_TICKS_PER_SECOND;
      FULL (&n, POD_A, &k);
      cv_free (n.m);
    }
}

/* A packet on the fast path refreshes the idle timer of the connection, and its acknowledgement is accepted if the acknowledged data can
 * have been sent. */
static void
bookkeeping (void)
{
  for (int i = 0; i < 4; i++)
    {
      int ip6 = i & 1;
      net_t n = with_policy ();
      conn_t c = i < 2 ? policed (ip6, 40000) : served (ip6, 40000);
      open_short (&n, &c);
      pkt_t k = segment (&c, false, ACK, CLIENT_AT, SERVER_AT + 5000), too_far = segment (&c, false, ACK, CLIENT_AT + 77777, SERVER_AT + 5000 + 65536);
      n.now += 3;
      FAST (&n, POD_A, &k);
      check (connection (&n, &c)->last_seen == n.now, "the connection is idle");
      PASS (&n, POD_A, &k);
      FAST (&n, POD_A, &too_far);
      PASS (&n, POD_A, &too_far);
      /* a reset outside the window that the client has acknowledged is ignored; one inside ends the connection */
      from (&n, &c, true, RST, SERVER_AT + 9, 0);
      check (connection (&n, &c)->state == CV_STATE_OPEN);
      from (&n, &c, true, RST, SERVER_AT + 5000 + 65536, 0);
      check (connection (&n, &c)->state == CV_STATE_OPEN, "state %d", connection (&n, &c)->state);
      from (&n, &c, true, RST, SERVER_AT + 5000 + 65535, 0);
      check (connection (&n, &c)->state == CV_STATE_CLOSING, "state %d", connection (&n, &c)->state);
      from (&n, &c, true, ACK, SERVER_AT + 5000, CLIENT_AT + 9); /* the sender continues, and the client confirms this: the reset was forged */
      from (&n, &c, false, ACK, CLIENT_AT + 9, SERVER_AT + 5000);
      check (connection (&n, &c)->state == CV_STATE_OPEN, "state %d", connection (&n, &c)->state);
      from (&n, &c, true, RST, SERVER_AT + 5000, 0);
      check (connection (&n, &c)->state == CV_STATE_CLOSED, "state %d", connection (&n, &c)->state);
      cv_free (n.m);
    }
}

/* After the first FIN all packets of both directions take the full path; when both ends are closed, a SYN starts a new connection. */
static void
closing (void)
{
  for (int i = 0; i < 4; i++)
    {
      int ip6 = i & 1;
      net_t n = with_policy ();
      conn_t c = i < 2 ? policed (ip6, 40000) : served (ip6, 40000);
      open_short (&n, &c);
      pkt_t k = segment (&c, false, ACK, CLIENT_AT + 9, SERVER_AT + 9), back = segment (&c, true, ACK, SERVER_AT + 9, CLIENT_AT + 9);
      FAST (&n, POD_A, &k);
      from (&n, &c, false, FIN | ACK, CLIENT_AT + 9, SERVER_AT + 9);
      FULL (&n, POD_A, &k);
      FULL (&n, POD_B, &back);
      from (&n, &c, true, ACK, SERVER_AT + 9, CLIENT_AT + 9 + 9 + 1);
      check (connection (&n, &c)->state == CV_STATE_CLOSING);
      from (&n, &c, true, FIN | ACK, SERVER_AT + 9, CLIENT_AT + 9 + 9 + 1);
      from (&n, &c, false, ACK, CLIENT_AT + 9 + 9 + 1, SERVER_AT + 9 + 9 + 1);
      check (connection (&n, &c)->state == CV_STATE_CLOSED);
      FULL (&n, POD_A, &k);
      FULL (&n, POD_B, &back);
      open_short (&n, &c);
      FAST (&n, POD_A, &k);
      FAST (&n, POD_B, &back);
      check (connection (&n, &c)->state == CV_STATE_OPEN);
      /* the same after a reset */
      from (&n, &c, false, RST, CLIENT_AT + 9, 0);
      FULL (&n, POD_A, &k);
      FULL (&n, POD_B, &back);
      check (connection (&n, &c)->state == CV_STATE_CLOSED);
      cv_free (n.m);
    }
}

/* A change of policy or configuration takes effect at the next packet. */
static void
changes (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = with_policy ();
      conn_t c = policed (ip6, 40000);
      open_short (&n, &c);
      pkt_t k = segment (&c, false, ACK, CLIENT_AT + 9, SERVER_AT + 9), back = segment (&c, true, ACK, SERVER_AT + 9, CLIENT_AT + 9);
      for (int round = 0; round < 2; round++)
	{
	  FAST (&n, POD_A, &k);
	  FAST (&n, POD_B, &back);
	  if (round)
	    check (closed (&n, POD_A) == CV_OK);
	  else
	    check (member (&n, 100, A[ip6], false) == CV_OK);
	  for (int again = 0; again < 2; again++)
	    {
	      check (offer_fast (&n, 0, POD_A, &k) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "verdict %d, reason %d", n.p.verdict, n.p.reason);
	      check (offer_fast (&n, 0, POD_B, &back) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "verdict %d, reason %d", n.p.verdict, n.p.reason);
	    }
	  if (round)
	    check (cv_endpoint_policy_set (n.m, POD_A, NULL) == CV_OK);
	  else
	    check (member (&n, 100, A[ip6], true) == CV_OK);
	  PASS (&n, POD_A, &k);
	  PASS (&n, POD_B, &back);
	}
      FAST (&n, POD_A, &k);
      check (cv_set_del (n.m, 100) == CV_OK);
      FULL (&n, POD_A, &k);
      check (offer_fast (&n, 0, POD_B, &back) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "verdict %d, reason %d", n.p.verdict, n.p.reason);
      set_of_a (&n);
      PASS (&n, POD_A, &k);
      FAST (&n, POD_A, &k);
      check (cv_endpoint_del (n.m, POD_A) == CV_OK);
      FULL (&n, POD_A, &k);
      cv_free (n.m);
    }
}

/* A flow whose connection has ended never follows the new connection that reuses its slot. */
static void
same_place (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = with_policy ();
      conn_t c = policed (ip6, 40000), next = policed (ip6, 40001);
      open_short (&n, &c);
      pkt_t k = segment (&c, false, ACK, CLIENT_AT, SERVER_AT + 9), of_next = segment (&next, false, ACK, CLIENT_AT, SERVER_AT + 9);
      FAST (&n, POD_A, &k);
      cv_connection_t *place = connection (&n, &c);
      cv_tuple_t t = place->key[0];
      check (cv_connection_del (n.m, &t) == CV_OK);
      FULL (&n, POD_A, &k);
      for (int i = 0; i < 4; i++, cv_quiesce (n.m, 0))
	cv_sweep (n.m, n.now); /* within the same second */
      open_short (&n, &next);
      check (connection (&n, &next) == place, "the place is not used again");
      FAST (&n, POD_A, &of_next);
      FULL (&n, POD_A, &k);
      cv_free (n.m);
    }
}

/* Serials of two workers are never equal, and none is 0, even after one of them has wrapped around. */
static void
serials (void)
{
  net_t n = world (1000, 3);
  for (uint32_t worker = 0; worker < 3; worker++)
    {
      n.m->workers[worker].serial = UINT32_MAX - 30 - (UINT32_MAX - 30) % 3 + worker;
      for (uint16_t i = 0; i < 20; i++)
	{
	  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, (uint16_t) (1000 + 100 * worker + i), 80, SYN, 0);
	  check (offer (&n, worker, POD_A, &k) == CV_VERDICT_PASS, "reason %d", n.p.reason);
	  uint32_t serial = n.m->table[0].connections[n.p.connection].serial;
	  check (serial && serial % 3 == worker, "worker %u has serial %u", worker, serial);
	}
      check (n.m->workers[worker].serial < 100, "it has not gone round: %u", n.m->workers[worker].serial);
    }
  cv_free (n.m);
}

/* UDP that only source NAT translates has no backend, and is also translated on the fast path. */
static void
source_nat (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      for (int i = 0; i < 4; i++)
	{
	  pkt_t k = build (A[ip6], OUT[ip6], CV_PROTO_UDP, 40000, 53, 0, 9);
	  PASS (&n, POD_A, &k);
	  expect (&k, NODE[ip6], 40000, OUT[ip6], 53);
	  pkt_t back = answer (&k, 0);
	  PASS (&n, UPLINK, &back);
	  expect (&back, OUT[ip6], 53, A[ip6], 40000);
	  check (sealed (&k) && sealed (&back));
	}
      pkt_t k = build (A[ip6], OUT[ip6], CV_PROTO_UDP, 40000, 53, 0, 9);
      FAST (&n, POD_A, &k);
      cv_free (n.m);
    }
}

/* Three flows that share a set with two places: each follows its own connection, and the displaced flow takes the full path. */
static void
one_set (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      pkt_t flows[3];
      uint32_t found = 0;
      uint64_t set = 0;
      cv_tuple_t t = { .src = addr (A[ip6]), .dst = addr (VIP[ip6]), .dport = htons (80), .proto = CV_PROTO_UDP, .ip6 = (uint8_t) ip6 };
      for (uint32_t first = 1; first < 1000 && found < 3; first++)
	for (uint32_t port = first, at = found = 0; port < 65536 && found < 3; port++)
	  {
	    t.sport = htons ((uint16_t) port);
	    uint64_t hash = cv_hash (n.m, &t);
	    if (at++ && hash % CV_PASS_SETS != set)
	      continue;
	    set = hash % CV_PASS_SETS;
	    flows[found++] = build (A[ip6], VIP[ip6], CV_PROTO_UDP, (uint16_t) port, 80, 0, 9);
	  }
      check (found == 3, "only %u flows have one hash", found);
      for (int round = 0; round < 3; round++)
	for (int i = 0; i < 3; i++)
	  {
	    pkt_t k = flows[i];
	    PASS (&n, POD_A, &k);
	    expect (&k, A[ip6], ends (&flows[i]).sport, B[ip6], 8080);
	    check (round < 2 || (recalled (&n, 0, POD_A, &flows[i]) && recalled (&n, 0, POD_A, &flows[(i + 2) % 3])), "two places for two flows");
	    check (!recalled (&n, 0, POD_A, &flows[(i + 1) % 3]), "a third one");
	    for (int j = 0; j < 3; j++)
	      {
		k = flows[j];
		cv_brief_t b = { k.data, k.len, POD_A, false };
		if (cv_recall (n.m, 0, &b, 1, n.now).translated)
		  expect (&k, A[ip6], ends (&flows[j]).sport, B[ip6], 8080);
		cv_quiesce (n.m, 0);
	      }
	  }
      cv_free (n.m);
    }
}

/* A new connection removes the flow of its answers from the caches of all workers, from both places. */
static void
other_workers (void)
{
  for (uint32_t worker = 0; worker < 3; worker++)
    for (uint32_t others = 0; others < 2; others++)
      {
	net_t n = world (1000, 3);
	endpoint (&n, POD_A, CV_ROLE_POD, 0, 0, A[0], A[1]);
	pkt_t direct = build (B[0], A[0], CV_PROTO_UDP, 8080, 6000, 0, 9), k = direct;
	check (offer_fast (&n, worker, POD_B, &k) == CV_VERDICT_PASS);
	cv_tuple_t t = { .src = addr (B[0]), .dst = addr (A[0]), .sport = htons (8080), .proto = CV_PROTO_UDP };
	t.dport = htons (6000);
	uint64_t set = cv_hash (n.m, &t) % CV_PASS_SETS;
	for (uint32_t i = 0, stored = 0; stored < others; i++)
	  {
	    uint16_t sport = (uint16_t) (9000 + (i >> 16)), dport = (uint16_t) i;
	    t.sport = htons (sport), t.dport = htons (dport);
	    if (cv_hash (n.m, &t) % CV_PASS_SETS != set)
	      continue;
	    k = build (B[0], A[0], CV_PROTO_UDP, sport, dport, 0, 9);
	    check (offer_fast (&n, worker, POD_B, &k) == CV_VERDICT_PASS);
	    stored++;
	  }
	check (recalled (&n, worker, POD_B, &direct));
	cv_quiesce (n.m, worker);
	k = build (A[0], VIP[0], CV_PROTO_UDP, 6000, 80, 0, 9);
	check (offer_fast (&n, 2, POD_A, &k) == CV_VERDICT_PASS);
	expect (&k, A[0], 6000, B[0], 8080);
	k = direct;
	check (offer_fast (&n, worker, POD_B, &k) == CV_VERDICT_PASS);
	expect (&k, VIP[0], 80, A[0], 6000);
	cv_free (n.m);
      }
}

/* A worker that only looks up known flows is in a frame: no slot that it may access is reused in the meantime. */
static void
in_frame (void)
{
  net_t n = with_policy ();
  conn_t c = policed (0, 40000), next = policed (0, 40001), third = policed (0, 40002);
  open_short (&n, &c);
  pkt_t k = segment (&c, false, ACK, CLIENT_AT, SERVER_AT + 9);
  cv_connection_t *place = connection (&n, &c);
  cv_tuple_t t = place->key[0];
  check (recalled (&n, 0, POD_A, &k));
  check (cv_connection_del (n.m, &t) == CV_OK);
  for (int i = 0; i < 4; i++)
    cv_sweep (n.m, n.now);
  k = segment (&next, false, SYN, CLIENT_AT, 0);
  check (offer_fast (&n, 1, POD_A, &k) == CV_VERDICT_PASS && connection (&n, &next) != place, "the place is used while a worker follows it");
  cv_quiesce (n.m, 0);
  for (int i = 0; i < 4; i++)
    cv_sweep (n.m, n.now);
  k = segment (&third, false, SYN, CLIENT_AT, 0);
  check (offer_fast (&n, 1, POD_A, &k) == CV_VERDICT_PASS && connection (&n, &third) == place, "the place is not used again");
  cv_free (n.m);
}

/* Packets that are judged one by one do not take the fast path: an echo request and an SCTP INIT chunk against the direction of their
 * connection, in the second of an answer. */
static void
against_the_direction (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      uint8_t icmp = ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP, request = ip6 ? 128 : 8, reply = ip6 ? 129 : 0;
      cv_rule_t all = { .action = CV_RULE_ALLOW };
      check (policy (&n, 1, CV_INGRESS, &all, 1) == CV_OK && policy (&n, 2, CV_EGRESS, NULL, 0) == CV_OK && police (&n, POD_B, 1, 2) == CV_OK);
      for (int i = 0; i < 3; i++)
	{
	  pkt_t k = build (A[ip6], B[ip6], icmp, 7, 7, request, 9);
	  PASS (&n, POD_A, &k);
	  k = build (B[ip6], A[ip6], icmp, 7, 7, reply, 9);
	  PASS (&n, POD_B, &k);
	  k = build (B[ip6], A[ip6], icmp, 7, 7, request, 9);
	  check (offer_fast (&n, 0, POD_B, &k) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "verdict %d, reason %d", n.p.verdict, n.p.reason);
	  k = build (A[ip6], B[ip6], CV_PROTO_SCTP, 5000, 80, i ? 0 : 1, 0);
	  PASS (&n, POD_A, &k);
	  k = build (B[ip6], A[ip6], CV_PROTO_SCTP, 80, 5000, i ? 0 : 2, 0);
	  PASS (&n, POD_B, &k);
	  k = build (B[ip6], A[ip6], CV_PROTO_SCTP, 80, 5000, 1, 0);
	  check (offer_fast (&n, 0, POD_B, &k) == CV_VERDICT_DROP && n.p.reason == CV_POLICY, "verdict %d, reason %d", n.p.verdict, n.p.reason);
	}
      cv_free (n.m);
    }
}

/* A packet with another IP version than the others of its batch takes the full path. */
static void
other_version (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      pkt_t good = build (A[ip6], R[ip6], CV_PROTO_UDP, 1000, 2000, 0, 30), k = good;
      PASS (&n, POD_A, &k);
      k.data[0] = (uint8_t) (k.data[0] ^ 0x20); /* 4 becomes 6, and 6 becomes 4 */
      cv_brief_t b[] = { { good.data, good.len, POD_A, false }, { k.data, k.len, POD_A, false }, { good.data, good.len, POD_A, false } };
      check (cv_recall (n.m, 0, b, 3, n.now).passed == 5);
      cv_quiesce (n.m, 0);
      cv_free (n.m);
    }
}

/* Configuration on which a passed flow depends: networks, the addresses of source NAT, and tunnel ports. */
static void
configuration (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      pkt_t flow = build (A[ip6], OUT[ip6], CV_PROTO_UDP, 40000, 9999, 0, 9), k = flow;
      uint8_t len = ip6 ? 32 : 24;
      cv_prefix_t p = { .addr = addr (OUT[ip6]), .len = len, .ip6 = ip6 };
      p.addr = cv_masked (&p.addr, len);
      check (cv_network_set (n.m, &p, CV_CLASS_NODE) == CV_OK);
      PASS (&n, POD_A, &k);
      FAST (&n, POD_A, &flow);
      check (cv_network_set (n.m, &p, CV_CLASS_OUTSIDE) == CV_OK);
      k = flow;
      PASS (&n, POD_A, &k);
      expect (&k, NODE[ip6], 40000, OUT[ip6], 9999);
    }
  cv_snat_t s = { .name = "egress", .ip4 = addr (NODE[0]) };
  check (cv_snat_set (n.m, 1, &s) == CV_OK);
  pkt_t flow = build (A[1], OUT[1], CV_PROTO_UDP, 40001, 9999, 0, 9), k = flow;
  PASS (&n, POD_A, &k);
  FAST (&n, POD_A, &flow);
  s.ip6 = addr (NODE[1]);
  check (cv_snat_set (n.m, 1, &s) == CV_OK);
  PASS (&n, POD_A, &k);
  expect (&k, NODE[1], 40001, OUT[1], 9999);
  flow = k = build (A[0], R[0], CV_PROTO_UDP, 40002, 9999, 0, 9);
  PASS (&n, POD_A, &k);
  FAST (&n, POD_A, &flow);
  cv_config_t c = { .tunnel_ports = { 4789, 9999 } };
  check (cv_config_set (n.m, &c) == CV_OK);
  check (offer_fast (&n, 0, POD_A, &k) == CV_VERDICT_DROP && n.p.reason == CV_TUNNEL, "verdict %d, reason %d", n.p.verdict, n.p.reason);
  cv_free (n.m);
}

/* The checksum of UDP: a missing checksum stays missing, and a result of 0 is written as 0xffff. */
static void
checksums_of_udp (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      uint32_t ones = 0, at = ip6 ? 46 : 26;
      for (uint32_t i = 0; i < 65536; i++)
	{
	  pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 40000, 80, 0, 9);
	  k.data[at + 2] = (uint8_t) (i >> 8), k.data[at + 3] = (uint8_t) i;
	  seal (&k);
	  PASS (&n, POD_A, &k);
	  check (sealed (&k) && (k.data[at] || k.data[at + 1]), "payload %u", i);
	  ones += k.data[at] == 0xff && k.data[at + 1] == 0xff;
	}
      check (ones, "none of all became 0");
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 40000, 80, 0, 9);
      k.data[at] = k.data[at + 1] = 0;
      PASS (&n, POD_A, &k);
      check (ip6 || (!k.data[at] && !k.data[at + 1]));
      cv_free (n.m);
    }
}

/* Services: the fast path produces the same packets as the full path, until the backend is removed. */
static void
services (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      conn_t c = served (ip6, 40000);
      uint64_t before = counted (&n, CV_TRANSLATED);
      open_short (&n, &c);
      check (counted (&n, CV_TRANSLATED) == before + 4);
      pkt_t k = segment (&c, false, ACK, CLIENT_AT, SERVER_AT + 9), back = segment (&c, true, ACK, SERVER_AT, CLIENT_AT + 9);
      pkt_t udp = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 40001, 80, 0, 9), u = udp;
      FAST (&n, POD_A, &k);
      PASS (&n, POD_A, &k);
      check (counted (&n, CV_TRANSLATED) == before + 6, "%lu", (unsigned long) counted (&n, CV_TRANSLATED));
      expect (&k, A[ip6], 40000, B[ip6], 8080);
      FAST (&n, POD_B, &back);
      PASS (&n, POD_B, &back);
      expect (&back, VIP[ip6], 80, A[ip6], 40000);
      check (sealed (&k) && sealed (&back));
      for (int i = 0; i < 2; i++, u = udp)
	{
	  FULL (&n, POD_A, &udp);
	  PASS (&n, POD_A, &u);
	}
      FAST (&n, POD_A, &udp);
      PASS (&n, POD_A, &u);
      expect (&u, A[ip6], 40001, B[ip6], 8080);
      pkt_t answered = answer (&u, 0);
      FULL (&n, POD_B, &answered);
      u = answered;
      PASS (&n, POD_B, &u);
      FAST (&n, POD_B, &answered);
      PASS (&n, POD_B, &answered);
      expect (&answered, VIP[ip6], 80, A[ip6], 40001);
      /* a checksum that the device computes is not changed */
      pkt_t plain = udp;
      cv_brief_t b = { udp.data, udp.len, POD_A, true };
      check (cv_recall (n.m, 0, &b, 1, n.now).translated == 1 && !memcmp (udp.data + header_len (&udp) + 6, plain.data + header_len (&udp) + 6, 2));
      cv_quiesce (n.m, 0);
      /* another backend: a UDP client moves to it, a TCP client keeps the old one */
      check (backend (&n, 10 + ip6, R[ip6], 8080, 0, true) == CV_OK && backend (&n, 10 + ip6, B[ip6], 8080, 0, false) == CV_OK);
      u = plain;
      PASS (&n, POD_A, &u);
      expect (&u, A[ip6], 40001, R[ip6], 8080);
      from (&n, &c, false, ACK, CLIENT_AT, SERVER_AT + 9);
      k = segment (&c, false, ACK, CLIENT_AT, SERVER_AT + 9);
      FAST (&n, POD_A, &k);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 40000, B[ip6], 8080);
      cv_free (n.m);
    }
}

/* Answers to a client behind a HOST need the routing table that leads to the client. */
static void
behind_a_host (void)
{
  net_t n = world (1000, 1);
  cv_endpoint_t e = { .name = "host", .role = CV_ROLE_HOST, .table = 7, .index = { 70, 71 } };
  check (cv_endpoint_set (n.m, HOST, &e) == CV_OK);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      conn_t c = { { HOST, POD_B }, OUT[ip6], VIP[ip6], B[ip6], 40000, 80, 8080 };
      open_short (&n, &c);
      pkt_t back = segment (&c, true, ACK, SERVER_AT, CLIENT_AT + 9);
      FULL (&n, POD_B, &back);
      PASS (&n, POD_B, &back);
      check (n.p.table == 70u + (uint32_t) ip6);
    }
  cv_free (n.m);
}

int
main (void)
{
  which_packets ();
  bookkeeping ();
  closing ();
  changes ();
  same_place ();
  serials ();
  source_nat ();
  one_set ();
  other_workers ();
  in_frame ();
  against_the_direction ();
  other_version ();
  configuration ();
  checksums_of_udp ();
  services ();
  behind_a_host ();
  puts ("ok");
  return 0;
}
