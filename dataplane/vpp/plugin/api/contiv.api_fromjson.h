/* Imported API files */
#include <vnet/interface_types.api_fromjson.h>
#include <vnet/ip/ip_types.api_fromjson.h>
#ifndef included_contiv_api_fromjson_h
#define included_contiv_api_fromjson_h
#include <vppinfra/cJSON.h>

#include <vppinfra/jsonformat.h>

#pragma GCC diagnostic ignored "-Wunused-label"
static inline int vl_api_contiv_role_t_fromjson(void **mp, int *len, cJSON *o, vl_api_contiv_role_t *a) {
    char *p = cJSON_GetStringValue(o);
    if (strcmp(p, "CONTIV_ROLE_API_POD") == 0) {*a = 1; return 0;}
    if (strcmp(p, "CONTIV_ROLE_API_HOST") == 0) {*a = 2; return 0;}
    if (strcmp(p, "CONTIV_ROLE_API_UPLINK") == 0) {*a = 3; return 0;}
    if (strcmp(p, "CONTIV_ROLE_API_OVERLAY") == 0) {*a = 4; return 0;}
    *a = 0;
    return -1;
}
static inline int vl_api_contiv_class_t_fromjson(void **mp, int *len, cJSON *o, vl_api_contiv_class_t *a) {
    char *p = cJSON_GetStringValue(o);
    if (strcmp(p, "CONTIV_CLASS_API_POD") == 0) {*a = 1; return 0;}
    if (strcmp(p, "CONTIV_CLASS_API_NODE") == 0) {*a = 2; return 0;}
    *a = 0;
    return -1;
}
static inline int vl_api_contiv_action_t_fromjson(void **mp, int *len, cJSON *o, vl_api_contiv_action_t *a) {
    char *p = cJSON_GetStringValue(o);
    if (strcmp(p, "CONTIV_ACTION_API_BALANCE") == 0) {*a = 1; return 0;}
    if (strcmp(p, "CONTIV_ACTION_API_REJECT") == 0) {*a = 2; return 0;}
    if (strcmp(p, "CONTIV_ACTION_API_DROP") == 0) {*a = 3; return 0;}
    *a = 0;
    return -1;
}
static inline int vl_api_contiv_backend_flags_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_backend_flags_t *a) {
   int i;
   *a = 0;
   for (i = 0; i < cJSON_GetArraySize(o); i++) {
       cJSON *e = cJSON_GetArrayItem(o, i);
       char *p = cJSON_GetStringValue(e);
       if (!p) return -1;
       if (strcmp(p, "CONTIV_BACKEND_API_MASQ") == 0) *a |= 1;
       if (strcmp(p, "CONTIV_BACKEND_API_KEEP") == 0) *a |= 2;
    }
   return 0;
}
static inline int vl_api_contiv_service_flags_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_service_flags_t *a) {
   int i;
   *a = 0;
   for (i = 0; i < cJSON_GetArraySize(o); i++) {
       cJSON *e = cJSON_GetArrayItem(o, i);
       char *p = cJSON_GetStringValue(e);
       if (!p) return -1;
       if (strcmp(p, "CONTIV_SERVICE_API_MAGLEV") == 0) *a |= 1;
    }
   return 0;
}
static inline int vl_api_contiv_target_flags_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_target_flags_t *a) {
   int i;
   *a = 0;
   for (i = 0; i < cJSON_GetArraySize(o); i++) {
       cJSON *e = cJSON_GetArrayItem(o, i);
       char *p = cJSON_GetStringValue(e);
       if (!p) return -1;
       if (strcmp(p, "CONTIV_TARGET_API_MASQ") == 0) *a |= 1;
    }
   return 0;
}
static inline int vl_api_contiv_target_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_target_t *a) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));

    item = cJSON_GetObjectItem(o, "action");
    if (!item) goto error;
    if (vl_api_contiv_action_t_fromjson(mp, len, item, &a->action) < 0) goto error;

    item = cJSON_GetObjectItem(o, "flags");
    if (!item) goto error;
    if (vl_api_contiv_target_flags_t_fromjson(mp, len, item, &a->flags) < 0) goto error;

    item = cJSON_GetObjectItem(o, "service_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->service_id);

    return 0;

  error:
    return -1;
}
static inline int vl_api_contiv_rule_action_t_fromjson(void **mp, int *len, cJSON *o, vl_api_contiv_rule_action_t *a) {
    char *p = cJSON_GetStringValue(o);
    if (strcmp(p, "CONTIV_RULE_API_ALLOW") == 0) {*a = 1; return 0;}
    if (strcmp(p, "CONTIV_RULE_API_DENY") == 0) {*a = 2; return 0;}
    if (strcmp(p, "CONTIV_RULE_API_PASS") == 0) {*a = 3; return 0;}
    *a = 0;
    return -1;
}
static inline int vl_api_contiv_set_kind_t_fromjson(void **mp, int *len, cJSON *o, vl_api_contiv_set_kind_t *a) {
    char *p = cJSON_GetStringValue(o);
    if (strcmp(p, "CONTIV_SET_API_NETWORKS") == 0) {*a = 1; return 0;}
    if (strcmp(p, "CONTIV_SET_API_PORTS") == 0) {*a = 2; return 0;}
    *a = 0;
    return -1;
}
static inline int vl_api_contiv_side_t_fromjson(void **mp, int *len, cJSON *o, vl_api_contiv_side_t *a) {
    char *p = cJSON_GetStringValue(o);
    if (strcmp(p, "CONTIV_SIDE_API_INGRESS") == 0) {*a = 0; return 0;}
    if (strcmp(p, "CONTIV_SIDE_API_EGRESS") == 0) {*a = 1; return 0;}
    *a = 0;
    return -1;
}
static inline int vl_api_contiv_rule_flags_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_rule_flags_t *a) {
   int i;
   *a = 0;
   for (i = 0; i < cJSON_GetArraySize(o); i++) {
       cJSON *e = cJSON_GetArrayItem(o, i);
       char *p = cJSON_GetStringValue(e);
       if (!p) return -1;
       if (strcmp(p, "CONTIV_RULE_API_ICMP_TYPE") == 0) *a |= 1;
       if (strcmp(p, "CONTIV_RULE_API_ICMP_CODE") == 0) *a |= 2;
    }
   return 0;
}
static inline int vl_api_contiv_port_range_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_port_range_t *a) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));

    item = cJSON_GetObjectItem(o, "first");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->first);

    item = cJSON_GetObjectItem(o, "last");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->last);

    return 0;

  error:
    return -1;
}
static inline int vl_api_contiv_rule_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_rule_t *a) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));

    item = cJSON_GetObjectItem(o, "action");
    if (!item) goto error;
    if (vl_api_contiv_rule_action_t_fromjson(mp, len, item, &a->action) < 0) goto error;

    item = cJSON_GetObjectItem(o, "family");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->family);

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "flags");
    if (!item) goto error;
    if (vl_api_contiv_rule_flags_t_fromjson(mp, len, item, &a->flags) < 0) goto error;

    item = cJSON_GetObjectItem(o, "icmp_type");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->icmp_type);

    item = cJSON_GetObjectItem(o, "icmp_code");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->icmp_code);

    item = cJSON_GetObjectItem(o, "source");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->source);

    item = cJSON_GetObjectItem(o, "destination");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->destination);

    item = cJSON_GetObjectItem(o, "port_set");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->port_set);

    item = cJSON_GetObjectItem(o, "n_ports");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->n_ports);

    item = cJSON_GetObjectItem(o, "ports");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "ports");
        int size = cJSON_GetArraySize(array);
        if (size != 8) goto error;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            if (vl_api_contiv_port_range_t_fromjson(mp, len, e, &a->ports[i]) < 0) goto error;
        }
    }

    return 0;

  error:
    return -1;
}
static inline int vl_api_contiv_counted_rule_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_counted_rule_t *a) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));

    item = cJSON_GetObjectItem(o, "rule");
    if (!item) goto error;
    if (vl_api_contiv_rule_t_fromjson(mp, len, item, &a->rule) < 0) goto error;

    item = cJSON_GetObjectItem(o, "matched");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->matched);

    return 0;

  error:
    return -1;
}
static inline int vl_api_contiv_tier_item_t_fromjson (void **mp, int *len, cJSON *o, vl_api_contiv_tier_item_t *a) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));

    item = cJSON_GetObjectItem(o, "policy_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->policy_id);

    item = cJSON_GetObjectItem(o, "action");
    if (!item) goto error;
    if (vl_api_contiv_rule_action_t_fromjson(mp, len, item, &a->action) < 0) goto error;

    return 0;

  error:
    return -1;
}
static inline vl_api_contiv_plugin_get_version_t *vl_api_contiv_plugin_get_version_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_plugin_get_version_t);
    vl_api_contiv_plugin_get_version_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_plugin_get_version_reply_t *vl_api_contiv_plugin_get_version_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_plugin_get_version_reply_t);
    vl_api_contiv_plugin_get_version_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    item = cJSON_GetObjectItem(o, "major");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->major);

    item = cJSON_GetObjectItem(o, "minor");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->minor);

    item = cJSON_GetObjectItem(o, "patch");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->patch);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_config_set_t *vl_api_contiv_config_set_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_config_set_t);
    vl_api_contiv_config_set_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "endpoint_connections");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->endpoint_connections);

    item = cJSON_GetObjectItem(o, "tunnel_ports");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "tunnel_ports");
        int size = cJSON_GetArraySize(array);
        if (size != 4) goto error;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            vl_api_u16_fromjson(e, &a->tunnel_ports[i]);
        }
    }

    item = cJSON_GetObjectItem(o, "tcp_established");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->tcp_established);

    item = cJSON_GetObjectItem(o, "tcp_transitory");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->tcp_transitory);

    item = cJSON_GetObjectItem(o, "udp");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->udp);

    item = cJSON_GetObjectItem(o, "udp_stream");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->udp_stream);

    item = cJSON_GetObjectItem(o, "icmp");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->icmp);

    item = cJSON_GetObjectItem(o, "sctp");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->sctp);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_config_set_reply_t *vl_api_contiv_config_set_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_config_set_reply_t);
    vl_api_contiv_config_set_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_config_get_t *vl_api_contiv_config_get_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_config_get_t);
    vl_api_contiv_config_get_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_config_get_reply_t *vl_api_contiv_config_get_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_config_get_reply_t);
    vl_api_contiv_config_get_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    item = cJSON_GetObjectItem(o, "connections_max");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->connections_max);

    item = cJSON_GetObjectItem(o, "endpoint_connections");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->endpoint_connections);

    item = cJSON_GetObjectItem(o, "tunnel_ports");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "tunnel_ports");
        int size = cJSON_GetArraySize(array);
        if (size != 4) goto error;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            vl_api_u16_fromjson(e, &a->tunnel_ports[i]);
        }
    }

    item = cJSON_GetObjectItem(o, "tcp_established");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->tcp_established);

    item = cJSON_GetObjectItem(o, "tcp_transitory");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->tcp_transitory);

    item = cJSON_GetObjectItem(o, "udp");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->udp);

    item = cJSON_GetObjectItem(o, "udp_stream");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->udp_stream);

    item = cJSON_GetObjectItem(o, "icmp");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->icmp);

    item = cJSON_GetObjectItem(o, "sctp");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->sctp);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_set_t *vl_api_contiv_endpoint_set_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_set_t);
    vl_api_contiv_endpoint_set_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    item = cJSON_GetObjectItem(o, "role");
    if (!item) goto error;
    if (vl_api_contiv_role_t_fromjson((void **)&a, &l, item, &a->role) < 0) goto error;

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "egress");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->egress);

    item = cJSON_GetObjectItem(o, "max_connections");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->max_connections);

    item = cJSON_GetObjectItem(o, "table");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->table);

    item = cJSON_GetObjectItem(o, "addresses");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "addresses");
        int size = cJSON_GetArraySize(array);
        a->n_addresses = size;
        a = cJSON_realloc(a, l + sizeof(vl_api_address_t) * size);
        vl_api_address_t *d = (void *)a + l;
        l += sizeof(vl_api_address_t) * size;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            if (vl_api_address_t_fromjson((void **)&a, len, e, &d[i]) < 0) goto error; 
        }
    }

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_set_reply_t *vl_api_contiv_endpoint_set_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_set_reply_t);
    vl_api_contiv_endpoint_set_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_del_t *vl_api_contiv_endpoint_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_del_t);
    vl_api_contiv_endpoint_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_del_reply_t *vl_api_contiv_endpoint_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_del_reply_t);
    vl_api_contiv_endpoint_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_dump_t *vl_api_contiv_endpoint_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_dump_t);
    vl_api_contiv_endpoint_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_endpoint_details_t *vl_api_contiv_endpoint_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_details_t);
    vl_api_contiv_endpoint_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    item = cJSON_GetObjectItem(o, "role");
    if (!item) goto error;
    if (vl_api_contiv_role_t_fromjson((void **)&a, &l, item, &a->role) < 0) goto error;

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "egress");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->egress);

    item = cJSON_GetObjectItem(o, "max_connections");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->max_connections);

    item = cJSON_GetObjectItem(o, "connections4");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->connections4);

    item = cJSON_GetObjectItem(o, "connections6");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->connections6);

    item = cJSON_GetObjectItem(o, "spoofed");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->spoofed);

    item = cJSON_GetObjectItem(o, "refused");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->refused);

    item = cJSON_GetObjectItem(o, "table");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->table);

    item = cJSON_GetObjectItem(o, "addresses");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "addresses");
        int size = cJSON_GetArraySize(array);
        a->n_addresses = size;
        a = cJSON_realloc(a, l + sizeof(vl_api_address_t) * size);
        vl_api_address_t *d = (void *)a + l;
        l += sizeof(vl_api_address_t) * size;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            if (vl_api_address_t_fromjson((void **)&a, len, e, &d[i]) < 0) goto error; 
        }
    }

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_network_add_del_t *vl_api_contiv_network_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_network_add_del_t);
    vl_api_contiv_network_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "prefix");
    if (!item) goto error;
    if (vl_api_prefix_t_fromjson((void **)&a, &l, item, &a->prefix) < 0) goto error;

    item = cJSON_GetObjectItem(o, "address_class");
    if (!item) goto error;
    if (vl_api_contiv_class_t_fromjson((void **)&a, &l, item, &a->address_class) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_network_add_del_reply_t *vl_api_contiv_network_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_network_add_del_reply_t);
    vl_api_contiv_network_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_network_dump_t *vl_api_contiv_network_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_network_dump_t);
    vl_api_contiv_network_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_network_details_t *vl_api_contiv_network_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_network_details_t);
    vl_api_contiv_network_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "prefix");
    if (!item) goto error;
    if (vl_api_prefix_t_fromjson((void **)&a, &l, item, &a->prefix) < 0) goto error;

    item = cJSON_GetObjectItem(o, "address_class");
    if (!item) goto error;
    if (vl_api_contiv_class_t_fromjson((void **)&a, &l, item, &a->address_class) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_snat_add_del_t *vl_api_contiv_snat_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_snat_add_del_t);
    vl_api_contiv_snat_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "ip4");
    if (!item) goto error;
    if (vl_api_ip4_address_t_fromjson((void **)&a, &l, item, &a->ip4) < 0) goto error;

    item = cJSON_GetObjectItem(o, "ip6");
    if (!item) goto error;
    if (vl_api_ip6_address_t_fromjson((void **)&a, &l, item, &a->ip6) < 0) goto error;

    item = cJSON_GetObjectItem(o, "port_low");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port_low);

    item = cJSON_GetObjectItem(o, "port_high");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port_high);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_snat_add_del_reply_t *vl_api_contiv_snat_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_snat_add_del_reply_t);
    vl_api_contiv_snat_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_snat_dump_t *vl_api_contiv_snat_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_snat_dump_t);
    vl_api_contiv_snat_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_snat_details_t *vl_api_contiv_snat_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_snat_details_t);
    vl_api_contiv_snat_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "ip4");
    if (!item) goto error;
    if (vl_api_ip4_address_t_fromjson((void **)&a, &l, item, &a->ip4) < 0) goto error;

    item = cJSON_GetObjectItem(o, "ip6");
    if (!item) goto error;
    if (vl_api_ip6_address_t_fromjson((void **)&a, &l, item, &a->ip6) < 0) goto error;

    item = cJSON_GetObjectItem(o, "port_low");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port_low);

    item = cJSON_GetObjectItem(o, "port_high");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port_high);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_service_add_del_t *vl_api_contiv_service_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_service_add_del_t);
    vl_api_contiv_service_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "flags");
    if (!item) goto error;
    if (vl_api_contiv_service_flags_t_fromjson((void **)&a, &l, item, &a->flags) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_service_add_del_reply_t *vl_api_contiv_service_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_service_add_del_reply_t);
    vl_api_contiv_service_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_service_dump_t *vl_api_contiv_service_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_service_dump_t);
    vl_api_contiv_service_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_service_details_t *vl_api_contiv_service_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_service_details_t);
    vl_api_contiv_service_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "flags");
    if (!item) goto error;
    if (vl_api_contiv_service_flags_t_fromjson((void **)&a, &l, item, &a->flags) < 0) goto error;

    item = cJSON_GetObjectItem(o, "n_backends");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->n_backends);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_backend_add_del_t *vl_api_contiv_backend_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_backend_add_del_t);
    vl_api_contiv_backend_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "service_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->service_id);

    item = cJSON_GetObjectItem(o, "address");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->address) < 0) goto error;

    item = cJSON_GetObjectItem(o, "port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port);

    item = cJSON_GetObjectItem(o, "flags");
    if (!item) goto error;
    if (vl_api_contiv_backend_flags_t_fromjson((void **)&a, &l, item, &a->flags) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_backend_add_del_reply_t *vl_api_contiv_backend_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_backend_add_del_reply_t);
    vl_api_contiv_backend_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_backend_dump_t *vl_api_contiv_backend_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_backend_dump_t);
    vl_api_contiv_backend_dump_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "service_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->service_id);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_backend_details_t *vl_api_contiv_backend_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_backend_details_t);
    vl_api_contiv_backend_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "service_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->service_id);

    item = cJSON_GetObjectItem(o, "address");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->address) < 0) goto error;

    item = cJSON_GetObjectItem(o, "port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port);

    item = cJSON_GetObjectItem(o, "flags");
    if (!item) goto error;
    if (vl_api_contiv_backend_flags_t_fromjson((void **)&a, &l, item, &a->flags) < 0) goto error;

    item = cJSON_GetObjectItem(o, "draining");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->draining);

    item = cJSON_GetObjectItem(o, "connections");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->connections);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_frontend_add_del_t *vl_api_contiv_frontend_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_frontend_add_del_t);
    vl_api_contiv_frontend_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "address");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->address) < 0) goto error;

    item = cJSON_GetObjectItem(o, "port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port);

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "in_cluster");
    if (!item) goto error;
    if (vl_api_contiv_target_t_fromjson((void **)&a, &l, item, &a->in_cluster) < 0) goto error;

    item = cJSON_GetObjectItem(o, "outside");
    if (!item) goto error;
    if (vl_api_contiv_target_t_fromjson((void **)&a, &l, item, &a->outside) < 0) goto error;

    item = cJSON_GetObjectItem(o, "ranges");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->ranges);

    item = cJSON_GetObjectItem(o, "affinity_group");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->affinity_group);

    item = cJSON_GetObjectItem(o, "affinity_timeout");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->affinity_timeout);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_frontend_add_del_reply_t *vl_api_contiv_frontend_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_frontend_add_del_reply_t);
    vl_api_contiv_frontend_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_frontend_dump_t *vl_api_contiv_frontend_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_frontend_dump_t);
    vl_api_contiv_frontend_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_frontend_details_t *vl_api_contiv_frontend_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_frontend_details_t);
    vl_api_contiv_frontend_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "address");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->address) < 0) goto error;

    item = cJSON_GetObjectItem(o, "port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port);

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "in_cluster");
    if (!item) goto error;
    if (vl_api_contiv_target_t_fromjson((void **)&a, &l, item, &a->in_cluster) < 0) goto error;

    item = cJSON_GetObjectItem(o, "outside");
    if (!item) goto error;
    if (vl_api_contiv_target_t_fromjson((void **)&a, &l, item, &a->outside) < 0) goto error;

    item = cJSON_GetObjectItem(o, "ranges");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->ranges);

    item = cJSON_GetObjectItem(o, "affinity_group");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->affinity_group);

    item = cJSON_GetObjectItem(o, "affinity_timeout");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->affinity_timeout);

    item = cJSON_GetObjectItem(o, "new_connections");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->new_connections);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_range_add_del_t *vl_api_contiv_range_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_range_add_del_t);
    vl_api_contiv_range_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "prefix");
    if (!item) goto error;
    if (vl_api_prefix_t_fromjson((void **)&a, &l, item, &a->prefix) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_range_add_del_reply_t *vl_api_contiv_range_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_range_add_del_reply_t);
    vl_api_contiv_range_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_range_dump_t *vl_api_contiv_range_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_range_dump_t);
    vl_api_contiv_range_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_range_details_t *vl_api_contiv_range_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_range_details_t);
    vl_api_contiv_range_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "prefix");
    if (!item) goto error;
    if (vl_api_prefix_t_fromjson((void **)&a, &l, item, &a->prefix) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_set_add_del_t *vl_api_contiv_set_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_add_del_t);
    vl_api_contiv_set_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "kind");
    if (!item) goto error;
    if (vl_api_contiv_set_kind_t_fromjson((void **)&a, &l, item, &a->kind) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_set_add_del_reply_t *vl_api_contiv_set_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_add_del_reply_t);
    vl_api_contiv_set_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_set_dump_t *vl_api_contiv_set_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_dump_t);
    vl_api_contiv_set_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_set_details_t *vl_api_contiv_set_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_details_t);
    vl_api_contiv_set_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "kind");
    if (!item) goto error;
    if (vl_api_contiv_set_kind_t_fromjson((void **)&a, &l, item, &a->kind) < 0) goto error;

    item = cJSON_GetObjectItem(o, "n_members");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->n_members);

    item = cJSON_GetObjectItem(o, "overfull");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->overfull);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_set_member_add_del_t *vl_api_contiv_set_member_add_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_member_add_del_t);
    vl_api_contiv_set_member_add_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_add");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_add);

    item = cJSON_GetObjectItem(o, "set_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->set_id);

    item = cJSON_GetObjectItem(o, "prefix");
    if (!item) goto error;
    if (vl_api_prefix_t_fromjson((void **)&a, &l, item, &a->prefix) < 0) goto error;

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_set_member_add_del_reply_t *vl_api_contiv_set_member_add_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_member_add_del_reply_t);
    vl_api_contiv_set_member_add_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_set_member_dump_t *vl_api_contiv_set_member_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_member_dump_t);
    vl_api_contiv_set_member_dump_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "set_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->set_id);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_set_member_details_t *vl_api_contiv_set_member_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_set_member_details_t);
    vl_api_contiv_set_member_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "set_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->set_id);

    item = cJSON_GetObjectItem(o, "prefix");
    if (!item) goto error;
    if (vl_api_prefix_t_fromjson((void **)&a, &l, item, &a->prefix) < 0) goto error;

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->port);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_policy_set_t *vl_api_contiv_policy_set_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_policy_set_t);
    vl_api_contiv_policy_set_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "n_ingress");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->n_ingress);

    item = cJSON_GetObjectItem(o, "rules");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "rules");
        int size = cJSON_GetArraySize(array);
        a->n_rules = size;
        a = cJSON_realloc(a, l + sizeof(vl_api_contiv_rule_t) * size);
        vl_api_contiv_rule_t *d = (void *)a + l;
        l += sizeof(vl_api_contiv_rule_t) * size;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            if (vl_api_contiv_rule_t_fromjson((void **)&a, len, e, &d[i]) < 0) goto error; 
        }
    }

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_policy_set_reply_t *vl_api_contiv_policy_set_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_policy_set_reply_t);
    vl_api_contiv_policy_set_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_policy_del_t *vl_api_contiv_policy_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_policy_del_t);
    vl_api_contiv_policy_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_policy_del_reply_t *vl_api_contiv_policy_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_policy_del_reply_t);
    vl_api_contiv_policy_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_policy_dump_t *vl_api_contiv_policy_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_policy_dump_t);
    vl_api_contiv_policy_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_policy_details_t *vl_api_contiv_policy_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_policy_details_t);
    vl_api_contiv_policy_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->id);

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "n_ingress");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->n_ingress);

    item = cJSON_GetObjectItem(o, "rules");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "rules");
        int size = cJSON_GetArraySize(array);
        a->n_rules = size;
        a = cJSON_realloc(a, l + sizeof(vl_api_contiv_counted_rule_t) * size);
        vl_api_contiv_counted_rule_t *d = (void *)a + l;
        l += sizeof(vl_api_contiv_counted_rule_t) * size;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            if (vl_api_contiv_counted_rule_t_fromjson((void **)&a, len, e, &d[i]) < 0) goto error; 
        }
    }

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_policy_set_t *vl_api_contiv_endpoint_policy_set_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_policy_set_t);
    vl_api_contiv_endpoint_policy_set_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "ingress");
    if (!item) goto error;
    if (vl_api_contiv_rule_action_t_fromjson((void **)&a, &l, item, &a->ingress) < 0) goto error;

    item = cJSON_GetObjectItem(o, "egress");
    if (!item) goto error;
    if (vl_api_contiv_rule_action_t_fromjson((void **)&a, &l, item, &a->egress) < 0) goto error;

    item = cJSON_GetObjectItem(o, "n_ingress");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->n_ingress);

    item = cJSON_GetObjectItem(o, "items");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "items");
        int size = cJSON_GetArraySize(array);
        a->n_items = size;
        a = cJSON_realloc(a, l + sizeof(vl_api_contiv_tier_item_t) * size);
        vl_api_contiv_tier_item_t *d = (void *)a + l;
        l += sizeof(vl_api_contiv_tier_item_t) * size;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            if (vl_api_contiv_tier_item_t_fromjson((void **)&a, len, e, &d[i]) < 0) goto error; 
        }
    }

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_policy_set_reply_t *vl_api_contiv_endpoint_policy_set_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_policy_set_reply_t);
    vl_api_contiv_endpoint_policy_set_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_policy_del_t *vl_api_contiv_endpoint_policy_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_policy_del_t);
    vl_api_contiv_endpoint_policy_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_policy_del_reply_t *vl_api_contiv_endpoint_policy_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_policy_del_reply_t);
    vl_api_contiv_endpoint_policy_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_endpoint_policy_dump_t *vl_api_contiv_endpoint_policy_dump_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_policy_dump_t);
    vl_api_contiv_endpoint_policy_dump_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_endpoint_policy_details_t *vl_api_contiv_endpoint_policy_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_endpoint_policy_details_t);
    vl_api_contiv_endpoint_policy_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    item = cJSON_GetObjectItem(o, "name");
    if (!item) goto error;
    strncpy_s((char *)a->name, sizeof(a->name), cJSON_GetStringValue(item), sizeof(a->name) - 1);

    item = cJSON_GetObjectItem(o, "ingress");
    if (!item) goto error;
    if (vl_api_contiv_rule_action_t_fromjson((void **)&a, &l, item, &a->ingress) < 0) goto error;

    item = cJSON_GetObjectItem(o, "egress");
    if (!item) goto error;
    if (vl_api_contiv_rule_action_t_fromjson((void **)&a, &l, item, &a->egress) < 0) goto error;

    item = cJSON_GetObjectItem(o, "denied_ingress");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->denied_ingress);

    item = cJSON_GetObjectItem(o, "denied_egress");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->denied_egress);

    item = cJSON_GetObjectItem(o, "n_ingress");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->n_ingress);

    item = cJSON_GetObjectItem(o, "items");
    if (!item) goto error;
    {
        int i;
        cJSON *array = cJSON_GetObjectItem(o, "items");
        int size = cJSON_GetArraySize(array);
        a->n_items = size;
        a = cJSON_realloc(a, l + sizeof(vl_api_contiv_tier_item_t) * size);
        vl_api_contiv_tier_item_t *d = (void *)a + l;
        l += sizeof(vl_api_contiv_tier_item_t) * size;
        for (i = 0; i < size; i++) {
            cJSON *e = cJSON_GetArrayItem(array, i);
            if (vl_api_contiv_tier_item_t_fromjson((void **)&a, len, e, &d[i]) < 0) goto error; 
        }
    }

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_denied_get_t *vl_api_contiv_denied_get_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_denied_get_t);
    vl_api_contiv_denied_get_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "after");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->after);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_denied_get_reply_t *vl_api_contiv_denied_get_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_denied_get_reply_t);
    vl_api_contiv_denied_get_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_denied_details_t *vl_api_contiv_denied_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_denied_details_t);
    vl_api_contiv_denied_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "sequence");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->sequence);

    item = cJSON_GetObjectItem(o, "age");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->age);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    item = cJSON_GetObjectItem(o, "side");
    if (!item) goto error;
    if (vl_api_contiv_side_t_fromjson((void **)&a, &l, item, &a->side) < 0) goto error;

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "icmp_type");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->icmp_type);

    item = cJSON_GetObjectItem(o, "icmp_code");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->icmp_code);

    item = cJSON_GetObjectItem(o, "source");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->source) < 0) goto error;

    item = cJSON_GetObjectItem(o, "destination");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->destination) < 0) goto error;

    item = cJSON_GetObjectItem(o, "source_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->source_port);

    item = cJSON_GetObjectItem(o, "destination_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->destination_port);

    item = cJSON_GetObjectItem(o, "policy_id");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->policy_id);

    item = cJSON_GetObjectItem(o, "rule");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->rule);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_connection_get_t *vl_api_contiv_connection_get_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_connection_get_t);
    vl_api_contiv_connection_get_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "is_ip6");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->is_ip6);

    item = cJSON_GetObjectItem(o, "cursor");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->cursor);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_connection_get_reply_t *vl_api_contiv_connection_get_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_connection_get_reply_t);
    vl_api_contiv_connection_get_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    item = cJSON_GetObjectItem(o, "next");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->next);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_connection_details_t *vl_api_contiv_connection_details_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_connection_details_t);
    vl_api_contiv_connection_details_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "client");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->client) < 0) goto error;

    item = cJSON_GetObjectItem(o, "client_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->client_port);

    item = cJSON_GetObjectItem(o, "frontend");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->frontend) < 0) goto error;

    item = cJSON_GetObjectItem(o, "frontend_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->frontend_port);

    item = cJSON_GetObjectItem(o, "source");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->source) < 0) goto error;

    item = cJSON_GetObjectItem(o, "source_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->source_port);

    item = cJSON_GetObjectItem(o, "backend");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->backend) < 0) goto error;

    item = cJSON_GetObjectItem(o, "backend_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->backend_port);

    item = cJSON_GetObjectItem(o, "sw_if_index");
    if (!item) goto error;
    if (vl_api_interface_index_t_fromjson((void **)&a, &l, item, &a->sw_if_index) < 0) goto error;

    item = cJSON_GetObjectItem(o, "state");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->state);

    item = cJSON_GetObjectItem(o, "idle");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->idle);

    item = cJSON_GetObjectItem(o, "expires");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->expires);

    item = cJSON_GetObjectItem(o, "denied");
    if (!item) goto error;
    vl_api_bool_fromjson(item, &a->denied);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_connection_del_t *vl_api_contiv_connection_del_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_connection_del_t);
    vl_api_contiv_connection_del_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "protocol");
    if (!item) goto error;
    vl_api_u8_fromjson(item, &a->protocol);

    item = cJSON_GetObjectItem(o, "client");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->client) < 0) goto error;

    item = cJSON_GetObjectItem(o, "client_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->client_port);

    item = cJSON_GetObjectItem(o, "frontend");
    if (!item) goto error;
    if (vl_api_address_t_fromjson((void **)&a, &l, item, &a->frontend) < 0) goto error;

    item = cJSON_GetObjectItem(o, "frontend_port");
    if (!item) goto error;
    vl_api_u16_fromjson(item, &a->frontend_port);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_connection_del_reply_t *vl_api_contiv_connection_del_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_connection_del_reply_t);
    vl_api_contiv_connection_del_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
