/* Policies, the policies of endpoints, and the map from addresses to endpoints. */
#include <stdlib.h>
#include "policy.h"

/* ---- policies ---- */

static uint32_t
policy_find (const cv_main_t *m, uint64_t id)
{
  uint32_t hash = cv_hash_id (m, id), i = hash, index;
  while (cv_map_next (m->policy_map.slots, hash, &i, &index))
    if (((cv_policy_state_t *) cv_pool_at (&m->policies, index))->id == id)
      return index;
  return CV_NO_INDEX;
}

static bool
rule_valid (const cv_rule_t *r)
{
  bool ports = r->proto == CV_PROTO_TCP || r->proto == CV_PROTO_UDP || r->proto == CV_PROTO_SCTP;
  bool icmp = r->proto == CV_PROTO_ICMP || r->proto == CV_PROTO_ICMP6;
  if (r->action < CV_RULE_ALLOW || r->action > CV_RULE_PASS || (r->family && r->family != 4 && r->family != 6))
    return false;
  if (r->n_ports > CV_RULE_PORTS || (r->n_ports && !ports))
    return false;
  if (r->flags & ~(CV_RULE_ICMP_TYPE | CV_RULE_ICMP_CODE) || (r->flags && !icmp) || r->flags == CV_RULE_ICMP_CODE)
    return false;
  for (uint8_t i = 0; i < r->n_ports; i++)
    if (r->ports[i].first > r->ports[i].last)
      return false;
  return true;
}

static bool
policy_valid (uint64_t id, const cv_policy_t *p)
{
  if (!id || !cv_name_valid (p->name) || (uint64_t) p->n[0] + p->n[1] > CV_POLICY_RULES)
    return false;
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < p->n[side]; i++)
      if (!rule_valid (&p->rules[side][i]))
	return false;
  return true;
}

static void
release_set (cv_main_t *m, uint32_t set)
{
  if (set == CV_NO_INDEX)
    return;
  ((cv_set_state_t *) cv_pool_at (&m->sets, set))->users--;
  cv_set_put (m, set);
}

static void
release_rules (cv_main_t *m, cv_rules_t *r)
{
  for (uint32_t i = 0; r && i < r->n[0] + r->n[1]; i++)
    {
      release_set (m, r->rule[i].source);
      release_set (m, r->rule[i].destination);
      release_set (m, r->rule[i].service);
    }
  for (int side = 0; r && side < 2; side++)
    cv_index_retire (m, r->index[side]);
  cv_retire (m, r);
}

/* use_set adds a reference to a set, and creates the set if it does not exist. It returns false if out of memory. */
static bool
use_set (cv_main_t *m, uint64_t id, uint32_t *index)
{
  *index = CV_NO_INDEX;
  if (!id)
    return true;
  if ((*index = cv_set_get (m, id, true)) == CV_NO_INDEX)
    return false;
  ((cv_set_state_t *) cv_pool_at (&m->sets, *index))->users++;
  return true;
}

static cv_rules_t *
make_rules (cv_main_t *m, const cv_policy_t *p)
{
  cv_rules_t *r = calloc (1, sizeof (*r) + sizeof (cv_rule_state_t) * (p->n[0] + p->n[1]));
  if (!r)
    return NULL;
  for (int side = 0; side < 2; side++)
    for (; r->n[side] < p->n[side]; r->n[side]++)
      {
	cv_rule_state_t *s = &r->rule[r->n[0] + (side ? r->n[1] : 0)];
	s->rule = p->rules[side][r->n[side]];
	s->source = s->destination = s->service = CV_NO_INDEX;
	if (use_set (m, s->rule.source, &s->source) && use_set (m, s->rule.destination, &s->destination) && use_set (m, s->rule.service, &s->service))
	  continue;
	r->n[side]++;
	release_rules (m, r);
	return NULL;
      }
  for (int side = 0; side < 2; side++)
    if (!(r->index[side] = cv_index_make (r->rule + (side ? r->n[0] : 0), r->n[side])))
      {
	release_rules (m, r);
	return NULL;
      }
  return r;
}

static bool
same_rule (const cv_rule_t *a, const cv_rule_t *b)
{
  if (a->action != b->action || a->family != b->family || a->proto != b->proto || a->flags != b->flags || a->icmp_type != b->icmp_type ||
      a->icmp_code != b->icmp_code || a->n_ports != b->n_ports || a->source != b->source || a->destination != b->destination || a->service != b->service)
    return false;
  for (uint8_t i = 0; i < a->n_ports; i++)
    if (a->ports[i].first != b->ports[i].first || a->ports[i].last != b->ports[i].last)
      return false;
  return true;
}

