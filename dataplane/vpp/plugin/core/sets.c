/* Sets of addresses and ports to which rules refer. One hash table contains the members of all sets: adding or removing a
 * member costs the same for any number of members. */
#include <stdlib.h>
#include "policy.h"

#define DEAD UINT32_MAX

/* ---- the table of members: one writer, any number of readers ---- */

static uint32_t
member_hash (const cv_main_t *m, uint32_t set, const cv_addr_t *a, bool ip6, uint8_t len, uint8_t proto, uint16_t port)
{
  return cv_hash_addr (m, a, (uint64_t) set << 40 | (uint64_t) port << 24 | (uint64_t) proto << 16 | (uint64_t) len << 8 | ip6);
}

static uint32_t
member_find (const cv_main_t *m, uint32_t set, const cv_addr_t *a, bool ip6, uint8_t len, uint8_t proto, uint16_t port)
{
  const cv_set_slots_t *s = cv_load_acquire (&m->member_slots);
  if (!s)
    return CV_NO_INDEX;
  uint32_t v;
  for (uint32_t i = member_hash (m, set, a, ip6, len, proto, port); (v = cv_load_acquire (&s->slots[i & s->mask])); i++)
    {
      if (v == DEAD)
	continue;
      const cv_member_state_t *e = cv_pool_at (&m->members, v - 1);
      if (e->set == set && e->len == len && e->port == port && e->proto == proto && e->ip6 == ip6 && cv_addr_equal (&e->addr, a))
	return v - 1;
    }
  return CV_NO_INDEX;
}

static uint32_t
hash_of (const cv_main_t *m, const cv_member_state_t *e)
{
  return member_hash (m, e->set, &e->addr, e->ip6, e->len, e->proto, e->port);
}

/* place stores a member in the first slot that is free or dead. */
static void
place (cv_main_t *m, cv_set_slots_t *s, uint32_t index)
{
  uint32_t i = hash_of (m, cv_pool_at (&m->members, index)), v;
  while ((v = s->slots[i & s->mask]) && v != DEAD)
    i++;
  s->used += !v;
  cv_publish (&s->slots[i & s->mask], index + 1);
}

/* make_room copies the table to one without dead slots when three quarters of it are used. */
static bool
make_room (cv_main_t *m)
{
  cv_set_slots_t *old = m->member_slots;
  if (old && (old->used + 1ull) * 4 <= (old->mask + 1ull) * 3)
    return true;
  uint32_t members = 1, size = 64;
  for (uint32_t i = 0; old && i <= old->mask; i++)
    members += old->slots[i] && old->slots[i] != DEAD;
  while (size < members * 2ull)
    size *= 2;
  cv_set_slots_t *s = calloc (1, sizeof (*s) + sizeof (uint32_t) * size);
  if (!s)
    return false;
  s->mask = size - 1;
  for (uint32_t i = 0; old && i <= old->mask; i++)
    if (old->slots[i] && old->slots[i] != DEAD)
      place (m, s, old->slots[i] - 1);
  cv_publish (&m->member_slots, s);
  cv_retire (m, old);
  return true;
}

/* ---- sets ---- */

/* cv_set_get finds a set. If it does not exist and make is true, the set is created as undefined. */
uint32_t
cv_set_get (cv_main_t *m, uint64_t id, bool make)
{
  uint32_t hash = cv_hash_id (m, id), i = hash, index;
  while (cv_map_next (m->set_map.slots, hash, &i, &index))
    if (cv_set_at (m, index)->id == id)
      return index;
  if (!make || (index = cv_pool_get (&m->sets)) == CV_NO_INDEX)
    return CV_NO_INDEX;
  cv_set_state_t *s = cv_pool_at (&m->sets, index);
  s->id = id;
  s->first = CV_NO_INDEX;
  if (cv_map_add (m, &m->set_map, hash, index))
    return index;
  cv_pool_put (&m->sets, index);
  return CV_NO_INDEX;
}

/* cv_set_put deletes a set that is not defined and to which no rule refers. */
void
cv_set_put (cv_main_t *m, uint32_t index)
{
  cv_set_state_t *s = cv_pool_at (&m->sets, index);
  if (s->defined || s->users)
    return;
  cv_map_del (&m->set_map, cv_hash_id (m, s->id), index);
  cv_retire_element (m, &m->sets, index);
}

