/* The configuration: endpoints, networks, source NAT, source ranges. Services are in services.c. */
#include <stdlib.h>
#include "policy.h"

#define DEFAULT_ENDPOINT_CONNECTIONS 16384
#define DEFAULT_PORT_LOW	     32768
#define DEFAULT_PORT_HIGH	     65535

bool
cv_name_valid (const char *name)
{
  return memchr (name, 0, CV_NAME_LEN) != NULL;
}

bool
cv_prefix_contains (const cv_prefix_t *p, const cv_addr_t *a)
{
  uint8_t full = p->len / 8, rest = p->len % 8;
  if (memcmp (p->addr.u8, a->u8, full))
    return false;
  return !rest || !((p->addr.u8[full] ^ a->u8[full]) >> (8 - rest));
}

cv_addr_t
cv_masked (const cv_addr_t *a, uint8_t len)
{
  cv_addr_t r = { 0 };
  memcpy (r.u8, a->u8, len / 8);
  if (len % 8)
    r.u8[len / 8] = a->u8[len / 8] & (uint8_t) (0xff << (8 - len % 8));
  return r;
}

/* cv_prefix_valid reports whether the prefix length is valid and no bit after the prefix is set. */
bool
cv_prefix_valid (const cv_prefix_t *p)
{
  if (p->len > (p->ip6 ? 128 : 32))
    return false;
  cv_addr_t a = cv_masked (&p->addr, p->len);
  return cv_addr_equal (&a, &p->addr);
}

/* ---- config ---- */

static void
fill_defaults (cv_config_t *c)
{
#define _(field, value)                                                                                                        \
  if (!c->field)                                                                                                               \
    c->field = value;
  _ (endpoint_connections, DEFAULT_ENDPOINT_CONNECTIONS)
  _ (tcp_established, 86400)
  _ (tcp_transitory, 60)
  _ (udp, 30)
  _ (udp_stream, 180)
  _ (icmp, 30)
  _ (sctp, 210)
#undef _
}

/* limit_of returns the connection limit of an endpoint. Connections from other endpoints than pods may use five eighths of the table,
 * and the affinity records of their clients another eighth (store_backend). The last quarter is reserved for pods. */
static uint32_t
limit_of (const cv_main_t *m, const cv_endpoint_t *e)
{
  if (e->max_connections)
    return e->max_connections;
  return e->role == CV_ROLE_POD ? m->config.endpoint_connections : m->config.connections_max - m->config.connections_max / 4 - m->config.connections_max / 8;
}

/* republish publishes a copy of an endpoint with a new limit. */
static bool
republish (cv_main_t *m, cv_endpoint_slot_t *slot)
{
  cv_endpoint_state_t *old = slot->state, *s = malloc (sizeof (*s));
  if (!s)
    return false;
  *s = *old;
  s->limit = limit_of (m, &s->config);
  cv_publish (&slot->state, s);
  cv_retire (m, old);
  return true;
}

cv_result_t
cv_config_set (cv_main_t *m, const cv_config_t *config)
{
  const uint32_t *first = &config->tcp_established;
  for (int i = 0; i < 6; i++)
    if (first[i] > 30 * 86400)
      return CV_INVALID;
  cv_config_t c = *config;
  c.connections_max = m->config.connections_max;
  c.set_members_max = m->config.set_members_max;
  fill_defaults (&c);
  bool limits = c.endpoint_connections != m->config.endpoint_connections;
  m->config = c;
  cv_changed (m);
  for (uint32_t i = 0; limits && i < CV_ENDPOINT_CHUNKS; i++)
    for (uint32_t j = 0; m->endpoints[i] && j < CV_ENDPOINT_CHUNK; j++)
      if (m->endpoints[i][j].state && !republish (m, &m->endpoints[i][j]))
	return CV_NO_MEMORY;
  return CV_OK;
}

