/* Functions that the offload nodes share: offload_input.c and offload_output.c. */
#ifndef CONTIV_OFFLOAD_SHELL_H
#define CONTIV_OFFLOAD_SHELL_H

#include "contiv.h"
#include "../core/offload.h"

#define CONTIV_FOREACH_OFFLOAD(_)                                                                                                \
  _ (COMPLETED, "checksums completed", INFO)                                                                                     \
  _ (LARGE, "packets of several segments", INFO)                                                                                 \
  _ (SEGMENTED, "packets cut into segments", INFO)                                                                               \
  _ (SEGMENTS, "segments", INFO)                                                                                                 \
  _ (UPLINK, "packets that the kernel may cut", INFO)                                                                            \
  _ (JOINED, "segments joined to one before", INFO)                                                                              \
  _ (ASKED, "questions for the delay of a TAP", INFO)                                                                       \
  _ (ANSWERED, "answers to these questions", INFO)                                                                               \
  _ (CONGESTED_MARKED, "packets marked to slow a sender", INFO)                                                             \
  _ (CONGESTED_CUT, "segments removed to slow a sender", INFO)                                                              \
  _ (OFFLOAD_MALFORMED, "offload that does not fit", ERROR)                                                           \
  _ (OFFLOAD_SIZE, "segments of a forbidden size", ERROR)                                                                        \
  _ (OFFLOAD_NO_BUFFER, "no buffers for segments", ERROR)                                                                        \
  _ (OFFLOAD_REFUSED, "refused by the uplink's device", ERROR)                                                                   \
  _ (OFFLOAD_NO_ROOM, "large packets for which the kernel had no room", ERROR)

typedef enum
{
#define _(name, text, severity) CONTIV_##name,
  CONTIV_FOREACH_OFFLOAD (_)
#undef _
    CONTIV_N_OFFLOAD
} contiv_offload_t;

extern vlib_error_desc_t contiv_offload_errors[CONTIV_N_OFFLOAD];

typedef struct
{
  u32 sw_if_index, length, segments;
  u16 gso_size;
  u8 result; /* of contiv_offload_t; CONTIV_N_OFFLOAD: none */
  u8 signal; /* CONTIV_CONGESTED_*, or another value: none */
  bool is_large;
} contiv_offload_trace_t;
format_function_t format_contiv_offload_trace;

/* contiv_pieces lists the buffers of a packet; 0: too many. */
static_always_inline u32
contiv_pieces (vlib_main_t *vm, vlib_buffer_t *b, cv_piece_t *pieces)
{
  for (u32 n = 0; n < CV_PIECES;)
    {
      pieces[n++] = (cv_piece_t){ vlib_buffer_get_current (b), b->current_length };
      if (!(b->flags & VLIB_BUFFER_NEXT_PRESENT))
	return n;
      b = vlib_get_buffer (vm, b->next_buffer);
    }
  return 0;
}

/* contiv_set_large marks a packet of several segments: it sets the fields that VPP's MTU check and its drivers read. The
 * header offsets in h are relative to the current start of the buffer's data. */
static_always_inline void
contiv_set_large (vlib_buffer_t *b, const cv_headers_t *h, u16 gso_size)
{
  const cv_layer_t *l = &h->layers[h->n_layers - 1];
  b->flags &= ~(VNET_BUFFER_F_IS_IP4 | VNET_BUFFER_F_IS_IP6);
  b->flags |= VNET_BUFFER_F_GSO | VNET_BUFFER_F_L2_HDR_OFFSET_VALID | VNET_BUFFER_F_L3_HDR_OFFSET_VALID |
	      VNET_BUFFER_F_L4_HDR_OFFSET_VALID | (l->ip6 ? VNET_BUFFER_F_IS_IP6 : VNET_BUFFER_F_IS_IP4);
  vnet_buffer (b)->l2_hdr_offset = b->current_data;
  vnet_buffer (b)->l3_hdr_offset = b->current_data + l->l3;
  vnet_buffer (b)->l4_hdr_offset = b->current_data + l->l4;
  vnet_buffer2 (b)->gso_size = gso_size;
  vnet_buffer2 (b)->gso_l4_hdr_sz = h->headers - l->l4;
}

/* contiv_set_whole marks a packet for which no work is left to a device. */
static_always_inline void
contiv_set_whole (vlib_buffer_t *b)
{
  b->flags &= ~(VNET_BUFFER_F_GSO | VNET_BUFFER_F_OFFLOAD);
  vnet_buffer (b)->oflags = 0;
}

#endif
