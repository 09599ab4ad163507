/* Preloaded into VPP 25.10: see ../README.md. */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

int
epoll_wait (int epfd, struct epoll_event *events, int max, int timeout)
{
  /* One less than asked for: VPP takes a full array for a reason to ask again, before anything else. */
  if (max > 1)
    max--;
  return (int) syscall (SYS_epoll_pwait, epfd, events, max, timeout, (void *) 0, (unsigned long) 0);
}