cv_result_t
cv_set_set (cv_main_t *m, uint64_t id, const char *name, cv_set_kind_t kind)
{
  if (!id || kind < CV_SET_NETWORKS || kind > CV_SET_PORTS || !cv_name_valid (name))
    return CV_INVALID;
  uint32_t index = cv_set_get (m, id, true);
  if (index == CV_NO_INDEX)
    return CV_NO_MEMORY;
  cv_set_state_t *s = cv_pool_at (&m->sets, index);
  if (s->defined && s->kind != kind)
    return CV_INVALID;
  memcpy (s->name, name, CV_NAME_LEN);
  s->kind = kind;
  if (!s->defined)
    {
      cv_publish (&s->defined, true);
      cv_policy_changed (m);
    }
  return CV_OK;
}

/* count_length counts the prefix lengths of a set. It returns false if out of memory. */
static bool
count_length (cv_set_state_t *s, bool ip6, uint8_t len, int by)
{
  cv_length_t *l = s->counts[ip6];
  uint32_t i = 0;
  while (i < s->n_counts[ip6] && l[i].len != len)
    i++;
  if (i == s->n_counts[ip6])
    {
      if (!(l = realloc (l, sizeof (*l) * (i + 1))))
	return false;
      s->counts[ip6] = l;
      l[i] = (cv_length_t){ .len = len };
      s->n_counts[ip6]++;
    }
  l[i].n += (uint32_t) by;
  uint64_t *word = &s->lengths[ip6][len / 64], bit = 1ull << len % 64;
  cv_publish (word, l[i].n ? *word | bit : *word & ~bit);
  return true;
}

static void
take_out (cv_main_t *m, cv_set_state_t *s, uint32_t index)
{
  cv_member_state_t *e = cv_pool_at (&m->members, index);
  cv_set_slots_t *slots = m->member_slots;
  uint32_t i = hash_of (m, e);
  while (slots->slots[i & slots->mask] != index + 1)
    i++;
  cv_publish (&slots->slots[i & slots->mask], DEAD);
  if (e->before == CV_NO_INDEX)
    s->first = e->after;
  else
    ((cv_member_state_t *) cv_pool_at (&m->members, e->before))->after = e->after;
  if (e->after != CV_NO_INDEX)
    ((cv_member_state_t *) cv_pool_at (&m->members, e->after))->before = e->before;
  s->n--;
  count_length (s, e->ip6, e->len, -1);
  cv_retire_element (m, &m->members, index);
}

cv_result_t
cv_set_del (cv_main_t *m, uint64_t id)
{
  uint32_t index = cv_set_get (m, id, false);
  cv_set_state_t *s = index == CV_NO_INDEX ? NULL : cv_pool_at (&m->sets, index);
  if (!s || !s->defined)
    return CV_NOT_FOUND;
  cv_publish (&s->defined, false);
  while (s->first != CV_NO_INDEX)
    take_out (m, s, s->first);
  for (int ip6 = 0; ip6 < 2; ip6++)
    {
      free (s->counts[ip6]);
      s->counts[ip6] = NULL;
      s->n_counts[ip6] = 0;
    }
  s->overfull = false;
  cv_set_put (m, index);
  cv_policy_changed (m);
  return CV_OK;
}

static bool
member_valid (const cv_set_state_t *s, const cv_set_member_t *e)
{
  if (!cv_prefix_valid (&e->prefix) || (!e->prefix.ip6 && (e->prefix.addr.u32[1] | e->prefix.addr.u64[1])))
    return false;
  if (s->kind == CV_SET_NETWORKS)
    return !e->proto && !e->port;
  return e->proto && e->port && e->prefix.len == (e->prefix.ip6 ? 128 : 32);
}

static cv_result_t
add_member (cv_main_t *m, uint32_t set, const cv_set_member_t *e)
{
  cv_set_state_t *s = cv_pool_at (&m->sets, set);
  uint32_t i = s->n < m->config.set_members_max && make_room (m) ? cv_pool_get (&m->members) : CV_NO_INDEX;
  if (i == CV_NO_INDEX || !count_length (s, e->prefix.ip6, e->prefix.len, 1))
    {
      if (i != CV_NO_INDEX)
	cv_pool_put (&m->members, i);
      /* the content of the set is not complete any more */
      cv_store (&s->overfull, true);
      cv_policy_changed (m);
      return CV_NO_MEMORY;
    }
  *(cv_member_state_t *) cv_pool_at (&m->members, i) = (cv_member_state_t){
    .set = set, .before = CV_NO_INDEX, .after = s->first, .addr = e->prefix.addr, .port = e->port, .len = e->prefix.len, .proto = e->proto, .ip6 = e->prefix.ip6
  };
  if (s->first != CV_NO_INDEX)
    ((cv_member_state_t *) cv_pool_at (&m->members, s->first))->before = i;
  s->first = i;
  s->n++;
  place (m, m->member_slots, i);
  cv_policy_changed (m);
  return CV_OK;
}

