/* Tests of the backlog of a TAP, by a simulation: streams send through a queue that only the sender's kernel can see. Questions and their
 * answers are checked, and damaged answers must not cause reads outside of their memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../backlog.h"
#include "../internal.h"
#include "../headers.h"
#include "check.h"

enum
{
  LARGE = 65536,
  QUEUE = 1000,	 /* packets in the queue of a TAP */
  STREAMS = 64,
  ANSWER = -1, /* in the queue */
  MS = 1000,
  SECOND = 1000 * MS,
};

/* ---- packets ---- */

/* large returns a packet from a pod, without payload. */
static const uint8_t *
large (bool ip6, cv_headers_t *h)
{
  static uint8_t p[100];
  memset (p, 0, sizeof (p));
  memcpy (p, "\x02\xfe\0\0\0\1\x02\xfe\0\0\0\2\x08\0", 14);
  *h = (cv_headers_t){ .n_layers = 1, .proto = CV_PROTO_IS_TCP, .layers = { { .l3 = 14, .l4 = ip6 ? 54 : 34, .ip6 = ip6 } } };
  if (ip6)
    memcpy (p + 14 + 8, "\xfd\0\0\x10\0\0\0\0\0\0\0\0\0\1\2\3", 16);
  else
    memcpy (p + 14 + 12, "\x0a\1\2\3", 4);
  return p;
}

