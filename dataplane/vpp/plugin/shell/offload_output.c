/* Sent packets: packets of several segments are segmented for a device that cannot do it, and segments are joined for a TAP. The node is
 * on the interface-output arc of all interfaces except loopbacks. */
#include "offload_join.h"
#include "place.h"
#include "uplink.h"
#include <vnet/ethernet/ethernet.h>
#include <vnet/ip/ip.h>

#define OUT_MAX	    (VLIB_FRAME_SIZE + CV_SEGMENTS)
#define BUFFERS_MAX (2 * CV_SEGMENTS + 64)
#define PIECES_MAX  66 /* maximum buffers of one segment */

/* A frame in progress. */
typedef struct
{
  vlib_main_t *vm;
  vlib_node_runtime_t *node;
  u32 n_out;
  place_t place; /* of the last packet */
  u32 sw_if_index; /* the interface for which plain is valid */
  bool plain;
  joiner_t joiner;
  contiv_outbox_t outbox;
  u32 counts[CONTIV_N_OFFLOAD];
  u32 out[OUT_MAX];
  u16 nexts[OUT_MAX];
} frame_t;

static_always_inline void
push (frame_t *f, u32 bi, u32 next)
{
  f->out[f->n_out] = bi;
  f->nexts[f->n_out++] = (u16) next;
}

/* emit forwards a single packet. */
static_always_inline void
emit (frame_t *f, contiv_uplink_t *u, u32 bi, u32 next)
{
  if (u)
    contiv_outbox_add (f->vm, &f->outbox, u, bi);
  else
    push (f, bi, next);
}

static_always_inline void
flush (frame_t *f, u32 room)
{
  if (f->n_out + room <= OUT_MAX)
    return;
  join_finish (&f->joiner);
  vlib_buffer_enqueue_to_next (f->vm, f->node, f->out, f->nexts, f->n_out);
  f->n_out = 0;
}

/* head sets the metadata of a new buffer for a segment of a packet. */
static void
head (frame_t *f, vlib_buffer_t *to, vlib_buffer_t *from, u32 bi)
{
  const u32 gone = VNET_BUFFER_F_GSO | VNET_BUFFER_F_OFFLOAD;
  to->flags |= from->flags & ~(VLIB_BUFFER_FLAGS_ALL | gone);
  to->current_config_index = from->current_config_index;
  to->flow_id = from->flow_id;
  clib_memcpy_fast (to->opaque, from->opaque, sizeof (to->opaque));
  clib_memcpy_fast (to->opaque2, from->opaque2, sizeof (to->opaque2));
  vnet_buffer (to)->oflags = 0;
  /* offsets are relative to the start of the buffer's data */
  vnet_buffer (to)->l2_hdr_offset -= from->current_data;
  vnet_buffer (to)->l3_hdr_offset -= from->current_data;
  vnet_buffer (to)->l4_hdr_offset -= from->current_data;
  if (PREDICT_FALSE (from->flags & VLIB_BUFFER_IS_TRACED))
    vlib_buffer_copy_trace_flag (f->vm, from, bi);
}

/* write_segment fills buffers with the next segment. It returns the number of buffers. */
static u32
write_segment (frame_t *f, cv_segmenter_t *s, vlib_buffer_t *from, const u32 *indices)
{
  u32 size = vlib_buffer_get_default_data_size (f->vm), len = cv_segment_len (s), n = 0;
  cv_piece_t pieces[PIECES_MAX];
  vlib_buffer_t *first = vlib_get_buffer (f->vm, indices[0]), *last = 0;
  for (u32 left = len; left; n++)
    {
      vlib_buffer_t *b = vlib_get_buffer (f->vm, indices[n]);
      b->current_data = 0;
      b->current_length = (u16) clib_min (left, size);
      left -= b->current_length;
      pieces[n] = (cv_piece_t){ b->data, b->current_length };
      if (last)
	{
	  last->next_buffer = indices[n];
	  last->flags |= VLIB_BUFFER_NEXT_PRESENT;
	}
      last = b;
    }
  first->total_length_not_including_first_buffer = len - first->current_length;
  first->flags |= VLIB_BUFFER_TOTAL_LENGTH_VALID;
  head (f, first, from, indices[0]);
  cv_segment_next (s, pieces, n);
  return n;
}

