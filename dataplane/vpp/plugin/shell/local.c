/* Drops IPv6 fragments to VPP's own addresses. VPP 25.10 leaks buffers when it reassembles malformed fragments, so that any pod could
 * exhaust the buffer pool. Forwarded packets are not reassembled. */
#include "contiv.h"
#include <vnet/ip/ip.h>
#include <vnet/ip/reass/ip6_full_reass.h>

static uword
contiv_ip6_local_fragment (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  vlib_buffer_t *buffers[VLIB_FRAME_SIZE];
  u32 *from = vlib_frame_vector_args (frame), n = frame->n_vectors;
  vlib_get_buffers (vm, from, buffers, n);
  for (u32 i = 0; i < n; i++)
    {
      vlib_buffer_t *b = buffers[i];
      b->error = node->errors[CONTIV_ERROR_LOCAL_FRAGMENT];
      if (PREDICT_FALSE ((node->flags & VLIB_NODE_FLAG_TRACE) && (b->flags & VLIB_BUFFER_IS_TRACED)))
	{
	  contiv_trace_t *t = vlib_add_trace (vm, node, b, sizeof (*t));
	  *t = (contiv_trace_t){ .sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX],
				 .connection = CV_NO_INDEX,
				 .verdict = CV_VERDICT_DROP,
				 .reason = CONTIV_ERROR_LOCAL_FRAGMENT,
				 .fragment = true };
	}
    }
  vlib_buffer_enqueue_to_single_next (vm, node, from, 0, n);
  return n;
}

VLIB_REGISTER_NODE (contiv_ip6_local_fragment_node) = {
  .function = contiv_ip6_local_fragment,
  .name = "contiv-ip6-local-fragment",
  .vector_size = sizeof (u32),
  .format_trace = format_contiv_trace,
  .n_errors = CONTIV_N_ERRORS,
  .error_counters = contiv_errors,
  .n_next_nodes = 1,
  .next_nodes = { [0] = "error-drop" },
};

static clib_error_t *
contiv_local_init (vlib_main_t *vm)
{
  ip6_local_full_reass_enable_disable (0);
  ip6_register_protocol (IP_PROTOCOL_IPV6_FRAGMENTATION, contiv_ip6_local_fragment_node.index);
  return 0;
}

VLIB_INIT_FUNCTION (contiv_local_init) = { .runs_after = VLIB_INITS ("ip6_full_reass_init_function") };
