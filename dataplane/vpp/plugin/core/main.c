/* Creation and release of the core, the sweep, and inspection of connections. */
#include <stdlib.h>
#include "policy.h"

static void
seed_random (cv_main_t *m, uint64_t seed)
{
  /* splitmix64 (Steele et al., 2014) */
  uint64_t *out[] = { &m->seed[0], &m->seed[1], &m->seed[2], &m->seed[3] };
  for (uint32_t i = 0; i < 4 + 2 * m->n_workers; i++)
    {
      uint64_t z = seed += 0x9e3779b97f4a7c15;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      z ^= z >> 31;
      *(i < 4 ? out[i] : &m->workers[(i - 4) / 2].rng[i % 2]) = z;
    }
}

static void
init_pool (cv_pool_t *p, size_t size)
{
  p->size = (uint32_t) size;
  p->free = CV_NO_INDEX;
}

cv_main_t *
cv_new (const cv_config_t *config, uint32_t n_workers, uint64_t seed)
{
  cv_main_t *m = calloc (1, sizeof (*m));
  if (!m)
    return NULL;
  if (!n_workers || !config->connections_max || config->connections_max > 1u << 30 ||
      !(m->workers = cv_pages (sizeof (cv_worker_t) * n_workers)))
    {
      free (m);
      return NULL;
    }
  m->n_workers = n_workers;
  seed_random (m, seed);
  for (uint32_t i = 0; i < n_workers; i++)
    {
      m->workers[i].scanned = CV_NO_INDEX;
      m->workers[i].serial = i;
    }
  init_pool (&m->owners, sizeof (cv_owner_t));
  init_pool (&m->backends, sizeof (cv_backend_state_t));
  init_pool (&m->services, sizeof (cv_service_t));
  init_pool (&m->frontends, sizeof (cv_frontend_slot_t));
  init_pool (&m->directs, sizeof (cv_direct_t));
  init_pool (&m->networks, sizeof (cv_network_t));
  init_pool (&m->ranges, sizeof (cv_range_t));
  init_pool (&m->addresses, sizeof (cv_address_t));
  init_pool (&m->sets, sizeof (cv_set_state_t));
  init_pool (&m->members, sizeof (cv_member_state_t));
  init_pool (&m->policies, sizeof (cv_policy_state_t));
  m->last_batch = &m->batches;
  m->draining = m->emptying = CV_NO_INDEX;
  m->dead_owners = CV_NO_INDEX;
  m->config.connections_max = config->connections_max;
  m->config.set_members_max = config->set_members_max ? config->set_members_max : 1u << 20;
  if (cv_config_set (m, config))
    {
      cv_free (m);
      return NULL;
    }
  return m;
}

static void
free_states (cv_main_t *m)
{
  for (uint32_t i = 0; i < CV_ENDPOINT_CHUNKS; i++)
    {
      for (uint32_t j = 0; m->endpoints[i] && j < CV_ENDPOINT_CHUNK; j++)
	free (m->endpoints[i][j].state);
      free (m->endpoints[i]);
    }
  for (uint32_t i = 0; i < CV_SNATS; i++)
    free (m->snats[i]);
}

/* free_map frees the memory that the elements of a map point to (at offset pointer), and the map. */
static void
free_map (cv_map_t *map, cv_pool_t *pool, size_t pointer)
{
  for (uint32_t i = 0; map->slots && i <= map->slots->mask; i++)
    {
      uint32_t v = (uint32_t) map->slots->slots[i];
      if (v && v != CV_MAP_DEAD && pointer)
	free (*(void **) ((uint8_t *) cv_pool_at (pool, v - 1) + pointer));
    }
  free (map->slots);
}

