/* show contiv ..., clear contiv connections */
#include "contiv.h"
#include <vnet/ip/ip.h>

static u8 *
format_prefix (u8 *s, va_list *args)
{
  const cv_prefix_t *p = va_arg (*args, const cv_prefix_t *);
  return format (s, "%U/%u", format_contiv_addr, &p->addr, p->ip6, p->len);
}

static u8 *
format_target (u8 *s, va_list *args)
{
  static const char *actions[] = { "none", "balance", "reject", "drop" };
  const cv_target_t *t = va_arg (*args, const cv_target_t *);
  s = format (s, "%s", actions[clib_min (t->action, CV_ACTION_DROP)]);
  if (t->service)
    s = format (s, " %lu", t->service);
  return t->flags & CV_TARGET_MASQ ? format (s, " masquerade") : s;
}

/* ---- one function for each kind of object: it appends lines to a vector ---- */

static void
show_endpoint (void *ctx, uint32_t sw_if_index, const cv_endpoint_t *e, const cv_endpoint_stats_t *st)
{
  static const char *roles[] = { "none", "pod", "host", "uplink", "overlay" };
  u8 **s = ctx;
  *s = format (*s, "%U: %s %s, connections %u + %u, spoofed %lu, refused %lu", format_vnet_sw_if_index_name, vnet_get_main (),
	       sw_if_index, roles[clib_min (e->role, CV_ROLE_OVERLAY)], e->name, st->connections[0], st->connections[1], st->spoofed,
	       st->refused);
  if (e->egress)
    *s = format (*s, ", egress %u", e->egress);
  if (e->max_connections)
    *s = format (*s, ", at most %u", e->max_connections);
  if (e->table)
    *s = format (*s, ", answers by table %u", e->table);
  for (u8 i = 0; i < e->n_addresses; i++)
    *s = format (*s, " %U", format_contiv_addr, &e->addresses[i].addr, e->addresses[i].ip6);
  *s = format (*s, "\n");
}

static void
show_network (void *ctx, const cv_prefix_t *p, cv_class_t class)
{
  u8 **s = ctx;
  *s = format (*s, "%U %s\n", format_prefix, p, class == CV_CLASS_POD ? "pods" : "nodes");
}

static void
show_snat (void *ctx, uint32_t id, const cv_snat_t *n)
{
  u8 **s = ctx;
  *s = format (*s, "source NAT %u: %s %U %U ports %u to %u\n", id, n->name, format_contiv_addr, &n->ip4, 0, format_contiv_addr,
	       &n->ip6, 1, n->port_low, n->port_high);
}

static void
show_range (void *ctx, uint64_t id, const cv_prefix_t *p)
{
  u8 **s = ctx;
  *s = format (*s, "source range %lu: %U\n", id, format_prefix, p);
}

static void
show_backend (void *ctx, uint64_t service, const cv_backend_t *b, bool draining, uint32_t connections)
{
  u8 **s = ctx;
  *s = format (*s, "  backend of %lu: %U, connections %u%s%s%s\n", service, format_contiv_end, &b->addr, b->ip6, b->port, connections,
	       b->flags & CV_BACKEND_MASQ ? ", masquerade" : "", b->flags & CV_BACKEND_KEEP ? ", kept" : "", draining ? ", draining" : "");
}

static void
show_service (void *ctx, uint64_t id, const char *name, uint8_t flags, uint32_t n_backends)
{
  u8 **s = ctx;
  *s = format (*s, "service %lu: %s, backends %u%s\n", id, name, n_backends, flags & CV_SERVICE_MAGLEV ? ", maglev" : "");
}

static void
show_frontend (void *ctx, const cv_frontend_key_t *k, const cv_frontend_t *f, uint64_t new_connections)
{
  u8 **s = ctx;
  *s = format (*s, "%U %U: %s, in cluster %U, outside %U, connections made %lu", format_ip_protocol, k->proto, format_contiv_end,
	       &k->addr, k->ip6, k->port, f->name, format_target, &f->in_cluster, format_target, &f->outside, new_connections);
  if (f->ranges)
    *s = format (*s, ", source range %lu", f->ranges);
  if (f->affinity_group)
    *s = format (*s, ", affinity %lu for %u s", f->affinity_group, f->affinity_timeout);
  *s = format (*s, "\n");
}

static const char *states[] = { "?", "new", "open", "closing", "closed" };

/* Connections in a state; 0: in any state. */
typedef struct
{
  u8 *s;
  u32 state;
} connections_t;

static void
show_connection (void *ctx, const cv_connection_info_t *i)
{
  connections_t *c = ctx;
  if (c->state && c->state != i->state)
    return;
  c->s = format (c->s, "%U %U -> %U as %U -> %U, %s%s, sw_if_index %d, idle %u s, ends in %u s\n", format_ip_protocol, i->proto,
	       format_contiv_end, &i->client, i->ip6, i->client_port, format_contiv_end, &i->frontend, i->ip6, i->frontend_port,
	       format_contiv_end, &i->source, i->ip6, i->source_port, format_contiv_end, &i->backend, i->ip6, i->backend_port,
	       states[clib_min (i->state, CV_STATE_CLOSED)], i->denied ? ", denied" : "", i->sw_if_index, i->idle, i->expires);
}

/* ---- commands ---- */

typedef u8 *(show_t) (u8 *s);

static clib_error_t *
show (vlib_main_t *vm, unformat_input_t *input, show_t *f)
{
  if (unformat_check_input (input) != UNFORMAT_END_OF_INPUT)
    return clib_error_return (0, "unknown input '%U'", format_unformat_error, input);
  u8 *s = f (0);
  vlib_cli_output (vm, "%v", s);
  vec_free (s);
  return 0;
}

