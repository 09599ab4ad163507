/* CoDel: codel.h. */
#include "codel.h"

enum
{
  COUNT_MAX = 10000,		   /* 1,000 signals per second */
  LATE = 10000,
  RESUME = 16 * CV_CODEL_INTERVAL, /* if the delay is too long again within this time, the rate of signals continues */
};

/* root returns the square root, rounded down. */
static uint32_t
root (uint32_t n)
{
  uint32_t r = 0;
  for (uint32_t bit = 1u << 15; bit; bit >>= 1)
    if ((uint64_t) (r | bit) * (r | bit) <= n)
      r |= bit;
  return r;
}

/* period returns the time to the next signal: the interval divided by the square root of the count. */
static uint64_t
period (const cv_codel_t *c)
{
  return CV_CODEL_INTERVAL * 256ull / root (c->count << 16);
}

bool
cv_codel_due (cv_codel_t *c, bool above, uint64_t now)
{
  if (!above)
    {
      c->above = 0;
      c->active = false;
      return false;
    }
  if (!c->above)
    c->above = now + CV_CODEL_INTERVAL;
  return c->active ? now >= c->signal : now >= c->above;
}

void
cv_codel_signalled (cv_codel_t *c, uint64_t now)
{
  if (!c->active)
    {
      uint32_t more = c->count - c->before;
      c->count = more > 1 && now - c->signal < RESUME ? more : 1;
      c->before = c->count;
      c->active = true;
    }
  else if (c->count < COUNT_MAX)
    c->count++;
  c->total++;
  c->signal = now + period (c);
}

bool
cv_codel_late (const cv_codel_t *c, uint64_t now)
{
  return now >= (c->active ? c->signal : c->above) + LATE;
}
