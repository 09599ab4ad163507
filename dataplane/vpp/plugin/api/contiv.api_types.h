#ifndef included_contiv_api_types_h
#define included_contiv_api_types_h
#define VL_API_CONTIV_API_VERSION_MAJOR 1
#define VL_API_CONTIV_API_VERSION_MINOR 0
#define VL_API_CONTIV_API_VERSION_PATCH 0
/* Imported API files */
#include <vnet/interface_types.api_types.h>
#include <vnet/ip/ip_types.api_types.h>
typedef enum __attribute__((packed)) {
    CONTIV_ROLE_API_POD = 1,
    CONTIV_ROLE_API_HOST = 2,
    CONTIV_ROLE_API_UPLINK = 3,
    CONTIV_ROLE_API_OVERLAY = 4,
} vl_api_contiv_role_t;
STATIC_ASSERT(sizeof(vl_api_contiv_role_t) == sizeof(u8), "size of API enum contiv_role is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_CLASS_API_POD = 1,
    CONTIV_CLASS_API_NODE = 2,
} vl_api_contiv_class_t;
STATIC_ASSERT(sizeof(vl_api_contiv_class_t) == sizeof(u8), "size of API enum contiv_class is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_ACTION_API_BALANCE = 1,
    CONTIV_ACTION_API_REJECT = 2,
    CONTIV_ACTION_API_DROP = 3,
} vl_api_contiv_action_t;
STATIC_ASSERT(sizeof(vl_api_contiv_action_t) == sizeof(u8), "size of API enum contiv_action is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_BACKEND_API_MASQ = 1,
    CONTIV_BACKEND_API_KEEP = 2,
} vl_api_contiv_backend_flags_t;
STATIC_ASSERT(sizeof(vl_api_contiv_backend_flags_t) == sizeof(u8), "size of API enum contiv_backend_flags is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_SERVICE_API_MAGLEV = 1,
} vl_api_contiv_service_flags_t;
STATIC_ASSERT(sizeof(vl_api_contiv_service_flags_t) == sizeof(u8), "size of API enum contiv_service_flags is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_TARGET_API_MASQ = 1,
} vl_api_contiv_target_flags_t;
STATIC_ASSERT(sizeof(vl_api_contiv_target_flags_t) == sizeof(u8), "size of API enum contiv_target_flags is wrong");
typedef struct __attribute__ ((packed)) _vl_api_contiv_target {
    vl_api_contiv_action_t action;
    vl_api_contiv_target_flags_t flags;
    u64 service_id;
} vl_api_contiv_target_t;
#define VL_API_CONTIV_TARGET_IS_CONSTANT_SIZE (1)

