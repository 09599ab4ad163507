/* Tests of the core: processing of packets. Each function tests one scenario; main runs all. */
#include "world.h"

#define PASS(n, iface, k) check (transmit (n, iface, k) == CV_VERDICT_PASS, "reason %d", (n)->p.reason)
#define DROP(n, iface, k, why)                                                                                                   \
  check (transmit (n, iface, k) == CV_VERDICT_DROP && (n)->p.reason == why, "verdict %d, reason %d", (n)->p.verdict, (n)->p.reason)

static pkt_t
icmp6 (const char *src, const char *dst, uint8_t type, const char *target)
{
  pkt_t k = build (src, dst, CV_PROTO_ICMP6, 0, 0, type, 16);
  cv_addr_t t = addr (target);
  memcpy (k.data + 48, &t, 16);
  seal (&k);
  return k;
}

static void
sources (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      pkt_t k = build (A[ip6], R[ip6], CV_PROTO_TCP, 1000, 2000, SYN, 0);
      PASS (&n, POD_A, &k);
      k = build (B[ip6], R[ip6], CV_PROTO_TCP, 1000, 2000, SYN, 0);
      DROP (&n, POD_A, &k, CV_SPOOFED);
      k = build (R[ip6], B[ip6], CV_PROTO_TCP, 1000, 2000, SYN, 0);
      PASS (&n, OVERLAY, &k);
      k = build (NODE[ip6], B[ip6], CV_PROTO_UDP, 1000, 2000, 0, 5);
      DROP (&n, POD_A, &k, CV_SPOOFED);
      k = build (NODE[ip6], B[ip6], 47, 0, 0, 0, 5);
      DROP (&n, POD_A, &k, CV_SPOOFED);
      k = build (A[ip6], R[ip6], CV_PROTO_UDP, ip6 ? 547 : 67, 68, 0, 50);
      DROP (&n, POD_A, &k, CV_SPOOFED);
      k = build (A[ip6], R[ip6], CV_PROTO_UDP, 1000, 4789, 0, 50);
      DROP (&n, POD_A, &k, CV_TUNNEL);
      k = build (R[ip6], NODE[ip6], CV_PROTO_UDP, 1000, 4789, 0, 50);
      PASS (&n, UPLINK, &k);
    }
  pkt_t k = build ("0.0.0.0", "255.255.255.255", CV_PROTO_UDP, 68, 67, 0, 50);
  DROP (&n, POD_A, &k, CV_SPOOFED);
  struct
  {
    const char *src;
    uint8_t type;
    const char *target;
    bool ok;
  } discovery[] = {
    { "fd00::2", 135, "fd00::1", true },  { "fe80::1", 135, "fd00::1", false },	{ "::", 135, "fd00::2", true },
    { "fe80::1", 133, "::", true },	  { "::", 133, "::", false },		{ "fe80::1", 134, "::", false },
    { "fd00::2", 134, "::", false },	  { "fe80::1", 137, "::", false },	{ "fd00::2", 136, "fd00::2", true },
    { "fd00::2", 136, "fd00::3", false }, { "fe80::1", 136, "fe80::1", false },	{ "fe80::1", 136, "fd00::1", false },
    { "fd00::2", 136, "fe80::1", false }, { "fe80::1", 136, "fd00::2", false },	{ "::", 135, "fe80::1", true },
    { "fd00::3", 135, "fd00::1", false }, { "::", 143, "::", true },		{ "fe80::1", 143, "::", true },
    { "fe80::1", 128, "::", false },	  { "::", 136, "fd00::2", false },
  };
  for (size_t i = 0; i < sizeof (discovery) / sizeof (*discovery); i++)
    {
      k = icmp6 (discovery[i].src, "ff02::1", discovery[i].type, discovery[i].target);
      n.p = (cv_packet_t){ .ip = k.data, .len = k.len, .sw_if_index = POD_A };
      check (cv_check_source (n.m, 0, &n.p) == discovery[i].ok, "case %zu", i);
      check ((offer (&n, 0, POD_A, &k) == CV_VERDICT_PASS) == discovery[i].ok, "case %zu", i);
    }
  const uint8_t one[6] = { 2, 0, 0, 0, 0, 1 }, all[6] = { 255, 255, 255, 255, 255, 255 };
  uint32_t own = addr (A[0]).u32[0], other = addr (B[0]).u32[0];
  check (cv_check_arp (n.m, 0, POD_A, own, one) && cv_check_arp (n.m, 0, POD_A, 0, one) && cv_check_arp (n.m, 0, UPLINK, other, one));
  check (!cv_check_arp (n.m, 0, POD_A, other, one) && !cv_check_arp (n.m, 0, 99, other, one));
  check (!cv_check_arp (n.m, 0, POD_A, own, all) && !cv_check_arp (n.m, 0, UPLINK, other, all));
  check (offer (&n, 0, 77, &k) == CV_VERDICT_DROP, "no endpoint");
  cv_free (n.m);
}

/* The claims of neighbour discovery messages, and which of them VPP stores. */
static void
claims (void)
{
  static const struct
  {
    uint8_t type, option;
    uint32_t len; /* without options */
    const char *src, *claimed;
    bool stored;
  } cases[] = {
    { 135, 1, 64, "fe80::1", "fe80::1", true }, { 136, 2, 64, "fe80::1", "fd00::9", true },
    { 133, 1, 48, "fe80::1", "fe80::1", false }, { 133, 1, 48, "fd00::1", "fd00::1", true },
  };
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    {
      pkt_t k = icmp6 (cases[i].src, "fd00::1", cases[i].type, "fd00::9");
      cv_addr_t want = addr (cases[i].claimed);
      cv_claim_t c;
      uint32_t len = cases[i].len;
      const uint8_t option[8] = { cases[i].option, 1, 0x33, 0x33, 0, 0, 0, 1 };
      check (cv_read_claim (k.data, len, &c) && cv_addr_equal (&c.address, &want) && !c.hardware && !c.stored);
      memcpy (k.data + len, option, 8);
      check (cv_read_claim (k.data, len + 8, &c) && c.hardware && cv_claims_group (c.hardware) && c.stored == cases[i].stored, "case %zu", i);
      check (cv_read_claim (k.data, len + 7, &c) && !c.hardware && !c.stored, "cut off");
      k.data[len] = 14;
      check (cv_read_claim (k.data, len + 8, &c) && !c.hardware && !c.stored, "another option");
      check (!cv_read_claim (k.data, len - 1, &c) && !cv_read_claim (k.data, 0, &c), "cut off");
      k.data[40] = 134;
      check (!cv_read_claim (k.data, len, &c), "another message");
    }
}

/* accepted returns how many of 2,000 claims VPP may store. If they are of several machines, the last four bytes of the address differ. */
static uint32_t
accepted (net_t *n, uint32_t sw_if_index, const char *text, bool many, bool expected, uint32_t now)
{
  cv_addr_t a = addr (text);
  bool ip6 = strchr (text, ':');
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 2000; i++)
    {
      if (many)
	memcpy (&a.u8[ip6 ? 12 : 0], &i, 4);
      sum += cv_may_store_neighbour (n->m, 0, sw_if_index, &a, ip6, expected, now);
    }
  return sum;
}

/* A flood of claims does not use up the budgets of nodes, pods and expected neighbours, nor those of the other family. */
static void
flood (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      const char *node = ip6 ? "fd00:99::7" : "192.0.2.77", *other = ip6 ? "fd00:99::8" : "192.0.2.78";
      cv_prefix_t host = { .addr = addr (node), .len = ip6 ? 128 : 32, .ip6 = ip6 }, all = { .addr = addr (other), .len = ip6 ? 64 : 24, .ip6 = ip6 };
      memset (all.addr.u8 + (ip6 ? 8 : 3), 0, ip6 ? 8 : 1);
      check (cv_network_set (n.m, &host, CV_CLASS_NODE) == CV_OK && cv_network_set (n.m, &all, CV_CLASS_NODE) == CV_OK);
      check (cv_is_node (n.m, &host.addr, ip6) && !cv_is_node (n.m, &all.addr, ip6));
      for (uint32_t now = 10; now < 60; now += 10)
	{
	  check (accepted (&n, UPLINK, other, true, false, now) == 256);
	  check (accepted (&n, UPLINK, other, false, false, now + 9) == 0, "another second has not begun");
	  check (accepted (&n, 99, other, false, false, now) == 0, "an interface without a role");
	  check (accepted (&n, UPLINK, other, false, true, now) == 256, "expected");
	  check (accepted (&n, UPLINK, node, false, false, now) == 256, "a node");
	  check (accepted (&n, POD_A, A[ip6], false, false, now) == 256, "a pod");
	  check (accepted (&n, UPLINK, other, true, true, now) > 1500, "many that are expected"); /* some share a budget */
	}
      check (cv_network_set (n.m, &host, CV_CLASS_POD) == CV_OK && !cv_is_node (n.m, &host.addr, ip6));
    }
  cv_quiesce (n.m, 0);
  cv_free (n.m);
}