/* answer writes the answer of a kernel with the address of large () to a question. It returns its length; 0: the kernel does not answer. */
static uint32_t
answer (const uint8_t *q, uint32_t len, uint8_t *to)
{
  check (!memcmp (q, "\x02\xfe\0\0\0\2\x02\xc7\0\0\0\0", 12), "the question goes to the sender's hardware address");
  if (q[12] == 8)
    {
      check (len == 42 && q[13] == 6);
      check (!memcmp (q + 14, "\0\1\x08\0\6\4\0\1", 8) && !memcmp (q + 22, "\x02\xc7", 2));
      check (!memcmp (q + 28, "\0\0\0\0", 4), "the question has no IP address: no neighbour table changes");
      if (memcmp (q + 38, "\x0a\1\2\3", 4))
	return 0;
      memcpy (to, q, 42);
      memcpy (to, q + 22, 6);
      memcpy (to + 6, "\x02\xfe\0\0\0\2", 6);
      to[21] = 2;
      memcpy (to + 22, "\x02\xfe\0\0\0\2\x0a\1\2\3", 10);
      memcpy (to + 32, q + 22, 6);
      memset (to + 38, 0, 4);
      return 42;
    }
  /* RFC 4861 7.1.1 and RFC 4862 5.4.2 */
  static const uint8_t any[16];
  const uint8_t *ip = q + 14, *icmp = ip + 40;
  check (len == 78 && q[12] == 0x86 && q[13] == 0xdd);
  check (ip[0] == 0x60 && ip[5] == 24 && ip[6] == 58 && ip[7] == 255 && !memcmp (ip + 8, any, 16));
  check (!memcmp (ip + 24, "\xff\2\0\0\0\0\0\0\0\0\0\1\xff", 13) && !memcmp (ip + 37, icmp + 21, 3) && icmp[0] == 135 && icmp[1] == 0);
  const uint8_t pseudo[4] = { 0, 24, 0, 58 };
  check (cv_sum_finish (cv_sum (ip + 8, 32, 0) + cv_sum (pseudo, 4, 0) + cv_sum (icmp, 24, 0)) == 0, "checksum");
  if (memcmp (icmp + 8, "\xfd\0\0\x10\0\0\0\0\0\0\0\0\0\1\2\3", 16))
    return 0;
  memcpy (to, q, 78);
  memcpy (to, "\x33\x33\0\0\0\1\x02\xfe\0\0\0\2", 12);
  memcpy (to + 14 + 8, icmp + 8, 16);
  memcpy (to + 14 + 24, "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
  to[54] = 136;
  to[54 + 4] = 0x20;
  return 78;
}

/* ask writes a question if one is due. */
static uint32_t
ask (cv_backlog_t *b, const uint8_t *p, const cv_headers_t *h, uint64_t now, uint8_t *question)
{
  return cv_backlog_due (b, NULL, 0, 0, p, h, now) ? cv_backlog_ask (b, now, question) : 0;
}

/* ask_loaded is ask with as many bytes as a question requires. */
static uint32_t
ask_loaded (cv_backlog_t *b, const uint8_t *p, const cv_headers_t *h, uint64_t now, uint8_t *question)
{
  b->bytes += 4 * LARGE;
  return ask (b, p, h, now, question);
}

/* answered is cv_backlog_answered for a TAP with one or two threads: b, which has received the packet, and other. */
static bool
answered (cv_backlog_t *b, cv_backlog_t *other, const uint8_t *p, uint32_t len, uint64_t now)
{
  cv_backlog_t *threads[] = { b, other };
  return cv_backlog_answered (b, threads, b == other ? 1 : 2, p, len, now);
}

/* ---- a TAP ---- */

typedef struct
{
  cv_backlog_t b;
  uint64_t now;		    /* us */
  uint32_t us;		    /* VPP needs for a packet */
  bool silent;		    /* the kernel does not answer */
  bool ip6;
  uint32_t size;	    /* of a packet */
  double window[STREAMS];   /* packets */
  uint32_t sent[STREAMS];   /* packets in the queue */
  uint64_t slowed[STREAMS]; /* last time at which the stream was slowed */
  uint32_t n;		    /* streams */
  int queue[QUEUE];	    /* streams */
  uint64_t since[QUEUE];
  uint8_t answers[QUEUE][CV_QUESTION_LEN];
  uint32_t answer_len[QUEUE];
  uint32_t head, len;
  uint32_t asked, answered, signals;
  uint32_t missed; /* IPv6 answers that look like packets of the pod, because they are very late */
} tap_t;

static bool
enqueue (tap_t *t, int what)
{
  if (t->len == QUEUE)
    return false;
  uint32_t at = (t->head + t->len++) % QUEUE;
  t->queue[at] = what;
  t->since[at] = t->now;
  return true;
}

/* slow_down is a stream's reaction to a signal or a loss; once for each round trip. */
static void
slow_down (tap_t *t, uint32_t i, uint64_t round_trip)
{
  if (t->now - t->slowed[i] <= round_trip)
    return;
  t->window[i] = t->window[i] * 0.7 > 2 ? t->window[i] * 0.7 : 2;
  t->slowed[i] = t->now;
}

/* fill lets the streams send; first is the first one to do so. A full queue loses packets. */
static void
fill (tap_t *t, uint32_t first)
{
  for (uint32_t k = 0; k < t->n; k++)
    for (uint32_t i = (first + k) % t->n; t->sent[i] + 1 <= t->window[i]; t->sent[i]++)
      if (!enqueue (t, (int) i))
	{
	  slow_down (t, i, (uint64_t) QUEUE * t->us);
	  break;
	}
}

/* ask_kernel sends a question if one is due. The answer needs a place in the queue, as all packets do. */
static void
ask_kernel (tap_t *t, const uint8_t *p, const cv_headers_t *h)
{
  uint8_t question[CV_QUESTION_LEN], a[CV_QUESTION_LEN];
  uint32_t len = ask (&t->b, p, h, t->now, question);
  if (!len)
    return;
  t->asked++;
  len = answer (question, len, a);
  check (len);
  if (t->silent || !enqueue (t, ANSWER))
    return;
  uint32_t at = (t->head + t->len - 1) % QUEUE;
  memcpy (t->answers[at], a, len);
  t->answer_len[at] = len;
}

/* step lets VPP receive one packet. It returns the time that the packet has waited. */
static uint64_t
step (tap_t *t)
{
  cv_headers_t h;
  t->now += t->us;
  if (!t->len)
    return 0;
  uint32_t at = t->head;
  int what = t->queue[at];
  uint64_t waited = t->now - t->since[at];
  t->head = (t->head + 1) % QUEUE;
  t->len--;
  if (what == ANSWER)
    {
      bool is = answered (&t->b, &t->b, t->answers[at], t->answer_len[at], t->now);
      t->missed += !is;
      check (is || t->ip6, "the answer after %lu us", waited);
      t->answered++;
      return waited;
    }
  t->b.bytes += t->size;
  const uint8_t *p = large (t->ip6, &h);
  check (!cv_may_answer (p) && !answered (&t->b, &t->b, p, 60, t->now));
  t->sent[what]--;
  bool congested = cv_codel_due (&t->b.control, cv_backlog_above (&t->b, t->now), t->now);
  if (congested)
    {
      cv_codel_signalled (&t->b.control, t->now);
      t->signals++;
      slow_down (t, (uint32_t) what, waited);
    }
  else
    t->window[what] += 0.2 / t->window[what]; /* 13 kB per round trip */
  fill (t, (uint32_t) what); /* the senders are faster than the answer */
  ask_kernel (t, p, &h);
  return waited;
}

static void
start (tap_t *t, uint32_t n, double window)
{
  *t = (tap_t){ .n = n, .us = 65, .size = LARGE, .now = 5 * SECOND };
  for (uint32_t i = 0; i < n; i++)
    t->window[i] = window;
  fill (t, 0);
}

/* Streams that fill the queue: the delay becomes short, and VPP always has packets. */
static void
standing (void)
{
  static tap_t t;
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (uint32_t n = 1; n <= STREAMS; n *= 4)
      {
	start (&t, n, 900.0 / n);
	t.ip6 = ip6;
	uint64_t sum = 0, first = step (&t), samples = 0, idle = 0;
	while (t.now < 18 * SECOND)
	  {
	    uint64_t waited = step (&t);
	    if (t.now < 13 * SECOND)
	      continue;
	    sum += waited;
	    samples++;
	    idle += !t.len;
	  }
	printf ("IPv%d, %u streams: %.1f ms, %u questions, %u signals, idle for %.1f %%\n", ip6 ? 6 : 4, n, (double) sum / samples / MS, t.asked,
		t.signals, 100.0 * idle / samples);
	check (first <= t.us && sum / samples < (n > 16 ? 35 : 10) * MS, "%u streams: %lu us", n, sum / samples);
	check (idle * 50 < samples, "%u streams: idle in %lu of %lu", n, idle, samples);
	check (t.answered + 1 >= t.asked && t.asked > 150, "%u answers, %u questions", t.answered, t.asked);
      }
}

/* A queue whose delay is longer than the wait for an answer: the answers arrive nevertheless, and the delay becomes short. Packets of three
 * segments, and of 45. */
static void
slow (void)
{
  static tap_t t;
  for (int k = 0; k < 12; k++)
    {
      start (&t, 16, 60);
      t.ip6 = k & 1;
      t.size = k & 2 ? 4344 : LARGE;
      t.us = 800u << (k / 4);
      uint64_t sum = 0, samples = 0;
      while (t.now < 150ull * SECOND)
	{
	  uint64_t waited = step (&t);
	  if (t.now < 120ull * SECOND)
	    continue;
	  sum += waited;
	  samples++;
	}
      printf ("IPv%d, %u us for %u bytes: %.1f ms, %u questions, %u answers, %u signals\n", t.ip6 ? 6 : 4, t.us, t.size, (double) sum / samples / MS,
	      t.asked, t.answered, t.signals);
      check (t.missed < 10, "%u answers missed", t.missed);
      check (sum / samples < (t.size == LARGE ? 40 : 80) * t.us); /* two packets for each stream, or 256 kB, and some */
    }
}

/* Bursts that end before an interval are no reason for a signal. */
static void
bursts (void)
{
  static tap_t t;
  start (&t, 1, 1);
  for (int i = 0; i < 50; i++)
    {
      t.window[0] = QUEUE - 10; /* 64 ms */
      fill (&t, 0);
      t.window[0] = 1;
      for (int k = 0; k < 3000; k++)
	{
	  step (&t);
	  t.window[0] = 1;
	}
    }
  check (t.answered && !t.signals, "%u signals", t.signals);
}

/* A kernel that never answers gets no signals, and few questions. */
static void
silence (void)
{
  static tap_t t;
  start (&t, 16, 60);
  t.silent = true;
  while (t.now < 600ull * SECOND)
    step (&t);
  check (!t.signals && t.asked < 20 && t.asked > 10, "%u signals, %u questions", t.signals, t.asked);
  t.silent = false;
  while (t.now < 680ull * SECOND)
    step (&t);
  check (t.signals && t.answered > 100, "a kernel that answers again: %u signals, %u answers", t.signals, t.answered);
}

/* Lost questions and answers are no evidence: the way to the kernel may be full, or the kernel may not know the address. */
static void
lost (void)
{
  static tap_t t;
  start (&t, 1, 2);
  while (t.now < 6 * SECOND)
    {
      t.window[0] = 2;
      step (&t);
    }
  check (t.answered > 20 && !t.signals);
  t.silent = true;
  while (t.now < 60ull * SECOND)
    {
      t.window[0] = 2;
      step (&t);
    }
  check (!t.signals, "%u signals", t.signals);
}

/* Answers that are late although few bytes have waited: the machine is busy, and a signal would not help. */
static void
busy (void)
{
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], a[CV_QUESTION_LEN];
  uint64_t now = SECOND;
  for (int i = 0; i < 1000; i++)
    {
      uint32_t len = ask_loaded (&b, large (false, &h), &h, now, q);
      check (len == 42, "round %d", i);
      b.bytes += 2 * LARGE;
      now += 50 * MS;
      check (!cv_codel_due (&b.control, cv_backlog_above (&b, now), now));
      check (answered (&b, &b, a, answer (q, len, a), now) && b.delay == 50 * MS);
      check (!cv_codel_due (&b.control, cv_backlog_above (&b, now), now));
    }
}

