/* Measurement of a TAP's backlog: backlog.h. */
#include <string.h>
#include "backlog.h"
#include "follow.h"

enum
{
  SECOND = 1000000,
  MILLISECOND = 1000,
  LOST_MAX = 3,		  /* lost questions in a row before the kernel counts as one that does not answer */
  PAUSE_MAX = 5,	  /* 2^5 * 2 seconds between questions that are not answered */
  GAP = SECOND,		  /* an address that was not seen for this time may be replaced by another one */
  CERTAIN = 3 * SECOND,	  /* an IPv6 address in use for this time is not in duplicate address detection, which a question would end */
  WAITED_MIN = 4 * 65536, /* a shorter queue does not cause the delay: the machine is busy, and fewer packets would not change this */
};

static uint64_t
elapsed (uint64_t now, uint64_t then)
{
  return now > then ? now - then : 0;
}

void
cv_backlog_init (cv_backlog_t *b, uint8_t thread)
{
  *b = (cv_backlog_t){ .number = (uint32_t) thread << 24 };
}

/* ---- questions ---- */

static cv_question_t *
question_at (cv_backlog_t *b, uint32_t number)
{
  return &b->questions[number % CV_QUESTIONS];
}

/* end_question notices that the last question is answered, or lost. An answer that arrives later is still a measurement. */
static void
end_question (cv_backlog_t *b, uint64_t now)
{
  if (!b->open)
    return;
  uint64_t sent = __atomic_load_n (&question_at (b, b->number)->sent, __ATOMIC_ACQUIRE);
  bool lost = sent && elapsed (now, sent) >= (b->ip6 ? 3 * CV_QUESTION_LOST : CV_QUESTION_LOST);
  b->open = sent && !lost;
  if (lost && b->unanswered < LOST_MAX + PAUSE_MAX)
    b->unanswered++;
}

/* pause_after returns the time between the last question and the next one. */
static uint64_t
pause_after (const cv_backlog_t *b)
{
  return b->unanswered < LOST_MAX ? CV_QUESTION_PAUSE : (uint64_t) (2 * SECOND) << (b->unanswered - LOST_MAX);
}

/* is_loaded reports whether enough bytes for a queue that needs control have arrived since the last measurement and since the last question. */
static bool
is_loaded (cv_backlog_t *b)
{
  return b->bytes - b->then >= WAITED_MIN && (!b->sent || b->bytes - question_at (b, b->number)->bytes >= WAITED_MIN);
}

/* may_be_asked reports whether the kernel behind an interface can have an address. Pods also forward packets of other machines, or send with wrong
 * sources. Behind an uplink, a question would go to another node. */
static bool
may_be_asked (cv_main_t *m, uint32_t worker, uint32_t at, const uint8_t *address, bool ip6, uint64_t now)
{
  cv_addr_t a = { 0 };
  if (!m)
    return true;
  cv_enter (&m->workers[worker], (uint32_t) (now / (SECOND / CV_TICKS_PER_SECOND)));
  const cv_endpoint_state_t *e = cv_endpoint (m, at);
  if (!e)
    return true;
  memcpy (&a, address, ip6 ? 16 : 4);
  return e->config.role <= CV_ROLE_HOST && (!e->config.n_addresses || cv_own_address (e, &a, ip6));
}

/* is_replaceable reports whether another address may be asked for from now on: the present one is not in use any more, or it has been asked for and
 * does not answer. */
static bool
is_replaceable (const cv_backlog_t *b, uint64_t now)
{
  return !b->last || elapsed (now, b->last) > GAP || (b->unanswered >= LOST_MAX && !b->open && b->sent >= b->first);
}

/* note_source notes the source of a packet. It may become the address to ask for. */
static void
note_source (cv_backlog_t *b, cv_main_t *m, uint32_t worker, uint32_t at, const uint8_t *packet, const uint8_t *source, bool ip6, uint64_t now)
{
  uint32_t size = ip6 ? 16 : 4;
  bool gap = elapsed (now, b->last) > GAP, same = b->last && b->ip6 == ip6 && !memcmp (b->address, source, size);
  if (!same)
    {
      if (!is_replaceable (b, now) || !may_be_asked (m, worker, at, source, ip6, now))
	return;
      b->ip6 = ip6;
      memcpy (b->address, source, size);
      if (gap)
	b->unanswered = 0;
    }
  memcpy (b->hardware, packet + 6, 6);
  if (!same || gap)
    b->first = now;
  b->last = now;
}

