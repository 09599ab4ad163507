/* Parsing of the headers of packets to be segmented: Ethernet, IP, the tunnels that VPP adds around them, TCP. */
#include "headers.h"

enum
{
  ETHERTYPE_IP4 = 0x0800,
  ETHERTYPE_IP6 = 0x86dd,
  ETHERTYPE_VLAN = 0x8100,
  ETHERTYPE_QINQ = 0x88a8,
  ETHERNET_HEADER = 14,
  VLAN_TAG = 4,
  MAX_VLANS = 2,
  UDP_AND_VXLAN = 16,
  MAX_EXTENSIONS = 8,
  NH_HOP_BY_HOP = 0,
  NH_ROUTING = 43,
  NH_DESTINATION = 60,
  NH_ETHERNET = 143,
};

/* State of a parser: everything before at has been read. */
typedef struct
{
  const uint8_t *p;
  uint32_t len, at;
} reader_t;

static inline bool
has (const reader_t *r, uint32_t n)
{
  return r->at + n <= r->len;
}

uint32_t
cv_pieces_len (const cv_piece_t *in, uint32_t n_in)
{
  uint32_t len = 0;
  for (uint32_t i = 0; i < n_in; i++)
    len += in[i].len;
  return len;
}

/* ethernet reads the Ethernet header and VLAN tags; ip6 returns the protocol that follows. */
static bool
ethernet (reader_t *r, bool *ip6)
{
  uint32_t type_at = r->at + 12;
  if (!has (r, ETHERNET_HEADER))
    return false;
  r->at += ETHERNET_HEADER;
  for (int n = 0;; n++)
    {
      uint16_t type = cv_get16 (r->p + type_at);
      if (type == ETHERTYPE_IP4 || type == ETHERTYPE_IP6)
	{
	  *ip6 = type == ETHERTYPE_IP6;
	  return true;
	}
      if ((type != ETHERTYPE_VLAN && type != ETHERTYPE_QINQ) || n == MAX_VLANS || !has (r, VLAN_TAG))
	return false;
      type_at += VLAN_TAG;
      r->at += VLAN_TAG;
    }
}

static bool
ip4 (reader_t *r, cv_layer_t *l, uint8_t *proto)
{
  const uint8_t *h = r->p + r->at;
  if (!has (r, 20) || h[0] >> 4 != 4 || (h[0] & 15) < 5 || !has (r, (h[0] & 15) * 4u))
    return false;
  if (cv_get16 (h + 6) & 0x3fff) /* a fragment */
    return false;
  *proto = h[9];
  r->at += (h[0] & 15) * 4u;
  l->l4 = (uint16_t) r->at;
  return true;
}

/* ip6 reads the IPv6 header and those extension headers that are the same in each segment. An innermost routing
 * header would change the pseudo header: routing returns whether there was one. */
static bool
ip6 (reader_t *r, cv_layer_t *l, uint8_t *proto, bool *routing)
{
  const uint8_t *h = r->p + r->at;
  if (!has (r, 40) || h[0] >> 4 != 6)
    return false;
  *proto = h[6];
  *routing = false;
  r->at += 40;
  for (int n = 0; *proto == NH_HOP_BY_HOP || *proto == NH_ROUTING || *proto == NH_DESTINATION; n++)
    {
      h = r->p + r->at;
      if (n == MAX_EXTENSIONS || !has (r, 8) || !has (r, (h[1] + 1u) * 8))
	return false;
      *routing = *routing || *proto == NH_ROUTING;
      *proto = h[0];
      r->at += (h[1] + 1u) * 8;
    }
  l->l4 = (uint16_t) r->at;
  return true;
}

typedef enum
{
  INNER_NONE,
  INNER_IP4,
  INNER_IP6,
  INNER_ETHERNET,
  INNER_BAD,
} inner_t;

/* inside returns the kind of packet that a layer carries if the layer is a tunnel. */
static inner_t
inside (reader_t *r, cv_layer_t *l, uint8_t proto)
{
  switch (proto)
    {
    case CV_PROTO_IN_IP4:
      return INNER_IP4;
    case CV_PROTO_IN_IP6:
      return INNER_IP6;
    case NH_ETHERNET:
      return INNER_ETHERNET;
    case CV_PROTO_IS_UDP:
      if (!has (r, UDP_AND_VXLAN) || r->p[r->at + 8] != 8) /* only the flag for a valid VNI is set */
	return INNER_BAD;
      l->udp = true;
      r->at += UDP_AND_VXLAN;
      return INNER_ETHERNET;
    default:
      return INNER_NONE;
    }
}

static bool
transport (reader_t *r, cv_headers_t *h, bool routing)
{
  if (h->proto == CV_PROTO_IS_TCP)
    {
      if (routing || !has (r, 20))
	return false;
      uint32_t len = (r->p[r->at + 12] >> 4) * 4u;
      if (len < 20 || !has (r, len))
	return false;
      r->at += len;
    }
  if (r->at > CV_SEGMENT_HEADERS)
    return false;
  h->headers = (uint16_t) r->at;
  return true;
}

bool
cv_headers_read (cv_headers_t *h, const uint8_t *p, uint32_t len, bool is_ethernet)
{
  reader_t r = { p, len, 0 };
  bool is6 = len && p[0] >> 4 == 6;
  inner_t inner = is_ethernet ? INNER_ETHERNET : is6 ? INNER_IP6 : INNER_IP4;
  for (h->n_layers = 0; h->n_layers < CV_LAYERS;)
    {
      cv_layer_t *l = &h->layers[h->n_layers++];
      bool routing = false;
      is6 = inner == INNER_IP6;
      if (inner == INNER_ETHERNET && !ethernet (&r, &is6))
	return false;
      *l = (cv_layer_t){ .l3 = (uint16_t) r.at, .ip6 = is6 };
      if (is6 ? !ip6 (&r, l, &h->proto, &routing) : !ip4 (&r, l, &h->proto))
	return false;
      inner = inside (&r, l, h->proto);
      if (inner == INNER_BAD)
	return false;
      if (inner == INNER_NONE)
	return transport (&r, h, routing);
    }
  return false;
}

bool
cv_udp_read (cv_layer_t *l, const uint8_t *p, uint32_t len)
{
  reader_t r = { p, len, 0 };
  bool is6, routing = false;
  uint8_t proto;
  if (!ethernet (&r, &is6))
    return false;
  *l = (cv_layer_t){ .l3 = (uint16_t) r.at, .ip6 = is6, .udp = true };
  if (is6 ? !ip6 (&r, l, &proto, &routing) : !ip4 (&r, l, &proto))
    return false;
  return proto == CV_PROTO_IS_UDP && !routing && has (&r, 8) && r.at + 8 <= CV_SEGMENT_HEADERS;
}

uint64_t
cv_pseudo_sum (const cv_layer_t *l, const uint8_t *p, uint8_t proto)
{
  uint8_t last[2] = { 0, proto };
  return cv_sum (last, 2, 0) + (l->ip6 ? cv_sum (p + l->l3 + 8, 32, 0) : cv_sum (p + l->l3 + 12, 8, 0));
}

void
cv_layer_finish (const cv_layer_t *l, uint8_t *p, uint32_t total)
{
  uint8_t *h = p + l->l3;
  if (l->ip6)
    {
      cv_put16 (h + 4, total - l->l3 - 40);
      return;
    }
  cv_put16 (h + 2, total - l->l3);
  memset (h + 10, 0, 2);
  uint16_t sum = cv_sum_finish (cv_sum (h, (h[0] & 15) * 4u, 0));
  memcpy (h + 10, &sum, 2);
}