/* VPP stops for 8 ms after each frame with a question, with 5 Gb/s between the questions: no byte waited before the answers. */
static void
stopped (void)
{
  enum { FRAME = 16 };
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], a[CV_QUESTION_LEN];
  uint64_t now = SECOND;
  uint32_t answers = 0;
  for (int i = 0; i < 10000; i++, now += FRAME * 105)
    {
      uint32_t len = 0;
      for (int k = 0; k < FRAME; k++)
	{
	  b.bytes += LARGE;
	  uint32_t n = ask (&b, large (false, &h), &h, now, q);
	  len = n ? n : len;
	  check (!cv_codel_due (&b.control, cv_backlog_above (&b, now), now));
	}
      if (!len)
	continue;
      cv_backlog_sent (&b);
      now += 8 * MS;
      check (answered (&b, &b, a, answer (q, len, a), now) && b.delay == 8 * MS && !b.waited);
      answers++;
    }
  check (answers > 400, "%u answers", answers);
}

/* A pod that sends little is not asked. */
static void
little (void)
{
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], a[CV_QUESTION_LEN];
  uint64_t now = SECOND;
  uint32_t asked = 0;
  for (int i = 0; i < 10000; i++, now += 30 * MS)
    {
      b.bytes += 3000;
      uint32_t len = ask (&b, large (false, &h), &h, now, q);
      if (len)
	check (answered (&b, &b, a, answer (q, len, a), now + MS));
      asked += len != 0;
    }
  check (asked == 10000 * 3000 / (4 * LARGE) || asked + 1 == 10000 * 3000 / (4 * LARGE), "%u questions", asked);
}