typedef enum __attribute__((packed)) {
    CONTIV_RULE_API_ALLOW = 1,
    CONTIV_RULE_API_DENY = 2,
    CONTIV_RULE_API_PASS = 3,
} vl_api_contiv_rule_action_t;
STATIC_ASSERT(sizeof(vl_api_contiv_rule_action_t) == sizeof(u8), "size of API enum contiv_rule_action is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_SET_API_NETWORKS = 1,
    CONTIV_SET_API_PORTS = 2,
} vl_api_contiv_set_kind_t;
STATIC_ASSERT(sizeof(vl_api_contiv_set_kind_t) == sizeof(u8), "size of API enum contiv_set_kind is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_SIDE_API_INGRESS = 0,
    CONTIV_SIDE_API_EGRESS = 1,
} vl_api_contiv_side_t;
STATIC_ASSERT(sizeof(vl_api_contiv_side_t) == sizeof(u8), "size of API enum contiv_side is wrong");
typedef enum __attribute__((packed)) {
    CONTIV_RULE_API_ICMP_TYPE = 1,
    CONTIV_RULE_API_ICMP_CODE = 2,
} vl_api_contiv_rule_flags_t;
STATIC_ASSERT(sizeof(vl_api_contiv_rule_flags_t) == sizeof(u8), "size of API enum contiv_rule_flags is wrong");
typedef struct __attribute__ ((packed)) _vl_api_contiv_port_range {
    u16 first;
    u16 last;
} vl_api_contiv_port_range_t;
#define VL_API_CONTIV_PORT_RANGE_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_rule {
    vl_api_contiv_rule_action_t action;
    u8 family;
    u8 protocol;
    vl_api_contiv_rule_flags_t flags;
    u8 icmp_type;
    u8 icmp_code;
    u64 source;
    u64 destination;
    u64 port_set;
    u8 n_ports;
    vl_api_contiv_port_range_t ports[8];
} vl_api_contiv_rule_t;
#define VL_API_CONTIV_RULE_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_counted_rule {
    vl_api_contiv_rule_t rule;
    u64 matched;
} vl_api_contiv_counted_rule_t;
#define VL_API_CONTIV_COUNTED_RULE_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_tier_item {
    u64 policy_id;
    vl_api_contiv_rule_action_t action;
} vl_api_contiv_tier_item_t;
#define VL_API_CONTIV_TIER_ITEM_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_plugin_get_version {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_plugin_get_version_t;
#define VL_API_CONTIV_PLUGIN_GET_VERSION_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_plugin_get_version_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
    u32 major;
    u32 minor;
    u32 patch;
} vl_api_contiv_plugin_get_version_reply_t;
#define VL_API_CONTIV_PLUGIN_GET_VERSION_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_config_set {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    u32 endpoint_connections;
    u16 tunnel_ports[4];
    u32 tcp_established;
    u32 tcp_transitory;
    u32 udp;
    u32 udp_stream;
    u32 icmp;
    u32 sctp;
} vl_api_contiv_config_set_t;
#define VL_API_CONTIV_CONFIG_SET_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_config_set_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_config_set_reply_t;
#define VL_API_CONTIV_CONFIG_SET_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_config_get {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_config_get_t;
#define VL_API_CONTIV_CONFIG_GET_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_config_get_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
    u32 connections_max;
    u32 endpoint_connections;
    u16 tunnel_ports[4];
    u32 tcp_established;
    u32 tcp_transitory;
    u32 udp;
    u32 udp_stream;
    u32 icmp;
    u32 sctp;
} vl_api_contiv_config_get_reply_t;
#define VL_API_CONTIV_CONFIG_GET_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_set {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    vl_api_interface_index_t sw_if_index;
    vl_api_contiv_role_t role;
    u8 name[64];
    u32 egress;
    u32 max_connections;
    u32 table;
    u8 n_addresses;
    vl_api_address_t addresses[0];
} vl_api_contiv_endpoint_set_t;
#define VL_API_CONTIV_ENDPOINT_SET_IS_CONSTANT_SIZE (0)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_set_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_endpoint_set_reply_t;
#define VL_API_CONTIV_ENDPOINT_SET_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    vl_api_interface_index_t sw_if_index;
} vl_api_contiv_endpoint_del_t;
#define VL_API_CONTIV_ENDPOINT_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_endpoint_del_reply_t;
#define VL_API_CONTIV_ENDPOINT_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_endpoint_dump_t;
#define VL_API_CONTIV_ENDPOINT_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_details {
    u16 _vl_msg_id;
    u32 context;
    vl_api_interface_index_t sw_if_index;
    vl_api_contiv_role_t role;
    u8 name[64];
    u32 egress;
    u32 max_connections;
    u32 connections4;
    u32 connections6;
    u64 spoofed;
    u64 refused;
    u32 table;
    u8 n_addresses;
    vl_api_address_t addresses[0];
} vl_api_contiv_endpoint_details_t;
#define VL_API_CONTIV_ENDPOINT_DETAILS_IS_CONSTANT_SIZE (0)

