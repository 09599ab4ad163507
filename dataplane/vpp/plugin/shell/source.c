/* The nodes that only check sources: for multicast of both families, on interfaces of pods, and for ARP. */
#include "contiv.h"
#include <vnet/ethernet/arp_packet.h>
#include <vnet/feature/feature.h>

static_always_inline bool
check (vlib_main_t *vm, vlib_buffer_t *b, bool is_arp, u8 *reason)
{
  u32 sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX];
  cv_main_t *core = contiv_main.core;
  *reason = CV_SPOOFED;
  if (is_arp)
    {
      ethernet_arp_header_t *h = vlib_buffer_get_current (b);
      u32 sender = h->ip4_over_ethernet[0].ip4.as_u32;
      if (!cv_check_arp (core, vm->thread_index, sw_if_index, sender, h->ip4_over_ethernet[0].mac.bytes))
	return false;
      *reason = CONTIV_ERROR_NEIGHBOUR;
      return !contiv_arp_stores (sw_if_index, sender, h->ip4_over_ethernet[1].ip4.as_u32) ||
	     contiv_may_store_neighbour (vm, sw_if_index, &(cv_addr_t){ .u32 = { sender } }, false);
    }
  cv_packet_t p = { .ip = vlib_buffer_get_current (b), .len = b->current_length, .sw_if_index = sw_if_index };
  bool ok = cv_check_source (core, vm->thread_index, &p);
  *reason = p.reason;
  return ok;
}

static_always_inline uword
contiv_source (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame, bool is_arp)
{
  vlib_buffer_t *buffers[VLIB_FRAME_SIZE];
  u16 nexts[VLIB_FRAME_SIZE];
  u32 *from = vlib_frame_vector_args (frame), n = frame->n_vectors, passed = 0;

  vlib_get_buffers (vm, from, buffers, n);
  for (u32 i = 0; i < n; i++)
    {
      u32 next = 0;
      u8 reason;
      vlib_buffer_t *b = buffers[i];
      bool ok = check (vm, b, is_arp, &reason);
      if (ok)
	{
	  vnet_feature_next (&next, b);
	  passed++;
	}
      else
	b->error = node->errors[reason];
      nexts[i] = next;
      if (PREDICT_FALSE ((node->flags & VLIB_NODE_FLAG_TRACE) && (b->flags & VLIB_BUFFER_IS_TRACED)))
	{
	  contiv_trace_t *t = vlib_add_trace (vm, node, b, sizeof (*t));
	  *t = (contiv_trace_t){ .sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX],
				 .connection = CV_NO_INDEX,
				 .verdict = ok ? CV_VERDICT_PASS : CV_VERDICT_DROP,
				 .reason = ok ? CV_PASSED : reason };
	}
    }
  vlib_buffer_enqueue_to_next (vm, node, from, nexts, n);
  if (passed)
    vlib_node_increment_counter (vm, node->node_index, CV_PASSED, passed);
  cv_quiesce (contiv_main.core, vm->thread_index);
  return n;
}

VLIB_NODE_FN (contiv_ip4_multicast_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  return contiv_source (vm, node, frame, false);
}

VLIB_NODE_FN (contiv_ip6_multicast_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  return contiv_source (vm, node, frame, false);
}

VLIB_NODE_FN (contiv_arp_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  return contiv_source (vm, node, frame, true);
}

#define source_node(node_name)                                                                                                   \
  .name = node_name, .vector_size = sizeof (u32), .format_trace = format_contiv_trace, .n_errors = CONTIV_N_ERRORS,              \
  .error_counters = contiv_errors, .n_next_nodes = 1, .next_nodes = { [0] = "error-drop" }

VLIB_REGISTER_NODE (contiv_ip4_multicast_node) = { source_node ("contiv-ip4-multicast") };
VLIB_REGISTER_NODE (contiv_ip6_multicast_node) = { source_node ("contiv-ip6-multicast") };
VLIB_REGISTER_NODE (contiv_arp_node) = { source_node ("contiv-arp") };

VNET_FEATURE_INIT (contiv_ip4_multicast, static) = { .arc_name = "ip4-multicast", .node_name = "contiv-ip4-multicast" };
VNET_FEATURE_INIT (contiv_ip6_multicast, static) = { .arc_name = "ip6-multicast", .node_name = "contiv-ip6-multicast" };
VNET_FEATURE_INIT (contiv_arp, static) = { .arc_name = "arp", .node_name = "contiv-arp" };
