/* AF_PACKET uplinks: uplink_open.c, uplink_output.c, uplink_input.c, uplink_peers.c. VPP's own rings carry packets only up to the MTU.
 * Therefore all packets pass through sockets of the plugin, with virtio headers: the kernel segments large packets, or need not. */
#ifndef CONTIV_UPLINK_H
#define CONTIV_UPLINK_H

#include <sys/socket.h>
#include <sys/uio.h>
#include "contiv.h"
#include "../core/offload.h"

#define CONTIV_FRAME_MAX (1 << 17) /* maximum bytes that the kernel handles as one packet */

/* A ring in which the kernel delivers received packets. A packet that does not fit into a frame of the ring is read by recvmsg, in the
 * order of the ring. */
typedef struct
{
  int fd;
  u8 *ring;
  u32 next;	/* next frame to read */
  u32 index;	/* index of the VPP receive queue that the ring replaces */
  u32 file;	/* index of fd in VPP's file table; ~0: not added yet */
  u32 vpp_file; /* file index of VPP's own socket */
} contiv_uplink_queue_t;

#define CONTIV_PEERS 256

/* A neighbour on the uplink's network. */
typedef struct
{
  u64 mac;	 /* 0: free; otherwise the address with an additional bit above it */
  f64 can_until; /* time until which the neighbour is known to accept large packets */
  f64 used, asked, answered;
  u64 token; /* token of the last query, which the answer must repeat */
} contiv_peer_t;

struct contiv_uplink
{
  int tx;
  contiv_uplink_queue_t *queues; /* vector, same order as VPP's receive queues */
  u32 sw_if_index, hw_if_index, instance, device;
  u32 longest;	      /* longest frame without segmentation */
  u32 frame, n_frames; /* size and number of the frames of each ring */
  bool no_trains; /* the kernel does not support UDP segmentation (before Linux 6.2) */
  bool cuts;	  /* the device segments on the wire, so that no neighbour receives a large packet */
  clib_spinlock_t lock; /* protects the addition of peers */
  contiv_peer_t peers[CONTIV_PEERS];
  f64 answers_at; /* second for which answers are counted */
  u32 answers;
  f64 full_until; /* no search for a free place for another peer before this time */
};

static_always_inline contiv_uplink_t *
contiv_uplink (u32 sw_if_index)
{
  contiv_main_t *cm = &contiv_main;
  return sw_if_index < vec_len (cm->interfaces) ? cm->interfaces[sw_if_index].uplink : 0;
}

/* contiv_uplink_open opens the sockets of an interface. It returns NULL if the interface is not AF_PACKET, or if the kernel rejects the sockets;
 * rejected is true in the second case. If rejected is already true, it logs no warning. The caller holds the barrier. */
contiv_uplink_t *contiv_uplink_open (u32 sw_if_index, bool *rejected);
/* endpoint.c: contiv_uplinks_open opens the sockets that the kernel has rejected. It is called once per second by the main thread. */
void contiv_uplinks_open (vlib_main_t *vm);
/* contiv_uplink_close closes them; VPP's own rings are used again. The caller holds the barrier. */
void contiv_uplink_close (contiv_uplink_t *u);
/* contiv_device_of returns the Linux device of an AF_PACKET interface; 0: none. */
u32 contiv_device_of (const vnet_hw_interface_t *hi);
/* contiv_uplinks_follow adapts the sockets to devices whose MTU has changed. Main thread. */
void contiv_uplinks_follow (vlib_main_t *vm);

/* overruns.c: contiv_count_overruns counts packets that the kernel dropped because a ring was full. Main thread. */
void contiv_count_overruns (vlib_main_t *vm);

/* ---- sending ---- */

typedef enum
{
  CONTIV_UPLINK_SENT,
  CONTIV_UPLINK_REFUSED, /* the kernel has no space, or the device is down: drop the packet */
  CONTIV_UPLINK_CUT,	 /* the plugin must segment the packet */
} contiv_uplink_result_t;

/* contiv_uplink_large sends a packet of several segments. */
contiv_uplink_result_t contiv_uplink_large (vlib_main_t *vm, contiv_uplink_t *u, cv_segmenter_t *s);

#define CONTIV_OUTBOX	     64
#define CONTIV_OUTBOX_PIECES 512

/* Single packets that are sent by one system call. All packets to an uplink pass here or through contiv_uplink_large, so no packet
 * overtakes another. */
typedef struct
{
  contiv_uplink_t *u; /* NULL: empty */
  u32 n, n_iov, refused;
  u32 buffers[CONTIV_OUTBOX];
  struct mmsghdr messages[CONTIV_OUTBOX];
  struct iovec iov[CONTIV_OUTBOX_PIECES];
} contiv_outbox_t;

/* contiv_outbox_add takes ownership of a packet. */
void contiv_outbox_add (vlib_main_t *vm, contiv_outbox_t *o, contiv_uplink_t *u, u32 bi);
/* contiv_outbox_send sends and frees the packets of the outbox. */
void contiv_outbox_send (vlib_main_t *vm, contiv_outbox_t *o);

/* ---- neighbours ---- */

/* contiv_peer_can reports whether the neighbour with an address accepts large packets. If the neighbour is not in the table, it is added
 * and queried later. */
bool contiv_peer_can (vlib_main_t *vm, contiv_uplink_t *u, const u8 *mac);
/* contiv_peer_frame processes a frame from the uplink if it is a message between plugins. It returns false for all other frames. */
bool contiv_peer_frame (vlib_main_t *vm, contiv_uplink_t *u, const u8 *frame, u32 len);
/* contiv_peers_ask queries the neighbours to which large packets are sent. It is called ten times per second. */
void contiv_peers_ask (vlib_main_t *vm);

#endif
