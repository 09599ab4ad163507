/* Imported API files */
#include <vnet/interface_types.api_tojson.h>
#include <vnet/ip/ip_types.api_tojson.h>
#ifndef included_contiv_api_tojson_h
#define included_contiv_api_tojson_h
#include <vppinfra/cJSON.h>

#include <vppinfra/jsonformat.h>

static inline cJSON *vl_api_contiv_role_t_tojson (vl_api_contiv_role_t a) {
    switch(a) {
    case 1:
        return cJSON_CreateString("CONTIV_ROLE_API_POD");
    case 2:
        return cJSON_CreateString("CONTIV_ROLE_API_HOST");
    case 3:
        return cJSON_CreateString("CONTIV_ROLE_API_UPLINK");
    case 4:
        return cJSON_CreateString("CONTIV_ROLE_API_OVERLAY");
    default: return cJSON_CreateString("Invalid ENUM");
    }
    return 0;
}
static inline cJSON *vl_api_contiv_class_t_tojson (vl_api_contiv_class_t a) {
    switch(a) {
    case 1:
        return cJSON_CreateString("CONTIV_CLASS_API_POD");
    case 2:
        return cJSON_CreateString("CONTIV_CLASS_API_NODE");
    default: return cJSON_CreateString("Invalid ENUM");
    }
    return 0;
}
static inline cJSON *vl_api_contiv_action_t_tojson (vl_api_contiv_action_t a) {
    switch(a) {
    case 1:
        return cJSON_CreateString("CONTIV_ACTION_API_BALANCE");
    case 2:
        return cJSON_CreateString("CONTIV_ACTION_API_REJECT");
    case 3:
        return cJSON_CreateString("CONTIV_ACTION_API_DROP");
    default: return cJSON_CreateString("Invalid ENUM");
    }
    return 0;
}
static inline cJSON *vl_api_contiv_backend_flags_t_tojson (vl_api_contiv_backend_flags_t a) {
    cJSON *array = cJSON_CreateArray();
    if (a & CONTIV_BACKEND_API_MASQ)
       cJSON_AddItemToArray(array, cJSON_CreateString("CONTIV_BACKEND_API_MASQ"));
    if (a & CONTIV_BACKEND_API_KEEP)
       cJSON_AddItemToArray(array, cJSON_CreateString("CONTIV_BACKEND_API_KEEP"));
    return array;
}
static inline cJSON *vl_api_contiv_service_flags_t_tojson (vl_api_contiv_service_flags_t a) {
    cJSON *array = cJSON_CreateArray();
    if (a & CONTIV_SERVICE_API_MAGLEV)
       cJSON_AddItemToArray(array, cJSON_CreateString("CONTIV_SERVICE_API_MAGLEV"));
    return array;
}
static inline cJSON *vl_api_contiv_target_flags_t_tojson (vl_api_contiv_target_flags_t a) {
    cJSON *array = cJSON_CreateArray();
    if (a & CONTIV_TARGET_API_MASQ)
       cJSON_AddItemToArray(array, cJSON_CreateString("CONTIV_TARGET_API_MASQ"));
    return array;
}
static inline cJSON *vl_api_contiv_target_t_tojson (vl_api_contiv_target_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "action", vl_api_contiv_action_t_tojson(a->action));
    cJSON_AddItemToObject(o, "flags", vl_api_contiv_target_flags_t_tojson(a->flags));
    cJSON_AddNumberToObject(o, "service_id", a->service_id);
    return o;
}
static inline cJSON *vl_api_contiv_rule_action_t_tojson (vl_api_contiv_rule_action_t a) {
    switch(a) {
    case 1:
        return cJSON_CreateString("CONTIV_RULE_API_ALLOW");
    case 2:
        return cJSON_CreateString("CONTIV_RULE_API_DENY");
    case 3:
        return cJSON_CreateString("CONTIV_RULE_API_PASS");
    default: return cJSON_CreateString("Invalid ENUM");
    }
    return 0;
}
static inline cJSON *vl_api_contiv_set_kind_t_tojson (vl_api_contiv_set_kind_t a) {
    switch(a) {
    case 1:
        return cJSON_CreateString("CONTIV_SET_API_NETWORKS");
    case 2:
        return cJSON_CreateString("CONTIV_SET_API_PORTS");
    default: return cJSON_CreateString("Invalid ENUM");
    }
    return 0;
}
static inline cJSON *vl_api_contiv_side_t_tojson (vl_api_contiv_side_t a) {
    switch(a) {
    case 0:
        return cJSON_CreateString("CONTIV_SIDE_API_INGRESS");
    case 1:
        return cJSON_CreateString("CONTIV_SIDE_API_EGRESS");
    default: return cJSON_CreateString("Invalid ENUM");
    }
    return 0;
}
static inline cJSON *vl_api_contiv_rule_flags_t_tojson (vl_api_contiv_rule_flags_t a) {
    cJSON *array = cJSON_CreateArray();
    if (a & CONTIV_RULE_API_ICMP_TYPE)
       cJSON_AddItemToArray(array, cJSON_CreateString("CONTIV_RULE_API_ICMP_TYPE"));
    if (a & CONTIV_RULE_API_ICMP_CODE)
       cJSON_AddItemToArray(array, cJSON_CreateString("CONTIV_RULE_API_ICMP_CODE"));
    return array;
}
static inline cJSON *vl_api_contiv_port_range_t_tojson (vl_api_contiv_port_range_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "first", a->first);
    cJSON_AddNumberToObject(o, "last", a->last);
    return o;
}
static inline cJSON *vl_api_contiv_rule_t_tojson (vl_api_contiv_rule_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "action", vl_api_contiv_rule_action_t_tojson(a->action));
    cJSON_AddNumberToObject(o, "family", a->family);
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddItemToObject(o, "flags", vl_api_contiv_rule_flags_t_tojson(a->flags));
    cJSON_AddNumberToObject(o, "icmp_type", a->icmp_type);
    cJSON_AddNumberToObject(o, "icmp_code", a->icmp_code);
    cJSON_AddNumberToObject(o, "source", a->source);
    cJSON_AddNumberToObject(o, "destination", a->destination);
    cJSON_AddNumberToObject(o, "port_set", a->port_set);
    cJSON_AddNumberToObject(o, "n_ports", a->n_ports);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "ports");
        for (i = 0; i < 8; i++) {
            cJSON_AddItemToArray(array, vl_api_contiv_port_range_t_tojson(&a->ports[i]));
        }
    }
    return o;
}
static inline cJSON *vl_api_contiv_counted_rule_t_tojson (vl_api_contiv_counted_rule_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "rule", vl_api_contiv_rule_t_tojson(&a->rule));
    cJSON_AddNumberToObject(o, "matched", a->matched);
    return o;
}
static inline cJSON *vl_api_contiv_tier_item_t_tojson (vl_api_contiv_tier_item_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "policy_id", a->policy_id);
    cJSON_AddItemToObject(o, "action", vl_api_contiv_rule_action_t_tojson(a->action));
    return o;
}
static inline cJSON *vl_api_contiv_plugin_get_version_t_tojson (vl_api_contiv_plugin_get_version_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_plugin_get_version");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_plugin_get_version_reply_t_tojson (vl_api_contiv_plugin_get_version_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_plugin_get_version_reply");
    cJSON_AddStringToObject(o, "_crc", "7f6a45e3");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    cJSON_AddNumberToObject(o, "major", a->major);
    cJSON_AddNumberToObject(o, "minor", a->minor);
    cJSON_AddNumberToObject(o, "patch", a->patch);
    return o;
}
static inline cJSON *vl_api_contiv_config_set_t_tojson (vl_api_contiv_config_set_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_config_set");
    cJSON_AddStringToObject(o, "_crc", "09b36b4a");
    cJSON_AddNumberToObject(o, "endpoint_connections", a->endpoint_connections);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "tunnel_ports");
        for (i = 0; i < 4; i++) {
            cJSON_AddItemToArray(array, cJSON_CreateNumber(a->tunnel_ports[i]));
        }
    }
    cJSON_AddNumberToObject(o, "tcp_established", a->tcp_established);
    cJSON_AddNumberToObject(o, "tcp_transitory", a->tcp_transitory);
    cJSON_AddNumberToObject(o, "udp", a->udp);
    cJSON_AddNumberToObject(o, "udp_stream", a->udp_stream);
    cJSON_AddNumberToObject(o, "icmp", a->icmp);
    cJSON_AddNumberToObject(o, "sctp", a->sctp);
    return o;
}
static inline cJSON *vl_api_contiv_config_set_reply_t_tojson (vl_api_contiv_config_set_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_config_set_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_config_get_t_tojson (vl_api_contiv_config_get_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_config_get");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_config_get_reply_t_tojson (vl_api_contiv_config_get_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_config_get_reply");
    cJSON_AddStringToObject(o, "_crc", "7079674d");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    cJSON_AddNumberToObject(o, "connections_max", a->connections_max);
    cJSON_AddNumberToObject(o, "endpoint_connections", a->endpoint_connections);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "tunnel_ports");
        for (i = 0; i < 4; i++) {
            cJSON_AddItemToArray(array, cJSON_CreateNumber(a->tunnel_ports[i]));
        }
    }
    cJSON_AddNumberToObject(o, "tcp_established", a->tcp_established);
    cJSON_AddNumberToObject(o, "tcp_transitory", a->tcp_transitory);
    cJSON_AddNumberToObject(o, "udp", a->udp);
    cJSON_AddNumberToObject(o, "udp_stream", a->udp_stream);
    cJSON_AddNumberToObject(o, "icmp", a->icmp);
    cJSON_AddNumberToObject(o, "sctp", a->sctp);
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_set_t_tojson (vl_api_contiv_endpoint_set_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_set");
    cJSON_AddStringToObject(o, "_crc", "08f83310");
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    cJSON_AddItemToObject(o, "role", vl_api_contiv_role_t_tojson(a->role));
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddNumberToObject(o, "egress", a->egress);
    cJSON_AddNumberToObject(o, "max_connections", a->max_connections);
    cJSON_AddNumberToObject(o, "table", a->table);
    cJSON_AddNumberToObject(o, "n_addresses", a->n_addresses);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "addresses");
        for (i = 0; i < a->n_addresses; i++) {
            cJSON_AddItemToArray(array, vl_api_address_t_tojson(&a->addresses[i]));
        }
    }
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_set_reply_t_tojson (vl_api_contiv_endpoint_set_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_set_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_del_t_tojson (vl_api_contiv_endpoint_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_del");
    cJSON_AddStringToObject(o, "_crc", "f9e6675e");
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_del_reply_t_tojson (vl_api_contiv_endpoint_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_dump_t_tojson (vl_api_contiv_endpoint_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_details_t_tojson (vl_api_contiv_endpoint_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_details");
    cJSON_AddStringToObject(o, "_crc", "fc3b91fb");
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    cJSON_AddItemToObject(o, "role", vl_api_contiv_role_t_tojson(a->role));
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddNumberToObject(o, "egress", a->egress);
    cJSON_AddNumberToObject(o, "max_connections", a->max_connections);
    cJSON_AddNumberToObject(o, "connections4", a->connections4);
    cJSON_AddNumberToObject(o, "connections6", a->connections6);
    cJSON_AddNumberToObject(o, "spoofed", a->spoofed);
    cJSON_AddNumberToObject(o, "refused", a->refused);
    cJSON_AddNumberToObject(o, "table", a->table);
    cJSON_AddNumberToObject(o, "n_addresses", a->n_addresses);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "addresses");
        for (i = 0; i < a->n_addresses; i++) {
            cJSON_AddItemToArray(array, vl_api_address_t_tojson(&a->addresses[i]));
        }
    }
    return o;
}
static inline cJSON *vl_api_contiv_network_add_del_t_tojson (vl_api_contiv_network_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_network_add_del");
    cJSON_AddStringToObject(o, "_crc", "67c7ee20");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddItemToObject(o, "prefix", vl_api_prefix_t_tojson(&a->prefix));
    cJSON_AddItemToObject(o, "address_class", vl_api_contiv_class_t_tojson(a->address_class));
    return o;
}
static inline cJSON *vl_api_contiv_network_add_del_reply_t_tojson (vl_api_contiv_network_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_network_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_network_dump_t_tojson (vl_api_contiv_network_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_network_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_network_details_t_tojson (vl_api_contiv_network_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_network_details");
    cJSON_AddStringToObject(o, "_crc", "cd636f47");
    cJSON_AddItemToObject(o, "prefix", vl_api_prefix_t_tojson(&a->prefix));
    cJSON_AddItemToObject(o, "address_class", vl_api_contiv_class_t_tojson(a->address_class));
    return o;
}
static inline cJSON *vl_api_contiv_snat_add_del_t_tojson (vl_api_contiv_snat_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_snat_add_del");
    cJSON_AddStringToObject(o, "_crc", "036fba23");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "ip4", vl_api_ip4_address_t_tojson(&a->ip4));
    cJSON_AddItemToObject(o, "ip6", vl_api_ip6_address_t_tojson(&a->ip6));
    cJSON_AddNumberToObject(o, "port_low", a->port_low);
    cJSON_AddNumberToObject(o, "port_high", a->port_high);
    return o;
}
static inline cJSON *vl_api_contiv_snat_add_del_reply_t_tojson (vl_api_contiv_snat_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_snat_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_snat_dump_t_tojson (vl_api_contiv_snat_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_snat_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_snat_details_t_tojson (vl_api_contiv_snat_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_snat_details");
    cJSON_AddStringToObject(o, "_crc", "037bb7b3");
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "ip4", vl_api_ip4_address_t_tojson(&a->ip4));
    cJSON_AddItemToObject(o, "ip6", vl_api_ip6_address_t_tojson(&a->ip6));
    cJSON_AddNumberToObject(o, "port_low", a->port_low);
    cJSON_AddNumberToObject(o, "port_high", a->port_high);
    return o;
}
static inline cJSON *vl_api_contiv_service_add_del_t_tojson (vl_api_contiv_service_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_service_add_del");
    cJSON_AddStringToObject(o, "_crc", "d6e1f5cd");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "flags", vl_api_contiv_service_flags_t_tojson(a->flags));
    return o;
}
static inline cJSON *vl_api_contiv_service_add_del_reply_t_tojson (vl_api_contiv_service_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_service_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_service_dump_t_tojson (vl_api_contiv_service_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_service_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_service_details_t_tojson (vl_api_contiv_service_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_service_details");
    cJSON_AddStringToObject(o, "_crc", "4d97aab7");
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "flags", vl_api_contiv_service_flags_t_tojson(a->flags));
    cJSON_AddNumberToObject(o, "n_backends", a->n_backends);
    return o;
}
static inline cJSON *vl_api_contiv_backend_add_del_t_tojson (vl_api_contiv_backend_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_backend_add_del");
    cJSON_AddStringToObject(o, "_crc", "172c84fd");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddNumberToObject(o, "service_id", a->service_id);
    cJSON_AddItemToObject(o, "address", vl_api_address_t_tojson(&a->address));
    cJSON_AddNumberToObject(o, "port", a->port);
    cJSON_AddItemToObject(o, "flags", vl_api_contiv_backend_flags_t_tojson(a->flags));
    return o;
}
static inline cJSON *vl_api_contiv_backend_add_del_reply_t_tojson (vl_api_contiv_backend_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_backend_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_backend_dump_t_tojson (vl_api_contiv_backend_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_backend_dump");
    cJSON_AddStringToObject(o, "_crc", "47004f9b");
    cJSON_AddNumberToObject(o, "service_id", a->service_id);
    return o;
}
static inline cJSON *vl_api_contiv_backend_details_t_tojson (vl_api_contiv_backend_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_backend_details");
    cJSON_AddStringToObject(o, "_crc", "6a9a434b");
    cJSON_AddNumberToObject(o, "service_id", a->service_id);
    cJSON_AddItemToObject(o, "address", vl_api_address_t_tojson(&a->address));
    cJSON_AddNumberToObject(o, "port", a->port);
    cJSON_AddItemToObject(o, "flags", vl_api_contiv_backend_flags_t_tojson(a->flags));
    cJSON_AddBoolToObject(o, "draining", a->draining);
    cJSON_AddNumberToObject(o, "connections", a->connections);
    return o;
}
static inline cJSON *vl_api_contiv_frontend_add_del_t_tojson (vl_api_contiv_frontend_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_frontend_add_del");
    cJSON_AddStringToObject(o, "_crc", "326be804");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddItemToObject(o, "address", vl_api_address_t_tojson(&a->address));
    cJSON_AddNumberToObject(o, "port", a->port);
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "in_cluster", vl_api_contiv_target_t_tojson(&a->in_cluster));
    cJSON_AddItemToObject(o, "outside", vl_api_contiv_target_t_tojson(&a->outside));
    cJSON_AddNumberToObject(o, "ranges", a->ranges);
    cJSON_AddNumberToObject(o, "affinity_group", a->affinity_group);
    cJSON_AddNumberToObject(o, "affinity_timeout", a->affinity_timeout);
    return o;
}
static inline cJSON *vl_api_contiv_frontend_add_del_reply_t_tojson (vl_api_contiv_frontend_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_frontend_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_frontend_dump_t_tojson (vl_api_contiv_frontend_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_frontend_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_frontend_details_t_tojson (vl_api_contiv_frontend_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_frontend_details");
    cJSON_AddStringToObject(o, "_crc", "fdfd73a6");
    cJSON_AddItemToObject(o, "address", vl_api_address_t_tojson(&a->address));
    cJSON_AddNumberToObject(o, "port", a->port);
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "in_cluster", vl_api_contiv_target_t_tojson(&a->in_cluster));
    cJSON_AddItemToObject(o, "outside", vl_api_contiv_target_t_tojson(&a->outside));
    cJSON_AddNumberToObject(o, "ranges", a->ranges);
    cJSON_AddNumberToObject(o, "affinity_group", a->affinity_group);
    cJSON_AddNumberToObject(o, "affinity_timeout", a->affinity_timeout);
    cJSON_AddNumberToObject(o, "new_connections", a->new_connections);
    return o;
}
static inline cJSON *vl_api_contiv_range_add_del_t_tojson (vl_api_contiv_range_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_range_add_del");
    cJSON_AddStringToObject(o, "_crc", "05fb8a0f");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddItemToObject(o, "prefix", vl_api_prefix_t_tojson(&a->prefix));
    return o;
}
static inline cJSON *vl_api_contiv_range_add_del_reply_t_tojson (vl_api_contiv_range_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_range_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_range_dump_t_tojson (vl_api_contiv_range_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_range_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_range_details_t_tojson (vl_api_contiv_range_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_range_details");
    cJSON_AddStringToObject(o, "_crc", "c17f168e");
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddItemToObject(o, "prefix", vl_api_prefix_t_tojson(&a->prefix));
    return o;
}
static inline cJSON *vl_api_contiv_set_add_del_t_tojson (vl_api_contiv_set_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_add_del");
    cJSON_AddStringToObject(o, "_crc", "dfa0a1e3");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "kind", vl_api_contiv_set_kind_t_tojson(a->kind));
    return o;
}
static inline cJSON *vl_api_contiv_set_add_del_reply_t_tojson (vl_api_contiv_set_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_set_dump_t_tojson (vl_api_contiv_set_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_set_details_t_tojson (vl_api_contiv_set_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_details");
    cJSON_AddStringToObject(o, "_crc", "bf13b5f0");
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "kind", vl_api_contiv_set_kind_t_tojson(a->kind));
    cJSON_AddNumberToObject(o, "n_members", a->n_members);
    cJSON_AddBoolToObject(o, "overfull", a->overfull);
    return o;
}
static inline cJSON *vl_api_contiv_set_member_add_del_t_tojson (vl_api_contiv_set_member_add_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_member_add_del");
    cJSON_AddStringToObject(o, "_crc", "d5d8bcd3");
    cJSON_AddBoolToObject(o, "is_add", a->is_add);
    cJSON_AddNumberToObject(o, "set_id", a->set_id);
    cJSON_AddItemToObject(o, "prefix", vl_api_prefix_t_tojson(&a->prefix));
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddNumberToObject(o, "port", a->port);
    return o;
}
static inline cJSON *vl_api_contiv_set_member_add_del_reply_t_tojson (vl_api_contiv_set_member_add_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_member_add_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_set_member_dump_t_tojson (vl_api_contiv_set_member_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_member_dump");
    cJSON_AddStringToObject(o, "_crc", "05e92ef6");
    cJSON_AddNumberToObject(o, "set_id", a->set_id);
    return o;
}
static inline cJSON *vl_api_contiv_set_member_details_t_tojson (vl_api_contiv_set_member_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_set_member_details");
    cJSON_AddStringToObject(o, "_crc", "f985c5dc");
    cJSON_AddNumberToObject(o, "set_id", a->set_id);
    cJSON_AddItemToObject(o, "prefix", vl_api_prefix_t_tojson(&a->prefix));
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddNumberToObject(o, "port", a->port);
    return o;
}
static inline cJSON *vl_api_contiv_policy_set_t_tojson (vl_api_contiv_policy_set_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_policy_set");
    cJSON_AddStringToObject(o, "_crc", "b8a05e6e");
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddNumberToObject(o, "n_ingress", a->n_ingress);
    cJSON_AddNumberToObject(o, "n_rules", a->n_rules);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "rules");
        for (i = 0; i < a->n_rules; i++) {
            cJSON_AddItemToArray(array, vl_api_contiv_rule_t_tojson(&a->rules[i]));
        }
    }
    return o;
}
static inline cJSON *vl_api_contiv_policy_set_reply_t_tojson (vl_api_contiv_policy_set_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_policy_set_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_policy_del_t_tojson (vl_api_contiv_policy_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_policy_del");
    cJSON_AddStringToObject(o, "_crc", "46d861e0");
    cJSON_AddNumberToObject(o, "id", a->id);
    return o;
}
static inline cJSON *vl_api_contiv_policy_del_reply_t_tojson (vl_api_contiv_policy_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_policy_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_policy_dump_t_tojson (vl_api_contiv_policy_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_policy_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_policy_details_t_tojson (vl_api_contiv_policy_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_policy_details");
    cJSON_AddStringToObject(o, "_crc", "b0083e23");
    cJSON_AddNumberToObject(o, "id", a->id);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddNumberToObject(o, "n_ingress", a->n_ingress);
    cJSON_AddNumberToObject(o, "n_rules", a->n_rules);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "rules");
        for (i = 0; i < a->n_rules; i++) {
            cJSON_AddItemToArray(array, vl_api_contiv_counted_rule_t_tojson(&a->rules[i]));
        }
    }
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_policy_set_t_tojson (vl_api_contiv_endpoint_policy_set_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_policy_set");
    cJSON_AddStringToObject(o, "_crc", "7583819a");
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "ingress", vl_api_contiv_rule_action_t_tojson(a->ingress));
    cJSON_AddItemToObject(o, "egress", vl_api_contiv_rule_action_t_tojson(a->egress));
    cJSON_AddNumberToObject(o, "n_ingress", a->n_ingress);
    cJSON_AddNumberToObject(o, "n_items", a->n_items);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "items");
        for (i = 0; i < a->n_items; i++) {
            cJSON_AddItemToArray(array, vl_api_contiv_tier_item_t_tojson(&a->items[i]));
        }
    }
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_policy_set_reply_t_tojson (vl_api_contiv_endpoint_policy_set_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_policy_set_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_policy_del_t_tojson (vl_api_contiv_endpoint_policy_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_policy_del");
    cJSON_AddStringToObject(o, "_crc", "f9e6675e");
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_policy_del_reply_t_tojson (vl_api_contiv_endpoint_policy_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_policy_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_policy_dump_t_tojson (vl_api_contiv_endpoint_policy_dump_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_policy_dump");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_endpoint_policy_details_t_tojson (vl_api_contiv_endpoint_policy_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_endpoint_policy_details");
    cJSON_AddStringToObject(o, "_crc", "c91e5e3b");
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    cJSON_AddStringToObject(o, "name", (char *)a->name);
    cJSON_AddItemToObject(o, "ingress", vl_api_contiv_rule_action_t_tojson(a->ingress));
    cJSON_AddItemToObject(o, "egress", vl_api_contiv_rule_action_t_tojson(a->egress));
    cJSON_AddNumberToObject(o, "denied_ingress", a->denied_ingress);
    cJSON_AddNumberToObject(o, "denied_egress", a->denied_egress);
    cJSON_AddNumberToObject(o, "n_ingress", a->n_ingress);
    cJSON_AddNumberToObject(o, "n_items", a->n_items);
    {
        int i;
        cJSON *array = cJSON_AddArrayToObject(o, "items");
        for (i = 0; i < a->n_items; i++) {
            cJSON_AddItemToArray(array, vl_api_contiv_tier_item_t_tojson(&a->items[i]));
        }
    }
    return o;
}
static inline cJSON *vl_api_contiv_denied_get_t_tojson (vl_api_contiv_denied_get_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_denied_get");
    cJSON_AddStringToObject(o, "_crc", "22e06b2b");
    cJSON_AddNumberToObject(o, "after", a->after);
    return o;
}
static inline cJSON *vl_api_contiv_denied_get_reply_t_tojson (vl_api_contiv_denied_get_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_denied_get_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_denied_details_t_tojson (vl_api_contiv_denied_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_denied_details");
    cJSON_AddStringToObject(o, "_crc", "84c792f6");
    cJSON_AddNumberToObject(o, "sequence", a->sequence);
    cJSON_AddNumberToObject(o, "age", a->age);
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    cJSON_AddItemToObject(o, "side", vl_api_contiv_side_t_tojson(a->side));
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddNumberToObject(o, "icmp_type", a->icmp_type);
    cJSON_AddNumberToObject(o, "icmp_code", a->icmp_code);
    cJSON_AddItemToObject(o, "source", vl_api_address_t_tojson(&a->source));
    cJSON_AddItemToObject(o, "destination", vl_api_address_t_tojson(&a->destination));
    cJSON_AddNumberToObject(o, "source_port", a->source_port);
    cJSON_AddNumberToObject(o, "destination_port", a->destination_port);
    cJSON_AddNumberToObject(o, "policy_id", a->policy_id);
    cJSON_AddNumberToObject(o, "rule", a->rule);
    return o;
}
static inline cJSON *vl_api_contiv_connection_get_t_tojson (vl_api_contiv_connection_get_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_connection_get");
    cJSON_AddStringToObject(o, "_crc", "1bb618f5");
    cJSON_AddBoolToObject(o, "is_ip6", a->is_ip6);
    cJSON_AddNumberToObject(o, "cursor", a->cursor);
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    return o;
}
static inline cJSON *vl_api_contiv_connection_get_reply_t_tojson (vl_api_contiv_connection_get_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_connection_get_reply");
    cJSON_AddStringToObject(o, "_crc", "7d69eb42");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    cJSON_AddNumberToObject(o, "next", a->next);
    return o;
}
static inline cJSON *vl_api_contiv_connection_details_t_tojson (vl_api_contiv_connection_details_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_connection_details");
    cJSON_AddStringToObject(o, "_crc", "c0267deb");
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddItemToObject(o, "client", vl_api_address_t_tojson(&a->client));
    cJSON_AddNumberToObject(o, "client_port", a->client_port);
    cJSON_AddItemToObject(o, "frontend", vl_api_address_t_tojson(&a->frontend));
    cJSON_AddNumberToObject(o, "frontend_port", a->frontend_port);
    cJSON_AddItemToObject(o, "source", vl_api_address_t_tojson(&a->source));
    cJSON_AddNumberToObject(o, "source_port", a->source_port);
    cJSON_AddItemToObject(o, "backend", vl_api_address_t_tojson(&a->backend));
    cJSON_AddNumberToObject(o, "backend_port", a->backend_port);
    cJSON_AddNumberToObject(o, "sw_if_index", a->sw_if_index);
    cJSON_AddNumberToObject(o, "state", a->state);
    cJSON_AddNumberToObject(o, "idle", a->idle);
    cJSON_AddNumberToObject(o, "expires", a->expires);
    cJSON_AddBoolToObject(o, "denied", a->denied);
    return o;
}
static inline cJSON *vl_api_contiv_connection_del_t_tojson (vl_api_contiv_connection_del_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_connection_del");
    cJSON_AddStringToObject(o, "_crc", "e7e15dcb");
    cJSON_AddNumberToObject(o, "protocol", a->protocol);
    cJSON_AddItemToObject(o, "client", vl_api_address_t_tojson(&a->client));
    cJSON_AddNumberToObject(o, "client_port", a->client_port);
    cJSON_AddItemToObject(o, "frontend", vl_api_address_t_tojson(&a->frontend));
    cJSON_AddNumberToObject(o, "frontend_port", a->frontend_port);
    return o;
}
static inline cJSON *vl_api_contiv_connection_del_reply_t_tojson (vl_api_contiv_connection_del_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_connection_del_reply");
    cJSON_AddStringToObject(o, "_crc", "e8d4e804");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    return o;
}
static inline cJSON *vl_api_contiv_stats_get_t_tojson (vl_api_contiv_stats_get_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_stats_get");
    cJSON_AddStringToObject(o, "_crc", "51077d14");
    return o;
}
static inline cJSON *vl_api_contiv_stats_get_reply_t_tojson (vl_api_contiv_stats_get_reply_t *a) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "_msgname", "contiv_stats_get_reply");
    cJSON_AddStringToObject(o, "_crc", "23554f02");
    cJSON_AddNumberToObject(o, "retval", a->retval);
    cJSON_AddNumberToObject(o, "connections4", a->connections4);
    cJSON_AddNumberToObject(o, "connections6", a->connections6);
    cJSON_AddNumberToObject(o, "connections_max", a->connections_max);
    cJSON_AddNumberToObject(o, "created", a->created);
    cJSON_AddNumberToObject(o, "refused_full", a->refused_full);
    cJSON_AddNumberToObject(o, "refused_limit", a->refused_limit);
    cJSON_AddNumberToObject(o, "refused_port", a->refused_port);
    cJSON_AddNumberToObject(o, "spoofed", a->spoofed);
    cJSON_AddNumberToObject(o, "tunnel", a->tunnel);
    cJSON_AddNumberToObject(o, "denied", a->denied);
    return o;
}
#endif
