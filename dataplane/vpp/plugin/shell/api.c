/* The API messages: their table, decoding, and the messages for the plugin as a whole. */
#include "api.h"
#include "../api/contiv.api.c"

/* The version of contiv.api; vl_api_version keeps out the versions of the files that it imports. */
#define vl_api_version(file, crc)
#define vl_api_version_tuple(file, major, minor, patch) static const u32 contiv_api_version[3] = { major, minor, patch };
#include "../api/contiv.api.h"
#undef vl_api_version_tuple
#undef vl_api_version

clib_error_t *
contiv_api_init (void)
{
  contiv_main.msg_id_base = setup_message_id_table ();
  /* The core allows changes while workers run, so messages do not need the barrier; endpoint.c takes the barrier
   * where necessary. */
#define _(name, NAME) vl_api_set_msg_thread_safe (my_api_main, contiv_main.msg_id_base + VL_API_CONTIV_##NAME, 1);
  CONTIV_FOREACH_MESSAGE (_)
#undef _
  return 0;
}

void *
contiv_details (const contiv_client_t *c, u16 id, u32 size)
{
  struct
  {
    u16 _vl_msg_id;
    u32 context;
  } __attribute__ ((packed)) *rmp = vl_msg_api_alloc_zero (size);
  rmp->_vl_msg_id = htons (contiv_main.msg_id_base + id);
  rmp->context = c->context;
  return rmp;
}

bool
contiv_decode_bool (const bool *in, bool *out)
{
  u8 v = *(const u8 *) in;
  *out = v;
  return v <= 1;
}

bool
contiv_decode_name (const u8 *in, char *out)
{
  if (!memchr (in, 0, CV_NAME_LEN))
    return false;
  memset (out, 0, CV_NAME_LEN);
  strcpy (out, (const char *) in);
  return true;
}

bool
contiv_decode_address (const vl_api_address_t *in, cv_addr_t *out, bool *ip6)
{
  u8 family = *(const u8 *) &in->af;
  *out = (cv_addr_t){ 0 };
  *ip6 = family == ADDRESS_IP6;
  memcpy (out, &in->un, *ip6 ? 16 : 4);
  return family == ADDRESS_IP4 || family == ADDRESS_IP6;
}

bool
contiv_decode_prefix (const vl_api_prefix_t *in, cv_prefix_t *out)
{
  *out = (cv_prefix_t){ .len = in->len };
  return contiv_decode_address (&in->address, &out->addr, &out->ip6) && out->len <= (out->ip6 ? 128 : 32);
}

void
contiv_encode_address (const cv_addr_t *in, bool ip6, vl_api_address_t *out)
{
  out->af = ip6 ? ADDRESS_IP6 : ADDRESS_IP4;
  memcpy (&out->un, in, ip6 ? 16 : 4);
}

void
contiv_encode_prefix (const cv_prefix_t *in, vl_api_prefix_t *out)
{
  contiv_encode_address (&in->addr, in->ip6, &out->address);
  out->len = in->len;
}

/* ---- the plugin as a whole ---- */

void
vl_api_contiv_plugin_get_version_t_handler (vl_api_contiv_plugin_get_version_t *mp)
{
  vl_api_contiv_plugin_get_version_reply_t *rmp;
  int rv = 0;
  REPLY_MACRO2 (VL_API_CONTIV_PLUGIN_GET_VERSION_REPLY, ({
		  rmp->major = htonl (contiv_api_version[0]);
		  rmp->minor = htonl (contiv_api_version[1]);
		  rmp->patch = htonl (contiv_api_version[2]);
		}));
}

#define foreach_config_number                                                                                                    \
  _ (endpoint_connections) _ (tcp_established) _ (tcp_transitory) _ (udp) _ (udp_stream) _ (icmp) _ (sctp)

void
vl_api_contiv_config_set_t_handler (vl_api_contiv_config_set_t *mp)
{
  vl_api_contiv_config_set_reply_t *rmp;
  cv_config_t c = { 0 };
  int rv;
#define _(field) c.field = ntohl (mp->field);
  foreach_config_number
#undef _
  for (int i = 0; i < CV_TUNNEL_PORTS; i++)
    c.tunnel_ports[i] = ntohs (mp->tunnel_ports[i]);
  rv = contiv_retval (cv_config_set (contiv_main.core, &c));
  REPLY_MACRO (VL_API_CONTIV_CONFIG_SET_REPLY);
}

static void
encode_config (const cv_config_t *c, vl_api_contiv_config_get_reply_t *rmp)
{
  rmp->connections_max = htonl (c->connections_max);
#define _(field) rmp->field = htonl (c->field);
  foreach_config_number
#undef _
  for (int i = 0; i < CV_TUNNEL_PORTS; i++)
    rmp->tunnel_ports[i] = htons (c->tunnel_ports[i]);
}

void
vl_api_contiv_config_get_t_handler (vl_api_contiv_config_get_t *mp)
{
  vl_api_contiv_config_get_reply_t *rmp;
  cv_config_t c;
  int rv = 0;
  cv_config_get (contiv_main.core, &c);
  REPLY_MACRO2 (VL_API_CONTIV_CONFIG_GET_REPLY, ({ encode_config (&c, rmp); }));
}

void
vl_api_contiv_stats_get_t_handler (vl_api_contiv_stats_get_t *mp)
{
  vl_api_contiv_stats_get_reply_t *rmp;
  cv_stats_t s;
  int rv = 0;
  cv_stats_get (contiv_main.core, &s);
  REPLY_MACRO2 (VL_API_CONTIV_STATS_GET_REPLY, ({
		  rmp->connections4 = htonl (s.connections[0]);
		  rmp->connections6 = htonl (s.connections[1]);
		  rmp->connections_max = htonl (s.connections_max);
		  rmp->created = clib_host_to_net_u64 (s.counters[CV_CREATED]);
		  rmp->refused_full = clib_host_to_net_u64 (s.counters[CV_FULL]);
		  rmp->refused_limit = clib_host_to_net_u64 (s.counters[CV_LIMIT]);
		  rmp->refused_port = clib_host_to_net_u64 (s.counters[CV_NO_PORT]);
		  rmp->spoofed = clib_host_to_net_u64 (s.counters[CV_SPOOFED]);
		  rmp->tunnel = clib_host_to_net_u64 (s.counters[CV_TUNNEL]);
		  rmp->denied = clib_host_to_net_u64 (s.counters[CV_POLICY]);
		}));
}
