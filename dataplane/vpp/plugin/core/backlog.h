/* The backlog of a TAP: the packets that the sender's kernel holds until VPP receives them. The kernel limits it to 1,000 packets of up to
 * 64 kB and gives TCP no feedback, so a few streams fill it and every packet of the sender waits. The plugin measures the delay of the
 * backlog, for CoDel (codel.h).
 *
 * The delay is measured by questions: VPP asks the sender's kernel for one of its own addresses, like a machine that checks whether the
 * address is in use (RFC 5227, RFC 4862). The kernel's answer waits behind the packets of the backlog. No neighbour table changes by
 * such a question. Only answers count: a lost question has many possible reasons.
 *
 * If a TAP has several queues, each thread has a cv_backlog_t for the queue that it receives. The kernel chooses the queue of an answer, so the
 * answer to a question of one thread may arrive at another one, whose queue it then measures.
 *
 * All times are in microseconds, from any start; they are not 0. They may go back by a little, because threads have different clocks. */
#ifndef CONTIV_BACKLOG_H
#define CONTIV_BACKLOG_H

#include "codel.h"
#include "cv.h"

#define CV_QUESTION_PAUSE 20000	  /* between two questions of a thread */
#define CV_QUESTION_LOST  1000000 /* the next question does not wait longer for an answer; IPv6: three times as long, because answers have no number */
#define CV_QUESTION_LATE  10000000 /* later answers are no measurements */
#define CV_QUESTION_LEN	  78	  /* maximum bytes of a question */
#define CV_QUESTIONS	  16	  /* the last questions of a thread, whose answers are measurements */

typedef struct
{
  uint64_t sent;  /* time; 0: answered. Other threads set it to 0 */
  uint64_t bytes; /* cv_backlog_t.bytes at the end of its frame */
} cv_question_t;

typedef struct
{
  /* the address to ask for: the source of packets of several segments */
  uint8_t address[16]; /* IPv4: the first four bytes */
  uint8_t hardware[6]; /* its hardware address */
  bool ip6;
  uint64_t first, last; /* times at which the address was seen, without a long gap */
  /* questions of this thread */
  cv_question_t questions[CV_QUESTIONS]; /* by the end of their number */
  uint32_t number;			 /* of the last one; unique among threads */
  uint64_t sent;			 /* time of the last one; 0: none */
  bool open;				 /* the last one is neither answered nor lost */
  uint64_t next;			 /* earliest time of the next one */
  uint8_t unanswered;			 /* in a row. Other threads set it to 0 */
  /* the queue of this thread */
  uint64_t bytes;		    /* received in packets of several segments */
  uint64_t measured, delay, waited; /* time of the last measurement; delay; such bytes that waited before the answer */
  uint64_t then;		    /* bytes at the last measurement */
  cv_codel_t control;
} cv_backlog_t;

/* cv_backlog_init: thread is below 256. */
void cv_backlog_init (cv_backlog_t *b, uint8_t thread);

/* cv_backlog_due reports whether this thread should send a question now. The packet is from interface at, with headers h. m has the addresses of the
 * interface; if it is not an endpoint, any source can be asked. Call cv_quiesce at the end of the frame. */
bool cv_backlog_due (cv_backlog_t *b, cv_main_t *m, uint32_t worker, uint32_t at, const uint8_t *packet, const cv_headers_t *h, uint64_t now);
/* cv_backlog_ask writes the question that is due, and returns its length. */
uint32_t cv_backlog_ask (cv_backlog_t *b, uint64_t now, uint8_t question[CV_QUESTION_LEN]);
/* cv_backlog_sent notes the end of the frame in which a question was written: packets of this frame did not wait behind it. */
void cv_backlog_sent (cv_backlog_t *b);
/* cv_backlog_later postpones the question that is due. */
void cv_backlog_later (cv_backlog_t *b, uint64_t now);

/* cv_may_answer reports, at little cost, whether a packet of at least 14 bytes may be an answer. */
static inline bool
cv_may_answer (const uint8_t *packet)
{
  return (packet[0] == 0x02 && packet[1] == 0xc7) || (packet[0] == 0x33 && packet[1] == 0x33);
}

/* cv_backlog_answered reports whether a packet that this thread received is an answer to one of the threads of the TAP: the caller must drop it. The
 * first answer to one of the last questions measures the queue of this thread. */
bool cv_backlog_answered (cv_backlog_t *b, cv_backlog_t *const *threads, uint32_t n, const uint8_t *packet, uint32_t len, uint64_t now);

/* cv_backlog_above reports whether the delay is above CoDel's target. */
bool cv_backlog_above (const cv_backlog_t *b, uint64_t now);

/* ---- question.c, for the functions above ---- */

/* cv_question_source returns the source address of a packet; NULL: the packet has VLAN tags, or the source is not the address of one machine. */
const uint8_t *cv_question_source (const uint8_t *packet, const cv_headers_t *h);
/* cv_question_write writes a question of b. */
uint32_t cv_question_write (const cv_backlog_t *b, uint32_t number, uint8_t question[CV_QUESTION_LEN]);

/* cv_question_answer returns the number of the question of b that a packet answers, or one of these. */
enum
{
  CV_ANSWER_NOT = -1,
  CV_ANSWER_OLD = -2, /* to a question before the last ones */
};
int32_t cv_question_answer (const cv_backlog_t *b, const uint8_t *packet, uint32_t len, uint64_t now);

#endif
