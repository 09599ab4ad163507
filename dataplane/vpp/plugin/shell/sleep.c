/* The sleep time of VPP's threads.
 *
 * An idle thread polls the kernel for ready files, and waits for the whole milliseconds that are left until its next timer. In the last
 * millisecond it does not wait, but polls continuously. Its timers are in a wheel that wraps every 10.24 ms, and each wrap counts as a
 * timer. Therefore an idle thread uses 4 % of a processor, and every 10 ms it blocks other processes, including those of pods, from its
 * processor for up to a millisecond: on machines with few processors, more than 1 % of the requests between two nodes took a millisecond
 * longer. The preloaded epollshim calls sleep_of here, and waits until the timer. */
#include <dlfcn.h>
#include "contiv.h"
#include <vlib/tw_funcs.h>

#define TICK_NS	     (1000000000 / (long) VLIB_TW_TICKS_PER_SECOND)
#define SLEEP_MAX_NS 10000000L /* same as VPP */
#define SLEEP_MIN_NS 50000L    /* the kernel may wake a thread later by this time; for shorter waits VPP's own loop is used */

/* sleep_of returns how long the thread may wait with an epoll file, in nanoseconds. It returns -1 to use VPP's own wait time, because
 * the thread has work or the file does not belong to the thread. */
static long
sleep_of (int epfd)
{
  vlib_main_t *vm = vlib_get_main ();
  if (vm->epoll_fd != epfd || !vm->thread_sleeps)
    return -1;
  long left = vm->n_tw_timers ? TICK_NS * (long) vlib_tw_timer_first_expires_in_ticks (vm) : SLEEP_MAX_NS;
  return left < SLEEP_MIN_NS ? 0 : clib_min (left, SLEEP_MAX_NS);
}

/* Without the shim, VPP's sleep is unchanged. */
static clib_error_t *
contiv_sleep_init (vlib_main_t *vm)
{
  void (*set) (long (*) (int)) = dlsym (RTLD_DEFAULT, "contiv_epoll_sleep");
  if (set)
    set (sleep_of);
  return 0;
}

VLIB_INIT_FUNCTION (contiv_sleep_init);
