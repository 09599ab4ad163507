/* The API messages for network policy. */
#include "api.h"

/* ---- sets ---- */

void
vl_api_contiv_set_add_del_t_handler (vl_api_contiv_set_add_del_t *mp)
{
  vl_api_contiv_set_add_del_reply_t *rmp;
  u64 id = clib_net_to_host_u64 (mp->id);
  char name[CV_NAME_LEN];
  u8 kind = *(const u8 *) &mp->kind;
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (id && contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_name (mp->name, name) &&
      (!is_add || (kind >= CV_SET_NETWORKS && kind <= CV_SET_PORTS)))
    rv = contiv_retval (is_add ? cv_set_set (contiv_main.core, id, name, kind) : cv_set_del (contiv_main.core, id));
  contiv_wake (vlib_get_main ());
  REPLY_MACRO (VL_API_CONTIV_SET_ADD_DEL_REPLY);
}

static void
send_set (void *ctx, uint64_t id, const char *name, cv_set_kind_t kind, uint32_t n_members, bool overfull)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_set_details_t *rmp = new_details (c, contiv_set_details, CONTIV_SET_DETAILS, 0);
  rmp->id = clib_host_to_net_u64 (id);
  memcpy (rmp->name, name, CV_NAME_LEN);
  rmp->kind = (vl_api_contiv_set_kind_t) kind;
  rmp->n_members = htonl (n_members);
  rmp->overfull = overfull;
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_set_dump_t_handler (vl_api_contiv_set_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_set_walk (contiv_main.core, send_set, &c);
}

void
vl_api_contiv_set_member_add_del_t_handler (vl_api_contiv_set_member_add_del_t *mp)
{
  vl_api_contiv_set_member_add_del_reply_t *rmp;
  u64 set = clib_net_to_host_u64 (mp->set_id);
  cv_set_member_t e = { .proto = mp->protocol, .port = mp->port };
  bool is_add;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (set && contiv_decode_bool (&mp->is_add, &is_add) && contiv_decode_prefix (&mp->prefix, &e.prefix))
    rv = contiv_retval (cv_set_member_set (contiv_main.core, set, &e, is_add));
  REPLY_MACRO (VL_API_CONTIV_SET_MEMBER_ADD_DEL_REPLY);
}

