/* Large packets on an uplink that VPP has by AF_PACKET: uplink.c. VPP's rings carry packets up to the MTU; what is longer goes by sockets of ours, with
 * a virtio header, so that the kernel cuts it, or does not have to. */
#ifndef CONTIV_UPLINK_H
#define CONTIV_UPLINK_H

#include "contiv.h"
#include "../core/offload.h"

struct contiv_uplink
{
  int large, plain, rx; /* sockets: for what the kernel cuts, for whole packets, and from the uplink */
  u32 file;		/* of rx, in VPP's table */
  u32 sw_if_index, hw_if_index, device;
  u32 longest; /* frame that VPP's rings carry */
  bool no_trains; /* the kernel does not know UDP segmentation (before Linux 6.2) */
};

static_always_inline contiv_uplink_t *
contiv_uplink (u32 sw_if_index)
{
  contiv_main_t *cm = &contiv_main;
  return sw_if_index < vec_len (cm->interfaces) ? cm->interfaces[sw_if_index].uplink : 0;
}

/* contiv_uplink_open gives an interface its sockets; NULL: it is not AF_PACKET, or the kernel refuses. */
contiv_uplink_t *contiv_uplink_open (vlib_main_t *vm, u32 sw_if_index);
/* contiv_uplink_close leaves everything to VPP's rings again. */
void contiv_uplink_close (contiv_uplink_t *u);

typedef enum
{
  CONTIV_UPLINK_SENT,
  CONTIV_UPLINK_REFUSED, /* the kernel has no room, or the device is down: drop */
  CONTIV_UPLINK_CUT,	 /* is to be cut here */
} contiv_uplink_result_t;

/* contiv_uplink_large sends a packet of several segments. */
contiv_uplink_result_t contiv_uplink_large (contiv_uplink_t *u, cv_segmenter_t *s);
/* contiv_uplink_plain sends a whole packet; VPP's ring would send it behind large ones that follow. */
contiv_uplink_result_t contiv_uplink_plain (contiv_uplink_t *u, const cv_piece_t *pieces, u32 n);

#endif
