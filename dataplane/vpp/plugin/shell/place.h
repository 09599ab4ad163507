/* Position of packets on a feature arc. */
#ifndef CONTIV_PLACE_H
#define CONTIV_PLACE_H

#include <vnet/feature/feature.h>

/* A position on a feature arc, of a packet that continued from there. */
typedef struct
{
  u32 config, config_next; /* configuration indices before and after the feature; ~0: no packet yet */
  u16 next;
  u8 arc;
} place_t;

/* place_start initialises the position for a frame. */
static_always_inline void
place_start (place_t *p)
{
  p->config = ~0;
}

/* next_feature sends a packet to the next feature of its arc. Most packets of a frame are at the same position of the same arc: for them
 * the arc is evaluated once. */
static_always_inline u16
next_feature (place_t *p, vlib_buffer_t *b)
{
  if (PREDICT_FALSE (b->current_config_index != p->config || vnet_buffer (b)->feature_arc_index != p->arc))
    {
      u32 next;
      p->config = b->current_config_index;
      p->arc = vnet_buffer (b)->feature_arc_index;
      vnet_feature_next (&next, b);
      p->config_next = b->current_config_index;
      p->next = next;
    }
  b->current_config_index = p->config_next;
  return p->next;
}

#endif
