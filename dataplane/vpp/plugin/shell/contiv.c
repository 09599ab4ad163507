/* The plugin: registration, startup configuration, start, and the sweep. */
#include <sys/random.h>
#include <vnet/plugin/plugin.h>
#include "uplink.h"

#define CONNECTIONS_MIN	    1024
#define CONNECTIONS_MAX	    (1 << 24)
#define CONNECTIONS_DEFAULT (1 << 18)
#define SET_MEMBERS_MAX	    (1 << 24)

contiv_main_t contiv_main;

VLIB_PLUGIN_REGISTER () = {
  .version = "1.0.0",
  .version_required = "25.10",
  .description = "Contiv: services, source NAT, the source check of pods, and network policy",
};

vlib_error_desc_t contiv_errors[CONTIV_N_ERRORS] = {
#define pass(name) (name == CV_PASSED || name == CV_TRANSLATED || name == CV_CREATED)
#define _(name, text) [CV_##name] = { #name, text, pass (CV_##name) ? VL_COUNTER_SEVERITY_INFO : VL_COUNTER_SEVERITY_ERROR },
  CV_FOREACH_REASON (_)
#undef _
#undef pass
#define _(name, text) [CONTIV_ERROR_##name] = { #name, text, VL_COUNTER_SEVERITY_INFO },
  CONTIV_FOREACH_ERROR (_)
#undef _
};

/* ---- order: our features run before all other features of their arcs, including those of other plugins ---- */

static void
runs_before_all (vnet_feature_registration_t *ours)
{
  char **names = 0;
  for (vnet_feature_registration_t *f = feature_main.next_feature; f; f = f->next)
    if (f != ours && !strcmp (f->arc_name, ours->arc_name))
      vec_add1 (names, f->node_name);
  vec_add1 (names, 0);
  ours->runs_before = names;
}

static void
set_order (void)
{
  for (vnet_feature_registration_t *f = feature_main.next_feature; f; f = f->next)
    if (!strncmp (f->node_name, "contiv-", 7))
      runs_before_all (f);
}

/* startup.conf: contiv { connections N set-members N no-backlog-control }. This is an early configuration function, because at this time all plugins are
 * loaded and no feature arc has been created yet. */
static clib_error_t *
contiv_config (vlib_main_t *vm, unformat_input_t *input)
{
  set_order ();
  contiv_main.connections = CONNECTIONS_DEFAULT;
  while (unformat_check_input (input) != UNFORMAT_END_OF_INPUT)
    {
      u32 n;
      if (unformat (input, "set-members %u", &n))
	{
	  if (!n || n > SET_MEMBERS_MAX)
	    return clib_error_return (0, "contiv: set-members %u: give 1 to %u", n, SET_MEMBERS_MAX);
	  contiv_main.set_members = n;
	  continue;
	}
      if (unformat (input, "no-backlog-control"))
	{
	  contiv_main.no_backlogs = true;
	  continue;
	}
      if (!unformat (input, "connections %u", &n))
	return clib_error_return (0, "contiv: unknown input '%U'; known are: connections N, set-members N, no-backlog-control", format_unformat_error, input);
      if (n < CONNECTIONS_MIN || n > CONNECTIONS_MAX)
	return clib_error_return (0, "contiv: connections %u: give %u to %u", n, CONNECTIONS_MIN, CONNECTIONS_MAX);
      contiv_main.connections = n;
    }
  return 0;
}

VLIB_EARLY_CONFIG_FUNCTION (contiv_config, "contiv");

static clib_error_t *
contiv_init (vlib_main_t *vm)
{
  contiv_main_t *cm = &contiv_main;
  if (getrandom (&cm->seed, sizeof (cm->seed), 0) != sizeof (cm->seed))
    return clib_error_return_unix (0, "contiv: getrandom");
  return contiv_api_init ();
}

VLIB_INIT_FUNCTION (contiv_init);

/* The core is created after the configuration has been read and the number of threads is known. */
static clib_error_t *
contiv_start (vlib_main_t *vm)
{
  contiv_main_t *cm = &contiv_main;
  cv_config_t config = { .connections_max = cm->connections, .set_members_max = cm->set_members };
  u32 n_threads = vlib_get_n_threads ();
  cm->core = cv_new (&config, n_threads, cm->seed);
  if (!cm->core)
    return clib_error_return (0, "contiv: no memory for its core");
  vec_validate_aligned (cm->workers, n_threads - 1, CLIB_CACHE_LINE_BYTES);
  return 0;
}

VLIB_MAIN_LOOP_ENTER_FUNCTION (contiv_start);

/* ---- the sweep: it runs ten times per second while there is something to sweep, and sleeps otherwise; some of its tasks run once per
 * second ---- */

static uword
contiv_sweep (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  contiv_main_t *cm = &contiv_main;
  f64 next_second = 0;
  while (1)
    {
      if (!cm->n_endpoints && cv_idle (cm->core))
	vlib_process_wait_for_event (vm);
      else
	vlib_process_wait_for_event_or_clock (vm, 0.1);
      vlib_process_get_events (vm, 0);
      u32 now = contiv_now (vm);
      cv_sweep (cm->core, now);
      contiv_fragments_expire (vm, now);
      contiv_resolve (vm);
      contiv_peers_ask (vm);
      contiv_uplinks_follow (vm);
      contiv_free_delivered ();
      if (vlib_time_now (vm) < next_second)
	continue;
      next_second = vlib_time_now (vm) + 1.0;
      contiv_uplinks_open (vm);
      contiv_count_overruns (vm);
      contiv_receive_waiting ();
      contiv_limit_neighbours (vm);
    }
  return 0;
}

VLIB_REGISTER_NODE (contiv_sweep_node) = {
  .function = contiv_sweep,
  .type = VLIB_NODE_TYPE_PROCESS,
  .name = "contiv-sweep",
};

void
contiv_wake (vlib_main_t *vm)
{
  vlib_process_signal_event (vm, contiv_sweep_node.index, 1, 0);
}
