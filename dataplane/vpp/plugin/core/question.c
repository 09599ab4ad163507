/* Questions to a kernel for its own address, and their answers: backlog.h.
 *
 * IPv4: an ARP probe (RFC 5227), whose sender has no IP address. The kernel sends its answer to the hardware address in the question, which
 * contains the question's number. IPv6: a solicitation as in duplicate address detection (RFC 4862). The kernel sends its answer to all nodes. */
#include "headers.h"
#include "backlog.h"

enum
{
  ETHERNET = 14,
  IP6 = 40,
  ARP = 28,
  DISCOVERY = 24, /* solicitation or advertisement without options */
  ICMP6 = 58,
  SOLICITATION = 135,
  ADVERTISEMENT = 136,
  COUNTER = 0xffffff, /* the part of a number that counts; the rest is the thread */
  RECENT = 64,	      /* questions whose answers may still arrive */
};

/* The first bytes of the hardware address of an ARP probe: locally administered. The other four are the number of the question. */
static const uint8_t asker[2] = { 0x02, 0xc7 };

/* The fields of ARP for Ethernet and IPv4. */
static const uint8_t arp_kind[6] = { 0, 1, 8, 0, 6, 4 };

static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

const uint8_t *
cv_question_source (const uint8_t *packet, const cv_headers_t *h)
{
  const cv_layer_t *l = &h->layers[0];
  const uint8_t *source = packet + l->l3 + (l->ip6 ? 8 : 12);
  bool one = l->ip6 ? source[0] != 0xff && (source[0] || source[1]) : source[0] && source[0] < 224;
  return l->l3 == ETHERNET && one ? source : NULL;
}

static uint32_t
write_arp (const cv_backlog_t *b, uint32_t number, uint8_t *q)
{
  uint8_t *arp = q + ETHERNET;
  cv_put16 (q + 12, 0x0806);
  memset (arp, 0, ARP);
  memcpy (arp, arp_kind, sizeof (arp_kind));
  cv_put16 (arp + 6, 1); /* request */
  memcpy (arp + 8, asker, 2);
  cv_put32 (arp + 10, number);
  memcpy (arp + 24, b->address, 4);
  return ETHERNET + ARP;
}

static uint32_t
write_solicitation (const cv_backlog_t *b, uint8_t *q)
{
  const uint8_t group[13] = { 0xff, 0x02, [11] = 1, [12] = 0xff }; /* the solicited-node address without its last three bytes */
  uint8_t *ip = q + ETHERNET, *icmp = ip + IP6;
  cv_put16 (q + 12, 0x86dd);
  memset (ip, 0, IP6 + DISCOVERY);
  ip[0] = 0x60;
  cv_put16 (ip + 4, DISCOVERY);
  ip[6] = ICMP6;
  ip[7] = 255;
  memcpy (ip + 24, group, 13);
  memcpy (ip + 37, b->address + 13, 3);
  icmp[0] = SOLICITATION;
  memcpy (icmp + 8, b->address, 16);
  const cv_layer_t layer = { .l3 = ETHERNET, .l4 = ETHERNET + IP6, .ip6 = true };
  uint8_t len[2] = { 0, DISCOVERY };
  uint16_t sum = cv_sum_finish (cv_pseudo_sum (&layer, q, ICMP6) + cv_sum (len, 2, 0) + cv_sum (icmp, DISCOVERY, 0));
  memcpy (icmp + 2, &sum, 2);
  return ETHERNET + IP6 + DISCOVERY;
}

/* The frame goes to the sender's hardware address, also for IPv6, and its own is always the same: a bridge behind the TAP neither copies it nor fills
 * its table. The answer to an ARP probe goes to the number of the question, so such a bridge copies it to all its ports. */
uint32_t
cv_question_write (const cv_backlog_t *b, uint32_t number, uint8_t question[CV_QUESTION_LEN])
{
  memcpy (question, b->hardware, 6);
  memset (question + 6, 0, 6);
  memcpy (question + 6, asker, 2);
  return b->ip6 ? write_solicitation (b, question) : write_arp (b, number, question);
}

/* arp_answer: only numbers of recent questions belong to answers. Other machines may have similar hardware addresses. */
static int32_t
arp_answer (const cv_backlog_t *b, const uint8_t *packet)
{
  const uint8_t *arp = packet + ETHERNET;
  if (memcmp (packet, asker, 2) || memcmp (arp, arp_kind, sizeof (arp_kind)) || cv_get16 (arp + 6) != 2)
    return CV_ANSWER_NOT;
  uint32_t number = cv_get32 (packet + 2), last = __atomic_load_n (&b->number, __ATOMIC_ACQUIRE), behind = (last - number) & COUNTER;
  if ((number ^ last) & ~COUNTER || behind >= RECENT)
    return CV_ANSWER_NOT;
  return behind < CV_QUESTIONS ? (int32_t) (number & COUNTER) : CV_ANSWER_OLD;
}

/* advertisement: it has no number, so it answers the last question. */
static int32_t
advertisement (const cv_backlog_t *b, const uint8_t *packet, uint64_t now)
{
  const uint8_t *ip = packet + ETHERNET, *icmp = ip + IP6;
  if (!b->ip6 || ip[6] != ICMP6 || memcmp (ip + 24, all_nodes, 16) || icmp[0] != ADVERTISEMENT || memcmp (icmp + 8, b->address, 16))
    return CV_ANSWER_NOT;
  uint32_t number = __atomic_load_n (&b->number, __ATOMIC_ACQUIRE) & COUNTER;
  bool pending = __atomic_load_n (&b->questions[number % CV_QUESTIONS].sent, __ATOMIC_RELAXED);
  if (now > b->sent + (pending ? CV_QUESTION_LATE : CV_QUESTION_LOST))
    return CV_ANSWER_NOT; /* the kernel may have sent it without a question */
  return (int32_t) number;
}

int32_t
cv_question_answer (const cv_backlog_t *b, const uint8_t *packet, uint32_t len, uint64_t now)
{
  if (!b->sent || len < ETHERNET + ARP)
    return CV_ANSWER_NOT;
  switch (cv_get16 (packet + 12))
    {
    case 0x0806:
      return arp_answer (b, packet);
    case 0x86dd:
      return len < ETHERNET + IP6 + DISCOVERY ? CV_ANSWER_NOT : advertisement (b, packet, now);
    default:
      return CV_ANSWER_NOT;
    }
}