static void
send_member (void *ctx, uint64_t set, const cv_set_member_t *e)
{
  contiv_client_t *c = ctx;
  vl_api_contiv_set_member_details_t *rmp = new_details (c, contiv_set_member_details, CONTIV_SET_MEMBER_DETAILS, 0);
  rmp->set_id = clib_host_to_net_u64 (set);
  contiv_encode_prefix (&e->prefix, &rmp->prefix);
  rmp->protocol = e->proto;
  rmp->port = e->port;
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_set_member_dump_t_handler (vl_api_contiv_set_member_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_set_member_walk (contiv_main.core, clib_net_to_host_u64 (mp->set_id), send_member, &c);
}

/* ---- policies ---- */

static void
decode_rule (const vl_api_contiv_rule_t *in, cv_rule_t *out)
{
  *out = (cv_rule_t){ .action = *(const u8 *) &in->action,
		      .family = in->family,
		      .proto = in->protocol,
		      .flags = *(const u8 *) &in->flags,
		      .icmp_type = in->icmp_type,
		      .icmp_code = in->icmp_code,
		      .n_ports = in->n_ports,
		      .source = clib_net_to_host_u64 (in->source),
		      .destination = clib_net_to_host_u64 (in->destination),
		      .service = clib_net_to_host_u64 (in->port_set) };
  for (u32 i = 0; i < CV_RULE_PORTS; i++)
    {
      out->ports[i].first = ntohs (in->ports[i].first);
      out->ports[i].last = ntohs (in->ports[i].last);
    }
}

static void
encode_rule (const cv_rule_t *in, vl_api_contiv_rule_t *out)
{
  out->action = (vl_api_contiv_rule_action_t) in->action;
  out->family = in->family;
  out->protocol = in->proto;
  out->flags = (vl_api_contiv_rule_flags_t) in->flags;
  out->icmp_type = in->icmp_type;
  out->icmp_code = in->icmp_code;
  out->n_ports = in->n_ports;
  out->source = clib_host_to_net_u64 (in->source);
  out->destination = clib_host_to_net_u64 (in->destination);
  out->port_set = clib_host_to_net_u64 (in->service);
  for (u32 i = 0; i < CV_RULE_PORTS; i++)
    {
      out->ports[i].first = htons (in->ports[i].first);
      out->ports[i].last = htons (in->ports[i].last);
    }
}

void
vl_api_contiv_policy_set_t_handler (vl_api_contiv_policy_set_t *mp)
{
  vl_api_contiv_policy_set_reply_t *rmp;
  u32 n = ntohl (mp->n_rules), n_ingress = ntohl (mp->n_ingress);
  cv_policy_t p = { 0 };
  cv_rule_t *rules = 0;
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (n <= CV_POLICY_RULES && n_ingress <= n && vl_msg_api_get_msg_length (mp) >= sizeof (*mp) + n * sizeof (mp->rules[0]) &&
      contiv_decode_name (mp->name, p.name))
    {
      vec_validate (rules, n);
      for (u32 i = 0; i < n; i++)
	decode_rule (&mp->rules[i], &rules[i]);
      p.n[CV_INGRESS] = n_ingress;
      p.n[CV_EGRESS] = n - n_ingress;
      p.rules[CV_INGRESS] = rules;
      p.rules[CV_EGRESS] = rules + n_ingress;
      rv = contiv_retval (cv_policy_set (contiv_main.core, clib_net_to_host_u64 (mp->id), &p));
      vec_free (rules);
    }
  contiv_wake (vlib_get_main ());
  REPLY_MACRO (VL_API_CONTIV_POLICY_SET_REPLY);
}

void
vl_api_contiv_policy_del_t_handler (vl_api_contiv_policy_del_t *mp)
{
  vl_api_contiv_policy_del_reply_t *rmp;
  int rv = contiv_retval (cv_policy_del (contiv_main.core, clib_net_to_host_u64 (mp->id)));
  REPLY_MACRO (VL_API_CONTIV_POLICY_DEL_REPLY);
}

static void
send_policy (void *ctx, uint64_t id, const cv_policy_t *p, const uint64_t *matched[2])
{
  contiv_client_t *c = ctx;
  u32 n = p->n[0] + p->n[1];
  vl_api_contiv_policy_details_t *rmp = new_details (c, contiv_policy_details, CONTIV_POLICY_DETAILS, n * sizeof (rmp->rules[0]));
  rmp->id = clib_host_to_net_u64 (id);
  memcpy (rmp->name, p->name, CV_NAME_LEN);
  rmp->n_ingress = htonl (p->n[0]);
  rmp->n_rules = htonl (n);
  for (u32 i = 0; i < n; i++)
    {
      u32 side = i >= p->n[0], at = side ? i - p->n[0] : i;
      encode_rule (&p->rules[side][at], &rmp->rules[i].rule);
      rmp->rules[i].matched = clib_host_to_net_u64 (matched[side][at]);
    }
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_policy_dump_t_handler (vl_api_contiv_policy_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_policy_walk (contiv_main.core, send_policy, &c);
}

/* ---- endpoints ---- */

void
vl_api_contiv_endpoint_policy_set_t_handler (vl_api_contiv_endpoint_policy_set_t *mp)
{
  vl_api_contiv_endpoint_policy_set_reply_t *rmp;
  u32 n = ntohl (mp->n_items), n_ingress = ntohl (mp->n_ingress);
  cv_endpoint_policy_t p = { .otherwise = { *(const u8 *) &mp->ingress, *(const u8 *) &mp->egress } };
  cv_tier_item_t *items = 0;
  int rv;
  VALIDATE_SW_IF_INDEX (mp);
  rv = VNET_API_ERROR_INVALID_VALUE;
  if (n <= 2 * CV_POLICY_ITEMS && n_ingress <= n && vl_msg_api_get_msg_length (mp) >= sizeof (*mp) + n * sizeof (mp->items[0]) &&
      contiv_decode_name (mp->name, p.name))
    {
      vec_validate (items, n);
      for (u32 i = 0; i < n; i++)
	items[i] = (cv_tier_item_t){ .policy = clib_net_to_host_u64 (mp->items[i].policy_id), .action = *(const u8 *) &mp->items[i].action };
      p.n[CV_INGRESS] = n_ingress;
      p.n[CV_EGRESS] = n - n_ingress;
      p.items[CV_INGRESS] = items;
      p.items[CV_EGRESS] = items + n_ingress;
      rv = contiv_retval (cv_endpoint_policy_set (contiv_main.core, ntohl (mp->sw_if_index), &p));
      vec_free (items);
    }
  BAD_SW_IF_INDEX_LABEL;
  REPLY_MACRO (VL_API_CONTIV_ENDPOINT_POLICY_SET_REPLY);
}

void
vl_api_contiv_endpoint_policy_del_t_handler (vl_api_contiv_endpoint_policy_del_t *mp)
{
  vl_api_contiv_endpoint_policy_del_reply_t *rmp;
  int rv;
  VALIDATE_SW_IF_INDEX (mp);
  rv = contiv_retval (cv_endpoint_policy_set (contiv_main.core, ntohl (mp->sw_if_index), NULL));
  BAD_SW_IF_INDEX_LABEL;
  REPLY_MACRO (VL_API_CONTIV_ENDPOINT_POLICY_DEL_REPLY);
}

static void
send_endpoint_policy (void *ctx, uint32_t sw_if_index, const cv_endpoint_policy_t *p, const uint64_t denied[2])
{
  contiv_client_t *c = ctx;
  u32 n = p->n[0] + p->n[1];
  vl_api_contiv_endpoint_policy_details_t *rmp =
    new_details (c, contiv_endpoint_policy_details, CONTIV_ENDPOINT_POLICY_DETAILS, n * sizeof (rmp->items[0]));
  rmp->sw_if_index = htonl (sw_if_index);
  memcpy (rmp->name, p->name, CV_NAME_LEN);
  rmp->ingress = (vl_api_contiv_rule_action_t) p->otherwise[CV_INGRESS];
  rmp->egress = (vl_api_contiv_rule_action_t) p->otherwise[CV_EGRESS];
  rmp->denied_ingress = clib_host_to_net_u64 (denied[CV_INGRESS]);
  rmp->denied_egress = clib_host_to_net_u64 (denied[CV_EGRESS]);
  rmp->n_ingress = htonl (p->n[0]);
  rmp->n_items = htonl (n);
  for (u32 i = 0; i < n; i++)
    {
      const cv_tier_item_t *item = i < p->n[0] ? &p->items[0][i] : &p->items[1][i - p->n[0]];
      rmp->items[i].policy_id = clib_host_to_net_u64 (item->policy);
      rmp->items[i].action = (vl_api_contiv_rule_action_t) item->action;
    }
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_endpoint_policy_dump_t_handler (vl_api_contiv_endpoint_policy_dump_t *mp)
{
  contiv_client_t c = contiv_client (mp);
  if (c.reg)
    cv_endpoint_policy_walk (contiv_main.core, send_endpoint_policy, &c);
}

/* ---- denied flows ---- */

static void
send_denied (void *ctx, const cv_denied_t *d)
{
  contiv_client_t *c = ctx;
  u32 now = contiv_now (vlib_get_main ());
  vl_api_contiv_denied_details_t *rmp = new_details (c, contiv_denied_details, CONTIV_DENIED_DETAILS, 0);
  rmp->sequence = clib_host_to_net_u64 (d->sequence);
  rmp->age = htonl (now > d->when ? now - d->when : 0);
  rmp->sw_if_index = htonl (d->sw_if_index);
  rmp->side = (vl_api_contiv_side_t) d->side;
  rmp->protocol = d->proto;
  rmp->icmp_type = d->icmp_type;
  rmp->icmp_code = d->icmp_code;
  contiv_encode_address (&d->src, d->ip6, &rmp->source);
  contiv_encode_address (&d->dst, d->ip6, &rmp->destination);
  rmp->source_port = htons (d->sport);
  rmp->destination_port = htons (d->dport);
  rmp->policy_id = clib_host_to_net_u64 (d->policy);
  rmp->rule = htonl (d->rule);
  vl_api_send_msg (c->reg, (u8 *) rmp);
}

void
vl_api_contiv_denied_get_t_handler (vl_api_contiv_denied_get_t *mp)
{
  vl_api_contiv_denied_get_reply_t *rmp;
  contiv_client_t c = contiv_client (mp);
  int rv = 0;
  if (!c.reg)
    return;
  cv_denied_walk (contiv_main.core, clib_net_to_host_u64 (mp->after), send_denied, &c);
  REPLY_MACRO (VL_API_CONTIV_DENIED_GET_REPLY);
}
