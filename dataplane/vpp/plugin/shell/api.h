/* Types and functions that the API files share. */
#ifndef CONTIV_API_H
#define CONTIV_API_H

#include "contiv.h"
#include <vlibmemory/api.h>
#include <vnet/format_fns.h>
#include <vnet/ip/ip_format_fns.h>
#include "../api/contiv.api_enum.h"
#include "../api/contiv.api_types.h"

#define REPLY_MSG_ID_BASE contiv_main.msg_id_base
#include <vlibapi/api_helper_macros.h>

/* The client that receives the details of a dump. */
typedef struct
{
  vl_api_registration_t *reg;
  u32 context;
} contiv_client_t;

/* contiv_client returns the client of a dump; reg is NULL if the client has disconnected. */
#define contiv_client(mp) ((contiv_client_t){ vl_api_client_index_to_registration ((mp)->client_index), (mp)->context })

/* contiv_details creates a details message for a client. */
void *contiv_details (const contiv_client_t *c, u16 id, u32 size);
#define new_details(c, name, NAME, extra) ((vl_api_##name##_t *) contiv_details (c, VL_API_##NAME, sizeof (vl_api_##name##_t) + (extra)))

/* The decode functions return false for invalid values. */
bool contiv_decode_bool (const bool *in, bool *out);
bool contiv_decode_name (const u8 *in, char *out);
bool contiv_decode_address (const vl_api_address_t *in, cv_addr_t *out, bool *ip6);
bool contiv_decode_prefix (const vl_api_prefix_t *in, cv_prefix_t *out);
void contiv_encode_address (const cv_addr_t *in, bool ip6, vl_api_address_t *out);
void contiv_encode_prefix (const cv_prefix_t *in, vl_api_prefix_t *out);

#define CONTIV_FOREACH_MESSAGE(_)                                                                                                \
  _ (plugin_get_version, PLUGIN_GET_VERSION)                                                                                     \
  _ (config_set, CONFIG_SET)                                                                                                     \
  _ (config_get, CONFIG_GET)                                                                                                     \
  _ (endpoint_set, ENDPOINT_SET)                                                                                                 \
  _ (endpoint_del, ENDPOINT_DEL)                                                                                                 \
  _ (endpoint_dump, ENDPOINT_DUMP)                                                                                               \
  _ (network_add_del, NETWORK_ADD_DEL)                                                                                           \
  _ (network_dump, NETWORK_DUMP)                                                                                                 \
  _ (snat_add_del, SNAT_ADD_DEL)                                                                                                 \
  _ (snat_dump, SNAT_DUMP)                                                                                                       \
  _ (service_add_del, SERVICE_ADD_DEL)                                                                                           \
  _ (service_dump, SERVICE_DUMP)                                                                                                 \
  _ (backend_add_del, BACKEND_ADD_DEL)                                                                                           \
  _ (backend_dump, BACKEND_DUMP)                                                                                                 \
  _ (frontend_add_del, FRONTEND_ADD_DEL)                                                                                         \
  _ (frontend_dump, FRONTEND_DUMP)                                                                                               \
  _ (range_add_del, RANGE_ADD_DEL)                                                                                               \
  _ (range_dump, RANGE_DUMP)                                                                                                     \
  _ (set_add_del, SET_ADD_DEL)                                                                                                   \
  _ (set_dump, SET_DUMP)                                                                                                         \
  _ (set_member_add_del, SET_MEMBER_ADD_DEL)                                                                                     \
  _ (set_member_dump, SET_MEMBER_DUMP)                                                                                           \
  _ (policy_set, POLICY_SET)                                                                                                     \
  _ (policy_del, POLICY_DEL)                                                                                                     \
  _ (policy_dump, POLICY_DUMP)                                                                                                   \
  _ (endpoint_policy_set, ENDPOINT_POLICY_SET)                                                                                   \
  _ (endpoint_policy_del, ENDPOINT_POLICY_DEL)                                                                                   \
  _ (endpoint_policy_dump, ENDPOINT_POLICY_DUMP)                                                                                 \
  _ (denied_get, DENIED_GET)                                                                                                     \
  _ (connection_get, CONNECTION_GET)                                                                                             \
  _ (connection_del, CONNECTION_DEL)                                                                                             \
  _ (stats_get, STATS_GET)

#define _(name, NAME) void vl_api_contiv_##name##_t_handler (vl_api_contiv_##name##_t *mp);
CONTIV_FOREACH_MESSAGE (_)
#undef _

#endif
