/* How long VPP's threads sleep.
 *
 * A thread that has nothing to do asks the kernel for ready files, and waits as many whole milliseconds as are left until its next timer: none in the last
 * millisecond, in which it asks again and again. Its timers stand in a wheel that ends each 10.24 ms, and each end is one of them. So an idle thread takes 4 % of a
 * processor, and each 10 ms it keeps other processes, of pods too, from its processor for up to a millisecond: where there are few processors, more than one of
 * a hundred requests between two nodes took a millisecond more. The preloaded epollshim asks here, and waits until the timer. */
#include <dlfcn.h>
#include "contiv.h"
#include <vlib/tw_funcs.h>

#define TICK_NS	     (1000000000 / (long) VLIB_TW_TICKS_PER_SECOND)
#define SLEEP_MAX_NS 10000000L /* as VPP */
#define SLEEP_MIN_NS 50000L    /* the kernel wakes a thread up to so much later: shorter waits are VPP's own loop */

/* sleep_of is how long the thread may wait with an epoll file, in nanoseconds; -1: as VPP says, because it has work or the file is not that of the thread. */
static long
sleep_of (int epfd)
{
  vlib_main_t *vm = vlib_get_main ();
  if (vm->epoll_fd != epfd || !vm->thread_sleeps)
    return -1;
  long left = vm->n_tw_timers ? TICK_NS * (long) vlib_tw_timer_first_expires_in_ticks (vm) : SLEEP_MAX_NS;
  return left < SLEEP_MIN_NS ? 0 : clib_min (left, SLEEP_MAX_NS);
}

/* Without the shim VPP sleeps as it does. */
static clib_error_t *
contiv_sleep_init (vlib_main_t *vm)
{
  void (*set) (long (*) (int)) = dlsym (RTLD_DEFAULT, "contiv_epoll_sleep");
  if (set)
    set (sleep_of);
  return 0;
}

VLIB_INIT_FUNCTION (contiv_sleep_init);