/* The first answer to each of the last questions is a measurement. No other packet is an answer. */
static void
answers (void)
{
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], old[CV_QUESTION_LEN] = { 0 }, a[CV_QUESTION_LEN];
  uint64_t now = SECOND;
  check (!answered (&b, &b, old, 42, now), "before the first question");
  uint32_t len = ask_loaded (&b, large (false, &h), &h, now, q);
  check (answer (q, len, old) == 42);
  check (!ask_loaded (&b, large (false, &h), &h, now + 999 * MS, q), "one question at a time");
  b.bytes += LARGE;
  len = ask_loaded (&b, large (false, &h), &h, now += 1000 * MS, q); /* the first one is lost */
  check (len == 42 && answer (q, len, a) == 42 && b.unanswered == 1);
  check (cv_may_answer (old) && answered (&b, &b, old, 42, now + MS) && b.open && b.delay == 1001 * MS && !b.unanswered, "the answer is only late");
  check (b.waited == 9 * LARGE, "%lu bytes waited", b.waited);
  check (cv_may_answer (a) && answered (&b, &b, a, 42, now + 2 * MS) && b.delay == 2 * MS && !b.waited);
  check (answered (&b, &b, a, 42, now + 3 * MS) && b.delay == 2 * MS, "the answer again");
  check (answered (&b, &b, old, 42, now + 3 * MS) && b.delay == 2 * MS, "the first answer again");
  a[2] ^= 0xff;
  check (!answered (&b, &b, a, 42, now + 3 * MS), "a machine with a similar hardware address");
  a[2] ^= 0xff;
  check (!ask_loaded (&b, large (false, &h), &h, now + 19 * MS, q), "a pause between questions");
  for (int i = 1; i <= 70; i++)
    {
      len = ask_loaded (&b, large (false, &h), &h, now + (uint64_t) i * 20 * MS, q);
      check (len == 42 && answer (q, len, old) == 42 && answered (&b, &b, old, 42, now + (uint64_t) i * 20 * MS + MS), "question %d", i);
      bool is = answered (&b, &b, a, 42, now + (uint64_t) i * 20 * MS + MS);
      check (is == (i < 64) && b.delay == MS, "the answer to the question %d before", i);
    }

  /* IPv6: not before the address has been in use for some time; a gap starts again */
  b = (cv_backlog_t){ 0 };
  now = 100 * SECOND;
  for (uint64_t end = now + 3 * SECOND; now < end; now += 10 * MS)
    check (!ask_loaded (&b, large (true, &h), &h, now, q));
  now += 1100 * MS;
  for (uint64_t end = now + 3 * SECOND; now <= end; now += 10 * MS)
    check (!ask_loaded (&b, large (true, &h), &h, now, q));
  len = ask_loaded (&b, large (true, &h), &h, now, q);
  check (answer (q, len, a) == 78 && cv_may_answer (a));
  check (!answered (&b, &b, a, 77, now + MS) && b.open);
  check (!answered (&b, &b, old, 42, now + MS) || !b.measured, "an answer of the other family");
  check (answered (&b, &b, a, 78, now + 3 * MS) && b.delay == 3 * MS);
  check (answered (&b, &b, a, 78, now + 4 * MS) && b.delay == 3 * MS, "the answer again");
  check (!answered (&b, &b, a, 78, now + 1001 * MS), "later: the kernel sends it without a question");

  /* sources that are not the address of one machine */
  static const uint8_t bad4[][4] = { { 0 }, { 224, 0, 0, 1 }, { 255, 255, 255, 255 } };
  b = (cv_backlog_t){ 0 };
  for (uint32_t i = 0; i < 3; i++)
    {
      uint8_t *p = (uint8_t *) large (false, &h);
      memcpy (p + 26, bad4[i], 4);
      check (!ask_loaded (&b, p, &h, now += 10 * SECOND, q));
    }
  uint8_t *p = (uint8_t *) large (true, &h);
  memset (p + 22, 0, 16);
  check (!cv_question_source (p, &h));
  p[22] = 0xff;
  check (!cv_question_source (p, &h));
  p[22] = 0xfd;
  check (cv_question_source (p, &h));
  h.layers[0].l3 = 18;
  check (!cv_question_source (p, &h), "VLAN tags");
}

