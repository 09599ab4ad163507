/* Formatting of packet traces. */
#include "contiv.h"
#include <vnet/ip/ip.h>

static const char *reasons[CONTIV_N_ERRORS] = {
#define _(name, text) [CV_##name] = text,
  CV_FOREACH_REASON (_)
#undef _
#define _(name, text) [CONTIV_ERROR_##name] = text,
  CONTIV_FOREACH_ERROR (_)
#undef _
};

/* format_contiv_addr formats an address (const cv_addr_t *) of a family (int). */
u8 *
format_contiv_addr (u8 *s, va_list *args)
{
  const cv_addr_t *a = va_arg (*args, const cv_addr_t *);
  int ip6 = va_arg (*args, int);
  return ip6 ? format (s, "%U", format_ip6_address, a) : format (s, "%U", format_ip4_address, a);
}

/* format_contiv_end formats an address and a port in wire order (int). */
u8 *
format_contiv_end (u8 *s, va_list *args)
{
  const cv_addr_t *a = va_arg (*args, const cv_addr_t *);
  int ip6 = va_arg (*args, int);
  u16 port = (u16) va_arg (*args, int);
  s = format (s, ip6 ? "[%U]" : "%U", format_contiv_addr, a, ip6);
  return format (s, ":%u", clib_net_to_host_u16 (port));
}

static u8 *
format_tuple (u8 *s, va_list *args)
{
  const cv_tuple_t *t = va_arg (*args, const cv_tuple_t *);
  return format (s, "%U -> %U", format_contiv_end, &t->src, t->ip6, t->sport, format_contiv_end, &t->dst, t->ip6, t->dport);
}

u8 *
format_contiv_trace (u8 *s, va_list *args)
{
  static const char *verdicts[] = { "pass", "drop", "reject", "reassemble" };
  CLIB_UNUSED (vlib_main_t * vm) = va_arg (*args, vlib_main_t *);
  CLIB_UNUSED (vlib_node_t * node) = va_arg (*args, vlib_node_t *);
  const contiv_trace_t *t = va_arg (*args, const contiv_trace_t *);
  u32 indent = format_get_indent (s);
  s = format (s, "sw_if_index %u: %s, %s", t->sw_if_index, t->verdict < ARRAY_LEN (verdicts) ? verdicts[t->verdict] : "wait",
	      t->reason < CONTIV_N_ERRORS ? reasons[t->reason] : "?");
  if (t->fragment)
    s = format (s, ", fragment");
  if (t->connection != CV_NO_INDEX)
    s = format (s, ", connection %u", t->connection);
  if (t->before.proto)
    s = format (s, "\n%U%U %U", format_white_space, indent, format_ip_protocol, t->before.proto, format_tuple, &t->before);
  if (t->connection != CV_NO_INDEX || (t->reason == CV_POLICY && memcmp (&t->before, &t->after, sizeof (t->before))))
    s = format (s, "\n%Uas %U", format_white_space, indent, format_tuple, &t->after);
  return s;
}
