/*
 * VLIB API definitions 2026-11-29 07:12:46
 * Input file: contiv.api
 * Automatically generated: please edit the input file NOT this file!
 */

#include <stdbool.h>
#if defined(vl_msg_id)||defined(vl_union_id) \
    || defined(vl_printfun) ||defined(vl_endianfun) \
    || defined(vl_api_version)||defined(vl_typedefs) \
    || defined(vl_msg_name)||defined(vl_msg_name_crc_list) \
    || defined(vl_api_version_tuple) || defined(vl_calcsizefun)
/* ok, something was selected */
#else
#warning no content included from contiv.api
#endif

#define VL_API_PACKED(x) x __attribute__ ((packed))

/*
 * Note: VL_API_MAX_ARRAY_SIZE is set to an arbitrarily large limit.
 *
 * However, any message with a ~2 billion element array is likely to break the
 * api handling long before this limit causes array element endian issues.
 *
 * Applications should be written to create reasonable api messages.
 */
#define VL_API_MAX_ARRAY_SIZE 0x7fffffff

/* Imported API files */
#ifndef vl_api_version
#include <vnet/interface_types.api.h>
#include <vnet/ip/ip_types.api.h>
#endif

/****** Message ID / handler enum ******/

#ifdef vl_msg_id
vl_msg_id(VL_API_CONTIV_PLUGIN_GET_VERSION, vl_api_contiv_plugin_get_version_t_handler)
vl_msg_id(VL_API_CONTIV_PLUGIN_GET_VERSION_REPLY, vl_api_contiv_plugin_get_version_reply_t_handler)
vl_msg_id(VL_API_CONTIV_CONFIG_SET, vl_api_contiv_config_set_t_handler)
vl_msg_id(VL_API_CONTIV_CONFIG_SET_REPLY, vl_api_contiv_config_set_reply_t_handler)
vl_msg_id(VL_API_CONTIV_CONFIG_GET, vl_api_contiv_config_get_t_handler)
vl_msg_id(VL_API_CONTIV_CONFIG_GET_REPLY, vl_api_contiv_config_get_reply_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_SET, vl_api_contiv_endpoint_set_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_SET_REPLY, vl_api_contiv_endpoint_set_reply_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_DEL, vl_api_contiv_endpoint_del_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_DEL_REPLY, vl_api_contiv_endpoint_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_DUMP, vl_api_contiv_endpoint_dump_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_DETAILS, vl_api_contiv_endpoint_details_t_handler)
vl_msg_id(VL_API_CONTIV_NETWORK_ADD_DEL, vl_api_contiv_network_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_NETWORK_ADD_DEL_REPLY, vl_api_contiv_network_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_NETWORK_DUMP, vl_api_contiv_network_dump_t_handler)
vl_msg_id(VL_API_CONTIV_NETWORK_DETAILS, vl_api_contiv_network_details_t_handler)
vl_msg_id(VL_API_CONTIV_SNAT_ADD_DEL, vl_api_contiv_snat_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_SNAT_ADD_DEL_REPLY, vl_api_contiv_snat_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_SNAT_DUMP, vl_api_contiv_snat_dump_t_handler)
vl_msg_id(VL_API_CONTIV_SNAT_DETAILS, vl_api_contiv_snat_details_t_handler)
vl_msg_id(VL_API_CONTIV_SERVICE_ADD_DEL, vl_api_contiv_service_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_SERVICE_ADD_DEL_REPLY, vl_api_contiv_service_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_SERVICE_DUMP, vl_api_contiv_service_dump_t_handler)
vl_msg_id(VL_API_CONTIV_SERVICE_DETAILS, vl_api_contiv_service_details_t_handler)
vl_msg_id(VL_API_CONTIV_BACKEND_ADD_DEL, vl_api_contiv_backend_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_BACKEND_ADD_DEL_REPLY, vl_api_contiv_backend_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_BACKEND_DUMP, vl_api_contiv_backend_dump_t_handler)
vl_msg_id(VL_API_CONTIV_BACKEND_DETAILS, vl_api_contiv_backend_details_t_handler)
vl_msg_id(VL_API_CONTIV_FRONTEND_ADD_DEL, vl_api_contiv_frontend_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_FRONTEND_ADD_DEL_REPLY, vl_api_contiv_frontend_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_FRONTEND_DUMP, vl_api_contiv_frontend_dump_t_handler)
vl_msg_id(VL_API_CONTIV_FRONTEND_DETAILS, vl_api_contiv_frontend_details_t_handler)
vl_msg_id(VL_API_CONTIV_RANGE_ADD_DEL, vl_api_contiv_range_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_RANGE_ADD_DEL_REPLY, vl_api_contiv_range_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_RANGE_DUMP, vl_api_contiv_range_dump_t_handler)
vl_msg_id(VL_API_CONTIV_RANGE_DETAILS, vl_api_contiv_range_details_t_handler)
vl_msg_id(VL_API_CONTIV_SET_ADD_DEL, vl_api_contiv_set_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_SET_ADD_DEL_REPLY, vl_api_contiv_set_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_SET_DUMP, vl_api_contiv_set_dump_t_handler)
vl_msg_id(VL_API_CONTIV_SET_DETAILS, vl_api_contiv_set_details_t_handler)
vl_msg_id(VL_API_CONTIV_SET_MEMBER_ADD_DEL, vl_api_contiv_set_member_add_del_t_handler)
vl_msg_id(VL_API_CONTIV_SET_MEMBER_ADD_DEL_REPLY, vl_api_contiv_set_member_add_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_SET_MEMBER_DUMP, vl_api_contiv_set_member_dump_t_handler)
vl_msg_id(VL_API_CONTIV_SET_MEMBER_DETAILS, vl_api_contiv_set_member_details_t_handler)
vl_msg_id(VL_API_CONTIV_POLICY_SET, vl_api_contiv_policy_set_t_handler)
vl_msg_id(VL_API_CONTIV_POLICY_SET_REPLY, vl_api_contiv_policy_set_reply_t_handler)
vl_msg_id(VL_API_CONTIV_POLICY_DEL, vl_api_contiv_policy_del_t_handler)
vl_msg_id(VL_API_CONTIV_POLICY_DEL_REPLY, vl_api_contiv_policy_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_POLICY_DUMP, vl_api_contiv_policy_dump_t_handler)
vl_msg_id(VL_API_CONTIV_POLICY_DETAILS, vl_api_contiv_policy_details_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_POLICY_SET, vl_api_contiv_endpoint_policy_set_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_POLICY_SET_REPLY, vl_api_contiv_endpoint_policy_set_reply_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_POLICY_DEL, vl_api_contiv_endpoint_policy_del_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_POLICY_DEL_REPLY, vl_api_contiv_endpoint_policy_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_POLICY_DUMP, vl_api_contiv_endpoint_policy_dump_t_handler)
vl_msg_id(VL_API_CONTIV_ENDPOINT_POLICY_DETAILS, vl_api_contiv_endpoint_policy_details_t_handler)
vl_msg_id(VL_API_CONTIV_DENIED_GET, vl_api_contiv_denied_get_t_handler)
vl_msg_id(VL_API_CONTIV_DENIED_GET_REPLY, vl_api_contiv_denied_get_reply_t_handler)
vl_msg_id(VL_API_CONTIV_DENIED_DETAILS, vl_api_contiv_denied_details_t_handler)
vl_msg_id(VL_API_CONTIV_CONNECTION_GET, vl_api_contiv_connection_get_t_handler)
vl_msg_id(VL_API_CONTIV_CONNECTION_GET_REPLY, vl_api_contiv_connection_get_reply_t_handler)
vl_msg_id(VL_API_CONTIV_CONNECTION_DETAILS, vl_api_contiv_connection_details_t_handler)
vl_msg_id(VL_API_CONTIV_CONNECTION_DEL, vl_api_contiv_connection_del_t_handler)
vl_msg_id(VL_API_CONTIV_CONNECTION_DEL_REPLY, vl_api_contiv_connection_del_reply_t_handler)
vl_msg_id(VL_API_CONTIV_STATS_GET, vl_api_contiv_stats_get_t_handler)
vl_msg_id(VL_API_CONTIV_STATS_GET_REPLY, vl_api_contiv_stats_get_reply_t_handler)
#endif
/****** Message names ******/

#ifdef vl_msg_name
vl_msg_name(vl_api_contiv_plugin_get_version_t, 1)
vl_msg_name(vl_api_contiv_plugin_get_version_reply_t, 1)
vl_msg_name(vl_api_contiv_config_set_t, 1)
vl_msg_name(vl_api_contiv_config_set_reply_t, 1)
vl_msg_name(vl_api_contiv_config_get_t, 1)
vl_msg_name(vl_api_contiv_config_get_reply_t, 1)
vl_msg_name(vl_api_contiv_endpoint_set_t, 1)
vl_msg_name(vl_api_contiv_endpoint_set_reply_t, 1)
vl_msg_name(vl_api_contiv_endpoint_del_t, 1)
vl_msg_name(vl_api_contiv_endpoint_del_reply_t, 1)
vl_msg_name(vl_api_contiv_endpoint_dump_t, 1)
vl_msg_name(vl_api_contiv_endpoint_details_t, 1)
vl_msg_name(vl_api_contiv_network_add_del_t, 1)
vl_msg_name(vl_api_contiv_network_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_network_dump_t, 1)
vl_msg_name(vl_api_contiv_network_details_t, 1)
vl_msg_name(vl_api_contiv_snat_add_del_t, 1)
vl_msg_name(vl_api_contiv_snat_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_snat_dump_t, 1)
vl_msg_name(vl_api_contiv_snat_details_t, 1)
vl_msg_name(vl_api_contiv_service_add_del_t, 1)
vl_msg_name(vl_api_contiv_service_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_service_dump_t, 1)
vl_msg_name(vl_api_contiv_service_details_t, 1)
vl_msg_name(vl_api_contiv_backend_add_del_t, 1)
vl_msg_name(vl_api_contiv_backend_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_backend_dump_t, 1)
vl_msg_name(vl_api_contiv_backend_details_t, 1)
vl_msg_name(vl_api_contiv_frontend_add_del_t, 1)
vl_msg_name(vl_api_contiv_frontend_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_frontend_dump_t, 1)
vl_msg_name(vl_api_contiv_frontend_details_t, 1)
vl_msg_name(vl_api_contiv_range_add_del_t, 1)
vl_msg_name(vl_api_contiv_range_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_range_dump_t, 1)
vl_msg_name(vl_api_contiv_range_details_t, 1)
vl_msg_name(vl_api_contiv_set_add_del_t, 1)
vl_msg_name(vl_api_contiv_set_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_set_dump_t, 1)
vl_msg_name(vl_api_contiv_set_details_t, 1)
vl_msg_name(vl_api_contiv_set_member_add_del_t, 1)
vl_msg_name(vl_api_contiv_set_member_add_del_reply_t, 1)
vl_msg_name(vl_api_contiv_set_member_dump_t, 1)
vl_msg_name(vl_api_contiv_set_member_details_t, 1)
vl_msg_name(vl_api_contiv_policy_set_t, 1)
vl_msg_name(vl_api_contiv_policy_set_reply_t, 1)
vl_msg_name(vl_api_contiv_policy_del_t, 1)
vl_msg_name(vl_api_contiv_policy_del_reply_t, 1)
vl_msg_name(vl_api_contiv_policy_dump_t, 1)
vl_msg_name(vl_api_contiv_policy_details_t, 1)
vl_msg_name(vl_api_contiv_endpoint_policy_set_t, 1)
vl_msg_name(vl_api_contiv_endpoint_policy_set_reply_t, 1)
vl_msg_name(vl_api_contiv_endpoint_policy_del_t, 1)
vl_msg_name(vl_api_contiv_endpoint_policy_del_reply_t, 1)
vl_msg_name(vl_api_contiv_endpoint_policy_dump_t, 1)
vl_msg_name(vl_api_contiv_endpoint_policy_details_t, 1)
vl_msg_name(vl_api_contiv_denied_get_t, 1)
vl_msg_name(vl_api_contiv_denied_get_reply_t, 1)
vl_msg_name(vl_api_contiv_denied_details_t, 1)
vl_msg_name(vl_api_contiv_connection_get_t, 1)
vl_msg_name(vl_api_contiv_connection_get_reply_t, 1)
vl_msg_name(vl_api_contiv_connection_details_t, 1)
vl_msg_name(vl_api_contiv_connection_del_t, 1)
vl_msg_name(vl_api_contiv_connection_del_reply_t, 1)
vl_msg_name(vl_api_contiv_stats_get_t, 1)
vl_msg_name(vl_api_contiv_stats_get_reply_t, 1)
#endif
/****** Message name, crc list ******/