/* The same rules apply behind extension headers and in fragments. */
static void
hidden (void)
{
  net_t n = world (1000, 1);
  pkt_t u = build (A[1], R[1], CV_PROTO_UDP, 1000, 4789, 0, 5);
  for (int count = 1; count < 12; count++)
    {
      pkt_t k = u;
      memcpy (k.data + 40 + 8 * count, u.data + 40, u.len - 40);
      for (int i = 0; i < count; i++)
	memset (k.data + 40 + 8 * i, 0, 8), k.data[40 + 8 * i] = i + 1 < count ? 60 : CV_PROTO_UDP;
      k.data[6] = 60;
      k.len = u.len + 8 * (uint32_t) count;
      check (offer (&n, 0, POD_A, &k) == CV_VERDICT_DROP, "%d headers", count);
      check (n.p.reason == (count <= 8 ? CV_TUNNEL : CV_MALFORMED), "%d headers: reason %d", count, n.p.reason);
    }
  pkt_t k = build (A[0], VIP[0], CV_PROTO_UDP, 1000, 80, 0, 800);
  k.data[6] = 0x20; /* more fragments */
  seal (&k);
  check (offer (&n, 0, POD_A, &k) == CV_VERDICT_REASSEMBLE);
  k = build (B[0], VIP[0], CV_PROTO_UDP, 1000, 80, 0, 800);
  k.data[7] = 100; /* a later fragment */
  seal (&k);
  check (offer (&n, 0, POD_A, &k) == CV_VERDICT_DROP && n.p.reason == CV_SPOOFED);
  k = build (A[0], VIP[0], CV_PROTO_UDP, 1000, 80, 0, 800);
  k.data[6] = 0x20, k.data[7] = 100;
  seal (&k);
  n.p = (cv_packet_t){ .ip = k.data, .len = k.len, .sw_if_index = POD_A, .reassembled = true, .sport = htons (1000), .dport = htons (80), .transport = CV_PROTO_UDP };
  uint8_t body[800];
  memcpy (body, k.data + 20, 800);
  cv_parse (n.m, 0, &n.p, n.now);
  cv_decide (n.m, 0, &n.p, n.now);
  ends_t e = ends (&k);
  check (n.p.verdict == CV_VERDICT_PASS && !strcmp (e.dst, B[0]) && !memcmp (body, k.data + 20, 800), "to %s", e.dst);
  cv_free (n.m);
}

static void
cluster_ip (void)
{
  net_t n = world (1000, 1);
  uint8_t protos[] = { CV_PROTO_TCP, CV_PROTO_UDP, CV_PROTO_SCTP };
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (int i = 0; i < 3; i++)
      {
	pkt_t k = build (A[ip6], VIP[ip6], protos[i], 4000, 80, SYN, 33);
	PASS (&n, POD_A, &k);
	expect (&k, A[ip6], 4000, B[ip6], 8080);
	pkt_t r = answer (&k, SYN | ACK);
	PASS (&n, POD_B, &r);
	expect (&r, VIP[ip6], 80, A[ip6], 4000);
	k = build (A[ip6], VIP[ip6], protos[i], 4000, 80, ACK, 34);
	PASS (&n, POD_A, &k);
	expect (&k, A[ip6], 4000, B[ip6], 8080);
      }
  check (n_connections (&n) == 6);
  /* an offloaded checksum is not changed */
  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, 4001, 80, SYN, 33);
  uint8_t before[2] = { k.data[36], k.data[37] };
  n.p = (cv_packet_t){ .ip = k.data, .len = k.len, .sw_if_index = POD_A, .l4_checksum_offloaded = true };
  cv_parse (n.m, 0, &n.p, n.now);
  cv_decide (n.m, 0, &n.p, n.now);
  check (!memcmp (before, k.data + 36, 2));
  expect (&k, A[0], 4001, B[0], 8080);
  cv_free (n.m);
}

static void
hairpin (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      pkt_t k = build (B[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 80, SYN, 0);
      PASS (&n, POD_B, &k);
      expect (&k, MASQ[ip6], 40000, B[ip6], 8080);
      pkt_t r = answer (&k, SYN | ACK);
      PASS (&n, POD_B, &r);
      expect (&r, VIP[ip6], 80, B[ip6], 40000);
    }
  cv_free (n.m);
}

/* A backend outside of the cluster has a route to the node, but not to the network of its pods. */
static void
backend_outside (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      service (&n, 40 + ip6, 0);
      check (backend (&n, 40 + ip6, OUT[ip6], 443, CV_BACKEND_MASQ, true) == CV_OK);
      frontend (&n, VIP[ip6], CV_PROTO_TCP, 443, balanced (40 + ip6));
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 40000, 443, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, NODE[ip6], 40000, OUT[ip6], 443);
      pkt_t r = answer (&k, SYN | ACK);
      PASS (&n, UPLINK, &r);
      expect (&r, VIP[ip6], 443, A[ip6], 40000);
    }
  cv_free (n.m);
}

/* One client port for two services with the same backend, and for the backend directly: connections are not confused (letter H). */
static void
same_ports (void)
{
  net_t n = world (1000, 1);
  const char *vip2[] = { "10.96.0.11", "fd96::11" };
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      frontend (&n, vip2[ip6], CV_PROTO_TCP, 80, balanced (10 + ip6));
      const char *to[] = { VIP[ip6], vip2[ip6], B[ip6] };
      uint16_t port[] = { 80, 80, 8080 };
      pkt_t at_backend[3];
      for (int i = 0; i < 3; i++)
	{
	  pkt_t k = build (A[ip6], to[i], CV_PROTO_TCP, 5000, port[i], SYN, 0);
	  PASS (&n, POD_A, &k);
	  at_backend[i] = k;
	  expect (&k, A[ip6], i ? -1 : 5000, B[ip6], 8080);
	  for (int j = 0; j < i; j++)
	    check (ends (&k).sport != ends (&at_backend[j]).sport, "port %u twice", ends (&k).sport);
	}
      for (int i = 0; i < 3; i++)
	{
	  pkt_t r = answer (&at_backend[i], SYN | ACK);
	  PASS (&n, POD_B, &r);
	  expect (&r, to[i], port[i], A[ip6], 5000);
	}
    }
  cv_free (n.m);
}

static void
rejected (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      uint8_t out[1280];
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 5000, 81, SYN, 3), r = { 0 };
      check (transmit (&n, POD_A, &k) == CV_VERDICT_REJECT);
      r.len = cv_reject (&n.p, out);
      memcpy (r.data, out, r.len);
      check (sealed (&r));
      expect (&r, VIP[ip6], 81, A[ip6], 5000);
      const uint8_t *t = r.data + header_len (&r);
      check (t[13] == (RST | ACK) && t[11] == 77 + 1 + 3, "flags %x ack %d", t[13], t[11]);
      k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 5000, 81, RST, 0);
      check (transmit (&n, POD_A, &k) == CV_VERDICT_REJECT && !cv_reject (&n.p, out), "no answer to a reset");
      k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 5000, 81, 0, 1500);
      check (transmit (&n, POD_A, &k) == CV_VERDICT_REJECT);
      r.len = cv_reject (&n.p, out);
      check (r.len == (ip6 ? 1280 : 576), "%u", r.len);
      memcpy (r.data, out, r.len);
      check (sealed (&r) && proto_of (&r) == (ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP));
      check (!strcmp (ends (&r).src, VIP[ip6]) && !memcmp (r.data + header_len (&r) + 8, k.data, 48));
      /* a service without backends has the same result */
      check (backend (&n, 10 + ip6, B[ip6], 8080, 0, false) == CV_OK);
      sleep_ticks (&n, 3);
      k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 5000, 80, SYN, 3);
      check (transmit (&n, POD_A, &k) == CV_VERDICT_REJECT);
    }
  cv_free (n.m);
}