/* A pod that forwards for others: only the first source is asked, as long as it is in use and answers. */
static void
sources (void)
{
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], a[CV_QUESTION_LEN], other[100];
  uint64_t now = SECOND;
  memcpy (other, large (false, &h), sizeof (other));
  other[29] = 9;
  for (int i = 0; i < 1000; i++, now += 50 * MS)
    {
      uint32_t len = ask_loaded (&b, large (false, &h), &h, now, q);
      check (len && answer (q, len, a) && answered (&b, &b, a, len, now));
      len = ask_loaded (&b, other, &h, now + 25 * MS, q);
      check (len && answer (q, len, a) && answered (&b, &b, a, len, now + 26 * MS), "packets of others cause questions for the pod's address");
    }
  uint32_t asked = 0; /* the other one is asked after a second, and does not answer; then the first one again, after the pause */
  for (int i = 0; i < 200; i++, now += 50 * MS)
    asked += ask_loaded (&b, other, &h, now, q) != 0;
  check (asked > 2 && asked < 10, "%u questions", asked);
  for (int i = 0; i < 2000; i++, now += 50 * MS)
    if (ask_loaded (&b, large (false, &h), &h, now, q))
      check (answer (q, 42, a) && answered (&b, &b, a, 42, now));
  check (!b.unanswered && b.measured);
}

