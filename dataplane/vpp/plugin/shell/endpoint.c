/* Interfaces that the plugin manages: features, fragments, and deletion. */
#include "uplink.h"
#include <vnet/feature/feature.h>
#include <vnet/fib/fib_table.h>

/* Capacity of the tables of fragments: packets at a time, and fragments that wait for their first one. */
#define FRAGMENTS_POD	      256
#define FRAGMENTS_POD_WAITING 32
#define FRAGMENTS	      4096
#define FRAGMENTS_WAITING     512

static const struct
{
  char *arc, *node;
  bool pods_only;
} features[] = {
  { "ip4-unicast", "contiv-ip4-input", false },
  { "ip6-unicast", "contiv-ip6-input", false },
  { "ip4-multicast", "contiv-ip4-multicast", true },
  { "ip6-multicast", "contiv-ip6-multicast", true },
  { "arp", "contiv-arp", false },
};

/* set_features enables the features of a role and disables all others; CV_ROLE_NONE disables all. */
static int
set_features (contiv_interface_t *i, u32 sw_if_index, cv_role_t role)
{
  for (u32 n = 0; n < ARRAY_LEN (features); n++)
    {
      bool should = role == CV_ROLE_POD || (role && !features[n].pods_only);
      if (should == (i->features >> n & 1))
	continue;
      int rv = vnet_feature_enable_disable (features[n].arc, features[n].node, sw_if_index, should, 0, 0);
      if (rv)
	return rv;
      i->features ^= 1 << n;
    }
  i->role = role;
  return 0;
}

static void
free_buffers (vlib_main_t *vm, frags_out_t *out)
{
  if (out->n)
    vlib_buffer_free (vm, out->buffers, out->n);
}

static void
drop_fragments (vlib_main_t *vm, contiv_interface_t *i)
{
  frags_out_t gone;
  if (!i->frags)
    return;
  while (frags_expire (i->frags, 0, true, &gone))
    free_buffers (vm, &gone);
  frags_free (i->frags);
  i->frags = 0;
}

/* set_uplink opens the plugin's sockets for an interface, or closes them. */
static void
set_uplink (contiv_interface_t *i, u32 sw_if_index, bool is)
{
  if (i->uplink)
    contiv_uplink_close (i->uplink);
  i->no_sockets = false;
  i->uplink = is ? contiv_uplink_open (sw_if_index, &i->no_sockets) : 0;
}

/* contiv_uplinks_open opens the sockets that the kernel has rejected, for want of memory or files. */
void
contiv_uplinks_open (vlib_main_t *vm)
{
  contiv_interface_t *i;
  vec_foreach (i, contiv_main.interfaces)
    if (i->no_sockets)
      {
	vlib_worker_thread_barrier_sync (vm);
	i->uplink = contiv_uplink_open ((u32) (i - contiv_main.interfaces), &i->no_sockets);
	vlib_worker_thread_barrier_release (vm);
      }
}

/* ---- the table for answers, which exists as long as an endpoint refers to it ---- */

static const fib_protocol_t families[] = { FIB_PROTOCOL_IP4, FIB_PROTOCOL_IP6 };

/* hold_table finds and locks the routing table of an endpoint. It returns false if the table does not exist in both
 * families. */
static bool
hold_table (cv_endpoint_t *e)
{
  for (u32 i = 0; i < ARRAY_LEN (families); i++)
    if ((e->index[i] = fib_table_find (families[i], e->table)) == ~0)
      return false;
  for (u32 i = 0; i < ARRAY_LEN (families); i++)
    fib_table_lock (e->index[i], families[i], FIB_SOURCE_INTERFACE);
  return true;
}

static void
release_table (u32 table)
{
  for (u32 i = 0; i < ARRAY_LEN (families) && table; i++)
    fib_table_unlock (fib_table_find (families[i], table), families[i], FIB_SOURCE_INTERFACE);
}