void
cv_config_get (const cv_main_t *m, cv_config_t *config)
{
  *config = m->config;
}

/* ---- endpoints ---- */

static bool
make_tables (cv_main_t *m)
{
  for (int ip6 = 0; ip6 < 2; ip6++)
    if (!m->table[ip6].buckets && !cv_table_make (&m->table[ip6], m->config.connections_max))
      return false;
  return true;
}

static bool
endpoint_valid (const cv_endpoint_t *e)
{
  if (e->role < CV_ROLE_POD || e->role > CV_ROLE_OVERLAY || e->n_addresses > CV_ENDPOINT_ADDRESSES || e->egress >= CV_SNATS ||
      !cv_name_valid (e->name) || (e->table && e->role != CV_ROLE_HOST))
    return false;
  for (uint8_t i = 0; i < e->n_addresses; i++)
    {
      const cv_addr_t *a = &e->addresses[i].addr;
      if (cv_addr_is_zero (a) || (!e->addresses[i].ip6 && (a->u32[1] | a->u64[1])))
	return false;
    }
  return true;
}

static cv_endpoint_slot_t *
endpoint_slot (cv_main_t *m, uint32_t sw_if_index)
{
  uint32_t i = sw_if_index / CV_ENDPOINT_CHUNK;
  if (i >= CV_ENDPOINT_CHUNKS)
    return NULL;
  if (!m->endpoints[i])
    {
      cv_endpoint_slot_t *c = calloc (CV_ENDPOINT_CHUNK, sizeof (*c));
      cv_publish (&m->endpoints[i], c);
    }
  return m->endpoints[i] ? &m->endpoints[i][sw_if_index % CV_ENDPOINT_CHUNK] : NULL;
}

cv_result_t
cv_endpoint_set (cv_main_t *m, uint32_t sw_if_index, const cv_endpoint_t *e)
{
  if (!endpoint_valid (e))
    return CV_INVALID;
  if (sw_if_index >= CV_ENDPOINT_CHUNKS * CV_ENDPOINT_CHUNK)
    return CV_INVALID;
  cv_endpoint_slot_t *slot = endpoint_slot (m, sw_if_index);
  cv_endpoint_state_t *s = slot && make_tables (m) ? malloc (sizeof (*s)) : NULL;
  if (!s)
    return CV_NO_MEMORY;
  cv_endpoint_state_t *old = slot->state;
  *s = (cv_endpoint_state_t){ .config = *e, .owner = old ? old->owner : cv_pool_get (&m->owners), .limit = limit_of (m, e) };
  if (s->owner == CV_NO_INDEX || !cv_addresses_set (m, sw_if_index, old ? &old->config : NULL, e))
    {
      if (!old)
	cv_addresses_set (m, sw_if_index, e, NULL);
      if (!old && s->owner != CV_NO_INDEX)
	cv_pool_put (&m->owners, s->owner);
      free (s);
      return CV_NO_MEMORY;
    }
  if (!old)
    {
      cv_owner_t *o = cv_pool_at (&m->owners, s->owner);
      o->sw_if_index = sw_if_index;
      o->alive = true;
      m->n_endpoints++;
    }
  cv_publish (&slot->state, s);
  cv_retire (m, old);
  cv_policy_changed (m);
  cv_changed (m);
  return CV_OK;
}

cv_result_t
cv_endpoint_del (cv_main_t *m, uint32_t sw_if_index)
{
  cv_endpoint_state_t *s = cv_endpoint (m, sw_if_index);
  if (!s)
    return CV_NOT_FOUND;
  cv_publish (&m->endpoints[sw_if_index / CV_ENDPOINT_CHUNK][sw_if_index % CV_ENDPOINT_CHUNK].state, NULL);
  cv_addresses_set (m, sw_if_index, &s->config, NULL);
  cv_police_remove (m, sw_if_index);
  cv_policy_changed (m);
  /* the sweep ends the connections of the endpoint, and then releases the owner */
  cv_owner_t *o = cv_pool_at (&m->owners, s->owner);
  cv_store (&o->alive, false);
  o->next_free = m->dead_owners;
  m->dead_owners = s->owner;
  m->n_endpoints--;
  cv_retire (m, s);
  cv_changed (m);
  return CV_OK;
}

