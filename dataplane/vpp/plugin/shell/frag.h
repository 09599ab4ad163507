/* The table of IP fragments: it stores the ports and the protocol of a packet from its first fragment, for the later ones. Plain C11 without
 * VPP headers.
 *
 * VPP's own virtual reassembly is not used: in 25.10 its IPv6 part drops every first fragment that enters by a custom next
 * node, both parts leak a buffer for each first fragment whose ports are read as zero, and all interfaces share 1 024
 * places. Here each interface has its own table, so that the fragments of one pod do not affect another pod.
 *
 * A later fragment that arrives before its first fragment waits, within limits. Any number of threads may call these
 * functions. */
#ifndef CONTIV_FRAG_H
#define CONTIV_FRAG_H

#include "../core/cv.h"

#define FRAG_WAITING  16 /* maximum number of fragments of one packet that wait for the first one */
#define FRAG_LIFETIME 20 /* tenths of seconds since the last fragment of a packet */
#define FRAG_WAIT     10 /* tenths of seconds that a fragment waits at most, whatever arrives after it */

typedef struct frags frags_t;

/* frags_new creates a table for a number of packets at a time. At most max_waiting fragments may wait. It returns NULL if
 * out of memory. */
frags_t *frags_new (uint32_t packets, uint32_t max_waiting, uint64_t seed);
void frags_free (frags_t *f); /* take the waiting fragments first: frags_expire */

/* Buffers that the table returns to the caller. */
typedef struct
{
  uint32_t n;
  uint32_t buffers[FRAG_WAITING];
} frags_out_t;

/* frags_learn stores the ports and the protocol of a first fragment that cv_parse has read. go returns the fragments that waited for it;
 * gone returns those of another packet whose entry was evicted. */
void frags_learn (frags_t *f, const cv_packet_t *p, uint32_t now, frags_out_t *go, frags_out_t *gone);

typedef enum
{
  FRAG_KNOWN,	/* p now has its ports and its protocol */
  FRAG_WAITS,	/* the table owns the buffer now */
  FRAG_REFUSED, /* too many fragments wait */
} frag_result_t;

/* frags_find fills in the ports and the protocol of a later fragment, or keeps its buffer until the first fragment arrives. */
frag_result_t frags_find (frags_t *f, cv_packet_t *p, uint32_t buffer, uint32_t now, frags_out_t *gone);

/* frags_expire returns fragments that have waited too long, those of at most one packet per call. False: there are no more. */
bool frags_expire (frags_t *f, uint32_t now, bool all, frags_out_t *gone);

#endif
