/* What the files of the shell share. The shell has VPP's graph nodes, API, CLI and counters; core/cv.h decides. */
#ifndef CONTIV_SHELL_H
#define CONTIV_SHELL_H

#include <vlib/vlib.h>
#include <vnet/vnet.h>
#include <vnet/api_errno.h>
#include "../core/cv.h"
#include "frag.h"

typedef struct contiv_uplink contiv_uplink_t; /* uplink.h */

/* An interface under the plugin's care. */
typedef struct
{
  cv_role_t role; /* CV_ROLE_NONE: it is not */
  u8 features;	  /* bits of those that are enabled: endpoint.c */
  frags_t *frags; /* NULL: no memory, fragments are dropped */
  contiv_uplink_t *uplink; /* our sockets at an AF_PACKET uplink; NULL: none */
  u32 table;	  /* cv_endpoint_t.table, 0: none; held in both families */
} contiv_interface_t;

typedef struct
{
  f64 second;	 /* when tokens were counted last */
  f64 tokens;
  CLIB_CACHE_LINE_ALIGN_MARK (end);
} contiv_worker_t;

/* When neighbours are asked for: resolve.c. */
typedef struct
{
  f64 next;   /* when the next round begins */
  f64 pause;  /* after it */
  u32 cursor; /* in the table of networks; 0: no round is under way */
} contiv_resolve_t;

#define CONTIV_AWAITED 64

/* What VPP stores of its neighbours: neighbours.c. Workers read it while the main thread writes; an address that is half written costs one message its place. */
typedef struct
{
  u32 n_awaited[2]; /* by family */
  cv_addr_t awaited[2][CONTIV_AWAITED]; /* next hops of routes that have not answered yet */
  u32 refused;	      /* there were messages above the limit since the last look */
  u32 elements;	      /* of VPP's list, after the last look */
} contiv_neighbours_t;

typedef struct
{
  cv_main_t *core;
  contiv_interface_t *interfaces; /* vector by sw_if_index; changes under the barrier */
  contiv_uplink_t **uplinks;	  /* vector by instance of af_packet; changes under the barrier */
  contiv_worker_t *workers;	  /* vector by thread */
  u32 connections;		  /* of startup.conf; 0: default */
  u32 set_members;		  /* of startup.conf; 0: default */
  u64 seed;
  u32 n_endpoints;
  contiv_resolve_t resolve;
  contiv_neighbours_t neighbours;
  u16 msg_id_base;
} contiv_main_t;

extern contiv_main_t contiv_main;
extern vlib_node_registration_t contiv_sweep_node, contiv_ip4_input_node;

/* What the shell counts beside the core's reasons. */
#define CONTIV_FOREACH_ERROR(_)                                                                                                  \
  _ (ANSWERED, "answers to rejected packets")                                                                                    \
  _ (NO_BUFFER, "no buffer for an answer")                                                                                       \
  _ (FRAGMENT_WAITS, "fragments that waited for their first one")                                                                \
  _ (FRAGMENT_LOST, "fragments without a first one, or too many")                                                                \
  _ (LOCAL_FRAGMENT, "IPv6 fragment to an address of VPP")                                                                       \
  _ (CLAIM, "neighbour that VPP must not have")                                                          \
  _ (GROUP_FRAME, "unicast packet in a group frame")                                                                            \
  _ (NEIGHBOUR, "neighbour above the limit of a second")

typedef enum
{
  CONTIV_ERROR_FIRST = CV_N_REASONS - 1,
#define _(name, text) CONTIV_ERROR_##name,
  CONTIV_FOREACH_ERROR (_)
#undef _
    CONTIV_N_ERRORS
} contiv_error_t;

extern vlib_error_desc_t contiv_errors[CONTIV_N_ERRORS];

/* Tenths of seconds, as the core counts. */
static_always_inline u32
contiv_now (vlib_main_t *vm)
{
  return (u32) (vlib_time_now (vm) * 10);
}

/* What the API returns for a result of the core. */
static_always_inline int
contiv_retval (cv_result_t r)
{
  switch (r)
    {
    case CV_OK:
      return 0;
    case CV_NOT_FOUND:
      return VNET_API_ERROR_NO_SUCH_ENTRY;
    case CV_NO_MEMORY:
      return VNET_API_ERROR_LIMIT_EXCEEDED;
    default:
      return VNET_API_ERROR_INVALID_VALUE;
    }
}

/* endpoint.c: 0 or VNET_API_ERROR_* */
int contiv_endpoint_set (vlib_main_t *vm, u32 sw_if_index, cv_endpoint_t *e);
int contiv_endpoint_del (vlib_main_t *vm, u32 sw_if_index);
void contiv_fragments_expire (vlib_main_t *vm, u32 now);

/* contiv.c: wakes the sweep after a change. */
void contiv_wake (vlib_main_t *vm);

/* resolve.c: asks for neighbours, a part of them with each call, ten times a second. */
void contiv_resolve (vlib_main_t *vm);
void contiv_resolve_soon (void);

/* neighbours.c: counts a message by which VPP is about to store a neighbour; false: it has to be dropped. */
bool contiv_may_store_neighbour (vlib_main_t *vm, u32 sw_if_index, const cv_addr_t *a, bool ip6);
/* contiv_arp_stores reports whether VPP stores the sender of an ARP message with this target. */
bool contiv_arp_stores (u32 sw_if_index, u32 sender, u32 target);
/* neighbours_limit.c: removes what is too much, once a second. Main thread. */
void contiv_limit_neighbours (vlib_main_t *vm);

/* receive.c: has queues looked at for which no interrupt may come. Main thread. */
void contiv_receive_waiting (void);

/* reject.c: an answer to a rejected packet, as a new buffer, ~0: none. */
u32 contiv_reject (vlib_main_t *vm, const cv_packet_t *p, contiv_error_t *error);

/* api.c */
clib_error_t *contiv_api_init (void);

/* trace.c */
typedef struct
{
  cv_tuple_t before, after;
  u32 sw_if_index, connection;
  u8 verdict, reason;
  bool fragment;
} contiv_trace_t;
format_function_t format_contiv_trace, format_contiv_addr, format_contiv_end;

#endif
