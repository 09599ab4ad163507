/* Tests of the core: packets that pretend to be from another machine, and external machines that use up the resources of pods. */
#include <time.h>
#include "world.h"

#define PASS(n, iface, k) check (transmit (n, iface, k) == CV_VERDICT_PASS, "reason %d", (n)->p.reason)

/* tcp returns a packet with the given sequence and acknowledgement numbers. */
static pkt_t
tcp (const char *src, const char *dst, uint16_t sport, uint16_t dport, uint8_t flags, uint32_t seq, uint32_t ack)
{
  pkt_t k = build (src, dst, CV_PROTO_TCP, sport, dport, flags, 0);
  uint8_t *t = k.data + header_len (&k);
  for (int i = 0; i < 4; i++)
    {
      t[4 + i] = (uint8_t) (seq >> (24 - 8 * i));
      t[8 + i] = (uint8_t) (ack >> (24 - 8 * i));
    }
  seal (&k);
  return k;
}

enum
{
  CLIENT_AT = 1000001, /* sequence numbers that both ends have acknowledged */
  SERVER_AT = 4000000001u,
  SCALE = 9, /* window scale: windows of 32 MB */
};

/* syn returns a SYN with the window scale of its sender. */
static pkt_t
syn (const char *src, const char *dst, uint16_t sport, uint16_t dport, uint8_t flags, uint32_t seq, uint32_t ack)
{
  static const uint8_t options[] = { 2, 4, 5, 180, 1, 3, 3, SCALE };
  pkt_t k = tcp (src, dst, sport, dport, flags, seq, ack);
  memcpy (k.data + k.len, options, sizeof (options));
  k.data[header_len (&k) + 12] = 0x70;
  k.len += sizeof (options);
  seal (&k);
  return k;
}

/* opened opens a connection of an external machine, through a service, to pod B. */
static void
opened (net_t *n, int ip6, uint16_t port)
{
  pkt_t k = syn (OUT[ip6], VIP[ip6], port, 80, CV_TCP_SYN, CLIENT_AT - 1, 0);
  PASS (n, UPLINK, &k);
  expect (&k, OUT[ip6], port, B[ip6], 8080);
  k = syn (B[ip6], OUT[ip6], 8080, port, CV_TCP_SYN | CV_TCP_ACK, SERVER_AT - 1, CLIENT_AT);
  PASS (n, POD_B, &k);
  k = tcp (OUT[ip6], VIP[ip6], port, 80, CV_TCP_ACK, CLIENT_AT, SERVER_AT);
  PASS (n, UPLINK, &k);
}

static void
from_client (net_t *n, int ip6, uint8_t flags, uint32_t seq)
{
  pkt_t k = tcp (OUT[ip6], VIP[ip6], 5000, 80, flags, seq, SERVER_AT);
  PASS (n, UPLINK, &k);
}

static void
from_server (net_t *n, int ip6, uint8_t flags, uint32_t seq, uint32_t ack)
{
  pkt_t k = tcp (B[ip6], OUT[ip6], 8080, 5000, flags, seq, ack);
  PASS (n, POD_B, &k);
}

/* data_from sends ten bytes from one of the two ends. */
static void
data_from (net_t *n, uint32_t direction, uint32_t seq, uint32_t ack)
{
  pkt_t k = direction ? build (B[0], OUT[0], CV_PROTO_TCP, 8080, 5000, CV_TCP_ACK, 10) : build (OUT[0], VIP[0], CV_PROTO_TCP, 5000, 80, CV_TCP_ACK, 10);
  seq = htonl (seq), ack = htonl (ack);
  memcpy (k.data + 24, &seq, 4);
  memcpy (k.data + 28, &ack, 4);
  seal (&k);
  PASS (n, direction ? POD_B : UPLINK, &k);
}

static uint8_t
state (const net_t *n, int ip6)
{
  cv_tuple_t t = { .src = addr (OUT[ip6]), .dst = addr (VIP[ip6]), .sport = htons (5000), .dport = htons (80), .proto = CV_PROTO_TCP, .ip6 = (uint8_t) ip6 };
  uint32_t direction, i = cv_table_find (&n->m->table[ip6], &t, cv_hash (n->m, &t), &direction);
  return i == CV_NO_INDEX ? 0 : n->m->table[ip6].connections[i].state;
}

