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
};

/* The first bytes of the hardware address of an ARP probe: locally administered. The other four are the number of the question. */
static const uint8_t asker[2] = { 0x02, 0xc7 };

/* The fields of ARP for Ethernet and IPv4. */
static const uint8_t arp_kind[6] = { 0, 1, 8, 0, 6, 4 };

static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

static uint32_t
write_arp (const cv_backlog_t *b, const uint8_t *packet, const cv_layer_t *l, uint8_t *q)
{
  memcpy (q, packet + 6, 6);
  memcpy (q + 6, asker, 2);
  cv_put32 (q + 8, b->number);
  cv_put16 (q + 12, 0x0806);
  uint8_t *arp = q + ETHERNET;
  memset (arp, 0, ARP);
  memcpy (arp, arp_kind, sizeof (arp_kind));
  cv_put16 (arp + 6, 1); /* request */
  memcpy (arp + 8, q + 6, 6);
  memcpy (arp + 24, packet + l->l3 + 12, 4);
  return ETHERNET + ARP;
}

static uint32_t
write_solicitation (cv_backlog_t *b, const uint8_t *packet, const cv_layer_t *l, uint8_t *q)
{
  const uint8_t group[13] = { 0xff, 0x02, [11] = 1, [12] = 0xff }; /* the solicited-node address without its last three bytes */
  uint8_t *ip = q + ETHERNET, *icmp = ip + IP6;
  memcpy (b->address, packet + l->l3 + 8, 16);
  memset (q, 0, ETHERNET + IP6 + DISCOVERY);
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
  cv_put16 (q, 0x3333);
  memcpy (q + 2, ip + 36, 4);
  memcpy (q + 6, asker, 2);
  cv_put32 (q + 8, b->number);
  cv_put16 (q + 12, 0x86dd);
  return ETHERNET + IP6 + DISCOVERY;
}

uint32_t
cv_question_write (cv_backlog_t *b, const uint8_t *packet, const cv_headers_t *h, uint8_t question[CV_QUESTION_LEN])
{
  const cv_layer_t *l = &h->layers[0];
  if (l->l3 != ETHERNET)
    return 0;
  const uint8_t *source = packet + l->l3 + (l->ip6 ? 8 : 12);
  if (l->ip6 ? source[0] == 0xff || (!source[0] && !source[1]) : source[0] == 0 || source[0] >= 224)
    return 0;
  b->number = (b->number & 0xff000000) | ((b->number + 1) & 0xffffff);
  b->ip6 = l->ip6;
  return l->ip6 ? write_solicitation (b, packet, l, question) : write_arp (b, packet, l, question);
}

bool
cv_question_answers (const cv_backlog_t *b, const uint8_t *packet, uint32_t len, bool *old)
{
  if (len < ETHERNET + ARP)
    return false;
  const uint8_t *in = packet + ETHERNET;
  switch (cv_get16 (packet + 12))
    {
    case 0x0806:
      if (memcmp (packet, asker, 2) || memcmp (in, arp_kind, sizeof (arp_kind)) || cv_get16 (in + 6) != 2)
	return false;
      *old = b->ip6 || cv_get32 (packet + 2) != b->number;
      return !*old;
    case 0x86dd:
      return b->ip6 && len >= ETHERNET + IP6 + DISCOVERY && in[6] == ICMP6 && !memcmp (in + 24, all_nodes, 16) && in[IP6] == ADVERTISEMENT &&
	     !memcmp (in + IP6 + 8, b->address, 16);
    default:
      return false;
    }
}