#ifdef vl_msg_name_crc_list
#define foreach_vl_msg_name_crc_contiv \
_(VL_API_CONTIV_PLUGIN_GET_VERSION, contiv_plugin_get_version, 51077d14) \
_(VL_API_CONTIV_PLUGIN_GET_VERSION_REPLY, contiv_plugin_get_version_reply, 7f6a45e3) \
_(VL_API_CONTIV_CONFIG_SET, contiv_config_set, 09b36b4a) \
_(VL_API_CONTIV_CONFIG_SET_REPLY, contiv_config_set_reply, e8d4e804) \
_(VL_API_CONTIV_CONFIG_GET, contiv_config_get, 51077d14) \
_(VL_API_CONTIV_CONFIG_GET_REPLY, contiv_config_get_reply, 7079674d) \
_(VL_API_CONTIV_ENDPOINT_SET, contiv_endpoint_set, 08f83310) \
_(VL_API_CONTIV_ENDPOINT_SET_REPLY, contiv_endpoint_set_reply, e8d4e804) \
_(VL_API_CONTIV_ENDPOINT_DEL, contiv_endpoint_del, f9e6675e) \
_(VL_API_CONTIV_ENDPOINT_DEL_REPLY, contiv_endpoint_del_reply, e8d4e804) \
_(VL_API_CONTIV_ENDPOINT_DUMP, contiv_endpoint_dump, 51077d14) \
_(VL_API_CONTIV_ENDPOINT_DETAILS, contiv_endpoint_details, fc3b91fb) \
_(VL_API_CONTIV_NETWORK_ADD_DEL, contiv_network_add_del, 67c7ee20) \
_(VL_API_CONTIV_NETWORK_ADD_DEL_REPLY, contiv_network_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_NETWORK_DUMP, contiv_network_dump, 51077d14) \
_(VL_API_CONTIV_NETWORK_DETAILS, contiv_network_details, cd636f47) \
_(VL_API_CONTIV_SNAT_ADD_DEL, contiv_snat_add_del, 036fba23) \
_(VL_API_CONTIV_SNAT_ADD_DEL_REPLY, contiv_snat_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_SNAT_DUMP, contiv_snat_dump, 51077d14) \
_(VL_API_CONTIV_SNAT_DETAILS, contiv_snat_details, 037bb7b3) \
_(VL_API_CONTIV_SERVICE_ADD_DEL, contiv_service_add_del, d6e1f5cd) \
_(VL_API_CONTIV_SERVICE_ADD_DEL_REPLY, contiv_service_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_SERVICE_DUMP, contiv_service_dump, 51077d14) \
_(VL_API_CONTIV_SERVICE_DETAILS, contiv_service_details, 4d97aab7) \
_(VL_API_CONTIV_BACKEND_ADD_DEL, contiv_backend_add_del, 172c84fd) \
_(VL_API_CONTIV_BACKEND_ADD_DEL_REPLY, contiv_backend_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_BACKEND_DUMP, contiv_backend_dump, 47004f9b) \
_(VL_API_CONTIV_BACKEND_DETAILS, contiv_backend_details, 6a9a434b) \
_(VL_API_CONTIV_FRONTEND_ADD_DEL, contiv_frontend_add_del, 326be804) \
_(VL_API_CONTIV_FRONTEND_ADD_DEL_REPLY, contiv_frontend_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_FRONTEND_DUMP, contiv_frontend_dump, 51077d14) \
_(VL_API_CONTIV_FRONTEND_DETAILS, contiv_frontend_details, fdfd73a6) \
_(VL_API_CONTIV_RANGE_ADD_DEL, contiv_range_add_del, 05fb8a0f) \
_(VL_API_CONTIV_RANGE_ADD_DEL_REPLY, contiv_range_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_RANGE_DUMP, contiv_range_dump, 51077d14) \
_(VL_API_CONTIV_RANGE_DETAILS, contiv_range_details, c17f168e) \
_(VL_API_CONTIV_SET_ADD_DEL, contiv_set_add_del, dfa0a1e3) \
_(VL_API_CONTIV_SET_ADD_DEL_REPLY, contiv_set_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_SET_DUMP, contiv_set_dump, 51077d14) \
_(VL_API_CONTIV_SET_DETAILS, contiv_set_details, bf13b5f0) \
_(VL_API_CONTIV_SET_MEMBER_ADD_DEL, contiv_set_member_add_del, d5d8bcd3) \
_(VL_API_CONTIV_SET_MEMBER_ADD_DEL_REPLY, contiv_set_member_add_del_reply, e8d4e804) \
_(VL_API_CONTIV_SET_MEMBER_DUMP, contiv_set_member_dump, 05e92ef6) \
_(VL_API_CONTIV_SET_MEMBER_DETAILS, contiv_set_member_details, f985c5dc) \
_(VL_API_CONTIV_POLICY_SET, contiv_policy_set, b8a05e6e) \
_(VL_API_CONTIV_POLICY_SET_REPLY, contiv_policy_set_reply, e8d4e804) \
_(VL_API_CONTIV_POLICY_DEL, contiv_policy_del, 46d861e0) \
_(VL_API_CONTIV_POLICY_DEL_REPLY, contiv_policy_del_reply, e8d4e804) \
_(VL_API_CONTIV_POLICY_DUMP, contiv_policy_dump, 51077d14) \
_(VL_API_CONTIV_POLICY_DETAILS, contiv_policy_details, b0083e23) \
_(VL_API_CONTIV_ENDPOINT_POLICY_SET, contiv_endpoint_policy_set, 7583819a) \
_(VL_API_CONTIV_ENDPOINT_POLICY_SET_REPLY, contiv_endpoint_policy_set_reply, e8d4e804) \
_(VL_API_CONTIV_ENDPOINT_POLICY_DEL, contiv_endpoint_policy_del, f9e6675e) \
_(VL_API_CONTIV_ENDPOINT_POLICY_DEL_REPLY, contiv_endpoint_policy_del_reply, e8d4e804) \
_(VL_API_CONTIV_ENDPOINT_POLICY_DUMP, contiv_endpoint_policy_dump, 51077d14) \
_(VL_API_CONTIV_ENDPOINT_POLICY_DETAILS, contiv_endpoint_policy_details, c91e5e3b) \
_(VL_API_CONTIV_DENIED_GET, contiv_denied_get, 22e06b2b) \
_(VL_API_CONTIV_DENIED_GET_REPLY, contiv_denied_get_reply, e8d4e804) \
_(VL_API_CONTIV_DENIED_DETAILS, contiv_denied_details, 84c792f6) \
_(VL_API_CONTIV_CONNECTION_GET, contiv_connection_get, 1bb618f5) \
_(VL_API_CONTIV_CONNECTION_GET_REPLY, contiv_connection_get_reply, 7d69eb42) \
_(VL_API_CONTIV_CONNECTION_DETAILS, contiv_connection_details, c0267deb) \
_(VL_API_CONTIV_CONNECTION_DEL, contiv_connection_del, e7e15dcb) \
_(VL_API_CONTIV_CONNECTION_DEL_REPLY, contiv_connection_del_reply, e8d4e804) \
_(VL_API_CONTIV_STATS_GET, contiv_stats_get, 51077d14) \
_(VL_API_CONTIV_STATS_GET_REPLY, contiv_stats_get_reply, 23554f02) 
#endif
/****** Typedefs ******/

#ifdef vl_typedefs
#include "contiv.api_types.h"
#endif
/****** Print functions *****/
#ifdef vl_printfun
#ifndef included_contiv_printfun_types
#define included_contiv_printfun_types

