/* Services, their backends, and frontends. */
#include <stdlib.h>
#include "internal.h"

/* ---- services ---- */

/* service_get finds a service. If it does not exist and make is true, the service is created as undefined. */
static uint32_t
service_get (cv_main_t *m, uint64_t id, bool make)
{
  uint32_t hash = cv_hash_id (m, id), i = hash, index;
  while (cv_map_next (m->service_map.slots, hash, &i, &index))
    if (((cv_service_t *) cv_pool_at (&m->services, index))->id == id)
      return index;
  if (!make || (index = cv_pool_get (&m->services)) == CV_NO_INDEX)
    return CV_NO_INDEX;
  ((cv_service_t *) cv_pool_at (&m->services, index))->id = id;
  if (cv_map_add (m, &m->service_map, hash, index))
    return index;
  cv_pool_put (&m->services, index);
  return CV_NO_INDEX;
}

/* service_put deletes a service that is not defined and to which no frontend refers. Such a service is in no list. */
static void
service_put (cv_main_t *m, uint32_t index)
{
  cv_service_t *s = cv_pool_at (&m->services, index);
  if (s->defined || s->users)
    return;
  cv_map_del (&m->service_map, cv_hash_id (m, s->id), index);
  cv_retire_element (m, &m->services, index);
}

/* ---- Maglev (Eisenbud et al., NSDI 2016): each member fills the table in the order of its own permutation ---- */

static uint32_t
maglev_size (uint32_t n)
{
  static const uint32_t primes[] = { 251, 1021, 4093, 16381, 65521 };
  uint32_t i = 0;
  while (i < 4 && primes[i] < n * 50)
    i++;
  return primes[i];
}

static bool
maglev_fill (const cv_main_t *m, cv_members_t *l)
{
  const uint32_t *picks = cv_picks (l);
  uint32_t size = l->maglev_n, *table = l->member + l->n + l->n_picks, filled = 0;
  uint32_t *next = malloc (sizeof (uint32_t) * 2 * l->n_picks), *skip = next + l->n_picks;
  if (!next)
    return false;
  for (uint32_t i = 0; i < l->n_picks; i++)
    {
      const cv_backend_state_t *b = cv_pool_at (&m->backends, picks[i]);
      /* without the seed, so that all nodes have the same table */
      uint64_t h = cv_mum (b->addr.u64[0] ^ 0x9e3779b97f4a7c15, b->addr.u64[1] ^ 0xc2b2ae3d27d4eb4f ^ (uint64_t) b->port << 32);
      next[i] = (uint32_t) (h % size);
      skip[i] = (uint32_t) ((h >> 32) % (size - 1)) + 1;
    }
  memset (table, 0xff, sizeof (uint32_t) * size);
  while (filled < size)
    for (uint32_t i = 0; i < l->n_picks && filled < size; i++)
      {
	uint32_t at;
	do
	  {
	    at = next[i];
	    next[i] = at + skip[i] < size ? at + skip[i] : at + skip[i] - size;
	  }
	while (table[at] != CV_NO_INDEX);
	table[at] = picks[i];
	filled++;
      }
  free (next);
  return true;
}

static bool
is_kept (const cv_main_t *m, uint32_t backend)
{
  return ((const cv_backend_state_t *) cv_pool_at (&m->backends, backend))->flags & CV_BACKEND_KEEP;
}

/* fill_picks lists the members that get new connections: those without the flag KEEP; all if no member is without it. */
static void
fill_picks (const cv_main_t *m, cv_members_t *l)
{
  uint32_t *picks = l->member + l->n;
  for (uint32_t i = 0; i < l->n; i++)
    if (!is_kept (m, l->member[i]))
      picks[l->n_picks++] = l->member[i];
  if (l->n_picks)
    return;
  memcpy (picks, l->member, sizeof (uint32_t) * l->n);
  l->n_picks = l->n;
}

/* publish_members replaces the members of a service by a copy with one member added, one removed, or the same members. at is
 * the position of the member that is added or removed. */
