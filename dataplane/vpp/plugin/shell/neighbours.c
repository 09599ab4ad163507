/* Decides which neighbour messages VPP may store: the core counts, and VPP's forwarding tables show which addresses are expected. All
 * functions here run in workers. */
#include "contiv.h"
#include <vnet/adj/adj.h>
#include <vnet/dpo/load_balance.h>
#include <vnet/fib/ip4_fib.h>
#include <vnet/fib/ip6_fib.h>

/* A function of VPP's library whose header is not installed. */
u32 ip6_ll_fib_get (u32 sw_if_index);

/* way_to returns the first path for packets to an address; NULL: the interface has no table of the family. */
static const dpo_id_t *
way_to (u32 sw_if_index, const cv_addr_t *a, bool ip6)
{
  const ip6_address_t *to = (const ip6_address_t *) a;
  u32 table, balance;
  if (!ip6)
    table = ip4_fib_table_get_index_for_sw_if_index (sw_if_index);
  else if (ip6_address_is_link_local_unicast (to))
    table = ip6_ll_fib_get (sw_if_index);
  else
    table = ip6_fib_table_get_index_for_sw_if_index (sw_if_index);
  if (table == ~0)
    return 0;
  balance = ip6 ? ip6_fib_table_fwding_lookup (table, to) : ip4_fib_forwarding_lookup (table, (const ip4_address_t *) a);
  return load_balance_get_bucket_i (load_balance_get (balance), 0);
}

/* is_stored reports whether VPP sends packets for an address to the neighbour that has this address. */
static bool
is_stored (u32 sw_if_index, const cv_addr_t *a, bool ip6)
{
  const dpo_id_t *way = way_to (sw_if_index, a, ip6);
  if (!way || way->dpoi_type != DPO_ADJACENCY)
    return false;
  const ip_adjacency_t *adj = adj_get (way->dpoi_index);
  const ip46_address_t *hop = &adj->sub_type.nbr.next_hop;
  return adj->rewrite_header.sw_if_index == sw_if_index && adj->ia_nh_proto == (ip6 ? FIB_PROTOCOL_IP6 : FIB_PROTOCOL_IP4) &&
	 (ip6 ? ip6_address_is_equal (&hop->ip6, (const ip6_address_t *) a) : hop->ip4.as_u32 == a->u32[0]);
}

static bool
is_awaited (const cv_addr_t *a, bool ip6)
{
  const contiv_neighbours_t *n = &contiv_main.neighbours;
  for (u32 i = 0; i < __atomic_load_n (&n->n_awaited[ip6], __ATOMIC_ACQUIRE); i++)
    if (!memcmp (&n->awaited[ip6][i], a, ip6 ? 16 : 4))
      return true;
  return false;
}

bool
contiv_may_store_neighbour (vlib_main_t *vm, u32 sw_if_index, const cv_addr_t *a, bool ip6)
{
  bool expected = is_stored (sw_if_index, a, ip6) || is_awaited (a, ip6);
  if (cv_may_store_neighbour (contiv_main.core, vm->thread_index, sw_if_index, a, ip6, expected, contiv_now (vm)))
    return true;
  __atomic_store_n (&contiv_main.neighbours.refused, 1, __ATOMIC_RELAXED);
  return false;
}

/* contiv_arp_stores: VPP stores senders that request one of its addresses or answer it, and updates its entry when a neighbour announces
 * the neighbour's own address. */
bool
contiv_arp_stores (u32 sw_if_index, u32 sender, u32 target)
{
  const dpo_id_t *way = way_to (sw_if_index, &(cv_addr_t){ .u32 = { target } }, false);
  return sender == target || (way && way->dpoi_type == DPO_RECEIVE);
}