/* moved reports whether a SYN with the connection's addresses and ports selects another backend. */
static bool
moved (net_t *n, int ip6)
{
  check (backend (n, 10 + ip6, R[ip6], 8080, 0, true) == CV_OK && backend (n, 10 + ip6, B[ip6], 8080, 0, false) == CV_OK);
  pkt_t k = tcp (OUT[ip6], VIP[ip6], 5000, 80, CV_TCP_SYN, 1, 0);
  PASS (n, UPLINK, &k);
  return strcmp (ends (&k).dst, B[ip6]);
}

/* A RST or FIN whose sequence number its receiver rejects does not end the connection, and does not let it select another backend. */
static void
blind_resets (void)
{
  static const struct
  {
    const char *what;
    uint32_t seq;
    uint8_t flags, state;
    bool moves;
  } cases[] = {
    { "exact", CLIENT_AT, CV_TCP_RST, CV_STATE_CLOSED, true },
    { "exact, with ACK", CLIENT_AT, CV_TCP_RST | CV_TCP_ACK, CV_STATE_CLOSED, true },
    { "zero", 0, CV_TCP_RST, CV_STATE_OPEN, false },
    { "one before", CLIENT_AT - 1, CV_TCP_RST, CV_STATE_OPEN, false },
    { "half of all away", CLIENT_AT + (1u << 31), CV_TCP_RST, CV_STATE_OPEN, false },
    { "in the window", CLIENT_AT + 1000, CV_TCP_RST, CV_STATE_CLOSING, false },
    { "at its end", CLIENT_AT + (65535u << SCALE), CV_TCP_RST, CV_STATE_CLOSING, false },
    { "behind the window", CLIENT_AT + (65535u << SCALE) + 1, CV_TCP_RST, CV_STATE_OPEN, false },
    { "FIN", CLIENT_AT, CV_TCP_FIN | CV_TCP_ACK, CV_STATE_CLOSING, false },
    { "FIN behind data", CLIENT_AT + 1000, CV_TCP_FIN | CV_TCP_ACK, CV_STATE_CLOSING, false },
    { "FIN that comes again", CLIENT_AT - 1000, CV_TCP_FIN | CV_TCP_ACK, CV_STATE_CLOSING, false },
    { "FIN behind the window", CLIENT_AT + (65536u << SCALE), CV_TCP_FIN | CV_TCP_ACK, CV_STATE_OPEN, false },
    { "FIN far before", CLIENT_AT - (1u << 20), CV_TCP_FIN | CV_TCP_ACK, CV_STATE_OPEN, false },
  };
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    for (int ip6 = 0; ip6 < 2; ip6++)
      {
	net_t n = world (1000, 1);
	opened (&n, ip6, 5000);
	from_client (&n, ip6, cases[i].flags, cases[i].seq);
	if (cases[i].flags & CV_TCP_FIN && cases[i].state == CV_STATE_CLOSING)
	  {
	    /* the FIN takes effect when the server has acknowledged it */
	    check (state (&n, ip6) == CV_STATE_OPEN, "%s: state %d before it is acknowledged", cases[i].what, state (&n, ip6));
	    from_server (&n, ip6, CV_TCP_ACK, SERVER_AT, CLIENT_AT);
	    check (state (&n, ip6) == CV_STATE_OPEN, "%s: state %d before it is acknowledged", cases[i].what, state (&n, ip6));
	    from_server (&n, ip6, CV_TCP_ACK, SERVER_AT, cases[i].seq + 1);
	  }
	check (state (&n, ip6) == cases[i].state, "%s: state %d, want %d", cases[i].what, state (&n, ip6), cases[i].state);
	if (cases[i].state == CV_STATE_OPEN)
	  {
	    sleep_ticks (&n, 3000);
	    check (state (&n, ip6) == CV_STATE_OPEN, "%s: it does not stay open while it is idle", cases[i].what);
	  }
	bool gone = cases[i].flags & CV_TCP_FIN; /* half closed: a SYN to a removed backend selects another one */
	if (!gone && cases[i].state != CV_STATE_CLOSING)
	  check (moved (&n, ip6) == cases[i].moves, "%s", cases[i].what);
	cv_free (n.m);
      }
}

