/* Access to header fields, for the files that segment packets. */
#ifndef CONTIV_HEADERS_H
#define CONTIV_HEADERS_H

#include <string.h>
#include "offload.h"

enum
{
  CV_PROTO_IN_IP4 = 4,
  CV_PROTO_IN_IP6 = 41,
  CV_PROTO_IS_TCP = 6,
  CV_PROTO_IS_UDP = 17,
};

static inline uint16_t
cv_get16 (const uint8_t *b)
{
  return (uint16_t) (b[0] << 8 | b[1]);
}

static inline void
cv_put16 (uint8_t *b, uint32_t v)
{
  b[0] = (uint8_t) (v >> 8);
  b[1] = (uint8_t) v;
}

static inline uint32_t
cv_get32 (const uint8_t *b)
{
  return (uint32_t) cv_get16 (b) << 16 | cv_get16 (b + 2);
}

static inline void
cv_put32 (uint8_t *b, uint32_t v)
{
  cv_put16 (b, v >> 16);
  cv_put16 (b + 2, v);
}

/* cv_pieces_len returns the length of a packet. */
uint32_t cv_pieces_len (const cv_piece_t *in, uint32_t n_in);
/* cv_headers_read parses the headers. It returns false if they are truncated, or not of a kind that VPP creates. */
bool cv_headers_read (cv_headers_t *h, const uint8_t *p, uint32_t len, bool ethernet);
/* cv_udp_read parses the headers of a UDP packet with any payload; they end with the UDP header, at l->l4. */
bool cv_udp_read (cv_layer_t *l, const uint8_t *p, uint32_t len);
/* cv_pseudo_sum returns the sum of the pseudo header of the innermost layer, without the length. */
uint64_t cv_pseudo_sum (const cv_layer_t *l, const uint8_t *p, uint8_t proto);
/* cv_layer_finish writes the length and the header checksum of a layer's IP header; total is the length of the packet in bytes. */
void cv_layer_finish (const cv_layer_t *l, uint8_t *p, uint32_t total);
/* cv_segment_finish writes the fields that differ between segments, up to the innermost IP header; payload is the sum of the segment's
 * payload. */
void cv_segment_finish (const cv_segmenter_t *s, uint8_t *p, uint32_t total, uint64_t payload);

#endif
