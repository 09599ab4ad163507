/* The backlog of a TAP: the packets that the sender's kernel holds until VPP receives them. The kernel limits it to 1,000 packets of up to
 * 64 kB and gives TCP no feedback, so a few streams fill it and every packet of the sender waits. The plugin measures the delay of the
 * backlog, for CoDel (codel.h).
 *
 * The delay is measured by questions: VPP asks the sender's kernel for one of its own addresses, like a machine that checks whether the
 * address is in use (RFC 5227, RFC 4862). The kernel's answer waits behind the packets of the backlog. No neighbour table changes by
 * such a question.
 *
 * If a TAP has several queues, each thread has a cv_backlog_t for the queue that it receives. The answer to a question of one thread may arrive at
 * another one, whose queue it then measures.
 *
 * All times are in microseconds, from any start; they are not 0. */
#ifndef CONTIV_BACKLOG_H
#define CONTIV_BACKLOG_H

#include "codel.h"

#define CV_QUESTION_PAUSE 20000	 /* between two questions */
#define CV_QUESTION_LOST  500000 /* an answer is not expected after this time */
#define CV_QUESTION_LEN	  78	 /* maximum bytes of a question */

typedef struct
{
  /* the last question of this thread */
  uint64_t asked;      /* its time; 0: it is answered. Other threads set it to 0 */
  uint32_t number;     /* unique among threads */
  bool ip6;
  uint8_t address[16]; /* IPv6 */
  uint64_t next;       /* earliest time of the next question */
  uint8_t unanswered;  /* questions in a row */
  bool elsewhere;      /* the last answer arrived at another thread; set by that thread */
  bool answers;	       /* this thread has received one of the last answers */
  /* the last measurement */
  uint64_t measured, delay, waited; /* its time; delay; bytes that waited before the answer */
  uint64_t bytes;		    /* received since then */
  cv_codel_t control;
} cv_backlog_t;

/* cv_backlog_init: thread is below 256. */
void cv_backlog_init (cv_backlog_t *b, uint8_t thread);

/* cv_backlog_ask writes the next question when it is due, and returns its length; 0: not now, or not to the sender of this packet. The packet
 * is from the TAP, with headers h. */
uint32_t cv_backlog_ask (cv_backlog_t *b, const uint8_t *packet, const cv_headers_t *h, uint64_t now, uint8_t question[CV_QUESTION_LEN]);

/* cv_may_answer reports, at little cost, whether a packet of at least 14 bytes may be an answer. */
static inline bool
cv_may_answer (const uint8_t *packet)
{
  return (packet[0] == 0x02 && packet[1] == 0xc7) || (packet[0] == 0x33 && packet[1] == 0x33);
}

typedef enum
{
  CV_ANSWER_NOT,   /* the packet is no answer, or for a solicitation of another machine */
  CV_ANSWER_OLD,   /* an answer to no last question: the caller must drop it */
  CV_ANSWER_TAKEN, /* the answer to the last question of asker: the caller must drop it */
} cv_answer_t;

/* cv_backlog_answered checks whether a packet that this thread received is the answer to the last question of asker, a thread of the same TAP. If it
 * is, it measures the queue of this thread. */
cv_answer_t cv_backlog_answered (cv_backlog_t *b, cv_backlog_t *asker, const uint8_t *packet, uint32_t len, uint64_t now);

/* cv_backlog_above reports whether the delay is above CoDel's target. */
bool cv_backlog_above (const cv_backlog_t *b, uint64_t now);

/* question.c, for the functions above. cv_question_write writes a question for the source address of a packet. It returns its length; 0: the
 * packet has VLAN tags, or the source is not the address of one machine. */
uint32_t cv_question_write (cv_backlog_t *b, const uint8_t *packet, const cv_headers_t *h, uint8_t question[CV_QUESTION_LEN]);
/* cv_question_answers reports whether a packet is an answer to the last question of b; old: to another one. */
bool cv_question_answers (const cv_backlog_t *b, const uint8_t *packet, uint32_t len, bool *old);

#endif
