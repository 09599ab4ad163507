/* Control of a queue that packets wait in before VPP receives them, by their delay: CoDel (RFC 8289). All times are in microseconds, from any
 * start. A queue is used by one thread. */
#ifndef CONTIV_CODEL_H
#define CONTIV_CODEL_H

#include "offload.h"

#define CV_CODEL_TARGET	  5000	 /* a delay that is accepted */
#define CV_CODEL_INTERVAL 100000 /* a longer delay is accepted for this time */

typedef struct
{
  uint64_t above;  /* time at which the delay has been too long for an interval; 0: the delay is not too long */
  uint64_t signal; /* time of the next signal */
  uint32_t count;  /* signals since the delay is too long */
  uint32_t before; /* count at the start of this period */
  bool active;	   /* signals are being sent */
  uint64_t total;  /* signals */
} cv_codel_t;

/* cv_codel_due reports whether a sender should get a signal to send more slowly now; above: the delay is above the target. Then the caller
 * sends a signal by cv_congested, and reports it by cv_codel_signalled. */
bool cv_codel_due (cv_codel_t *c, bool above, uint64_t now);
void cv_codel_signalled (cv_codel_t *c, uint64_t now);
/* cv_codel_late reports whether a signal is due, but no packet could carry it for some time. */
bool cv_codel_late (const cv_codel_t *c, uint64_t now);

typedef enum
{
  CV_CONGESTED_NOT,    /* the packet is unchanged, because it cannot carry the signal */
  CV_CONGESTED_MARKED, /* congestion experienced (RFC 3168) */
  CV_CONGESTED_CUT,    /* the packet is shorter */
} cv_congested_t;

/* cv_congested signals congestion by a TCP packet of several segments. If sender and receiver use ECN, the packet is marked. Otherwise its
 * headers get the lengths of the packet without its last segment, and the caller must remove *cut bytes from its end: the receiver misses this
 * segment, and all others arrive. The last segment of a message (PSH) is removed only if late: the sender notices the loss of a segment earlier if
 * others follow. p contains all headers. */
cv_congested_t cv_congested (uint8_t *p, const cv_headers_t *h, uint32_t total, uint32_t gso_size, bool late, uint32_t *cut);

#endif
