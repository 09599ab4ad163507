/* The API messages for services: sets of backends, frontends, source ranges. */
#include "api.h"

/* ---- services ---- */

void
vl_api_contiv_service_add_del_t_handler (vl_api_contiv_service_add_del_t *mp)
{
  vl_api_contiv_service_add_del_reply_t *rmp;
  u64 id = clib_net_to_host_u64 (mp->id);
  char name[CV_NAME_LEN];
  u8 flags = *(const u8 *) &mp->flags;
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (id && contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_name (mp->name, name) && !(flags & ~CV_SERVICE_MAGLEV))
    rv = contiv_retval (is_add ? cv_service_set (contiv_main.core, id, name, flags) : cv_service_del (contiv_main.core, id));
  REPLY_MACRO (VL_API_CONTIV_SERVICE_ADD_DEL_REPLY);
}

static void
send_service (void *ctx, uint64_t id, const char *name, uint8_t flags, uint32_t n_backends)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_service_details_t *rmp = new_details (c, contiv_service_details, CONTIV_SERVICE_DETAILS, 0);
  rmp->id = clib_host_to_net_u64 (id);
  memcpy (rmp->name, name, CV_NAME_LEN);
  rmp->flags = (vl_api_contiv_service_flags_t) flags;
  rmp->n_backends = htonl (n_backends);
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_service_dump_t_handler (vl_api_contiv_service_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_service_walk (contiv_main.core, send_service, &c);
}

/* ---- backends ---- */

void
vl_api_contiv_backend_add_del_t_handler (vl_api_contiv_backend_add_del_t *mp)
{
  vl_api_contiv_backend_add_del_reply_t *rmp;
  u64 service = clib_net_to_host_u64 (mp->service_id);
  cv_backend_t b = { .port = mp->port, .flags = *(const u8 *) &mp->flags };
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (service && contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_address (&mp->address, &b.addr, &b.ip6) &&
      !(b.flags & ~CV_BACKEND_FLAGS))
    rv = contiv_retval (is_add ? cv_backend_set (contiv_main.core, service, &b) : cv_backend_del (contiv_main.core, service, &b));
  REPLY_MACRO (VL_API_CONTIV_BACKEND_ADD_DEL_REPLY);
}

static void
send_backend (void *ctx, uint64_t service, const cv_backend_t *b, bool draining, uint32_t connections)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_backend_details_t *rmp = new_details (c, contiv_backend_details, CONTIV_BACKEND_DETAILS, 0);
  rmp->service_id = clib_host_to_net_u64 (service);
  contiv_encode_address (&b->addr, b->ip6, &rmp->address);
  rmp->port = b->port;
  rmp->flags = (vl_api_contiv_backend_flags_t) b->flags;
  rmp->draining = draining;
  rmp->connections = htonl (connections);
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_backend_dump_t_handler (vl_api_contiv_backend_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_backend_walk (contiv_main.core, clib_net_to_host_u64 (mp->service_id), send_backend, &c);
}

/* ---- frontends ---- */

static bool
decode_target (const vl_api_contiv_target_t *in, cv_target_t *out)
{
  *out = (cv_target_t){ .action = *(const u8 *) &in->action,
			.flags = *(const u8 *) &in->flags,
			.service = clib_net_to_host_u64 (in->service_id) };
  return out->action >= CV_ACTION_BALANCE && out->action <= CV_ACTION_DROP && !(out->flags & ~CV_TARGET_MASQ) &&
	 (out->action != CV_ACTION_BALANCE || out->service);
}

static void
encode_target (const cv_target_t *in, vl_api_contiv_target_t *out)
{
  out->action = (vl_api_contiv_action_t) in->action;
  out->flags = (vl_api_contiv_target_flags_t) in->flags;
  out->service_id = clib_host_to_net_u64 (in->service);
}

static bool
decode_frontend (const vl_api_contiv_frontend_add_del_t *mp, cv_frontend_t *f)
{
  f->ranges = clib_net_to_host_u64 (mp->ranges);
  f->affinity_group = clib_net_to_host_u64 (mp->affinity_group);
  f->affinity_timeout = ntohl (mp->affinity_timeout);
  return contiv_decode_name (mp->name, f->name) && decode_target (&mp->in_cluster, &f->in_cluster) &&
	 decode_target (&mp->outside, &f->outside) && !!f->affinity_group == !!f->affinity_timeout;
}

void
vl_api_contiv_frontend_add_del_t_handler (vl_api_contiv_frontend_add_del_t *mp)
{
  vl_api_contiv_frontend_add_del_reply_t *rmp;
  cv_frontend_key_t k = { .port = mp->port, .proto = mp->protocol };
  cv_frontend_t f = { 0 };
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_address (&mp->address, &k.addr, &k.ip6) &&
      (!is_add || decode_frontend (mp, &f)))
    rv = contiv_retval (is_add ? cv_frontend_set (contiv_main.core, &k, &f) : cv_frontend_del (contiv_main.core, &k));
  REPLY_MACRO (VL_API_CONTIV_FRONTEND_ADD_DEL_REPLY);
}

static void
send_frontend (void *ctx, const cv_frontend_key_t *k, const cv_frontend_t *f, uint64_t new_connections)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_frontend_details_t *rmp = new_details (c, contiv_frontend_details, CONTIV_FRONTEND_DETAILS, 0);
  contiv_encode_address (&k->addr, k->ip6, &rmp->address);
  rmp->port = k->port;
  rmp->protocol = k->proto;
  memcpy (rmp->name, f->name, CV_NAME_LEN);
  encode_target (&f->in_cluster, &rmp->in_cluster);
  encode_target (&f->outside, &rmp->outside);
  rmp->ranges = clib_host_to_net_u64 (f->ranges);
  rmp->affinity_group = clib_host_to_net_u64 (f->affinity_group);
  rmp->affinity_timeout = htonl (f->affinity_timeout);
  rmp->new_connections = clib_host_to_net_u64 (new_connections);
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_frontend_dump_t_handler (vl_api_contiv_frontend_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_frontend_walk (contiv_main.core, send_frontend, &c);
}

/* ---- source ranges ---- */

void
vl_api_contiv_range_add_del_t_handler (vl_api_contiv_range_add_del_t *mp)
{
  vl_api_contiv_range_add_del_reply_t *rmp;
  u64 id = clib_net_to_host_u64 (mp->id);
  cv_prefix_t p;
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (id && contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_prefix (&mp->prefix, &p))
    rv = contiv_retval (cv_range_set (contiv_main.core, id, &p, is_add));
  REPLY_MACRO (VL_API_CONTIV_RANGE_ADD_DEL_REPLY);
}

static void
send_range (void *ctx, uint64_t id, const cv_prefix_t *p)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_range_details_t *rmp = new_details (c, contiv_range_details, CONTIV_RANGE_DETAILS, 0);
  rmp->id = clib_host_to_net_u64 (id);
  contiv_encode_prefix (p, &rmp->prefix);
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_range_dump_t_handler (vl_api_contiv_range_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_range_walk (contiv_main.core, send_range, &c);
}