void
cv_free (cv_main_t *m)
{
  cv_gc_free (m);
  cv_policies_free (m);
  cv_sets_free (m);
  free_states (m);
  free_map (&m->service_map, &m->services, offsetof (cv_service_t, members));
  free_map (&m->frontend_map, &m->frontends, offsetof (cv_frontend_slot_t, state));
  free_map (&m->range_map, &m->ranges, offsetof (cv_range_t, prefixes));
  free_map (&m->direct_map, &m->directs, 0);
  free_map (&m->network_map, &m->networks, 0);
  cv_pool_t *pools[] = { &m->owners, &m->backends, &m->services, &m->frontends, &m->directs, &m->networks, &m->ranges,
			 &m->addresses, &m->sets, &m->members, &m->policies };
  for (size_t i = 0; i < sizeof (pools) / sizeof (*pools); i++)
    cv_pool_free (pools[i]);
  cv_table_free (&m->table[0]);
  cv_table_free (&m->table[1]);
  cv_pages_free (m->workers, sizeof (cv_worker_t) * m->n_workers);
  free (m);
}

/* ---- time ---- */

static uint32_t
tcp_timeout (const cv_main_t *m, const cv_connection_t *c, bool gone)
{
  switch (c->state)
    {
    case CV_STATE_OPEN:
      /* a FIN that is not acknowledged: its receiver may have gone away */
      if (c->fins & (CV_FIN_SENT | CV_FIN_SENT << 1) && m->config.tcp_established > CV_TCP_CLOSING)
	return CV_TCP_CLOSING;
      return m->config.tcp_established;
    case CV_STATE_CLOSING:
      if (c->fins & (CV_RESET | CV_RESET << 1))
	return gone ? CV_GONE_CLOSING : CV_TCP_RESET;
      return gone ? CV_GONE_CLOSING : CV_TCP_CLOSING;
    case CV_STATE_CLOSED:
      return CV_TCP_CLOSED;
    default:
      return m->config.tcp_transitory;
    }
}

uint32_t
cv_timeout (const cv_main_t *m, const cv_connection_t *c)
{
  if (c->flags & CV_CONN_AFFINITY)
    return c->timeout;
  uint32_t seconds;
  switch (c->key[0].proto)
    {
    case CV_PROTO_TCP:
      seconds = tcp_timeout (m, c, cv_backend_gone (m, c));
      break;
    case CV_PROTO_UDP:
      seconds = c->state == CV_STATE_OPEN ? m->config.udp_stream : m->config.udp;
      break;
    case CV_PROTO_SCTP:
      seconds = m->config.sctp;
      break;
    default:
      seconds = m->config.icmp;
    }
  /* the connection is kept so that packets that its ends send without a request are not treated as a new connection */
  if (cv_load (&c->judged) & CV_JUDGED_DENIED && seconds > CV_DENIED_TIMEOUT)
    seconds = CV_DENIED_TIMEOUT;
  return seconds * CV_TICKS_PER_SECOND;
}

static uint32_t
idle (const cv_connection_t *c, uint32_t now)
{
  /* another worker may have a later tick */
  int32_t d = (int32_t) (now - cv_load (&c->last_seen));
  return d > 0 ? (uint32_t) d : 0;
}

bool
cv_expired (const cv_main_t *m, const cv_connection_t *c, uint32_t now)
{
  return idle (c, now) >= cv_timeout (m, c);
}

static bool
must_end (cv_main_t *m, cv_connection_t *c, uint32_t now)
{
  if (cv_expired (m, c, now))
    return true;
  if (c->flags & CV_CONN_AFFINITY)
    return false;
  /* a worker that has lost the race for a new connection is ending it at this moment: it has no owner */
  uint32_t owner = cv_load (&c->owner);
  if (owner == CV_NO_INDEX || !cv_load (&((cv_owner_t *) cv_pool_at (&m->owners, owner))->alive))
    return true;
  return c->key[0].proto == CV_PROTO_UDP && cv_may_be_unserved (m, c) && !cv_still_served (m, c);
}

static void
sweep_table (cv_main_t *m, bool ip6, uint32_t now)
{
  cv_table_t *t = &m->table[ip6];
  if (!t->buckets)
    return;
  uint32_t high = cv_load_acquire (&t->high), n = high / CV_TICKS_PER_SECOND + 1;
  for (uint32_t i = 0; i < n && high; i++)
    {
      if (t->cursor >= high)
	t->cursor = 0;
      cv_connection_t *c = &t->connections[t->cursor];
      if (cv_load_acquire (&c->alive) && must_end (m, c, now))
	cv_connection_end (m, ip6, t->cursor);
      t->cursor++;
    }
}

