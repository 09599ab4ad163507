/* Frames that the kernel dropped because VPP had not emptied the ring of a packet socket. VPP does not read their number: this file adds
 * it to the counter rx-miss of the interface. The kernel counts them for each socket, and each read resets the count. */
#include <dirent.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include "uplink.h"
#include <vnet/ethernet/ethernet.h>

typedef struct
{
  u32 device, sw_if_index;
} at_device_t;

/* devices_of_all lists the devices of all AF_PACKET interfaces. */
static at_device_t *
devices_of_all (vnet_main_t *vnm)
{
  at_device_t *all = 0;
  vnet_hw_interface_t *hi;
  pool_foreach (hi, vnm->interface_main.hw_interfaces)
    {
      at_device_t at = { contiv_device_of (hi), hi->sw_if_index };
      if (at.device)
	vec_add1 (all, at);
    }
  return all;
}

static void
count (vlib_main_t *vm, u32 sw_if_index, int fd)
{
  union tpacket_stats_u s;
  socklen_t len = sizeof (s);
  if (!getsockopt (fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) && s.stats1.tp_drops)
    vlib_increment_simple_counter (vnet_get_main ()->interface_main.sw_if_counters + VNET_INTERFACE_COUNTER_RX_MISS, vm->thread_index, sw_if_index,
				   s.stats1.tp_drops);
}

/* contiv_count_overruns reads all packet sockets, the plugin's and VPP's own: those of uplinks, and of pods with a VETH. */
void
contiv_count_overruns (vlib_main_t *vm)
{
  at_device_t *at, *all = devices_of_all (vnet_get_main ());
  DIR *files = vec_len (all) ? opendir ("/proc/self/fd") : 0;
  for (struct dirent *d; files && (d = readdir (files));)
    {
      struct sockaddr_ll to;
      socklen_t len = sizeof (to);
      int fd = atoi (d->d_name);
      if (d->d_name[0] == '.' || getsockname (fd, (struct sockaddr *) &to, &len) || to.sll_family != AF_PACKET)
	continue;
      vec_foreach (at, all)
	if (at->device == (u32) to.sll_ifindex)
	  count (vm, at->sw_if_index, fd);
    }
  if (files)
    closedir (files);
  vec_free (all);
}
