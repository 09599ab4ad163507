/* The API messages for connections. */
#include "api.h"

/* Limits of a request: the number of slots that it examines, and the approximate number of connections for which it
 * sends details. */
#define SLOTS_AT_A_TIME	    256
#define SLOTS_OF_A_REQUEST  (1 << 16)
#define DETAILS_OF_A_REQUEST 512

typedef struct
{
  contiv_client_t client;
  u32 sw_if_index; /* ~0: any */
  u32 sent;
} walk_t;

static void
send_connection (void *ctx, const cv_connection_info_t *i)
{
  walk_t *w = ctx;
  if (w->sw_if_index != ~0 && w->sw_if_index != i->sw_if_index)
    return;
  vl_api_contiv_connection_details_t *rmp = new_details (&w->client, contiv_connection_details, CONTIV_CONNECTION_DETAILS, 0);
  rmp->protocol = i->proto;
#define _(end)                                                                                                                   \
  contiv_encode_address (&i->end, i->ip6, &rmp->end);                                                                            \
  rmp->end##_port = i->end##_port;
  _ (client) _ (frontend) _ (source) _ (backend)
#undef _
  rmp->sw_if_index = htonl (i->sw_if_index);
  rmp->state = i->state;
  rmp->idle = htonl (i->idle);
  rmp->expires = htonl (i->expires);
  rmp->denied = i->denied;
  vl_api_send_msg (w->client.reg, (u8 *) rmp);
  w->sent++;
}

void
vl_api_contiv_connection_get_t_handler (vl_api_contiv_connection_get_t *mp)
{
  vl_api_contiv_connection_get_reply_t *rmp;
  walk_t w = { .client = contiv_client (mp), .sw_if_index = ntohl (mp->sw_if_index) };
  u32 next = ntohl (mp->cursor), now = contiv_now (vlib_get_main ());
  bool ip6;
  int rv = 0;
  if (!w.client.reg)
    return;
  if (!contiv_decode_bool (&mp->is_ip6, &ip6))
    rv = VNET_API_ERROR_INVALID_VALUE;
  for (u32 slots = 0; !rv && slots < SLOTS_OF_A_REQUEST && w.sent < DETAILS_OF_A_REQUEST; slots += SLOTS_AT_A_TIME)
    {
      next = cv_connection_walk (contiv_main.core, ip6, next, SLOTS_AT_A_TIME, now, send_connection, &w);
      if (!next)
	break;
    }
  REPLY_MACRO2 (VL_API_CONTIV_CONNECTION_GET_REPLY, ({ rmp->next = rv ? 0 : htonl (next); }));
}

void
vl_api_contiv_connection_del_t_handler (vl_api_contiv_connection_del_t *mp)
{
  vl_api_contiv_connection_del_reply_t *rmp;
  cv_tuple_t t = { .sport = mp->client_port, .dport = mp->frontend_port, .proto = mp->protocol };
  bool ip6[2];
  int rv = VNET_API_ERROR_INVALID_VALUE;
  if (contiv_decode_address (&mp->client, &t.src, &ip6[0]) && contiv_decode_address (&mp->frontend, &t.dst, &ip6[1]) &&
      ip6[0] == ip6[1])
    {
      t.ip6 = ip6[0];
      rv = contiv_retval (cv_connection_del (contiv_main.core, &t));
    }
  REPLY_MACRO (VL_API_CONTIV_CONNECTION_DEL_REPLY);
}
