/* Packets from TAPs with offloads: each leaves this node as a single packet, or as a packet of several segments with verified
 * headers. This replaces VPP's own processing of the virtio header. The node is on the device-input arc of each TAP, before all
 * other features. It also controls the backlogs of TAPs. */
#include "offload.h"
#include "backlog.h"
#include <vnet/feature/feature.h>
#include <vnet/devices/virtio/virtio.h>

vlib_error_desc_t contiv_offload_errors[CONTIV_N_OFFLOAD] = {
#define _(name, text, severity) [CONTIV_##name] = { #name, text, VL_COUNTER_SEVERITY_##severity },
  CONTIV_FOREACH_OFFLOAD (_)
#undef _
};

/* virtio_header returns the header that the kernel has put before the frame. It is still in the buffer. */
static_always_inline const vnet_virtio_net_hdr_v1_t *
virtio_header (const vlib_buffer_t *b)
{
  return (const void *) (b->data + b->current_data - sizeof (vnet_virtio_net_hdr_v1_t));
}

/* take converts a packet for which work is left to a device into one that VPP can carry. It sets signal if it signals congestion by the packet. */
static contiv_offload_t
take (vlib_main_t *vm, vlib_buffer_t *b, cv_backlog_t *backlog, u64 now, u32 *counts, contiv_offload_t *signal)
{
  const vnet_virtio_net_hdr_v1_t *v = virtio_header (b);
  cv_virtio_t virtio = { v->flags, v->gso_type, v->hdr_len, v->gso_size, v->csum_start, v->csum_offset };
  u32 mtu = vnet_sw_interface_get_mtu (vnet_get_main (), vnet_buffer (b)->sw_if_index[VLIB_RX], VNET_MTU_L3);
  cv_piece_t pieces[CV_PIECES];
  cv_headers_t h;
  contiv_set_whole (b);
  switch (cv_offload_take (pieces, contiv_pieces (vm, b, pieces), &virtio, mtu, &h))
    {
    case CV_GSO_ONE:
      return CONTIV_COMPLETED;
    case CV_GSO_OK:
      contiv_set_large (b, &h, virtio.gso_size);
      vnet_buffer_offload_flags_set (b, VNET_BUFFER_OFFLOAD_F_TCP_CKSUM);
      if (backlog)
	*signal = contiv_backlog_large (vm, backlog, b, &h, now, counts);
      return CONTIV_LARGE;
    case CV_GSO_SIZE:
      return CONTIV_OFFLOAD_SIZE;
    default:
      return CONTIV_OFFLOAD_MALFORMED;
    }
}

/* is_answer reports whether a packet is an answer of the sender's kernel to the plugin. */
static_always_inline bool
is_answer (vlib_main_t *vm, cv_backlog_t *backlog, vlib_buffer_t *b, u64 now)
{
  return backlog && PREDICT_FALSE (cv_may_answer (vlib_buffer_get_current (b))) && contiv_backlog_answered (vm, backlog, b, now);
}

static_always_inline void
trace (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_buffer_t *b, contiv_offload_t result, contiv_offload_t signal)
{
  if (PREDICT_TRUE (!((node->flags & VLIB_NODE_FLAG_TRACE) && (b->flags & VLIB_BUFFER_IS_TRACED))))
    return;
  contiv_offload_trace_t *t = vlib_add_trace (vm, node, b, sizeof (*t));
  *t = (contiv_offload_trace_t){ .sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX],
				 .length = vlib_buffer_length_in_chain (vm, b),
				 .gso_size = vnet_buffer2 (b)->gso_size,
				 .result = result,
				 .signal = signal,
				 .is_large = b->flags & VNET_BUFFER_F_GSO };
}