bool
cv_backlog_due (cv_backlog_t *b, cv_main_t *m, uint32_t worker, uint32_t at, const uint8_t *packet, const cv_headers_t *h, uint64_t now)
{
  const uint8_t *source = cv_question_source (packet, h);
  end_question (b, now);
  if (source)
    note_source (b, m, worker, at, packet, source, h->layers[0].ip6, now);
  if (b->open || !b->last || elapsed (now, b->last) > GAP || now < b->next || elapsed (now, b->sent) < pause_after (b) || !is_loaded (b))
    return false;
  if (b->ip6 && elapsed (now, b->first) <= CERTAIN)
    return false;
  if (may_be_asked (m, worker, at, b->address, b->ip6, now))
    return true;
  b->last = 0; /* the endpoint has other addresses now */
  return false;
}

void
cv_backlog_later (cv_backlog_t *b, uint64_t now)
{
  b->next = now + MILLISECOND;
}

uint32_t
cv_backlog_ask (cv_backlog_t *b, uint64_t now, uint8_t question[CV_QUESTION_LEN])
{
  uint32_t number = (b->number & 0xff000000) | ((b->number + 1) & 0xffffff);
  cv_question_t *q = question_at (b, number);
  q->bytes = b->bytes;
  __atomic_store_n (&q->sent, now, __ATOMIC_RELEASE);
  b->sent = now;
  b->open = true;
  __atomic_store_n (&b->number, number, __ATOMIC_RELEASE);
  return cv_question_write (b, number, question);
}

void
cv_backlog_sent (cv_backlog_t *b)
{
  question_at (b, b->number)->bytes = b->bytes;
}

/* ---- answers ---- */

/* estimate returns how many bytes of the queue of b have probably arrived within a time before now: another thread has asked, so it is not known how
 * many b had received then. */
static uint64_t
estimate (const cv_backlog_t *b, uint64_t now, uint64_t delay)
{
  uint64_t since = elapsed (now, b->measured), bytes = b->bytes - b->then;
  if (since > delay)
    return (uint64_t) ((double) bytes * (double) delay / (double) since);
  return bytes > b->waited ? bytes : b->waited;
}

static void
measure (cv_backlog_t *b, uint64_t now, uint64_t delay, uint64_t waited)
{
  b->measured = now;
  b->delay = delay;
  b->waited = waited;
  b->then = b->bytes;
}

bool
cv_backlog_answered (cv_backlog_t *b, cv_backlog_t *const *threads, uint32_t n, const uint8_t *packet, uint32_t len, uint64_t now)
{
  bool is = false, measures = false;
  uint64_t delay = 0, waited = 0;
  for (uint32_t i = 0; i < n; i++)
    {
      int32_t number = cv_question_answer (threads[i], packet, len, now);
      is = is || number != CV_ANSWER_NOT;
      if (number < 0)
	continue;
      cv_question_t *q = question_at (threads[i], (uint32_t) number);
      uint64_t sent = __atomic_exchange_n (&q->sent, 0, __ATOMIC_ACQ_REL);
      if (!sent)
	continue; /* a second answer */
      threads[i]->unanswered = 0;
      if (elapsed (now, sent) > CV_QUESTION_LATE || (measures && elapsed (now, sent) <= delay))
	continue;
      measures = true;
      delay = elapsed (now, sent);
      waited = threads[i] == b ? b->bytes - q->bytes : estimate (b, now, delay);
    }
  if (measures)
    measure (b, now, delay, waited);
  return is;
}

/* The next answer is expected after a pause and the delay. Until then the last measurement is valid. */
bool
cv_backlog_above (const cv_backlog_t *b, uint64_t now)
{
  return b->delay > CV_CODEL_TARGET && b->waited >= WAITED_MIN && elapsed (now, b->measured) < b->delay + 2 * CV_CODEL_INTERVAL;
}