cv_result_t
cv_set_member_set (cv_main_t *m, uint64_t id, const cv_set_member_t *e, bool is_add)
{
  uint32_t set = cv_set_get (m, id, false);
  cv_set_state_t *s = set == CV_NO_INDEX ? NULL : cv_pool_at (&m->sets, set);
  if (!s || !s->defined)
    return CV_NOT_FOUND;
  if (!member_valid (s, e))
    return CV_INVALID;
  uint32_t i = member_find (m, set, &e->prefix.addr, e->prefix.ip6, e->prefix.len, e->proto, e->port);
  if (is_add)
    return i != CV_NO_INDEX ? CV_OK : add_member (m, set, e);
  if (i == CV_NO_INDEX)
    return CV_NOT_FOUND;
  take_out (m, s, i);
  cv_policy_changed (m);
  return CV_OK;
}

bool
cv_set_contains (const cv_main_t *m, uint32_t set, const cv_addr_t *a, bool ip6)
{
  const cv_set_state_t *s = cv_set_at (m, set);
  for (int word = ip6 ? 2 : 0; word >= 0; word--)
    for (uint64_t bits = cv_load_acquire (&s->lengths[ip6][word]); bits;)
      {
	int bit = 63 - __builtin_clzll (bits);
	bits &= ~(1ull << bit);
	uint8_t len = (uint8_t) (word * 64 + bit);
	cv_addr_t key = cv_masked (a, len);
	if (member_find (m, set, &key, ip6, len, 0, 0) != CV_NO_INDEX)
	  return true;
      }
  return false;
}

bool
cv_set_contains_port (const cv_main_t *m, uint32_t set, const cv_addr_t *a, bool ip6, uint8_t proto, uint16_t wire)
{
  return member_find (m, set, a, ip6, ip6 ? 128 : 32, proto, wire) != CV_NO_INDEX;
}

/* ---- walks ---- */

static const cv_set_state_t *
set_in_slot (const cv_main_t *m, uint32_t i)
{
  uint32_t v = (uint32_t) m->set_map.slots->slots[i];
  return v && v != CV_MAP_DEAD ? cv_set_at (m, v - 1) : NULL;
}

void
cv_set_walk (cv_main_t *m, void (*f) (void *, uint64_t, const char *, cv_set_kind_t, uint32_t, bool), void *ctx)
{
  for (uint32_t i = 0; m->set_map.slots && i <= m->set_map.slots->mask; i++)
    {
      const cv_set_state_t *s = set_in_slot (m, i);
      if (s && s->defined)
	f (ctx, s->id, s->name, s->kind, s->n, s->overfull);
    }
}

static void
walk_members (const cv_main_t *m, const cv_set_state_t *s, void (*f) (void *, uint64_t, const cv_set_member_t *), void *ctx)
{
  for (uint32_t i = s->first; i != CV_NO_INDEX;)
    {
      const cv_member_state_t *e = cv_pool_at (&m->members, i);
      cv_set_member_t member = { .prefix = { .addr = e->addr, .len = e->len, .ip6 = e->ip6 }, .proto = e->proto, .port = e->port };
      f (ctx, s->id, &member);
      i = e->after;
    }
}

void
cv_set_member_walk (cv_main_t *m, uint64_t set, void (*f) (void *, uint64_t, const cv_set_member_t *), void *ctx)
{
  for (uint32_t i = 0; m->set_map.slots && i <= m->set_map.slots->mask; i++)
    {
      const cv_set_state_t *s = set_in_slot (m, i);
      if (s && s->defined && (!set || s->id == set))
	walk_members (m, s, f, ctx);
    }
}

void
cv_sets_free (cv_main_t *m)
{
  for (uint32_t i = 0; m->set_map.slots && i <= m->set_map.slots->mask; i++)
    {
      const cv_set_state_t *s = set_in_slot (m, i);
      for (int ip6 = 0; s && ip6 < 2; ip6++)
	free (s->counts[ip6]);
    }
  free (m->set_map.slots);
  free (m->member_slots);
}