/* keep_counts copies the counters of rules that are unchanged at the same position. */
static void
keep_counts (cv_rules_t *r, const cv_rules_t *old)
{
  for (int side = 0; old && side < 2; side++)
    for (uint32_t i = 0; i < r->n[side] && i < old->n[side]; i++)
      {
	cv_rule_state_t *s = &r->rule[(side ? r->n[0] : 0) + i];
	const cv_rule_state_t *o = &old->rule[(side ? old->n[0] : 0) + i];
	if (same_rule (&s->rule, &o->rule))
	  s->matched = cv_load (&o->matched);
      }
}

cv_result_t
cv_policy_set (cv_main_t *m, uint64_t id, const cv_policy_t *p)
{
  if (!policy_valid (id, p))
    return CV_INVALID;
  uint32_t i = policy_find (m, id);
  cv_rules_t *r = make_rules (m, p);
  if (!r)
    return CV_NO_MEMORY;
  bool new = i == CV_NO_INDEX;
  if (new)
    {
      if ((i = cv_pool_get (&m->policies)) != CV_NO_INDEX && !cv_map_add (m, &m->policy_map, cv_hash_id (m, id), i))
	{
	  cv_pool_put (&m->policies, i);
	  i = CV_NO_INDEX;
	}
      if (i == CV_NO_INDEX)
	{
	  release_rules (m, r);
	  return CV_NO_MEMORY;
	}
      ((cv_policy_state_t *) cv_pool_at (&m->policies, i))->id = id;
    }
  cv_policy_state_t *s = cv_pool_at (&m->policies, i);
  s->defined = true;
  memcpy (s->name, p->name, CV_NAME_LEN);
  cv_rules_t *old = s->rules;
  keep_counts (r, old);
  cv_publish (&s->rules, r);
  release_rules (m, old);
  cv_policy_changed (m);
  return CV_OK;
}

/* policy_put deletes a policy that is not defined and to which no endpoint refers. */
static void
policy_put (cv_main_t *m, uint32_t i)
{
  cv_policy_state_t *s = cv_pool_at (&m->policies, i);
  if (s->defined || s->users)
    return;
  cv_map_del (&m->policy_map, cv_hash_id (m, s->id), i);
  release_rules (m, s->rules); /* s->rules stays set: a worker may be about to read it */
  cv_retire_element (m, &m->policies, i);
}

/* cv_policy_del deletes a policy. Endpoints that refer to it keep its rules until they get another policy. */
cv_result_t
cv_policy_del (cv_main_t *m, uint64_t id)
{
  uint32_t i = policy_find (m, id);
  cv_policy_state_t *s = i == CV_NO_INDEX ? NULL : cv_pool_at (&m->policies, i);
  if (!s || !s->defined)
    return CV_NOT_FOUND;
  s->defined = false;
  policy_put (m, i);
  return CV_OK;
}

/* copy_rules copies the rules of a policy and their counters for a walk. */
static bool
copy_rules (const cv_rules_t *r, cv_rule_t **rules, uint64_t **matched)
{
  uint32_t n = r->n[0] + r->n[1];
  *rules = malloc (sizeof (**rules) * (n + 1));
  *matched = malloc (sizeof (**matched) * (n + 1));
  for (uint32_t i = 0; *rules && *matched && i < n; i++)
    {
      (*rules)[i] = r->rule[i].rule;
      (*matched)[i] = cv_load (&r->rule[i].matched);
    }
  return *rules && *matched;
}

void
cv_policy_walk (cv_main_t *m, void (*f) (void *, uint64_t, const cv_policy_t *, const uint64_t *[2]), void *ctx)
{
  for (uint32_t i = 0; m->policy_map.slots && i <= m->policy_map.slots->mask; i++)
    {
      uint32_t v = (uint32_t) m->policy_map.slots->slots[i];
      if (!v || v == CV_MAP_DEAD)
	continue;
      const cv_policy_state_t *s = cv_pool_at (&m->policies, v - 1);
      cv_rule_t *rules = NULL;
      uint64_t *matched = NULL;
      if (s->defined && copy_rules (s->rules, &rules, &matched))
	{
	  cv_policy_t p = { .n = { s->rules->n[0], s->rules->n[1] }, .rules = { rules, rules + s->rules->n[0] } };
	  const uint64_t *counts[2] = { matched, matched + s->rules->n[0] };
	  memcpy (p.name, s->name, CV_NAME_LEN);
	  f (ctx, s->id, &p, counts);
	}
      free (rules);
      free (matched);
    }
}

/* ---- endpoints ---- */

