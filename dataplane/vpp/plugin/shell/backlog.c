/* The backlog of a TAP: questions to the sender's kernel, and signals to the senders of TCP streams. */
#include "offload.h"
#include "backlog.h"
#include <vnet/devices/virtio/virtio.h>
#include <vnet/ip/format.h>

#define THREADS_MAX 256
#define WAY_FREE    8 /* packets in a ring to the kernel. vhost-net may report 64 delivered packets at once, so some of them are delivered already */

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
  return contiv_main.no_backlogs || vm->thread_index >= THREADS_MAX || sw_if_index >= vec_len (backlogs) ? 0 : &backlogs[sw_if_index];
}

void
contiv_backlogs_end (vlib_main_t *vm, u32 sw_if_index)
{
  vlib_worker_thread_barrier_sync (vm);
  contiv_backlogs_t *t;
  vec_foreach (t, threads)
    if (sw_if_index < vec_len (t->backlogs))
      cv_backlog_init (&t->backlogs[sw_if_index], (u8) (t - threads));
  vlib_worker_thread_barrier_release (vm);
}

u32
contiv_backlogs_frame_end (vlib_main_t *vm)
{
  if (!threads)
    return 0;
  contiv_backlogs_t *t = &threads[vm->thread_index];
  cv_backlog_t **b;
  u32 n = vec_len (t->asked);
  vec_foreach (b, t->asked)
    cv_backlog_sent (*b);
  vec_reset_length (t->asked);
  cv_quiesce (contiv_main.core, vm->thread_index);
  return n;
}

bool
contiv_backlog_answered (vlib_main_t *vm, cv_backlog_t *backlog, vlib_buffer_t *b, u64 now)
{
  u32 sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX], n = 0;
  cv_backlog_t *all[THREADS_MAX];
  contiv_backlogs_t *t;
  vec_foreach (t, threads)
    if (n < THREADS_MAX)
      all[n++] = &t->backlogs[sw_if_index];
  return cv_backlog_answered (backlog, all, n, vlib_buffer_get_current (b), b->current_length, now);
}

/* is_way_free reports whether few packets to the kernel wait in the rings of a TAP. A question behind many packets would measure their delay. */
static bool
is_way_free (vnet_main_t *vnm, u32 sw_if_index)
{
  const vnet_hw_interface_t *hi = vnet_get_sup_hw_interface (vnm, sw_if_index);
  const virtio_if_t *vif = pool_elt_at_index (virtio_main.interfaces, hi->dev_instance);
  const vnet_virtio_vring_t *ring;
  if (vif->is_packed)
    return true;
  vec_foreach (ring, vif->txq_vrings)
    if ((u16) (ring->avail->idx - ring->used->idx) > WAY_FREE)
      return false;
  return true;
}

/* ask sends the question that is due, by the TAP from which a packet has come. If that is not possible now, it postpones the question. */
static bool
ask (vlib_main_t *vm, cv_backlog_t *backlog, u32 sw_if_index, u64 now)
{
  vnet_main_t *vnm = vnet_get_main ();
  u32 bi;
  if (!is_way_free (vnm, sw_if_index) || vlib_buffer_alloc (vm, &bi, 1) != 1)
    {
      cv_backlog_later (backlog, now);
      return false;
    }
  vlib_buffer_t *b = vlib_get_buffer (vm, bi);
  b->current_length = cv_backlog_ask (backlog, now, vlib_buffer_get_current (b));
  b->flags |= VNET_BUFFER_F_LOCALLY_ORIGINATED;
  vnet_buffer (b)->sw_if_index[VLIB_RX] = sw_if_index;
  vnet_buffer (b)->sw_if_index[VLIB_TX] = sw_if_index;
  vlib_frame_t *f = vnet_get_frame_to_sw_interface (vnm, sw_if_index);
  u32 *to = vlib_frame_vector_args (f);
  to[f->n_vectors++] = bi;
  vnet_put_frame_to_sw_interface (vnm, sw_if_index, f);
  return true;
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

contiv_offload_t
contiv_backlog_large (vlib_main_t *vm, cv_backlog_t *backlog, vlib_buffer_t *b, const cv_headers_t *h, u64 now, u32 *counts)
{
  u8 *packet = vlib_buffer_get_current (b);
  u32 cut, len = vlib_buffer_length_in_chain (vm, b), at = vnet_buffer (b)->sw_if_index[VLIB_RX];
  backlog->bytes += len;
  if (PREDICT_FALSE (cv_backlog_due (backlog, contiv_main.core, vm->thread_index, at, packet, h, now)) && ask (vm, backlog, at, now))
    vec_add1 (threads[vm->thread_index].asked, backlog);
  if (PREDICT_TRUE (!cv_codel_due (&backlog->control, cv_backlog_above (backlog, now), now)))
    return CONTIV_LARGE;
  cv_congested_t how = cv_congested (packet, h, len, vnet_buffer2 (b)->gso_size, cv_codel_late (&backlog->control, now), &cut);
  if (how == CV_CONGESTED_NOT)
    return CONTIV_LARGE; /* the next packet carries the signal */
  if (how == CV_CONGESTED_CUT)
    cut_end (vm, b, cut);
  cv_codel_signalled (&backlog->control, now);
  contiv_offload_t signal = how == CV_CONGESTED_CUT ? CONTIV_CONGESTED_CUT : CONTIV_CONGESTED_MARKED;
  counts[signal]++;
  return signal;
}

/* ---- show contiv backlogs ---- */

static u8 *
format_backlog (u8 *s, va_list *args)
{
  const cv_backlog_t *b = va_arg (*args, const cv_backlog_t *);
  u64 now = va_arg (*args, u64);
  s = format (s, "%u questions for %U, %u without answer", b->number & 0xffffff, b->ip6 ? format_ip6_address : format_ip4_address, b->address,
	      b->unanswered);
  if (b->measured)
    s = format (s, "; %.1f s ago %lu kB waited for %.1f ms", (f64) ((i64) (now - b->measured)) / 1e6, b->waited / 1000, (f64) b->delay / 1e3);
  return format (s, "; %lu signals", b->control.total);
}

static clib_error_t *
show_backlogs (vlib_main_t *vm, unformat_input_t *input, vlib_cli_command_t *cmd)
{
  if (unformat_check_input (input) != UNFORMAT_END_OF_INPUT)
    return clib_error_return (0, "unknown input '%U'", format_unformat_error, input);
  if (contiv_main.no_backlogs)
    return clib_error_return (0, "backlogs are not controlled: contiv { no-backlog-control } in startup.conf");
  for (u32 i = 0; i < vec_len (threads); i++)
    for (u32 at = 0; at < vec_len (threads[i].backlogs); at++)
      if (threads[i].backlogs[at].sent && vnet_get_sw_interface_or_null (vnet_get_main (), at))
	vlib_cli_output (vm, "%U, thread %u: %U", format_vnet_sw_if_index_name, vnet_get_main (), at, i, format_backlog,
			 &threads[i].backlogs[at], contiv_microseconds (vm));
  return 0;
}

VLIB_CLI_COMMAND (show_contiv_backlogs, static) = {
  .path = "show contiv backlogs",
  .short_help = "show contiv backlogs",
  .function = show_backlogs,
};