static void
classes (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      service (&n, 20, 0);
      check (backend (&n, 20, R[ip6], 8080, 0, true) == CV_OK);
      cv_frontend_t f = balanced (20);
      f.outside = (cv_target_t){ CV_ACTION_DROP, 0, 0 };
      frontend (&n, NODE[ip6], CV_PROTO_TCP, 30080, f);
      pkt_t k = build (OUT[ip6], NODE[ip6], CV_PROTO_TCP, 5000, 30080, SYN, 0);
      DROP (&n, UPLINK, &k, CV_NO_LOCAL);
      k = build (A[ip6], NODE[ip6], CV_PROTO_TCP, 5000, 30080, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 5000, R[ip6], 8080);
      k = build (OUT[ip6], NODE[ip6], CV_PROTO_TCP, 5001, 30080, SYN, 0);
      PASS (&n, HOST, &k); /* all clients on the host are in the cluster */
      f.outside = (cv_target_t){ CV_ACTION_BALANCE, CV_TARGET_MASQ, 20 };
      frontend (&n, NODE[ip6], CV_PROTO_TCP, 30080, f);
      k = build (OUT[ip6], NODE[ip6], CV_PROTO_TCP, 5000, 30080, SYN, 0);
      PASS (&n, UPLINK, &k);
      expect (&k, MASQ[ip6], -1, R[ip6], 8080);
      pkt_t r = answer (&k, SYN | ACK);
      PASS (&n, OVERLAY, &r);
      expect (&r, NODE[ip6], 30080, OUT[ip6], 5000);
      /* source ranges are compared with the client's own address */
      f.ranges = 5;
      frontend (&n, NODE[ip6], CV_PROTO_TCP, 30080, f);
      k = build (OUT[ip6], NODE[ip6], CV_PROTO_TCP, 5003, 30080, SYN, 0);
      DROP (&n, UPLINK, &k, CV_RANGES);
      cv_prefix_t range = { .addr = addr (ip6 ? "2001:db8::" : "8.8.8.0"), .len = ip6 ? 32 : 24, .ip6 = ip6 };
      check (cv_range_set (n.m, 5, &range, true) == CV_OK);
      PASS (&n, UPLINK, &k);
      check (cv_range_set (n.m, 5, &range, false) == CV_OK);
      check (cv_service_del (n.m, 20) == CV_OK);
    }
  cv_free (n.m);
}

/* behind_the_host: clients for which the host forwards are outside the cluster, and the answers go back through the host. */
static void
behind_the_host (void)
{
  enum { TABLE = 70 };
  const char *vpp[] = { "172.30.1.1", "fd30::1" };
  uint8_t out[1280];
  net_t n = world (1000, 1);
  cv_endpoint_t e = { .role = CV_ROLE_UPLINK, .name = "host", .table = 2, .index = { TABLE, TABLE + 1 }, .n_addresses = 2 };
  check (cv_endpoint_set (n.m, HOST, &e) == CV_INVALID, "only hosts have a table");
  e.role = CV_ROLE_HOST;
  for (int ip6 = 0; ip6 < 2; ip6++)
    e.addresses[ip6].addr = addr (ip6 ? "fd30::2" : "172.30.1.2"), e.addresses[ip6].ip6 = ip6;
  check (cv_endpoint_set (n.m, HOST, &e) == CV_OK);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      service (&n, 20, 0);
      check (backend (&n, 20, R[ip6], 8080, 0, true) == CV_OK);
      cv_frontend_t f = balanced (20);
      f.outside.service = 10 + ip6; /* the backend on this node: B */
      frontend (&n, vpp[ip6], CV_PROTO_TCP, 30080, f);
      pkt_t k = build (ip6 ? "fd30::2" : "172.30.1.2", vpp[ip6], CV_PROTO_TCP, 5000, 30080, SYN, 0);
      PASS (&n, HOST, &k);
      expect (&k, ip6 ? "fd30::2" : "172.30.1.2", 5000, R[ip6], 8080);
      pkt_t r = answer (&k, SYN | ACK);
      PASS (&n, OVERLAY, &r);
      check (n.p.table == CV_NO_INDEX, "the host itself is found by routes");
      k = build (OUT[ip6], vpp[ip6], CV_PROTO_TCP, 5000, 30080, SYN, 0);
      PASS (&n, HOST, &k);
      expect (&k, OUT[ip6], 5000, B[ip6], 8080);
      check (n.p.table == CV_NO_INDEX);
      for (int again = 0; again < 2; again++)
	{
	  r = answer (&k, SYN | ACK);
	  PASS (&n, POD_B, &r);
	  expect (&r, vpp[ip6], 30080, OUT[ip6], 5000);
	  check (n.p.table == (uint32_t) TABLE + ip6, "%u", n.p.table);
	}
      /* another pod must not send answers of the connection */
      r = answer (&k, SYN | ACK);
      DROP (&n, POD_A, &r, CV_SPOOFED);
      r = build (A[ip6], OUT[ip6], CV_PROTO_TCP, 8080, 5000, SYN | ACK, 0);
      PASS (&n, POD_A, &r);
      check (n.p.table == CV_NO_INDEX);
      /* the answer to the same client through the uplink is routed normally */
      k = build (OUT[ip6], VIP[ip6], CV_PROTO_TCP, 5001, 80, SYN, 0);
      PASS (&n, UPLINK, &k);
      r = answer (&k, SYN | ACK);
      PASS (&n, POD_B, &r);
      check (n.p.table == CV_NO_INDEX);
      /* a rejected packet */
      k = build (OUT[ip6], VIP[ip6], CV_PROTO_TCP, 5000, 81, SYN, 0);
      check (transmit (&n, HOST, &k) == CV_VERDICT_REJECT && cv_reject (&n.p, out) && n.p.table == (uint32_t) TABLE + ip6);
      k = build (OUT[ip6], VIP[ip6], CV_PROTO_TCP, 5000, 81, SYN, 0);
      check (transmit (&n, UPLINK, &k) == CV_VERDICT_REJECT && n.p.table == CV_NO_INDEX);
      /* without a table, such clients count as the host */
      e.table = 0;
      check (cv_endpoint_set (n.m, HOST, &e) == CV_OK);
      k = build (OUT[ip6], vpp[ip6], CV_PROTO_TCP, 5002, 30080, SYN, 0);
      PASS (&n, HOST, &k);
      expect (&k, OUT[ip6], 5002, R[ip6], 8080);
      e.table = 2;
      check (cv_endpoint_set (n.m, HOST, &e) == CV_OK && cv_service_del (n.m, 20) == CV_OK);
    }
  cv_free (n.m);
}

static void
egress (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      uint8_t icmp = ip6 ? CV_PROTO_ICMP6 : CV_PROTO_ICMP;
      pkt_t k = build (A[ip6], OUT[ip6], CV_PROTO_TCP, 40000, 443, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, NODE[ip6], 40000, OUT[ip6], 443);
      pkt_t r = answer (&k, SYN | ACK);
      PASS (&n, UPLINK, &r);
      expect (&r, OUT[ip6], 443, A[ip6], 40000);
      /* the other pod with the same port gets a different source port */
      pkt_t k2 = build (B[ip6], OUT[ip6], CV_PROTO_TCP, 40000, 443, SYN, 0);
      PASS (&n, POD_B, &k2);
      expect (&k2, NODE[ip6], -1, OUT[ip6], 443);
      check (ends (&k2).sport != 40000 && ends (&k2).sport >= 32768);
      r = answer (&k2, SYN | ACK);
      PASS (&n, UPLINK, &r);
      expect (&r, OUT[ip6], 443, B[ip6], 40000);
      /* echo: both pods with the same identifier */
      for (int pod = 0; pod < 2; pod++)
	{
	  const char *from = pod ? B[ip6] : A[ip6];
	  k = build (from, OUT[ip6], icmp, 7, 0, ip6 ? 128 : 8, 20);
	  PASS (&n, pod ? POD_B : POD_A, &k);
	  check (!strcmp (ends (&k).src, NODE[ip6]));
	  const uint8_t *t = k.data + header_len (&k);
	  uint16_t id = (uint16_t) (t[4] << 8 | t[5]);
	  check ((id == 7) == !pod, "identifier %u", id);
	  r = build (OUT[ip6], NODE[ip6], icmp, id, 0, ip6 ? 129 : 0, 20);
	  PASS (&n, UPLINK, &r);
	  t = r.data + header_len (&r);
	  check (!strcmp (ends (&r).dst, from) && t[5] == 7);
	}
      /* no source NAT inside the cluster */
      k = build (A[ip6], R[ip6], CV_PROTO_TCP, 40000, 443, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 40000, R[ip6], 443);
      k = build (A[ip6], ip6 ? "ff02::1" : "224.0.0.1", CV_PROTO_UDP, 40000, 443, 0, 0);
      PASS (&n, POD_A, &k);
      check (!strcmp (ends (&k).src, A[ip6]));
      /* packets from outside to these addresses do not reach a pod unless they are answers */
      k = build (OUT[ip6], NODE[ip6], CV_PROTO_TCP, 444, 40000, SYN, 0);
      PASS (&n, UPLINK, &k);
      expect (&k, OUT[ip6], 444, NODE[ip6], 40000);
    }
  cv_free (n.m);
}

