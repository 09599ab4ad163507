/* The node that the tests use: two pods, the host, the uplink and the overlay, and a service in both families. */
#ifndef CONTIV_TEST_WORLD_H
#define CONTIV_TEST_WORLD_H

#include "packets.h"

enum
{
  POD_A = 1,
  POD_B = 2,
  HOST = 3,
  UPLINK = 4,
  OVERLAY = 5,
};

static inline void
endpoint (net_t *n, uint32_t i, cv_role_t role, uint32_t egress, uint32_t limit, const char *v4, const char *v6)
{
  cv_endpoint_t e = { .role = role, .egress = egress, .max_connections = limit };
  snprintf (e.name, sizeof (e.name), "if%u", i);
  for (int k = 0; k < 2; k++)
    if (k ? v6 : v4)
      {
	e.addresses[e.n_addresses].addr = addr (k ? v6 : v4);
	e.addresses[e.n_addresses++].ip6 = is6 (k ? v6 : v4);
      }
  check (cv_endpoint_set (n->m, i, &e) == CV_OK);
}

static inline void
network (net_t *n, const char *a, uint8_t len, cv_class_t class)
{
  cv_prefix_t p = { .addr = addr (a), .len = len, .ip6 = is6 (a) };
  check (cv_network_set (n->m, &p, class) == CV_OK, "%s", a);
}

static inline cv_result_t
backend (net_t *n, uint64_t service, const char *a, uint16_t port, uint8_t flags, bool add)
{
  cv_backend_t b = { .addr = addr (a), .port = htons (port), .ip6 = is6 (a), .flags = flags };
  return add ? cv_backend_set (n->m, service, &b) : cv_backend_del (n->m, service, &b);
}

static inline cv_frontend_key_t
place (const char *a, uint8_t proto, uint16_t port)
{
  return (cv_frontend_key_t){ .addr = addr (a), .port = htons (port), .proto = proto, .ip6 = is6 (a) };
}

static inline cv_frontend_t
balanced (uint64_t service)
{
  return (cv_frontend_t){ .name = "ns/svc:p", .in_cluster = { CV_ACTION_BALANCE, 0, service }, .outside = { CV_ACTION_BALANCE, 0, service } };
}

static inline void
frontend (net_t *n, const char *a, uint8_t proto, uint16_t port, cv_frontend_t f)
{
  cv_frontend_key_t k = place (a, proto, port);
  check (cv_frontend_set (n->m, &k, &f) == CV_OK, "%s", a);
}

static inline void
service (net_t *n, uint64_t id, uint8_t flags)
{
  char name[CV_NAME_LEN] = "ns/svc:p";
  check (cv_service_set (n->m, id, name, flags) == CV_OK);
}

/* Addresses by family. */
static const char *const A[] = { "10.1.1.2", "fd00::2" }, *const B[] = { "10.1.1.3", "fd00::3" }, *const R[] = { "10.1.2.2", "fd00:2::2" };
static const char *const VIP[] = { "10.96.0.10", "fd96::10" }, *const OUT[] = { "8.8.8.8", "2001:db8::8" };
static const char *const MASQ[] = { "10.1.1.254", "fd00::fe" }, *const NODE[] = { "192.168.16.1", "fd16::1" };

static inline net_t
world (uint32_t connections, uint32_t workers)
{
  cv_config_t c = { .connections_max = connections, .tunnel_ports = { 4789 } };
  net_t n = { .m = cv_new (&c, workers, 42), .now = NOW_START };
  check (n.m != NULL);
  endpoint (&n, POD_A, CV_ROLE_POD, 1, 0, A[0], A[1]);
  endpoint (&n, POD_B, CV_ROLE_POD, 1, 0, B[0], B[1]);
  endpoint (&n, HOST, CV_ROLE_HOST, 0, 0, NULL, NULL);
  endpoint (&n, UPLINK, CV_ROLE_UPLINK, 0, 0, NULL, NULL);
  endpoint (&n, OVERLAY, CV_ROLE_OVERLAY, 0, 0, NULL, NULL);
  network (&n, "10.1.0.0", 16, CV_CLASS_POD);
  network (&n, "fd00::", 16, CV_CLASS_POD);
  network (&n, "192.168.16.0", 24, CV_CLASS_NODE);
  network (&n, "fd16::", 64, CV_CLASS_NODE);
  cv_snat_t masq = { .name = "masquerade", .ip4 = addr (MASQ[0]), .ip6 = addr (MASQ[1]) };
  cv_snat_t egress = { .name = "egress", .ip4 = addr (NODE[0]), .ip6 = addr (NODE[1]) };
  check (cv_snat_set (n.m, 0, &masq) == CV_OK && cv_snat_set (n.m, 1, &egress) == CV_OK);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      service (&n, 10 + ip6, 0);
      check (backend (&n, 10 + ip6, B[ip6], 8080, 0, true) == CV_OK);
      frontend (&n, VIP[ip6], CV_PROTO_TCP, 80, balanced (10 + ip6));
      frontend (&n, VIP[ip6], CV_PROTO_UDP, 80, balanced (10 + ip6));
      frontend (&n, VIP[ip6], CV_PROTO_SCTP, 80, balanced (10 + ip6));
      frontend (&n, VIP[ip6], 0, 0, (cv_frontend_t){ .name = "vip", .in_cluster = { CV_ACTION_REJECT, 0, 0 }, .outside = { CV_ACTION_REJECT, 0, 0 } });
    }
  return n;
}

static inline uint32_t
n_connections (const net_t *n)
{
  cv_stats_t s;
  cv_stats_get (n->m, &s);
  return s.connections[0] + s.connections[1];
}

static inline uint64_t
counted (const net_t *n, cv_reason_t r)
{
  cv_stats_t s;
  cv_stats_get (n->m, &s);
  return s.counters[r];
}

static inline void
expect (const pkt_t *k, const char *src, int sport, const char *dst, int dport)
{
  ends_t e = ends (k);
  check (!strcmp (e.src, src) && !strcmp (e.dst, dst), "%s -> %s, want %s -> %s", e.src, e.dst, src, dst);
  check ((sport < 0 || e.sport == sport) && (dport < 0 || e.dport == dport), "ports %u -> %u, want %d -> %d", e.sport, e.dport, sport, dport);
}

#endif
