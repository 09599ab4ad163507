/* Reads sets, policies, endpoints and flows, and writes the policy decision for each flow. model_test.go compares the decisions with a model.
 *
 *   set ID KIND
 *   member ID ADDRESS LEN PROTOCOL PORT
 *   policy ID INGRESS EGRESS, then as many lines: ACTION FAMILY PROTOCOL FLAGS TYPE CODE SOURCE DESTINATION SERVICE PORTS FIRST LAST ...
 *   police INTERFACE INGRESS EGRESS N_INGRESS N_EGRESS, then as many lines: POLICY ACTION
 *   flow INTERFACE SOURCE DESTINATION PROTOCOL PORT TYPE CODE */
#include "policy.h"

static uint64_t
number (void)
{
  unsigned long long v;
  check (scanf ("%llu", &v) == 1);
  return v;
}

static cv_addr_t
address (bool *ip6)
{
  char text[64];
  check (scanf ("%63s", text) == 1);
  *ip6 = is6 (text);
  return addr (text);
}

static void
read_member (net_t *n)
{
  uint64_t id = number ();
  cv_set_member_t e = { 0 };
  e.prefix.addr = address (&e.prefix.ip6);
  e.prefix.len = (uint8_t) number ();
  e.proto = (uint8_t) number ();
  e.port = htons ((uint16_t) number ());
  check (cv_set_member_set (n->m, id, &e, true) == CV_OK);
}

static void
read_policy (net_t *n)
{
  static cv_rule_t rules[2][64];
  uint64_t id = number ();
  cv_policy_t p = { .name = "policy", .rules = { rules[0], rules[1] } };
  for (int side = 0; side < 2; side++)
    p.n[side] = (uint32_t) number ();
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < p.n[side]; i++)
      {
	cv_rule_t *r = &rules[side][i];
	uint8_t *bytes[] = { &r->action, &r->family, &r->proto, &r->flags, &r->icmp_type, &r->icmp_code };
	for (int k = 0; k < 6; k++)
	  *bytes[k] = (uint8_t) number ();
	r->source = number ();
	r->destination = number ();
	r->service = number ();
	r->n_ports = (uint8_t) number ();
	for (uint8_t k = 0; k < r->n_ports; k++)
	  {
	    r->ports[k].first = (uint16_t) number ();
	    r->ports[k].last = (uint16_t) number ();
	  }
      }
  check (cv_policy_set (n->m, id, &p) == CV_OK);
}

static void
read_police (net_t *n)
{
  static cv_tier_item_t items[2][64];
  uint32_t sw_if_index = (uint32_t) number ();
  cv_endpoint_policy_t p = { .name = "pod", .items = { items[0], items[1] } };
  for (int side = 0; side < 2; side++)
    p.otherwise[side] = (uint8_t) number ();
  for (int side = 0; side < 2; side++)
    p.n[side] = (uint32_t) number ();
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < p.n[side]; i++)
      {
	items[side][i].policy = number ();
	items[side][i].action = (uint8_t) number ();
      }
  check (cv_endpoint_policy_set (n->m, sw_if_index, &p) == CV_OK);
}

static void
read_flow (net_t *n)
{
  static const char *const words[] = { [CV_FREE] = "free", [CV_ALLOWED] = "allowed", [CV_DENIED] = "denied" };
  uint32_t sw_if_index = (uint32_t) number ();
  cv_flow_t f = { 0 };
  f.src = address (&f.ip6);
  f.dst = address (&f.ip6);
  f.proto = (uint8_t) number ();
  f.dport = htons ((uint16_t) number ());
  f.icmp_type = (uint8_t) number ();
  f.icmp_code = (uint8_t) number ();
  puts (words[cv_judge (n->m, 0, sw_if_index, &f, n->now)]);
}

int
main (void)
{
  net_t n = world (100, 1);
  endpoint (&n, HOST, CV_ROLE_HOST, 0, 0, "172.30.1.2", "fd30::2");
  for (char word[16]; scanf ("%15s", word) == 1;)
    {
      if (!strcmp (word, "set"))
	{
	  uint64_t id = number ();
	  set_of (&n, id, (cv_set_kind_t) number ());
	}
      else if (!strcmp (word, "member"))
	read_member (&n);
      else if (!strcmp (word, "policy"))
	read_policy (&n);
      else if (!strcmp (word, "police"))
	read_police (&n);
      else if (!strcmp (word, "flow"))
	read_flow (&n);
      else
	check (false, "%s", word);
    }
  cv_free (n.m);
  return 0;
}
