/* Sockets for AF_PACKET uplinks that replace VPP's: VPP's own sockets get a filter that accepts nothing, and our node serves VPP's
 * receive queues, with the same thread and mode for each queue. */
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "uplink.h"
#include <vlib/file.h>
#include <vnet/ethernet/ethernet.h>
#include <vnet/interface/rx_queue_funcs.h>

#define SOCKET_MEMORY (8 << 20)
#define VLAN_TAGS     8	   /* two tags */
#define RING_HEADERS  128  /* maximum bytes before each frame in the ring */
#define RING_UNIT     256  /* frame lengths are multiples of this */
#define RING_FRAMES   1024

extern vlib_node_registration_t contiv_uplink_input_node;

/* ---- a socket ---- */

/* takes attaches a filter to a socket: it accepts all incoming packets, or nothing. The kernel delivers outgoing packets to all sockets
 * of a fanout group even if they have set PACKET_IGNORE_OUTGOING: without this filter VPP would receive all packets that it sends. */
static int
takes (int fd, bool everything)
{
  struct sock_filter code[] = { BPF_STMT (BPF_LD | BPF_B | BPF_ABS, (u32) SKF_AD_OFF + SKF_AD_PKTTYPE),
				BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1), BPF_STMT (BPF_RET | BPF_K, 0),
				BPF_STMT (BPF_RET | BPF_K, everything ? CONTIV_FRAME_MAX : 0) };
  struct sock_fprog program = { .len = ARRAY_LEN (code), .filter = code };
  return setsockopt (fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof (program));
}

static int
set (int fd, int level, int option, int value)
{
  return setsockopt (fd, level, option, &value, sizeof (value));
}

/* attach creates a socket at a device; protocol 0: for sending only. -1: errno has the reason. */
static int
attach (u32 device, u16 protocol)
{
  struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int) device, .sll_protocol = htons (protocol) };
  int fd = socket (AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  if (set (fd, SOL_PACKET, PACKET_VNET_HDR, 1) || set (fd, SOL_SOCKET, protocol ? SO_RCVBUFFORCE : SO_SNDBUFFORCE, SOCKET_MEMORY) ||
      (protocol && (set (fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) || takes (fd, false))) || bind (fd, (struct sockaddr *) &to, sizeof (to)))
    {
      close (fd);
      return -1;
    }
  return fd;
}

/* spread adds a socket to a fanout group, in which the kernel distributes incoming packets by flow. group is the kernel's ID of the
 * group, 0 before the first socket. */
static int
spread (int fd, int *group)
{
  int type = PACKET_FANOUT_HASH << 16;
  socklen_t len = sizeof (*group);
  if (*group)
    return set (fd, SOL_PACKET, PACKET_FANOUT, type | (*group & 0xffff));
  return set (fd, SOL_PACKET, PACKET_FANOUT, type | PACKET_FANOUT_FLAG_UNIQUEID << 16) || getsockopt (fd, SOL_PACKET, PACKET_FANOUT, group, &len);
}

/* map_ring creates the ring of a socket. */
static int
map_ring (const contiv_uplink_t *u, contiv_uplink_queue_t *q)
{
  u32 block = u->frame / RING_UNIT * (u32) sysconf (_SC_PAGESIZE), frames = block / u->frame;
  struct tpacket_req r = { .tp_frame_size = u->frame, .tp_block_size = block, .tp_block_nr = u->n_frames / frames, .tp_frame_nr = u->n_frames };
  if (set (q->fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2) || set (q->fd, SOL_PACKET, PACKET_COPY_THRESH, 1) ||
      setsockopt (q->fd, SOL_PACKET, PACKET_RX_RING, &r, sizeof (r)))
    return -1;
  void *at = mmap (0, (size_t) u->frame * u->n_frames, PROT_READ | PROT_WRITE, MAP_SHARED, q->fd, 0);
  if (at == MAP_FAILED)
    return -1;
  q->ring = at;
  return 0;
}

/* ---- VPP's own sockets ---- */

