/* Measures the cost of packets of established connections in the core alone: clocks [flows [rounds]]. It repeats the node's work for
 * each batch, without VPP's part.
 *
 * gcc -O3 -flto -march=x86-64-v2 -o clocks core/test/clocks.c core/[a-z]*.c && ./clocks 400
 *
 * The number of instructions is the same for each run, even on a busy machine: valgrind --tool=callgrind --toggle-collect=run ./clocks 1
 * 10; the program prints the number of packets. */
#include <time.h>
#include "policy.h"

#define BATCH 32

typedef struct
{
  const char *name;
  uint32_t sw_if_index;
  const char *from, *to;
  uint8_t proto;
  uint16_t port;
  bool acknowledges; /* each packet acknowledges more data than the one before */
  bool answers;	     /* packets sent by the backend */
} case_t;

static const case_t cases[] = {
  { "UDP, no policy", OVERLAY, "10.1.2.2", "10.1.1.3", CV_PROTO_UDP, 53, false, false },
  { "UDP, policy", POD_A, "10.1.1.2", "10.1.1.3", CV_PROTO_UDP, 53, false, false },
  { "TCP, policy", POD_A, "10.1.1.2", "10.1.1.3", CV_PROTO_TCP, 53, false, false },
  { "TCP, policy, each acknowledges", POD_A, "10.1.1.2", "10.1.1.3", CV_PROTO_TCP, 53, true, false },
  { "TCP, policy, answers", POD_A, "10.1.1.2", "10.1.1.3", CV_PROTO_TCP, 53, false, true },
  { "UDP, service", POD_A, "10.1.1.2", "10.96.0.10", CV_PROTO_UDP, 80, false, false },
  { "TCP, service", POD_A, "10.1.1.2", "10.96.0.10", CV_PROTO_TCP, 80, false, false },
  { "TCP, service, answers", POD_A, "10.1.1.2", "10.96.0.10", CV_PROTO_TCP, 80, false, true },
};

static uint64_t
clocks (void)
{
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc ();
#else
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
#endif
}

static void
batch (net_t *n, uint32_t sw_if_index, pkt_t **k)
{
  cv_packet_t p[BATCH];
  cv_brief_t briefs[BATCH];
  for (int i = 0; i < BATCH; i++)
    briefs[i] = (cv_brief_t){ k[i]->data, k[i]->len, sw_if_index, false };
  uint32_t passed = cv_recall (n->m, 0, briefs, BATCH, n->now).passed;
  if (passed == (uint32_t) ((1ull << BATCH) - 1))
    return;
  for (int i = 0; i < BATCH; i++)
    if (!(passed >> i & 1))
      {
	p[i].ip = k[i]->data;
	p[i].len = k[i]->len;
	p[i].sw_if_index = sw_if_index;
	p[i].l4_checksum_offloaded = p[i].reassembled = p[i].later_fragment = false;
	cv_parse (n->m, 0, &p[i], n->now);
      }
  for (int i = 0; i < BATCH; i++)
    if (!(passed >> i & 1))
      cv_prefetch (n->m, &p[i]);
  for (int i = 0; i < BATCH; i++)
    if (!(passed >> i & 1))
      {
	cv_decide (n->m, 0, &p[i], n->now);
	check (p[i].verdict == CV_VERDICT_PASS, "reason %d", p[i].reason);
      }
}

/* run is the part that is measured. */
static __attribute__ ((noinline)) uint64_t
run (net_t *n, uint32_t sw_if_index, pkt_t **k, uint32_t flows)
{
  uint64_t begin = clocks ();
  for (uint32_t i = 0; i < flows; i += BATCH)
    {
      if (i % 256 == 0)
	cv_quiesce (n->m, 0);
      batch (n, sw_if_index, k + i);
    }
  cv_quiesce (n->m, 0);
  return clocks () - begin;
}

static void
acknowledge_more (pkt_t *k)
{
  uint8_t *ack = k->data + 28;
  for (int i = 3; i >= 0 && !++ack[i]; i--)
    ;
}

/* restore undoes translation, which the next round does again. */
static void
restore (pkt_t *k, const pkt_t *sent, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    memcpy (k[i].data, sent[i].data, 40);
}

static void
measure (const case_t *c, uint32_t flows, uint32_t rounds)
{
  net_t n = world (4 * flows + 1000, 1);
  endpoint (&n, POD_A, CV_ROLE_POD, 1, 2 * flows + 1000, A[0], A[1]);
  bool policed = c->sw_if_index == POD_A && c->port == 53;
  if (policed)
    {
      cv_rule_t all = { .action = CV_RULE_ALLOW };
      admit (&n, all);
    }
  uint32_t count = flows < 256 ? 256 : (flows + BATCH - 1) / BATCH * BATCH, iface = c->sw_if_index;
  pkt_t *k = calloc (count, sizeof (*k)), *sent = calloc (count, sizeof (*k)), **list = calloc (count, sizeof (*list));
  check (k && sent && list);
  for (uint32_t i = 0; i < count; i++)
    {
      uint16_t port = (uint16_t) (1024 + i % flows % 60000);
      k[i] = build (c->from, c->to, c->proto, port, c->port, CV_TCP_ACK, 20);
      list[i] = &k[i];
      if (c->proto == CV_PROTO_TCP && i < flows)
	{
	  pkt_t syn = build (c->from, c->to, c->proto, port, c->port, CV_TCP_SYN, 0);
	  check (offer (&n, 0, iface, &syn) == CV_VERDICT_PASS, "reason %d", n.p.reason);
	  pkt_t answered = answer (&syn, CV_TCP_SYN | CV_TCP_ACK);
	  check (offer (&n, 0, POD_B, &answered) == CV_VERDICT_PASS, "reason %d", n.p.reason);
	  pkt_t first = k[i];
	  check (offer (&n, 0, iface, &first) == CV_VERDICT_PASS, "reason %d", n.p.reason);
	  if (c->answers)
	    k[i] = answer (&first, CV_TCP_ACK);
	}
      else if (c->answers)
	k[i] = k[i % flows];
      sent[i] = k[i];
    }
  if (c->answers)
    iface = POD_B;
  uint64_t best = UINT64_MAX;
  for (uint32_t r = 0; r < rounds; r++)
    {
      restore (k, sent, count);
      for (uint32_t i = 0; i < count && c->acknowledges; i++)
	{
	  acknowledge_more (&sent[i]);
	  memcpy (k[i].data, sent[i].data, 40);
	}
      uint64_t took = run (&n, iface, list, count);
      best = took < best ? took : best;
    }
  printf ("%-32s %6.1f clocks, %u packets\n", c->name, (double) best / count, count * rounds);
  free (k);
  free (sent);
  free (list);
  cv_free (n.m);
}

int
main (int argc, char **argv)
{
  uint32_t flows = argc > 1 ? (uint32_t) atoi (argv[1]) : 1, rounds = argc > 2 ? (uint32_t) atoi (argv[2]) : 2000;
  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    if (argc < 4 || (size_t) atoi (argv[3]) == i)
      measure (&cases[i], flows, rounds);
  return 0;
}