static cv_result_t
publish_members (cv_main_t *m, cv_service_t *s, uint32_t at, uint32_t add, bool remove)
{
  cv_members_t *old = s->members, *l = NULL;
  uint32_t n = old ? old->n : 0, want = n + (add != CV_NO_INDEX) - remove;
  if (want)
    {
      uint32_t size = s->flags & CV_SERVICE_MAGLEV ? maglev_size (want) : 0;
      if (!(l = malloc (sizeof (*l) + sizeof (uint32_t) * (2 * (size_t) want + size))))
	return CV_NO_MEMORY;
      *l = (cv_members_t){ .n = want, .maglev_n = size };
      uint32_t k = 0;
      for (uint32_t i = 0; i < n; i++)
	{
	  if (i == at && add != CV_NO_INDEX)
	    l->member[k++] = add;
	  if (i != at || !remove)
	    l->member[k++] = old->member[i];
	}
      if (k < want)
	l->member[k] = add;
      fill_picks (m, l);
      if (size && !maglev_fill (m, l))
	{
	  free (l);
	  return CV_NO_MEMORY;
	}
    }
  cv_publish (&s->members, l);
  cv_retire (m, old);
  cv_changed (m);
  return CV_OK;
}

cv_result_t
cv_service_set (cv_main_t *m, uint64_t id, const char *name, uint8_t flags)
{
  if (!id || flags & ~CV_SERVICE_MAGLEV || !cv_name_valid (name))
    return CV_INVALID;
  uint32_t index = service_get (m, id, true);
  if (index == CV_NO_INDEX)
    return CV_NO_MEMORY;
  cv_service_t *s = cv_pool_at (&m->services, index);
  bool again = s->flags != flags;
  memcpy (s->name, name, CV_NAME_LEN);
  s->flags = flags;
  s->defined = true;
  return again && s->members ? publish_members (m, s, CV_NO_INDEX, CV_NO_INDEX, false) : CV_OK;
}

/* ---- backends ---- */

static int
compare (const cv_backend_state_t *b, const cv_backend_t *k)
{
  if (b->ip6 != k->ip6)
    return b->ip6 ? 1 : -1;
  int c = memcmp (b->addr.u8, k->addr.u8, 16);
  return c ? c : (int) b->port - (int) k->port;
}

/* cv_member_at finds the position of a backend in a service, or the position where it must be inserted. */
uint32_t
cv_member_at (const cv_main_t *m, const cv_members_t *l, const cv_backend_t *k, bool *found)
{
  uint32_t low = 0, high = l ? l->n : 0;
  *found = false;
  while (low < high)
    {
      uint32_t mid = (low + high) / 2;
      int c = compare (cv_pool_at (&m->backends, l->member[mid]), k);
      if (!c)
	{
	  *found = true;
	  return mid;
	}
      if (c < 0)
	low = mid + 1;
      else
	high = mid;
    }
  return low;
}

static uint32_t
direct_find (const cv_main_t *m, const cv_addr_t *a, uint16_t port, bool ip6, uint32_t hash)
{
  const cv_map_slots_t *s = cv_load_acquire (&m->direct_map.slots);
  uint32_t i = hash, index;
  while (cv_map_next (s, hash, &i, &index))
    {
      const cv_direct_t *d = cv_pool_at (&m->directs, index);
      if (d->port == port && d->ip6 == ip6 && cv_addr_equal (&d->addr, a))
	return index;
    }
  return CV_NO_INDEX;
}

static uint32_t
direct_hash (const cv_main_t *m, const cv_addr_t *a, uint16_t port, bool ip6)
{
  return cv_hash_addr (m, a, (uint64_t) port << 8 | ip6);
}

bool
cv_is_backend (const cv_main_t *m, const cv_addr_t *a, uint16_t port, bool ip6)
{
  return direct_find (m, a, port, ip6, direct_hash (m, a, port, ip6)) != CV_NO_INDEX;
}