typedef struct __attribute__ ((packed)) _vl_api_contiv_network_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    vl_api_prefix_t prefix;
    vl_api_contiv_class_t address_class;
} vl_api_contiv_network_add_del_t;
#define VL_API_CONTIV_NETWORK_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_network_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_network_add_del_reply_t;
#define VL_API_CONTIV_NETWORK_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_network_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_network_dump_t;
#define VL_API_CONTIV_NETWORK_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_network_details {
    u16 _vl_msg_id;
    u32 context;
    vl_api_prefix_t prefix;
    vl_api_contiv_class_t address_class;
} vl_api_contiv_network_details_t;
#define VL_API_CONTIV_NETWORK_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_snat_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    u32 id;
    u8 name[64];
    vl_api_ip4_address_t ip4;
    vl_api_ip6_address_t ip6;
    u16 port_low;
    u16 port_high;
} vl_api_contiv_snat_add_del_t;
#define VL_API_CONTIV_SNAT_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_snat_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_snat_add_del_reply_t;
#define VL_API_CONTIV_SNAT_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_snat_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_snat_dump_t;
#define VL_API_CONTIV_SNAT_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_snat_details {
    u16 _vl_msg_id;
    u32 context;
    u32 id;
    u8 name[64];
    vl_api_ip4_address_t ip4;
    vl_api_ip6_address_t ip6;
    u16 port_low;
    u16 port_high;
} vl_api_contiv_snat_details_t;
#define VL_API_CONTIV_SNAT_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_service_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    u64 id;
    u8 name[64];
    vl_api_contiv_service_flags_t flags;
} vl_api_contiv_service_add_del_t;
#define VL_API_CONTIV_SERVICE_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_service_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_service_add_del_reply_t;
#define VL_API_CONTIV_SERVICE_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_service_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_service_dump_t;
#define VL_API_CONTIV_SERVICE_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_service_details {
    u16 _vl_msg_id;
    u32 context;
    u64 id;
    u8 name[64];
    vl_api_contiv_service_flags_t flags;
    u32 n_backends;
} vl_api_contiv_service_details_t;
#define VL_API_CONTIV_SERVICE_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_backend_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    u64 service_id;
    vl_api_address_t address;
    u16 port;
    vl_api_contiv_backend_flags_t flags;
} vl_api_contiv_backend_add_del_t;
#define VL_API_CONTIV_BACKEND_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_backend_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_backend_add_del_reply_t;
#define VL_API_CONTIV_BACKEND_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_backend_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    u64 service_id;
} vl_api_contiv_backend_dump_t;
#define VL_API_CONTIV_BACKEND_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_backend_details {
    u16 _vl_msg_id;
    u32 context;
    u64 service_id;
    vl_api_address_t address;
    u16 port;
    vl_api_contiv_backend_flags_t flags;
    bool draining;
    u32 connections;
} vl_api_contiv_backend_details_t;
#define VL_API_CONTIV_BACKEND_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_frontend_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    vl_api_address_t address;
    u16 port;
    u8 protocol;
    u8 name[64];
    vl_api_contiv_target_t in_cluster;
    vl_api_contiv_target_t outside;
    u64 ranges;
    u64 affinity_group;
    u32 affinity_timeout;
} vl_api_contiv_frontend_add_del_t;
#define VL_API_CONTIV_FRONTEND_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_frontend_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_frontend_add_del_reply_t;
#define VL_API_CONTIV_FRONTEND_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_frontend_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_frontend_dump_t;
#define VL_API_CONTIV_FRONTEND_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_frontend_details {
    u16 _vl_msg_id;
    u32 context;
    vl_api_address_t address;
    u16 port;
    u8 protocol;
    u8 name[64];
    vl_api_contiv_target_t in_cluster;
    vl_api_contiv_target_t outside;
    u64 ranges;
    u64 affinity_group;
    u32 affinity_timeout;
    u64 new_connections;
} vl_api_contiv_frontend_details_t;
#define VL_API_CONTIV_FRONTEND_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_range_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    u64 id;
    vl_api_prefix_t prefix;
} vl_api_contiv_range_add_del_t;
#define VL_API_CONTIV_RANGE_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_range_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_range_add_del_reply_t;
#define VL_API_CONTIV_RANGE_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_range_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_range_dump_t;
#define VL_API_CONTIV_RANGE_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_range_details {
    u16 _vl_msg_id;
    u32 context;
    u64 id;
    vl_api_prefix_t prefix;
} vl_api_contiv_range_details_t;
#define VL_API_CONTIV_RANGE_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    u64 id;
    u8 name[64];
    vl_api_contiv_set_kind_t kind;
} vl_api_contiv_set_add_del_t;
#define VL_API_CONTIV_SET_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_set_add_del_reply_t;
#define VL_API_CONTIV_SET_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_set_dump_t;
#define VL_API_CONTIV_SET_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_details {
    u16 _vl_msg_id;
    u32 context;
    u64 id;
    u8 name[64];
    vl_api_contiv_set_kind_t kind;
    u32 n_members;
    bool overfull;
} vl_api_contiv_set_details_t;
#define VL_API_CONTIV_SET_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_member_add_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_add;
    u64 set_id;
    vl_api_prefix_t prefix;
    u8 protocol;
    u16 port;
} vl_api_contiv_set_member_add_del_t;
#define VL_API_CONTIV_SET_MEMBER_ADD_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_member_add_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_set_member_add_del_reply_t;
#define VL_API_CONTIV_SET_MEMBER_ADD_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_member_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    u64 set_id;
} vl_api_contiv_set_member_dump_t;
#define VL_API_CONTIV_SET_MEMBER_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_set_member_details {
    u16 _vl_msg_id;
    u32 context;
    u64 set_id;
    vl_api_prefix_t prefix;
    u8 protocol;
    u16 port;
} vl_api_contiv_set_member_details_t;
#define VL_API_CONTIV_SET_MEMBER_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_policy_set {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    u64 id;
    u8 name[64];
    u32 n_ingress;
    u32 n_rules;
    vl_api_contiv_rule_t rules[0];
} vl_api_contiv_policy_set_t;
#define VL_API_CONTIV_POLICY_SET_IS_CONSTANT_SIZE (0)