/* Before a connection is open, a packet that its client or its server accepts as a refusal closes it. */
static void
refusals (void)
{
  static const struct
  {
    const char *what;
    uint32_t seq, ack;
    bool from_server, answered;
    uint8_t flags;
    bool closes;
  } cases[] = {
    { "it acknowledges the SYN", 0, CLIENT_AT, true, false, CV_TCP_RST | CV_TCP_ACK, true },
    { "the same, when the server has answered", 0, CLIENT_AT, true, true, CV_TCP_RST | CV_TCP_ACK, true },
    { "it acknowledges another one", 0, CLIENT_AT + 1, true, false, CV_TCP_RST | CV_TCP_ACK, false },
    { "it acknowledges none", 0, CLIENT_AT, true, false, CV_TCP_RST, false },
    { "behind the server's SYN", SERVER_AT, 0, true, true, CV_TCP_RST, true },
    { "not behind it", SERVER_AT + 1, 0, true, true, CV_TCP_RST, false },
    { "the client's, behind its SYN", CLIENT_AT, 0, false, false, CV_TCP_RST, true },
    { "the client's, when the server has answered", CLIENT_AT, 0, false, true, CV_TCP_RST, true },
    { "the client's, at another place", CLIENT_AT + 1, 0, false, false, CV_TCP_RST, false },
    { "the client's, at zero", 0, 0, false, true, CV_TCP_RST, false },
  };
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    for (int ip6 = 0; ip6 < 2; ip6++)
      {
	net_t n = world (1000, 1);
	pkt_t k = syn (OUT[ip6], VIP[ip6], 5000, 80, CV_TCP_SYN, CLIENT_AT - 1, 0);
	PASS (&n, UPLINK, &k);
	if (cases[i].answered)
	  from_server (&n, ip6, CV_TCP_SYN | CV_TCP_ACK, SERVER_AT - 1, CLIENT_AT);
	uint8_t before = state (&n, ip6);
	if (cases[i].from_server)
	  from_server (&n, ip6, cases[i].flags, cases[i].seq, cases[i].ack);
	else
	  from_client (&n, ip6, cases[i].flags, cases[i].seq);
	check (state (&n, ip6) == (cases[i].closes ? CV_STATE_CLOSED : before), "%s: state %d", cases[i].what, state (&n, ip6));
	cv_free (n.m);
      }
}

/* A connection is open when its ends have acknowledged each other's SYN, and not earlier. */
static void
handshakes (void)
{
  net_t n = world (1000, 1);
  pkt_t k = syn (OUT[0], VIP[0], 5000, 80, CV_TCP_SYN, 7, 0);
  PASS (&n, UPLINK, &k);
  from_client (&n, 0, CV_TCP_ACK, 8);
  k = syn (OUT[0], VIP[0], 5000, 80, CV_TCP_SYN, CLIENT_AT - 1, 0); /* another SYN from the same port */
  PASS (&n, UPLINK, &k);
  from_server (&n, 0, CV_TCP_SYN | CV_TCP_ACK, SERVER_AT - 1, 8);
  check (state (&n, 0) == CV_STATE_NEW, "an answer to an older SYN: state %d", state (&n, 0));
  from_server (&n, 0, CV_TCP_ACK, SERVER_AT, CLIENT_AT + 3);
  check (state (&n, 0) == CV_STATE_NEW, "no answer at all: state %d", state (&n, 0));
  from_server (&n, 0, CV_TCP_SYN | CV_TCP_ACK, SERVER_AT - 1, CLIENT_AT);
  k = tcp (OUT[0], VIP[0], 5000, 80, CV_TCP_ACK, CLIENT_AT, SERVER_AT - 1);
  PASS (&n, UPLINK, &k);
  check (state (&n, 0) == CV_STATE_ANSWERED, "not acknowledged: state %d", state (&n, 0));
  from_server (&n, 0, CV_TCP_FIN | CV_TCP_ACK, SERVER_AT, CLIENT_AT);
  check (!n.m->table[0].connections[0].fins, "a FIN before the connection is open");
  from_client (&n, 0, CV_TCP_ACK, CLIENT_AT);
  check (state (&n, 0) == CV_STATE_OPEN, "state %d", state (&n, 0));
  cv_free (n.m);
  /* data in the SYN: the server acknowledges all of it, a part, or nothing */
  for (uint32_t taken = 0; taken <= 11; taken++)
    for (int refuses = 0; refuses < 2; refuses++)
      {
	n = world (1000, 1);
	k = build (OUT[0], VIP[0], CV_PROTO_TCP, 5000, 80, CV_TCP_SYN, 10);
	PASS (&n, UPLINK, &k);
	from_server (&n, 0, refuses ? CV_TCP_RST | CV_TCP_ACK : CV_TCP_SYN | CV_TCP_ACK, SERVER_AT - 1, BEHIND_ALL + taken);
	uint8_t want = taken > 10 ? CV_STATE_NEW : refuses ? CV_STATE_CLOSED : CV_STATE_ANSWERED;
	check (state (&n, 0) == want, "%u of 10 bytes acknowledged: state %d", taken, state (&n, 0));
	if (!refuses)
	  from_client (&n, 0, CV_TCP_ACK, BEHIND_ALL + taken);
	check (taken > 10 || refuses || state (&n, 0) == CV_STATE_OPEN, "state %d", state (&n, 0));
	cv_free (n.m);
      }
}

