/* The API messages for interfaces, networks and source NAT. */
#include "api.h"

/* ---- endpoints ---- */

static int
decode_endpoint (const vl_api_contiv_endpoint_set_t *mp, cv_endpoint_t *e)
{
  u8 role = *(const u8 *) &mp->role;
  if (role < CV_ROLE_POD || role > CV_ROLE_OVERLAY || mp->n_addresses > CV_ENDPOINT_ADDRESSES ||
      !contiv_decode_name (mp->name, e->name))
    return VNET_API_ERROR_INVALID_VALUE;
  if (mp->table && role != CV_ROLE_HOST)
    return VNET_API_ERROR_INVALID_VALUE;
  e->role = role;
  e->egress = ntohl (mp->egress);
  e->max_connections = ntohl (mp->max_connections);
  e->table = ntohl (mp->table);
  e->n_addresses = mp->n_addresses;
  for (u8 i = 0; i < mp->n_addresses; i++)
    if (!contiv_decode_address (&mp->addresses[i], &e->addresses[i].addr, &e->addresses[i].ip6))
      return VNET_API_ERROR_INVALID_VALUE;
  return 0;
}

void
vl_api_contiv_endpoint_set_t_handler (vl_api_contiv_endpoint_set_t *mp)
{
  vl_api_contiv_endpoint_set_reply_t *rmp;
  vlib_main_t *vm = vlib_get_main ();
  cv_endpoint_t e = { 0 };
  int rv;
  VALIDATE_SW_IF_INDEX (mp);
  rv = decode_endpoint (mp, &e);
  if (!rv)
    rv = contiv_endpoint_set (vm, ntohl (mp->sw_if_index), &e);
  contiv_wake (vm);
  BAD_SW_IF_INDEX_LABEL;
  REPLY_MACRO (VL_API_CONTIV_ENDPOINT_SET_REPLY);
}

void
vl_api_contiv_endpoint_del_t_handler (vl_api_contiv_endpoint_del_t *mp)
{
  vl_api_contiv_endpoint_del_reply_t *rmp;
  int rv;
  VALIDATE_SW_IF_INDEX (mp);
  rv = contiv_endpoint_del (vlib_get_main (), ntohl (mp->sw_if_index));
  BAD_SW_IF_INDEX_LABEL;
  REPLY_MACRO (VL_API_CONTIV_ENDPOINT_DEL_REPLY);
}

static void
send_endpoint (void *ctx, uint32_t sw_if_index, const cv_endpoint_t *e, const cv_endpoint_stats_t *s)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_endpoint_details_t *rmp =
    new_details (c, contiv_endpoint_details, CONTIV_ENDPOINT_DETAILS, e->n_addresses * sizeof (rmp->addresses[0]));
  rmp->sw_if_index = htonl (sw_if_index);
  rmp->role = (vl_api_contiv_role_t) e->role;
  memcpy (rmp->name, e->name, CV_NAME_LEN);
  rmp->egress = htonl (e->egress);
  rmp->max_connections = htonl (e->max_connections);
  rmp->table = htonl (e->table);
  rmp->connections4 = htonl (s->connections[0]);
  rmp->connections6 = htonl (s->connections[1]);
  rmp->spoofed = clib_host_to_net_u64 (s->spoofed);
  rmp->refused = clib_host_to_net_u64 (s->refused);
  rmp->n_addresses = e->n_addresses;
  for (u8 i = 0; i < e->n_addresses; i++)
    contiv_encode_address (&e->addresses[i].addr, e->addresses[i].ip6, &rmp->addresses[i]);
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_endpoint_dump_t_handler (vl_api_contiv_endpoint_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_endpoint_walk (contiv_main.core, send_endpoint, &c);
}

/* ---- networks ---- */

void
vl_api_contiv_network_add_del_t_handler (vl_api_contiv_network_add_del_t *mp)
{
  vl_api_contiv_network_add_del_reply_t *rmp;
  u8 class = *(const u8 *) &mp->address_class;
  cv_prefix_t p;
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_prefix (&mp->prefix, &p) &&
      (!is_add || class == CV_CLASS_POD || class == CV_CLASS_NODE))
    rv = contiv_retval (cv_network_set (contiv_main.core, &p, is_add ? class : CV_CLASS_OUTSIDE));
  if (!rv && is_add && class == CV_CLASS_NODE)
    contiv_resolve_soon ();
  REPLY_MACRO (VL_API_CONTIV_NETWORK_ADD_DEL_REPLY);
}

static void
send_network (void *ctx, const cv_prefix_t *p, cv_class_t class)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_network_details_t *rmp = new_details (c, contiv_network_details, CONTIV_NETWORK_DETAILS, 0);
  contiv_encode_prefix (p, &rmp->prefix);
  rmp->address_class = (vl_api_contiv_class_t) class;
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_network_dump_t_handler (vl_api_contiv_network_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_network_walk (contiv_main.core, 0, ~0, send_network, &c);
}

/* ---- source NAT ---- */

void
vl_api_contiv_snat_add_del_t_handler (vl_api_contiv_snat_add_del_t *mp)
{
  vl_api_contiv_snat_add_del_reply_t *rmp;
  cv_snat_t s = { .port_low = ntohs (mp->port_low), .port_high = ntohs (mp->port_high) };
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  memcpy (&s.ip4, mp->ip4, 4);
  memcpy (&s.ip6, mp->ip6, 16);
  if (contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_name (mp->name, s.name))
    rv = contiv_retval (cv_snat_set (contiv_main.core, ntohl (mp->id), is_add ? &s : NULL));
  REPLY_MACRO (VL_API_CONTIV_SNAT_ADD_DEL_REPLY);
}

static void
send_snat (void *ctx, uint32_t id, const cv_snat_t *s)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_snat_details_t *rmp = new_details (c, contiv_snat_details, CONTIV_SNAT_DETAILS, 0);
  rmp->id = htonl (id);
  memcpy (rmp->name, s->name, CV_NAME_LEN);
  memcpy (rmp->ip4, &s->ip4, 4);
  memcpy (rmp->ip6, &s->ip6, 16);
  rmp->port_low = htons (s->port_low);
  rmp->port_high = htons (s->port_high);
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_snat_dump_t_handler (vl_api_contiv_snat_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_snat_walk (contiv_main.core, send_snat, &c);
}
