/* show contiv policy: sets, policies, the policies of endpoints, and denied flows. */
#include "contiv.h"
#include <vnet/ip/ip.h>

static const char *const actions[] = { "?", "allow", "deny", "pass" };

static u8 *
format_action (u8 *s, va_list *args)
{
  u32 action = va_arg (*args, u32);
  return format (s, "%s", actions[action < ARRAY_LEN (actions) ? action : 0]);
}

static void
show_set (void *ctx, uint64_t id, const char *name, cv_set_kind_t kind, uint32_t n_members, bool overfull)
{
  u8 **s = ctx;
  *s = format (*s, "set %lx: %s, %u %s%s\n", id, name, n_members, kind == CV_SET_PORTS ? "ports" : "networks",
	       overfull ? ", TOO LARGE: it counts as unknown" : "");
}

static u8 *
format_rule (u8 *s, va_list *args)
{
  const cv_rule_t *r = va_arg (*args, const cv_rule_t *);
  s = format (s, "%U", format_action, (u32) r->action);
  if (r->family)
    s = format (s, " IPv%u", r->family);
  if (r->proto)
    s = format (s, " %U", format_ip_protocol, r->proto);
  if (r->flags & CV_RULE_ICMP_TYPE)
    s = format (s, " type %u", r->icmp_type);
  if (r->flags & CV_RULE_ICMP_CODE)
    s = format (s, " code %u", r->icmp_code);
  if (r->source)
    s = format (s, " from %lx", r->source);
  if (r->destination)
    s = format (s, " to %lx", r->destination);
  if (r->service)
    s = format (s, " to ports of %lx", r->service);
  for (u8 i = 0; i < r->n_ports; i++)
    s = format (s, r->ports[i].first == r->ports[i].last ? "%s %u" : "%s %u-%u", i ? "," : " port", r->ports[i].first, r->ports[i].last);
  return s;
}

static void
show_policy (void *ctx, uint64_t id, const cv_policy_t *p, const uint64_t *matched[2])
{
  u8 **s = ctx;
  *s = format (*s, "policy %lx: %s\n", id, p->name);
  for (int side = 0; side < 2; side++)
    for (u32 i = 0; i < p->n[side]; i++)
      *s = format (*s, "  %s %u: %U, matched %lu\n", side ? "egress" : "ingress", i, format_rule, &p->rules[side][i], matched[side][i]);
}

static void
show_endpoint (void *ctx, uint32_t sw_if_index, const cv_endpoint_policy_t *p, const uint64_t denied[2])
{
  u8 **s = ctx;
  *s = format (*s, "%U: %s, denied %lu in, %lu out\n", format_vnet_sw_if_index_name, vnet_get_main (), sw_if_index, p->name, denied[CV_INGRESS],
	       denied[CV_EGRESS]);
  for (int side = 0; side < 2; side++)
    {
      *s = format (*s, "  %s:", side ? "egress" : "ingress");
      for (u32 i = 0; i < p->n[side]; i++)
	if (p->items[side][i].policy)
	  *s = format (*s, " %lx%s", p->items[side][i].policy, p->items[side][i].action ? " (for the node, too)" : "");
	else
	  *s = format (*s, " else %U,", format_action, (u32) p->items[side][i].action);
      *s = format (*s, " otherwise %U\n", format_action, (u32) p->otherwise[side]);
    }
}

static void
show_denied (void *ctx, const cv_denied_t *d)
{
  u8 **s = ctx;
  *s = format (*s, "denied %lu: %U %U -> %U, %s of %U, ", d->sequence, format_ip_protocol, d->proto, format_contiv_end, &d->src, d->ip6,
	       clib_host_to_net_u16 (d->sport), format_contiv_end, &d->dst, d->ip6, clib_host_to_net_u16 (d->dport), d->side ? "egress" : "ingress", format_vnet_sw_if_index_name,
	       vnet_get_main (), d->sw_if_index);
  *s = d->policy ? format (*s, "policy %lx rule %u\n", d->policy, d->rule) : format (*s, "no rule\n");
}

static clib_error_t *
show_policy_command (vlib_main_t *vm, unformat_input_t *input, vlib_cli_command_t *cmd)
{
  cv_main_t *core = contiv_main.core;
  u8 *s = 0;
  if (unformat_check_input (input) != UNFORMAT_END_OF_INPUT)
    return clib_error_return (0, "unknown input '%U'", format_unformat_error, input);
  cv_endpoint_policy_walk (core, show_endpoint, &s);
  cv_policy_walk (core, show_policy, &s);
  cv_set_walk (core, show_set, &s);
  cv_denied_walk (core, 0, show_denied, &s);
  vlib_cli_output (vm, "%v", s);
  vec_free (s);
  return 0;
}

VLIB_CLI_COMMAND (show_contiv_policy, static) = {
  .path = "show contiv policy",
  .short_help = "show contiv policy",
  .function = show_policy_command,
  .is_mp_safe = 1,
};

/* show contiv set ID: the members of a set. */
static void
show_member (void *ctx, uint64_t set, const cv_set_member_t *e)
{
  u8 **s = ctx;
  *s = format (*s, "%U/%u", format_contiv_addr, &e->prefix.addr, e->prefix.ip6, e->prefix.len);
  *s = e->proto ? format (*s, " %U %u\n", format_ip_protocol, e->proto, clib_host_to_net_u16 (e->port)) : format (*s, "\n");
}

static clib_error_t *
show_set_command (vlib_main_t *vm, unformat_input_t *input, vlib_cli_command_t *cmd)
{
  u64 id;
  u8 *s = 0;
  if (!unformat (input, "%lx", &id) || !id)
    return clib_error_return (0, "give the id of a set, as show contiv policy prints it");
  cv_set_member_walk (contiv_main.core, id, show_member, &s);
  vlib_cli_output (vm, "%v", s);
  vec_free (s);
  return 0;
}

VLIB_CLI_COMMAND (show_contiv_set, static) = {
  .path = "show contiv set",
  .short_help = "show contiv set ID",
  .function = show_set_command,
  .is_mp_safe = 1,
};