void
cv_endpoint_walk (cv_main_t *m, void (*f) (void *, uint32_t, const cv_endpoint_t *, const cv_endpoint_stats_t *), void *ctx)
{
  for (uint32_t i = 0; i < CV_ENDPOINT_CHUNKS; i++)
    for (uint32_t j = 0; m->endpoints[i] && j < CV_ENDPOINT_CHUNK; j++)
      {
	const cv_endpoint_state_t *s = m->endpoints[i][j].state;
	if (!s)
	  continue;
	const cv_owner_t *o = cv_pool_at (&m->owners, s->owner);
	cv_endpoint_stats_t stats = { .connections = { cv_load (&o->connections[0]), cv_load (&o->connections[1]) },
				      .spoofed = cv_load (&o->spoofed),
				      .refused = cv_load (&o->refused),
				      .denied = { cv_load (&o->denied[0]), cv_load (&o->denied[1]) } };
	f (ctx, i * CV_ENDPOINT_CHUNK + j, &s->config, &stats);
      }
}

/* ---- networks: one lookup for each prefix length in use, longest first ---- */

static uint32_t
hash_prefix (const cv_main_t *m, const cv_addr_t *a, uint8_t len, bool ip6)
{
  return cv_hash_addr (m, a, (uint64_t) len << 8 | ip6);
}

static uint32_t
network_find (const cv_main_t *m, const cv_addr_t *a, uint8_t len, bool ip6)
{
  uint32_t hash = hash_prefix (m, a, len, ip6), i = hash, index;
  const cv_map_slots_t *s = cv_load_acquire (&m->network_map.slots);
  while (cv_map_next (s, hash, &i, &index))
    {
      const cv_network_t *n = cv_pool_at (&m->networks, index);
      if (n->prefix.len == len && n->prefix.ip6 == ip6 && cv_addr_equal (&n->prefix.addr, a))
	return index;
    }
  return CV_NO_INDEX;
}

static void
count_length (cv_main_t *m, const cv_prefix_t *p, int by)
{
  uint32_t *n = &m->network_lens[p->ip6][p->len];
  *n += (uint32_t) by;
  uint64_t *mask = &m->network_mask[p->ip6][p->len / 64], bit = 1ull << p->len % 64;
  cv_store (mask, *n ? *mask | bit : *mask & ~bit);
}

cv_result_t
cv_network_set (cv_main_t *m, const cv_prefix_t *p, cv_class_t class)
{
  if (!cv_prefix_valid (p) || class > CV_CLASS_NODE)
    return CV_INVALID;
  uint32_t hash = hash_prefix (m, &p->addr, p->len, p->ip6), i = network_find (m, &p->addr, p->len, p->ip6);
  if (class == CV_CLASS_OUTSIDE)
    {
      if (i == CV_NO_INDEX)
	return CV_NOT_FOUND;
      cv_map_del (&m->network_map, hash, i);
      count_length (m, p, -1);
      cv_retire_element (m, &m->networks, i);
      cv_changed (m);
      return CV_OK;
    }
  if (i != CV_NO_INDEX)
    {
      cv_store (&((cv_network_t *) cv_pool_at (&m->networks, i))->class, (uint8_t) class);
      cv_changed (m);
      return CV_OK;
    }
  if ((i = cv_pool_get (&m->networks)) == CV_NO_INDEX)
    return CV_NO_MEMORY;
  cv_network_t *n = cv_pool_at (&m->networks, i);
  n->prefix = *p;
  n->class = (uint8_t) class;
  if (!cv_map_add (m, &m->network_map, hash, i))
    {
      cv_pool_put (&m->networks, i);
      return CV_NO_MEMORY;
    }
  count_length (m, p, 1);
  cv_changed (m);
  return CV_OK;
}

