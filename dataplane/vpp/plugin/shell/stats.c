/* Gauges of the statistics segment. Counters of packets are error counters of the nodes: /err/contiv-ip4-input/... */
#include "contiv.h"
#include <vlib/stats/stats.h>

typedef enum
{
  GAUGE_CONNECTIONS4,
  GAUGE_CONNECTIONS6,
  GAUGE_CONNECTIONS_MAX,
} gauge_t;

static void
collect (vlib_stats_collector_data_t *d)
{
  cv_stats_t s;
  if (!contiv_main.core)
    return;
  cv_stats_get (contiv_main.core, &s);
  d->entry->value = d->private_data == GAUGE_CONNECTIONS_MAX ? s.connections_max : s.connections[d->private_data];
}

static clib_error_t *
contiv_stats_init (vlib_main_t *vm)
{
  static char *names[] = { "/contiv/connections4", "/contiv/connections6", "/contiv/connections-max" };
  for (u32 i = 0; i < ARRAY_LEN (names); i++)
    {
      vlib_stats_collector_reg_t r = { .collect_fn = collect, .private_data = i };
      r.entry_index = vlib_stats_add_gauge ("%s", names[i]);
      vlib_stats_register_collector_fn (&r);
    }
  return 0;
}

VLIB_INIT_FUNCTION (contiv_stats_init);