/* Flows that passed without a connection are not used after a change, nor after a connection has replaced them. */
static void
pass_cache (void)
{
  net_t n = world (1000, 1);
  pkt_t direct = build (B[0], A[0], CV_PROTO_TCP, 8080, 6000, ACK, 0), k = direct;
  PASS (&n, POD_B, &k);
  k = direct;
  PASS (&n, POD_B, &k);
  expect (&k, B[0], 8080, A[0], 6000);
  k = build (A[0], VIP[0], CV_PROTO_TCP, 6000, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  expect (&k, A[0], 6000, B[0], 8080);
  k = direct;
  PASS (&n, POD_B, &k);
  expect (&k, VIP[0], 80, A[0], 6000);
  k = build (A[0], "10.96.0.99", CV_PROTO_TCP, 6000, 80, SYN, 0);
  endpoint (&n, POD_A, CV_ROLE_POD, 0, 0, A[0], A[1]);
  pkt_t again = k;
  PASS (&n, POD_A, &again);
  frontend (&n, "10.96.0.99", CV_PROTO_TCP, 80, balanced (10));
  PASS (&n, POD_A, &k);
  check (!strcmp (ends (&k).dst, B[0]));
  cv_free (n.m);
}

/* A flow that has passed on this interface takes the fast path until the second ends, the configuration changes, or the flow gets a
 * connection. Packets of another form never take it. */
static void
fast_path (void)
{
  net_t n = world (1000, 1);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      pkt_t k = build (A[ip6], R[ip6], CV_PROTO_UDP, 1000, 2000, 0, 0), spoofed = build (B[ip6], R[ip6], CV_PROTO_UDP, 1000, 2000, 0, 0);
      n.now += 10 - n.now % 10;
      check (!recalled (&n, 0, POD_A, &k));
      PASS (&n, POD_A, &k);
      check (recalled (&n, 0, POD_A, &k), "family %d", ip6);
      check (!recalled (&n, 0, POD_B, &k) && !recalled (&n, 0, POD_A, &spoofed) && !recalled (&n, 0, 99, &k));
      DROP (&n, POD_A, &spoofed, CV_SPOOFED);
      check (!recalled (&n, 0, POD_A, &spoofed));
      for (uint32_t len = 1; len < k.len; len++)
	{
	  cv_brief_t cut = { k.data, len, POD_A, false };
	  check (!cv_recall (n.m, 0, &cut, 1, n.now).passed, "%u bytes", len);
	}
      pkt_t other = k;
      other.data[ip6 ? 6 : 9] = CV_PROTO_TCP;
      check (!recalled (&n, 0, POD_A, &other));
      for (int bit = 0; bit < 16 && !ip6; bit++)
	{
	  other = k;
	  other.data[6 + bit / 8] ^= 1 << bit % 8;
	  check (recalled (&n, 0, POD_A, &other) == (bit == 6 || bit == 7), "fragment's bit %d", bit);
	}
      n.now += 10;
      check (!recalled (&n, 0, POD_A, &k), "another second");
      PASS (&n, POD_A, &k);
      check (recalled (&n, 0, POD_A, &k));
      endpoint (&n, POD_B, CV_ROLE_POD, 1, 0, B[0], B[1]);
      check (!recalled (&n, 0, POD_A, &k), "another configuration");
      PASS (&n, POD_A, &k);
      check (recalled (&n, 0, POD_A, &k));
      frontend (&n, R[ip6], CV_PROTO_UDP, 2000, balanced (10 + ip6));
      check (!recalled (&n, 0, POD_A, &k), "a service now");
      PASS (&n, POD_A, &k);
      check (!strcmp (ends (&k).dst, B[ip6]));
    }
  uint64_t before = counted (&n, CV_PASSED);
  pkt_t k = build (A[0], OUT[0], CV_PROTO_TCP, 1000, 2000, ACK, 0), e = build (R[0], A[0], CV_PROTO_TCP, 1000, 2000, ACK, 0);
  PASS (&n, OVERLAY, &e);
  cv_brief_t many[CV_RECALL_MAX];
  for (int i = 0; i < CV_RECALL_MAX; i++)
    many[i] = i % 3 ? (cv_brief_t){ e.data, e.len, OVERLAY, false } : (cv_brief_t){ k.data, k.len, POD_A, false };
  check (cv_recall (n.m, 0, many, CV_RECALL_MAX, n.now).passed == 0xb6db6db6);
  check (counted (&n, CV_PASSED) == before + 1 + 21, "%lu", (unsigned long) (counted (&n, CV_PASSED) - before));
  cv_quiesce (n.m, 0);
  cv_free (n.m);
}

static void
open_tcp (net_t *n, int ip6, uint16_t port, const char *backend_want)
{
  pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, port, 80, SYN, 0);
  PASS (n, POD_A, &k);
  check (!strcmp (ends (&k).dst, backend_want), "%s", ends (&k).dst);
  pkt_t r = answer (&k, SYN | ACK);
  PASS (n, is6 (backend_want) || strcmp (backend_want, R[0]) ? POD_B : OVERLAY, &r);
  k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, port, 80, ACK, 0);
  PASS (n, POD_A, &k);
}