typedef struct __attribute__ ((packed)) _vl_api_contiv_policy_set_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_policy_set_reply_t;
#define VL_API_CONTIV_POLICY_SET_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_policy_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    u64 id;
} vl_api_contiv_policy_del_t;
#define VL_API_CONTIV_POLICY_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_policy_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_policy_del_reply_t;
#define VL_API_CONTIV_POLICY_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_policy_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_policy_dump_t;
#define VL_API_CONTIV_POLICY_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_policy_details {
    u16 _vl_msg_id;
    u32 context;
    u64 id;
    u8 name[64];
    u32 n_ingress;
    u32 n_rules;
    vl_api_contiv_counted_rule_t rules[0];
} vl_api_contiv_policy_details_t;
#define VL_API_CONTIV_POLICY_DETAILS_IS_CONSTANT_SIZE (0)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_policy_set {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    vl_api_interface_index_t sw_if_index;
    u8 name[64];
    vl_api_contiv_rule_action_t ingress;
    vl_api_contiv_rule_action_t egress;
    u32 n_ingress;
    u32 n_items;
    vl_api_contiv_tier_item_t items[0];
} vl_api_contiv_endpoint_policy_set_t;
#define VL_API_CONTIV_ENDPOINT_POLICY_SET_IS_CONSTANT_SIZE (0)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_policy_set_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_endpoint_policy_set_reply_t;
#define VL_API_CONTIV_ENDPOINT_POLICY_SET_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_policy_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    vl_api_interface_index_t sw_if_index;
} vl_api_contiv_endpoint_policy_del_t;
#define VL_API_CONTIV_ENDPOINT_POLICY_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_policy_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_endpoint_policy_del_reply_t;
#define VL_API_CONTIV_ENDPOINT_POLICY_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_policy_dump {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_endpoint_policy_dump_t;
#define VL_API_CONTIV_ENDPOINT_POLICY_DUMP_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_endpoint_policy_details {
    u16 _vl_msg_id;
    u32 context;
    vl_api_interface_index_t sw_if_index;
    u8 name[64];
    vl_api_contiv_rule_action_t ingress;
    vl_api_contiv_rule_action_t egress;
    u64 denied_ingress;
    u64 denied_egress;
    u32 n_ingress;
    u32 n_items;
    vl_api_contiv_tier_item_t items[0];
} vl_api_contiv_endpoint_policy_details_t;
#define VL_API_CONTIV_ENDPOINT_POLICY_DETAILS_IS_CONSTANT_SIZE (0)