static u8 *
endpoints (u8 *s)
{
  cv_endpoint_walk (contiv_main.core, show_endpoint, &s);
  return s;
}

static u8 *
networks (u8 *s)
{
  cv_network_walk (contiv_main.core, 0, ~0, show_network, &s);
  cv_snat_walk (contiv_main.core, show_snat, &s);
  return s;
}

static u8 *
services (u8 *s)
{
  cv_service_walk (contiv_main.core, show_service, &s);
  cv_backend_walk (contiv_main.core, 0, show_backend, &s);
  return s;
}

static u8 *
frontends (u8 *s)
{
  cv_frontend_walk (contiv_main.core, show_frontend, &s);
  cv_range_walk (contiv_main.core, show_range, &s);
  return s;
}

#define CONNECTIONS_SHOWN 1000

static u8 *
connections (u32 state)
{
  connections_t c = { .state = state };
  u32 now = contiv_now (vlib_get_main ()), lines;
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (u32 next = 0, more = 1; more; more = next)
      {
	next = cv_connection_walk (contiv_main.core, ip6, next, 256, now, show_connection, &c);
	lines = 0;
	for (u8 *at = c.s; at < vec_end (c.s); at++)
	  lines += *at == '\n';
	if (lines >= CONNECTIONS_SHOWN)
	  return format (c.s, "... the API has all\n");
      }
  return c.s;
}

static u8 *
stats (u8 *s)
{
  static const char *reasons[] = {
#define _(name, text) text,
    CV_FOREACH_REASON (_)
#undef _
  };
  cv_stats_t st;
  cv_stats_get (contiv_main.core, &st);
  s = format (s, "connections: %u IPv4, %u IPv6, at most %u each\n", st.connections[0], st.connections[1], st.connections_max);
  for (u32 i = 0; i < CV_N_REASONS; i++)
    s = format (s, "%-32s %lu\n", reasons[i], st.counters[i]);
  return s;
}

static u8 *
config (u8 *s)
{
  cv_config_t c;
  cv_config_get (contiv_main.core, &c);
  s = format (s, "connections: %u, of a pod %u\ntunnel ports:", c.connections_max, c.endpoint_connections);
  for (int i = 0; i < CV_TUNNEL_PORTS; i++)
    if (c.tunnel_ports[i])
      s = format (s, " %u", c.tunnel_ports[i]);
  return format (s, "\nseconds of idleness: TCP %u, not open %u; UDP %u, answered %u; ICMP %u; SCTP %u\n", c.tcp_established,
		 c.tcp_transitory, c.udp, c.udp_stream, c.icmp, c.sctp);
}

#define FOREACH_SHOW(_) _ (endpoints) _ (networks) _ (services) _ (frontends) _ (stats) _ (config)

#define _(what)                                                                                                                  \
  static clib_error_t *show_##what##_command (vlib_main_t *vm, unformat_input_t *input, vlib_cli_command_t *cmd)                 \
  {                                                                                                                              \
    return show (vm, input, what);                                                                                               \
  }                                                                                                                              \
  VLIB_CLI_COMMAND (show_contiv_##what, static) = {                                                                              \
    .path = "show contiv " #what,                                                                                                \
    .short_help = "show contiv " #what,                                                                                          \
    .function = show_##what##_command,                                                                                           \
    .is_mp_safe = 1,                                                                                                             \
  };
FOREACH_SHOW (_)
#undef _

static clib_error_t *
show_connections_command (vlib_main_t *vm, unformat_input_t *input, vlib_cli_command_t *cmd)
{
  u32 state = 0;
  for (u32 i = CV_STATE_NEW; i <= CV_STATE_CLOSED && !state; i++)
    if (unformat (input, states[i]))
      state = i;
  if (unformat_check_input (input) != UNFORMAT_END_OF_INPUT)
    return clib_error_return (0, "unknown input '%U'", format_unformat_error, input);
  u8 *s = connections (state);
  vlib_cli_output (vm, "%v", s);
  vec_free (s);
  return 0;
}

VLIB_CLI_COMMAND (show_contiv_connections, static) = {
  .path = "show contiv connections",
  .short_help = "show contiv connections [new|open|closing|closed]",
  .function = show_connections_command,
  .is_mp_safe = 1,
};

static void
collect_tuple (void *ctx, const cv_connection_info_t *i)
{
  cv_tuple_t **all = ctx;
  cv_tuple_t t = { .src = i->client, .dst = i->frontend, .sport = i->client_port, .dport = i->frontend_port, .proto = i->proto, .ip6 = i->ip6 };
  vec_add1 (*all, t);
}

static clib_error_t *
clear_connections_command (vlib_main_t *vm, unformat_input_t *input, vlib_cli_command_t *cmd)
{
  cv_tuple_t *all = 0, *t;
  u32 now = contiv_now (vm), ended = 0;
  for (int ip6 = 0; ip6 < 2; ip6++)
    for (u32 next = 0, more = 1; more; more = next)
      next = cv_connection_walk (contiv_main.core, ip6, next, 4096, now, collect_tuple, &all);
  vec_foreach (t, all)
    ended += !cv_connection_del (contiv_main.core, t);
  vec_free (all);
  vlib_cli_output (vm, "%u connections ended", ended);
  return 0;
}

VLIB_CLI_COMMAND (clear_contiv_connections, static) = {
  .path = "clear contiv connections",
  .short_help = "clear contiv connections",
  .function = clear_connections_command,
  .is_mp_safe = 1,
};
