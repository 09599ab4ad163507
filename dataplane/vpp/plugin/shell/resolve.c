/* Resolves neighbours on the uplinks before packets need them. VPP solicits a neighbour when the first packet for it arrives, and drops
 * that packet: a connection to another node would begin with a delay of one second. Therefore the next hops to all addresses of nodes,
 * and those of the default routes, are solicited in advance, and again after 1, 2, 4 ... 64 s as long as they do not respond. */
#include "contiv.h"
#include <vnet/adj/adj.h>
#include <vnet/dpo/load_balance.h>
#include <vnet/fib/fib_entry.h>
#include <vnet/fib/fib_table.h>
#include <vnet/ip-neighbor/ip_neighbor.h>

#define SLOTS_PER_CALL	  64 /* slots of the table of networks */
#define PAUSE_MAX_SECONDS 64

/* ask solicits the neighbour that packets to an address need, if the neighbour is on the uplink. */
static void
ask (const dpo_id_t *dpo, const fib_prefix_t *to, u32 uplink)
{
  const ip46_address_t *hop = &to->fp_addr;
  if (dpo->dpoi_type != DPO_ADJACENCY_GLEAN && dpo->dpoi_type != DPO_ADJACENCY_INCOMPLETE)
    return;
  const ip_adjacency_t *adj = adj_get (dpo->dpoi_index);
  if (adj->rewrite_header.sw_if_index != uplink)
    return;
  ip_address_family_t family = to->fp_proto == FIB_PROTOCOL_IP6 ? AF_IP6 : AF_IP4;
  if (dpo->dpoi_type == DPO_ADJACENCY_INCOMPLETE)
    {
      hop = &adj->sub_type.nbr.next_hop;
      family = adj->ia_nh_proto == FIB_PROTOCOL_IP6 ? AF_IP6 : AF_IP4;
    }
  else if (!to->fp_len)
    return; /* everything is on the link: there is no gateway */
  ip_neighbor_probe_dst (uplink, vlib_get_thread_index (), family, hop);
}

/* resolve solicits all next hops of a prefix. */
static void
resolve (u32 uplink, const fib_prefix_t *to)
{
  u32 table = fib_table_get_index_for_sw_if_index (to->fp_proto, uplink);
  if (table == ~0)
    return;
  fib_node_index_t entry = fib_table_lookup (table, to);
  if (entry == FIB_NODE_INDEX_INVALID)
    return;
  const dpo_id_t *way = fib_entry_contribute_ip_forwarding (entry);
  if (way->dpoi_type != DPO_LOAD_BALANCE)
    return;
  const load_balance_t *lb = load_balance_get (way->dpoi_index);
  for (u32 i = 0; i < lb->lb_n_buckets; i++)
    ask (load_balance_get_bucket_i (lb, i), to, uplink);
}

/* on_uplinks resolves a prefix on every uplink that is up. */
static void
on_uplinks (const fib_prefix_t *to)
{
  vnet_main_t *vnm = vnet_get_main ();
  for (u32 i = 0; i < vec_len (contiv_main.interfaces); i++)
    if (contiv_main.interfaces[i].role == CV_ROLE_UPLINK && vnet_sw_interface_is_up (vnm, i))
      resolve (i, to);
}

static void
node_address (void *ctx, const cv_prefix_t *p, cv_class_t class)
{
  if (class != CV_CLASS_NODE || p->len != (p->ip6 ? 128 : 32))
    return;
  fib_prefix_t to = { .fp_len = p->len, .fp_proto = p->ip6 ? FIB_PROTOCOL_IP6 : FIB_PROTOCOL_IP4 };
  if (p->ip6)
    clib_memcpy (&to.fp_addr.ip6, &p->addr, 16);
  else
    clib_memcpy (&to.fp_addr.ip4, &p->addr, 4);
  on_uplinks (&to);
}

void
contiv_resolve (vlib_main_t *vm)
{
  contiv_resolve_t *r = &contiv_main.resolve;
  f64 now = vlib_time_now (vm);
  if (!r->cursor)
    {
      if (now < r->next)
	return;
      r->pause = clib_min (r->pause ? 2 * r->pause : 1, PAUSE_MAX_SECONDS);
      r->next = now + r->pause;
      on_uplinks (&(fib_prefix_t){ .fp_proto = FIB_PROTOCOL_IP4 });
      on_uplinks (&(fib_prefix_t){ .fp_proto = FIB_PROTOCOL_IP6 });
    }
  r->cursor = cv_network_walk (contiv_main.core, r->cursor, SLOTS_PER_CALL, node_address, 0);
}

/* contiv_resolve_soon restarts with short pauses, because there is a new node or a new uplink. */
void
contiv_resolve_soon (void)
{
  contiv_main.resolve.pause = contiv_main.resolve.next = 0;
}

static clib_error_t *
contiv_admin_up_down (vnet_main_t *vnm, u32 sw_if_index, u32 flags)
{
  contiv_main_t *cm = &contiv_main;
  if (flags & VNET_SW_INTERFACE_FLAG_ADMIN_UP && sw_if_index < vec_len (cm->interfaces) &&
      cm->interfaces[sw_if_index].role == CV_ROLE_UPLINK)
    contiv_resolve_soon (); /* VPP removes an interface's neighbours when the interface goes down */
  return 0;
}

VNET_SW_INTERFACE_ADMIN_UP_DOWN_FUNCTION (contiv_admin_up_down);