static bool
direct_add (cv_main_t *m, const cv_backend_t *b)
{
  uint32_t hash = direct_hash (m, &b->addr, b->port, b->ip6), i = direct_find (m, &b->addr, b->port, b->ip6, hash);
  if (i == CV_NO_INDEX)
    {
      if ((i = cv_pool_get (&m->directs)) == CV_NO_INDEX)
	return false;
      cv_direct_t *d = cv_pool_at (&m->directs, i);
      *d = (cv_direct_t){ .addr = b->addr, .port = b->port, .ip6 = b->ip6 };
      if (!cv_map_add (m, &m->direct_map, hash, i))
	{
	  cv_pool_put (&m->directs, i);
	  return false;
	}
      cv_served_add (m, CV_SERVED_BACKEND, &b->addr, b->ip6);
    }
  ((cv_direct_t *) cv_pool_at (&m->directs, i))->n++;
  return true;
}

static void
direct_del (cv_main_t *m, const cv_addr_t *a, uint16_t port, bool ip6)
{
  uint32_t hash = direct_hash (m, a, port, ip6), i = direct_find (m, a, port, ip6, hash);
  if (i == CV_NO_INDEX || --((cv_direct_t *) cv_pool_at (&m->directs, i))->n)
    return;
  cv_map_del (&m->direct_map, hash, i);
  cv_served_del (m, CV_SERVED_BACKEND, a, ip6);
  cv_retire_element (m, &m->directs, i);
}

/* backend_gone marks a backend as gone. It gets no new connections; open connections keep it in state draining. The sweep
 * releases it. */
static void
backend_gone (cv_main_t *m, uint32_t index)
{
  cv_backend_state_t *b = cv_pool_at (&m->backends, index);
  direct_del (m, &b->addr, b->port, b->ip6);
  cv_publish (&b->gone, true);
  cv_changed (m); /* after gone is set: packets of clients that used this backend must not take the fast path */
  b->next_free = m->draining;
  m->draining = index;
}

static cv_result_t
remove_member (cv_main_t *m, cv_service_t *s, uint32_t at)
{
  uint32_t i = s->members->member[at];
  cv_result_t r = publish_members (m, s, at, CV_NO_INDEX, true);
  if (!r)
    backend_gone (m, i);
  return r;
}

#define EMPTYING_SWEEPS 3

static void
stop_emptying (cv_main_t *m, cv_service_t *s)
{
  if (!s->emptying)
    return;
  s->emptying = 0;
  if (s->prev_emptying == CV_NO_INDEX)
    m->emptying = s->next_emptying;
  else
    ((cv_service_t *) cv_pool_at (&m->services, s->prev_emptying))->next_emptying = s->next_emptying;
  if (s->next_emptying != CV_NO_INDEX)
    ((cv_service_t *) cv_pool_at (&m->services, s->next_emptying))->prev_emptying = s->prev_emptying;
}

/* leave_last keeps the last backend of a service for two or three sweeps. If another backend replaces it, that one is added
 * directly after this removal, and no client must be rejected in the meantime because there is no backend. */
static void
leave_last (cv_main_t *m, cv_service_t *s, uint32_t index)
{
  if (!s->emptying)
    {
      s->prev_emptying = CV_NO_INDEX;
      s->next_emptying = m->emptying;
      if (m->emptying != CV_NO_INDEX)
	((cv_service_t *) cv_pool_at (&m->services, m->emptying))->prev_emptying = index;
      m->emptying = index;
    }
  s->emptying = EMPTYING_SWEEPS;
}

/* cv_empty_services removes such backends; the sweep calls it. */
void
cv_empty_services (cv_main_t *m)
{
  for (uint32_t i = m->emptying; i != CV_NO_INDEX;)
    {
      cv_service_t *s = cv_pool_at (&m->services, i);
      i = s->next_emptying;
      if (s->emptying > 1)
	s->emptying--;
      else
	{
	  stop_emptying (m, s);
	  remove_member (m, s, 0);
	}
    }
}

