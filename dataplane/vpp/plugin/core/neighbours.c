/* Limits the number of neighbours that VPP stores. VPP stores the claims of ARP and neighbour discovery messages, each in its main
 * thread. A machine on a network can claim any number of addresses: without a limit it fills VPP's table and keeps the main thread busy. */
#include "internal.h"

#define NEW_A_SECOND	 256 /* for all addresses of a family that are not expected */
#define ADDRESS_A_SECOND 256 /* for one expected address */

/* A budget contains the second that it counts in the high bits, and the number used in the low bits. */
#define COUNT_BITS 12
#define COUNT_MASK ((1u << COUNT_BITS) - 1)

static bool
spend (uint32_t *budget, uint32_t second, uint32_t most)
{
  uint32_t fresh = second << COUNT_BITS, is = cv_load (budget);
  if ((is & ~COUNT_MASK) == fresh)
    {
      if ((is & COUNT_MASK) >= most)
	return false;
    }
  else if (__atomic_compare_exchange_n (budget, &is, fresh | 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return true;
  cv_add (budget, 1); /* workers that count at the same time may each exceed the limit by one */
  return true;
}

bool
cv_may_store_neighbour (cv_main_t *m, uint32_t worker, uint32_t sw_if_index, const cv_addr_t *a, bool ip6, bool expected, uint32_t now)
{
  cv_worker_t *w = &m->workers[worker];
  if (!w->in_frame)
    __atomic_store_n (&w->in_frame, 1, __ATOMIC_SEQ_CST);
  cv_neighbour_budget_t *b = &m->neighbours[ip6];
  const cv_endpoint_state_t *e = cv_endpoint (m, sw_if_index);
  uint32_t second = now / CV_TICKS_PER_SECOND;
  if (expected || (e && e->config.role == CV_ROLE_POD) || cv_is_node (m, a, ip6))
    return spend (&b->addresses[cv_hash_addr (m, a, sw_if_index) % CV_NEIGHBOUR_BUDGETS], second, ADDRESS_A_SECOND);
  return spend (&b->fresh, second, NEW_A_SECOND);
}