/* Two IPv6 addresses of a pod are in use at the same time. After an outage, the one that answers is asked. */
static void
alternating (void)
{
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], a[CV_QUESTION_LEN], other[100];
  uint64_t now = SECOND;
  uint32_t asked[3] = { 0 };
  memcpy (other, large (true, &h), sizeof (other));
  other[37] = 9;
  for (int i = 0; i < 20000; i++, now += 10 * MS)
    {
      int phase = i < 1000 ? 0 : i < 2000 ? 1 : 2;
      for (int k = 0; k < 2; k++)
	{
	  uint32_t len = ask_loaded (&b, k ? other : large (true, &h), &h, now, q);
	  asked[phase] += len != 0;
	  if (len && phase != 1 && answer (q, len, a))
	    check (answered (&b, &b, a, len, now + MS));
	}
    }
  check (asked[0] > 300 && asked[1] < 10 && asked[2] > 5000, "%u, %u, %u questions", asked[0], asked[1], asked[2]);
}

/* The address that was chosen is asked for while the pod sends mostly from another one. */
static void
seldom (void)
{
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], a[CV_QUESTION_LEN];
  uint64_t now = SECOND;
  uint32_t asked = 0;
  for (int i = 0; i < 1000; i++, now += 10 * MS)
    {
      uint32_t len = ask_loaded (&b, large (i % 90 == 0, &h), &h, now, q);
      asked += len != 0;
      if (len)
	check (answer (q, len, a) && answered (&b, &b, a, len, now + MS));
    }
  check (asked > 300, "%u questions", asked);
}

