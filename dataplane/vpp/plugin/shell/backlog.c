/* The backlog of a TAP: questions to the sender's kernel, and signals to the senders of TCP streams. */
#include "offload.h"
#include "backlog.h"

static contiv_backlogs_t *threads; /* vector by thread index */

void
contiv_backlogs_begin (vlib_main_t *vm, u32 sw_if_index)
{
  vlib_worker_thread_barrier_sync (vm);
  vec_validate_aligned (threads, vlib_get_n_threads () - 1, CLIB_CACHE_LINE_BYTES);
  contiv_backlogs_t *t;
  vec_foreach (t, threads)
    {
      vec_validate_aligned (t->backlogs, sw_if_index, CLIB_CACHE_LINE_BYTES);
      cv_backlog_init (&t->backlogs[sw_if_index], (u8) (t - threads));
    }
  vlib_worker_thread_barrier_release (vm);
}

cv_backlog_t *
contiv_backlog (vlib_main_t *vm, u32 sw_if_index)
{
  cv_backlog_t *backlogs = threads[vm->thread_index].backlogs;
  return contiv_main.no_backlogs || vm->thread_index > 255 || sw_if_index >= vec_len (backlogs) ? 0 : &backlogs[sw_if_index];
}

bool
contiv_backlog_answered (vlib_main_t *vm, cv_backlog_t *backlog, vlib_buffer_t *b, u64 now)
{
  u32 sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX];
  cv_answer_t result = CV_ANSWER_NOT;
  contiv_backlogs_t *t;
  vec_foreach (t, threads)
    {
      cv_answer_t r = cv_backlog_answered (backlog, &t->backlogs[sw_if_index], vlib_buffer_get_current (b), b->current_length, now);
      result = clib_max (result, r);
    }
  return result != CV_ANSWER_NOT;
}

/* ask sends a question by the TAP from which the packet has come. Without a free buffer, the question is lost. */
static void
ask (vlib_main_t *vm, u32 sw_if_index, const u8 *question, u32 len)
{
  vnet_main_t *vnm = vnet_get_main ();
  u32 bi;
  if (vlib_buffer_alloc (vm, &bi, 1) != 1)
    return;
  vlib_buffer_t *b = vlib_get_buffer (vm, bi);
  clib_memcpy_fast (vlib_buffer_get_current (b), question, len);
  b->current_length = len;
  b->flags |= VNET_BUFFER_F_LOCALLY_ORIGINATED;
  vnet_buffer (b)->sw_if_index[VLIB_RX] = sw_if_index;
  vnet_buffer (b)->sw_if_index[VLIB_TX] = sw_if_index;
  vlib_frame_t *f = vnet_get_frame_to_sw_interface (vnm, sw_if_index);
  u32 *to = vlib_frame_vector_args (f);
  to[f->n_vectors++] = bi;
  vnet_put_frame_to_sw_interface (vnm, sw_if_index, f);
}

/* cut_end removes bytes from the end of a packet. */
static void
cut_end (vlib_main_t *vm, vlib_buffer_t *b, u32 cut)
{
  u32 left = vlib_buffer_length_in_chain (vm, b) - cut;
  if (b->flags & VLIB_BUFFER_NEXT_PRESENT)
    b->total_length_not_including_first_buffer -= clib_min (cut, b->total_length_not_including_first_buffer);
  for (; left > b->current_length; b = vlib_get_buffer (vm, b->next_buffer))
    left -= b->current_length;
  b->current_length = left;
  if (b->flags & VLIB_BUFFER_NEXT_PRESENT)
    {
      b->flags &= ~VLIB_BUFFER_NEXT_PRESENT;
      vlib_buffer_free_one (vm, b->next_buffer);
    }
}

void
contiv_backlog_large (vlib_main_t *vm, cv_backlog_t *backlog, vlib_buffer_t *b, const cv_headers_t *h, u64 now, u32 *counts)
{
  u8 *packet = vlib_buffer_get_current (b), question[CV_QUESTION_LEN];
  u32 cut, len = cv_backlog_ask (backlog, packet, h, now, question);
  if (len)
    {
      ask (vm, vnet_buffer (b)->sw_if_index[VLIB_RX], question, len);
      counts[CONTIV_ASKED]++;
    }
  if (PREDICT_TRUE (!cv_codel_due (&backlog->control, cv_backlog_above (backlog, now), now)))
    return;
  switch (cv_congested (packet, h, vlib_buffer_length_in_chain (vm, b), vnet_buffer2 (b)->gso_size, &cut))
    {
    case CV_CONGESTED_NOT:
      return; /* the next packet carries the signal */
    case CV_CONGESTED_CUT:
      cut_end (vm, b, cut);
      counts[CONTIV_CONGESTED_CUT]++;
      break;
    case CV_CONGESTED_MARKED:
      counts[CONTIV_CONGESTED_MARKED]++;
    }
  cv_codel_signalled (&backlog->control, now);
}
