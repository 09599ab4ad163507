#define vl_endianfun		/* define message structures */
#include "contiv.api.h"
#undef vl_endianfun

#define vl_calcsizefun
#include "contiv.api.h"
#undef vl_calsizefun

/* instantiate all the print functions we know about */
#define vl_printfun
#include "contiv.api.h"
#undef vl_printfun

#include "contiv.api_json.h"
static u16
setup_message_id_table (void) {
   api_main_t *am = my_api_main;
   vl_msg_api_msg_config_t c;
   u16 msg_id_base = vl_msg_api_get_msg_ids ("contiv_116d106c", VL_MSG_CONTIV_LAST);
   vec_add1(am->json_api_repr, (u8 *)json_api_repr_contiv);
   vl_msg_api_add_msg_name_crc (am, "contiv_plugin_get_version_51077d14",
                                VL_API_CONTIV_PLUGIN_GET_VERSION + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_plugin_get_version_reply_7f6a45e3",
                                VL_API_CONTIV_PLUGIN_GET_VERSION_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_config_set_09b36b4a",
                                VL_API_CONTIV_CONFIG_SET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_config_set_reply_e8d4e804",
                                VL_API_CONTIV_CONFIG_SET_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_config_get_51077d14",
                                VL_API_CONTIV_CONFIG_GET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_config_get_reply_7079674d",
                                VL_API_CONTIV_CONFIG_GET_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_set_08f83310",
                                VL_API_CONTIV_ENDPOINT_SET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_set_reply_e8d4e804",
                                VL_API_CONTIV_ENDPOINT_SET_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_del_f9e6675e",
                                VL_API_CONTIV_ENDPOINT_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_del_reply_e8d4e804",
                                VL_API_CONTIV_ENDPOINT_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_dump_51077d14",
                                VL_API_CONTIV_ENDPOINT_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_details_fc3b91fb",
                                VL_API_CONTIV_ENDPOINT_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_network_add_del_67c7ee20",
                                VL_API_CONTIV_NETWORK_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_network_add_del_reply_e8d4e804",
                                VL_API_CONTIV_NETWORK_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_network_dump_51077d14",
                                VL_API_CONTIV_NETWORK_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_network_details_cd636f47",
                                VL_API_CONTIV_NETWORK_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_snat_add_del_036fba23",
                                VL_API_CONTIV_SNAT_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_snat_add_del_reply_e8d4e804",
                                VL_API_CONTIV_SNAT_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_snat_dump_51077d14",
                                VL_API_CONTIV_SNAT_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_snat_details_037bb7b3",
                                VL_API_CONTIV_SNAT_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_service_add_del_d6e1f5cd",
                                VL_API_CONTIV_SERVICE_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_service_add_del_reply_e8d4e804",
                                VL_API_CONTIV_SERVICE_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_service_dump_51077d14",
                                VL_API_CONTIV_SERVICE_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_service_details_4d97aab7",
                                VL_API_CONTIV_SERVICE_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_backend_add_del_172c84fd",
                                VL_API_CONTIV_BACKEND_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_backend_add_del_reply_e8d4e804",
                                VL_API_CONTIV_BACKEND_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_backend_dump_47004f9b",
                                VL_API_CONTIV_BACKEND_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_backend_details_6a9a434b",
                                VL_API_CONTIV_BACKEND_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_frontend_add_del_326be804",
                                VL_API_CONTIV_FRONTEND_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_frontend_add_del_reply_e8d4e804",
                                VL_API_CONTIV_FRONTEND_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_frontend_dump_51077d14",
                                VL_API_CONTIV_FRONTEND_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_frontend_details_fdfd73a6",
                                VL_API_CONTIV_FRONTEND_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_range_add_del_05fb8a0f",
                                VL_API_CONTIV_RANGE_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_range_add_del_reply_e8d4e804",
                                VL_API_CONTIV_RANGE_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_range_dump_51077d14",
                                VL_API_CONTIV_RANGE_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_range_details_c17f168e",
                                VL_API_CONTIV_RANGE_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_add_del_dfa0a1e3",
                                VL_API_CONTIV_SET_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_add_del_reply_e8d4e804",
                                VL_API_CONTIV_SET_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_dump_51077d14",
                                VL_API_CONTIV_SET_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_details_bf13b5f0",
                                VL_API_CONTIV_SET_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_member_add_del_d5d8bcd3",
                                VL_API_CONTIV_SET_MEMBER_ADD_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_member_add_del_reply_e8d4e804",
                                VL_API_CONTIV_SET_MEMBER_ADD_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_member_dump_05e92ef6",
                                VL_API_CONTIV_SET_MEMBER_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_set_member_details_f985c5dc",
                                VL_API_CONTIV_SET_MEMBER_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_policy_set_b8a05e6e",
                                VL_API_CONTIV_POLICY_SET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_policy_set_reply_e8d4e804",
                                VL_API_CONTIV_POLICY_SET_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_policy_del_46d861e0",
                                VL_API_CONTIV_POLICY_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_policy_del_reply_e8d4e804",
                                VL_API_CONTIV_POLICY_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_policy_dump_51077d14",
                                VL_API_CONTIV_POLICY_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_policy_details_b0083e23",
                                VL_API_CONTIV_POLICY_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_policy_set_7583819a",
                                VL_API_CONTIV_ENDPOINT_POLICY_SET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_policy_set_reply_e8d4e804",
                                VL_API_CONTIV_ENDPOINT_POLICY_SET_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_policy_del_f9e6675e",
                                VL_API_CONTIV_ENDPOINT_POLICY_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_policy_del_reply_e8d4e804",
                                VL_API_CONTIV_ENDPOINT_POLICY_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_policy_dump_51077d14",
                                VL_API_CONTIV_ENDPOINT_POLICY_DUMP + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_endpoint_policy_details_c91e5e3b",
                                VL_API_CONTIV_ENDPOINT_POLICY_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_denied_get_22e06b2b",
                                VL_API_CONTIV_DENIED_GET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_denied_get_reply_e8d4e804",
                                VL_API_CONTIV_DENIED_GET_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_denied_details_84c792f6",
                                VL_API_CONTIV_DENIED_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_connection_get_1bb618f5",
                                VL_API_CONTIV_CONNECTION_GET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_connection_get_reply_7d69eb42",
                                VL_API_CONTIV_CONNECTION_GET_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_connection_details_c0267deb",
                                VL_API_CONTIV_CONNECTION_DETAILS + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_connection_del_e7e15dcb",
                                VL_API_CONTIV_CONNECTION_DEL + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_connection_del_reply_e8d4e804",
                                VL_API_CONTIV_CONNECTION_DEL_REPLY + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_stats_get_51077d14",
                                VL_API_CONTIV_STATS_GET + msg_id_base);
   vl_msg_api_add_msg_name_crc (am, "contiv_stats_get_reply_23554f02",
                                VL_API_CONTIV_STATS_GET_REPLY + msg_id_base);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_DENIED_GET + msg_id_base,
   .name = "contiv_denied_get",
   .handler = vl_api_contiv_denied_get_t_handler,
   .endian = vl_api_contiv_denied_get_t_endian,
   .format_fn = vl_api_contiv_denied_get_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_denied_get_t_tojson,
   .fromjson = vl_api_contiv_denied_get_t_fromjson,
   .calc_size = vl_api_contiv_denied_get_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_DENIED_GET_REPLY + msg_id_base,
  .name = "contiv_denied_get_reply",
  .handler = 0,
  .endian = vl_api_contiv_denied_get_reply_t_endian,
  .format_fn = vl_api_contiv_denied_get_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_denied_get_reply_t_tojson,
  .fromjson = vl_api_contiv_denied_get_reply_t_fromjson,
  .calc_size = vl_api_contiv_denied_get_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_DENIED_DETAILS + msg_id_base,
  .name = "contiv_denied_details",
  .handler = 0,
  .endian = vl_api_contiv_denied_details_t_endian,
  .format_fn = vl_api_contiv_denied_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_denied_details_t_tojson,
  .fromjson = vl_api_contiv_denied_details_t_fromjson,
  .calc_size = vl_api_contiv_denied_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_CONNECTION_GET + msg_id_base,
   .name = "contiv_connection_get",
   .handler = vl_api_contiv_connection_get_t_handler,
   .endian = vl_api_contiv_connection_get_t_endian,
   .format_fn = vl_api_contiv_connection_get_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_connection_get_t_tojson,
   .fromjson = vl_api_contiv_connection_get_t_fromjson,
   .calc_size = vl_api_contiv_connection_get_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_CONNECTION_GET_REPLY + msg_id_base,
  .name = "contiv_connection_get_reply",
  .handler = 0,
  .endian = vl_api_contiv_connection_get_reply_t_endian,
  .format_fn = vl_api_contiv_connection_get_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_connection_get_reply_t_tojson,
  .fromjson = vl_api_contiv_connection_get_reply_t_fromjson,
  .calc_size = vl_api_contiv_connection_get_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_CONNECTION_DETAILS + msg_id_base,
  .name = "contiv_connection_details",
  .handler = 0,
  .endian = vl_api_contiv_connection_details_t_endian,
  .format_fn = vl_api_contiv_connection_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_connection_details_t_tojson,
  .fromjson = vl_api_contiv_connection_details_t_fromjson,
  .calc_size = vl_api_contiv_connection_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_PLUGIN_GET_VERSION + msg_id_base,
   .name = "contiv_plugin_get_version",
   .handler = vl_api_contiv_plugin_get_version_t_handler,
   .endian = vl_api_contiv_plugin_get_version_t_endian,
   .format_fn = vl_api_contiv_plugin_get_version_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_plugin_get_version_t_tojson,
   .fromjson = vl_api_contiv_plugin_get_version_t_fromjson,
   .calc_size = vl_api_contiv_plugin_get_version_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_PLUGIN_GET_VERSION_REPLY + msg_id_base,
  .name = "contiv_plugin_get_version_reply",
  .handler = 0,
  .endian = vl_api_contiv_plugin_get_version_reply_t_endian,
  .format_fn = vl_api_contiv_plugin_get_version_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_plugin_get_version_reply_t_tojson,
  .fromjson = vl_api_contiv_plugin_get_version_reply_t_fromjson,
  .calc_size = vl_api_contiv_plugin_get_version_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_CONFIG_SET + msg_id_base,
   .name = "contiv_config_set",
   .handler = vl_api_contiv_config_set_t_handler,
   .endian = vl_api_contiv_config_set_t_endian,
   .format_fn = vl_api_contiv_config_set_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_config_set_t_tojson,
   .fromjson = vl_api_contiv_config_set_t_fromjson,
   .calc_size = vl_api_contiv_config_set_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_CONFIG_SET_REPLY + msg_id_base,
  .name = "contiv_config_set_reply",
  .handler = 0,
  .endian = vl_api_contiv_config_set_reply_t_endian,
  .format_fn = vl_api_contiv_config_set_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_config_set_reply_t_tojson,
  .fromjson = vl_api_contiv_config_set_reply_t_fromjson,
  .calc_size = vl_api_contiv_config_set_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_CONFIG_GET + msg_id_base,
   .name = "contiv_config_get",
   .handler = vl_api_contiv_config_get_t_handler,
   .endian = vl_api_contiv_config_get_t_endian,
   .format_fn = vl_api_contiv_config_get_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_config_get_t_tojson,
   .fromjson = vl_api_contiv_config_get_t_fromjson,
   .calc_size = vl_api_contiv_config_get_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_CONFIG_GET_REPLY + msg_id_base,
  .name = "contiv_config_get_reply",
  .handler = 0,
  .endian = vl_api_contiv_config_get_reply_t_endian,
  .format_fn = vl_api_contiv_config_get_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_config_get_reply_t_tojson,
  .fromjson = vl_api_contiv_config_get_reply_t_fromjson,
  .calc_size = vl_api_contiv_config_get_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_ENDPOINT_SET + msg_id_base,
   .name = "contiv_endpoint_set",
   .handler = vl_api_contiv_endpoint_set_t_handler,
   .endian = vl_api_contiv_endpoint_set_t_endian,
   .format_fn = vl_api_contiv_endpoint_set_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_endpoint_set_t_tojson,
   .fromjson = vl_api_contiv_endpoint_set_t_fromjson,
   .calc_size = vl_api_contiv_endpoint_set_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_ENDPOINT_SET_REPLY + msg_id_base,
  .name = "contiv_endpoint_set_reply",
  .handler = 0,
  .endian = vl_api_contiv_endpoint_set_reply_t_endian,
  .format_fn = vl_api_contiv_endpoint_set_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_endpoint_set_reply_t_tojson,
  .fromjson = vl_api_contiv_endpoint_set_reply_t_fromjson,
  .calc_size = vl_api_contiv_endpoint_set_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_ENDPOINT_DEL + msg_id_base,
   .name = "contiv_endpoint_del",
   .handler = vl_api_contiv_endpoint_del_t_handler,
   .endian = vl_api_contiv_endpoint_del_t_endian,
   .format_fn = vl_api_contiv_endpoint_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_endpoint_del_t_tojson,
   .fromjson = vl_api_contiv_endpoint_del_t_fromjson,
   .calc_size = vl_api_contiv_endpoint_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_ENDPOINT_DEL_REPLY + msg_id_base,
  .name = "contiv_endpoint_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_endpoint_del_reply_t_endian,
  .format_fn = vl_api_contiv_endpoint_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_endpoint_del_reply_t_tojson,
  .fromjson = vl_api_contiv_endpoint_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_endpoint_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_ENDPOINT_DUMP + msg_id_base,
   .name = "contiv_endpoint_dump",
   .handler = vl_api_contiv_endpoint_dump_t_handler,
   .endian = vl_api_contiv_endpoint_dump_t_endian,
   .format_fn = vl_api_contiv_endpoint_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_endpoint_dump_t_tojson,
   .fromjson = vl_api_contiv_endpoint_dump_t_fromjson,
   .calc_size = vl_api_contiv_endpoint_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_ENDPOINT_DETAILS + msg_id_base,
  .name = "contiv_endpoint_details",
  .handler = 0,
  .endian = vl_api_contiv_endpoint_details_t_endian,
  .format_fn = vl_api_contiv_endpoint_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_endpoint_details_t_tojson,
  .fromjson = vl_api_contiv_endpoint_details_t_fromjson,
  .calc_size = vl_api_contiv_endpoint_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_NETWORK_ADD_DEL + msg_id_base,
   .name = "contiv_network_add_del",
   .handler = vl_api_contiv_network_add_del_t_handler,
   .endian = vl_api_contiv_network_add_del_t_endian,
   .format_fn = vl_api_contiv_network_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_network_add_del_t_tojson,
   .fromjson = vl_api_contiv_network_add_del_t_fromjson,
   .calc_size = vl_api_contiv_network_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_NETWORK_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_network_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_network_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_network_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_network_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_network_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_network_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_NETWORK_DUMP + msg_id_base,
   .name = "contiv_network_dump",
   .handler = vl_api_contiv_network_dump_t_handler,
   .endian = vl_api_contiv_network_dump_t_endian,
   .format_fn = vl_api_contiv_network_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_network_dump_t_tojson,
   .fromjson = vl_api_contiv_network_dump_t_fromjson,
   .calc_size = vl_api_contiv_network_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_NETWORK_DETAILS + msg_id_base,
  .name = "contiv_network_details",
  .handler = 0,
  .endian = vl_api_contiv_network_details_t_endian,
  .format_fn = vl_api_contiv_network_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_network_details_t_tojson,
  .fromjson = vl_api_contiv_network_details_t_fromjson,
  .calc_size = vl_api_contiv_network_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SNAT_ADD_DEL + msg_id_base,
   .name = "contiv_snat_add_del",
   .handler = vl_api_contiv_snat_add_del_t_handler,
   .endian = vl_api_contiv_snat_add_del_t_endian,
   .format_fn = vl_api_contiv_snat_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_snat_add_del_t_tojson,
   .fromjson = vl_api_contiv_snat_add_del_t_fromjson,
   .calc_size = vl_api_contiv_snat_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SNAT_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_snat_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_snat_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_snat_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_snat_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_snat_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_snat_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SNAT_DUMP + msg_id_base,
   .name = "contiv_snat_dump",
   .handler = vl_api_contiv_snat_dump_t_handler,
   .endian = vl_api_contiv_snat_dump_t_endian,
   .format_fn = vl_api_contiv_snat_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_snat_dump_t_tojson,
   .fromjson = vl_api_contiv_snat_dump_t_fromjson,
   .calc_size = vl_api_contiv_snat_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SNAT_DETAILS + msg_id_base,
  .name = "contiv_snat_details",
  .handler = 0,
  .endian = vl_api_contiv_snat_details_t_endian,
  .format_fn = vl_api_contiv_snat_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_snat_details_t_tojson,
  .fromjson = vl_api_contiv_snat_details_t_fromjson,
  .calc_size = vl_api_contiv_snat_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SERVICE_ADD_DEL + msg_id_base,
   .name = "contiv_service_add_del",
   .handler = vl_api_contiv_service_add_del_t_handler,
   .endian = vl_api_contiv_service_add_del_t_endian,
   .format_fn = vl_api_contiv_service_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_service_add_del_t_tojson,
   .fromjson = vl_api_contiv_service_add_del_t_fromjson,
   .calc_size = vl_api_contiv_service_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SERVICE_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_service_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_service_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_service_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_service_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_service_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_service_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SERVICE_DUMP + msg_id_base,
   .name = "contiv_service_dump",
   .handler = vl_api_contiv_service_dump_t_handler,
   .endian = vl_api_contiv_service_dump_t_endian,
   .format_fn = vl_api_contiv_service_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_service_dump_t_tojson,
   .fromjson = vl_api_contiv_service_dump_t_fromjson,
   .calc_size = vl_api_contiv_service_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SERVICE_DETAILS + msg_id_base,
  .name = "contiv_service_details",
  .handler = 0,
  .endian = vl_api_contiv_service_details_t_endian,
  .format_fn = vl_api_contiv_service_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_service_details_t_tojson,
  .fromjson = vl_api_contiv_service_details_t_fromjson,
  .calc_size = vl_api_contiv_service_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_BACKEND_ADD_DEL + msg_id_base,
   .name = "contiv_backend_add_del",
   .handler = vl_api_contiv_backend_add_del_t_handler,
   .endian = vl_api_contiv_backend_add_del_t_endian,
   .format_fn = vl_api_contiv_backend_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_backend_add_del_t_tojson,
   .fromjson = vl_api_contiv_backend_add_del_t_fromjson,
   .calc_size = vl_api_contiv_backend_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_BACKEND_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_backend_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_backend_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_backend_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_backend_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_backend_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_backend_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_BACKEND_DUMP + msg_id_base,
   .name = "contiv_backend_dump",
   .handler = vl_api_contiv_backend_dump_t_handler,
   .endian = vl_api_contiv_backend_dump_t_endian,
   .format_fn = vl_api_contiv_backend_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_backend_dump_t_tojson,
   .fromjson = vl_api_contiv_backend_dump_t_fromjson,
   .calc_size = vl_api_contiv_backend_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_BACKEND_DETAILS + msg_id_base,
  .name = "contiv_backend_details",
  .handler = 0,
  .endian = vl_api_contiv_backend_details_t_endian,
  .format_fn = vl_api_contiv_backend_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_backend_details_t_tojson,
  .fromjson = vl_api_contiv_backend_details_t_fromjson,
  .calc_size = vl_api_contiv_backend_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_FRONTEND_ADD_DEL + msg_id_base,
   .name = "contiv_frontend_add_del",
   .handler = vl_api_contiv_frontend_add_del_t_handler,
   .endian = vl_api_contiv_frontend_add_del_t_endian,
   .format_fn = vl_api_contiv_frontend_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_frontend_add_del_t_tojson,
   .fromjson = vl_api_contiv_frontend_add_del_t_fromjson,
   .calc_size = vl_api_contiv_frontend_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_FRONTEND_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_frontend_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_frontend_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_frontend_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_frontend_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_frontend_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_frontend_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_FRONTEND_DUMP + msg_id_base,
   .name = "contiv_frontend_dump",
   .handler = vl_api_contiv_frontend_dump_t_handler,
   .endian = vl_api_contiv_frontend_dump_t_endian,
   .format_fn = vl_api_contiv_frontend_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_frontend_dump_t_tojson,
   .fromjson = vl_api_contiv_frontend_dump_t_fromjson,
   .calc_size = vl_api_contiv_frontend_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_FRONTEND_DETAILS + msg_id_base,
  .name = "contiv_frontend_details",
  .handler = 0,
  .endian = vl_api_contiv_frontend_details_t_endian,
  .format_fn = vl_api_contiv_frontend_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_frontend_details_t_tojson,
  .fromjson = vl_api_contiv_frontend_details_t_fromjson,
  .calc_size = vl_api_contiv_frontend_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_RANGE_ADD_DEL + msg_id_base,
   .name = "contiv_range_add_del",
   .handler = vl_api_contiv_range_add_del_t_handler,
   .endian = vl_api_contiv_range_add_del_t_endian,
   .format_fn = vl_api_contiv_range_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_range_add_del_t_tojson,
   .fromjson = vl_api_contiv_range_add_del_t_fromjson,
   .calc_size = vl_api_contiv_range_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_RANGE_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_range_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_range_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_range_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_range_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_range_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_range_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_RANGE_DUMP + msg_id_base,
   .name = "contiv_range_dump",
   .handler = vl_api_contiv_range_dump_t_handler,
   .endian = vl_api_contiv_range_dump_t_endian,
   .format_fn = vl_api_contiv_range_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_range_dump_t_tojson,
   .fromjson = vl_api_contiv_range_dump_t_fromjson,
   .calc_size = vl_api_contiv_range_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_RANGE_DETAILS + msg_id_base,
  .name = "contiv_range_details",
  .handler = 0,
  .endian = vl_api_contiv_range_details_t_endian,
  .format_fn = vl_api_contiv_range_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_range_details_t_tojson,
  .fromjson = vl_api_contiv_range_details_t_fromjson,
  .calc_size = vl_api_contiv_range_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SET_ADD_DEL + msg_id_base,
   .name = "contiv_set_add_del",
   .handler = vl_api_contiv_set_add_del_t_handler,
   .endian = vl_api_contiv_set_add_del_t_endian,
   .format_fn = vl_api_contiv_set_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_set_add_del_t_tojson,
   .fromjson = vl_api_contiv_set_add_del_t_fromjson,
   .calc_size = vl_api_contiv_set_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SET_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_set_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_set_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_set_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_set_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_set_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_set_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SET_DUMP + msg_id_base,
   .name = "contiv_set_dump",
   .handler = vl_api_contiv_set_dump_t_handler,
   .endian = vl_api_contiv_set_dump_t_endian,
   .format_fn = vl_api_contiv_set_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_set_dump_t_tojson,
   .fromjson = vl_api_contiv_set_dump_t_fromjson,
   .calc_size = vl_api_contiv_set_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SET_DETAILS + msg_id_base,
  .name = "contiv_set_details",
  .handler = 0,
  .endian = vl_api_contiv_set_details_t_endian,
  .format_fn = vl_api_contiv_set_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_set_details_t_tojson,
  .fromjson = vl_api_contiv_set_details_t_fromjson,
  .calc_size = vl_api_contiv_set_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SET_MEMBER_ADD_DEL + msg_id_base,
   .name = "contiv_set_member_add_del",
   .handler = vl_api_contiv_set_member_add_del_t_handler,
   .endian = vl_api_contiv_set_member_add_del_t_endian,
   .format_fn = vl_api_contiv_set_member_add_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_set_member_add_del_t_tojson,
   .fromjson = vl_api_contiv_set_member_add_del_t_fromjson,
   .calc_size = vl_api_contiv_set_member_add_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SET_MEMBER_ADD_DEL_REPLY + msg_id_base,
  .name = "contiv_set_member_add_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_set_member_add_del_reply_t_endian,
  .format_fn = vl_api_contiv_set_member_add_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_set_member_add_del_reply_t_tojson,
  .fromjson = vl_api_contiv_set_member_add_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_set_member_add_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_SET_MEMBER_DUMP + msg_id_base,
   .name = "contiv_set_member_dump",
   .handler = vl_api_contiv_set_member_dump_t_handler,
   .endian = vl_api_contiv_set_member_dump_t_endian,
   .format_fn = vl_api_contiv_set_member_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_set_member_dump_t_tojson,
   .fromjson = vl_api_contiv_set_member_dump_t_fromjson,
   .calc_size = vl_api_contiv_set_member_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_SET_MEMBER_DETAILS + msg_id_base,
  .name = "contiv_set_member_details",
  .handler = 0,
  .endian = vl_api_contiv_set_member_details_t_endian,
  .format_fn = vl_api_contiv_set_member_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_set_member_details_t_tojson,
  .fromjson = vl_api_contiv_set_member_details_t_fromjson,
  .calc_size = vl_api_contiv_set_member_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_POLICY_SET + msg_id_base,
   .name = "contiv_policy_set",
   .handler = vl_api_contiv_policy_set_t_handler,
   .endian = vl_api_contiv_policy_set_t_endian,
   .format_fn = vl_api_contiv_policy_set_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_policy_set_t_tojson,
   .fromjson = vl_api_contiv_policy_set_t_fromjson,
   .calc_size = vl_api_contiv_policy_set_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_POLICY_SET_REPLY + msg_id_base,
  .name = "contiv_policy_set_reply",
  .handler = 0,
  .endian = vl_api_contiv_policy_set_reply_t_endian,
  .format_fn = vl_api_contiv_policy_set_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_policy_set_reply_t_tojson,
  .fromjson = vl_api_contiv_policy_set_reply_t_fromjson,
  .calc_size = vl_api_contiv_policy_set_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_POLICY_DEL + msg_id_base,
   .name = "contiv_policy_del",
   .handler = vl_api_contiv_policy_del_t_handler,
   .endian = vl_api_contiv_policy_del_t_endian,
   .format_fn = vl_api_contiv_policy_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_policy_del_t_tojson,
   .fromjson = vl_api_contiv_policy_del_t_fromjson,
   .calc_size = vl_api_contiv_policy_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_POLICY_DEL_REPLY + msg_id_base,
  .name = "contiv_policy_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_policy_del_reply_t_endian,
  .format_fn = vl_api_contiv_policy_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_policy_del_reply_t_tojson,
  .fromjson = vl_api_contiv_policy_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_policy_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_POLICY_DUMP + msg_id_base,
   .name = "contiv_policy_dump",
   .handler = vl_api_contiv_policy_dump_t_handler,
   .endian = vl_api_contiv_policy_dump_t_endian,
   .format_fn = vl_api_contiv_policy_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_policy_dump_t_tojson,
   .fromjson = vl_api_contiv_policy_dump_t_fromjson,
   .calc_size = vl_api_contiv_policy_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_POLICY_DETAILS + msg_id_base,
  .name = "contiv_policy_details",
  .handler = 0,
  .endian = vl_api_contiv_policy_details_t_endian,
  .format_fn = vl_api_contiv_policy_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_policy_details_t_tojson,
  .fromjson = vl_api_contiv_policy_details_t_fromjson,
  .calc_size = vl_api_contiv_policy_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_ENDPOINT_POLICY_SET + msg_id_base,
   .name = "contiv_endpoint_policy_set",
   .handler = vl_api_contiv_endpoint_policy_set_t_handler,
   .endian = vl_api_contiv_endpoint_policy_set_t_endian,
   .format_fn = vl_api_contiv_endpoint_policy_set_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_endpoint_policy_set_t_tojson,
   .fromjson = vl_api_contiv_endpoint_policy_set_t_fromjson,
   .calc_size = vl_api_contiv_endpoint_policy_set_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_ENDPOINT_POLICY_SET_REPLY + msg_id_base,
  .name = "contiv_endpoint_policy_set_reply",
  .handler = 0,
  .endian = vl_api_contiv_endpoint_policy_set_reply_t_endian,
  .format_fn = vl_api_contiv_endpoint_policy_set_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_endpoint_policy_set_reply_t_tojson,
  .fromjson = vl_api_contiv_endpoint_policy_set_reply_t_fromjson,
  .calc_size = vl_api_contiv_endpoint_policy_set_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_ENDPOINT_POLICY_DEL + msg_id_base,
   .name = "contiv_endpoint_policy_del",
   .handler = vl_api_contiv_endpoint_policy_del_t_handler,
   .endian = vl_api_contiv_endpoint_policy_del_t_endian,
   .format_fn = vl_api_contiv_endpoint_policy_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_endpoint_policy_del_t_tojson,
   .fromjson = vl_api_contiv_endpoint_policy_del_t_fromjson,
   .calc_size = vl_api_contiv_endpoint_policy_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_ENDPOINT_POLICY_DEL_REPLY + msg_id_base,
  .name = "contiv_endpoint_policy_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_endpoint_policy_del_reply_t_endian,
  .format_fn = vl_api_contiv_endpoint_policy_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_endpoint_policy_del_reply_t_tojson,
  .fromjson = vl_api_contiv_endpoint_policy_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_endpoint_policy_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_ENDPOINT_POLICY_DUMP + msg_id_base,
   .name = "contiv_endpoint_policy_dump",
   .handler = vl_api_contiv_endpoint_policy_dump_t_handler,
   .endian = vl_api_contiv_endpoint_policy_dump_t_endian,
   .format_fn = vl_api_contiv_endpoint_policy_dump_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_endpoint_policy_dump_t_tojson,
   .fromjson = vl_api_contiv_endpoint_policy_dump_t_fromjson,
   .calc_size = vl_api_contiv_endpoint_policy_dump_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_ENDPOINT_POLICY_DETAILS + msg_id_base,
  .name = "contiv_endpoint_policy_details",
  .handler = 0,
  .endian = vl_api_contiv_endpoint_policy_details_t_endian,
  .format_fn = vl_api_contiv_endpoint_policy_details_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_endpoint_policy_details_t_tojson,
  .fromjson = vl_api_contiv_endpoint_policy_details_t_fromjson,
  .calc_size = vl_api_contiv_endpoint_policy_details_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_CONNECTION_DEL + msg_id_base,
   .name = "contiv_connection_del",
   .handler = vl_api_contiv_connection_del_t_handler,
   .endian = vl_api_contiv_connection_del_t_endian,
   .format_fn = vl_api_contiv_connection_del_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_connection_del_t_tojson,
   .fromjson = vl_api_contiv_connection_del_t_fromjson,
   .calc_size = vl_api_contiv_connection_del_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_CONNECTION_DEL_REPLY + msg_id_base,
  .name = "contiv_connection_del_reply",
  .handler = 0,
  .endian = vl_api_contiv_connection_del_reply_t_endian,
  .format_fn = vl_api_contiv_connection_del_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_connection_del_reply_t_tojson,
  .fromjson = vl_api_contiv_connection_del_reply_t_fromjson,
  .calc_size = vl_api_contiv_connection_del_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t)  {.id = VL_API_CONTIV_STATS_GET + msg_id_base,
   .name = "contiv_stats_get",
   .handler = vl_api_contiv_stats_get_t_handler,
   .endian = vl_api_contiv_stats_get_t_endian,
   .format_fn = vl_api_contiv_stats_get_t_format,
   .traced = 1,
   .replay = 1,
   .tojson = vl_api_contiv_stats_get_t_tojson,
   .fromjson = vl_api_contiv_stats_get_t_fromjson,
   .calc_size = vl_api_contiv_stats_get_t_calc_size,
   .is_autoendian = 0};
   vl_msg_api_config (&c);
   c = (vl_msg_api_msg_config_t) {.id = VL_API_CONTIV_STATS_GET_REPLY + msg_id_base,
  .name = "contiv_stats_get_reply",
  .handler = 0,
  .endian = vl_api_contiv_stats_get_reply_t_endian,
  .format_fn = vl_api_contiv_stats_get_reply_t_format,
  .traced = 1,
  .replay = 1,
  .tojson = vl_api_contiv_stats_get_reply_t_tojson,
  .fromjson = vl_api_contiv_stats_get_reply_t_fromjson,
  .calc_size = vl_api_contiv_stats_get_reply_t_calc_size,
  .is_autoendian = 0};
   vl_msg_api_config (&c);
   return msg_id_base;
}
