/* Measurement of a TAP's backlog: backlog.h. */
#include <string.h>
#include "backlog.h"

enum
{
  SECOND = 1000000,
  MILLISECOND = 1000,
  LOST_MAX = 3,		   /* lost questions in a row before the kernel counts as one that does not answer */
  PAUSE_MAX = 6,	   /* 2^6 seconds between questions that are not answered */
  GAP = SECOND,		   /* an address that was not seen for this time may be replaced by another one */
  CERTAIN = 3 * SECOND,	   /* an IPv6 address in use for this time is not in duplicate address detection, which a question would end */
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

/* lose counts a question without an answer. */
static void
lose (cv_backlog_t *b, uint64_t asked, uint64_t now)
{
  if (!__atomic_compare_exchange_n (&b->asked, &asked, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return; /* another thread has received the answer now */
  uint8_t unanswered = b->unanswered < LOST_MAX + PAUSE_MAX ? b->unanswered + 1 : b->unanswered;
  b->unanswered = unanswered;
  if (unanswered >= LOST_MAX)
    b->next = now + ((uint64_t) SECOND << (unanswered - LOST_MAX));
}

/* is_asked reports whether the address to ask for is the source of a packet. It chooses another address if the last one is not in use any more, or
 * does not answer. */
static bool
is_asked (cv_backlog_t *b, const uint8_t *source, bool ip6, uint64_t now)
{
  uint32_t size = ip6 ? 16 : 4;
  bool gap = !b->last || elapsed (now, b->last) > GAP, same = b->last && b->ip6 == ip6 && !memcmp (b->address, source, size);
  if (!same && !gap && b->unanswered < LOST_MAX)
    return false;
  if (!same)
    {
      b->ip6 = ip6;
      memcpy (b->address, source, size);
    }
  if (!same || gap)
    b->first = now;
  b->last = now;
  return true;
}

bool
cv_backlog_due (cv_backlog_t *b, const uint8_t *packet, const cv_headers_t *h, uint64_t now)
{
  const uint8_t *source = cv_question_source (packet, h);
  if (!source || !is_asked (b, source, h->layers[0].ip6, now))
    return false;
  uint64_t asked = __atomic_load_n (&b->asked, __ATOMIC_ACQUIRE);
  if (asked && elapsed (now, asked) >= CV_QUESTION_LOST)
    lose (b, asked, now);
  return !asked && now >= b->next && (!b->ip6 || elapsed (now, b->first) > CERTAIN);
}

void
cv_backlog_later (cv_backlog_t *b, uint64_t now)
{
  b->next = now + MILLISECOND;
}

uint32_t
cv_backlog_ask (cv_backlog_t *b, const uint8_t *packet, uint64_t now, uint8_t question[CV_QUESTION_LEN])
{
  b->number = (b->number & 0xff000000) | ((b->number + 1) & 0xffffff);
  b->next = now + CV_QUESTION_PAUSE;
  b->sent = now;
  __atomic_store_n (&b->asked, now, __ATOMIC_RELEASE);
  return cv_question_write (b, packet, question);
}

/* ---- answers ---- */

static void
measure (cv_backlog_t *b, uint64_t now, uint64_t delay)
{
  uint64_t since = elapsed (now, b->measured);
  if (since > delay)
    b->waited = (uint64_t) ((double) b->bytes * (double) delay / (double) since);
  else if (b->bytes > b->waited)
    b->waited = b->bytes;
  b->measured = now;
  b->delay = delay;
  b->bytes = 0;
}

bool
cv_backlog_answered (cv_backlog_t *b, cv_backlog_t *const *threads, uint32_t n, const uint8_t *packet, uint32_t len, uint64_t now)
{
  bool is = false, measures = false;
  uint64_t delay = 0;
  for (uint32_t i = 0; i < n; i++)
    {
      uint64_t asked = __atomic_load_n (&threads[i]->asked, __ATOMIC_ACQUIRE);
      cv_answer_t a = cv_question_answer (threads[i], packet, len, now);
      is = is || a != CV_ANSWER_NOT;
      if (a != CV_ANSWER_LAST || !asked || !__atomic_compare_exchange_n (&threads[i]->asked, &asked, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
	continue;
      threads[i]->unanswered = 0;
      measures = true;
      if (elapsed (now, asked) > delay)
	delay = elapsed (now, asked);
    }
  if (measures)
    measure (b, now, delay);
  return is;
}

/* The next answer is expected after a pause and the delay. Until then the last measurement is valid. */
bool
cv_backlog_above (const cv_backlog_t *b, uint64_t now)
{
  return b->delay > CV_CODEL_TARGET && b->waited >= WAITED_MIN && elapsed (now, b->measured) < b->delay + 2 * CV_CODEL_INTERVAL;
}
