/* What is known of IP fragments: which ports the later ones have, by their first one. Plain C11
 * without VPP headers.
 *
 * VPP's own virtual reassembly is not used: in 25.10 its IPv6 part drops every first fragment that
 * comes by a custom next node, both parts lose a buffer for each first fragment whose ports read as
 * zero, and all interfaces share 1 024 places. Here each interface has its own table, so that one
 * pod's fragments do not touch another's.
 *
 * A later fragment that comes before its first one waits, within bounds. Calls may come from any
 * number of threads. */
#ifndef CONTIV_FRAG_H
#define CONTIV_FRAG_H

#include "../core/cv.h"

#define FRAG_WAITING  16 /* fragments of one packet that may wait for its first one */
#define FRAG_LIFETIME 20 /* tenths of seconds since the last fragment of a packet */
#define FRAG_WAIT 10 /* tenths of seconds that a fragment waits at most */

typedef struct frags frags_t;

/* frags_new makes a table for some packets at a time, of whose fragments max_waiting may wait; NULL without memory. */
frags_t *frags_new (uint32_t packets, uint32_t max_waiting, uint64_t seed);
void frags_free (frags_t *f); /* take the waiting ones first */

/* Buffers that the table gives back. */
typedef struct
{
  uint32_t n;
  uint32_t buffers[FRAG_WAITING];
} frags_out_t;

/* frags_learn notes the ports of a first fragment that cv_parse has read. go gets the fragments that waited for it, gone those
 * of another packet that had to make room. */
void frags_learn (frags_t *f, const cv_packet_t *p, uint32_t now, frags_out_t *go, frags_out_t *gone);

typedef enum
{
  FRAG_KNOWN,	/* p has ports */
  FRAG_WAITS,	/* the table has the buffer */
  FRAG_REFUSED, /* too many wait */
} frag_result_t;

/* frags_find gives a later fragment its ports, or keeps its buffer. */
frag_result_t frags_find (frags_t *f, cv_packet_t *p, uint32_t buffer, uint32_t now, frags_out_t *gone);

/* frags_expire gives back what has waited too long, at most one packet's fragments a call; false: nothing is left to give. */
bool frags_expire (frags_t *f, uint32_t now, bool all, frags_out_t *gone);

#endif
