/* An index of the rules of one side of a policy. Rules that differ only in action and ports form a class. The conditions of a class are
 * evaluated once, for any number of rules, and the rule is found by the port. */
#include <stdlib.h>
#include "policy.h"

/* PORTS_FROM is the minimum number of rules for which a class gets a table of ports. For fewer rules, comparison is faster. */
#define PORTS_FROM 4
#define ALL_PORTS  65536

/* All conditions of a rule except ports. */
typedef struct
{
  uint32_t source, destination, service;
  uint8_t family, proto, flags, icmp_type, icmp_code;
} conditions_t;

static conditions_t
conditions_of (const cv_rule_state_t *r)
{
  return (conditions_t){ .source = r->source, .destination = r->destination, .service = r->service, .family = r->rule.family, .proto = r->rule.proto,
			 .flags = r->rule.flags, .icmp_type = r->rule.flags & CV_RULE_ICMP_TYPE ? r->rule.icmp_type : 0,
			 .icmp_code = r->rule.flags & CV_RULE_ICMP_CODE ? r->rule.icmp_code : 0 };
}

#define COMPARE(a, b)          \
  if ((a) != (b))              \
    return (a) < (b) ? -1 : 1

typedef struct
{
  conditions_t conditions;
  uint32_t rule;
} entry_t;

static int
compare_conditions (const conditions_t *a, const conditions_t *b)
{
  COMPARE (a->source, b->source);
  COMPARE (a->destination, b->destination);
  COMPARE (a->service, b->service);
  COMPARE (a->family, b->family);
  COMPARE (a->proto, b->proto);
  COMPARE (a->flags, b->flags);
  COMPARE (a->icmp_type, b->icmp_type);
  COMPARE (a->icmp_code, b->icmp_code);
  return 0;
}

static int
by_conditions (const void *a, const void *b)
{
  const entry_t *x = a, *y = b;
  int c = compare_conditions (&x->conditions, &y->conditions);
  if (c)
    return c;
  COMPARE (x->rule, y->rule);
  return 0;
}

static int
by_first_rule (const void *a, const void *b)
{
  const cv_rule_class_t *x = a, *y = b;
  COMPARE (x->first, y->first);
  return 0;
}

/* free_from returns the first port from p on that no rule has taken. next links taken ports to later ports. */
static uint32_t
free_from (uint32_t *next, uint32_t p)
{
  uint32_t root = p;
  while (next[root] != root)
    root = next[root];
  while (next[p] != root)
    {
      uint32_t n = next[p];
      next[p] = root;
      p = n;
    }
  return root;
}

static void
take (uint32_t *next, uint32_t *owner, uint32_t first, uint32_t last, uint32_t rule)
{
  for (uint32_t p = free_from (next, first); p <= last; p = free_from (next, p))
    {
      owner[p] = rule;
      next[p] = p + 1;
    }
}

/* add_ports creates the table of a class: for each range of ports, the first rule that matches it. It returns false if out of memory. */
static bool
add_ports (cv_index_t *x, cv_rule_class_t *c, const cv_rule_state_t *rules)
{
  uint32_t *next = malloc (sizeof (*next) * (ALL_PORTS + 1)), *owner = malloc (sizeof (*owner) * ALL_PORTS);
  cv_port_step_t *steps = NULL;
  if (next && owner)
    {
      uint32_t n = 1;
      for (uint32_t p = 0; p <= ALL_PORTS; p++)
	next[p] = p;
      for (uint32_t p = 0; p < ALL_PORTS; p++)
	owner[p] = CV_NO_INDEX;
      for (uint32_t i = 0; i < c->n; i++)
	{
	  uint32_t rule = x->order[c->start + i];
	  const cv_rule_t *r = &rules[rule].rule;
	  if (!r->n_ports)
	    take (next, owner, 0, ALL_PORTS - 1, rule);
	  for (uint8_t k = 0; k < r->n_ports; k++)
	    take (next, owner, r->ports[k].first, r->ports[k].last, rule);
	}
      for (uint32_t p = 1; p < ALL_PORTS; p++)
	n += owner[p] != owner[p - 1];
      if ((steps = malloc (sizeof (*steps) * n)))
	{
	  c->n_steps = 0;
	  for (uint32_t p = 0; p < ALL_PORTS; p++)
	    if (!p || owner[p] != owner[p - 1])
	      steps[c->n_steps++] = (cv_port_step_t){ .from = (uint16_t) p, .rule = owner[p] };
	}
    }
  free (next);
  free (owner);
  c->steps = steps;
  return steps != NULL;
}