cv_result_t
cv_backend_set (cv_main_t *m, uint64_t service, const cv_backend_t *b)
{
  if (b->flags & ~CV_BACKEND_FLAGS || !b->port || cv_addr_is_zero (&b->addr) || (!b->ip6 && (b->addr.u32[1] | b->addr.u64[1])))
    return CV_INVALID;
  uint32_t si = service_get (m, service, false);
  cv_service_t *s = si == CV_NO_INDEX ? NULL : cv_pool_at (&m->services, si);
  if (!s || !s->defined)
    return CV_NOT_FOUND;
  bool found;
  uint32_t at = cv_member_at (m, s->members, b, &found);
  if (found)
    {
      stop_emptying (m, s); /* this is the last backend, which now stays */
      cv_backend_state_t *state = cv_pool_at (&m->backends, s->members->member[at]);
      uint8_t before = state->flags;
      cv_store (&state->flags, b->flags);
      cv_changed (m);
      if (!((before ^ b->flags) & CV_BACKEND_KEEP))
	return CV_OK;
      cv_result_t r = publish_members (m, s, CV_NO_INDEX, CV_NO_INDEX, false);
      if (r)
	cv_store (&state->flags, before);
      return r;
    }
  uint32_t i = cv_pool_get (&m->backends);
  if (i == CV_NO_INDEX)
    return CV_NO_MEMORY;
  cv_backend_state_t *state = cv_pool_at (&m->backends, i);
  *state = (cv_backend_state_t){ .addr = b->addr, .port = b->port, .flags = b->flags, .ip6 = b->ip6, .service_id = service };
  if (!direct_add (m, b))
    {
      cv_pool_put (&m->backends, i);
      return CV_NO_MEMORY;
    }
  cv_result_t r = publish_members (m, s, at, i, false);
  if (r)
    {
      direct_del (m, &b->addr, b->port, b->ip6);
      cv_pool_put (&m->backends, i);
      return r;
    }
  if (!s->emptying)
    return CV_OK;
  /* the last backend was kept until this one was added */
  stop_emptying (m, s);
  return remove_member (m, s, !at);
}

cv_result_t
cv_backend_del (cv_main_t *m, uint64_t service, const cv_backend_t *b)
{
  uint32_t si = service_get (m, service, false);
  if (si == CV_NO_INDEX)
    return CV_NOT_FOUND;
  cv_service_t *s = cv_pool_at (&m->services, si);
  bool found;
  uint32_t at = cv_member_at (m, s->members, b, &found);
  if (!found)
    return CV_NOT_FOUND;
  if (s->members->n > 1)
    return remove_member (m, s, at);
  if (s->emptying)
    return CV_NOT_FOUND;
  leave_last (m, s, si);
  return CV_OK;
}

cv_result_t
cv_service_del (cv_main_t *m, uint64_t id)
{
  uint32_t index = service_get (m, id, false);
  cv_service_t *s = index == CV_NO_INDEX ? NULL : cv_pool_at (&m->services, index);
  if (!s || !s->defined)
    return CV_NOT_FOUND;
  stop_emptying (m, s);
  cv_members_t *l = s->members;
  cv_publish (&s->members, NULL);
  for (uint32_t i = 0; l && i < l->n; i++)
    backend_gone (m, l->member[i]);
  cv_retire (m, l);
  s->defined = false;
  service_put (m, index);
  cv_changed (m);
  return CV_OK;
}

/* release_drained releases backends that are gone and have no connection left. A worker may be about to create a connection: it
 * first increments the count, then checks whether the backend is gone, and if so decrements the count (decide.c). Therefore a
 * count of zero is final after the deferred release. */
void
cv_release_drained (cv_main_t *m)
{
  for (uint32_t *at = &m->draining, i; (i = *at) != CV_NO_INDEX;)
    {
      cv_backend_state_t *b = cv_pool_at (&m->backends, i);
      if (__atomic_load_n (&b->connections, __ATOMIC_SEQ_CST))
	{
	  at = &b->next_free;
	  continue;
	}
      *at = b->next_free;
      cv_retire_element (m, &m->backends, i);
    }
}

/* ---- frontends ---- */

static uint32_t
frontend_hash (const cv_main_t *m, const cv_addr_t *a, uint8_t proto, uint16_t port, bool ip6)
{
  return cv_hash_addr (m, a, (uint64_t) port << 16 | (uint64_t) proto << 8 | ip6);
}

