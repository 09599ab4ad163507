/* Uplinks that VPP has by AF_PACKET: uplink_open.c, uplink_output.c, uplink_input.c, uplink_peers.c. VPP's own rings carry packets up to the MTU, so all
 * packets go by sockets of ours, with virtio headers: the kernel cuts large ones, or does not have to. */
#ifndef CONTIV_UPLINK_H
#define CONTIV_UPLINK_H

#include <sys/socket.h>
#include <sys/uio.h>
#include "contiv.h"
#include "../core/offload.h"

#define CONTIV_FRAME_MAX (1 << 17) /* bytes that the kernel has as one packet */

/* A ring by which the kernel hands over what comes in. What does not fit into a frame of it comes by recvmsg, in its order. */
typedef struct
{
  int fd;
  u8 *ring;
  u32 next;	/* frame that comes next */
  u32 index;	/* of VPP's receive queue that it stands in for */
  u32 file;	/* of fd, in VPP's table; ~0: none yet */
  u32 vpp_file; /* of VPP's own socket */
} contiv_uplink_queue_t;

#define CONTIV_PEERS 256

/* A neighbour on the uplink's network. */
typedef struct
{
  u64 mac;	 /* 0: none; else with a bit above the address */
  f64 can_until; /* it has said that it takes large packets */
  f64 used, asked, answered;
  u64 token; /* of the last question, which its answer has to repeat */
} contiv_peer_t;

struct contiv_uplink
{
  int tx;
  contiv_uplink_queue_t *queues; /* vector, as VPP's receive queues */
  u32 sw_if_index, hw_if_index, instance, device;
  u32 longest;	      /* frame without segments */
  u32 frame, n_frames; /* of each ring */
  bool no_trains; /* the kernel does not know UDP segmentation (before Linux 6.2) */
  bool cuts;	  /* the device cuts on the wire, so that no neighbour sees a large packet */
  clib_spinlock_t lock; /* of peers that are added */
  contiv_peer_t peers[CONTIV_PEERS];
  f64 answers_at; /* second in which answers are counted */
  u32 answers;
  f64 full_until; /* no place for another peer is looked for before */
};

static_always_inline contiv_uplink_t *
contiv_uplink (u32 sw_if_index)
{
  contiv_main_t *cm = &contiv_main;
  return sw_if_index < vec_len (cm->interfaces) ? cm->interfaces[sw_if_index].uplink : 0;
}

/* contiv_uplink_open gives an interface its sockets; NULL: it is not AF_PACKET, or the kernel refuses. Under the barrier. */
contiv_uplink_t *contiv_uplink_open (u32 sw_if_index);
/* contiv_uplink_close leaves everything to VPP's rings again. Under the barrier. */
void contiv_uplink_close (contiv_uplink_t *u);
/* contiv_device_of finds the device of an AF_PACKET interface; 0: none. */
u32 contiv_device_of (const vnet_hw_interface_t *hi);
/* contiv_uplinks_follow adapts the sockets to devices whose MTU has changed. Main thread. */
void contiv_uplinks_follow (vlib_main_t *vm);

/* overruns.c: counts what the kernel dropped since a ring was full. Main thread. */
void contiv_count_overruns (vlib_main_t *vm);

/* ---- out ---- */

typedef enum
{
  CONTIV_UPLINK_SENT,
  CONTIV_UPLINK_REFUSED, /* the kernel has no room, or the device is down: drop */
  CONTIV_UPLINK_CUT,	 /* is to be cut here */
} contiv_uplink_result_t;

/* contiv_uplink_large sends a packet of several segments. */
contiv_uplink_result_t contiv_uplink_large (vlib_main_t *vm, contiv_uplink_t *u, cv_segmenter_t *s);

#define CONTIV_OUTBOX	     64
#define CONTIV_OUTBOX_PIECES 512

/* Whole packets that leave by one system call. All that goes to an uplink passes here or by contiv_uplink_large, so none overtakes another. */
typedef struct
{
  contiv_uplink_t *u; /* NULL: empty */
  u32 n, n_iov, refused;
  u32 buffers[CONTIV_OUTBOX];
  struct mmsghdr messages[CONTIV_OUTBOX];
  struct iovec iov[CONTIV_OUTBOX_PIECES];
} contiv_outbox_t;

/* contiv_outbox_add takes a packet over. */
void contiv_outbox_add (vlib_main_t *vm, contiv_outbox_t *o, contiv_uplink_t *u, u32 bi);
/* contiv_outbox_send sends what is there, and frees it. */
void contiv_outbox_send (vlib_main_t *vm, contiv_outbox_t *o);

/* ---- neighbours ---- */

/* contiv_peer_can: the neighbour with an address takes large packets. One that is not known yet will be asked. */
bool contiv_peer_can (vlib_main_t *vm, contiv_uplink_t *u, const u8 *mac);
/* contiv_peer_frame takes a frame from the uplink, if it is between plugins. */
bool contiv_peer_frame (vlib_main_t *vm, contiv_uplink_t *u, const u8 *frame, u32 len);
/* contiv_peers_ask asks those neighbours that large packets are due to, ten times a second. */
void contiv_peers_ask (vlib_main_t *vm);

#endif
