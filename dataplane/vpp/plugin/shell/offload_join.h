/* Joins the TCP segments of a frame for a TAP with GSO: one system call and one pass through the kernel replace many. No packet
 * waits for the next frame. Part of offload_output.c. */
#ifndef CONTIV_OFFLOAD_JOIN_H
#define CONTIV_OFFLOAD_JOIN_H

#include "offload.h"
#include <vnet/devices/virtio/virtio.h>

#define JOIN_SLOTS 8 /* number of connections at a time */

typedef struct
{
  cv_join_t packets;
  u32 sw_if_index;
  vlib_buffer_t *first, *last;
} join_slot_t;

typedef struct
{
  u32 n, oldest, joined;
  u32 sw_if_index; /* the interface for which joins is valid */
  bool joins;
  join_slot_t slots[JOIN_SLOTS];
} joiner_t;

static_always_inline void
join_start (joiner_t *j)
{
  j->n = j->oldest = j->joined = 0;
  j->sw_if_index = ~0;
}

static void
join_finish_one (join_slot_t *s)
{
  if (s->packets.n == 1)
    return;
  cv_headers_t h = { .n_layers = 1, .headers = s->packets.headers };
  h.layers[0] = (cv_layer_t){ .l3 = 14, .l4 = s->packets.ip6 ? 54 : 34, .ip6 = s->packets.ip6 };
  cv_join_finish (&s->packets);
  contiv_set_large (s->first, &h, s->packets.gso_size);
  s->first->total_length_not_including_first_buffer = s->packets.headers + s->packets.payload - s->first->current_length;
  s->first->flags |= VLIB_BUFFER_TOTAL_LENGTH_VALID;
}

/* join_finish finishes all joined packets; they may be sent afterwards. */
static_always_inline void
join_finish (joiner_t *j)
{
  for (u32 i = 0; i < j->n; i++)
    join_finish_one (&j->slots[i]);
  j->n = 0;
}

/* takes_joined reports whether an interface is a TAP with GSO. Packets to a NIC are not joined, so that they leave unchanged. */
static_always_inline bool
takes_joined (joiner_t *j, u32 sw_if_index)
{
  if (PREDICT_TRUE (sw_if_index == j->sw_if_index))
    return j->joins;
  const vnet_hw_interface_t *hi = vnet_get_sup_hw_interface (vnet_get_main (), sw_if_index);
  j->sw_if_index = sw_if_index;
  return j->joins = (hi->caps & VNET_HW_IF_CAP_TCP_GSO) && hi->dev_class_index == virtio_device_class.index;
}

static void
append (joiner_t *j, join_slot_t *s, vlib_buffer_t *b, u32 bi, u32 headers)
{
  vlib_buffer_advance (b, headers);
  s->last->next_buffer = bi;
  s->last->flags |= VLIB_BUFFER_NEXT_PRESENT;
  s->last = b;
  j->joined++;
}

/* join appends a packet to an earlier one of this frame. If it returns false, the packet is sent by itself, and others may be
 * appended to it. */
static bool
join (joiner_t *j, vlib_buffer_t *b, u32 bi)
{
  u32 sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_TX];
  const u32 not_plain = VLIB_BUFFER_NEXT_PRESENT | VLIB_BUFFER_IS_TRACED | VNET_BUFFER_F_GSO | VNET_BUFFER_F_OFFLOAD;
  cv_join_t k;
  if (!takes_joined (j, sw_if_index) || (b->flags & not_plain) || b->ref_count != 1 ||
      !cv_join_read (&k, vlib_buffer_get_current (b), b->current_length))
    return false;
  join_slot_t *s = j->slots, *end = s + j->n;
  while (s < end && (s->sw_if_index != sw_if_index || !cv_join_same (&s->packets, &k)))
    s++;
  if (s < end && cv_join (&s->packets, &k))
    {
      append (j, s, b, bi, k.headers);
      return true;
    }
  if (s < end)
    join_finish_one (s);
  else if (j->n < JOIN_SLOTS)
    j->n++;
  else
    {
      s = &j->slots[j->oldest++ % JOIN_SLOTS];
      join_finish_one (s);
    }
  *s = (join_slot_t){ k, sw_if_index, b, b };
  return false;
}

#endif
