/* Answers to rejected packets: each in a new buffer, with a rate limit. */
#include "contiv.h"
#include <vnet/ip/ip.h>

#define ANSWERS_PER_SECOND 1000 /* per worker */
#define ANSWER_SIZE	   1280

/* allowed takes a token from the bucket, which holds the tokens of at most one second. */
static bool
allowed (vlib_main_t *vm)
{
  contiv_worker_t *w = vec_elt_at_index (contiv_main.workers, vm->thread_index);
  f64 now = vlib_time_now (vm);
  w->tokens = clib_min (w->tokens + (now - w->second) * ANSWERS_PER_SECOND, ANSWERS_PER_SECOND);
  w->second = now;
  if (w->tokens < 1)
    return false;
  w->tokens--;
  return true;
}

u32
contiv_reject (vlib_main_t *vm, const cv_packet_t *p, contiv_error_t *error)
{
  u32 bi;
  if (!allowed (vm))
    {
      *error = (contiv_error_t) CV_REJECTED_SILENTLY;
      return ~0;
    }
  if (vlib_buffer_get_default_data_size (vm) < ANSWER_SIZE || vlib_buffer_alloc (vm, &bi, 1) != 1)
    {
      *error = CONTIV_ERROR_NO_BUFFER;
      return ~0;
    }
  vlib_buffer_t *b = vlib_get_buffer (vm, bi);
  u32 len = cv_reject (p, vlib_buffer_get_current (b));
  *error = (contiv_error_t) CV_REJECTED;
  if (!len)
    {
      vlib_buffer_free_one (vm, bi);
      return ~0;
    }
  b->current_length = len;
  b->flags |= VNET_BUFFER_F_LOCALLY_ORIGINATED | VNET_BUFFER_F_L3_HDR_OFFSET_VALID;
  b->flags |= p->tuple.ip6 ? VNET_BUFFER_F_IS_IP6 : VNET_BUFFER_F_IS_IP4;
  vnet_buffer (b)->l3_hdr_offset = b->current_data;
  vnet_buffer (b)->sw_if_index[VLIB_RX] = p->sw_if_index;
  vnet_buffer (b)->sw_if_index[VLIB_TX] = p->table; /* ~0: table of the interface */
  return bi;
}