cv_class_t
cv_class_of (const cv_main_t *m, const cv_addr_t *a, bool ip6)
{
  for (int word = ip6 ? 2 : 0; word >= 0; word--)
    for (uint64_t bits = cv_load (&m->network_mask[ip6][word]); bits;)
      {
	int bit = 63 - __builtin_clzll (bits);
	bits &= ~(1ull << bit);
	uint8_t len = (uint8_t) (word * 64 + bit);
	cv_addr_t key = cv_masked (a, len);
	uint32_t i = network_find (m, &key, len, ip6);
	if (i != CV_NO_INDEX)
	  return cv_load (&((cv_network_t *) cv_pool_at (&m->networks, i))->class);
      }
  return CV_CLASS_OUTSIDE;
}

bool
cv_is_node (const cv_main_t *m, const cv_addr_t *a, bool ip6)
{
  uint8_t len = ip6 ? 128 : 32;
  if (!(cv_load (&m->network_mask[ip6][len / 64]) >> len % 64 & 1))
    return false;
  uint32_t i = network_find (m, a, len, ip6);
  return i != CV_NO_INDEX && cv_load (&((cv_network_t *) cv_pool_at (&m->networks, i))->class) == CV_CLASS_NODE;
}

uint32_t
cv_network_walk (cv_main_t *m, uint32_t cursor, uint32_t max, void (*f) (void *, const cv_prefix_t *, cv_class_t), void *ctx)
{
  const cv_map_slots_t *s = m->network_map.slots;
  if (!s)
    return 0;
  for (; cursor <= s->mask && max; cursor++, max--)
    {
      uint64_t v = s->slots[cursor];
      if (!v || (uint32_t) v == CV_MAP_DEAD)
	continue;
      const cv_network_t *n = cv_pool_at (&m->networks, (uint32_t) v - 1);
      f (ctx, &n->prefix, n->class);
    }
  return cursor <= s->mask ? cursor : 0;
}

/* ---- source NAT ---- */

cv_result_t
cv_snat_set (cv_main_t *m, uint32_t id, const cv_snat_t *s)
{
  if (id >= CV_SNATS)
    return CV_INVALID;
  cv_snat_t *old = m->snats[id], *new = NULL;
  if (!s && !old)
    return CV_NOT_FOUND;
  if (s)
    {
      cv_snat_t c = *s;
      if (!c.port_low)
	c.port_low = DEFAULT_PORT_LOW;
      if (!c.port_high)
	c.port_high = DEFAULT_PORT_HIGH;
      if (!cv_name_valid (c.name) || c.port_low > c.port_high || c.ip4.u32[1] || c.ip4.u64[1])
	return CV_INVALID;
      if (!(new = malloc (sizeof (*new))))
	return CV_NO_MEMORY;
      *new = c;
    }
  cv_publish (&m->snats[id], new);
  cv_retire (m, old);
  cv_changed (m);
  return CV_OK;
}

void
cv_snat_walk (cv_main_t *m, void (*f) (void *, uint32_t, const cv_snat_t *), void *ctx)
{
  for (uint32_t i = 0; i < CV_SNATS; i++)
    if (m->snats[i])
      f (ctx, i, m->snats[i]);
}

/* ---- source ranges ---- */

uint32_t
cv_hash_id (const cv_main_t *m, uint64_t id)
{
  return (uint32_t) (cv_mum (id ^ m->seed[0], m->seed[1] | 1) >> 16);
}

