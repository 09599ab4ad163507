/* Receive queues that wait for interrupts.
 *
 * VPP gives a TAP its buffers when it creates the TAP, and discards an interrupt of an interface that is down. If a pod fills the ring
 * before the interface is up (it sends while a restarted VPP creates its interface), no further interrupt occurs: packets from the pod
 * are never received. The same happens with a ring for which VPP had no buffers. Therefore each queue is scheduled when its interface
 * comes up, and once per second. */
#include "contiv.h"
#include <vnet/interface/rx_queue_funcs.h>

static void
receive (vnet_main_t *vnm, const vnet_hw_interface_t *hi)
{
  u32 *queue;
  vec_foreach (queue, hi->rx_queue_indices)
    vnet_hw_if_rx_queue_set_int_pending (vnm, *queue); /* no effect if the queue is polled */
}

/* contiv_receive_waiting schedules all queues of interfaces that are up. */
void
contiv_receive_waiting (void)
{
  vnet_main_t *vnm = vnet_get_main ();
  vnet_hw_interface_t *hi;
  pool_foreach (hi, vnm->interface_main.hw_interfaces)
    if (vnet_sw_interface_is_admin_up (vnm, hi->sw_if_index))
      receive (vnm, hi);
}

/* comes_up: VPP calls this before it sets the flag; the queues are read after that. */
static clib_error_t *
comes_up (vnet_main_t *vnm, u32 sw_if_index, u32 flags)
{
  const vnet_sw_interface_t *si = vnet_get_sw_interface (vnm, sw_if_index);
  if (flags & VNET_SW_INTERFACE_FLAG_ADMIN_UP && si->type == VNET_SW_INTERFACE_TYPE_HARDWARE)
    receive (vnm, vnet_get_hw_interface (vnm, si->hw_if_index));
  return 0;
}

VNET_SW_INTERFACE_ADMIN_UP_DOWN_FUNCTION (comes_up);