static inline vl_api_contiv_stats_get_t *vl_api_contiv_stats_get_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_stats_get_t);
    vl_api_contiv_stats_get_t *a = cJSON_malloc(l);

    *len = l;
    return a;
}
static inline vl_api_contiv_stats_get_reply_t *vl_api_contiv_stats_get_reply_t_fromjson (cJSON *o, int *len) {
    cJSON *item __attribute__ ((unused));
    u8 *s __attribute__ ((unused));
    int l = sizeof(vl_api_contiv_stats_get_reply_t);
    vl_api_contiv_stats_get_reply_t *a = cJSON_malloc(l);

    item = cJSON_GetObjectItem(o, "retval");
    if (!item) goto error;
    vl_api_i32_fromjson(item, &a->retval);

    item = cJSON_GetObjectItem(o, "connections4");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->connections4);

    item = cJSON_GetObjectItem(o, "connections6");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->connections6);

    item = cJSON_GetObjectItem(o, "connections_max");
    if (!item) goto error;
    vl_api_u32_fromjson(item, &a->connections_max);

    item = cJSON_GetObjectItem(o, "created");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->created);

    item = cJSON_GetObjectItem(o, "refused_full");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->refused_full);

    item = cJSON_GetObjectItem(o, "refused_limit");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->refused_limit);

    item = cJSON_GetObjectItem(o, "refused_port");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->refused_port);

    item = cJSON_GetObjectItem(o, "spoofed");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->spoofed);

    item = cJSON_GetObjectItem(o, "tunnel");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->tunnel);

    item = cJSON_GetObjectItem(o, "denied");
    if (!item) goto error;
    vl_api_u64_fromjson(item, &a->denied);

    *len = l;
    return a;

  error:
    cJSON_free(a);
    return 0;
}
#endif