/* release_owners releases the records of deleted endpoints when their last connection has ended. */
static void
release_owners (cv_main_t *m)
{
  for (uint32_t *at = &m->dead_owners, i; (i = *at) != CV_NO_INDEX;)
    {
      cv_owner_t *o = cv_pool_at (&m->owners, i);
      if (__atomic_load_n (&o->connections[0], __ATOMIC_SEQ_CST) || __atomic_load_n (&o->connections[1], __ATOMIC_SEQ_CST))
	{
	  at = &o->next_free;
	  continue;
	}
      *at = o->next_free;
      cv_retire_element (m, &m->owners, i);
    }
}

void
cv_sweep (cv_main_t *m, uint32_t now)
{
  sweep_table (m, false, now);
  sweep_table (m, true, now);
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
  cv_empty_services (m);
  cv_release_drained (m);
  release_owners (m);
  cv_gc (m);
}

bool
cv_idle (const cv_main_t *m)
{
  return !cv_load (&m->table[0].n) && !cv_load (&m->table[1].n) && !m->batches && !m->retired && m->draining == CV_NO_INDEX && m->emptying == CV_NO_INDEX &&
	 m->dead_owners == CV_NO_INDEX;
}

/* ---- inspection of connections ---- */

uint32_t
cv_connection_walk (cv_main_t *m, bool ip6, uint32_t cursor, uint32_t max, uint32_t now, void (*f) (void *, const cv_connection_info_t *), void *ctx)
{
  cv_table_t *t = &m->table[ip6];
  uint32_t high = t->buckets ? cv_load_acquire (&t->high) : 0;
  for (; cursor < high && max; cursor++, max--)
    {
      const cv_connection_t *c = &t->connections[cursor];
      if (!cv_load_acquire (&c->alive) || c->flags & CV_CONN_AFFINITY || !c->state)
	continue;
      uint32_t for_ticks = idle (c, now), timeout = cv_timeout (m, c);
      cv_connection_info_t info = {
	.proto = c->key[0].proto,
	.state = c->state == CV_STATE_ANSWERED ? CV_STATE_NEW : c->state,
	.ip6 = ip6,
	.client = c->key[0].src,
	.client_port = c->key[0].sport,
	.frontend = c->key[0].dst,
	.frontend_port = c->key[0].dport,
	.source = c->key[1].dst,
	.source_port = c->key[1].dport,
	.backend = c->key[1].src,
	.backend_port = c->key[1].sport,
	.sw_if_index = c->owner == CV_NO_INDEX ? CV_NO_INDEX : ((cv_owner_t *) cv_pool_at (&m->owners, c->owner))->sw_if_index,
	.idle = for_ticks / CV_TICKS_PER_SECOND,
	.expires = timeout > for_ticks ? (timeout - for_ticks) / CV_TICKS_PER_SECOND : 0,
	.denied = cv_load (&c->judged) & CV_JUDGED_DENIED,
      };
      f (ctx, &info);
    }
  return cursor < high ? cursor : 0;
}

cv_result_t
cv_connection_del (cv_main_t *m, const cv_tuple_t *t)
{
  uint32_t direction;
  if (!m->table[t->ip6].buckets || t->proto == CV_PROTO_AFFINITY)
    return CV_NOT_FOUND;
  uint32_t i = cv_table_find (&m->table[t->ip6], t, cv_hash (m, t), &direction);
  return i != CV_NO_INDEX && !direction && cv_connection_end (m, t->ip6, i) ? CV_OK : CV_NOT_FOUND;
}

void
cv_stats_get (const cv_main_t *m, cv_stats_t *s)
{
  *s = (cv_stats_t){ .connections_max = m->config.connections_max };
  for (int ip6 = 0; ip6 < 2; ip6++)
    s->connections[ip6] = cv_load (&m->table[ip6].n) - cv_load (&m->table[ip6].n_affinities);
  for (uint32_t i = 0; i < m->n_workers; i++)
    for (int r = 0; r < CV_N_REASONS; r++)
      s->counters[r] += cv_load (&m->workers[i].counters[r]);
}
