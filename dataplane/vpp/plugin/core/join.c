/* Joins consecutive TCP packets to one large packet, like a NIC or Linux' GRO. */
#include "headers.h"

enum
{
  L3 = 14,
  IP4_HEADER = 20,
  IP6_HEADER = 40,
  DONT_FRAGMENT = 0x4000,
  TCP_SEQ = 4,
  TCP_ACK = 8,
  TCP_OFFSET = 12,
  TCP_FLAGS = 13,
  TCP_WINDOW = 14,
  TCP_CHECKSUM = 16,
  TCP_URGENT = 18,
  ACK = 0x10,
  PSH = 0x08,
  LONGEST = 65535, /* maximum length of an IP packet */
};

static inline uint32_t
l4_of (const cv_join_t *k)
{
  return L3 + (k->ip6 ? IP6_HEADER : IP4_HEADER);
}

static bool
ip_is_plain (cv_join_t *k, uint32_t len)
{
  const uint8_t *h = k->data + L3;
  switch (cv_get16 (k->data + 12))
    {
    case 0x0800:
      k->ip6 = false;
      return h[0] == 0x45 && cv_get16 (h + 2) == len - L3 && cv_get16 (h + 6) == DONT_FRAGMENT && h[9] == CV_PROTO_IS_TCP;
    case 0x86dd:
      k->ip6 = true;
      return len > L3 + IP6_HEADER + 20 && h[0] >> 4 == 6 && (uint32_t) cv_get16 (h + 4) + IP6_HEADER == len - L3 && h[6] == CV_PROTO_IS_TCP;
    default:
      return false;
    }
}

bool
cv_join_read (cv_join_t *k, uint8_t *data, uint32_t len)
{
  if (len <= L3 + IP4_HEADER + 20 || len > LONGEST)
    return false;
  k->data = data;
  if (!ip_is_plain (k, len))
    return false;
  const uint8_t *tcp = data + l4_of (k);
  k->headers = l4_of (k) + (tcp[TCP_OFFSET] >> 4) * 4u;
  if (tcp[TCP_OFFSET] >> 4 < 5 || k->headers >= len || (tcp[TCP_FLAGS] & ~PSH) != ACK || tcp[TCP_URGENT] || tcp[TCP_URGENT + 1])
    return false;
  k->payload = k->gso_size = len - k->headers;
  k->next_seq = cv_get32 (tcp + TCP_SEQ) + k->payload;
  k->closed = tcp[TCP_FLAGS] & PSH;
  k->verified = false;
  k->n = 1;
  return true;
}

bool
cv_join_same (const cv_join_t *a, const cv_join_t *b)
{
  const uint8_t *x = a->data, *y = b->data;
  if (a->headers != b->headers || memcmp (x, y, L3))
    return false;
  x += L3;
  y += L3;
  if (a->ip6 ? memcmp (x, y, 4) || memcmp (x + 6, y + 6, 34) : memcmp (x, y, 2) || memcmp (x + 8, y + 8, 2) || memcmp (x + 12, y + 12, 8))
    return false;
  x = a->data + l4_of (a);
  y = b->data + l4_of (b);
  return !memcmp (x, y, 4) && !memcmp (x + TCP_ACK, y + TCP_ACK, 5) && !memcmp (x + TCP_WINDOW, y + TCP_WINDOW, 2) &&
	 !memcmp (x + 20, y + 20, a->headers - l4_of (a) - 20);
}

/* verify checks the checksums of a packet that has not been joined yet. */
static bool
verify (cv_join_t *k)
{
  if (k->verified)
    return true;
  const cv_layer_t l = { .l3 = L3, .ip6 = k->ip6 };
  uint32_t l4 = l4_of (k), n = k->headers + k->payload - l4;
  uint8_t len[2];
  cv_put16 (len, n);
  uint64_t sum = cv_pseudo_sum (&l, k->data, CV_PROTO_IS_TCP) + cv_sum (len, 2, 0) + cv_sum (k->data + l4, n, 0);
  k->verified = !cv_sum_finish (sum) && (k->ip6 || !cv_sum_finish (cv_sum (k->data + L3, IP4_HEADER, 0)));
  return k->verified;
}

bool
cv_join (cv_join_t *first, cv_join_t *k)
{
  uint32_t seq = k->next_seq - k->payload;
  if (first->closed || first->n == CV_JOINED || seq != first->next_seq || k->payload > first->gso_size ||
      first->headers - L3 + first->payload + k->payload > LONGEST || !verify (first) || !verify (k))
    return false;
  first->n++;
  first->payload += k->payload;
  first->next_seq = k->next_seq;
  first->closed = k->closed || k->payload < first->gso_size;
  first->data[l4_of (first) + TCP_FLAGS] |= k->data[l4_of (k) + TCP_FLAGS] & PSH;
  return true;
}

void
cv_join_finish (const cv_join_t *first)
{
  const cv_layer_t l = { .l3 = L3, .l4 = (uint16_t) l4_of (first), .ip6 = first->ip6 };
  uint8_t *p = first->data, len[2];
  uint32_t total = first->headers + first->payload;
  cv_layer_finish (&l, p, total);
  cv_put16 (len, total - l.l4);
  uint16_t sum = (uint16_t) ~cv_sum_finish (cv_pseudo_sum (&l, p, CV_PROTO_IS_TCP) + cv_sum (len, 2, 0));
  memcpy (p + l.l4 + TCP_CHECKSUM, &sum, 2);
}
