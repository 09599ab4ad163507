/* Buffers of packets that the kernel has taken from the transmit ring of a TAP.
 *
 * VPP frees them when it sends the next packet by this ring, and keeps them if there is none. A pod that sends one burst to each pod of its node
 * makes every ring keep buffers, which all pods of the node then lack: up to the ring's size of packets, each with up to 32 buffers. Therefore
 * each thread looks at its rings ten times per second. */
#include "contiv.h"
#include <vnet/devices/virtio/virtio.h>
#include <vnet/interface/tx_queue_funcs.h>

/* has_delivered reports whether the kernel has taken packets since VPP sent the last one. */
static bool
has_delivered (const virtio_if_t *vif, const vnet_virtio_vring_t *ring)
{
  return ring->desc_in_use && (vif->is_packed || ring->used->idx != ring->last_used_idx);
}

/* send_nothing makes VPP send a frame without packets, which frees what the kernel has taken. */
static void
send_nothing (vlib_main_t *vm, const virtio_if_t *vif, const vnet_hw_if_tx_queue_t *queue)
{
  u32 index = vnet_get_hw_interface (vnet_get_main (), vif->hw_if_index)->tx_node_index;
  vlib_node_runtime_t *node = vlib_node_get_runtime (vm, index);
  vlib_frame_t *frame = vlib_get_frame_to_node (vm, index);
  vnet_hw_if_tx_frame_t *to = vlib_frame_scalar_args (frame);
  *to = (vnet_hw_if_tx_frame_t){ .queue_id = queue->queue_id, .shared_queue = queue->shared_queue };
  node->function (vm, node, frame);
  vlib_frame_free (vm, frame);
}

static uword
contiv_rings (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  virtio_if_t *vif;
  pool_foreach (vif, virtio_main.interfaces)
    {
      const vnet_virtio_vring_t *ring;
      if (vif->type != VIRTIO_IF_TYPE_TAP || vif->packet_coalesce || vif->packet_buffering) /* VPP itself sends the packets of these later */
	continue;
      vec_foreach (ring, vif->txq_vrings)
	{
	  const vnet_hw_if_tx_queue_t *queue = vnet_hw_if_get_tx_queue (vnet_get_main (), ring->queue_index);
	  if (has_delivered (vif, ring) && clib_bitmap_first_set (queue->threads) == vm->thread_index)
	    send_nothing (vm, vif, queue);
	}
    }
  return 0;
}

VLIB_REGISTER_NODE (contiv_rings_node) = {
  .function = contiv_rings,
  .type = VLIB_NODE_TYPE_INPUT,
  .state = VLIB_NODE_STATE_INTERRUPT,
  .name = "contiv-rings",
};

void
contiv_free_delivered (void)
{
  foreach_vlib_main ()
    vlib_node_set_interrupt_pending (this_vlib_main, contiv_rings_node.index);
}
