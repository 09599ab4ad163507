/* Sockets for large packets on AF_PACKET uplinks. Filters divide what comes in: frames up to the MTU go to VPP's rings, longer ones, which the
 * kernel has not cut or has joined, come here. */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "uplink.h"
#include "offload.h"
#include <vlib/file.h>
#include <vnet/ethernet/ethernet.h>
#include <vnet/feature/feature.h>
#include <vnet/interface/rx_queue_funcs.h>

#define SOCKET_MEMORY (8 << 20)
#define VLAN_TAGS     8	 /* two */
#define FRAMES_A_CALL 16 /* that are received at once */
#define FRAME_MAX     (1 << 17)

extern vlib_node_registration_t contiv_uplink_input_node;

/* ---- sockets ---- */

static int
filter (int fd, struct sock_filter *code, u16 n)
{
  struct sock_fprog program = { .len = n, .filter = code };
  return setsockopt (fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof (program));
}

/* only_long: frames of more than so many bytes. VLAN tags are not in the frame then, so VPP would not see them. */
static int
only_long (int fd, u32 longest)
{
  struct sock_filter code[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_LEN, 0),
    BPF_JUMP (BPF_JMP | BPF_JGT | BPF_K, longest, 0, 3),
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, FRAME_MAX),
    BPF_STMT (BPF_RET | BPF_K, 0),
  };
  return filter (fd, code, ARRAY_LEN (code));
}

static int
only_short (int fd, u32 longest)
{
  struct sock_filter code[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_LEN, 0),
    BPF_JUMP (BPF_JMP | BPF_JGT | BPF_K, longest, 1, 0),
    BPF_STMT (BPF_RET | BPF_K, FRAME_MAX),
    BPF_STMT (BPF_RET | BPF_K, 0),
  };
  return filter (fd, code, ARRAY_LEN (code));
}

static int
set (int fd, int level, int option, int value)
{
  return setsockopt (fd, level, option, &value, sizeof (value));
}

/* attach makes a socket at a device; protocol 0: to send only. -1: errno says why. */
static int
attach (u32 device, u16 protocol, int option)
{
  struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int) device, .sll_protocol = htons (protocol) };
  int fd = socket (AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  if (set (fd, SOL_PACKET, PACKET_VNET_HDR, 1) || (option && set (fd, SOL_PACKET, option, 1)) ||
      set (fd, SOL_SOCKET, protocol ? SO_RCVBUFFORCE : SO_SNDBUFFORCE, SOCKET_MEMORY) ||
      (protocol && only_long (fd, FRAME_MAX)) || bind (fd, (struct sockaddr *) &to, sizeof (to)))
    {
      close (fd);
      return -1;
    }
  return fd;
}

/* is_at tells whether a file is a packet socket at a device. */
static bool
is_at (int fd, u32 device)
{
  struct sockaddr_ll at;
  socklen_t len = sizeof (at);
  return !getsockname (fd, (struct sockaddr *) &at, &len) && at.sll_family == AF_PACKET && at.sll_ifindex == (int) device;
}