/* Both ends close, and each FIN takes effect with its acknowledgement. */
static void
finishes (void)
{
  net_t n = world (1000, 1);
  opened (&n, 0, 5000);
  from_client (&n, 0, CV_TCP_FIN | CV_TCP_ACK, CLIENT_AT);
  check (state (&n, 0) == CV_STATE_OPEN);
  from_server (&n, 0, CV_TCP_FIN | CV_TCP_ACK, SERVER_AT, CLIENT_AT + 1);
  check (state (&n, 0) == CV_STATE_CLOSING, "state %d", state (&n, 0));
  pkt_t k = tcp (OUT[0], VIP[0], 5000, 80, CV_TCP_ACK, CLIENT_AT + 1, SERVER_AT + 1);
  PASS (&n, UPLINK, &k);
  check (state (&n, 0) == CV_STATE_CLOSED, "state %d", state (&n, 0));
  cv_free (n.m);
  /* a forged FIN: the sender continues beyond its position, and the receiver acknowledges this, in one step or in a larger one */
  for (uint32_t more = 1; more < 300000; more += 299000)
    {
      n = world (1000, 1);
      opened (&n, 0, 5000);
      from_client (&n, 0, CV_TCP_FIN | CV_TCP_ACK, CLIENT_AT + 99);
      from_server (&n, 0, CV_TCP_ACK, SERVER_AT, CLIENT_AT + 100);
      check (state (&n, 0) == CV_STATE_CLOSING);
      data_from (&n, 0, CLIENT_AT + 100, SERVER_AT);
      check (state (&n, 0) == CV_STATE_CLOSING, "nothing confirms it: state %d", state (&n, 0));
      from_server (&n, 0, CV_TCP_ACK, SERVER_AT, CLIENT_AT + 100 + more);
      check (state (&n, 0) == CV_STATE_OPEN && !n.m->table[0].connections[0].fins, "its sender goes on: state %d", state (&n, 0));
      cv_free (n.m);
    }
  /* a FIN without acknowledgement: its receiver has gone away */
  n = world (1000, 1);
  opened (&n, 0, 5000);
  from_client (&n, 0, CV_TCP_FIN | CV_TCP_ACK, CLIENT_AT);
  sleep_ticks (&n, 35900);
  check (state (&n, 0) == CV_STATE_OPEN);
  sleep_ticks (&n, 200);
  check (!state (&n, 0), "after an hour: state %d", state (&n, 0));
  cv_free (n.m);
}

