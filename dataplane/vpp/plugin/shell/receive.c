/* Receive queues that wait for interrupts.
 *
 * VPP gives a TAP its buffers when it makes it, and drops an interrupt of an interface that is down. If a pod fills the ring before the
 * interface is up (it sends while a VPP that was started again makes its interface), no other interrupt comes: nothing that the pod sends
 * is ever received. The same is true of a ring for which VPP had no buffers. So each queue is looked at when its interface comes up, and
 * once a second. */
#include "contiv.h"
#include <vnet/interface/rx_queue_funcs.h>

static void
receive (vnet_main_t *vnm, const vnet_hw_interface_t *hi)
{
  u32 *queue;
  vec_foreach (queue, hi->rx_queue_indices)
    vnet_hw_if_rx_queue_set_int_pending (vnm, *queue); /* nothing if the queue is polled */
}

/* contiv_receive_waiting has all queues of interfaces that are up looked at. */
void
contiv_receive_waiting (void)
{
  vnet_main_t *vnm = vnet_get_main ();
  vnet_hw_interface_t *hi;
  pool_foreach (hi, vnm->interface_main.hw_interfaces)
    if (vnet_sw_interface_is_admin_up (vnm, hi->sw_if_index))
      receive (vnm, hi);
}

/* VPP calls this before it sets the flag; the queues are read after that. */
static clib_error_t *
comes_up (vnet_main_t *vnm, u32 sw_if_index, u32 flags)
{
  const vnet_sw_interface_t *si = vnet_get_sw_interface (vnm, sw_if_index);
  if (flags & VNET_SW_INTERFACE_FLAG_ADMIN_UP && si->type == VNET_SW_INTERFACE_TYPE_HARDWARE)
    receive (vnm, vnet_get_hw_interface (vnm, si->hw_if_index));
  return 0;
}

VNET_SW_INTERFACE_ADMIN_UP_DOWN_FUNCTION (comes_up);
