/* Signals to the sender of a TCP packet of several segments that it should send more slowly: codel.h. */
#include "headers.h"
#include "codel.h"

enum
{
  TCP_FLAGS = 13,
  FIN = 0x01,
  SYN = 0x02,
  RST = 0x04,
  PSH = 0x08,
  URG = 0x20,
  ECN = 3, /* not used, used (two values), congestion */
};

/* mark sets "congestion experienced" if the packet says that both ends use ECN. */
static bool
mark (uint8_t *p, const cv_layer_t *l, uint32_t total)
{
  uint8_t *ip = p + l->l3;
  if (l->ip6)
    {
      if (!(ip[1] >> 4 & ECN))
	return false;
      ip[1] |= ECN << 4;
      return true;
    }
  if (!(ip[1] & ECN))
    return false;
  ip[1] |= ECN;
  cv_layer_finish (l, p, total);
  return true;
}

cv_congested_t
cv_congested (uint8_t *p, const cv_headers_t *h, uint32_t total, uint32_t gso_size, bool late, uint32_t *cut)
{
  const cv_layer_t *l = &h->layers[0];
  if (h->n_layers != 1 || h->proto != CV_PROTO_IS_TCP || total <= h->headers || !gso_size)
    return CV_CONGESTED_NOT;
  if (mark (p, l, total))
    return CV_CONGESTED_MARKED;
  uint32_t payload = total - h->headers, segments = (payload - 1) / gso_size + 1;
  if (segments < 3 || p[l->l4 + TCP_FLAGS] & (FIN | SYN | RST | URG | (late ? 0 : PSH))) /* at least two segments remain */
    return CV_CONGESTED_NOT;
  *cut = payload - (segments - 1) * gso_size;
  cv_layer_finish (l, p, total - *cut);
  return CV_CONGESTED_CUT;
}