static void
backends_come_and_go (void)
{
  net_t n = world (1000, 1);
  open_tcp (&n, 0, 5000, B[0]);
  pkt_t k = build (A[0], VIP[0], CV_PROTO_UDP, 5000, 80, 0, 0);
  PASS (&n, POD_A, &k);
  check (backend (&n, 10, R[0], 8080, 0, true) == CV_OK && backend (&n, 10, B[0], 8080, 0, false) == CV_OK);
  /* open TCP keeps its backend, UDP moves to the other backend immediately, and so does the port of a closed connection */
  k = build (A[0], VIP[0], CV_PROTO_TCP, 5000, 80, ACK, 5);
  PASS (&n, POD_A, &k);
  expect (&k, A[0], 5000, B[0], 8080);
  k = build (A[0], VIP[0], CV_PROTO_UDP, 5000, 80, 0, 0);
  PASS (&n, POD_A, &k);
  expect (&k, A[0], 5000, R[0], 8080);
  k = build (A[0], VIP[0], CV_PROTO_TCP, 5000, 80, ACK | FIN, 5);
  PASS (&n, POD_A, &k);
  k = build (B[0], A[0], CV_PROTO_TCP, 8080, 5000, ACK | FIN, 5);
  PASS (&n, POD_B, &k);
  expect (&k, VIP[0], 80, A[0], 5000);
  k = build (A[0], VIP[0], CV_PROTO_TCP, 5000, 80, ACK, 0);
  PASS (&n, POD_A, &k);
  expect (&k, A[0], 5000, B[0], 8080);
  open_tcp (&n, 0, 5000, R[0]);
  /* the removed backend is released when its last connection has ended */
  check (n.m->draining == CV_NO_INDEX || (sleep_ticks (&n, 30), n.m->draining == CV_NO_INDEX));
  /* a SYN without an answer, to a removed backend */
  k = build (A[0], VIP[0], CV_PROTO_TCP, 5005, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  expect (&k, A[0], 5005, R[0], 8080);
  check (backend (&n, 10, B[0], 8080, 0, true) == CV_OK && backend (&n, 10, R[0], 8080, 0, false) == CV_OK);
  k = build (A[0], VIP[0], CV_PROTO_TCP, 5005, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  expect (&k, A[0], 5005, B[0], 8080);
  /* a SYN that is retransmitted while the answer of a removed backend is in flight: the following packets go to that backend */
  k = build (A[0], VIP[0], CV_PROTO_TCP, 5006, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  expect (&k, A[0], 5006, B[0], 8080);
  pkt_t r = answer (&k, SYN | ACK);
  PASS (&n, POD_B, &r);
  expect (&r, VIP[0], 80, A[0], 5006);
  check (backend (&n, 10, R[0], 8080, 0, true) == CV_OK && backend (&n, 10, B[0], 8080, 0, false) == CV_OK);
  uint8_t flags[] = { SYN, ACK, ACK };
  for (int i = 0; i < 3; i++)
    {
      k = build (A[0], VIP[0], CV_PROTO_TCP, 5006, 80, flags[i], i == 2 ? 5 : 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[0], 5006, B[0], 8080);
    }
  cv_free (n.m);
}

/* An SCTP fragment that needs other ports is dropped, and counted separately: its checksum covers fragments that are not available. */
static void
sctp_fragments (void)
{
  net_t n = world (1000, 1);
  frontend (&n, VIP[0], CV_PROTO_SCTP, 8080, balanced (10));
  for (int same = 0; same < 2; same++)
    {
      uint16_t port = same ? 8080 : 80;
      pkt_t k = build (A[0], VIP[0], CV_PROTO_SCTP, (uint16_t) (1000 + same), port, 0, 800);
      k.data[6] = 0x20, k.data[7] = 100; /* a later fragment */
      seal (&k);
      n.p = (cv_packet_t){ .ip = k.data, .len = k.len, .sw_if_index = POD_A, .reassembled = true, .transport = CV_PROTO_SCTP, .sport = htons ((uint16_t) (1000 + same)), .dport = htons (port) };
      cv_parse (n.m, 0, &n.p, n.now);
      cv_decide (n.m, 0, &n.p, n.now);
      check (n.p.verdict == (same ? CV_VERDICT_PASS : CV_VERDICT_DROP), "to port %u: reason %d", port, n.p.reason);
      check (counted (&n, CV_SCTP_FRAGMENT) == 1 && !counted (&n, CV_MALFORMED), "to port %u: %lu", port, (unsigned long) counted (&n, CV_SCTP_FRAGMENT));
    }
  cv_free (n.m);
}

/* tell_flows sends the next packet of each of a client's UDP flows to a service, and checks which backend it goes to. */
static void
tell_flows (net_t *n, int ip6, const char *backend_want)
{
  for (uint16_t port = 5000; port < 5016; port++)
    {
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, port, 80, 0, 0);
      PASS (n, POD_A, &k);
      expect (&k, A[ip6], port, backend_want, 8080);
      pkt_t r = answer (&k, 0);
      PASS (n, strcmp (backend_want, B[ip6]) ? OVERLAY : POD_B, &r);
      expect (&r, VIP[ip6], 80, A[ip6], port);
    }
}

typedef struct
{
  const char *addr;
  uint64_t service;
  uint32_t connections, draining;
} backend_count_t;

static void
count_of_backend (void *ctx, uint64_t service, const cv_backend_t *b, bool draining, uint32_t connections)
{
  backend_count_t *c = ctx;
  cv_addr_t want = addr (c->addr);
  c->draining += draining;
  if (!draining && service == c->service && !memcmp (&b->addr, &want, sizeof (want)))
    c->connections = connections;
}

/* A UDP flow follows its backend, not the service: if another service has the backend now and the frontend leads to that service, the flow
 * stays, however long its client is silent. If the frontend leads to a service without this backend, the flow moves, although the
 * previous service still has the backend. */
static void
flows_follow_backends (void)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      uint64_t old = 10 + (uint64_t) ip6;
      tell_flows (&n, ip6, B[ip6]);
      /* the port gets a name: the same frontend and backend, with another service */
      service (&n, 20, 0);
      check (backend (&n, 20, B[ip6], 8080, 0, true) == CV_OK && backend (&n, 20, R[ip6], 8080, 0, true) == CV_OK);
      frontend (&n, VIP[ip6], CV_PROTO_UDP, 80, balanced (20));
      check (cv_service_del (n.m, old) == CV_OK);
      sleep_ticks (&n, 50);
      check (n_connections (&n) == 16, "%u flows left", n_connections (&n));
      tell_flows (&n, ip6, B[ip6]);
      backend_count_t c = { .addr = B[ip6], .service = 20 };
      cv_backend_walk (n.m, 0, count_of_backend, &c);
      check (c.connections == 16 && !c.draining, "%u connections, %u draining", c.connections, c.draining);
      /* a service that is deleted and created again */
      check (cv_service_del (n.m, 20) == CV_OK);
      service (&n, 20, 0);
      check (backend (&n, 20, B[ip6], 8080, 0, true) == CV_OK && backend (&n, 20, R[ip6], 8080, 0, true) == CV_OK);
      tell_flows (&n, ip6, B[ip6]);
      /* the other target of the frontend has the backend */
      service (&n, 21, 0);
      check (backend (&n, 21, R[ip6], 8080, 0, true) == CV_OK);
      cv_frontend_t split = balanced (21);
      split.outside.service = 20;
      frontend (&n, VIP[ip6], CV_PROTO_UDP, 80, split);
      tell_flows (&n, ip6, B[ip6]);
      /* the address belongs to another service now; the previous one still has the backend */
      frontend (&n, VIP[ip6], CV_PROTO_UDP, 80, balanced (21));
      tell_flows (&n, ip6, R[ip6]);
      /* the same address with another port is another backend */
      check (backend (&n, 21, R[ip6], 8081, 0, true) == CV_OK && backend (&n, 21, R[ip6], 8080, 0, false) == CV_OK);
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 5000, 80, 0, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 5000, R[ip6], 8081);
      /* flows of silent clients end with the frontend */
      cv_frontend_key_t at = place (VIP[ip6], CV_PROTO_UDP, 80);
      check (cv_frontend_del (n.m, &at) == CV_OK);
      sleep_ticks (&n, 30);
      check (n_connections (&n) == 0, "%u flows left", n_connections (&n));
      cv_free (n.m);
    }
}

/* A backend with the flag KEEP keeps its UDP flows and gets no new ones. If all backends have the flag, they get new connections again. */
static void
kept_backends (uint8_t service_flags)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      uint64_t id = 10 + (uint64_t) ip6;
      service (&n, id, service_flags);
      cv_frontend_t sticky = balanced (id);
      sticky.affinity_group = 7, sticky.affinity_timeout = 100;
      frontend (&n, VIP[ip6], CV_PROTO_TCP, 81, sticky);
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 7000, 81, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 7000, B[ip6], 8080);
      tell_flows (&n, ip6, B[ip6]);
      check (backend (&n, id, R[ip6], 8080, 0, true) == CV_OK && backend (&n, id, B[ip6], 8080, CV_BACKEND_KEEP, true) == CV_OK);
      sleep_ticks (&n, 30);
      tell_flows (&n, ip6, B[ip6]);
      for (uint16_t port = 6000; port < 6032; port++)
	{
	  k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, port, 80, 0, 0);
	  PASS (&n, POD_A, &k);
	  expect (&k, A[ip6], port, R[ip6], 8080);
	}
      k = build (A[ip6], VIP[ip6], CV_PROTO_TCP, 7001, 81, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 7001, R[ip6], 8080);
      /* a frontend that rejects new clients may still lead to backends that keep their flows */
      cv_frontend_t f = balanced (id);
      f.in_cluster.action = f.outside.action = CV_ACTION_REJECT;
      frontend (&n, VIP[ip6], CV_PROTO_UDP, 80, f);
      tell_flows (&n, ip6, B[ip6]);
      k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 6100, 80, 0, 0);
      check (transmit (&n, POD_A, &k) == CV_VERDICT_REJECT);
      frontend (&n, VIP[ip6], CV_PROTO_UDP, 80, balanced (id));
      /* only backends with the flag are left */
      check (backend (&n, id, R[ip6], 8080, 0, false) == CV_OK);
      k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 6200, 80, 0, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 6200, B[ip6], 8080);
      /* without the flag again */
      check (backend (&n, id, R[ip6], 8080, CV_BACKEND_KEEP, true) == CV_OK && backend (&n, id, B[ip6], 8080, 0, true) == CV_OK);
      for (uint16_t port = 6300; port < 6332; port++)
	{
	  k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, port, 80, 0, 0);
	  PASS (&n, POD_A, &k);
	  expect (&k, A[ip6], port, B[ip6], 8080);
	}
      cv_free (n.m);
    }
}

