/* Malformed packets and random configuration. With libFuzzer: clang -fsanitize=fuzzer,address -DLIBFUZZER. Without it, a built-in
 * generator damages valid packets: fuzz [rounds [seed]]. A packet that passes and had a correct checksum before must have one
 * afterwards. */
#include "policy.h"

#define WORKERS 3 /* one worker may change what another one has stored */

static net_t fuzz_net;

static void
one (const uint8_t *data, size_t size)
{
  if (size < 4)
    return;
  /* a copy of exact size, so that ASAN detects each read beyond the end */
  uint32_t len = (uint32_t) size - 3;
  uint8_t *copy = malloc (len), out[1280];
  memcpy (copy, data + 3, len);
  cv_packet_t p = { .ip = copy, .len = len, .sw_if_index = data[0] % 7, .l4_checksum_offloaded = data[1] & 1 };
  if (data[1] & 2)
    {
      p.reassembled = true;
      p.later_fragment = data[1] & 4;
      p.sport = data[2];
      p.dport = htons (80);
      p.transport = data[1] & 16 ? CV_PROTO_TCP : CV_PROTO_UDP;
    }
  uint32_t worker = data[2] % WORKERS;
  go (&fuzz_net, worker, &p);
  cv_quiesce (fuzz_net.m, worker);
  if (p.verdict == CV_VERDICT_REJECT)
    check (cv_reject (&p, out) <= sizeof (out));
  p = (cv_packet_t){ .ip = copy, .len = len, .sw_if_index = data[0] % 7 };
  cv_check_source (fuzz_net.m, 0, &p);
  cv_claim_t claim;
  if (cv_read_claim (copy, len, &claim) && claim.stored)
    cv_may_store_neighbour (fuzz_net.m, 0, p.sw_if_index, &claim.address, true, data[1] & 8, fuzz_net.now);
  cv_quiesce (fuzz_net.m, 0);
  if (data[1] > 250)
    sleep_ticks (&fuzz_net, data[2]);
  free (copy);
}

#ifdef LIBFUZZER
int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (!fuzz_net.m)
    fuzz_net = world (512, WORKERS);
  one (data, size);
  return 0;
}
#else

static uint64_t state;

static uint32_t
rnd (uint32_t n)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t) (state >> 20) % n;
}

static pkt_t
some_packet (void)
{
  static const uint8_t protos[] = { 6, 6, 6, 17, 17, 132, 1, 47 };
  int ip6 = (int) rnd (2);
  const char *addresses[] = { A[ip6], B[ip6], R[ip6], VIP[ip6], OUT[ip6], NODE[ip6], MASQ[ip6] };
  uint8_t proto = protos[rnd (8)], flags = (uint8_t) rnd (32);
  if (proto == 1 && ip6)
    proto = CV_PROTO_ICMP6;
  uint16_t ports[] = { 80, 8080, 4789, 40000, (uint16_t) (5000 + rnd (50)), 30080 };
  pkt_t k = build (addresses[rnd (7)], addresses[rnd (7)], proto, ports[rnd (6)], ports[rnd (6)], flags, rnd (60));
  if (rnd (6) == 0)
    k = icmp_error (addresses[rnd (7)], &k, 28 + rnd (80));
  return k;
}

/* of_conversation returns a packet of one of a few connections, so that these are opened, continue and end: flags and numbers are close
 * to those that the other end accepts. */
static pkt_t
of_conversation (uint32_t *iface)
{
  static const uint8_t flags[] = { CV_TCP_SYN, CV_TCP_ACK, CV_TCP_ACK, CV_TCP_ACK, CV_TCP_ACK, CV_TCP_ACK, CV_TCP_FIN | CV_TCP_ACK, CV_TCP_RST, 0 };
  int ip6 = (int) rnd (2);
  bool back = rnd (2), served = rnd (2);
  uint16_t port = (uint16_t) (40000 + rnd (4));
  uint8_t proto = rnd (3) ? CV_PROTO_TCP : CV_PROTO_UDP, f = flags[rnd (sizeof (flags))];
  if (back && f == CV_TCP_SYN)
    f |= CV_TCP_ACK;
  *iface = back ? POD_B : POD_A;
  pkt_t k = back ? build (B[ip6], A[ip6], proto, served ? 8080 : 80, port, f, rnd (20)) : build (A[ip6], served ? VIP[ip6] : B[ip6], proto, port, 80, f, rnd (20));
  if (proto == CV_PROTO_TCP && !(f & CV_TCP_SYN))
    for (uint32_t at = header_len (&k) + 4; at < header_len (&k) + 12; at += 4)
      k.data[at + rnd (4)] ^= rnd (4) ? 0 : (uint8_t) rnd (256);
  seal (&k);
  return k;
}

/* converse opens a connection in the regular order and continues it, each packet on any worker. */
static void
converse (void)
{
  static const uint8_t opening[] = { CV_TCP_SYN, CV_TCP_SYN | CV_TCP_ACK, CV_TCP_ACK };
  int ip6 = (int) rnd (2);
  bool served = rnd (2);
  uint16_t port = (uint16_t) (40000 + rnd (4));
  for (uint32_t i = 0; i < 20; i++)
    {
      bool back = i < 3 ? i == 1 : rnd (2);
      uint8_t flags = i < 3 ? opening[i] : CV_TCP_ACK;
      pkt_t k = back ? build (B[ip6], A[ip6], CV_PROTO_TCP, served ? 8080 : 80, port, flags, 9) :
		       build (A[ip6], served ? VIP[ip6] : B[ip6], CV_PROTO_TCP, port, 80, flags, 9);
      offer (&fuzz_net, rnd (WORKERS), back ? POD_B : POD_A, &k);
      check (sealed (&k), "wrong checksum, reason %d", fuzz_net.p.reason);
    }
}