cv_frontend_slot_t *
cv_frontend_find (const cv_main_t *m, const cv_addr_t *a, uint8_t proto, uint16_t port, bool ip6)
{
  uint32_t hash = frontend_hash (m, a, proto, port, ip6), i = hash, index;
  const cv_map_slots_t *s = cv_load_acquire (&m->frontend_map.slots);
  while (cv_map_next (s, hash, &i, &index))
    {
      cv_frontend_slot_t *f = cv_pool_at (&m->frontends, index);
      const cv_frontend_state_t *state = cv_load_acquire (&f->state);
      if (state && state->key.port == port && state->key.proto == proto && state->key.ip6 == ip6 && cv_addr_equal (&state->key.addr, a))
	return f;
    }
  return NULL;
}

static bool
target_valid (const cv_target_t *t)
{
  return t->action >= CV_ACTION_BALANCE && t->action <= CV_ACTION_DROP && !(t->flags & ~CV_TARGET_MASQ) &&
	 (t->action != CV_ACTION_BALANCE || t->service);
}

static bool
frontend_valid (const cv_frontend_key_t *k, const cv_frontend_t *f)
{
  bool proto = k->proto == CV_PROTO_TCP || k->proto == CV_PROTO_UDP || k->proto == CV_PROTO_SCTP;
  if (k->port ? !proto : k->proto != 0)
    return false;
  if (cv_addr_is_zero (&k->addr) || (!k->ip6 && (k->addr.u32[1] | k->addr.u64[1])) || !cv_name_valid (f->name))
    return false;
  /* a frontend without port has no port that could be translated to a backend's */
  if (!k->port && (f->in_cluster.service || f->outside.service))
    return false;
  if ((f->affinity_group != 0) != (f->affinity_timeout != 0) || f->affinity_timeout > 86400)
    return false;
  return target_valid (&f->in_cluster) && target_valid (&f->outside);
}

static void
release_state (cv_main_t *m, cv_frontend_state_t *s)
{
  for (int i = 0; i < 2; i++)
    if (s->service[i] != CV_NO_INDEX)
      {
	((cv_service_t *) cv_pool_at (&m->services, s->service[i]))->users--;
	service_put (m, s->service[i]);
      }
  if (s->ranges != CV_NO_INDEX)
    {
      ((cv_range_t *) cv_pool_at (&m->ranges, s->ranges))->users--;
      cv_range_put (m, s->ranges);
    }
  cv_retire (m, s);
}

/* make_state resolves the services and ranges to which a frontend refers. */
static cv_frontend_state_t *
make_state (cv_main_t *m, const cv_frontend_key_t *k, const cv_frontend_t *f)
{
  cv_frontend_state_t *s = malloc (sizeof (*s));
  if (!s)
    return NULL;
  *s = (cv_frontend_state_t){ .key = *k, .config = *f, .service = { CV_NO_INDEX, CV_NO_INDEX }, .ranges = CV_NO_INDEX };
  const cv_target_t *targets[2] = { &f->in_cluster, &f->outside };
  for (int i = 0; i < 2; i++)
    if (targets[i]->service)
      {
	if ((s->service[i] = service_get (m, targets[i]->service, true)) == CV_NO_INDEX)
	  goto no_memory;
	((cv_service_t *) cv_pool_at (&m->services, s->service[i]))->users++;
      }
  if (f->ranges)
    {
      if ((s->ranges = cv_range_get (m, f->ranges, true)) == CV_NO_INDEX)
	goto no_memory;
      ((cv_range_t *) cv_pool_at (&m->ranges, s->ranges))->users++;
    }
  return s;
no_memory:
  release_state (m, s);
  return NULL;
}

static void
frontend_changed (cv_main_t *m)
{
  __atomic_fetch_add (&m->frontends_epoch, 1, __ATOMIC_RELEASE);
  cv_changed (m); /* after the epoch: the fast path must not follow connections that have to be looked up again */
}