static cv_result_t
items_valid (const cv_main_t *m, const cv_endpoint_policy_t *p, int side)
{
  if ((p->otherwise[side] != CV_RULE_ALLOW && p->otherwise[side] != CV_RULE_DENY) || p->n[side] > CV_POLICY_ITEMS)
    return CV_INVALID;
  if (p->n[side] && p->items[side][p->n[side] - 1].policy)
    return CV_INVALID; /* a tier without an end item */
  for (uint32_t i = 0; i < p->n[side]; i++)
    {
      const cv_tier_item_t *item = &p->items[side][i];
      if (item->policy ? item->action && (item->action != CV_RULE_PASS || side != CV_EGRESS) : item->action < CV_RULE_ALLOW || item->action > CV_RULE_PASS)
	return CV_INVALID;
      uint32_t found = item->policy ? policy_find (m, item->policy) : CV_NO_INDEX;
      if (item->policy && (found == CV_NO_INDEX || !((cv_policy_state_t *) cv_pool_at (&m->policies, found))->defined))
	return CV_NOT_FOUND;
    }
  return CV_OK;
}

static void
use_policies (cv_main_t *m, const cv_police_t *p, int by)
{
  for (uint32_t i = 0; p && i < p->n[0] + p->n[1]; i++)
    if (p->item[i].policy != CV_NO_INDEX)
      {
	((cv_policy_state_t *) cv_pool_at (&m->policies, p->item[i].policy))->users += (uint32_t) by;
	policy_put (m, p->item[i].policy);
      }
}

static cv_police_t *
make_police (const cv_main_t *m, const cv_endpoint_policy_t *p)
{
  cv_police_t *s = malloc (sizeof (*s) + sizeof (cv_item_t) * (p->n[0] + p->n[1]));
  if (!s)
    return NULL;
  *s = (cv_police_t){ .otherwise = { p->otherwise[0], p->otherwise[1] }, .n = { p->n[0], p->n[1] } };
  memcpy (s->name, p->name, CV_NAME_LEN);
  s->open = !p->n[0] && !p->n[1] && p->otherwise[0] == CV_RULE_ALLOW && p->otherwise[1] == CV_RULE_ALLOW;
  for (uint32_t i = 0; i < p->n[0] + p->n[1]; i++)
    {
      const cv_tier_item_t *item = i < p->n[0] ? &p->items[0][i] : &p->items[1][i - p->n[0]];
      s->item[i] = (cv_item_t){ .policy = item->policy ? policy_find (m, item->policy) : CV_NO_INDEX, .action = item->action };
      s->for_node |= item->policy && item->action;
    }
  return s;
}

static void
replace_police (cv_main_t *m, cv_endpoint_slot_t *slot, cv_police_t *new)
{
  cv_police_t *old = slot->police;
  bool before = old && !old->open, after = new && !new->open;
  use_policies (m, new, 1);
  /* n_policed counts the policy as long as it is set: increment before it is set, decrement after it is removed */
  if (after && !before)
    cv_add (&m->n_policed, 1);
  cv_publish (&slot->police, new);
  if (before && !after)
    cv_add (&m->n_policed, -1u);
  use_policies (m, old, -1);
  cv_retire (m, old);
  cv_policy_changed (m);
  cv_changed (m); /* flows without a connection must get one */
}

cv_result_t
cv_endpoint_policy_set (cv_main_t *m, uint32_t sw_if_index, const cv_endpoint_policy_t *p)
{
  cv_endpoint_slot_t *slot = cv_endpoint_slot (m, sw_if_index);
  if (!slot || !slot->state || (!p && !slot->police))
    return CV_NOT_FOUND;
  if (!p)
    {
      replace_police (m, slot, NULL);
      return CV_OK;
    }
  if (!cv_name_valid (p->name) || slot->state->config.role != CV_ROLE_POD)
    return CV_INVALID;
  for (int side = 0; side < 2; side++)
    {
      cv_result_t r = items_valid (m, p, side);
      if (r)
	return r;
    }
  cv_police_t *new = make_police (m, p);
  if (!new)
    return CV_NO_MEMORY;
  replace_police (m, slot, new);
  return CV_OK;
}

/* cv_police_remove removes the policy of an endpoint that is being deleted. */
void
cv_police_remove (cv_main_t *m, uint32_t sw_if_index)
{
  cv_endpoint_slot_t *slot = cv_endpoint_slot (m, sw_if_index);
  if (slot && slot->police)
    replace_police (m, slot, NULL);
}

static bool
copy_items (const cv_main_t *m, const cv_police_t *s, cv_tier_item_t **items)
{
  uint32_t n = s->n[0] + s->n[1];
  if (!(*items = calloc (n + 1, sizeof (**items))))
    return false;
  for (uint32_t i = 0; i < n; i++)
    {
      (*items)[i].action = s->item[i].action;
      if (s->item[i].policy != CV_NO_INDEX)
	(*items)[i].policy = ((cv_policy_state_t *) cv_pool_at (&m->policies, s->item[i].policy))->id;
    }
  return true;
}