/* A service that is added after its first clients: a client without an answer gets the service, even with the same port. An open
 * connection is not changed. */
static void
service_comes (void)
{
  const char *vip[] = { "10.96.0.77", "fd96::77" };
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      net_t n = world (1000, 1);
      pkt_t k;
      for (int again = 0; again < 2; again++)
	{
	  k = build (A[ip6], vip[ip6], CV_PROTO_TCP, 5000, 80, SYN, 0);
	  PASS (&n, POD_A, &k);
	  expect (&k, NODE[ip6], -1, vip[ip6], 80);
	  k = build (A[ip6], vip[ip6], CV_PROTO_UDP, 5000, 80, 0, 0);
	  PASS (&n, POD_A, &k);
	  expect (&k, NODE[ip6], -1, vip[ip6], 80);
	  frontend (&n, "10.96.0.78", CV_PROTO_TCP, 80, balanced (10)); /* a different frontend */
	}
      k = build (A[ip6], vip[ip6], CV_PROTO_TCP, 5001, 80, SYN, 0);
      PASS (&n, POD_A, &k);
      ends_t out = ends (&k);
      k = build (vip[ip6], NODE[ip6], CV_PROTO_TCP, 80, out.sport, SYN | ACK, 0);
      PASS (&n, UPLINK, &k);
      k = build (A[ip6], vip[ip6], CV_PROTO_TCP, 5001, 80, ACK, 0);
      PASS (&n, POD_A, &k);

      frontend (&n, vip[ip6], CV_PROTO_TCP, 80, balanced (10 + ip6));
      frontend (&n, vip[ip6], CV_PROTO_UDP, 80, balanced (10 + ip6));
      k = build (A[ip6], vip[ip6], CV_PROTO_TCP, 5000, 80, SYN, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 5000, B[ip6], 8080);
      k = build (A[ip6], vip[ip6], CV_PROTO_UDP, 5000, 80, 0, 0);
      PASS (&n, POD_A, &k);
      expect (&k, A[ip6], 5000, B[ip6], 8080);
      k = build (A[ip6], vip[ip6], CV_PROTO_TCP, 5001, 80, ACK, 5);
      PASS (&n, POD_A, &k);
      expect (&k, NODE[ip6], out.sport, vip[ip6], 80);
      check (n_connections (&n) == 3);
      cv_free (n.m);
    }
}

/* The last backend is removed after some tenths of a second, and immediately when another backend replaces it. */
static void
last_backend (void)
{
  net_t n = world (1000, 1);
  uint16_t port = 5000;
  for (int round = 0; round < 3; round++)
    {
      check (backend (&n, 10, round & 1 ? R[0] : B[0], 8080, 0, false) == CV_OK);
      check (backend (&n, 10, round & 1 ? R[0] : B[0], 8080, 0, false) == CV_NOT_FOUND);
      pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, port++, 80, SYN, 0);
      PASS (&n, POD_A, &k);
      check (backend (&n, 10, round & 1 ? B[0] : R[0], 8080, 0, true) == CV_OK);
      for (int i = 0; i < 50; i++)
	{
	  k = build (A[0], VIP[0], CV_PROTO_TCP, port++, 80, SYN, 0);
	  PASS (&n, POD_A, &k);
	  check (!strcmp (ends (&k).dst, round & 1 ? B[0] : R[0]));
	}
    }
  /* a backend that is added again stays */
  check (backend (&n, 10, R[0], 8080, 0, false) == CV_OK && backend (&n, 10, R[0], 8080, 0, true) == CV_OK);
  sleep_ticks (&n, 10);
  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, port++, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  check (backend (&n, 10, R[0], 8080, 0, false) == CV_OK);
  sleep_ticks (&n, 3);
  k = build (A[0], VIP[0], CV_PROTO_TCP, port++, 80, SYN, 0);
  check (transmit (&n, POD_A, &k) == CV_VERDICT_REJECT);
  /* a service that is deleted while the removal of its last backend is pending */
  check (backend (&n, 11, B[1], 8080, 0, false) == CV_OK && cv_service_del (n.m, 11) == CV_OK);
  sleep_ticks (&n, 5);
  cv_free (n.m);
}

static void
timeouts (void)
{
  net_t n = world (1000, 1);
  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, 5000, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  pkt_t r = answer (&k, SYN | ACK);
  PASS (&n, POD_B, &r);
  sleep_ticks (&n, 590);
  check (n_connections (&n) == 1);
  sleep_ticks (&n, 20);
  check (n_connections (&n) == 0, "a half-open connection ends after a minute");
  open_tcp (&n, 0, 5000, B[0]);
  sleep_ticks (&n, 4000);
  check (n_connections (&n) == 1, "an open one stays");
  k = build (A[0], VIP[0], CV_PROTO_TCP, 5000, 80, RST, 0);
  PASS (&n, POD_A, &k);
  sleep_ticks (&n, 115);
  check (n_connections (&n) == 0, "a closed one ends after 10 s");
  k = build (A[0], VIP[0], CV_PROTO_UDP, 5000, 80, 0, 0);
  PASS (&n, POD_A, &k);
  sleep_ticks (&n, 320);
  check (n_connections (&n) == 0);
  sleep_ticks (&n, 10);
  check (cv_idle (n.m));
  cv_free (n.m);
}

static void
limits (void)
{
  net_t n = world (64, 1);
  endpoint (&n, POD_A, CV_ROLE_POD, 1, 16, A[0], A[1]);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      for (uint16_t i = 0; i < 16; i++)
	{
	  pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, (uint16_t) (5000 + i), 80, 0, 0);
	  PASS (&n, POD_A, &k);
	}
      pkt_t k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 6000, 80, 0, 0);
      DROP (&n, POD_A, &k, CV_LIMIT);
      k = build (A[ip6], VIP[ip6], CV_PROTO_UDP, 5003, 80, 0, 0);
      PASS (&n, POD_A, &k);
      /* packets that do not belong to a service still pass */
      k = build (A[ip6], R[ip6], CV_PROTO_UDP, 5003, 80, 0, 0);
      PASS (&n, POD_A, &k);
      /* the other pod's connections, until the table is full */
      for (uint16_t i = 0; i < 48; i++)
	{
	  k = build (B[ip6], OUT[ip6], CV_PROTO_UDP, (uint16_t) (40000 + i), 53, 0, 0);
	  PASS (&n, POD_B, &k);
	}
      k = build (B[ip6], OUT[ip6], CV_PROTO_UDP, 50000, 53, 0, 0);
      DROP (&n, POD_B, &k, CV_FULL);
    }
  check (n_connections (&n) == 128);
  check (cv_endpoint_del (n.m, POD_A) == CV_OK && cv_endpoint_del (n.m, POD_B) == CV_OK);
  sleep_ticks (&n, 30);
  check (n_connections (&n) == 0 && cv_idle (n.m), "%u left", n_connections (&n));
  cv_free (n.m);
}

static void
ports_run_out (void)
{
  net_t n = world (1000, 1);
  cv_snat_t s = { .name = "small", .ip4 = addr (NODE[0]), .port_low = 40000, .port_high = 40009 };
  check (cv_snat_set (n.m, 1, &s) == CV_OK);
  bool used[10] = { false };
  for (uint16_t i = 0; i < 10; i++)
    {
      pkt_t k = build (A[0], OUT[0], CV_PROTO_TCP, (uint16_t) (1000 + i), 443, SYN, 0);
      PASS (&n, POD_A, &k);
      uint16_t p = ends (&k).sport;
      check (p >= 40000 && p < 40010 && !used[p - 40000], "%u", p);
      used[p - 40000] = true;
      n.now++;
    }
  pkt_t k = build (A[0], OUT[0], CV_PROTO_TCP, 2000, 443, SYN, 0);
  DROP (&n, POD_A, &k, CV_NO_PORT);
  /* for another destination all ports are free */
  k = build (A[0], "8.8.4.4", CV_PROTO_TCP, 2000, 443, SYN, 0);
  PASS (&n, POD_A, &k);
  check (cv_snat_set (n.m, 1, NULL) == CV_OK);
  k = build (A[0], "8.8.4.4", CV_PROTO_TCP, 2001, 443, SYN, 0);
  DROP (&n, POD_A, &k, CV_NO_SNAT);
  cv_free (n.m);
}