/* cut replaces a packet by its segments: by all of them, or by none. */
static contiv_offload_t
cut (frame_t *f, cv_segmenter_t *s, vlib_buffer_t *b, u32 next, u32 max_frame)
{
  u32 size = vlib_buffer_get_default_data_size (f->vm), len = cv_segment_len (s), each = (len + size - 1) / size;
  u32 n = each * s->n_segments, used = 0, indices[BUFFERS_MAX];
  if (len > max_frame || n > BUFFERS_MAX || each > PIECES_MAX || s->h.headers > size)
    return CONTIV_OFFLOAD_SIZE;
  u32 got = vlib_buffer_alloc (f->vm, indices, n);
  if (got != n)
    {
      vlib_buffer_free (f->vm, indices, got);
      return CONTIV_OFFLOAD_NO_BUFFER;
    }
  contiv_uplink_t *u = contiv_uplink (vnet_buffer (b)->sw_if_index[VLIB_TX]);
  flush (f, s->n_segments);
  while (cv_segment_len (s))
    {
      u32 n_segment = write_segment (f, s, b, indices + used);
      emit (f, u, indices[used], next);
      used += n_segment;
    }
  if (used < n)
    vlib_buffer_free (f->vm, indices + used, n - used); /* the last segment may need fewer buffers */
  f->counts[CONTIV_SEGMENTS] += s->n_segments;
  return CONTIV_SEGMENTED;
}

/* by_kernel sends a packet of several segments to the kernel, which segments it if necessary; CONTIV_N_OFFLOAD: the kernel cannot. */
static contiv_offload_t
by_kernel (frame_t *f, vlib_buffer_t *b, cv_segmenter_t *s, u32 max_frame)
{
  contiv_uplink_t *u = contiv_uplink (vnet_buffer (b)->sw_if_index[VLIB_TX]);
  if (!u || s->n_segments < 2)
    return CONTIV_N_OFFLOAD;
  if (s->h.headers + s->gso_size > max_frame)
    return CONTIV_OFFLOAD_SIZE;
  contiv_outbox_send (f->vm, &f->outbox);
  switch (contiv_uplink_large (f->vm, u, s))
    {
    case CONTIV_UPLINK_SENT:
      return CONTIV_UPLINK;
    case CONTIV_UPLINK_REFUSED:
      return CONTIV_OFFLOAD_REFUSED;
    default:
      return CONTIV_N_OFFLOAD;
    }
}

/* large forwards a packet of several segments. CONTIV_LARGE, CONTIV_COMPLETED: as one packet. */
static contiv_offload_t
large (frame_t *f, vlib_buffer_t *b, u32 next)
{
  cv_piece_t pieces[CV_PIECES];
  cv_segmenter_t s;
  vnet_main_t *vnm = vnet_get_main ();
  const vnet_hw_interface_t *hi = vnet_get_sup_hw_interface (vnm, vnet_buffer (b)->sw_if_index[VLIB_TX]);
  bool ethernet = hi->hw_class_index == ethernet_hw_interface_class.index;
  switch (cv_segment_begin (&s, pieces, contiv_pieces (f->vm, b, pieces), vnet_buffer2 (b)->gso_size, ethernet))
    {
    case CV_GSO_ONE:
      if (s.h.proto == IP_PROTOCOL_TCP)
	break;
      cv_tunnels_finish (&s); /* an ICMP error, copied from a large packet */
      contiv_set_whole (b);
      return CONTIV_COMPLETED;
    case CV_GSO_OK:
      break;
    case CV_GSO_SIZE:
      return CONTIV_OFFLOAD_SIZE;
    default:
      return CONTIV_OFFLOAD_MALFORMED;
    }
  if (s.n_segments > 1 && (hi->caps & VNET_HW_IF_CAP_TCP_GSO) && cv_segment_keep (&s))
    {
      contiv_set_large (b, &s.h, vnet_buffer2 (b)->gso_size);
      return CONTIV_LARGE;
    }
  contiv_offload_t result = by_kernel (f, b, &s, hi->max_frame_size);
  return result == CONTIV_N_OFFLOAD ? cut (f, &s, b, next, hi->max_frame_size) : result;
}

static void
trace (frame_t *f, vlib_buffer_t *b, contiv_offload_t result, u32 segments)
{
  contiv_offload_trace_t *t = vlib_add_trace (f->vm, f->node, b, sizeof (*t));
  *t = (contiv_offload_trace_t){ .sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_TX],
				 .length = vlib_buffer_length_in_chain (f->vm, b),
				 .gso_size = vnet_buffer2 (b)->gso_size,
				 .segments = segments,
				 .result = result,
				 .is_large = b->flags & VNET_BUFFER_F_GSO };
}