/* change_role makes, under the barrier, the changes that workers must not see half done. */
static int
change_role (vlib_main_t *vm, u32 sw_if_index, cv_role_t role)
{
  contiv_main_t *cm = &contiv_main;
  int rv = 0;
  vlib_worker_thread_barrier_sync (vm);
  vec_validate (cm->interfaces, sw_if_index);
  contiv_reject_init (sw_if_index);
  contiv_interface_t *i = &cm->interfaces[sw_if_index];
  bool was = i->role != CV_ROLE_NONE;
  drop_fragments (vm, i);
  if (role)
    {
      bool pod = role == CV_ROLE_POD;
      i->frags = frags_new (pod ? FRAGMENTS_POD : FRAGMENTS, pod ? FRAGMENTS_POD_WAITING : FRAGMENTS_WAITING, cm->seed);
      if (!i->frags)
	rv = VNET_API_ERROR_LIMIT_EXCEEDED;
    }
  if (!rv)
    rv = set_features (i, sw_if_index, role);
  if (rv)
    set_features (i, sw_if_index, CV_ROLE_NONE);
  set_uplink (i, sw_if_index, i->role == CV_ROLE_UPLINK);
  vlib_worker_thread_barrier_release (vm);
  cm->n_endpoints += (i->role != CV_ROLE_NONE) - was;
  return rv;
}

int
contiv_endpoint_set (vlib_main_t *vm, u32 sw_if_index, cv_endpoint_t *e)
{
  contiv_main_t *cm = &contiv_main;
  contiv_interface_t was = { 0 };
  if (sw_if_index < vec_len (cm->interfaces))
    was = cm->interfaces[sw_if_index];
  if (e->table && !hold_table (e))
    return VNET_API_ERROR_NO_SUCH_FIB;
  int rv = contiv_retval (cv_endpoint_set (cm->core, sw_if_index, e));
  if (!rv && e->role != was.role)
    {
      rv = change_role (vm, sw_if_index, e->role);
      if (rv)
	contiv_endpoint_del (vm, sw_if_index);
      contiv_resolve_soon ();
    }
  if (rv)
    {
      release_table (e->table);
      return rv;
    }
  release_table (was.table);
  cm->interfaces[sw_if_index].table = e->table;
  return 0;
}

int
contiv_endpoint_del (vlib_main_t *vm, u32 sw_if_index)
{
  contiv_main_t *cm = &contiv_main;
  if (sw_if_index < vec_len (cm->interfaces))
    {
      if (cm->interfaces[sw_if_index].role)
	change_role (vm, sw_if_index, CV_ROLE_NONE);
      release_table (cm->interfaces[sw_if_index].table);
      cm->interfaces[sw_if_index].table = 0;
    }
  return contiv_retval (cv_endpoint_del (cm->core, sw_if_index));
}

/* When an interface is deleted, VPP has already removed its features. */
static clib_error_t *
contiv_interface_add_del (vnet_main_t *vnm, u32 sw_if_index, u32 is_add)
{
  contiv_main_t *cm = &contiv_main;
  vlib_main_t *vm = vlib_get_main ();
  if (is_add || sw_if_index >= vec_len (cm->interfaces) || !cm->interfaces[sw_if_index].role)
    return 0;
  vlib_worker_thread_barrier_sync (vm);
  drop_fragments (vm, &cm->interfaces[sw_if_index]);
  set_uplink (&cm->interfaces[sw_if_index], sw_if_index, false);
  release_table (cm->interfaces[sw_if_index].table);
  cm->interfaces[sw_if_index] = (contiv_interface_t){ 0 };
  vlib_worker_thread_barrier_release (vm);
  cm->n_endpoints--;
  cv_endpoint_del (cm->core, sw_if_index);
  return 0;
}

VNET_SW_INTERFACE_ADD_DEL_FUNCTION (contiv_interface_add_del);

/* contiv_fragments_expire drops fragments whose first fragment has not arrived in time. */
void
contiv_fragments_expire (vlib_main_t *vm, u32 now)
{
  contiv_interface_t *i;
  frags_out_t gone;
  vec_foreach (i, contiv_main.interfaces)
    while (i->frags && frags_expire (i->frags, now, false, &gone))
      {
	vlib_node_increment_counter (vm, contiv_ip4_input_node.index, CONTIV_ERROR_FRAGMENT_LOST, gone.n);
	free_buffers (vm, &gone);
      }
}