typedef struct __attribute__ ((packed)) _vl_api_contiv_denied_get {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    u64 after;
} vl_api_contiv_denied_get_t;
#define VL_API_CONTIV_DENIED_GET_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_denied_get_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_denied_get_reply_t;
#define VL_API_CONTIV_DENIED_GET_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_denied_details {
    u16 _vl_msg_id;
    u32 context;
    u64 sequence;
    u32 age;
    vl_api_interface_index_t sw_if_index;
    vl_api_contiv_side_t side;
    u8 protocol;
    u8 icmp_type;
    u8 icmp_code;
    vl_api_address_t source;
    vl_api_address_t destination;
    u16 source_port;
    u16 destination_port;
    u64 policy_id;
    u32 rule;
} vl_api_contiv_denied_details_t;
#define VL_API_CONTIV_DENIED_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_connection_get {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    bool is_ip6;
    u32 cursor;
    vl_api_interface_index_t sw_if_index;
} vl_api_contiv_connection_get_t;
#define VL_API_CONTIV_CONNECTION_GET_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_connection_get_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
    u32 next;
} vl_api_contiv_connection_get_reply_t;
#define VL_API_CONTIV_CONNECTION_GET_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_connection_details {
    u16 _vl_msg_id;
    u32 context;
    u8 protocol;
    vl_api_address_t client;
    u16 client_port;
    vl_api_address_t frontend;
    u16 frontend_port;
    vl_api_address_t source;
    u16 source_port;
    vl_api_address_t backend;
    u16 backend_port;
    vl_api_interface_index_t sw_if_index;
    u8 state;
    u32 idle;
    u32 expires;
    bool denied;
} vl_api_contiv_connection_details_t;
#define VL_API_CONTIV_CONNECTION_DETAILS_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_connection_del {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
    u8 protocol;
    vl_api_address_t client;
    u16 client_port;
    vl_api_address_t frontend;
    u16 frontend_port;
} vl_api_contiv_connection_del_t;
#define VL_API_CONTIV_CONNECTION_DEL_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_connection_del_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
} vl_api_contiv_connection_del_reply_t;
#define VL_API_CONTIV_CONNECTION_DEL_REPLY_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_stats_get {
    u16 _vl_msg_id;
    u32 client_index;
    u32 context;
} vl_api_contiv_stats_get_t;
#define VL_API_CONTIV_STATS_GET_IS_CONSTANT_SIZE (1)

typedef struct __attribute__ ((packed)) _vl_api_contiv_stats_get_reply {
    u16 _vl_msg_id;
    u32 context;
    i32 retval;
    u32 connections4;
    u32 connections6;
    u32 connections_max;
    u64 created;
    u64 refused_full;
    u64 refused_limit;
    u64 refused_port;
    u64 spoofed;
    u64 tunnel;
    u64 denied;
} vl_api_contiv_stats_get_reply_t;
#define VL_API_CONTIV_STATS_GET_REPLY_IS_CONSTANT_SIZE (1)