/* share gives VPP's own sockets at the device a filter, or takes it away. */
static void
share (const contiv_uplink_t *u, bool with_us)
{
  DIR *all = opendir ("/proc/self/fd");
  for (struct dirent *d; all && (d = readdir (all));)
    {
      int fd = atoi (d->d_name);
      if (d->d_name[0] == '.' || fd == u->large || fd == u->plain || fd == u->rx || !is_at (fd, u->device))
	continue;
      if (!with_us)
	set (fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
      else if (only_short (fd, u->longest))
	clib_unix_warning ("contiv: VPP's packet socket gets large packets, too, and drops them");
    }
  if (all)
    closedir (all);
}

/* device_of finds the device of an AF_PACKET interface; 0: none. */
static u32
device_of (const vnet_hw_interface_t *hi)
{
  const vnet_device_class_t *class = vnet_get_device_class (vnet_get_main (), hi->dev_class_index);
  char name[IFNAMSIZ + 5] = { 0 };
  if (strcmp (class->name, "af-packet") || vec_len (hi->name) >= sizeof (name) || vec_len (hi->name) < 6)
    return 0;
  clib_memcpy (name, hi->name, vec_len (hi->name));
  return strncmp (name, "host-", 5) ? 0 : if_nametoindex (name + 5);
}

static u32
mtu_of (u32 device)
{
  struct ifreq r = { 0 };
  int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool ok = fd >= 0 && if_indextoname (device, r.ifr_name) && !ioctl (fd, SIOCGIFMTU, &r);
  if (fd >= 0)
    close (fd);
  return ok ? (u32) r.ifr_mtu : 0;
}

static clib_error_t *
ready (clib_file_t *file)
{
  vlib_node_set_interrupt_pending (vlib_get_main (), contiv_uplink_input_node.index);
  return 0;
}

contiv_uplink_t *
contiv_uplink_open (vlib_main_t *vm, u32 sw_if_index)
{
  const vnet_hw_interface_t *hi = vnet_get_sup_hw_interface (vnet_get_main (), sw_if_index);
  u32 device = device_of (hi), mtu = device ? mtu_of (device) : 0;
  if (!mtu || hi->sw_if_index != sw_if_index)
    return 0;
  contiv_uplink_t *u = clib_mem_alloc (sizeof (*u));
  *u = (contiv_uplink_t){ .sw_if_index = sw_if_index, .hw_if_index = hi->hw_if_index, .device = device, .file = ~0,
			  .longest = mtu + sizeof (ethernet_header_t) + VLAN_TAGS };
  u->large = attach (device, 0, 0);
  u->plain = attach (device, 0, PACKET_QDISC_BYPASS);
  u->rx = attach (device, ETH_P_ALL, PACKET_IGNORE_OUTGOING);
  if (u->large < 0 || u->plain < 0 || u->rx < 0 || only_long (u->rx, u->longest))
    {
      clib_unix_warning ("contiv: no sockets for large packets at %v: they are cut here", hi->name);
      contiv_uplink_close (u);
      return 0;
    }
  clib_file_t file = { .file_descriptor = (u32) u->rx, .read_function = ready, .error_function = ready,
		       .polling_thread_index = vlib_num_workers () ? 1 : 0, .description = format (0, "contiv %v", hi->name) };
  u->file = (u32) clib_file_add (&file_main, &file);
  share (u, true);
  return u;
}

void
contiv_uplink_close (contiv_uplink_t *u)
{
  if (u->file != ~0)
    {
      share (u, false);
      clib_file_del_by_index (&file_main, u->file); /* closes rx */
    }
  else if (u->rx >= 0)
    close (u->rx);
  if (u->large >= 0)
    close (u->large);
  if (u->plain >= 0)
    close (u->plain);
  clib_mem_free (u);
}

/* ---- out ---- */

/* write_packet hands a packet to the kernel; 0, or errno. */
static int
write_packet (int fd, const cv_piece_t *pieces, u32 n, const cv_virtio_t *virtio)
{
  struct iovec iov[CV_TRAIN_PIECES + 1] = { { (void *) virtio, sizeof (*virtio) } };
  struct msghdr m = { .msg_iov = iov, .msg_iovlen = n + 1 };
  for (u32 i = 0; i < n; i++)
    iov[i + 1] = (struct iovec){ pieces[i].data, pieces[i].len };
  return sendmsg (fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

static contiv_uplink_result_t
send_trains (contiv_uplink_t *u, cv_segmenter_t *s)
{
  u8 room[CV_TRAIN_ROOM];
  cv_piece_t pieces[CV_TRAIN_PIECES];
  cv_virtio_t virtio;
  if (u->no_trains || !cv_train_fits (s, u->longest))
    return CONTIV_UPLINK_CUT;
  for (u32 n, sent = 0; (n = cv_train_write (s, room, pieces, &virtio)); sent++)
    {
      int error = write_packet (u->large, pieces, n, &virtio);
      u->no_trains = error == EINVAL && !sent;
      if (error)
	return CONTIV_UPLINK_REFUSED;
    }
  return CONTIV_UPLINK_SENT;
}

contiv_uplink_result_t
contiv_uplink_large (contiv_uplink_t *u, cv_segmenter_t *s)
{
  const cv_layer_t *l = &s->h.layers[0];
  if (s->h.n_layers > 1)
    return send_trains (u, s);
  if (s->total <= u->longest || l->l3 != sizeof (ethernet_header_t) || s->n_in > CV_TRAIN_PIECES || !cv_segment_keep (s))
    return CONTIV_UPLINK_CUT;
  cv_virtio_t virtio = { .flags = CV_VIRTIO_NEEDS_CSUM, .gso_type = l->ip6 ? CV_VIRTIO_TCP6 : CV_VIRTIO_TCP4, .hdr_len = s->h.headers,
			 .gso_size = (u16) s->gso_size, .csum_start = l->l4, .csum_offset = 16 };
  return write_packet (u->large, s->in, s->n_in, &virtio) ? CONTIV_UPLINK_REFUSED : CONTIV_UPLINK_SENT;
}

contiv_uplink_result_t
contiv_uplink_plain (contiv_uplink_t *u, const cv_piece_t *pieces, u32 n)
{
  cv_virtio_t none = { 0 };
  return !n || write_packet (u->plain, pieces, n, &none) ? CONTIV_UPLINK_REFUSED : CONTIV_UPLINK_SENT;
}

/* ---- in ---- */

/* What one call receives. */
typedef struct
{
  vlib_main_t *vm;
  vlib_node_runtime_t *node;
  const contiv_uplink_t *u;
  u32 n, n_bytes, n_packets;
  u32 counts[CONTIV_N_OFFLOAD];
  u32 buffers[VLIB_FRAME_SIZE];
  u16 nexts[VLIB_FRAME_SIZE];
} received_t;

static void
deliver (received_t *r)
{
  if (r->n)
    vlib_buffer_enqueue_to_next (r->vm, r->node, r->buffers, r->nexts, r->n);
  r->n = 0;
}

/* copy makes buffers of pieces; NULL: there are not enough. */
static vlib_buffer_t *
copy (received_t *r, const cv_piece_t *pieces, u32 len, u32 *first)
{
  u32 size = vlib_buffer_get_default_data_size (r->vm), n = (len + size - 1) / size, indices[FRAME_MAX / 1024], used = 0, at = 0;
  u32 got = n <= ARRAY_LEN (indices) ? vlib_buffer_alloc (r->vm, indices, n) : 0;
  if (!n || got != n)
    {
      vlib_buffer_free (r->vm, indices, got);
      return 0;
    }
  for (u32 left = len; left; used++)
    {
      vlib_buffer_t *b = vlib_get_buffer (r->vm, indices[used]);
      b->current_data = 0;
      b->current_length = (u16) clib_min (left, size);
      left -= b->current_length;
      for (u32 to = 0; to < b->current_length;)
	{
	  u32 some = clib_min (pieces->len - at, b->current_length - to);
	  clib_memcpy_fast (b->data + to, pieces->data + at, some);
	  to += some;
	  at += some;
	  if (at == pieces->len)
	    {
	      pieces++;
	      at = 0;
	    }
	}
      if (left)
	{
	  b->next_buffer = indices[used + 1];
	  b->flags |= VLIB_BUFFER_NEXT_PRESENT;
	}
    }
  vlib_buffer_t *b = vlib_get_buffer (r->vm, indices[0]);
  b->total_length_not_including_first_buffer = len - b->current_length;
  b->flags |= VLIB_BUFFER_TOTAL_LENGTH_VALID;
  *first = indices[0];
  return b;
}

/* set_tunnelled: VPP's MTU check takes the difference between the offset of the transport, which stays, and that of the IP header, which
 * ip4-local sets to the tunnel's: so the former is written as if the packet had no tunnel. The output node finds the headers by itself. */
static void
set_tunnelled (vlib_buffer_t *b, const cv_headers_t *h)
{
  const cv_layer_t *outer = &h->layers[0], *l = &h->layers[h->n_layers - 1];
  vnet_buffer (b)->l4_hdr_offset = b->current_data + outer->l3 + (l->l4 - l->l3);
}

static void
trace (received_t *r, vlib_buffer_t *b, u32 next, u32 len)
{
  u32 n = vlib_get_trace_count (r->vm, r->node);
  if (!n || !vlib_trace_buffer (r->vm, r->node, next, b, 0))
    return;
  vlib_set_trace_count (r->vm, r->node, n - 1);
  contiv_offload_trace_t *t = vlib_add_trace (r->vm, r->node, b, sizeof (*t));
  *t = (contiv_offload_trace_t){ .sw_if_index = r->u->sw_if_index, .length = len, .gso_size = vnet_buffer2 (b)->gso_size,
				 .result = CONTIV_N_OFFLOAD, .is_large = b->flags & VNET_BUFFER_F_GSO };
}

/* accept sends a packet into the graph; gso_size 0: it is whole. */
static void
accept_packet (received_t *r, const cv_piece_t *pieces, u32 len, const cv_headers_t *h, u32 gso_size)
{
  u32 index, next = VNET_DEVICE_INPUT_NEXT_ETHERNET_INPUT;
  vlib_buffer_t *b = copy (r, pieces, len, &index);
  if (!b)
    {
      r->counts[CONTIV_OFFLOAD_NO_BUFFER]++;
      return;
    }
  vnet_buffer (b)->sw_if_index[VLIB_RX] = r->u->sw_if_index;
  vnet_buffer (b)->sw_if_index[VLIB_TX] = ~0;
  contiv_set_whole (b);
  if (gso_size)
    {
      contiv_set_large (b, h, (u16) gso_size);
      b->flags |= VNET_BUFFER_F_L4_CHECKSUM_COMPUTED | VNET_BUFFER_F_L4_CHECKSUM_CORRECT; /* a tunnel's need not be right */
      if (h->n_layers > 1)
	set_tunnelled (b, h);
      r->counts[CONTIV_LARGE]++;
    }
  vnet_feature_start_device_input (r->u->sw_if_index, &next, b);
  trace (r, b, next, len);
  r->n_packets++;
  r->n_bytes += len;
  r->buffers[r->n] = index;
  r->nexts[r->n++] = (u16) next;
  if (r->n == VLIB_FRAME_SIZE)
    deliver (r);
}

static void
unload (received_t *r, cv_train_t *t)
{
  u8 room[CV_SEGMENT_HEADERS];
  cv_carriage_t c;
  u16 port;
  clib_memcpy (&port, t->data + t->outer.l4 + 2, sizeof (port));
  t->tunnel = cv_is_tunnel_port (contiv_main.core, port);
  while (cv_train_next (t, room, &c))
    {
      if (c.gso_size)
	r->counts[CONTIV_JOINED] += c.n_pieces - 2;
      accept_packet (r, c.pieces, c.len, &c.h, c.gso_size);
    }
}

/* take makes packets of what the kernel has for us. */
static void
take (received_t *r, u8 *data, u32 len, const cv_virtio_t *virtio)
{
  cv_piece_t piece = { data, len };
  cv_train_t t;
  cv_headers_t h;
  if (virtio->gso_type == CV_VIRTIO_UDP && cv_train_read (&t, data, len, virtio))
    unload (r, &t);
  else if (virtio->gso_type != CV_VIRTIO_UDP && cv_uplink_take (&piece, 1, virtio, &h) == CV_GSO_OK)
    accept_packet (r, &piece, len, &h, virtio->gso_size);
  else
    r->counts[CONTIV_OFFLOAD_MALFORMED]++;
}

/* receive takes what one socket has; true: there may be more. */
static bool
receive (vlib_main_t *vm, vlib_node_runtime_t *node, const contiv_uplink_t *u, u32 *packets)
{
  static __thread u8 data[FRAME_MAX];
  received_t r = { .vm = vm, .node = node, .u = u };
  u32 n;
  for (n = 0; n < FRAMES_A_CALL; n++)
    {
      cv_virtio_t virtio;
      struct iovec iov[] = { { &virtio, sizeof (virtio) }, { data, sizeof (data) } };
      struct msghdr m = { .msg_iov = iov, .msg_iovlen = ARRAY_LEN (iov) };
      ssize_t len = recvmsg (u->rx, &m, MSG_DONTWAIT);
      if (len < 0 && errno == ENETDOWN)
	continue; /* said once */
      if (len < (ssize_t) sizeof (virtio))
	break;
      if (m.msg_flags & MSG_TRUNC)
	r.counts[CONTIV_OFFLOAD_MALFORMED]++;
      else
	take (&r, data, (u32) len - sizeof (virtio), &virtio);
    }
  deliver (&r);
  vlib_increment_combined_counter (vnet_get_main ()->interface_main.combined_sw_if_counters + VNET_INTERFACE_COUNTER_RX, vm->thread_index,
				   u->sw_if_index, r.n_packets, r.n_bytes);
  for (u32 i = 0; i < CONTIV_N_OFFLOAD; i++)
    if (r.counts[i])
      vlib_node_increment_counter (vm, node->node_index, i, r.counts[i]);
  *packets += r.n_packets;
  return n == FRAMES_A_CALL;
}

VLIB_NODE_FN (contiv_uplink_input_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  contiv_interface_t *i;
  u32 packets = 0;
  bool more = false;
  vec_foreach (i, contiv_main.interfaces)
    if (i->uplink)
      more |= receive (vm, node, i->uplink, &packets);
  if (more)
    vlib_node_set_interrupt_pending (vm, node->node_index);
  return packets;
}

VLIB_REGISTER_NODE (contiv_uplink_input_node) = {
  .name = "contiv-uplink-input",
  .sibling_of = "device-input",
  .type = VLIB_NODE_TYPE_INPUT,
  .state = VLIB_NODE_STATE_INTERRUPT,
  .flags = VLIB_NODE_FLAG_TRACE_SUPPORTED,
  .format_trace = format_contiv_offload_trace,
  .n_errors = CONTIV_N_OFFLOAD,
  .error_counters = contiv_offload_errors,
};
