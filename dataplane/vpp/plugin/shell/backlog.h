/* The backlog of a TAP: core/backlog.h, with VPP's packets. backlog.c */
#ifndef CONTIV_BACKLOG_SHELL_H
#define CONTIV_BACKLOG_SHELL_H

#include "offload.h"
#include "../core/backlog.h"

/* The backlogs of the queues of TAPs that one thread receives. */
typedef struct
{
  cv_backlog_t *backlogs; /* vector by sw_if_index; changed only under the barrier */
  cv_backlog_t **asked;	  /* vector: those with a question in this frame */
  CLIB_CACHE_LINE_ALIGN_MARK (end);
} contiv_backlogs_t;

/* contiv_backlogs_begin prepares all threads for a new TAP. Main thread. */
void contiv_backlogs_begin (vlib_main_t *vm, u32 sw_if_index);

/* contiv_backlogs_end deletes what is known about an interface that is deleted. Main thread. */
void contiv_backlogs_end (vlib_main_t *vm, u32 sw_if_index);

/* contiv_backlogs_frame_end ends a frame with calls of contiv_backlog_large, and returns the number of questions in it. */
u32 contiv_backlogs_frame_end (vlib_main_t *vm);

/* contiv_backlog returns the backlog of a TAP, for this thread; NULL: the plugin does not control it. */
cv_backlog_t *contiv_backlog (vlib_main_t *vm, u32 sw_if_index);

/* contiv_backlog_answered reports whether a packet is an answer to a question of any thread. The caller must drop it. */
bool contiv_backlog_answered (vlib_main_t *vm, cv_backlog_t *backlog, vlib_buffer_t *b, u64 now);

/* contiv_backlog_large processes a packet of several segments: it asks the sender's kernel when this is due, and signals congestion by the packet
 * when this is due. It counts the signal in counts, which is indexed by contiv_offload_t, and returns it; CONTIV_LARGE: none. */
contiv_offload_t contiv_backlog_large (vlib_main_t *vm, cv_backlog_t *backlog, vlib_buffer_t *b, const cv_headers_t *h, u64 now, u32 *counts);

/* contiv_microseconds returns the time in the unit of the core. */
static_always_inline u64
contiv_microseconds (vlib_main_t *vm)
{
  return (u64) (vlib_time_now (vm) * 1e6);
}

#endif
