/* Types and functions that the files of the shell share. The shell contains VPP's graph nodes, API, CLI and counters; the core
 * (core/cv.h) makes the decisions. */
#ifndef CONTIV_SHELL_H
#define CONTIV_SHELL_H

#include <vlib/vlib.h>
#include <vnet/vnet.h>
#include <vnet/api_errno.h>
#include "../core/cv.h"
#include "frag.h"

typedef struct contiv_uplink contiv_uplink_t; /* uplink.h */

/* An interface that the plugin manages. */
typedef struct
{
  cv_role_t role; /* CV_ROLE_NONE: not managed */
  u8 features;	  /* bits of the enabled features: endpoint.c */
  frags_t *frags; /* NULL: out of memory, fragments are dropped */
  contiv_uplink_t *uplink; /* the plugin's sockets at an AF_PACKET uplink; NULL: none */
  bool no_sockets;	   /* the kernel has rejected them; they are opened later */
  u32 table;	  /* cv_endpoint_t.table, 0: none; locked in both families */
} contiv_interface_t;

/* The budget for answers to rejected packets of one interface: reject.c. */
typedef struct
{
  f64 second; /* time of the last calculation of tokens */
  f64 tokens;
} contiv_budget_t;

typedef struct
{
  contiv_budget_t *answers; /* vector by sw_if_index, at least as long as that of interfaces; changed only under the barrier */
  CLIB_CACHE_LINE_ALIGN_MARK (end);
} contiv_worker_t;

/* Schedule for resolving neighbours: resolve.c. */
typedef struct
{
  f64 next;   /* start of the next round */
  f64 pause;  /* between this round and the next */
  u32 cursor; /* in the table of networks; 0: no round in progress */
} contiv_resolve_t;

#define CONTIV_AWAITED 64

/* State for limiting VPP's neighbour table: neighbours.c. Workers read it while the main thread writes. If a worker reads an address
 * that is only half written, at most one message is not recognised as expected. */
typedef struct
{
  u32 n_awaited[2]; /* by family */
  cv_addr_t awaited[2][CONTIV_AWAITED]; /* next hops of routes that have not answered yet */
  u32 refused;	      /* messages above the limit were dropped since the last check */
  u32 elements;	      /* length of VPP's list after the last check */
} contiv_neighbours_t;

typedef struct
{
  cv_main_t *core;
  contiv_interface_t *interfaces; /* vector by sw_if_index; changed only under the barrier */
  contiv_uplink_t **uplinks;	  /* vector by instance of af_packet; changed only under the barrier */
  contiv_worker_t *workers;	  /* vector by thread index */
  u32 connections;		  /* from startup.conf; 0: default */
  u32 set_members;		  /* from startup.conf; 0: default */
  bool no_backlogs;		  /* from startup.conf: the plugin does not control the backlogs of TAPs */
  u64 seed;
  u32 n_endpoints;
  contiv_resolve_t resolve;
  contiv_neighbours_t neighbours;
  u16 msg_id_base;
} contiv_main_t;

extern contiv_main_t contiv_main;
extern vlib_node_registration_t contiv_sweep_node, contiv_ip4_input_node;

/* Events that the shell counts in addition to the core's reasons. */
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

/* contiv_now returns the time in tenths of seconds, the unit of the core. */
static_always_inline u32
contiv_now (vlib_main_t *vm)
{
  return (u32) (vlib_time_now (vm) * 10);
}

/* contiv_retval returns the API's return value for a result of the core. */
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

/* contiv.c: contiv_wake wakes the sweep after a change. */
void contiv_wake (vlib_main_t *vm);

/* resolve.c: contiv_resolve solicits neighbours, a part of them in each call. It is called ten times per second. */
void contiv_resolve (vlib_main_t *vm);
void contiv_resolve_soon (void);

/* neighbours.c: contiv_may_store_neighbour counts a message by which VPP is about to store a neighbour. False: the message must be
 * dropped. */
bool contiv_may_store_neighbour (vlib_main_t *vm, u32 sw_if_index, const cv_addr_t *a, bool ip6);
/* contiv_arp_stores reports whether VPP stores the sender of an ARP message with this target. */
bool contiv_arp_stores (u32 sw_if_index, u32 sender, u32 target);
/* neighbours_limit.c: contiv_limit_neighbours removes neighbours above the limit. It is called once per second by the main thread. */
void contiv_limit_neighbours (vlib_main_t *vm);

/* receive.c: contiv_receive_waiting schedules queues for which no interrupt may come. Main thread. */
void contiv_receive_waiting (void);

/* rings.c: contiv_free_delivered frees the buffers of packets that the kernel has taken from TAPs. It is called ten times per second by the main thread;
 * each thread frees those of its rings. */
void contiv_free_delivered (void);

/* reject.c: contiv_reject returns the answer to a rejected packet in a new buffer; ~0: no answer. contiv_reject_init creates the budgets of an
 * interface. It is called under the barrier. */
void contiv_reject_init (u32 sw_if_index);
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
