/* Functions that the files that translate packets share. */
#ifndef CONTIV_CV_REWRITE_H
#define CONTIV_CV_REWRITE_H

#include "internal.h"

static inline void
udp_checksum (uint8_t *field, uint16_t delta, bool ip6)
{
  uint16_t c;
  memcpy (&c, field, 2);
  if (!c && !ip6)
    return; /* no checksum */
  cv_checksum_add (field, delta);
  memcpy (&c, field, 2);
  if (!c)
    memset (field, 0xff, 2);
}

/* set_addresses writes both addresses of an IP header, and updates IPv4's checksum. */
static inline void
set_addresses (uint8_t *ip, const cv_addr_t *src, const cv_addr_t *dst, bool ip6, uint16_t ip_delta)
{
  if (ip6)
    {
      memcpy (ip + 8, src, 16);
      memcpy (ip + 24, dst, 16);
      return;
    }
  memcpy (ip + 12, src, 4);
  memcpy (ip + 16, dst, 4);
  cv_checksum_add (ip + 10, ip_delta);
}

/* delta_of returns the value that translation in a direction adds to a checksum. */
static inline uint16_t
delta_of (uint16_t delta, uint32_t direction)
{
  return direction ? (uint16_t) ~delta : delta;
}

/* translate_addresses writes the addresses of the other key into a packet that matched key[direction]. */
static inline void
translate_addresses (uint8_t *ip, const cv_connection_t *c, uint32_t direction, bool ip6)
{
  const cv_tuple_t *to = &c->key[!direction];
  set_addresses (ip, &to->dst, &to->src, ip6, delta_of (c->ip_delta, direction));
}

/* translate_ports does the same for the headers of TCP and UDP. */
static inline void
translate_ports (uint8_t *l4, uint8_t proto, bool checksum_offloaded, const cv_connection_t *c, uint32_t direction, bool ip6)
{
  const cv_tuple_t *to = &c->key[!direction];
  memcpy (l4, &to->dport, 2);
  memcpy (l4 + 2, &to->sport, 2);
  if (checksum_offloaded)
    return;
  uint16_t delta = delta_of (c->l4_delta, direction);
  if (proto == CV_PROTO_TCP)
    cv_checksum_add (l4 + 16, delta);
  else
    udp_checksum (l4 + 6, delta, ip6);
}

#endif
