/* The states of TCP connections.
 *
 * An attacker can send packets with the address of another machine. A packet that its receiver discards must not change the connection
 * here either: otherwise a forged SYN would select another backend for the connection, a forged reset would end it when it is idle, or a
 * flood of SYNs would fill the table with open connections. Therefore packets are evaluated as their receivers evaluate them (RFC 9293,
 * 3.10.7; RFC 5961). The last acknowledgement of a receiver shows what the other direction has sent; so an acknowledgement counts only
 * if the other direction can have sent the data that it acknowledges. */
#include "follow.h"

static void
expect (cv_connection_t *c, uint32_t direction, uint32_t ack)
{
  uint8_t b[4] = { (uint8_t) (ack >> 24), (uint8_t) (ack >> 16), (uint8_t) (ack >> 8), (uint8_t) ack };
  memcpy (&c->acked[direction], b, 4);
}

/* seg_t holds the TCP fields that give a packet's position in the connection. */
typedef struct
{
  const uint8_t *tcp;
  uint32_t seq, ack, len; /* len: of the payload */
  uint8_t flags;
} seg_t;

static seg_t
segment (const cv_packet_t *p)
{
  const uint8_t *ip = p->ip;
  seg_t s = { .tcp = ip + p->l4, .flags = p->tcp_flags };
  uint32_t total = p->tuple.ip6 ? 40 + (uint32_t) (ip[4] << 8 | ip[5]) : (uint32_t) (ip[2] << 8 | ip[3]);
  uint32_t headers = p->l4 + (s.tcp[12] >> 4) * 4u;
  s.seq = word_at (s.tcp + 4);
  s.ack = word_at (s.tcp + 8);
  s.len = total > headers ? total - headers : 0;
  return s;
}

/* scale_of reads the window scale of a SYN (RFC 7323). */
static uint32_t
scale_of (const cv_packet_t *p, const seg_t *s)
{
  uint32_t rest = p->len > p->l4 ? p->len - p->l4 : 0, end = (s->tcp[12] >> 4) * 4u;
  end = end < rest ? end : rest;
  for (uint32_t i = 20; i < end && s->tcp[i];)
    {
      if (s->tcp[i] == 1)
	i++;
      else if (i + 2 > end || s->tcp[i + 1] < 2)
	return 0;
      else if (s->tcp[i] == 3 && i + 2 < end)
	return s->tcp[i + 2] < 14 ? s->tcp[i + 2] : 14;
      else
	i += s->tcp[i + 1];
    }
  return 0;
}

/* ---- opening ---- */

/* answers reports whether an acknowledgement covers the client's SYN, possibly also data that was sent with it (RFC 7413). */
static bool
answers (const cv_connection_t *c, uint32_t ack)
{
  return ack - word_at (&c->acked[1]) <= (c->end[1] >> CV_END_DATA_SHIFT & 0xffff);
}

/* shake_hands processes a packet with SYN. The SYN of each end determines which acknowledgement the other end must send. */
static void
shake_hands (const cv_packet_t *p, cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  bool by_syn = c->end[1] & CV_END_OF_SYN;
  if (!direction && (s->flags & CV_TCP_ACK || c->state != CV_STATE_NEW))
    return;
  if (s->flags & CV_TCP_ACK)
    {
      if (by_syn && !answers (c, s->ack))
	return; /* does not acknowledge the client's SYN */
      if (!by_syn)
	expect (c, 1, s->ack);
      c->state = CV_STATE_ANSWERED;
    }
  expect (c, !direction, s->seq + 1);
  c->end[!direction] = CV_END_OF_SYN | (s->len & 0xffff) << CV_END_DATA_SHIFT | scale_of (p, s);
}

/* begin follows a connection until the client has acknowledged the backend's SYN: a flood of SYNs with forged sources leaves connections
 * in state new only. */
static void
begin (const cv_packet_t *p, cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  if (s->flags & CV_TCP_SYN)
    {
      shake_hands (p, c, direction, s);
      return;
    }
  if (!(s->flags & CV_TCP_ACK))
    return;
  if (!(c->end[1] & CV_END_OF_SYN))
    {
      /* the connection is older than the policy of its ends */
      if (!c->acked[!direction])
	expect (c, !direction, s->seq);
    }
  else if (c->state != CV_STATE_ANSWERED || s->ack - word_at (&c->acked[direction]) > window (c, !direction))
    return;
  expect (c, direction, s->ack);
  if (direction)
    c->state = CV_STATE_ANSWERED;
  else if (c->state == CV_STATE_ANSWERED)
    c->state = CV_STATE_OPEN;
}

/* ---- closing ---- */

/* shakes_hands reports whether the connection has begun with a SYN and is not open yet. */
static bool
shakes_hands (const cv_connection_t *c)
{
  return (c->state == CV_STATE_NEW || c->state == CV_STATE_ANSWERED) && c->end[1] & CV_END_OF_SYN;
}

/* accepts_reset reports whether a receiver accepts this reset before the connection is open. The client accepts a reset that acknowledges its
 * SYN, or that follows the backend's SYN; the backend accepts one that follows the client's SYN. */
static bool
accepts_reset (const cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  if (!direction)
    return answers (c, s->seq);
  return (c->acked[0] && s->seq == word_at (&c->acked[0])) || (s->flags & CV_TCP_ACK && answers (c, s->ack));
}