/* Only the addresses of an endpoint are asked for. An interface that is no endpoint has any. */
static void
endpoints (void)
{
  static const struct
  {
    cv_role_t role;
    uint8_t address[4];
    bool is;
  } cases[] = {
    { CV_ROLE_POD, { 10, 1, 2, 3 }, true },  { CV_ROLE_POD, { 10, 1, 2, 4 }, false },	 { CV_ROLE_HOST, { 10, 1, 2, 3 }, true },
    { CV_ROLE_HOST, { 10, 1, 2, 4 }, false }, { CV_ROLE_UPLINK, { 10, 1, 2, 3 }, false }, { CV_ROLE_NONE, { 10, 1, 2, 4 }, true },
  };
  cv_headers_t h;
  for (uint32_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    {
      cv_main_t *m = cv_new (&(cv_config_t){ .connections_max = 1024 }, 1, 1);
      cv_endpoint_t e = { .role = cases[i].role, .n_addresses = 1 };
      memcpy (e.addresses[0].addr.u8, cases[i].address, 4);
      check (m && (!e.role || cv_endpoint_set (m, 7, &e) == CV_OK));
      cv_backlog_t b = { .bytes = 4 * LARGE };
      bool due = cv_backlog_due (&b, m, 0, 7, large (false, &h), &h, 5 * SECOND);
      check (m->workers[0].in_frame, "the endpoint is not released while a worker reads it");
      cv_quiesce (m, 0);
      check (due == cases[i].is, "role %d, %u", e.role, cases[i].address[3]);
      if (due && e.role)
	{
	  e.addresses[0].addr.u8[3] = 99;
	  check (cv_endpoint_set (m, 7, &e) == CV_OK && !cv_backlog_due (&b, m, 0, 7, large (false, &h), &h, 5 * SECOND), "the pod has another address now");
	}
      cv_free (m);
    }
}

/* pending reports whether the last question waits for its answer. */
static bool
pending (const cv_backlog_t *b)
{
  return b->questions[b->number % CV_QUESTIONS].sent;
}

/* A TAP with two queues: the answer measures the queue of the thread that receives it. Either thread may have asked. */
static void
threads (void)
{
  cv_backlog_t b[2];
  cv_headers_t h;
  uint8_t q[2][CV_QUESTION_LEN], a[CV_QUESTION_LEN];
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      uint64_t now = SECOND;
      cv_backlog_init (&b[0], 0);
      cv_backlog_init (&b[1], 1);
      for (int i = 0; i < 400; i++)
	{
	  uint32_t len = 0;
	  b[0].bytes += 100 * LARGE;
	  b[1].bytes += 100 * LARGE;
	  for (int k = 0; k < 2; k++)
	    len += ask (&b[k], large (ip6, &h), &h, now, q[k]);
	  now += 30 * MS;
	  b[1].bytes += 100 * LARGE;
	  if (!len)
	    continue;
	  len /= 2;
	  answer (q[0], len, a);
	  check (answered (&b[1], &b[0], a, len, now) && b[1].delay == 30 * MS && !pending (&b[0]));
	  check (!ip6 == pending (&b[1]), "an advertisement is the answer to both");
	  answer (q[1], len, a);
	  check (answered (&b[1], &b[0], a, len, now) && !pending (&b[1]) && !b[0].unanswered && !b[1].unanswered);
	  check (b[1].waited > 10 * LARGE || i < 150, "the second answer does not hide the bytes");
	  check (!b[0].measured && !cv_backlog_above (&b[0], now) && (cv_backlog_above (&b[1], now) || i < 150));
	}
      check (!cv_backlog_above (&b[1], now + SECOND), "an old measurement");
    }
}

/* Damaged and shortened answers, each in memory of its exact length. */
static void
damaged (void)
{
  cv_backlog_t b = { 0 };
  cv_headers_t h;
  uint8_t q[CV_QUESTION_LEN], a[CV_QUESTION_LEN];
  uint64_t now = SECOND;
  for (int i = 0; i < 200000; i++)
    {
      uint32_t len = ask_loaded (&b, large (i / 1000 & 1, &h), &h, now += 20 * MS, q);
      if (!len)
	continue;
      len = answer (q, len, a);
      for (int n = rand () % 4; n >= 0; n--)
	a[rand () % len] = (uint8_t) rand ();
      len = rand () % 4 ? len : (uint32_t) rand () % (len + 1);
      uint8_t *exact = malloc (len ? len : 1);
      memcpy (exact, a, len);
      answered (&b, &b, exact, len, now);
      free (exact);
    }
}

int
main (void)
{
  answers ();
  sources ();
  alternating ();
  seldom ();
  endpoints ();
  threads ();
  busy ();
  stopped ();
  little ();
  bursts ();
  standing ();
  slow ();
  silence ();
  lost ();
  damaged ();
  puts ("ok");
  return 0;
}