VLIB_NODE_FN (contiv_offload_input_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  vlib_buffer_t *buffers[VLIB_FRAME_SIZE], **b = buffers;
  u16 nexts[VLIB_FRAME_SIZE];
  u32 *from = vlib_frame_vector_args (frame), n = frame->n_vectors, n_out = 0, counts[CONTIV_N_OFFLOAD] = { 0 };
  u64 now = contiv_microseconds (vm);
  vlib_get_buffers (vm, from, buffers, n);
  for (u32 i = 0; i < n; i++, b++)
    {
      u32 next = 0;
      contiv_offload_t result = CONTIV_N_OFFLOAD, signal = CONTIV_LARGE; /* no processing was necessary, no signal */
      const vnet_virtio_net_hdr_v1_t *v = virtio_header (b[0]);
      cv_backlog_t *backlog = contiv_backlog (vm, vnet_buffer (b[0])->sw_if_index[VLIB_RX]);
      if (is_answer (vm, backlog, b[0], now))
	{
	  trace (vm, node, b[0], CONTIV_ANSWERED, signal);
	  vlib_buffer_free_one (vm, from[i]); /* the pod did not send it, so it does not count as dropped */
	  counts[CONTIV_ANSWERED]++;
	  continue;
	}
      if (v->gso_type | (v->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
	result = take (vm, b[0], backlog, now, counts, &signal);
      if (result == CONTIV_OFFLOAD_MALFORMED || result == CONTIV_OFFLOAD_SIZE)
	b[0]->error = node->errors[result]; /* error-drop counts it */
      else
	{
	  vnet_feature_next (&next, b[0]);
	  if (result != CONTIV_N_OFFLOAD)
	    counts[result]++;
	}
      from[n_out] = from[i];
      nexts[n_out++] = (u16) next;
      trace (vm, node, b[0], result, signal);
    }
  counts[CONTIV_ASKED] = contiv_backlogs_frame_end (vm);
  for (u32 i = 0; i < CONTIV_N_OFFLOAD; i++)
    if (counts[i])
      vlib_node_increment_counter (vm, node->node_index, i, counts[i]);
  vlib_buffer_enqueue_to_next (vm, node, from, nexts, n_out);
  return n;
}

VLIB_REGISTER_NODE (contiv_offload_input_node) = {
  .name = "contiv-offload-input",
  .vector_size = sizeof (u32),
  .format_trace = format_contiv_offload_trace,
  .n_errors = CONTIV_N_OFFLOAD,
  .error_counters = contiv_offload_errors,
  .n_next_nodes = 1,
  .next_nodes = { [0] = "error-drop" },
};

VNET_FEATURE_INIT (contiv_offload_input, static) = { .arc_name = "device-input", .node_name = "contiv-offload-input" };

/* ---- the interfaces that have these nodes ---- */

static bool
is_tap (const vnet_hw_interface_t *hi)
{
  return hi->dev_class_index == virtio_device_class.index &&
	 pool_elt_at_index (virtio_main.interfaces, hi->dev_instance)->type == VIRTIO_IF_TYPE_TAP;
}

/* is_loopback reports whether an interface is a loopback. Loopbacks return packets to VPP. */
static bool
is_loopback (vnet_main_t *vnm, const vnet_hw_interface_t *hi)
{
  return !strcmp (vnet_get_device_class (vnm, hi->dev_class_index)->name, "Loopback");
}

/* Each interface gets the nodes when it is created, so that no packet of several segments reaches a driver that cannot segment
 * it. */
static clib_error_t *
contiv_offload_add_del (vnet_main_t *vnm, u32 sw_if_index, u32 is_add)
{
  const vnet_sw_interface_t *si = vnet_get_sw_interface (vnm, sw_if_index);
  if (si->type != VNET_SW_INTERFACE_TYPE_HARDWARE)
    return 0;
  if (!is_add)
    {
      contiv_backlogs_end (vnm->vlib_main, sw_if_index);
      return 0;
    }
  const vnet_hw_interface_t *hi = vnet_get_hw_interface (vnm, si->hw_if_index);
  int rv = 0;
  if (is_tap (hi))
    {
      contiv_backlogs_begin (vnm->vlib_main, sw_if_index);
      rv = vnet_feature_enable_disable ("device-input", "contiv-offload-input", sw_if_index, 1, 0, 0);
    }
  if (!rv && !is_loopback (vnm, hi))
    rv = vnet_feature_enable_disable ("interface-output", "contiv-offload-output", sw_if_index, 1, 0, 0);
  return rv ? clib_error_return (0, "contiv: offload nodes of %v: %d", hi->name, rv) : 0;
}

VNET_SW_INTERFACE_ADD_DEL_FUNCTION (contiv_offload_add_del);

u8 *
format_contiv_offload_trace (u8 *s, va_list *args)
{
  CLIB_UNUSED (vlib_main_t * vm) = va_arg (*args, vlib_main_t *);
  CLIB_UNUSED (vlib_node_t * node) = va_arg (*args, vlib_node_t *);
  const contiv_offload_trace_t *t = va_arg (*args, contiv_offload_trace_t *);
  s = format (s, "sw_if_index %u: %u bytes", t->sw_if_index, t->length);
  if (t->is_large)
    s = format (s, ", segments of %u", t->gso_size);
  if (t->segments)
    s = format (s, ", cut into %u", t->segments);
  if (t->result < CONTIV_N_OFFLOAD)
    s = format (s, ", %s", contiv_offload_errors[t->result].desc);
  return t->signal == CONTIV_CONGESTED_CUT || t->signal == CONTIV_CONGESTED_MARKED ? format (s, ", %s", contiv_offload_errors[t->signal].desc) : s;
}