/* is_plain reports whether packets of an interface need no processing unless they are large or traced: the interface is neither a TAP
 * that accepts joined packets nor an uplink. */
static_always_inline bool
is_plain (frame_t *f, u32 sw_if_index)
{
  if (PREDICT_TRUE (sw_if_index == f->sw_if_index))
    return f->plain;
  f->sw_if_index = sw_if_index;
  return f->plain = !takes_joined (&f->joiner, sw_if_index) && !contiv_uplink (sw_if_index);
}

static_always_inline void
one (frame_t *f, vlib_buffer_t *b, u32 bi)
{
  u32 next = next_feature (&f->place, b), before = f->counts[CONTIV_SEGMENTS];
  contiv_offload_t result = CONTIV_N_OFFLOAD; /* no processing was necessary */
  if (PREDICT_TRUE (!(b->flags & (VNET_BUFFER_F_GSO | VLIB_BUFFER_IS_TRACED))) && is_plain (f, vnet_buffer (b)->sw_if_index[VLIB_TX]))
    {
      flush (f, 1);
      push (f, bi, next);
      return;
    }
  if (PREDICT_FALSE (b->flags & VNET_BUFFER_F_GSO))
    result = large (f, b, next);
  else if (join (&f->joiner, b, bi))
    return;
  if (PREDICT_FALSE ((f->node->flags & VLIB_NODE_FLAG_TRACE) && (b->flags & VLIB_BUFFER_IS_TRACED)))
    trace (f, b, result, f->counts[CONTIV_SEGMENTS] - before);
  flush (f, 1);
  switch (result)
    {
    case CONTIV_SEGMENTED:
    case CONTIV_UPLINK:
      f->counts[result]++;
      vlib_buffer_free_one (f->vm, bi);
      return;
    case CONTIV_OFFLOAD_MALFORMED:
    case CONTIV_OFFLOAD_SIZE:
    case CONTIV_OFFLOAD_NO_BUFFER:
    case CONTIV_OFFLOAD_REFUSED:
      b->error = f->node->errors[result]; /* error-drop counts it */
      push (f, bi, 0);
      return;
    case CONTIV_LARGE:
    case CONTIV_COMPLETED:
      f->counts[result]++;
      /* fall through */
    default:
      emit (f, result == CONTIV_LARGE ? 0 : contiv_uplink (vnet_buffer (b)->sw_if_index[VLIB_TX]), bi, next);
    }
}

VLIB_NODE_FN (contiv_offload_output_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  frame_t f;
  vlib_buffer_t *buffers[VLIB_FRAME_SIZE];
  u32 *from = vlib_frame_vector_args (frame), n = frame->n_vectors;
  f.vm = vm;
  f.node = node;
  f.n_out = f.outbox.n = f.outbox.n_iov = f.outbox.refused = 0;
  f.outbox.u = 0;
  place_start (&f.place);
  f.sw_if_index = ~0;
  join_start (&f.joiner);
  clib_memset_u32 (f.counts, 0, CONTIV_N_OFFLOAD);
  vlib_get_buffers (vm, from, buffers, n);
  for (u32 i = 0; i < n; i++)
    one (&f, buffers[i], from[i]);
  join_finish (&f.joiner);
  contiv_outbox_send (vm, &f.outbox);
  f.counts[CONTIV_OFFLOAD_REFUSED] += f.outbox.refused;
  f.counts[CONTIV_JOINED] = f.joiner.joined;
  if (f.n_out)
    vlib_buffer_enqueue_to_next (vm, node, f.out, f.nexts, f.n_out);
  for (u32 i = 0; i < CONTIV_N_OFFLOAD; i++)
    if (f.counts[i])
      vlib_node_increment_counter (vm, node->node_index, i, f.counts[i]);
  return n;
}

VLIB_REGISTER_NODE (contiv_offload_output_node) = {
  .name = "contiv-offload-output",
  .vector_size = sizeof (u32),
  .format_trace = format_contiv_offload_trace,
  .n_errors = CONTIV_N_OFFLOAD,
  .error_counters = contiv_offload_errors,
  .n_next_nodes = 1,
  .next_nodes = { [0] = "error-drop" },
};

VNET_FEATURE_INIT (contiv_offload_output, static) = { .arc_name = "interface-output", .node_name = "contiv-offload-output" };