cv_result_t
cv_frontend_set (cv_main_t *m, const cv_frontend_key_t *k, const cv_frontend_t *f)
{
  if (!frontend_valid (k, f))
    return CV_INVALID;
  cv_frontend_state_t *s = make_state (m, k, f);
  if (!s)
    return CV_NO_MEMORY;
  cv_frontend_slot_t *slot = cv_frontend_find (m, &k->addr, k->proto, k->port, k->ip6);
  if (slot)
    {
      cv_frontend_state_t *old = slot->state;
      cv_publish (&slot->state, s);
      release_state (m, old);
      frontend_changed (m);
      return CV_OK;
    }
  uint32_t i = cv_pool_get (&m->frontends);
  if (i != CV_NO_INDEX)
    {
      slot = cv_pool_at (&m->frontends, i);
      slot->state = s;
      if (cv_map_add (m, &m->frontend_map, frontend_hash (m, &k->addr, k->proto, k->port, k->ip6), i))
	{
	  cv_served_add (m, CV_SERVED_FRONTEND, &k->addr, k->ip6);
	  frontend_changed (m);
	  return CV_OK;
	}
      slot->state = NULL;
      cv_pool_put (&m->frontends, i);
    }
  release_state (m, s);
  return CV_NO_MEMORY;
}

cv_result_t
cv_frontend_del (cv_main_t *m, const cv_frontend_key_t *k)
{
  uint32_t hash = frontend_hash (m, &k->addr, k->proto, k->port, k->ip6), i = hash, index;
  while (cv_map_next (m->frontend_map.slots, hash, &i, &index))
    {
      cv_frontend_slot_t *f = cv_pool_at (&m->frontends, index);
      const cv_frontend_key_t *have = &f->state->key;
      if (have->port != k->port || have->proto != k->proto || have->ip6 != k->ip6 || !cv_addr_equal (&have->addr, &k->addr))
	continue;
      cv_map_del (&m->frontend_map, hash, index);
      cv_served_del (m, CV_SERVED_FRONTEND, &k->addr, k->ip6);
      release_state (m, f->state);
      cv_retire_element (m, &m->frontends, index);
      frontend_changed (m);
      return CV_OK;
    }
  return CV_NOT_FOUND;
}

/* ---- walks ---- */

#define each_in_map(map, index)                                                                                                 \
  for (uint32_t i_ = 0, index; (map).slots && i_ <= (map).slots->mask; i_++)                                                    \
    if ((index = (uint32_t) (map).slots->slots[i_]) && index != CV_MAP_DEAD && (index--, true))

void
cv_service_walk (cv_main_t *m, void (*f) (void *, uint64_t, const char *, uint8_t, uint32_t), void *ctx)
{
  each_in_map (m->service_map, i)
  {
    const cv_service_t *s = cv_pool_at (&m->services, i);
    if (s->defined)
      f (ctx, s->id, s->name, s->flags, s->members && !s->emptying ? s->members->n : 0);
  }
}

static void
tell_backend (const cv_main_t *m, uint32_t index, bool leaving, void (*f) (void *, uint64_t, const cv_backend_t *, bool, uint32_t), void *ctx)
{
  const cv_backend_state_t *s = cv_pool_at (&m->backends, index);
  cv_backend_t b = { .addr = s->addr, .port = s->port, .ip6 = s->ip6, .flags = s->flags };
  f (ctx, s->service_id, &b, s->gone || leaving, cv_load (&s->connections));
}

void
cv_backend_walk (cv_main_t *m, uint64_t service, void (*f) (void *, uint64_t, const cv_backend_t *, bool, uint32_t), void *ctx)
{
  each_in_map (m->service_map, i)
  {
    const cv_service_t *s = cv_pool_at (&m->services, i);
    if (service && s->id != service)
      continue;
    for (uint32_t j = 0; s->members && j < s->members->n; j++)
      tell_backend (m, s->members->member[j], s->emptying, f, ctx);
  }
  for (uint32_t i = m->draining; i != CV_NO_INDEX; i = ((cv_backend_state_t *) cv_pool_at (&m->backends, i))->next_free)
    if (!service || ((cv_backend_state_t *) cv_pool_at (&m->backends, i))->service_id == service)
      tell_backend (m, i, true, f, ctx);
}

void
cv_frontend_walk (cv_main_t *m, void (*f) (void *, const cv_frontend_key_t *, const cv_frontend_t *, uint64_t), void *ctx)
{
  each_in_map (m->frontend_map, i)
  {
    const cv_frontend_slot_t *slot = cv_pool_at (&m->frontends, i);
    f (ctx, &slot->state->key, &slot->state->config, cv_load (&slot->new_connections));
  }
}
