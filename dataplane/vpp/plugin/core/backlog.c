/* Measurement of a TAP's backlog: backlog.h. */
#include "backlog.h"

enum
{
  SECOND = 1000000,
  LOST_MAX = 3,			   /* lost questions in a row before the kernel counts as one that does not answer */
  PAUSE_MAX = 6,		   /* 2^6 seconds between questions that are not answered */
  FRESH = 2 * CV_CODEL_INTERVAL,   /* an older measurement says nothing */
  WAITED_MIN = 4 * 65536, /* a shorter queue does not cause the delay: the machine is busy, and fewer packets would not change this */
};

void
cv_backlog_init (cv_backlog_t *b, uint8_t thread)
{
  *b = (cv_backlog_t){ .number = (uint32_t) thread << 24 };
}

static void
measure (cv_backlog_t *b, uint64_t now, uint64_t delay)
{
  uint64_t since = now - b->measured;
  b->waited = since > delay ? b->bytes * delay / since : b->bytes;
  b->measured = now;
  b->delay = delay;
  b->bytes = 0;
}

/* due reports whether a question should be sent now. */
static bool
due (cv_backlog_t *b, uint64_t now)
{
  uint64_t asked = __atomic_load_n (&b->asked, __ATOMIC_ACQUIRE);
  if (asked && now - asked >= CV_QUESTION_LOST && __atomic_compare_exchange_n (&b->asked, &asked, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    {
      /* If the backlog is full, the kernel drops the answer. So a lost question also shows a delay, unless the kernel never answers. */
      if (!b->elsewhere)
	measure (b, now, now - asked);
      asked = 0;
      if (b->unanswered < LOST_MAX + PAUSE_MAX)
	b->unanswered++;
      if (b->unanswered >= LOST_MAX)
	{
	  b->answers = false;
	  b->next = now + ((uint64_t) SECOND << (b->unanswered - LOST_MAX));
	}
    }
  return !asked && now >= b->next;
}

uint32_t
cv_backlog_ask (cv_backlog_t *b, const uint8_t *packet, const cv_headers_t *h, uint64_t now, uint8_t question[CV_QUESTION_LEN])
{
  if (!due (b, now))
    return 0;
  b->next = now + CV_QUESTION_PAUSE;
  uint32_t len = cv_question_write (b, packet, h, question);
  if (len)
    __atomic_store_n (&b->asked, now, __ATOMIC_RELEASE);
  return len;
}

cv_answer_t
cv_backlog_answered (cv_backlog_t *b, cv_backlog_t *asker, const uint8_t *packet, uint32_t len, uint64_t now)
{
  uint64_t asked = __atomic_load_n (&asker->asked, __ATOMIC_ACQUIRE);
  bool old = false;
  if (!cv_question_answers (asker, packet, len, &old) || !asked)
    return old ? CV_ANSWER_OLD : CV_ANSWER_NOT;
  asker->elsewhere = asker != b;
  asker->unanswered = 0;
  if (__atomic_compare_exchange_n (&asker->asked, &asked, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    {
      measure (b, now, now > asked ? now - asked : 0);
      b->answers = true;
    }
  return CV_ANSWER_TAKEN;
}

/* A question without an answer shows that the delay is at least as long as its age, if answers arrive at this thread. */
bool
cv_backlog_above (const cv_backlog_t *b, uint64_t now)
{
  uint64_t asked = __atomic_load_n (&b->asked, __ATOMIC_RELAXED), age = asked && !b->elsewhere ? now - asked : 0;
  uint64_t delay = now - b->measured < FRESH ? b->delay : 0, waited = b->waited;
  if (age > delay)
    {
      delay = age;
      waited = b->bytes;
    }
  return b->answers && delay > CV_CODEL_TARGET && waited >= WAITED_MIN;
}
