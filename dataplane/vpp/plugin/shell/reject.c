/* Answers to rejected packets: each in a new buffer. The rate limit is one for each interface, so that a pod that sends many packets that
 * are rejected does not use up the answers to other pods. */
#include "contiv.h"
#include <vnet/ip/ip.h>

#define ANSWERS_PER_SECOND 1000 /* per worker, for the packets of one interface */
#define ANSWER_SIZE	   1280

void
contiv_reject_init (u32 sw_if_index)
{
  contiv_worker_t *w;
  vec_foreach (w, contiv_main.workers)
    {
      vec_validate (w->answers, sw_if_index);
      w->answers[sw_if_index] = (contiv_budget_t){ 0 };
    }
}

/* allowed takes a token from the bucket of an interface, which holds the tokens of at most one second. */
static bool
allowed (vlib_main_t *vm, u32 sw_if_index)
{
  contiv_worker_t *w = vec_elt_at_index (contiv_main.workers, vm->thread_index);
  contiv_budget_t *b = vec_elt_at_index (w->answers, sw_if_index);
  f64 now = vlib_time_now (vm);
  b->tokens = clib_min (b->tokens + (now - b->second) * ANSWERS_PER_SECOND, ANSWERS_PER_SECOND);
  b->second = now;
  if (b->tokens < 1)
    return false;
  b->tokens--;
  return true;
}

u32
contiv_reject (vlib_main_t *vm, const cv_packet_t *p, contiv_error_t *error)
{
  u32 bi;
  if (!allowed (vm, p->sw_if_index))
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