/* Forged data after a FIN do not undo the FIN: its receiver does not acknowledge them. */
static void
forged_data_behind_a_fin (void)
{
  for (uint32_t direction = 0; direction < 2; direction++)
    for (int acknowledged = 0; acknowledged < 2; acknowledged++)
      {
	net_t n = world (1000, 1);
	opened (&n, 0, 5000);
	uint32_t behind = (direction ? SERVER_AT : CLIENT_AT) + 1;
	if (direction)
	  from_server (&n, 0, CV_TCP_FIN | CV_TCP_ACK, SERVER_AT, CLIENT_AT);
	else
	  from_client (&n, 0, CV_TCP_FIN | CV_TCP_ACK, CLIENT_AT);
	for (int late = 0; late < 2; late++)
	  {
	    if (late == acknowledged)
	      for (uint32_t at = 0; at < 65536; at += 6000)
		data_from (&n, direction, behind + at, direction ? CLIENT_AT : SERVER_AT);
	    if (direction)
	      {
		pkt_t k = tcp (OUT[0], VIP[0], 5000, 80, CV_TCP_ACK, CLIENT_AT, behind);
		PASS (&n, UPLINK, &k);
	      }
	    else
	      from_server (&n, 0, CV_TCP_ACK, SERVER_AT, behind);
	    check (state (&n, 0) == CV_STATE_CLOSING, "direction %u, data %s: state %d", direction, acknowledged ? "later" : "first", state (&n, 0));
	  }
	/* the other end closes, too: the entry expires within seconds instead of a day */
	pkt_t k = direction ? tcp (OUT[0], VIP[0], 5000, 80, CV_TCP_FIN | CV_TCP_ACK, CLIENT_AT, behind)
			    : tcp (B[0], OUT[0], 8080, 5000, CV_TCP_FIN | CV_TCP_ACK, SERVER_AT, behind);
	PASS (&n, direction ? UPLINK : POD_B, &k);
	k = direction ? tcp (B[0], OUT[0], 8080, 5000, CV_TCP_ACK, behind, CLIENT_AT + 1) : tcp (OUT[0], VIP[0], 5000, 80, CV_TCP_ACK, behind, SERVER_AT + 1);
	PASS (&n, direction ? POD_B : UPLINK, &k);
	check (state (&n, 0) == CV_STATE_CLOSED, "direction %u: state %d", direction, state (&n, 0));
	sleep_ticks (&n, 120);
	check (!state (&n, 0), "direction %u: state %d", direction, state (&n, 0));
	cv_free (n.m);
      }
}

/* A reset ahead of data in flight ends the connection within two minutes. If its sender and its receiver continue, the reset was forged.
 * A packet that only pretends to continue changes nothing, except an empty segment exactly where the receiver expects it. */
static void
resets_in_the_window (void)
{
  static const struct
  {
    const char *what;
    uint32_t seq;
    bool sender, receiver, open;
  } cases[] = {
    { "both end", 0, false, false, false },
    { "an empty segment in its place", CLIENT_AT, true, false, true },
    { "one at another place", CLIENT_AT + 1, true, false, false },
    { "the receiver confirms it", CLIENT_AT + 1, true, true, true },
    { "the receiver was already sending", 0, false, true, false },
  };
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    {
      net_t n = world (1000, 1);
      opened (&n, 0, 5000);
      from_client (&n, 0, CV_TCP_RST, CLIENT_AT + 1000);
      if (cases[i].sender)
	from_client (&n, 0, CV_TCP_ACK, cases[i].seq);
      if (cases[i].receiver)
	from_server (&n, 0, CV_TCP_ACK, SERVER_AT, CLIENT_AT);
      check (state (&n, 0) == (cases[i].open ? CV_STATE_OPEN : CV_STATE_CLOSING), "%s: state %d", cases[i].what, state (&n, 0));
      from_client (&n, 0, CV_TCP_RST, CLIENT_AT + 1000);
      from_server (&n, 0, CV_TCP_ACK, SERVER_AT, CLIENT_AT); /* packets that continued before this reset no longer count */
      check (state (&n, 0) == CV_STATE_CLOSING, "%s: state %d", cases[i].what, state (&n, 0));
      sleep_ticks (&n, 1100);
      check (state (&n, 0), "it ends early");
      sleep_ticks (&n, 120);
      check (!state (&n, 0), "after two minutes: state %d", state (&n, 0));
      cv_free (n.m);
    }
  /* both resets: also that of the server; a FIN is not undone */
  net_t n = world (1000, 1);
  opened (&n, 0, 5000);
  from_client (&n, 0, CV_TCP_FIN | CV_TCP_ACK, CLIENT_AT);
  from_server (&n, 0, CV_TCP_ACK, SERVER_AT, CLIENT_AT + 1);
  from_client (&n, 0, CV_TCP_RST, CLIENT_AT + 1000);
  from_client (&n, 0, CV_TCP_ACK, CLIENT_AT + 1);
  check (state (&n, 0) == CV_STATE_CLOSING);
  pkt_t k = tcp (B[0], OUT[0], 8080, 5000, CV_TCP_RST, SERVER_AT, 0);
  PASS (&n, POD_B, &k);
  check (state (&n, 0) == CV_STATE_CLOSED);
  cv_free (n.m);
}