static void
affinity (void)
{
  net_t n = world (1000, 1);
  for (uint16_t i = 4; i < 20; i++)
    {
      char a[20];
      snprintf (a, sizeof (a), "10.1.2.%u", i);
      check (backend (&n, 10, a, 8080, 0, true) == CV_OK);
    }
  cv_frontend_t f = balanced (10);
  f.affinity_group = 9;
  f.affinity_timeout = 10;
  frontend (&n, VIP[0], CV_PROTO_TCP, 80, f);
  frontend (&n, VIP[0], CV_PROTO_UDP, 80, f);
  pkt_t k = build (A[0], VIP[0], CV_PROTO_TCP, 5000, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  char first[INET6_ADDRSTRLEN];
  strcpy (first, ends (&k).dst);
  for (uint16_t i = 0; i < 200; i++)
    {
      k = build (A[0], VIP[0], i & 1 ? CV_PROTO_TCP : CV_PROTO_UDP, (uint16_t) (5001 + i), 80, SYN, 0);
      PASS (&n, POD_A, &k);
      check (!strcmp (ends (&k).dst, first));
      if (i % 50 == 0)
	sleep_ticks (&n, 90);
    }
  check (backend (&n, 10, first, 8080, 0, false) == CV_OK);
  k = build (A[0], VIP[0], CV_PROTO_TCP, 6000, 80, SYN, 0);
  PASS (&n, POD_A, &k);
  check (strcmp (ends (&k).dst, first));
  int other = 0;
  for (uint16_t i = 0; i < 40; i++)
    {
      strcpy (first, ends (&k).dst);
      sleep_ticks (&n, 110);
      k = build (A[0], VIP[0], CV_PROTO_TCP, (uint16_t) (7000 + i), 80, SYN, 0);
      PASS (&n, POD_A, &k);
      other += strcmp (ends (&k).dst, first) != 0;
    }
  check (other > 20, "the memory ends: %d of 40", other);
  cv_free (n.m);
}

static void
spread (uint8_t flags)
{
  net_t n = world (100000, 1);
  uint32_t got[8] = { 0 };
  service (&n, 30, flags);
  for (uint32_t i = 0; i < 8; i++)
    {
      char a[20];
      snprintf (a, sizeof (a), "10.1.3.%u", i);
      check (backend (&n, 30, a, 80, 0, true) == CV_OK);
    }
  frontend (&n, "10.96.0.30", CV_PROTO_TCP, 80, balanced (30));
  for (uint32_t i = 0; i < 40000; i++)
    {
      char a[20];
      snprintf (a, sizeof (a), "9.%u.%u.1", i >> 8, i & 255);
      pkt_t k = build (a, "10.96.0.30", CV_PROTO_TCP, (uint16_t) (1024 + i), 80, SYN, 0);
      PASS (&n, UPLINK, &k);
      got[k.data[19]]++;
    }
  for (int i = 0; i < 8; i++)
    check (got[i] > 4500 && got[i] < 5500, "backend %d: %u of 40000", i, got[i]);
  cv_free (n.m);
}

static void
icmp_errors (void)
{
  net_t n = world (1000, 1);
  const char *router[] = { "172.16.0.1", "2001:db8:1::1" };
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (int udp = 0; udp < 2; udp++)
      for (int keep = 0; keep < 2; keep++)
	{
	  uint32_t inner = ip6 ? 40 : 20, n_keep = keep ? 500 : inner + 8;
	  pkt_t k = build (A[ip6], VIP[ip6], udp ? CV_PROTO_UDP : CV_PROTO_TCP, 5000, 80, SYN, 40), sent = k;
	  PASS (&n, POD_A, &k);
	  /* errors from the backend's side: from the backend itself, and from a router in between */
	  for (int from_router = 0; from_router < 2; from_router++)
	    {
	      pkt_t e = icmp_error (from_router ? router[ip6] : B[ip6], &k, n_keep);
	      PASS (&n, from_router ? UPLINK : POD_B, &e);
	      ends_t o = ends (&e);
	      check (!strcmp (o.src, from_router ? router[ip6] : VIP[ip6]) && !strcmp (o.dst, A[ip6]), "%s -> %s", o.src, o.dst);
	      check (!memcmp (e.data + inner + 8 + (ip6 ? 8 : 12), sent.data + (ip6 ? 8 : 12), (ip6 ? 32 : 8) + 4u), "the packet inside is the one sent");
	      if (keep)
		check (!memcmp (e.data + inner + 8, sent.data, sent.len), "to the last byte");
	    }
	  /* an error from the client's side, about an answer */
	  pkt_t r = answer (&k, SYN | ACK), at_client = r;
	  PASS (&n, POD_B, &at_client);
	  pkt_t e = icmp_error (A[ip6], &at_client, n_keep);
	  PASS (&n, POD_A, &e);
	  check (!strcmp (ends (&e).dst, B[ip6]) && !strcmp (ends (&e).src, A[ip6]));
	  check (!memcmp (e.data + inner + 8 + (ip6 ? 8 : 12), r.data + (ip6 ? 8 : 12), (ip6 ? 32 : 8) + 4u));
	  /* a pod that is not an end of the connection */
	  endpoint (&n, 9, CV_ROLE_POD, 0, 0, ip6 ? "fd00::9" : "10.1.1.9", NULL);
	  e = icmp_error (ip6 ? "fd00::9" : "10.1.1.9", &k, n_keep);
	  DROP (&n, 9, &e, CV_SPOOFED);
	  /* also about a packet as the client has sent it, or about a packet without connection */
	  e = icmp_error (ip6 ? "fd00::9" : "10.1.1.9", &sent, n_keep);
	  DROP (&n, 9, &e, CV_SPOOFED);
	  pkt_t other = build (A[ip6], OUT[ip6], udp ? CV_PROTO_UDP : CV_PROTO_TCP, 5001, 80, SYN, 40);
	  e = icmp_error (ip6 ? "fd00::9" : "10.1.1.9", &other, n_keep);
	  DROP (&n, 9, &e, CV_SPOOFED);
	  /* about a packet without connection that was sent to the pod itself */
	  other = build (A[ip6], ip6 ? "fd00::9" : "10.1.1.9", udp ? CV_PROTO_UDP : CV_PROTO_TCP, 5002, 80, SYN, 40);
	  e = icmp_error (ip6 ? "fd00::9" : "10.1.1.9", &other, n_keep);
	  PASS (&n, 9, &e);
	}
  /* echo to the outside: a router's error about it is translated back */
  pkt_t k = build (A[0], OUT[0], CV_PROTO_ICMP, 9, 0, 8, 30), sent = k;
  PASS (&n, POD_A, &k);
  pkt_t e = icmp_error (router[0], &k, 28);
  PASS (&n, UPLINK, &e);
  check (!strcmp (ends (&e).dst, A[0]) && !memcmp (e.data + 28 + 12, sent.data + 12, 8));
  cv_free (n.m);
}

/* with_extensions inserts extension headers, each of 8 bytes, into an IPv6 packet. A fragment header is that of a fragment at an offset. */
static pkt_t
with_extensions (const pkt_t *k, const uint8_t *headers, uint32_t n, uint16_t offset)
{
  pkt_t e = *k;
  memcpy (e.data + 40 + 8 * n, k->data + 40, k->len - 40);
  e.len += 8 * n;
  e.data[5] = (uint8_t) (e.len - 40);
  for (uint32_t i = 0; i < n; i++)
    {
      uint8_t *h = e.data + 40 + 8 * i;
      memset (h, 0, 8);
      h[0] = i + 1 < n ? headers[i + 1] : k->data[6];
      if (headers[i] == 44)
	h[2] = (uint8_t) (offset >> 8), h[3] = (uint8_t) (offset | 1);
    }
  if (n)
    e.data[6] = headers[0];
  return e;
}

/* ICMP errors about packets with extension headers belong to the connection of those packets. */
static void
errors_behind_extensions (void)
{
  static const struct
  {
    uint8_t headers[12];
    uint32_t n;
    uint16_t offset;
    bool known; /* the connection is found */
  } cases[] = {
    { { 0 }, 0, 0, true },
    { { 0 }, 1, 0, true },
    { { 60 }, 1, 0, true },
    { { 44 }, 1, 0, true },
    { { 44 }, 1, 8, false }, /* a later fragment */
    { { 0, 60, 43, 44, 60, 135, 139, 140 }, 8, 0, true },
    { { 0, 60, 60, 60, 60, 60, 60, 60, 60 }, 9, 0, false },
    { { 59 }, 1, 0, false }, /* no next header */
  };
  net_t n = world (1000, 1);
  for (int udp = 0; udp < 2; udp++)
    for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
      for (uint32_t keep = 0; keep < 2; keep++)
	{
	  pkt_t k = build (A[1], VIP[1], udp ? CV_PROTO_UDP : CV_PROTO_TCP, 5000, 80, SYN, 40), sent = k;
	  PASS (&n, POD_A, &k);
	  k = with_extensions (&k, cases[i].headers, cases[i].n, cases[i].offset);
	  sent = with_extensions (&sent, cases[i].headers, cases[i].n, cases[i].offset);
	  uint32_t n_keep = keep ? 1000 : 40 + 8 * cases[i].n + 8;
	  pkt_t e = icmp_error (B[1], &k, n_keep);
	  pkt_t before = e;
	  PASS (&n, POD_B, &e);
	  if (!cases[i].known)
	    {
	      check (!memcmp (e.data, before.data, e.len), "case %zu changes", i);
	      continue;
	    }
	  ends_t o = ends (&e);
	  check (!strcmp (o.src, VIP[1]) && !strcmp (o.dst, A[1]), "case %zu: %s -> %s", i, o.src, o.dst);
	  uint32_t same = keep ? sent.len : 40 + 8 * cases[i].n + 4; /* the checksum may be cut off */
	  check (!memcmp (e.data + 48, sent.data, same), "case %zu: the packet inside is not the one sent", i);
	  if (keep || !cases[i].n)
	    continue;
	  /* the ports are cut off */
	  e = before = icmp_error (B[1], &k, n_keep - 1);
	  PASS (&n, POD_B, &e);
	  check (!memcmp (e.data, before.data, e.len), "case %zu changes although its ports are cut off", i);
	}
  cv_free (n.m);
}

static void
bad_configuration (void)
{
  net_t n = world (1000, 1);
  char name[CV_NAME_LEN] = "x", unterminated[CV_NAME_LEN];
  memset (unterminated, 'x', sizeof (unterminated));
  cv_prefix_t host_bits = { .addr = addr ("10.1.1.1"), .len = 24 }, long_prefix = { .addr = addr ("10.1.1.1"), .len = 33 };
  check (cv_network_set (n.m, &host_bits, CV_CLASS_POD) == CV_INVALID && cv_network_set (n.m, &long_prefix, CV_CLASS_POD) == CV_INVALID);
  check (cv_range_set (n.m, 0, &host_bits, true) == CV_INVALID && cv_range_set (n.m, 3, &host_bits, true) == CV_INVALID);
  check (cv_service_set (n.m, 0, name, 0) == CV_INVALID && cv_service_set (n.m, 1, unterminated, 0) == CV_INVALID && cv_service_set (n.m, 1, name, 128) == CV_INVALID);
  check (backend (&n, 99, "10.1.1.1", 80, 0, true) == CV_NOT_FOUND && backend (&n, 10, "10.1.1.1", 0, 0, true) == CV_INVALID);
  check (backend (&n, 10, "10.1.1.1", 80, 64, true) == CV_INVALID && backend (&n, 10, "10.1.1.77", 80, 0, false) == CV_NOT_FOUND);
  cv_frontend_t f = balanced (10);
  cv_frontend_key_t whole = place (VIP[0], 0, 0), odd = place (VIP[0], 47, 80), ok = place (VIP[0], 6, 99);
  check (cv_frontend_set (n.m, &whole, &f) == CV_INVALID && cv_frontend_set (n.m, &odd, &f) == CV_INVALID && cv_frontend_del (n.m, &ok) == CV_NOT_FOUND);
  f.affinity_group = 1;
  check (cv_frontend_set (n.m, &ok, &f) == CV_INVALID);
  cv_endpoint_t e = { .role = 9 };
  check (cv_endpoint_set (n.m, 1, &e) == CV_INVALID && cv_endpoint_del (n.m, 4000) == CV_NOT_FOUND && cv_endpoint_set (n.m, 1u << 31, &e) == CV_INVALID);
  cv_snat_t s = { .name = "x", .port_low = 9, .port_high = 8 };
  check (cv_snat_set (n.m, 2, &s) == CV_INVALID && cv_snat_set (n.m, CV_SNATS, &s) == CV_INVALID && cv_snat_set (n.m, 3, NULL) == CV_NOT_FOUND);
  cv_free (n.m);
}

/* chunks_of returns the memory that a pool has allocated. */
static size_t
chunks_of (const cv_pool_t *p)
{
  size_t bytes = 0;
  for (uint32_t i = 0; i < CV_CHUNKS && p->chunks[i]; i++)
    bytes += (size_t) p->size * CV_CHUNK;
  return bytes;
}

/* Memory of a connection and of a backend: at most 256 and 128 bytes, for any size of the table and of services. */
static void
memory (void)
{
  size_t most = 0;
  for (uint32_t capacity = 1024; capacity <= 1u << 21; capacity += capacity / 5)
    {
      cv_table_t t;
      check (cv_table_make (&t, capacity));
      size_t bytes = sizeof (cv_connection_t) + sizeof (cv_bucket_t) * (t.bucket_mask + 1) / capacity;
      check (bytes <= 256, "%zu bytes for each of %u connections", bytes, capacity);
      most = bytes > most ? bytes : most;
      cv_table_free (&t);
    }
  printf ("a connection takes %zu bytes at most\n", most);
  for (uint32_t in_service = 1; in_service <= 1000; in_service *= 10)
    {
      /* enough backends to fill whole chunks of the pools */
      const uint32_t backends = in_service > 100 ? 20000 : 100000;
      net_t n = world (1000, 1);
      size_t members = 0, before = chunks_of (&n.m->backends) + chunks_of (&n.m->directs);
      for (uint32_t i = 0; i < backends; i++)
	{
	  uint64_t id = 1000 + i / in_service;
	  if (i % in_service == 0)
	    {
	      service (&n, id, 0);
	      members += sizeof (cv_members_t);
	    }
	  cv_backend_t b = { .addr = addr ("10.1.0.0"), .port = htons (8080) };
	  b.addr.u32[0] = htonl (0x0b000000 + i);
	  check (cv_backend_set (n.m, id, &b) == CV_OK);
	  members += 2 * sizeof (uint32_t);
	  if (i % 1000 == 0)
	    sleep_ticks (&n, 1);
	}
      size_t pools = chunks_of (&n.m->backends) + chunks_of (&n.m->directs) - before;
      size_t slots = sizeof (uint64_t) * (n.m->direct_map.slots->mask + 1ull);
      size_t bytes = (pools + slots + members) / backends;
      check (bytes <= 128, "%zu bytes for each backend, %u in a service", bytes, in_service);
      printf ("a backend takes %zu bytes, %u in a service\n", bytes, in_service);
      cv_free (n.m);
    }
}

int
main (void)
{
  sources ();
  claims ();
  flood ();
  hidden ();
  cluster_ip ();
  hairpin ();
  backend_outside ();
  same_ports ();
  rejected ();
  classes ();
  behind_the_host ();
  egress ();
  pass_cache ();
  fast_path ();
  backends_come_and_go ();
  flows_follow_backends ();
  kept_backends (0);
  kept_backends (CV_SERVICE_MAGLEV);
  sctp_fragments ();
  service_comes ();
  last_backend ();
  timeouts ();
  limits ();
  ports_run_out ();
  affinity ();
  spread (0);
  spread (CV_SERVICE_MAGLEV);
  icmp_errors ();
  errors_behind_extensions ();
  bad_configuration ();
  memory ();
  puts ("ok");
  return 0;
}