/* cv_range_get finds a set of source ranges. If it does not exist and make is true, the set is created without prefixes. */
uint32_t
cv_range_get (cv_main_t *m, uint64_t id, bool make)
{
  uint32_t hash = cv_hash_id (m, id), i = hash, index;
  while (cv_map_next (m->range_map.slots, hash, &i, &index))
    if (((cv_range_t *) cv_pool_at (&m->ranges, index))->id == id)
      return index;
  if (!make || (index = cv_pool_get (&m->ranges)) == CV_NO_INDEX)
    return CV_NO_INDEX;
  ((cv_range_t *) cv_pool_at (&m->ranges, index))->id = id;
  if (cv_map_add (m, &m->range_map, hash, index))
    return index;
  cv_pool_put (&m->ranges, index);
  return CV_NO_INDEX;
}

/* cv_range_put deletes a set of source ranges that has no prefix and to which no frontend refers. */
void
cv_range_put (cv_main_t *m, uint32_t index)
{
  cv_range_t *r = cv_pool_at (&m->ranges, index);
  if (r->users || r->prefixes)
    return;
  cv_map_del (&m->range_map, cv_hash_id (m, r->id), index);
  cv_retire_element (m, &m->ranges, index);
}

static int
prefix_at (const cv_prefixes_t *l, const cv_prefix_t *p)
{
  for (uint32_t i = 0; l && i < l->n; i++)
    if (l->prefix[i].len == p->len && l->prefix[i].ip6 == p->ip6 && cv_addr_equal (&l->prefix[i].addr, &p->addr))
      return (int) i;
  return -1;
}

cv_result_t
cv_range_set (cv_main_t *m, uint64_t id, const cv_prefix_t *p, bool is_add)
{
  if (!id || !cv_prefix_valid (p))
    return CV_INVALID;
  uint32_t index = cv_range_get (m, id, is_add);
  if (index == CV_NO_INDEX)
    return is_add ? CV_NO_MEMORY : CV_NOT_FOUND;
  cv_range_t *r = cv_pool_at (&m->ranges, index);
  cv_prefixes_t *old = r->prefixes, *new = NULL;
  uint32_t n = old ? old->n : 0;
  int at = prefix_at (old, p);
  if (is_add ? at >= 0 : at < 0)
    return is_add ? CV_OK : CV_NOT_FOUND;
  uint32_t want = is_add ? n + 1 : n - 1;
  if (want)
    {
      if (!(new = malloc (sizeof (*new) + sizeof (cv_prefix_t) * want)))
	return CV_NO_MEMORY;
      new->n = 0;
      for (uint32_t i = 0; i < n; i++)
	if ((int) i != at)
	  new->prefix[new->n++] = old->prefix[i];
      if (is_add)
	new->prefix[new->n++] = *p;
    }
  cv_publish (&r->prefixes, new);
  cv_retire (m, old);
  cv_range_put (m, index);
  cv_changed (m);
  return CV_OK;
}

bool
cv_in_ranges (const cv_main_t *m, uint32_t range, const cv_addr_t *a, bool ip6)
{
  const cv_prefixes_t *l = cv_load_acquire (&((cv_range_t *) cv_pool_at (&m->ranges, range))->prefixes);
  for (uint32_t i = 0; l && i < l->n; i++)
    if (l->prefix[i].ip6 == ip6 && cv_prefix_contains (&l->prefix[i], a))
      return true;
  return false;
}

void
cv_range_walk (cv_main_t *m, void (*f) (void *, uint64_t, const cv_prefix_t *), void *ctx)
{
  for (uint32_t i = 0; m->range_map.slots && i <= m->range_map.slots->mask; i++)
    {
      uint64_t v = m->range_map.slots->slots[i];
      if (!v || (uint32_t) v == CV_MAP_DEAD)
	continue;
      const cv_range_t *r = cv_pool_at (&m->ranges, (uint32_t) v - 1);
      for (uint32_t j = 0; r->prefixes && j < r->prefixes->n; j++)
	f (ctx, r->id, &r->prefixes->prefix[j]);
    }
}