static int
by_port (const void *a, const void *b)
{
  const uint16_t *x = a, *y = b;
  COMPARE (*x, *y);
  return 0;
}

/* add_bounds creates the list of bounds. It returns false if out of memory. */
static bool
add_bounds (cv_index_t *x, const cv_rule_state_t *rules, uint32_t n)
{
  uint32_t most = 1, all = 1;
  for (uint32_t i = 0; i < n; i++)
    {
      most += 2u * rules[i].rule.n_ports;
      x->by_port |= rules[i].service != CV_NO_INDEX;
    }
  if (!(x->bounds = malloc (sizeof (*x->bounds) * most)))
    return false;
  x->bounds[0] = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint8_t k = 0; k < rules[i].rule.n_ports; k++)
      {
	x->bounds[all++] = rules[i].rule.ports[k].first;
	x->bounds[all++] = (uint16_t) (rules[i].rule.ports[k].last + 1); /* after port 65535 the result is 0, which is a bound anyway */
      }
  qsort (x->bounds, all, sizeof (*x->bounds), by_port);
  for (uint32_t i = 0; i < all; i++)
    if (!i || x->bounds[i] != x->bounds[x->n_bounds - 1])
      x->bounds[x->n_bounds++] = x->bounds[i];
  return true;
}

void
cv_index_narrow (const cv_index_t *x, uint16_t port, cv_ports_t *range)
{
  uint16_t first = port, last = port;
  if (!x->by_port)
    {
      uint32_t low = 0, high = x->n_bounds; /* find the last bound that is not greater than port */
      while (high - low > 1)
	{
	  uint32_t mid = low + (high - low) / 2;
	  if (x->bounds[mid] <= port)
	    low = mid;
	  else
	    high = mid;
	}
      first = x->bounds[low];
      last = high < x->n_bounds ? (uint16_t) (x->bounds[high] - 1) : UINT16_MAX;
    }
  range->first = first > range->first ? first : range->first;
  range->last = last < range->last ? last : range->last;
}

void
cv_index_free (cv_index_t *x)
{
  if (x)
    free (x->bounds);
  for (uint32_t i = 0; x && i < x->n; i++)
    free (x->classes[i].steps);
  free (x);
}

/* cv_index_retire frees an index when no worker reads it any more. */
void
cv_index_retire (cv_main_t *m, cv_index_t *x)
{
  for (uint32_t i = 0; x && i < x->n; i++)
    if (x->classes[i].steps)
      cv_retire (m, x->classes[i].steps);
  if (x && x->bounds)
    cv_retire (m, x->bounds);
  if (x)
    cv_retire (m, x);
}

cv_index_t *
cv_index_make (const cv_rule_state_t *rules, uint32_t n)
{
  entry_t *entries = malloc (sizeof (*entries) * (n + 1));
  /* at most as many classes as rules; the order follows them */
  cv_index_t *x = calloc (1, sizeof (*x) + (sizeof (cv_rule_class_t) + sizeof (uint32_t)) * n);
  bool ok = entries && x;
  for (uint32_t i = 0; ok && i < n; i++)
    entries[i] = (entry_t){ .conditions = conditions_of (&rules[i]), .rule = i };
  if (ok)
    {
      qsort (entries, n, sizeof (*entries), by_conditions);
      x->order = (uint32_t *) (x->classes + n);
    }
  for (uint32_t i = 0; ok && i < n; i++)
    {
      x->order[i] = entries[i].rule;
      if (!i || compare_conditions (&entries[i].conditions, &entries[i - 1].conditions))
	x->classes[x->n++] = (cv_rule_class_t){ .start = i, .first = entries[i].rule };
      x->classes[x->n - 1].n++;
    }
  for (uint32_t i = 0; ok && i < x->n; i++)
    ok = x->classes[i].n < PORTS_FROM || add_ports (x, &x->classes[i], rules);
  ok = ok && add_bounds (x, rules, n);
  if (ok)
    qsort (x->classes, x->n, sizeof (x->classes[0]), by_first_rule);
  free (entries);
  if (ok)
    return x;
  cv_index_free (x);
  return NULL;
}

uint32_t
cv_class_rule (const cv_rule_class_t *c, uint16_t port)
{
  uint32_t low = 0, high = c->n_steps; /* find the last step that does not begin after port */
  while (high - low > 1)
    {
      uint32_t mid = low + (high - low) / 2;
      if (c->steps[mid].from <= port)
	low = mid;
      else
	high = mid;
    }
  return c->steps[low].rule;
}