/* An acknowledgement of data that was never sent is ignored: a reset that the ends would accept still ends the connection, and a forged
 * one does not. */
static void
forged_acknowledgements (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (int direction = 0; direction < 2; direction++)
      for (int real = 0; real < 2; real++)
	{
	  net_t n = world (1000, 1);
	  opened (&n, ip6, 5000);
	  uint32_t far = 1u << 30;
	  if (direction)
	    from_server (&n, ip6, CV_TCP_ACK, SERVER_AT + 5, CLIENT_AT + far);
	  else
	    {
	      pkt_t k = tcp (OUT[ip6], VIP[ip6], 5000, 80, CV_TCP_ACK, CLIENT_AT + 5, SERVER_AT + far);
	      PASS (&n, UPLINK, &k);
	    }
	  if (direction)
	    from_client (&n, ip6, CV_TCP_RST, CLIENT_AT + (real ? 0 : far));
	  else
	    from_server (&n, ip6, CV_TCP_RST, SERVER_AT + (real ? 0 : far), 0);
	  check (state (&n, ip6) == (real ? CV_STATE_CLOSED : CV_STATE_OPEN), "direction %d, %s reset: state %d", direction,
		 real ? "the real" : "a forged", state (&n, ip6));
	  cv_free (n.m);
	}
  /* 4 GB pass, and acknowledgements advance in steps that a window allows; old ones are ignored */
  net_t n = world (1000, 1);
  opened (&n, 0, 5000);
  uint32_t at = CLIENT_AT;
  for (int i = 0; i < 200; i++)
    {
      at += 65535u << SCALE;
      from_server (&n, 0, CV_TCP_ACK, SERVER_AT, at);
      from_server (&n, 0, CV_TCP_ACK, SERVER_AT, at - 1000);
    }
  from_client (&n, 0, CV_TCP_RST, at);
  check (state (&n, 0) == CV_STATE_CLOSED, "state %d", state (&n, 0));
  cv_free (n.m);
  /* a part of the connection did not pass this node: the receiver's next segment is where the sender expects it */
  n = world (1000, 1);
  opened (&n, 0, 5000);
  from_server (&n, 0, CV_TCP_ACK, SERVER_AT, CLIENT_AT + (1u << 30));
  from_client (&n, 0, CV_TCP_RST, CLIENT_AT + (1u << 30));
  check (state (&n, 0) == CV_STATE_CLOSED, "state %d", state (&n, 0));
  cv_free (n.m);
  /* a forged FIN that is undone does not enable other forged packets */
  n = world (1000, 1);
  opened (&n, 0, 5000);
  from_server (&n, 0, CV_TCP_FIN | CV_TCP_ACK, SERVER_AT + 99, CLIENT_AT);
  data_from (&n, 1, SERVER_AT + 95, CLIENT_AT);
  pkt_t k = tcp (OUT[0], VIP[0], 5000, 80, CV_TCP_ACK, CLIENT_AT, SERVER_AT + 105);
  PASS (&n, UPLINK, &k);
  check (!n.m->table[0].connections[0].fins, "it is not taken back");
  from_server (&n, 0, CV_TCP_ACK, SERVER_AT + 5, CLIENT_AT + (1u << 30));
  from_client (&n, 0, CV_TCP_RST, CLIENT_AT + (1u << 30));
  check (state (&n, 0) == CV_STATE_OPEN, "state %d", state (&n, 0));
  cv_free (n.m);
}