/* is_at reports whether a file is a packet socket at a device. */
static bool
is_at (int fd, u32 device)
{
  struct sockaddr_ll at;
  socklen_t len = sizeof (at);
  return !getsockname (fd, (struct sockaddr *) &at, &len) && at.sll_family == AF_PACKET && at.sll_ifindex == (int) device;
}

static bool
is_ours (const contiv_uplink_t *u, int fd)
{
  contiv_uplink_queue_t *q;
  vec_foreach (q, u->queues)
    if (q->fd == fd)
      return true;
  return fd == u->tx;
}

/* silence makes VPP's own sockets at the device accept nothing, or everything again. */
static void
silence (const contiv_uplink_t *u, bool silent)
{
  DIR *all = opendir ("/proc/self/fd");
  for (struct dirent *d; all && (d = readdir (all));)
    {
      int fd = atoi (d->d_name);
      if (d->d_name[0] == '.' || is_ours (u, fd) || !is_at (fd, u->device))
	continue;
      if (!silent)
	set (fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
      else if (takes (fd, false))
	clib_unix_warning ("contiv: VPP's own packet socket still receives packets, and drops them");
    }
  if (all)
    closedir (all);
}

/* ---- VPP's receive queues ---- */

static clib_error_t *
ready (clib_file_t *file)
{
  vnet_hw_if_rx_queue_set_int_pending (vnet_get_main (), (u32) file->private_data);
  return 0;
}

/* failed reads the socket's error, which clears it. */
static clib_error_t *
failed (clib_file_t *file)
{
  int error;
  socklen_t len = sizeof (error);
  getsockopt ((int) file->file_descriptor, SOL_SOCKET, SO_ERROR, &error, &len);
  return 0;
}

/* served_by changes the node that serves the interface. It removes the queues from the previous node, which would otherwise poll them
 * after they are deleted. */
static void
served_by (const contiv_uplink_t *u, u32 node)
{
  vnet_main_t *vnm = vnet_get_main ();
  u32 before = vnet_get_hw_interface (vnm, u->hw_if_index)->input_node_index;
  u8 modes[vec_len (u->queues)];
  for (u32 i = 0; i < vec_len (u->queues); i++)
    {
      modes[i] = (u8) vnet_hw_if_get_rx_queue_mode (vnm, u->queues[i].index);
      vnet_hw_if_set_rx_queue_mode (vnm, u->queues[i].index, VNET_HW_IF_RX_MODE_INTERRUPT);
    }
  vnet_hw_if_update_runtime_data (vnm, u->hw_if_index);
  for (u32 i = 0; i < vec_len (u->queues); i++)
    {
      vlib_main_t *vm = vlib_get_main_by_index (vnet_hw_if_get_rx_queue_thread_index (vnm, u->queues[i].index));
      vnet_hw_if_rx_node_runtime_t *rt = vlib_node_get_runtime_data (vm, before);
      clib_interrupt_clear (rt->rxq_interrupts, (int) u->queues[i].index);
      vnet_hw_if_set_rx_queue_mode (vnm, u->queues[i].index, modes[i]);
    }
  vnet_hw_if_set_input_node (vnm, u->hw_if_index, node);
  vnet_hw_if_update_runtime_data (vnm, u->hw_if_index);
}

/* take_queues makes our node serve VPP's queues, from our sockets. */
static void
take_queues (contiv_uplink_t *u, const u8 *name)
{
  vnet_main_t *vnm = vnet_get_main ();
  contiv_uplink_queue_t *q;
  vec_foreach (q, u->queues)
    {
      vnet_hw_if_rx_queue_t *rxq = vnet_hw_if_get_rx_queue (vnm, q->index);
      clib_file_t file = { .file_descriptor = (u32) q->fd, .read_function = ready, .error_function = failed, .private_data = q->index,
			   .polling_thread_index = rxq->thread_index, .description = format (0, "contiv %v queue %u", name, rxq->queue_id) };
      q->vpp_file = rxq->file_index;
      file_main.file_update (clib_file_get (&file_main, q->vpp_file), UNIX_FILE_UPDATE_DELETE); /* packets left in its ring would wake VPP
                                                                                                 * continuously */
      q->file = (u32) clib_file_add (&file_main, &file);
      vnet_hw_if_set_rx_queue_file_index (vnm, q->index, q->file);
    }
  served_by (u, contiv_uplink_input_node.index);
}

/* return_queues undoes take_queues. If the interface is being deleted, its queues have already been deleted. */
static void
return_queues (contiv_uplink_t *u)
{
  vnet_main_t *vnm = vnet_get_main ();
  contiv_uplink_queue_t *q;
  bool there = vec_len (vnet_get_hw_interface (vnm, u->hw_if_index)->rx_queue_indices);
  vec_foreach (q, u->queues)
    {
      file_main.file_update (clib_file_get (&file_main, q->vpp_file), UNIX_FILE_UPDATE_ADD);
      if (there)
	vnet_hw_if_set_rx_queue_file_index (vnm, q->index, q->vpp_file);
    }
  if (there)
    {
      const vlib_node_t *node = vlib_get_node_by_name (vlib_get_main (), (u8 *) "af-packet-input");
      served_by (u, node->index);
    }
}

/* ---- devices ---- */

static bool
is_af_packet (const vnet_hw_interface_t *hi)
{
  return !strcmp (vnet_get_device_class (vnet_get_main (), hi->dev_class_index)->name, "af-packet");
}

u32
contiv_device_of (const vnet_hw_interface_t *hi)
{
  char name[IFNAMSIZ + 5] = { 0 };
  if (!is_af_packet (hi) || vec_len (hi->name) >= sizeof (name) || vec_len (hi->name) < 6)
    return 0;
  clib_memcpy (name, hi->name, vec_len (hi->name));
  return strncmp (name, "host-", 5) ? 0 : if_nametoindex (name + 5);
}

/* ask_device runs an ioctl request on a device. */
static bool
ask_device (u32 device, unsigned long request, struct ifreq *r)
{
  int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool ok = fd >= 0 && if_indextoname (device, r->ifr_name) && !ioctl (fd, request, r);
  if (fd >= 0)
    close (fd);
  return ok;
}

static u32
mtu_of (u32 device)
{
  struct ifreq r = { 0 };
  return ask_device (device, SIOCGIFMTU, &r) ? (u32) r.ifr_mtu : 0;
}

/* is_wire reports whether the device segments large packets before they reach another machine. Virtual devices pass large packets on,
 * and virtio passes them to other machines on the same host. */
static bool
is_wire (u32 device)
{
  struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
  struct ifreq r = { .ifr_data = (void *) &info };
  return ask_device (device, SIOCETHTOOL, &r) && info.bus_info[0] && strcmp (info.driver, "virtio_net");
}

/* ---- open and close ---- */

static bool
open_sockets (contiv_uplink_t *u, const vnet_hw_interface_t *hi)
{
  int group = 0;
  u->tx = attach (u->device, 0);
  for (u32 i = 0; i < vec_len (hi->rx_queue_indices); i++)
    {
      contiv_uplink_queue_t q = { .fd = attach (u->device, ETH_P_ALL), .index = hi->rx_queue_indices[i], .file = ~0 };
      bool ok = q.fd >= 0 && (vec_len (hi->rx_queue_indices) == 1 || !spread (q.fd, &group)) && !map_ring (u, &q);
      vec_add1 (u->queues, q);
      if (!ok)
	return false;
    }
  return u->tx >= 0;
}

static u32
round_up (u32 n)
{
  return (n + RING_UNIT - 1) / RING_UNIT * RING_UNIT;
}

/* longest_of returns the length of the longest frame without segmentation. */
static u32
longest_of (u32 mtu)
{
  return mtu + sizeof (ethernet_header_t) + VLAN_TAGS;
}

/* no_sockets logs the first of consecutive rejections. */
static contiv_uplink_t *
no_sockets (const vnet_hw_interface_t *hi, bool again)
{
  if (!again)
    clib_unix_warning ("contiv: no sockets for large packets at %v: VPP segments them until the kernel accepts the sockets", hi->name);
  return 0;
}

contiv_uplink_t *
contiv_uplink_open (u32 sw_if_index, bool *rejected)
{
  contiv_main_t *cm = &contiv_main;
  const vnet_hw_interface_t *hi = vnet_get_sup_hw_interface (vnet_get_main (), sw_if_index);
  bool again = *rejected;
  *rejected = is_af_packet (hi) && hi->sw_if_index == sw_if_index && vec_len (hi->rx_queue_indices);
  u32 device = *rejected ? contiv_device_of (hi) : 0, mtu = device ? mtu_of (device) : 0, longest = longest_of (mtu);
  if (!mtu)
    return *rejected ? no_sockets (hi, again) : 0;
  contiv_uplink_t *u = clib_mem_alloc (sizeof (*u));
  *u = (contiv_uplink_t){ .sw_if_index = sw_if_index, .hw_if_index = hi->hw_if_index, .instance = hi->dev_instance, .device = device, .longest = longest,
			  .frame = round_up (longest + RING_HEADERS), .n_frames = RING_FRAMES, .cuts = is_wire (device) };
  clib_spinlock_init (&u->lock);
  if (!open_sockets (u, hi))
    {
      no_sockets (hi, again);
      contiv_uplink_close (u);
      return 0;
    }
  *rejected = false;
  silence (u, true);
  take_queues (u, hi->name);
  vec_validate (cm->uplinks, u->instance);
  cm->uplinks[u->instance] = u;
  contiv_uplink_queue_t *q;
  vec_foreach (q, u->queues)
    if (takes (q->fd, true))
      clib_unix_warning ("contiv: filter of %v", hi->name);
  return u;
}

void
contiv_uplink_close (contiv_uplink_t *u)
{
  contiv_main_t *cm = &contiv_main;
  contiv_uplink_queue_t *q;
  if (vec_len (u->queues) && u->queues[0].file != ~0)
    {
      cm->uplinks[u->instance] = 0;
      return_queues (u);
      silence (u, false);
    }
  vec_foreach (q, u->queues)
    {
      if (q->ring)
	munmap (q->ring, (size_t) u->frame * u->n_frames);
      if (q->file != ~0)
	clib_file_del_by_index (&file_main, q->file); /* also closes fd */
      else if (q->fd >= 0)
	close (q->fd);
    }
  if (u->tx >= 0)
    close (u->tx);
  vec_free (u->queues);
  clib_spinlock_free (&u->lock);
  clib_mem_free (u);
}

/* ---- MTU ---- */

/* renew creates the rings of an uplink again, for longer frames. The table of neighbours is kept. The caller holds the barrier. */
static void
renew (contiv_interface_t *i)
{
  contiv_uplink_t was = *i->uplink;
  contiv_uplink_close (i->uplink);
  i->uplink = contiv_uplink_open (was.sw_if_index, &i->no_sockets);
  if (!i->uplink)
    return;
  clib_memcpy (i->uplink->peers, was.peers, sizeof (was.peers));
  i->uplink->no_trains = was.no_trains;
}

/* follow adapts one uplink to a changed MTU. Rings are created again if their frames are too short: longer packets would be read by
 * recvmsg, which is slower. */
static void
follow (vlib_main_t *vm, contiv_interface_t *i)
{
  u32 mtu = mtu_of (i->uplink->device), longest = longest_of (mtu);
  if (!mtu || longest == i->uplink->longest)
    return;
  vlib_worker_thread_barrier_sync (vm);
  if (round_up (longest + RING_HEADERS) > i->uplink->frame)
    renew (i);
  else
    i->uplink->longest = longest;
  vlib_worker_thread_barrier_release (vm);
}

void
contiv_uplinks_follow (vlib_main_t *vm)
{
  contiv_interface_t *i;
  vec_foreach (i, contiv_main.interfaces)
    if (i->uplink)
      follow (vm, i);
}
