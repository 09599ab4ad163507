/* New connections: a slot in the table, a source port, both keys. Also the end of connections. */
#include "follow.h"
#include "pairs.h"

bool
cv_connection_end (cv_main_t *m, bool ip6, uint32_t i)
{
  cv_table_t *t = &m->table[ip6];
  cv_connection_t *c = &t->connections[i];
  uint8_t alive = 1;
  if (!__atomic_compare_exchange_n (&c->alive, &alive, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  cv_table_remove (t, cv_hash (m, &c->key[0]), i, 0);
  if (c->flags & CV_CONN_AFFINITY)
    {
      cv_add (&t->n_affinities, -1u);
      if (c->flags & CV_CONN_FOREIGN)
	cv_add (&t->n_foreign, -1u);
    }
  else
    {
      cv_table_remove (t, cv_hash (m, &c->key[1]), i, 1);
      uncount_pair (m, &c->key[0]);
      uncount_pair (m, &c->key[1]);
    }
  if (c->owner != CV_NO_INDEX)
    cv_add (&((cv_owner_t *) cv_pool_at (&m->owners, c->owner))->connections[ip6], -1u);
  uint32_t backend = __atomic_exchange_n (&c->backend, CV_NO_INDEX, __ATOMIC_ACQ_REL); /* another thread may be replacing it */
  if (backend != CV_NO_INDEX)
    cv_add (&((cv_backend_state_t *) cv_pool_at (&m->backends, backend))->connections, -1u);
  cv_add (&t->n, -1u);
  c->next = cv_load (&t->retired);
  while (!__atomic_compare_exchange_n (&t->retired, &c->next, i, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    ;
  return true;
}

uint64_t
cv_random (cv_worker_t *w)
{
  /* xorshift128+ (Vigna 2014) */
  uint64_t a = w->rng[0], b = w->rng[1];
  w->rng[0] = b;
  a ^= a << 23;
  w->rng[1] = a ^ b ^ a >> 17 ^ b >> 26;
  return w->rng[1] + b;
}

static cv_insert_t
try_port (cv_main_t *m, cv_table_t *t, uint32_t i, uint16_t wire, bool icmp)
{
  cv_connection_t *c = &t->connections[i];
  c->key[1].dport = wire;
  if (icmp)
    c->key[1].sport = wire;
  return cv_table_insert (m, t, &c->key[1], cv_hash (m, &c->key[1]), i, 1);
}

/* insert_answer inserts the connection's second key into the table, with the first free source port. */
static cv_insert_t
insert_answer (cv_main_t *m, uint32_t worker, cv_table_t *t, uint32_t i, const cv_plan_t *plan, uint32_t now)
{
  cv_worker_t *w = &m->workers[worker];
  cv_connection_t *c = &t->connections[i];
  bool icmp = c->key[0].proto == CV_PROTO_ICMP || c->key[0].proto == CV_PROTO_ICMP6;
  uint16_t own = host16 (c->key[0].sport), low = 32768, high = 65535;
  if (plan->masquerade)
    low = plan->snat->port_low, high = plan->snat->port_high;
  cv_insert_t r;
  if (!plan->masquerade || icmp || (own >= low && own <= high))
    if ((r = try_port (m, t, i, c->key[0].sport, icmp)) != CV_TAKEN)
      return r;
  uint32_t n = (uint32_t) high - low + 1;
  for (int k = 0; k < 32; k++)
    if ((r = try_port (m, t, i, host16 ((uint16_t) (low + below (w, n))), icmp)) != CV_TAKEN)
      return r;
  if (w->scanned == now)
    return CV_TAKEN; /* a search through all ports takes a millisecond: at most one per tick */
  w->scanned = now;
  for (uint32_t k = 0, at = below (w, n); k < n; k++)
    if ((r = try_port (m, t, i, host16 ((uint16_t) (low + (at + k) % n)), icmp)) != CV_TAKEN)
      return r;
  return CV_TAKEN;
}

/* next_serial returns a serial that no other connection gets until a worker has created 2^32 / n_workers more: the remainder modulo
 * n_workers identifies the worker, also after a wrap-around. */
static uint32_t
next_serial (cv_main_t *m, uint32_t worker)
{
  uint32_t *serial = &m->workers[worker].serial;
  *serial += m->n_workers;
  if (cv_unlikely (*serial < m->n_workers))
    *serial = worker + m->n_workers;
  return *serial;
}

static void
fill (cv_connection_t *c, const cv_packet_t *p, const cv_tuple_t *t, const cv_plan_t *plan, uint32_t serial, uint32_t now)
{
  memset (c, 0, sizeof (*c));
  c->serial = serial;
  c->key[0] = *t;
  c->key[1] = (cv_tuple_t){ .src = plan->dst, .dst = t->src, .sport = plan->dport, .dport = t->sport, .proto = t->proto, .ip6 = t->ip6 };
  if (plan->masquerade)
    c->key[1].dst = t->ip6 ? plan->snat->ip6 : plan->snat->ip4;
  c->last_seen = now;
  c->owner = plan->endpoint->owner;
  c->backend = plan->backend;
  c->frontends = plan->frontends;
  c->state = CV_STATE_NEW;
  c->judged = plan->judged;
  c->flags = plan->flags;
  if ((t->proto == CV_PROTO_ICMP || t->proto == CV_PROTO_ICMP6) && p->tcp_flags != (t->ip6 ? 128 : 8))
    c->flags |= CV_CONN_ICMP_REPLY;
}

/* settle computes the fields that depend on the source port. */
static void
settle (cv_connection_t *c)
{
  cv_tuple_t plain = cv_reverse (&c->key[0]);
  if (!cv_tuple_equal (&plain, &c->key[1]))
    c->flags |= CV_CONN_TRANSLATED;
  if (plain.sport != c->key[1].sport || plain.dport != c->key[1].dport)
    c->flags |= CV_CONN_PORTS_CHANGE;
  cv_deltas (c);
}

/* count_owner counts a connection for the endpoint if its limit allows another one. CV_FULL: the endpoint was deleted in the meantime. */
static cv_reason_t
count_owner (cv_main_t *m, const cv_endpoint_state_t *e, bool ip6)
{
  cv_owner_t *o = cv_pool_at (&m->owners, e->owner);
  uint32_t n = cv_load (&o->connections[ip6]);
  do
    if (n >= e->limit)
      return CV_LIMIT; /* another worker has created the last one that the limit allows */
  while (!__atomic_compare_exchange_n (&o->connections[ip6], &n, n + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  if (__atomic_load_n (&o->alive, __ATOMIC_SEQ_CST))
    return CV_CREATED;
  cv_add (&o->connections[ip6], -1u);
  return CV_FULL;
}

/* try_connection allocates a slot and inserts both keys. It returns CV_CREATED on success, CV_PASSED if another worker was faster, and
 * otherwise the reason for the failure. */
static cv_reason_t
try_connection (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_plan_t *plan, uint32_t now, uint32_t *index)
{
  cv_tuple_t as_client_sends = plan->reversed ? cv_reverse (&p->tuple) : p->tuple;
  uint64_t hash = plan->reversed ? cv_hash (m, &as_client_sends) : p->hash;
  cv_table_t *t = &m->table[p->tuple.ip6];
  uint32_t i = cv_connection_alloc (t);
  if (i == CV_NO_INDEX)
    return CV_FULL;
  cv_connection_t *c = &t->connections[i];
  fill (c, p, &as_client_sends, plan, next_serial (m, worker), now);
  cv_insert_t r = insert_answer (m, worker, t, i, plan, now);
  if (r != CV_INSERTED)
    {
      cv_connection_release (t, i); /* no key refers to it */
      return r == CV_TAKEN ? CV_NO_PORT : CV_FULL;
    }
  settle (c);
  count_pair (m, &c->key[0]);
  count_pair (m, &c->key[1]);
  cv_add (&t->n, 1);
  cv_reason_t owned = count_owner (m, plan->endpoint, p->tuple.ip6);
  r = owned == CV_CREATED ? cv_table_insert (m, t, &c->key[0], hash, i, 0) : CV_TABLE_FULL;
  if (r != CV_INSERTED)
    {
      c->backend = CV_NO_INDEX; /* the caller decrements the count of the backend */
      if (owned != CV_CREATED)
	cv_store (&c->owner, CV_NO_INDEX);
      cv_publish (&c->alive, 1);
      cv_connection_end (m, p->tuple.ip6, i);
      return r == CV_TAKEN ? CV_PASSED : owned == CV_LIMIT ? CV_LIMIT : CV_FULL;
    }
  /* from here on the sweep may end the connection */
  cv_publish (&c->alive, 1);
  clear_passed (m, hash);
  clear_passed (m, cv_hash (m, &c->key[1]));
  *index = i;
  return CV_CREATED;
}

void
cv_connect (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_plan_t *plan, uint32_t now)
{
  const cv_endpoint_state_t *e = plan->endpoint;
  cv_owner_t *o = cv_pool_at (&m->owners, e->owner);
  bool ip6 = p->tuple.ip6;
  cv_reason_t r;
  uint32_t i = CV_NO_INDEX, direction;
  if (cv_load (&o->connections[ip6]) >= e->limit)
    r = CV_LIMIT;
  else if (plan->masquerade && (!plan->snat || cv_addr_is_zero (ip6 ? &plan->snat->ip6 : &plan->snat->ip4)))
    r = CV_NO_SNAT;
  else
    r = try_connection (m, worker, p, plan, now, &i);
  if (r == CV_LIMIT)
    cv_add (&o->refused, 1);
  if (r != CV_CREATED)
    uncount_backend (m, plan->backend);
  if (r == CV_PASSED)
    {
      if ((i = cv_table_find (&m->table[ip6], &p->tuple, p->hash, &direction)) != CV_NO_INDEX && follow (m, worker, p, i, direction, now))
	return;
      r = CV_FULL; /* the other connection has already ended: the client retries */
    }
  if (r != CV_CREATED)
    {
      drop_packet (m, worker, p, r);
      return;
    }
  cv_count (m, worker, CV_CREATED);
  /* even if the backend was deleted just now: it existed when it was chosen */
  carry (m, worker, p, i, plan->reversed, now);
}

/* Such connections take at most half of those of an endpoint, and only while half of the table is free: a flood of SYNs must not leave too few
 * for the connections that cannot do without. */
bool
cv_connect_if_room (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_plan_t *plan, uint32_t now)
{
  const cv_endpoint_state_t *e = plan->endpoint;
  const cv_owner_t *o = cv_pool_at (&m->owners, e->owner);
  uint32_t i = CV_NO_INDEX;
  if (cv_load (&m->table[p->tuple.ip6].n) >= m->config.connections_max / 2)
    return false;
  if (cv_load (&o->connections[p->tuple.ip6]) >= e->limit / 2 || try_connection (m, worker, p, plan, now, &i) != CV_CREATED)
    return false;
  cv_count (m, worker, CV_CREATED);
  carry (m, worker, p, i, 0, now);
  return true;
}

void
cv_connect_denied (cv_main_t *m, uint32_t worker, cv_packet_t *p, const cv_plan_t *plan, uint32_t now)
{
  uint32_t i = CV_NO_INDEX;
  if (try_connection (m, worker, p, plan, now, &i) == CV_CREATED)
    {
      cv_count (m, worker, CV_CREATED);
      m->table[p->tuple.ip6].connections[i].state = CV_STATE_OPEN; /* both ends have sent: the longer timeout */
      p->connection = i;
    }
  drop_packet (m, worker, p, CV_POLICY);
}