/* No packet from the network may have the source address of a pod on this node, whether it belongs to a connection or not. */
static void
pods_of_this_node (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (uint32_t iface = UPLINK; iface <= OVERLAY; iface++)
      {
	net_t n = world (1000, 1);
	pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 5000, 80, 0, 10);
	PASS (&n, POD_A, &k);
	uint64_t before = counted (&n, CV_SPOOFED);
	pkt_t forged[] = {
	  build (A[ip6], B[ip6], CV_PROTO_UDP, 1000, 2000, 0, 10),	  build (A[ip6], VIP[ip6], CV_PROTO_TCP, 1000, 80, CV_TCP_SYN, 0),
	  build (A[ip6], VIP[ip6], CV_PROTO_UDP, 5000, 80, 0, 10),	  build (B[ip6], A[ip6], CV_PROTO_UDP, 8080, 5000, 0, 10),
	  build (A[ip6], B[ip6], ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP, 1, 1, ip6 ? 128 : 8, 10), build (A[ip6], B[ip6], 47, 0, 0, 0, 10),
	};
	for (uint32_t i = 0; i < sizeof (forged) / sizeof (*forged); i++)
	  {
	    check (offer (&n, 0, iface, &forged[i]) == CV_VERDICT_DROP && n.p.reason == CV_SPOOFED, "packet %u from %u: verdict %d, reason %d", i, iface,
		   n.p.verdict, n.p.reason);
	    check (counted (&n, CV_SPOOFED) == before + i + 1);
	  }
	k = build (R[ip6], B[ip6], CV_PROTO_UDP, 1000, 2000, 0, 10);
	PASS (&n, iface, &k);
	k = build (A[ip6], B[ip6], CV_PROTO_UDP, 1000, 2000, 0, 10);
	PASS (&n, HOST, &k);
	cv_free (n.m);
      }
}

/* outside returns the i-th address of the Internet. */
static const char *
outside (uint32_t i)
{
  static char text[INET6_ADDRSTRLEN];
  snprintf (text, sizeof (text), "8.%u.%u.%u", 1 + (i >> 16), i >> 8 & 255, i & 255);
  return text;
}

/* External machines use up their limit of affinity records, through a service with session affinity. Pods still get connections and
 * records. */
static void
affinities_of_outside (void)
{
  net_t n = world (4000, 1);
  cv_frontend_t f = balanced (10);
  f.affinity_group = 9;
  f.affinity_timeout = 10800;
  frontend (&n, VIP[0], CV_PROTO_TCP, 80, f);
  check (backend (&n, 10, R[0], 8080, 0, true) == CV_OK);
  for (uint32_t i = 0; i < 20000; i++)
    {
      pkt_t k = build (outside (i), VIP[0], CV_PROTO_TCP, 5000, 80, CV_TCP_SYN, 0);
      transmit (&n, UPLINK, &k);
    }
  check (counted (&n, CV_LIMIT) > 0, "the flood has not filled anything");
  const cv_table_t *t = &n.m->table[0];
  check (t->n <= t->capacity - t->capacity / 4, "%u of %u places taken: the last quarter is the pods'", t->n, t->capacity);
  char first[INET6_ADDRSTRLEN] = "";
  for (uint16_t port = 1000; port < 1900; port++)
    {
      pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, port, 80, CV_TCP_SYN, 0);
      PASS (&n, POD_A, &k);
      if (!*first)
	strcpy (first, ends (&k).dst);
      check (!strcmp (first, ends (&k).dst), "the stored backend of a pod is not used: %s, then %s", first, ends (&k).dst);
    }
  sleep_ticks (&n, 700); /* the connections of the flood have ended, but its records have not */
  pkt_t k = build (OUT[0], VIP[0], CV_PROTO_TCP, 1, 80, CV_TCP_SYN, 0);
  PASS (&n, UPLINK, &k);
  cv_free (n.m);
}

/* Measures the cost of adding one backend to a service with Maglev. */
static void
maglev (void)
{
  for (uint32_t count = 10; count <= 1000; count *= 10)
    {
      net_t n = world (1000, 1);
      service (&n, 77, CV_SERVICE_MAGLEV);
      struct timespec a, b;
      clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &a);
      for (uint32_t i = 0; i < count; i++)
	check (backend (&n, 77, outside (i), 80, 0, true) == CV_OK);
      clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &b);
      double us = ((double) (b.tv_sec - a.tv_sec) * 1e9 + (double) (b.tv_nsec - a.tv_nsec)) / 1e3;
      printf ("Maglev: %u backends, %.0f us for each\n", count, us / count);
      cv_free (n.m);
    }
}

int
main (void)
{
  pods_of_this_node ();
  blind_resets ();
  refusals ();
  handshakes ();
  finishes ();
  forged_data_behind_a_fin ();
  resets_in_the_window ();
  forged_acknowledgements ();
  affinities_of_outside ();
  maglev ();
  puts ("ok");
  return 0;
}