void
cv_endpoint_policy_walk (cv_main_t *m, void (*f) (void *, uint32_t, const cv_endpoint_policy_t *, const uint64_t[2]), void *ctx)
{
  for (uint32_t i = 0; i < CV_ENDPOINT_CHUNKS; i++)
    for (uint32_t j = 0; m->endpoints[i] && j < CV_ENDPOINT_CHUNK; j++)
      {
	const cv_endpoint_slot_t *slot = &m->endpoints[i][j];
	cv_tier_item_t *items;
	if (!slot->police || !copy_items (m, slot->police, &items))
	  continue;
	const cv_police_t *s = slot->police;
	const cv_owner_t *o = cv_pool_at (&m->owners, slot->state->owner);
	uint64_t denied[2] = { cv_load (&o->denied[0]), cv_load (&o->denied[1]) };
	cv_endpoint_policy_t p = { .otherwise = { s->otherwise[0], s->otherwise[1] }, .n = { s->n[0], s->n[1] }, .items = { items, items + s->n[0] } };
	memcpy (p.name, s->name, CV_NAME_LEN);
	f (ctx, i * CV_ENDPOINT_CHUNK + j, &p, denied);
	free (items);
      }
}

/* ---- addresses of endpoints ---- */

static bool
has_address (const cv_endpoint_t *e, const cv_addr_t *a, bool ip6)
{
  for (uint8_t i = 0; e && i < e->n_addresses; i++)
    if (e->addresses[i].ip6 == ip6 && cv_addr_equal (&e->addresses[i].addr, a))
      return true;
  return false;
}

static uint32_t
address_find (const cv_main_t *m, uint32_t sw_if_index, const cv_addr_t *a, bool ip6)
{
  uint32_t hash = cv_address_hash (m, a, ip6), i = hash, index;
  while (cv_map_next (m->address_map.slots, hash, &i, &index))
    {
      const cv_address_t *at = cv_pool_at (&m->addresses, index);
      if (at->sw_if_index == sw_if_index && at->ip6 == ip6 && cv_addr_equal (&at->addr, a))
	return index;
    }
  return CV_NO_INDEX;
}

static bool
address_add (cv_main_t *m, uint32_t sw_if_index, const cv_addr_t *a, bool ip6)
{
  if (address_find (m, sw_if_index, a, ip6) != CV_NO_INDEX)
    return true;
  uint32_t i = cv_pool_get (&m->addresses);
  if (i == CV_NO_INDEX)
    return false;
  cv_address_t *at = cv_pool_at (&m->addresses, i);
  *at = (cv_address_t){ .sw_if_index = sw_if_index, .addr = *a, .ip6 = ip6 };
  if (cv_map_add (m, &m->address_map, cv_address_hash (m, a, ip6), i))
    return true;
  cv_pool_put (&m->addresses, i);
  return false;
}

bool
cv_addresses_set (cv_main_t *m, uint32_t sw_if_index, const cv_endpoint_t *old, const cv_endpoint_t *e)
{
  for (uint8_t i = 0; e && i < e->n_addresses; i++)
    if (!address_add (m, sw_if_index, &e->addresses[i].addr, e->addresses[i].ip6))
      return false;
  for (uint8_t i = 0; old && i < old->n_addresses; i++)
    {
      const cv_addr_t *a = &old->addresses[i].addr;
      bool ip6 = old->addresses[i].ip6;
      uint32_t index = has_address (e, a, ip6) ? CV_NO_INDEX : address_find (m, sw_if_index, a, ip6);
      if (index == CV_NO_INDEX)
	continue;
      cv_map_del (&m->address_map, cv_address_hash (m, a, ip6), index);
      cv_retire_element (m, &m->addresses, index);
    }
  return true;
}

void
cv_policies_free (cv_main_t *m)
{
  for (uint32_t i = 0; i < CV_ENDPOINT_CHUNKS; i++)
    for (uint32_t j = 0; m->endpoints[i] && j < CV_ENDPOINT_CHUNK; j++)
      free (m->endpoints[i][j].police);
  for (uint32_t i = 0; m->policy_map.slots && i <= m->policy_map.slots->mask; i++)
    {
      uint32_t v = (uint32_t) m->policy_map.slots->slots[i];
      cv_rules_t *r = v && v != CV_MAP_DEAD ? ((cv_policy_state_t *) cv_pool_at (&m->policies, v - 1))->rules : NULL;
      for (int side = 0; r && side < 2; side++)
	cv_index_free (r->index[side]);
      free (r);
    }
  free (m->policy_map.slots);
  free (m->address_map.slots);
}
