/* Keeps VPP's neighbour table below its limit. VPP 25.10 has 50,000 places for each family. When they are full it also rejects static
 * entries: those of new pods and nodes. Therefore the plugin removes the oldest dynamic entries. It also frees memory that VPP does not
 * free: the list elements of removed neighbours. */
#include "contiv.h"
#include <vnet/adj/adj.h>
#include <vnet/ip-neighbor/ip_neighbor.h>
#include <vppinfra/llist.h>

#define NEIGHBOURS_MAX 16384 /* dynamic entries per family: each needs 1.4 kB of heap, and 56 bytes of the statistics segment for each thread */

/* VPP's list of dynamic entries, newest first in each family. The declarations are not in an installed header. */
typedef struct
{
  clib_llist_anchor_t anchor;
  index_t neighbour;
} element_t;
extern element_t *ip_neighbor_elt_pool;
extern index_t ip_neighbor_list_head[N_AF];

/* is_used reports whether routes or nodes need a neighbour. */
static bool
is_used (const ip_neighbor_t *n)
{
  const ip_address_t *a = ip_neighbor_get_ip (n);
  bool ip6 = ip_neighbor_get_af (n) == AF_IP6;
  cv_addr_t of = { 0 };
  clib_memcpy (&of, ip6 ? (void *) &ip_addr_v6 (a) : (void *) &ip_addr_v4 (a), ip6 ? 16 : 4);
  fib_protocol_t proto = ip6 ? FIB_PROTOCOL_IP6 : FIB_PROTOCOL_IP4;
  adj_index_t adj = adj_nbr_find (proto, fib_proto_to_link (proto), &ip_addr_46 (a), ip_neighbor_get_sw_if_index (n));
  bool routed = adj != ADJ_INDEX_INVALID && fib_node_get_n_children (FIB_NODE_TYPE_ADJ, adj) > 1; /* one child is the neighbour's own route */
  return routed || cv_is_node (contiv_main.core, &of, ip6);
}

/* remove_oldest removes n neighbours of a family, starting at the end of the list. */
static void
remove_oldest (ip_address_family_t family, u32 n)
{
  element_t *pool = ip_neighbor_elt_pool;
  u32 head = ip_neighbor_list_head[family];
  for (u32 i = pool[head].anchor.prev; n && i != head;)
    {
      const ip_neighbor_t *neighbour = ip_neighbor_get (pool[i].neighbour);
      i = pool[i].anchor.prev;
      if (is_used (neighbour))
	continue;
      ip_address_t a = *ip_neighbor_get_ip (neighbour);
      ip_neighbor_del (&a, ip_neighbor_get_sw_if_index (neighbour));
      n--;
    }
}

/* count counts the neighbours of each family, and frees elements that are in no list. */
static void
count (u32 counts[N_AF])
{
  u32 *gone = 0, *i;
  element_t *e;
  pool_foreach (e, ip_neighbor_elt_pool)
    {
      u32 index = e - ip_neighbor_elt_pool;
      if (e->anchor.next == CLIB_LLIST_INVALID_INDEX)
	vec_add1 (gone, index);
      else if (index != ip_neighbor_list_head[AF_IP4] && index != ip_neighbor_list_head[AF_IP6])
	counts[ip_neighbor_get_af (ip_neighbor_get (e->neighbour))]++;
    }
  vec_foreach (i, gone)
    {
      pool_put_index (ip_neighbor_elt_pool, *i);
      clib_mem_unpoison (ip_neighbor_elt_pool + *i, sizeof (element_t)); /* VPP reuses the element, and is built without sanitizers even if
                                                                          * the plugin is built with them */
    }
  vec_free (gone);
}

/* ---- next hops that have not answered ---- */

static adj_walk_rc_t
await (adj_index_t index, void *ctx)
{
  contiv_neighbours_t *n = ctx;
  const ip_adjacency_t *adj = adj_get (index);
  bool ip6 = adj->ia_nh_proto == FIB_PROTOCOL_IP6;
  if (adj->lookup_next_index != IP_LOOKUP_NEXT_ARP)
    return ADJ_WALK_RC_CONTINUE;
  clib_memcpy (&n->awaited[ip6][n->n_awaited[ip6]], ip6 ? (void *) &adj->sub_type.nbr.next_hop.ip6 : (void *) &adj->sub_type.nbr.next_hop.ip4, ip6 ? 16 : 4);
  return ++n->n_awaited[ip6] < CONTIV_AWAITED ? ADJ_WALK_RC_CONTINUE : ADJ_WALK_RC_STOP;
}

/* await_next_hops is needed only while messages are dropped: without a flood all messages pass. */
static void
await_next_hops (contiv_neighbours_t *n)
{
  n->n_awaited[0] = n->n_awaited[1] = 0;
  for (u32 i = 0; i < vec_len (contiv_main.interfaces); i++)
    if (contiv_main.interfaces[i].role == CV_ROLE_UPLINK)
      for (u32 ip6 = 0; ip6 < 2; ip6++)
	if (n->n_awaited[ip6] < CONTIV_AWAITED)
	  adj_nbr_walk (i, ip6 ? FIB_PROTOCOL_IP6 : FIB_PROTOCOL_IP4, await, n);
}

void
contiv_limit_neighbours (vlib_main_t *vm)
{
  contiv_neighbours_t *n = &contiv_main.neighbours;
  u32 counts[N_AF] = { 0 };
  if (__atomic_exchange_n (&n->refused, 0, __ATOMIC_RELAXED))
    await_next_hops (n);
  if (pool_elts (ip_neighbor_elt_pool) == n->elements)
    return; /* VPP adds an element for each neighbour, and never frees one */
  count (counts);
  n->elements = pool_elts (ip_neighbor_elt_pool);
  for (u32 family = 0; family < N_AF; family++)
    if (counts[family] > NEIGHBOURS_MAX)
      {
	vlib_worker_thread_barrier_sync (vm);
	remove_oldest (family, counts[family] - NEIGHBOURS_MAX);
	vlib_worker_thread_barrier_release (vm);
	n->elements = ~0; /* to free their elements next time */
      }
}