/* change_policy defines, fills, empties and removes sets, policies and the policies of endpoints. Some of these requests are rejected. */
static void
change_policy (void)
{
  int ip6 = (int) rnd (2);
  const char *addresses[] = { A[ip6], B[ip6], R[ip6], OUT[ip6], NODE[ip6], MASQ[ip6] };
  uint64_t set = 1 + rnd (6), id = 1 + rnd (4);
  char name[CV_NAME_LEN] = "fuzz";
  cv_rule_t rules[6];
  switch (rnd (8))
    {
    case 0:
      cv_set_set (fuzz_net.m, set, name, set % 2 ? CV_SET_NETWORKS : CV_SET_PORTS);
      break;
    case 1:
      if (rnd (4) == 0)
	cv_set_del (fuzz_net.m, set);
      break;
    case 2:
    case 3:
      if (set % 2)
	member (&fuzz_net, set, addresses[rnd (6)], rnd (3));
      else
	port_member (&fuzz_net, set, addresses[rnd (6)], rnd (2) ? 6 : 17, rnd (2) ? 8080 : 80, rnd (3));
      break;
    case 4:
    case 5:
      for (int i = 0; i < 6; i++)
	rules[i] = (cv_rule_t){ .action = (uint8_t) rnd (5), .proto = (uint8_t) (rnd (2) ? 0 : rnd (20)), .source = rnd (2) ? rnd (7) : 0, .destination = rnd (3) ? 0 : rnd (7), .service = rnd (3) ? 0 : rnd (7) };
      policy (&fuzz_net, id, rnd (2), rules, rnd (6));
      break;
    case 6:
      cv_policy_del (fuzz_net.m, id);
      break;
    default:
      if (rnd (4) == 0)
	closed (&fuzz_net, 1 + rnd (6));
      else if (rnd (3) == 0)
	cv_endpoint_policy_set (fuzz_net.m, 1 + rnd (6), NULL);
      else
	police (&fuzz_net, 1 + rnd (6), rnd (2) ? id : 0, rnd (2) ? 1 + rnd (4) : 0);
    }
}

static void
change_something (void)
{
  int ip6 = (int) rnd (2);
  char a[40];
  snprintf (a, sizeof (a), ip6 ? "fd00:3::%u" : "10.1.3.%u", rnd (30) + 1);
  switch (rnd (8))
    {
    case 0:
    case 1:
      backend (&fuzz_net, 10 + (uint64_t) ip6, a, 8080, (uint8_t) rnd (2), true);
      break;
    case 2:
    case 3:
      backend (&fuzz_net, 10 + (uint64_t) ip6, a, 8080, 0, false);
      break;
    case 4:
      endpoint (&fuzz_net, POD_A, CV_ROLE_POD, rnd (2), rnd (100) + 1, A[0], A[1]);
      break;
    case 5:
      cv_endpoint_del (fuzz_net.m, 1 + rnd (5));
      break;
    case 6:
      endpoint (&fuzz_net, 2 + rnd (4), CV_ROLE_POD + rnd (4), 0, 0, B[0], B[1]);
      break;
    case 7:
      service (&fuzz_net, 10 + (uint64_t) ip6, (uint8_t) rnd (2));
      break;
    }
}

int
main (int argc, char **argv)
{
  uint32_t rounds = argc > 1 ? (uint32_t) atoi (argv[1]) : 300000;
  state = argc > 2 ? strtoull (argv[2], NULL, 0) : 88172645463325252ull;
  fuzz_net = world (512, WORKERS);
  for (uint32_t i = 0; i < rounds; i++)
    {
      uint8_t in[sizeof (pkt_t) + 3];
      uint32_t iface = rnd (7);
      pkt_t k = rnd (2) ? some_packet () : of_conversation (&iface);
      if (rnd (30) == 0)
	converse ();
      if (rnd (3))
	{
	  /* an undamaged packet stays correct */
	  pkt_t before = k;
	  cv_verdict_t v = offer (&fuzz_net, rnd (WORKERS), iface, &k);
	  check (sealed (&k), "wrong checksum after verdict %d, reason %d", v, fuzz_net.p.reason);
	  if (v != CV_VERDICT_PASS)
	    check (!memcmp (before.data, k.data, k.len), "a packet that goes nowhere is not changed");
	  continue;
	}
      for (uint32_t n = rnd (4); n; n--)
	k.data[rnd (k.len)] ^= (uint8_t) (1 << rnd (8));
      uint32_t len = rnd (4) ? k.len : rnd (k.len) + 1;
      in[0] = (uint8_t) rnd (256), in[1] = (uint8_t) rnd (256), in[2] = (uint8_t) rnd (20);
      memcpy (in + 3, k.data, len);
      one (in, len + 3);
      if (rnd (50) == 0)
	change_something ();
      if (rnd (20) == 0)
	change_policy ();
      if (rnd (100) == 0)
	sleep_ticks (&fuzz_net, rnd (50));
    }
  check (fuzz_net.recalled > rounds / 200, "%u packets had the fast path of connections", fuzz_net.recalled);
  printf ("%u packets had the fast path of connections\n", fuzz_net.recalled);
  for (uint32_t i = 1; i <= 5; i++)
    cv_endpoint_del (fuzz_net.m, i);
  cv_service_del (fuzz_net.m, 10);
  cv_service_del (fuzz_net.m, 11);
  sleep_ticks (&fuzz_net, 40);
  check (n_connections (&fuzz_net) == 0 && cv_idle (fuzz_net.m), "%u connections left", n_connections (&fuzz_net));
  cv_free (fuzz_net.m);
  puts ("ok");
  return 0;
}
#endif
