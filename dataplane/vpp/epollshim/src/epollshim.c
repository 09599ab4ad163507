/* Preloaded into VPP 25.10: see ../README.md. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Set by the plugin: returns the nanoseconds that the thread may wait on this epoll file; negative: VPP's own timeout. NULL without the plugin. */
static long (*volatile sleep_of) (int epfd);

__attribute__ ((visibility ("default"))) void
contiv_epoll_sleep (long (*of) (int epfd))
{
  sleep_of = of;
}

int
epoll_wait (int epfd, struct epoll_event *events, int max, int timeout)
{
  /* One less than requested: after a full array VPP calls epoll_wait again before any other work. */
  if (max > 1)
    max--;
  long (*of) (int) = sleep_of;
  long ns = of ? of (epfd) : -1;
  if (ns >= 0)
    {
      struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
      int n = (int) syscall (SYS_epoll_pwait2, epfd, events, max, &t, (void *) 0, (unsigned long) 0);
      if (n >= 0 || errno == EINTR)
	return n;
      sleep_of = 0; /* a kernel before 5.11, or one that forbids the call */
    }
  return (int) syscall (SYS_epoll_pwait, epfd, events, max, timeout, (void *) 0, (unsigned long) 0);
}