static inline u8 *format_vl_api_contiv_role_t (u8 *s, va_list * args)
{
    vl_api_contiv_role_t *a = va_arg (*args, vl_api_contiv_role_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_ROLE_API_POD");
    case 2:
        return format(s, "CONTIV_ROLE_API_HOST");
    case 3:
        return format(s, "CONTIV_ROLE_API_UPLINK");
    case 4:
        return format(s, "CONTIV_ROLE_API_OVERLAY");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_class_t (u8 *s, va_list * args)
{
    vl_api_contiv_class_t *a = va_arg (*args, vl_api_contiv_class_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_CLASS_API_POD");
    case 2:
        return format(s, "CONTIV_CLASS_API_NODE");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_action_t (u8 *s, va_list * args)
{
    vl_api_contiv_action_t *a = va_arg (*args, vl_api_contiv_action_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_ACTION_API_BALANCE");
    case 2:
        return format(s, "CONTIV_ACTION_API_REJECT");
    case 3:
        return format(s, "CONTIV_ACTION_API_DROP");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_backend_flags_t (u8 *s, va_list * args)
{
    vl_api_contiv_backend_flags_t *a = va_arg (*args, vl_api_contiv_backend_flags_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_BACKEND_API_MASQ");
    case 2:
        return format(s, "CONTIV_BACKEND_API_KEEP");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_service_flags_t (u8 *s, va_list * args)
{
    vl_api_contiv_service_flags_t *a = va_arg (*args, vl_api_contiv_service_flags_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_SERVICE_API_MAGLEV");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_target_flags_t (u8 *s, va_list * args)
{
    vl_api_contiv_target_flags_t *a = va_arg (*args, vl_api_contiv_target_flags_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_TARGET_API_MASQ");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_target_t (u8 *s, va_list * args)
{
    vl_api_contiv_target_t *a = va_arg (*args, vl_api_contiv_target_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    s = format(s, "\n%Uaction: %U", format_white_space, indent, format_vl_api_contiv_action_t, &a->action, indent);
    s = format(s, "\n%Uflags: %U", format_white_space, indent, format_vl_api_contiv_target_flags_t, &a->flags, indent);
    s = format(s, "\n%Uservice_id: %llu", format_white_space, indent, a->service_id);
    return s;
}

static inline u8 *format_vl_api_contiv_rule_action_t (u8 *s, va_list * args)
{
    vl_api_contiv_rule_action_t *a = va_arg (*args, vl_api_contiv_rule_action_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_RULE_API_ALLOW");
    case 2:
        return format(s, "CONTIV_RULE_API_DENY");
    case 3:
        return format(s, "CONTIV_RULE_API_PASS");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_set_kind_t (u8 *s, va_list * args)
{
    vl_api_contiv_set_kind_t *a = va_arg (*args, vl_api_contiv_set_kind_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_SET_API_NETWORKS");
    case 2:
        return format(s, "CONTIV_SET_API_PORTS");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_side_t (u8 *s, va_list * args)
{
    vl_api_contiv_side_t *a = va_arg (*args, vl_api_contiv_side_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 0:
        return format(s, "CONTIV_SIDE_API_INGRESS");
    case 1:
        return format(s, "CONTIV_SIDE_API_EGRESS");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_rule_flags_t (u8 *s, va_list * args)
{
    vl_api_contiv_rule_flags_t *a = va_arg (*args, vl_api_contiv_rule_flags_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    switch(*a) {
    case 1:
        return format(s, "CONTIV_RULE_API_ICMP_TYPE");
    case 2:
        return format(s, "CONTIV_RULE_API_ICMP_CODE");
    }
    return s;
}

static inline u8 *format_vl_api_contiv_port_range_t (u8 *s, va_list * args)
{
    vl_api_contiv_port_range_t *a = va_arg (*args, vl_api_contiv_port_range_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    s = format(s, "\n%Ufirst: %u", format_white_space, indent, a->first);
    s = format(s, "\n%Ulast: %u", format_white_space, indent, a->last);
    return s;
}

static inline u8 *format_vl_api_contiv_rule_t (u8 *s, va_list * args)
{
    vl_api_contiv_rule_t *a = va_arg (*args, vl_api_contiv_rule_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    s = format(s, "\n%Uaction: %U", format_white_space, indent, format_vl_api_contiv_rule_action_t, &a->action, indent);
    s = format(s, "\n%Ufamily: %u", format_white_space, indent, a->family);
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uflags: %U", format_white_space, indent, format_vl_api_contiv_rule_flags_t, &a->flags, indent);
    s = format(s, "\n%Uicmp_type: %u", format_white_space, indent, a->icmp_type);
    s = format(s, "\n%Uicmp_code: %u", format_white_space, indent, a->icmp_code);
    s = format(s, "\n%Usource: %llu", format_white_space, indent, a->source);
    s = format(s, "\n%Udestination: %llu", format_white_space, indent, a->destination);
    s = format(s, "\n%Uport_set: %llu", format_white_space, indent, a->port_set);
    s = format(s, "\n%Un_ports: %u", format_white_space, indent, a->n_ports);
    for (i = 0; i < 8; i++) {
        s = format(s, "\n%Uports: %U",
                   format_white_space, indent, format_vl_api_contiv_port_range_t, &a->ports[i], indent);
    }
    return s;
}

static inline u8 *format_vl_api_contiv_counted_rule_t (u8 *s, va_list * args)
{
    vl_api_contiv_counted_rule_t *a = va_arg (*args, vl_api_contiv_counted_rule_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    s = format(s, "\n%Urule: %U", format_white_space, indent, format_vl_api_contiv_rule_t, &a->rule, indent);
    s = format(s, "\n%Umatched: %llu", format_white_space, indent, a->matched);
    return s;
}

static inline u8 *format_vl_api_contiv_tier_item_t (u8 *s, va_list * args)
{
    vl_api_contiv_tier_item_t *a = va_arg (*args, vl_api_contiv_tier_item_t *);
    u32 indent __attribute__((unused)) = va_arg (*args, u32);
    int i __attribute__((unused));
    indent += 2;
    s = format(s, "\n%Upolicy_id: %llu", format_white_space, indent, a->policy_id);
    s = format(s, "\n%Uaction: %U", format_white_space, indent, format_vl_api_contiv_rule_action_t, &a->action, indent);
    return s;
}


#endif
#endif /* vl_printfun_types */
/****** Print functions *****/
#ifdef vl_printfun
#ifndef included_contiv_printfun
#define included_contiv_printfun

#ifdef LP64
#define _uword_fmt "%lld"
#define _uword_cast (long long)
#else
#define _uword_fmt "%ld"
#define _uword_cast long
#endif

#include "contiv.api_tojson.h"
#include "contiv.api_fromjson.h"

static inline u8 *vl_api_contiv_plugin_get_version_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_plugin_get_version_t *a = va_arg (*args, vl_api_contiv_plugin_get_version_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_plugin_get_version_t: */
    s = format(s, "vl_api_contiv_plugin_get_version_t:");
    return s;
}

static inline u8 *vl_api_contiv_plugin_get_version_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_plugin_get_version_reply_t *a = va_arg (*args, vl_api_contiv_plugin_get_version_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_plugin_get_version_reply_t: */
    s = format(s, "vl_api_contiv_plugin_get_version_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    s = format(s, "\n%Umajor: %u", format_white_space, indent, a->major);
    s = format(s, "\n%Uminor: %u", format_white_space, indent, a->minor);
    s = format(s, "\n%Upatch: %u", format_white_space, indent, a->patch);
    return s;
}

static inline u8 *vl_api_contiv_config_set_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_config_set_t *a = va_arg (*args, vl_api_contiv_config_set_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_config_set_t: */
    s = format(s, "vl_api_contiv_config_set_t:");
    s = format(s, "\n%Uendpoint_connections: %u", format_white_space, indent, a->endpoint_connections);
    for (i = 0; i < 4; i++) {
        s = format(s, "\n%Utunnel_ports: %u",
                   format_white_space, indent, a->tunnel_ports[i]);
    }
    s = format(s, "\n%Utcp_established: %u", format_white_space, indent, a->tcp_established);
    s = format(s, "\n%Utcp_transitory: %u", format_white_space, indent, a->tcp_transitory);
    s = format(s, "\n%Uudp: %u", format_white_space, indent, a->udp);
    s = format(s, "\n%Uudp_stream: %u", format_white_space, indent, a->udp_stream);
    s = format(s, "\n%Uicmp: %u", format_white_space, indent, a->icmp);
    s = format(s, "\n%Usctp: %u", format_white_space, indent, a->sctp);
    return s;
}

static inline u8 *vl_api_contiv_config_set_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_config_set_reply_t *a = va_arg (*args, vl_api_contiv_config_set_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_config_set_reply_t: */
    s = format(s, "vl_api_contiv_config_set_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_config_get_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_config_get_t *a = va_arg (*args, vl_api_contiv_config_get_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_config_get_t: */
    s = format(s, "vl_api_contiv_config_get_t:");
    return s;
}

static inline u8 *vl_api_contiv_config_get_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_config_get_reply_t *a = va_arg (*args, vl_api_contiv_config_get_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_config_get_reply_t: */
    s = format(s, "vl_api_contiv_config_get_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    s = format(s, "\n%Uconnections_max: %u", format_white_space, indent, a->connections_max);
    s = format(s, "\n%Uendpoint_connections: %u", format_white_space, indent, a->endpoint_connections);
    for (i = 0; i < 4; i++) {
        s = format(s, "\n%Utunnel_ports: %u",
                   format_white_space, indent, a->tunnel_ports[i]);
    }
    s = format(s, "\n%Utcp_established: %u", format_white_space, indent, a->tcp_established);
    s = format(s, "\n%Utcp_transitory: %u", format_white_space, indent, a->tcp_transitory);
    s = format(s, "\n%Uudp: %u", format_white_space, indent, a->udp);
    s = format(s, "\n%Uudp_stream: %u", format_white_space, indent, a->udp_stream);
    s = format(s, "\n%Uicmp: %u", format_white_space, indent, a->icmp);
    s = format(s, "\n%Usctp: %u", format_white_space, indent, a->sctp);
    return s;
}

static inline u8 *vl_api_contiv_endpoint_set_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_set_t *a = va_arg (*args, vl_api_contiv_endpoint_set_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_set_t: */
    s = format(s, "vl_api_contiv_endpoint_set_t:");
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    s = format(s, "\n%Urole: %U", format_white_space, indent, format_vl_api_contiv_role_t, &a->role, indent);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uegress: %u", format_white_space, indent, a->egress);
    s = format(s, "\n%Umax_connections: %u", format_white_space, indent, a->max_connections);
    s = format(s, "\n%Utable: %u", format_white_space, indent, a->table);
    s = format(s, "\n%Un_addresses: %u", format_white_space, indent, a->n_addresses);
    for (i = 0; i < a->n_addresses; i++) {
        s = format(s, "\n%Uaddresses: %U",
                   format_white_space, indent, format_vl_api_address_t, &a->addresses[i], indent);
    }
    return s;
}

static inline u8 *vl_api_contiv_endpoint_set_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_set_reply_t *a = va_arg (*args, vl_api_contiv_endpoint_set_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_set_reply_t: */
    s = format(s, "vl_api_contiv_endpoint_set_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_endpoint_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_del_t *a = va_arg (*args, vl_api_contiv_endpoint_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_del_t: */
    s = format(s, "vl_api_contiv_endpoint_del_t:");
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    return s;
}

static inline u8 *vl_api_contiv_endpoint_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_del_reply_t *a = va_arg (*args, vl_api_contiv_endpoint_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_del_reply_t: */
    s = format(s, "vl_api_contiv_endpoint_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_endpoint_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_dump_t *a = va_arg (*args, vl_api_contiv_endpoint_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_dump_t: */
    s = format(s, "vl_api_contiv_endpoint_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_endpoint_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_details_t *a = va_arg (*args, vl_api_contiv_endpoint_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_details_t: */
    s = format(s, "vl_api_contiv_endpoint_details_t:");
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    s = format(s, "\n%Urole: %U", format_white_space, indent, format_vl_api_contiv_role_t, &a->role, indent);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uegress: %u", format_white_space, indent, a->egress);
    s = format(s, "\n%Umax_connections: %u", format_white_space, indent, a->max_connections);
    s = format(s, "\n%Uconnections4: %u", format_white_space, indent, a->connections4);
    s = format(s, "\n%Uconnections6: %u", format_white_space, indent, a->connections6);
    s = format(s, "\n%Uspoofed: %llu", format_white_space, indent, a->spoofed);
    s = format(s, "\n%Urefused: %llu", format_white_space, indent, a->refused);
    s = format(s, "\n%Utable: %u", format_white_space, indent, a->table);
    s = format(s, "\n%Un_addresses: %u", format_white_space, indent, a->n_addresses);
    for (i = 0; i < a->n_addresses; i++) {
        s = format(s, "\n%Uaddresses: %U",
                   format_white_space, indent, format_vl_api_address_t, &a->addresses[i], indent);
    }
    return s;
}

static inline u8 *vl_api_contiv_network_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_network_add_del_t *a = va_arg (*args, vl_api_contiv_network_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_network_add_del_t: */
    s = format(s, "vl_api_contiv_network_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uprefix: %U", format_white_space, indent, format_vl_api_prefix_t, &a->prefix, indent);
    s = format(s, "\n%Uaddress_class: %U", format_white_space, indent, format_vl_api_contiv_class_t, &a->address_class, indent);
    return s;
}

static inline u8 *vl_api_contiv_network_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_network_add_del_reply_t *a = va_arg (*args, vl_api_contiv_network_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_network_add_del_reply_t: */
    s = format(s, "vl_api_contiv_network_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_network_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_network_dump_t *a = va_arg (*args, vl_api_contiv_network_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_network_dump_t: */
    s = format(s, "vl_api_contiv_network_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_network_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_network_details_t *a = va_arg (*args, vl_api_contiv_network_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_network_details_t: */
    s = format(s, "vl_api_contiv_network_details_t:");
    s = format(s, "\n%Uprefix: %U", format_white_space, indent, format_vl_api_prefix_t, &a->prefix, indent);
    s = format(s, "\n%Uaddress_class: %U", format_white_space, indent, format_vl_api_contiv_class_t, &a->address_class, indent);
    return s;
}

static inline u8 *vl_api_contiv_snat_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_snat_add_del_t *a = va_arg (*args, vl_api_contiv_snat_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_snat_add_del_t: */
    s = format(s, "vl_api_contiv_snat_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uid: %u", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uip4: %U", format_white_space, indent, format_vl_api_ip4_address_t, &a->ip4, indent);
    s = format(s, "\n%Uip6: %U", format_white_space, indent, format_vl_api_ip6_address_t, &a->ip6, indent);
    s = format(s, "\n%Uport_low: %u", format_white_space, indent, a->port_low);
    s = format(s, "\n%Uport_high: %u", format_white_space, indent, a->port_high);
    return s;
}

static inline u8 *vl_api_contiv_snat_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_snat_add_del_reply_t *a = va_arg (*args, vl_api_contiv_snat_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_snat_add_del_reply_t: */
    s = format(s, "vl_api_contiv_snat_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_snat_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_snat_dump_t *a = va_arg (*args, vl_api_contiv_snat_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_snat_dump_t: */
    s = format(s, "vl_api_contiv_snat_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_snat_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_snat_details_t *a = va_arg (*args, vl_api_contiv_snat_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_snat_details_t: */
    s = format(s, "vl_api_contiv_snat_details_t:");
    s = format(s, "\n%Uid: %u", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uip4: %U", format_white_space, indent, format_vl_api_ip4_address_t, &a->ip4, indent);
    s = format(s, "\n%Uip6: %U", format_white_space, indent, format_vl_api_ip6_address_t, &a->ip6, indent);
    s = format(s, "\n%Uport_low: %u", format_white_space, indent, a->port_low);
    s = format(s, "\n%Uport_high: %u", format_white_space, indent, a->port_high);
    return s;
}

static inline u8 *vl_api_contiv_service_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_service_add_del_t *a = va_arg (*args, vl_api_contiv_service_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_service_add_del_t: */
    s = format(s, "vl_api_contiv_service_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uflags: %U", format_white_space, indent, format_vl_api_contiv_service_flags_t, &a->flags, indent);
    return s;
}

static inline u8 *vl_api_contiv_service_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_service_add_del_reply_t *a = va_arg (*args, vl_api_contiv_service_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_service_add_del_reply_t: */
    s = format(s, "vl_api_contiv_service_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_service_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_service_dump_t *a = va_arg (*args, vl_api_contiv_service_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_service_dump_t: */
    s = format(s, "vl_api_contiv_service_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_service_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_service_details_t *a = va_arg (*args, vl_api_contiv_service_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_service_details_t: */
    s = format(s, "vl_api_contiv_service_details_t:");
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uflags: %U", format_white_space, indent, format_vl_api_contiv_service_flags_t, &a->flags, indent);
    s = format(s, "\n%Un_backends: %u", format_white_space, indent, a->n_backends);
    return s;
}

static inline u8 *vl_api_contiv_backend_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_backend_add_del_t *a = va_arg (*args, vl_api_contiv_backend_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_backend_add_del_t: */
    s = format(s, "vl_api_contiv_backend_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uservice_id: %llu", format_white_space, indent, a->service_id);
    s = format(s, "\n%Uaddress: %U", format_white_space, indent, format_vl_api_address_t, &a->address, indent);
    s = format(s, "\n%Uport: %u", format_white_space, indent, a->port);
    s = format(s, "\n%Uflags: %U", format_white_space, indent, format_vl_api_contiv_backend_flags_t, &a->flags, indent);
    return s;
}

static inline u8 *vl_api_contiv_backend_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_backend_add_del_reply_t *a = va_arg (*args, vl_api_contiv_backend_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_backend_add_del_reply_t: */
    s = format(s, "vl_api_contiv_backend_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_backend_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_backend_dump_t *a = va_arg (*args, vl_api_contiv_backend_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_backend_dump_t: */
    s = format(s, "vl_api_contiv_backend_dump_t:");
    s = format(s, "\n%Uservice_id: %llu", format_white_space, indent, a->service_id);
    return s;
}

static inline u8 *vl_api_contiv_backend_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_backend_details_t *a = va_arg (*args, vl_api_contiv_backend_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_backend_details_t: */
    s = format(s, "vl_api_contiv_backend_details_t:");
    s = format(s, "\n%Uservice_id: %llu", format_white_space, indent, a->service_id);
    s = format(s, "\n%Uaddress: %U", format_white_space, indent, format_vl_api_address_t, &a->address, indent);
    s = format(s, "\n%Uport: %u", format_white_space, indent, a->port);
    s = format(s, "\n%Uflags: %U", format_white_space, indent, format_vl_api_contiv_backend_flags_t, &a->flags, indent);
    s = format(s, "\n%Udraining: %u", format_white_space, indent, a->draining);
    s = format(s, "\n%Uconnections: %u", format_white_space, indent, a->connections);
    return s;
}

static inline u8 *vl_api_contiv_frontend_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_frontend_add_del_t *a = va_arg (*args, vl_api_contiv_frontend_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_frontend_add_del_t: */
    s = format(s, "vl_api_contiv_frontend_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uaddress: %U", format_white_space, indent, format_vl_api_address_t, &a->address, indent);
    s = format(s, "\n%Uport: %u", format_white_space, indent, a->port);
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uin_cluster: %U", format_white_space, indent, format_vl_api_contiv_target_t, &a->in_cluster, indent);
    s = format(s, "\n%Uoutside: %U", format_white_space, indent, format_vl_api_contiv_target_t, &a->outside, indent);
    s = format(s, "\n%Uranges: %llu", format_white_space, indent, a->ranges);
    s = format(s, "\n%Uaffinity_group: %llu", format_white_space, indent, a->affinity_group);
    s = format(s, "\n%Uaffinity_timeout: %u", format_white_space, indent, a->affinity_timeout);
    return s;
}

static inline u8 *vl_api_contiv_frontend_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_frontend_add_del_reply_t *a = va_arg (*args, vl_api_contiv_frontend_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_frontend_add_del_reply_t: */
    s = format(s, "vl_api_contiv_frontend_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_frontend_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_frontend_dump_t *a = va_arg (*args, vl_api_contiv_frontend_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_frontend_dump_t: */
    s = format(s, "vl_api_contiv_frontend_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_frontend_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_frontend_details_t *a = va_arg (*args, vl_api_contiv_frontend_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_frontend_details_t: */
    s = format(s, "vl_api_contiv_frontend_details_t:");
    s = format(s, "\n%Uaddress: %U", format_white_space, indent, format_vl_api_address_t, &a->address, indent);
    s = format(s, "\n%Uport: %u", format_white_space, indent, a->port);
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uin_cluster: %U", format_white_space, indent, format_vl_api_contiv_target_t, &a->in_cluster, indent);
    s = format(s, "\n%Uoutside: %U", format_white_space, indent, format_vl_api_contiv_target_t, &a->outside, indent);
    s = format(s, "\n%Uranges: %llu", format_white_space, indent, a->ranges);
    s = format(s, "\n%Uaffinity_group: %llu", format_white_space, indent, a->affinity_group);
    s = format(s, "\n%Uaffinity_timeout: %u", format_white_space, indent, a->affinity_timeout);
    s = format(s, "\n%Unew_connections: %llu", format_white_space, indent, a->new_connections);
    return s;
}

static inline u8 *vl_api_contiv_range_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_range_add_del_t *a = va_arg (*args, vl_api_contiv_range_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_range_add_del_t: */
    s = format(s, "vl_api_contiv_range_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uprefix: %U", format_white_space, indent, format_vl_api_prefix_t, &a->prefix, indent);
    return s;
}

static inline u8 *vl_api_contiv_range_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_range_add_del_reply_t *a = va_arg (*args, vl_api_contiv_range_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_range_add_del_reply_t: */
    s = format(s, "vl_api_contiv_range_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_range_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_range_dump_t *a = va_arg (*args, vl_api_contiv_range_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_range_dump_t: */
    s = format(s, "vl_api_contiv_range_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_range_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_range_details_t *a = va_arg (*args, vl_api_contiv_range_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_range_details_t: */
    s = format(s, "vl_api_contiv_range_details_t:");
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uprefix: %U", format_white_space, indent, format_vl_api_prefix_t, &a->prefix, indent);
    return s;
}

static inline u8 *vl_api_contiv_set_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_add_del_t *a = va_arg (*args, vl_api_contiv_set_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_add_del_t: */
    s = format(s, "vl_api_contiv_set_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Ukind: %U", format_white_space, indent, format_vl_api_contiv_set_kind_t, &a->kind, indent);
    return s;
}

static inline u8 *vl_api_contiv_set_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_add_del_reply_t *a = va_arg (*args, vl_api_contiv_set_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_add_del_reply_t: */
    s = format(s, "vl_api_contiv_set_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_set_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_dump_t *a = va_arg (*args, vl_api_contiv_set_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_dump_t: */
    s = format(s, "vl_api_contiv_set_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_set_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_details_t *a = va_arg (*args, vl_api_contiv_set_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_details_t: */
    s = format(s, "vl_api_contiv_set_details_t:");
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Ukind: %U", format_white_space, indent, format_vl_api_contiv_set_kind_t, &a->kind, indent);
    s = format(s, "\n%Un_members: %u", format_white_space, indent, a->n_members);
    s = format(s, "\n%Uoverfull: %u", format_white_space, indent, a->overfull);
    return s;
}

static inline u8 *vl_api_contiv_set_member_add_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_member_add_del_t *a = va_arg (*args, vl_api_contiv_set_member_add_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_member_add_del_t: */
    s = format(s, "vl_api_contiv_set_member_add_del_t:");
    s = format(s, "\n%Uis_add: %u", format_white_space, indent, a->is_add);
    s = format(s, "\n%Uset_id: %llu", format_white_space, indent, a->set_id);
    s = format(s, "\n%Uprefix: %U", format_white_space, indent, format_vl_api_prefix_t, &a->prefix, indent);
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uport: %u", format_white_space, indent, a->port);
    return s;
}

static inline u8 *vl_api_contiv_set_member_add_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_member_add_del_reply_t *a = va_arg (*args, vl_api_contiv_set_member_add_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_member_add_del_reply_t: */
    s = format(s, "vl_api_contiv_set_member_add_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_set_member_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_member_dump_t *a = va_arg (*args, vl_api_contiv_set_member_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_member_dump_t: */
    s = format(s, "vl_api_contiv_set_member_dump_t:");
    s = format(s, "\n%Uset_id: %llu", format_white_space, indent, a->set_id);
    return s;
}

static inline u8 *vl_api_contiv_set_member_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_set_member_details_t *a = va_arg (*args, vl_api_contiv_set_member_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_set_member_details_t: */
    s = format(s, "vl_api_contiv_set_member_details_t:");
    s = format(s, "\n%Uset_id: %llu", format_white_space, indent, a->set_id);
    s = format(s, "\n%Uprefix: %U", format_white_space, indent, format_vl_api_prefix_t, &a->prefix, indent);
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uport: %u", format_white_space, indent, a->port);
    return s;
}

static inline u8 *vl_api_contiv_policy_set_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_policy_set_t *a = va_arg (*args, vl_api_contiv_policy_set_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_policy_set_t: */
    s = format(s, "vl_api_contiv_policy_set_t:");
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Un_ingress: %u", format_white_space, indent, a->n_ingress);
    s = format(s, "\n%Un_rules: %u", format_white_space, indent, a->n_rules);
    for (i = 0; i < a->n_rules; i++) {
        s = format(s, "\n%Urules: %U",
                   format_white_space, indent, format_vl_api_contiv_rule_t, &a->rules[i], indent);
    }
    return s;
}

static inline u8 *vl_api_contiv_policy_set_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_policy_set_reply_t *a = va_arg (*args, vl_api_contiv_policy_set_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_policy_set_reply_t: */
    s = format(s, "vl_api_contiv_policy_set_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_policy_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_policy_del_t *a = va_arg (*args, vl_api_contiv_policy_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_policy_del_t: */
    s = format(s, "vl_api_contiv_policy_del_t:");
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    return s;
}

static inline u8 *vl_api_contiv_policy_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_policy_del_reply_t *a = va_arg (*args, vl_api_contiv_policy_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_policy_del_reply_t: */
    s = format(s, "vl_api_contiv_policy_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_policy_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_policy_dump_t *a = va_arg (*args, vl_api_contiv_policy_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_policy_dump_t: */
    s = format(s, "vl_api_contiv_policy_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_policy_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_policy_details_t *a = va_arg (*args, vl_api_contiv_policy_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_policy_details_t: */
    s = format(s, "vl_api_contiv_policy_details_t:");
    s = format(s, "\n%Uid: %llu", format_white_space, indent, a->id);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Un_ingress: %u", format_white_space, indent, a->n_ingress);
    s = format(s, "\n%Un_rules: %u", format_white_space, indent, a->n_rules);
    for (i = 0; i < a->n_rules; i++) {
        s = format(s, "\n%Urules: %U",
                   format_white_space, indent, format_vl_api_contiv_counted_rule_t, &a->rules[i], indent);
    }
    return s;
}

static inline u8 *vl_api_contiv_endpoint_policy_set_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_policy_set_t *a = va_arg (*args, vl_api_contiv_endpoint_policy_set_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_policy_set_t: */
    s = format(s, "vl_api_contiv_endpoint_policy_set_t:");
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uingress: %U", format_white_space, indent, format_vl_api_contiv_rule_action_t, &a->ingress, indent);
    s = format(s, "\n%Uegress: %U", format_white_space, indent, format_vl_api_contiv_rule_action_t, &a->egress, indent);
    s = format(s, "\n%Un_ingress: %u", format_white_space, indent, a->n_ingress);
    s = format(s, "\n%Un_items: %u", format_white_space, indent, a->n_items);
    for (i = 0; i < a->n_items; i++) {
        s = format(s, "\n%Uitems: %U",
                   format_white_space, indent, format_vl_api_contiv_tier_item_t, &a->items[i], indent);
    }
    return s;
}

static inline u8 *vl_api_contiv_endpoint_policy_set_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_policy_set_reply_t *a = va_arg (*args, vl_api_contiv_endpoint_policy_set_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_policy_set_reply_t: */
    s = format(s, "vl_api_contiv_endpoint_policy_set_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_endpoint_policy_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_policy_del_t *a = va_arg (*args, vl_api_contiv_endpoint_policy_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_policy_del_t: */
    s = format(s, "vl_api_contiv_endpoint_policy_del_t:");
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    return s;
}

static inline u8 *vl_api_contiv_endpoint_policy_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_policy_del_reply_t *a = va_arg (*args, vl_api_contiv_endpoint_policy_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_policy_del_reply_t: */
    s = format(s, "vl_api_contiv_endpoint_policy_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_endpoint_policy_dump_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_policy_dump_t *a = va_arg (*args, vl_api_contiv_endpoint_policy_dump_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_policy_dump_t: */
    s = format(s, "vl_api_contiv_endpoint_policy_dump_t:");
    return s;
}

static inline u8 *vl_api_contiv_endpoint_policy_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_endpoint_policy_details_t *a = va_arg (*args, vl_api_contiv_endpoint_policy_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_endpoint_policy_details_t: */
    s = format(s, "vl_api_contiv_endpoint_policy_details_t:");
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    s = format(s, "\n%Uname: %s", format_white_space, indent, a->name);
    s = format(s, "\n%Uingress: %U", format_white_space, indent, format_vl_api_contiv_rule_action_t, &a->ingress, indent);
    s = format(s, "\n%Uegress: %U", format_white_space, indent, format_vl_api_contiv_rule_action_t, &a->egress, indent);
    s = format(s, "\n%Udenied_ingress: %llu", format_white_space, indent, a->denied_ingress);
    s = format(s, "\n%Udenied_egress: %llu", format_white_space, indent, a->denied_egress);
    s = format(s, "\n%Un_ingress: %u", format_white_space, indent, a->n_ingress);
    s = format(s, "\n%Un_items: %u", format_white_space, indent, a->n_items);
    for (i = 0; i < a->n_items; i++) {
        s = format(s, "\n%Uitems: %U",
                   format_white_space, indent, format_vl_api_contiv_tier_item_t, &a->items[i], indent);
    }
    return s;
}

static inline u8 *vl_api_contiv_denied_get_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_denied_get_t *a = va_arg (*args, vl_api_contiv_denied_get_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_denied_get_t: */
    s = format(s, "vl_api_contiv_denied_get_t:");
    s = format(s, "\n%Uafter: %llu", format_white_space, indent, a->after);
    return s;
}

static inline u8 *vl_api_contiv_denied_get_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_denied_get_reply_t *a = va_arg (*args, vl_api_contiv_denied_get_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_denied_get_reply_t: */
    s = format(s, "vl_api_contiv_denied_get_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_denied_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_denied_details_t *a = va_arg (*args, vl_api_contiv_denied_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_denied_details_t: */
    s = format(s, "vl_api_contiv_denied_details_t:");
    s = format(s, "\n%Usequence: %llu", format_white_space, indent, a->sequence);
    s = format(s, "\n%Uage: %u", format_white_space, indent, a->age);
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    s = format(s, "\n%Uside: %U", format_white_space, indent, format_vl_api_contiv_side_t, &a->side, indent);
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uicmp_type: %u", format_white_space, indent, a->icmp_type);
    s = format(s, "\n%Uicmp_code: %u", format_white_space, indent, a->icmp_code);
    s = format(s, "\n%Usource: %U", format_white_space, indent, format_vl_api_address_t, &a->source, indent);
    s = format(s, "\n%Udestination: %U", format_white_space, indent, format_vl_api_address_t, &a->destination, indent);
    s = format(s, "\n%Usource_port: %u", format_white_space, indent, a->source_port);
    s = format(s, "\n%Udestination_port: %u", format_white_space, indent, a->destination_port);
    s = format(s, "\n%Upolicy_id: %llu", format_white_space, indent, a->policy_id);
    s = format(s, "\n%Urule: %u", format_white_space, indent, a->rule);
    return s;
}

static inline u8 *vl_api_contiv_connection_get_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_connection_get_t *a = va_arg (*args, vl_api_contiv_connection_get_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_connection_get_t: */
    s = format(s, "vl_api_contiv_connection_get_t:");
    s = format(s, "\n%Uis_ip6: %u", format_white_space, indent, a->is_ip6);
    s = format(s, "\n%Ucursor: %u", format_white_space, indent, a->cursor);
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    return s;
}

static inline u8 *vl_api_contiv_connection_get_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_connection_get_reply_t *a = va_arg (*args, vl_api_contiv_connection_get_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_connection_get_reply_t: */
    s = format(s, "vl_api_contiv_connection_get_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    s = format(s, "\n%Unext: %u", format_white_space, indent, a->next);
    return s;
}

static inline u8 *vl_api_contiv_connection_details_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_connection_details_t *a = va_arg (*args, vl_api_contiv_connection_details_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_connection_details_t: */
    s = format(s, "vl_api_contiv_connection_details_t:");
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uclient: %U", format_white_space, indent, format_vl_api_address_t, &a->client, indent);
    s = format(s, "\n%Uclient_port: %u", format_white_space, indent, a->client_port);
    s = format(s, "\n%Ufrontend: %U", format_white_space, indent, format_vl_api_address_t, &a->frontend, indent);
    s = format(s, "\n%Ufrontend_port: %u", format_white_space, indent, a->frontend_port);
    s = format(s, "\n%Usource: %U", format_white_space, indent, format_vl_api_address_t, &a->source, indent);
    s = format(s, "\n%Usource_port: %u", format_white_space, indent, a->source_port);
    s = format(s, "\n%Ubackend: %U", format_white_space, indent, format_vl_api_address_t, &a->backend, indent);
    s = format(s, "\n%Ubackend_port: %u", format_white_space, indent, a->backend_port);
    s = format(s, "\n%Usw_if_index: %U", format_white_space, indent, format_vl_api_interface_index_t, &a->sw_if_index, indent);
    s = format(s, "\n%Ustate: %u", format_white_space, indent, a->state);
    s = format(s, "\n%Uidle: %u", format_white_space, indent, a->idle);
    s = format(s, "\n%Uexpires: %u", format_white_space, indent, a->expires);
    s = format(s, "\n%Udenied: %u", format_white_space, indent, a->denied);
    return s;
}

static inline u8 *vl_api_contiv_connection_del_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_connection_del_t *a = va_arg (*args, vl_api_contiv_connection_del_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_connection_del_t: */
    s = format(s, "vl_api_contiv_connection_del_t:");
    s = format(s, "\n%Uprotocol: %u", format_white_space, indent, a->protocol);
    s = format(s, "\n%Uclient: %U", format_white_space, indent, format_vl_api_address_t, &a->client, indent);
    s = format(s, "\n%Uclient_port: %u", format_white_space, indent, a->client_port);
    s = format(s, "\n%Ufrontend: %U", format_white_space, indent, format_vl_api_address_t, &a->frontend, indent);
    s = format(s, "\n%Ufrontend_port: %u", format_white_space, indent, a->frontend_port);
    return s;
}

static inline u8 *vl_api_contiv_connection_del_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_connection_del_reply_t *a = va_arg (*args, vl_api_contiv_connection_del_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_connection_del_reply_t: */
    s = format(s, "vl_api_contiv_connection_del_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    return s;
}

static inline u8 *vl_api_contiv_stats_get_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_stats_get_t *a = va_arg (*args, vl_api_contiv_stats_get_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_stats_get_t: */
    s = format(s, "vl_api_contiv_stats_get_t:");
    return s;
}

static inline u8 *vl_api_contiv_stats_get_reply_t_format (u8 *s,  va_list *args)
{
    __attribute__((unused)) vl_api_contiv_stats_get_reply_t *a = va_arg (*args, vl_api_contiv_stats_get_reply_t *);
    u32 indent __attribute__((unused)) = 2;
    int i __attribute__((unused));
    /* Message definition: vl_api_contiv_stats_get_reply_t: */
    s = format(s, "vl_api_contiv_stats_get_reply_t:");
    s = format(s, "\n%Uretval: %ld", format_white_space, indent, a->retval);
    s = format(s, "\n%Uconnections4: %u", format_white_space, indent, a->connections4);
    s = format(s, "\n%Uconnections6: %u", format_white_space, indent, a->connections6);
    s = format(s, "\n%Uconnections_max: %u", format_white_space, indent, a->connections_max);
    s = format(s, "\n%Ucreated: %llu", format_white_space, indent, a->created);
    s = format(s, "\n%Urefused_full: %llu", format_white_space, indent, a->refused_full);
    s = format(s, "\n%Urefused_limit: %llu", format_white_space, indent, a->refused_limit);
    s = format(s, "\n%Urefused_port: %llu", format_white_space, indent, a->refused_port);
    s = format(s, "\n%Uspoofed: %llu", format_white_space, indent, a->spoofed);
    s = format(s, "\n%Utunnel: %llu", format_white_space, indent, a->tunnel);
    s = format(s, "\n%Udenied: %llu", format_white_space, indent, a->denied);
    return s;
}


#endif
#endif /* vl_printfun */

/****** Endian swap functions *****/
#ifdef vl_endianfun
#ifndef included_contiv_endianfun
#define included_contiv_endianfun

#undef clib_net_to_host_uword
#undef clib_host_to_net_uword
#ifdef LP64
#define clib_net_to_host_uword clib_net_to_host_u64
#define clib_host_to_net_uword clib_host_to_net_u64
#else
#define clib_net_to_host_uword clib_net_to_host_u32
#define clib_host_to_net_uword clib_host_to_net_u32
#endif

static inline void vl_api_contiv_role_t_endian (vl_api_contiv_role_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_role = a->contiv_role (no-op) */
}

static inline void vl_api_contiv_class_t_endian (vl_api_contiv_class_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_class = a->contiv_class (no-op) */
}

static inline void vl_api_contiv_action_t_endian (vl_api_contiv_action_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_action = a->contiv_action (no-op) */
}

static inline void vl_api_contiv_backend_flags_t_endian (vl_api_contiv_backend_flags_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_backend_flags = a->contiv_backend_flags (no-op) */
}

static inline void vl_api_contiv_service_flags_t_endian (vl_api_contiv_service_flags_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_service_flags = a->contiv_service_flags (no-op) */
}

static inline void vl_api_contiv_target_flags_t_endian (vl_api_contiv_target_flags_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_target_flags = a->contiv_target_flags (no-op) */
}

static inline void vl_api_contiv_target_t_endian (vl_api_contiv_target_t *a, bool to_net)
{
    int i __attribute__((unused));
    vl_api_contiv_action_t_endian(&a->action, to_net);
    vl_api_contiv_target_flags_t_endian(&a->flags, to_net);
    a->service_id = clib_net_to_host_u64(a->service_id);
}

static inline void vl_api_contiv_rule_action_t_endian (vl_api_contiv_rule_action_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_rule_action = a->contiv_rule_action (no-op) */
}

static inline void vl_api_contiv_set_kind_t_endian (vl_api_contiv_set_kind_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_set_kind = a->contiv_set_kind (no-op) */
}

static inline void vl_api_contiv_side_t_endian (vl_api_contiv_side_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_side = a->contiv_side (no-op) */
}

static inline void vl_api_contiv_rule_flags_t_endian (vl_api_contiv_rule_flags_t *a, bool to_net)
{
    int i __attribute__((unused));
    /* a->contiv_rule_flags = a->contiv_rule_flags (no-op) */
}

static inline void vl_api_contiv_port_range_t_endian (vl_api_contiv_port_range_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->first = clib_net_to_host_u16(a->first);
    a->last = clib_net_to_host_u16(a->last);
}

static inline void vl_api_contiv_rule_t_endian (vl_api_contiv_rule_t *a, bool to_net)
{
    int i __attribute__((unused));
    vl_api_contiv_rule_action_t_endian(&a->action, to_net);
    /* a->family = a->family (no-op) */
    /* a->protocol = a->protocol (no-op) */
    vl_api_contiv_rule_flags_t_endian(&a->flags, to_net);
    /* a->icmp_type = a->icmp_type (no-op) */
    /* a->icmp_code = a->icmp_code (no-op) */
    a->source = clib_net_to_host_u64(a->source);
    a->destination = clib_net_to_host_u64(a->destination);
    a->port_set = clib_net_to_host_u64(a->port_set);
    /* a->n_ports = a->n_ports (no-op) */
    for (i = 0; i < 8; i++) {
        vl_api_contiv_port_range_t_endian(&a->ports[i], to_net);
    }
}

static inline void vl_api_contiv_counted_rule_t_endian (vl_api_contiv_counted_rule_t *a, bool to_net)
{
    int i __attribute__((unused));
    vl_api_contiv_rule_t_endian(&a->rule, to_net);
    a->matched = clib_net_to_host_u64(a->matched);
}

static inline void vl_api_contiv_tier_item_t_endian (vl_api_contiv_tier_item_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->policy_id = clib_net_to_host_u64(a->policy_id);
    vl_api_contiv_rule_action_t_endian(&a->action, to_net);
}

static inline void vl_api_contiv_plugin_get_version_t_endian (vl_api_contiv_plugin_get_version_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_plugin_get_version_reply_t_endian (vl_api_contiv_plugin_get_version_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
    a->major = clib_net_to_host_u32(a->major);
    a->minor = clib_net_to_host_u32(a->minor);
    a->patch = clib_net_to_host_u32(a->patch);
}

static inline void vl_api_contiv_config_set_t_endian (vl_api_contiv_config_set_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    a->endpoint_connections = clib_net_to_host_u32(a->endpoint_connections);
    ASSERT((u32)4 <= (u32)VL_API_MAX_ARRAY_SIZE);
    for (i = 0; i < 4; i++) {
        a->tunnel_ports[i] = clib_net_to_host_u16(a->tunnel_ports[i]);
    }
    a->tcp_established = clib_net_to_host_u32(a->tcp_established);
    a->tcp_transitory = clib_net_to_host_u32(a->tcp_transitory);
    a->udp = clib_net_to_host_u32(a->udp);
    a->udp_stream = clib_net_to_host_u32(a->udp_stream);
    a->icmp = clib_net_to_host_u32(a->icmp);
    a->sctp = clib_net_to_host_u32(a->sctp);
}

static inline void vl_api_contiv_config_set_reply_t_endian (vl_api_contiv_config_set_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_config_get_t_endian (vl_api_contiv_config_get_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_config_get_reply_t_endian (vl_api_contiv_config_get_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
    a->connections_max = clib_net_to_host_u32(a->connections_max);
    a->endpoint_connections = clib_net_to_host_u32(a->endpoint_connections);
    ASSERT((u32)4 <= (u32)VL_API_MAX_ARRAY_SIZE);
    for (i = 0; i < 4; i++) {
        a->tunnel_ports[i] = clib_net_to_host_u16(a->tunnel_ports[i]);
    }
    a->tcp_established = clib_net_to_host_u32(a->tcp_established);
    a->tcp_transitory = clib_net_to_host_u32(a->tcp_transitory);
    a->udp = clib_net_to_host_u32(a->udp);
    a->udp_stream = clib_net_to_host_u32(a->udp_stream);
    a->icmp = clib_net_to_host_u32(a->icmp);
    a->sctp = clib_net_to_host_u32(a->sctp);
}

static inline void vl_api_contiv_endpoint_set_t_endian (vl_api_contiv_endpoint_set_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
    vl_api_contiv_role_t_endian(&a->role, to_net);
    /* a->name = a->name (no-op) */
    a->egress = clib_net_to_host_u32(a->egress);
    a->max_connections = clib_net_to_host_u32(a->max_connections);
    a->table = clib_net_to_host_u32(a->table);
    /* a->n_addresses = a->n_addresses (no-op) */
    u32 count = a->n_addresses;
    for (i = 0; i < count; i++) {
        vl_api_address_t_endian(&a->addresses[i], to_net);
    }
}

static inline void vl_api_contiv_endpoint_set_reply_t_endian (vl_api_contiv_endpoint_set_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_endpoint_del_t_endian (vl_api_contiv_endpoint_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
}

static inline void vl_api_contiv_endpoint_del_reply_t_endian (vl_api_contiv_endpoint_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_endpoint_dump_t_endian (vl_api_contiv_endpoint_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_endpoint_details_t_endian (vl_api_contiv_endpoint_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
    vl_api_contiv_role_t_endian(&a->role, to_net);
    /* a->name = a->name (no-op) */
    a->egress = clib_net_to_host_u32(a->egress);
    a->max_connections = clib_net_to_host_u32(a->max_connections);
    a->connections4 = clib_net_to_host_u32(a->connections4);
    a->connections6 = clib_net_to_host_u32(a->connections6);
    a->spoofed = clib_net_to_host_u64(a->spoofed);
    a->refused = clib_net_to_host_u64(a->refused);
    a->table = clib_net_to_host_u32(a->table);
    /* a->n_addresses = a->n_addresses (no-op) */
    u32 count = a->n_addresses;
    for (i = 0; i < count; i++) {
        vl_api_address_t_endian(&a->addresses[i], to_net);
    }
}

static inline void vl_api_contiv_network_add_del_t_endian (vl_api_contiv_network_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    vl_api_prefix_t_endian(&a->prefix, to_net);
    vl_api_contiv_class_t_endian(&a->address_class, to_net);
}

static inline void vl_api_contiv_network_add_del_reply_t_endian (vl_api_contiv_network_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_network_dump_t_endian (vl_api_contiv_network_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_network_details_t_endian (vl_api_contiv_network_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    vl_api_prefix_t_endian(&a->prefix, to_net);
    vl_api_contiv_class_t_endian(&a->address_class, to_net);
}

static inline void vl_api_contiv_snat_add_del_t_endian (vl_api_contiv_snat_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    a->id = clib_net_to_host_u32(a->id);
    /* a->name = a->name (no-op) */
    vl_api_ip4_address_t_endian(&a->ip4, to_net);
    vl_api_ip6_address_t_endian(&a->ip6, to_net);
    a->port_low = clib_net_to_host_u16(a->port_low);
    a->port_high = clib_net_to_host_u16(a->port_high);
}

static inline void vl_api_contiv_snat_add_del_reply_t_endian (vl_api_contiv_snat_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_snat_dump_t_endian (vl_api_contiv_snat_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_snat_details_t_endian (vl_api_contiv_snat_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->id = clib_net_to_host_u32(a->id);
    /* a->name = a->name (no-op) */
    vl_api_ip4_address_t_endian(&a->ip4, to_net);
    vl_api_ip6_address_t_endian(&a->ip6, to_net);
    a->port_low = clib_net_to_host_u16(a->port_low);
    a->port_high = clib_net_to_host_u16(a->port_high);
}

static inline void vl_api_contiv_service_add_del_t_endian (vl_api_contiv_service_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    a->id = clib_net_to_host_u64(a->id);
    /* a->name = a->name (no-op) */
    vl_api_contiv_service_flags_t_endian(&a->flags, to_net);
}

static inline void vl_api_contiv_service_add_del_reply_t_endian (vl_api_contiv_service_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_service_dump_t_endian (vl_api_contiv_service_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_service_details_t_endian (vl_api_contiv_service_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->id = clib_net_to_host_u64(a->id);
    /* a->name = a->name (no-op) */
    vl_api_contiv_service_flags_t_endian(&a->flags, to_net);
    a->n_backends = clib_net_to_host_u32(a->n_backends);
}

static inline void vl_api_contiv_backend_add_del_t_endian (vl_api_contiv_backend_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    a->service_id = clib_net_to_host_u64(a->service_id);
    vl_api_address_t_endian(&a->address, to_net);
    a->port = clib_net_to_host_u16(a->port);
    vl_api_contiv_backend_flags_t_endian(&a->flags, to_net);
}

static inline void vl_api_contiv_backend_add_del_reply_t_endian (vl_api_contiv_backend_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_backend_dump_t_endian (vl_api_contiv_backend_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    a->service_id = clib_net_to_host_u64(a->service_id);
}

static inline void vl_api_contiv_backend_details_t_endian (vl_api_contiv_backend_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->service_id = clib_net_to_host_u64(a->service_id);
    vl_api_address_t_endian(&a->address, to_net);
    a->port = clib_net_to_host_u16(a->port);
    vl_api_contiv_backend_flags_t_endian(&a->flags, to_net);
    /* a->draining = a->draining (no-op) */
    a->connections = clib_net_to_host_u32(a->connections);
}

static inline void vl_api_contiv_frontend_add_del_t_endian (vl_api_contiv_frontend_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    vl_api_address_t_endian(&a->address, to_net);
    a->port = clib_net_to_host_u16(a->port);
    /* a->protocol = a->protocol (no-op) */
    /* a->name = a->name (no-op) */
    vl_api_contiv_target_t_endian(&a->in_cluster, to_net);
    vl_api_contiv_target_t_endian(&a->outside, to_net);
    a->ranges = clib_net_to_host_u64(a->ranges);
    a->affinity_group = clib_net_to_host_u64(a->affinity_group);
    a->affinity_timeout = clib_net_to_host_u32(a->affinity_timeout);
}

static inline void vl_api_contiv_frontend_add_del_reply_t_endian (vl_api_contiv_frontend_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_frontend_dump_t_endian (vl_api_contiv_frontend_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_frontend_details_t_endian (vl_api_contiv_frontend_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    vl_api_address_t_endian(&a->address, to_net);
    a->port = clib_net_to_host_u16(a->port);
    /* a->protocol = a->protocol (no-op) */
    /* a->name = a->name (no-op) */
    vl_api_contiv_target_t_endian(&a->in_cluster, to_net);
    vl_api_contiv_target_t_endian(&a->outside, to_net);
    a->ranges = clib_net_to_host_u64(a->ranges);
    a->affinity_group = clib_net_to_host_u64(a->affinity_group);
    a->affinity_timeout = clib_net_to_host_u32(a->affinity_timeout);
    a->new_connections = clib_net_to_host_u64(a->new_connections);
}

static inline void vl_api_contiv_range_add_del_t_endian (vl_api_contiv_range_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    a->id = clib_net_to_host_u64(a->id);
    vl_api_prefix_t_endian(&a->prefix, to_net);
}

static inline void vl_api_contiv_range_add_del_reply_t_endian (vl_api_contiv_range_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_range_dump_t_endian (vl_api_contiv_range_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_range_details_t_endian (vl_api_contiv_range_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->id = clib_net_to_host_u64(a->id);
    vl_api_prefix_t_endian(&a->prefix, to_net);
}

static inline void vl_api_contiv_set_add_del_t_endian (vl_api_contiv_set_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    a->id = clib_net_to_host_u64(a->id);
    /* a->name = a->name (no-op) */
    vl_api_contiv_set_kind_t_endian(&a->kind, to_net);
}

static inline void vl_api_contiv_set_add_del_reply_t_endian (vl_api_contiv_set_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_set_dump_t_endian (vl_api_contiv_set_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_set_details_t_endian (vl_api_contiv_set_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->id = clib_net_to_host_u64(a->id);
    /* a->name = a->name (no-op) */
    vl_api_contiv_set_kind_t_endian(&a->kind, to_net);
    a->n_members = clib_net_to_host_u32(a->n_members);
    /* a->overfull = a->overfull (no-op) */
}

static inline void vl_api_contiv_set_member_add_del_t_endian (vl_api_contiv_set_member_add_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_add = a->is_add (no-op) */
    a->set_id = clib_net_to_host_u64(a->set_id);
    vl_api_prefix_t_endian(&a->prefix, to_net);
    /* a->protocol = a->protocol (no-op) */
    a->port = clib_net_to_host_u16(a->port);
}

static inline void vl_api_contiv_set_member_add_del_reply_t_endian (vl_api_contiv_set_member_add_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_set_member_dump_t_endian (vl_api_contiv_set_member_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    a->set_id = clib_net_to_host_u64(a->set_id);
}

static inline void vl_api_contiv_set_member_details_t_endian (vl_api_contiv_set_member_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->set_id = clib_net_to_host_u64(a->set_id);
    vl_api_prefix_t_endian(&a->prefix, to_net);
    /* a->protocol = a->protocol (no-op) */
    a->port = clib_net_to_host_u16(a->port);
}

static inline void vl_api_contiv_policy_set_t_endian (vl_api_contiv_policy_set_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    a->id = clib_net_to_host_u64(a->id);
    /* a->name = a->name (no-op) */
    a->n_ingress = clib_net_to_host_u32(a->n_ingress);
    a->n_rules = clib_net_to_host_u32(a->n_rules);
    u32 count = to_net ? clib_net_to_host_u32(a->n_rules) : a->n_rules;
    for (i = 0; i < count; i++) {
        vl_api_contiv_rule_t_endian(&a->rules[i], to_net);
    }
}

static inline void vl_api_contiv_policy_set_reply_t_endian (vl_api_contiv_policy_set_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_policy_del_t_endian (vl_api_contiv_policy_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    a->id = clib_net_to_host_u64(a->id);
}

static inline void vl_api_contiv_policy_del_reply_t_endian (vl_api_contiv_policy_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_policy_dump_t_endian (vl_api_contiv_policy_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_policy_details_t_endian (vl_api_contiv_policy_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->id = clib_net_to_host_u64(a->id);
    /* a->name = a->name (no-op) */
    a->n_ingress = clib_net_to_host_u32(a->n_ingress);
    a->n_rules = clib_net_to_host_u32(a->n_rules);
    u32 count = to_net ? clib_net_to_host_u32(a->n_rules) : a->n_rules;
    for (i = 0; i < count; i++) {
        vl_api_contiv_counted_rule_t_endian(&a->rules[i], to_net);
    }
}

static inline void vl_api_contiv_endpoint_policy_set_t_endian (vl_api_contiv_endpoint_policy_set_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
    /* a->name = a->name (no-op) */
    vl_api_contiv_rule_action_t_endian(&a->ingress, to_net);
    vl_api_contiv_rule_action_t_endian(&a->egress, to_net);
    a->n_ingress = clib_net_to_host_u32(a->n_ingress);
    a->n_items = clib_net_to_host_u32(a->n_items);
    u32 count = to_net ? clib_net_to_host_u32(a->n_items) : a->n_items;
    for (i = 0; i < count; i++) {
        vl_api_contiv_tier_item_t_endian(&a->items[i], to_net);
    }
}

static inline void vl_api_contiv_endpoint_policy_set_reply_t_endian (vl_api_contiv_endpoint_policy_set_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_endpoint_policy_del_t_endian (vl_api_contiv_endpoint_policy_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
}

static inline void vl_api_contiv_endpoint_policy_del_reply_t_endian (vl_api_contiv_endpoint_policy_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_endpoint_policy_dump_t_endian (vl_api_contiv_endpoint_policy_dump_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_endpoint_policy_details_t_endian (vl_api_contiv_endpoint_policy_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
    /* a->name = a->name (no-op) */
    vl_api_contiv_rule_action_t_endian(&a->ingress, to_net);
    vl_api_contiv_rule_action_t_endian(&a->egress, to_net);
    a->denied_ingress = clib_net_to_host_u64(a->denied_ingress);
    a->denied_egress = clib_net_to_host_u64(a->denied_egress);
    a->n_ingress = clib_net_to_host_u32(a->n_ingress);
    a->n_items = clib_net_to_host_u32(a->n_items);
    u32 count = to_net ? clib_net_to_host_u32(a->n_items) : a->n_items;
    for (i = 0; i < count; i++) {
        vl_api_contiv_tier_item_t_endian(&a->items[i], to_net);
    }
}

static inline void vl_api_contiv_denied_get_t_endian (vl_api_contiv_denied_get_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    a->after = clib_net_to_host_u64(a->after);
}

static inline void vl_api_contiv_denied_get_reply_t_endian (vl_api_contiv_denied_get_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_denied_details_t_endian (vl_api_contiv_denied_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->sequence = clib_net_to_host_u64(a->sequence);
    a->age = clib_net_to_host_u32(a->age);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
    vl_api_contiv_side_t_endian(&a->side, to_net);
    /* a->protocol = a->protocol (no-op) */
    /* a->icmp_type = a->icmp_type (no-op) */
    /* a->icmp_code = a->icmp_code (no-op) */
    vl_api_address_t_endian(&a->source, to_net);
    vl_api_address_t_endian(&a->destination, to_net);
    a->source_port = clib_net_to_host_u16(a->source_port);
    a->destination_port = clib_net_to_host_u16(a->destination_port);
    a->policy_id = clib_net_to_host_u64(a->policy_id);
    a->rule = clib_net_to_host_u32(a->rule);
}

static inline void vl_api_contiv_connection_get_t_endian (vl_api_contiv_connection_get_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->is_ip6 = a->is_ip6 (no-op) */
    a->cursor = clib_net_to_host_u32(a->cursor);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
}

static inline void vl_api_contiv_connection_get_reply_t_endian (vl_api_contiv_connection_get_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
    a->next = clib_net_to_host_u32(a->next);
}

static inline void vl_api_contiv_connection_details_t_endian (vl_api_contiv_connection_details_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    /* a->protocol = a->protocol (no-op) */
    vl_api_address_t_endian(&a->client, to_net);
    a->client_port = clib_net_to_host_u16(a->client_port);
    vl_api_address_t_endian(&a->frontend, to_net);
    a->frontend_port = clib_net_to_host_u16(a->frontend_port);
    vl_api_address_t_endian(&a->source, to_net);
    a->source_port = clib_net_to_host_u16(a->source_port);
    vl_api_address_t_endian(&a->backend, to_net);
    a->backend_port = clib_net_to_host_u16(a->backend_port);
    vl_api_interface_index_t_endian(&a->sw_if_index, to_net);
    /* a->state = a->state (no-op) */
    a->idle = clib_net_to_host_u32(a->idle);
    a->expires = clib_net_to_host_u32(a->expires);
    /* a->denied = a->denied (no-op) */
}

static inline void vl_api_contiv_connection_del_t_endian (vl_api_contiv_connection_del_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
    /* a->protocol = a->protocol (no-op) */
    vl_api_address_t_endian(&a->client, to_net);
    a->client_port = clib_net_to_host_u16(a->client_port);
    vl_api_address_t_endian(&a->frontend, to_net);
    a->frontend_port = clib_net_to_host_u16(a->frontend_port);
}

static inline void vl_api_contiv_connection_del_reply_t_endian (vl_api_contiv_connection_del_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
}

static inline void vl_api_contiv_stats_get_t_endian (vl_api_contiv_stats_get_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    /* a->client_index = a->client_index (no-op) */
    a->context = clib_net_to_host_u32(a->context);
}

static inline void vl_api_contiv_stats_get_reply_t_endian (vl_api_contiv_stats_get_reply_t *a, bool to_net)
{
    int i __attribute__((unused));
    a->_vl_msg_id = clib_net_to_host_u16(a->_vl_msg_id);
    a->context = clib_net_to_host_u32(a->context);
    a->retval = clib_net_to_host_i32(a->retval);
    a->connections4 = clib_net_to_host_u32(a->connections4);
    a->connections6 = clib_net_to_host_u32(a->connections6);
    a->connections_max = clib_net_to_host_u32(a->connections_max);
    a->created = clib_net_to_host_u64(a->created);
    a->refused_full = clib_net_to_host_u64(a->refused_full);
    a->refused_limit = clib_net_to_host_u64(a->refused_limit);
    a->refused_port = clib_net_to_host_u64(a->refused_port);
    a->spoofed = clib_net_to_host_u64(a->spoofed);
    a->tunnel = clib_net_to_host_u64(a->tunnel);
    a->denied = clib_net_to_host_u64(a->denied);
}


#endif
#endif /* vl_endianfun */


/****** Calculate size functions *****/
#ifdef vl_calcsizefun
#ifndef included_contiv_calcsizefun
#define included_contiv_calcsizefun

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_role_t_calc_size (vl_api_contiv_role_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_class_t_calc_size (vl_api_contiv_class_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_action_t_calc_size (vl_api_contiv_action_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_backend_flags_t_calc_size (vl_api_contiv_backend_flags_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_service_flags_t_calc_size (vl_api_contiv_service_flags_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_target_flags_t_calc_size (vl_api_contiv_target_flags_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_target_t_calc_size (vl_api_contiv_target_t *a)
{
      return sizeof(*a) - sizeof(a->action) + vl_api_contiv_action_t_calc_size(&a->action) - sizeof(a->flags) + vl_api_contiv_target_flags_t_calc_size(&a->flags);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_rule_action_t_calc_size (vl_api_contiv_rule_action_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_kind_t_calc_size (vl_api_contiv_set_kind_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_side_t_calc_size (vl_api_contiv_side_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_rule_flags_t_calc_size (vl_api_contiv_rule_flags_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_port_range_t_calc_size (vl_api_contiv_port_range_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_rule_t_calc_size (vl_api_contiv_rule_t *a)
{
      return sizeof(*a) - sizeof(a->action) + vl_api_contiv_rule_action_t_calc_size(&a->action) - sizeof(a->flags) + vl_api_contiv_rule_flags_t_calc_size(&a->flags);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_counted_rule_t_calc_size (vl_api_contiv_counted_rule_t *a)
{
      return sizeof(*a) - sizeof(a->rule) + vl_api_contiv_rule_t_calc_size(&a->rule);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_tier_item_t_calc_size (vl_api_contiv_tier_item_t *a)
{
      return sizeof(*a) - sizeof(a->action) + vl_api_contiv_rule_action_t_calc_size(&a->action);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_plugin_get_version_t_calc_size (vl_api_contiv_plugin_get_version_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_plugin_get_version_reply_t_calc_size (vl_api_contiv_plugin_get_version_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_config_set_t_calc_size (vl_api_contiv_config_set_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_config_set_reply_t_calc_size (vl_api_contiv_config_set_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_config_get_t_calc_size (vl_api_contiv_config_get_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_config_get_reply_t_calc_size (vl_api_contiv_config_get_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_set_t_calc_size (vl_api_contiv_endpoint_set_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index) - sizeof(a->role) + vl_api_contiv_role_t_calc_size(&a->role) + a->n_addresses * sizeof(a->addresses[0]);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_set_reply_t_calc_size (vl_api_contiv_endpoint_set_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_del_t_calc_size (vl_api_contiv_endpoint_del_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_del_reply_t_calc_size (vl_api_contiv_endpoint_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_dump_t_calc_size (vl_api_contiv_endpoint_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_details_t_calc_size (vl_api_contiv_endpoint_details_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index) - sizeof(a->role) + vl_api_contiv_role_t_calc_size(&a->role) + a->n_addresses * sizeof(a->addresses[0]);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_network_add_del_t_calc_size (vl_api_contiv_network_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->prefix) + vl_api_prefix_t_calc_size(&a->prefix) - sizeof(a->address_class) + vl_api_contiv_class_t_calc_size(&a->address_class);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_network_add_del_reply_t_calc_size (vl_api_contiv_network_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_network_dump_t_calc_size (vl_api_contiv_network_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_network_details_t_calc_size (vl_api_contiv_network_details_t *a)
{
      return sizeof(*a) - sizeof(a->prefix) + vl_api_prefix_t_calc_size(&a->prefix) - sizeof(a->address_class) + vl_api_contiv_class_t_calc_size(&a->address_class);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_snat_add_del_t_calc_size (vl_api_contiv_snat_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->ip4) + vl_api_ip4_address_t_calc_size(&a->ip4) - sizeof(a->ip6) + vl_api_ip6_address_t_calc_size(&a->ip6);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_snat_add_del_reply_t_calc_size (vl_api_contiv_snat_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_snat_dump_t_calc_size (vl_api_contiv_snat_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_snat_details_t_calc_size (vl_api_contiv_snat_details_t *a)
{
      return sizeof(*a) - sizeof(a->ip4) + vl_api_ip4_address_t_calc_size(&a->ip4) - sizeof(a->ip6) + vl_api_ip6_address_t_calc_size(&a->ip6);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_service_add_del_t_calc_size (vl_api_contiv_service_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->flags) + vl_api_contiv_service_flags_t_calc_size(&a->flags);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_service_add_del_reply_t_calc_size (vl_api_contiv_service_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_service_dump_t_calc_size (vl_api_contiv_service_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_service_details_t_calc_size (vl_api_contiv_service_details_t *a)
{
      return sizeof(*a) - sizeof(a->flags) + vl_api_contiv_service_flags_t_calc_size(&a->flags);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_backend_add_del_t_calc_size (vl_api_contiv_backend_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->address) + vl_api_address_t_calc_size(&a->address) - sizeof(a->flags) + vl_api_contiv_backend_flags_t_calc_size(&a->flags);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_backend_add_del_reply_t_calc_size (vl_api_contiv_backend_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_backend_dump_t_calc_size (vl_api_contiv_backend_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_backend_details_t_calc_size (vl_api_contiv_backend_details_t *a)
{
      return sizeof(*a) - sizeof(a->address) + vl_api_address_t_calc_size(&a->address) - sizeof(a->flags) + vl_api_contiv_backend_flags_t_calc_size(&a->flags);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_frontend_add_del_t_calc_size (vl_api_contiv_frontend_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->address) + vl_api_address_t_calc_size(&a->address) - sizeof(a->in_cluster) + vl_api_contiv_target_t_calc_size(&a->in_cluster) - sizeof(a->outside) + vl_api_contiv_target_t_calc_size(&a->outside);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_frontend_add_del_reply_t_calc_size (vl_api_contiv_frontend_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_frontend_dump_t_calc_size (vl_api_contiv_frontend_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_frontend_details_t_calc_size (vl_api_contiv_frontend_details_t *a)
{
      return sizeof(*a) - sizeof(a->address) + vl_api_address_t_calc_size(&a->address) - sizeof(a->in_cluster) + vl_api_contiv_target_t_calc_size(&a->in_cluster) - sizeof(a->outside) + vl_api_contiv_target_t_calc_size(&a->outside);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_range_add_del_t_calc_size (vl_api_contiv_range_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->prefix) + vl_api_prefix_t_calc_size(&a->prefix);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_range_add_del_reply_t_calc_size (vl_api_contiv_range_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_range_dump_t_calc_size (vl_api_contiv_range_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_range_details_t_calc_size (vl_api_contiv_range_details_t *a)
{
      return sizeof(*a) - sizeof(a->prefix) + vl_api_prefix_t_calc_size(&a->prefix);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_add_del_t_calc_size (vl_api_contiv_set_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->kind) + vl_api_contiv_set_kind_t_calc_size(&a->kind);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_add_del_reply_t_calc_size (vl_api_contiv_set_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_dump_t_calc_size (vl_api_contiv_set_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_details_t_calc_size (vl_api_contiv_set_details_t *a)
{
      return sizeof(*a) - sizeof(a->kind) + vl_api_contiv_set_kind_t_calc_size(&a->kind);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_member_add_del_t_calc_size (vl_api_contiv_set_member_add_del_t *a)
{
      return sizeof(*a) - sizeof(a->prefix) + vl_api_prefix_t_calc_size(&a->prefix);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_member_add_del_reply_t_calc_size (vl_api_contiv_set_member_add_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_member_dump_t_calc_size (vl_api_contiv_set_member_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_set_member_details_t_calc_size (vl_api_contiv_set_member_details_t *a)
{
      return sizeof(*a) - sizeof(a->prefix) + vl_api_prefix_t_calc_size(&a->prefix);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_policy_set_t_calc_size (vl_api_contiv_policy_set_t *a)
{
      return sizeof(*a) + clib_net_to_host_u32(a->n_rules) * sizeof(a->rules[0]);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_policy_set_reply_t_calc_size (vl_api_contiv_policy_set_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_policy_del_t_calc_size (vl_api_contiv_policy_del_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_policy_del_reply_t_calc_size (vl_api_contiv_policy_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_policy_dump_t_calc_size (vl_api_contiv_policy_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_policy_details_t_calc_size (vl_api_contiv_policy_details_t *a)
{
      return sizeof(*a) + clib_net_to_host_u32(a->n_rules) * sizeof(a->rules[0]);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_policy_set_t_calc_size (vl_api_contiv_endpoint_policy_set_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index) - sizeof(a->ingress) + vl_api_contiv_rule_action_t_calc_size(&a->ingress) - sizeof(a->egress) + vl_api_contiv_rule_action_t_calc_size(&a->egress) + clib_net_to_host_u32(a->n_items) * sizeof(a->items[0]);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_policy_set_reply_t_calc_size (vl_api_contiv_endpoint_policy_set_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_policy_del_t_calc_size (vl_api_contiv_endpoint_policy_del_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_policy_del_reply_t_calc_size (vl_api_contiv_endpoint_policy_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_policy_dump_t_calc_size (vl_api_contiv_endpoint_policy_dump_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_endpoint_policy_details_t_calc_size (vl_api_contiv_endpoint_policy_details_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index) - sizeof(a->ingress) + vl_api_contiv_rule_action_t_calc_size(&a->ingress) - sizeof(a->egress) + vl_api_contiv_rule_action_t_calc_size(&a->egress) + clib_net_to_host_u32(a->n_items) * sizeof(a->items[0]);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_denied_get_t_calc_size (vl_api_contiv_denied_get_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_denied_get_reply_t_calc_size (vl_api_contiv_denied_get_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_denied_details_t_calc_size (vl_api_contiv_denied_details_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index) - sizeof(a->side) + vl_api_contiv_side_t_calc_size(&a->side) - sizeof(a->source) + vl_api_address_t_calc_size(&a->source) - sizeof(a->destination) + vl_api_address_t_calc_size(&a->destination);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_connection_get_t_calc_size (vl_api_contiv_connection_get_t *a)
{
      return sizeof(*a) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_connection_get_reply_t_calc_size (vl_api_contiv_connection_get_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_connection_details_t_calc_size (vl_api_contiv_connection_details_t *a)
{
      return sizeof(*a) - sizeof(a->client) + vl_api_address_t_calc_size(&a->client) - sizeof(a->frontend) + vl_api_address_t_calc_size(&a->frontend) - sizeof(a->source) + vl_api_address_t_calc_size(&a->source) - sizeof(a->backend) + vl_api_address_t_calc_size(&a->backend) - sizeof(a->sw_if_index) + vl_api_interface_index_t_calc_size(&a->sw_if_index);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_connection_del_t_calc_size (vl_api_contiv_connection_del_t *a)
{
      return sizeof(*a) - sizeof(a->client) + vl_api_address_t_calc_size(&a->client) - sizeof(a->frontend) + vl_api_address_t_calc_size(&a->frontend);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_connection_del_reply_t_calc_size (vl_api_contiv_connection_del_reply_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_stats_get_t_calc_size (vl_api_contiv_stats_get_t *a)
{
      return sizeof(*a);
}

/* calculate message size of message in network byte order */
static inline uword vl_api_contiv_stats_get_reply_t_calc_size (vl_api_contiv_stats_get_reply_t *a)
{
      return sizeof(*a);
}


#endif
#endif /* vl_calcsizefun */

/****** Version tuple *****/

#ifdef vl_api_version_tuple

vl_api_version_tuple(contiv.api, 1, 0, 0)

#endif /* vl_api_version_tuple */

/****** API CRC (whole file) *****/

#ifdef vl_api_version
vl_api_version(contiv.api, 0x116d106c)

#endif