static void
reset (cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  if (c->state == CV_STATE_CLOSED)
    return;
  if (shakes_hands (c))
    {
      if (accepts_reset (c, direction, s))
	c->state = CV_STATE_CLOSED;
      return;
    }
  uint32_t ahead = c->acked[!direction] ? s->seq - word_at (&c->acked[!direction]) : 0; /* distance from the receiver's last acknowledgement */
  if (!ahead)
    c->state = CV_STATE_CLOSED;
  else if (ahead <= window (c, direction))
    {
      /* data that the receiver has not acknowledged yet may have been in flight */
      c->state = CV_STATE_CLOSING;
      __atomic_fetch_and (&c->fins, (uint8_t) ~(CV_WENT_ON << direction), __ATOMIC_SEQ_CST);
      __atomic_fetch_or (&c->fins, (uint8_t) (CV_RESET << direction), __ATOMIC_SEQ_CST);
    }
}

/* finish processes a FIN. The FIN takes effect when its receiver acknowledges it. Before the connection is open, a FIN is ignored. */
static void
finish (cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  uint32_t ahead = c->acked[!direction] ? s->seq - word_at (&c->acked[!direction]) : 0;
  if (shakes_hands (c) || c->fins & CV_FIN << direction || ahead + CV_TCP_SEGMENT > window (c, direction) + CV_TCP_SEGMENT)
    return;
  c->end[direction] = s->seq + s->len + 1;
  __atomic_fetch_or (&c->fins, (uint8_t) (CV_FIN_SENT << direction), __ATOMIC_SEQ_CST);
}

static bool
both_finished (const cv_connection_t *c)
{
  return (__atomic_load_n (&c->fins, __ATOMIC_SEQ_CST) & 3) == 3;
}

/* finished processes the acknowledgement of a FIN by its receiver. */
static void
finished (cv_connection_t *c, uint32_t direction)
{
  __atomic_fetch_or (&c->fins, (uint8_t) (CV_FIN << direction), __ATOMIC_SEQ_CST);
  __atomic_fetch_and (&c->fins, (uint8_t) ~(CV_FIN_SENT << direction), __ATOMIC_SEQ_CST);
  if (c->state == CV_STATE_CLOSED)
    return;
  __atomic_store_n (&c->state, both_finished (c) ? CV_STATE_CLOSED : CV_STATE_CLOSING, __ATOMIC_SEQ_CST);
  if (both_finished (c))
    c->state = CV_STATE_CLOSED; /* another worker has processed the other FIN at the same moment */
}

/* go_on handles the case that the sender of a FIN or a reset continues, so the FIN or reset was forged. */
static void
go_on (cv_connection_t *c, uint32_t direction, uint8_t forged)
{
  uint8_t left = __atomic_and_fetch (&c->fins, (uint8_t) ~((forged | CV_WENT_ON) << direction), __ATOMIC_SEQ_CST);
  if (c->state == CV_STATE_CLOSING && !(left & (CV_FIN | CV_FIN << 1 | CV_RESET | CV_RESET << 1)))
    c->state = CV_STATE_OPEN;
  if (forged & CV_FIN)
    c->end[direction] = CV_END_OF_UNKNOWN_SCALE;
}

/* seems_to_go_on reports whether the sender of a FIN or a reset would not send this packet after it. Either of the two packets may be
 * forged. */
static bool
seems_to_go_on (const cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  uint32_t behind = s->seq + s->len - c->end[direction] - 1; /* distance of the last byte from the end of the FIN */
  return c->fins & CV_RESET << direction || (c->fins & (CV_FIN | CV_FIN_SENT) << direction && s->len && behind < CV_TCP_SEGMENT);
}

/* confirm processes an acknowledgement of the other end. A receiver that has accepted a FIN acknowledges nothing beyond it; one that has
 * accepted a reset sends no more acknowledgements. A forger would have to forge packets of both ends, and no packet from the network can
 * have the address of a pod of this node. */
static void
confirm (cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  if (c->fins & CV_RESET << direction)
    go_on (c, direction, CV_RESET);
  else if (c->fins & (CV_FIN | CV_FIN_SENT) << direction && s->ack - c->end[direction] - 1 < CV_TCP_WINDOW)
    go_on (c, direction, CV_FIN | CV_FIN_SENT);
}

static void
follow_end (cv_connection_t *c, uint32_t direction, const seg_t *s)
{
  if (s->flags & CV_TCP_ACK && c->fins & CV_FIN_SENT << !direction && s->ack == c->end[!direction])
    finished (c, !direction);
  if (s->flags & CV_TCP_ACK && c->fins & CV_WENT_ON << !direction)
    confirm (c, !direction, s);
  if (s->flags & CV_TCP_FIN)
    return;
  if (c->fins & CV_RESET << direction && !s->len && s->seq == word_at (&c->acked[!direction]))
    go_on (c, direction, CV_RESET); /* no data is in flight, and the number is difficult to guess */
  else if (seems_to_go_on (c, direction, s))
    __atomic_fetch_or (&c->fins, (uint8_t) (CV_WENT_ON << direction), __ATOMIC_SEQ_CST);
}

void
cv_follow_rare (const cv_packet_t *p, cv_connection_t *c, uint32_t direction)
{
  seg_t s = segment (p);
  if (s.flags & CV_TCP_RST)
    {
      reset (c, direction, &s);
      return;
    }
  if (c->state == CV_STATE_NEW || c->state == CV_STATE_ANSWERED)
    begin (p, c, direction, &s);
  else if (s.flags & CV_TCP_ACK && !(s.flags & CV_TCP_SYN))
    acknowledge (c, direction, s.tcp);
  if (s.flags & CV_TCP_SYN)
    return;
  if (c->fins)
    follow_end (c, direction, &s);
  if (s.flags & CV_TCP_FIN)
    finish (c, direction, &s);
}