#define VL_API_CONTIV_PLUGIN_GET_VERSION_CRC "contiv_plugin_get_version_51077d14"
#define VL_API_CONTIV_PLUGIN_GET_VERSION_REPLY_CRC "contiv_plugin_get_version_reply_7f6a45e3"
#define VL_API_CONTIV_CONFIG_SET_CRC "contiv_config_set_09b36b4a"
#define VL_API_CONTIV_CONFIG_SET_REPLY_CRC "contiv_config_set_reply_e8d4e804"
#define VL_API_CONTIV_CONFIG_GET_CRC "contiv_config_get_51077d14"
#define VL_API_CONTIV_CONFIG_GET_REPLY_CRC "contiv_config_get_reply_7079674d"
#define VL_API_CONTIV_ENDPOINT_SET_CRC "contiv_endpoint_set_08f83310"
#define VL_API_CONTIV_ENDPOINT_SET_REPLY_CRC "contiv_endpoint_set_reply_e8d4e804"
#define VL_API_CONTIV_ENDPOINT_DEL_CRC "contiv_endpoint_del_f9e6675e"
#define VL_API_CONTIV_ENDPOINT_DEL_REPLY_CRC "contiv_endpoint_del_reply_e8d4e804"
#define VL_API_CONTIV_ENDPOINT_DUMP_CRC "contiv_endpoint_dump_51077d14"
#define VL_API_CONTIV_ENDPOINT_DETAILS_CRC "contiv_endpoint_details_fc3b91fb"
#define VL_API_CONTIV_NETWORK_ADD_DEL_CRC "contiv_network_add_del_67c7ee20"
#define VL_API_CONTIV_NETWORK_ADD_DEL_REPLY_CRC "contiv_network_add_del_reply_e8d4e804"
#define VL_API_CONTIV_NETWORK_DUMP_CRC "contiv_network_dump_51077d14"
#define VL_API_CONTIV_NETWORK_DETAILS_CRC "contiv_network_details_cd636f47"
#define VL_API_CONTIV_SNAT_ADD_DEL_CRC "contiv_snat_add_del_036fba23"
#define VL_API_CONTIV_SNAT_ADD_DEL_REPLY_CRC "contiv_snat_add_del_reply_e8d4e804"
#define VL_API_CONTIV_SNAT_DUMP_CRC "contiv_snat_dump_51077d14"
#define VL_API_CONTIV_SNAT_DETAILS_CRC "contiv_snat_details_037bb7b3"
#define VL_API_CONTIV_SERVICE_ADD_DEL_CRC "contiv_service_add_del_d6e1f5cd"
#define VL_API_CONTIV_SERVICE_ADD_DEL_REPLY_CRC "contiv_service_add_del_reply_e8d4e804"
#define VL_API_CONTIV_SERVICE_DUMP_CRC "contiv_service_dump_51077d14"
#define VL_API_CONTIV_SERVICE_DETAILS_CRC "contiv_service_details_4d97aab7"
#define VL_API_CONTIV_BACKEND_ADD_DEL_CRC "contiv_backend_add_del_172c84fd"
#define VL_API_CONTIV_BACKEND_ADD_DEL_REPLY_CRC "contiv_backend_add_del_reply_e8d4e804"
#define VL_API_CONTIV_BACKEND_DUMP_CRC "contiv_backend_dump_47004f9b"
#define VL_API_CONTIV_BACKEND_DETAILS_CRC "contiv_backend_details_6a9a434b"
#define VL_API_CONTIV_FRONTEND_ADD_DEL_CRC "contiv_frontend_add_del_326be804"
#define VL_API_CONTIV_FRONTEND_ADD_DEL_REPLY_CRC "contiv_frontend_add_del_reply_e8d4e804"
#define VL_API_CONTIV_FRONTEND_DUMP_CRC "contiv_frontend_dump_51077d14"
#define VL_API_CONTIV_FRONTEND_DETAILS_CRC "contiv_frontend_details_fdfd73a6"
#define VL_API_CONTIV_RANGE_ADD_DEL_CRC "contiv_range_add_del_05fb8a0f"
#define VL_API_CONTIV_RANGE_ADD_DEL_REPLY_CRC "contiv_range_add_del_reply_e8d4e804"
#define VL_API_CONTIV_RANGE_DUMP_CRC "contiv_range_dump_51077d14"
#define VL_API_CONTIV_RANGE_DETAILS_CRC "contiv_range_details_c17f168e"
#define VL_API_CONTIV_SET_ADD_DEL_CRC "contiv_set_add_del_dfa0a1e3"
#define VL_API_CONTIV_SET_ADD_DEL_REPLY_CRC "contiv_set_add_del_reply_e8d4e804"
#define VL_API_CONTIV_SET_DUMP_CRC "contiv_set_dump_51077d14"
#define VL_API_CONTIV_SET_DETAILS_CRC "contiv_set_details_bf13b5f0"
#define VL_API_CONTIV_SET_MEMBER_ADD_DEL_CRC "contiv_set_member_add_del_d5d8bcd3"
#define VL_API_CONTIV_SET_MEMBER_ADD_DEL_REPLY_CRC "contiv_set_member_add_del_reply_e8d4e804"
#define VL_API_CONTIV_SET_MEMBER_DUMP_CRC "contiv_set_member_dump_05e92ef6"
#define VL_API_CONTIV_SET_MEMBER_DETAILS_CRC "contiv_set_member_details_f985c5dc"
#define VL_API_CONTIV_POLICY_SET_CRC "contiv_policy_set_b8a05e6e"
#define VL_API_CONTIV_POLICY_SET_REPLY_CRC "contiv_policy_set_reply_e8d4e804"
#define VL_API_CONTIV_POLICY_DEL_CRC "contiv_policy_del_46d861e0"
#define VL_API_CONTIV_POLICY_DEL_REPLY_CRC "contiv_policy_del_reply_e8d4e804"
#define VL_API_CONTIV_POLICY_DUMP_CRC "contiv_policy_dump_51077d14"
#define VL_API_CONTIV_POLICY_DETAILS_CRC "contiv_policy_details_b0083e23"
#define VL_API_CONTIV_ENDPOINT_POLICY_SET_CRC "contiv_endpoint_policy_set_7583819a"
#define VL_API_CONTIV_ENDPOINT_POLICY_SET_REPLY_CRC "contiv_endpoint_policy_set_reply_e8d4e804"
#define VL_API_CONTIV_ENDPOINT_POLICY_DEL_CRC "contiv_endpoint_policy_del_f9e6675e"
#define VL_API_CONTIV_ENDPOINT_POLICY_DEL_REPLY_CRC "contiv_endpoint_policy_del_reply_e8d4e804"
#define VL_API_CONTIV_ENDPOINT_POLICY_DUMP_CRC "contiv_endpoint_policy_dump_51077d14"
#define VL_API_CONTIV_ENDPOINT_POLICY_DETAILS_CRC "contiv_endpoint_policy_details_c91e5e3b"
#define VL_API_CONTIV_DENIED_GET_CRC "contiv_denied_get_22e06b2b"
#define VL_API_CONTIV_DENIED_GET_REPLY_CRC "contiv_denied_get_reply_e8d4e804"
#define VL_API_CONTIV_DENIED_DETAILS_CRC "contiv_denied_details_84c792f6"
#define VL_API_CONTIV_CONNECTION_GET_CRC "contiv_connection_get_1bb618f5"
#define VL_API_CONTIV_CONNECTION_GET_REPLY_CRC "contiv_connection_get_reply_7d69eb42"
#define VL_API_CONTIV_CONNECTION_DETAILS_CRC "contiv_connection_details_c0267deb"
#define VL_API_CONTIV_CONNECTION_DEL_CRC "contiv_connection_del_e7e15dcb"
#define VL_API_CONTIV_CONNECTION_DEL_REPLY_CRC "contiv_connection_del_reply_e8d4e804"
#define VL_API_CONTIV_STATS_GET_CRC "contiv_stats_get_51077d14"
#define VL_API_CONTIV_STATS_GET_REPLY_CRC "contiv_stats_get_reply_23554f02"

#endif
