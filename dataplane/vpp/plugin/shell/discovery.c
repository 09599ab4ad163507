/* Checks neighbour discovery messages on all interfaces, before VPP's own nodes: VPP 25.10 stores every claim of a solicitation or an
 * advertisement, even that one of VPP's own addresses belongs to a neighbour, or that a neighbour has the hardware address of a group.
 * Router solicitations are treated like neighbour solicitations, because VPP stores their sources, too. */
#include "contiv.h"
#include <vnet/fib/fib_entry.h>
#include <vnet/fib/ip6_fib.h>
#include <vnet/ip/icmp6.h>
#include <vnet/ip/ip6.h>

typedef enum
{
  DISCOVERY_DROP,
  DISCOVERY_SOLICITATION,
  DISCOVERY_ADVERTISEMENT,
  DISCOVERY_ROUTER,
  DISCOVERY_N_NEXT,
} discovery_next_t;

/* A function of VPP's library whose header is not installed. It returns NULL if the interface has no IPv6. */
const ip6_address_t *ip6_get_link_local_address (u32 sw_if_index);

/* is_own reports whether an address belongs to VPP: to the interface if the address is link-local, otherwise to any interface in the
 * interface's table. */
static bool
is_own (u32 sw_if_index, const ip6_address_t *a)
{
  const ip6_address_t *link_local = ip6_get_link_local_address (sw_if_index);
  if (ip6_address_is_link_local_unicast (a))
    return link_local && ip6_address_is_equal (link_local, a);
  u32 table = ip6_fib_table_get_index_for_sw_if_index (sw_if_index);
  if (table == ~0)
    return false;
  fib_node_index_t entry = ip6_fib_table_lookup_exact_match (table, a, 128);
  return entry != FIB_NODE_INDEX_INVALID && fib_entry_get_flags (entry) & FIB_ENTRY_FLAG_LOCAL;
}

static discovery_next_t
judge (vlib_main_t *vm, vlib_buffer_t *b, u32 *error)
{
  const u8 *packet = vlib_buffer_get_current (b);
  u32 sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX];
  cv_claim_t claim;
  *error = CONTIV_ERROR_CLAIM;
  if (!cv_read_claim (packet, b->current_length, &claim) || (claim.hardware && cv_claims_group (claim.hardware)) ||
      is_own (sw_if_index, (ip6_address_t *) &claim.address))
    return DISCOVERY_DROP;
  *error = CONTIV_ERROR_NEIGHBOUR;
  if (claim.stored && !contiv_may_store_neighbour (vm, sw_if_index, &claim.address, true))
    return DISCOVERY_DROP;
  *error = CV_PASSED;
  switch (packet[sizeof (ip6_header_t)])
    {
    case ICMP6_router_solicitation:
      return DISCOVERY_ROUTER;
    case ICMP6_neighbor_solicitation:
      return DISCOVERY_SOLICITATION;
    default:
      return DISCOVERY_ADVERTISEMENT;
    }
}

static uword
contiv_discovery (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  vlib_buffer_t *buffers[VLIB_FRAME_SIZE];
  u16 nexts[VLIB_FRAME_SIZE];
  u32 *from = vlib_frame_vector_args (frame), n = frame->n_vectors, error;
  vlib_get_buffers (vm, from, buffers, n);
  for (u32 i = 0; i < n; i++)
    {
      vlib_buffer_t *b = buffers[i];
      nexts[i] = judge (vm, b, &error);
      if (nexts[i] == DISCOVERY_DROP)
	b->error = node->errors[error];
      if (PREDICT_FALSE ((node->flags & VLIB_NODE_FLAG_TRACE) && (b->flags & VLIB_BUFFER_IS_TRACED)))
	{
	  contiv_trace_t *t = vlib_add_trace (vm, node, b, sizeof (*t));
	  *t = (contiv_trace_t){ .sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX],
				 .connection = CV_NO_INDEX,
				 .verdict = nexts[i] ? CV_VERDICT_PASS : CV_VERDICT_DROP,
				 .reason = (u8) error };
	}
    }
  vlib_buffer_enqueue_to_next (vm, node, from, nexts, n);
  cv_quiesce (contiv_main.core, vm->thread_index);
  return n;
}

VLIB_REGISTER_NODE (contiv_discovery_node) = {
  .function = contiv_discovery,
  .name = "contiv-discovery",
  .vector_size = sizeof (u32),
  .format_trace = format_contiv_trace,
  .n_errors = CONTIV_N_ERRORS,
  .error_counters = contiv_errors,
  .n_next_nodes = DISCOVERY_N_NEXT,
  .next_nodes = { [DISCOVERY_DROP] = "error-drop",
		  [DISCOVERY_SOLICITATION] = "icmp6-neighbor-solicitation",
		  [DISCOVERY_ADVERTISEMENT] = "icmp6-neighbor-advertisement",
		  [DISCOVERY_ROUTER] = "icmp6-router-solicitation" },
};

static clib_error_t *
contiv_discovery_init (vlib_main_t *vm)
{
  icmp6_register_type (vm, ICMP6_router_solicitation, contiv_discovery_node.index);
  icmp6_register_type (vm, ICMP6_neighbor_solicitation, contiv_discovery_node.index);
  icmp6_register_type (vm, ICMP6_neighbor_advertisement, contiv_discovery_node.index);
  return 0;
}

VLIB_INIT_FUNCTION (contiv_discovery_init) = { .runs_after = VLIB_INITS ("ip6_nd_init", "ip6_ra_init") };
