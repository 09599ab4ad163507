// Package hnsmem is a Host Network Service in memory, for tests on every system and for trials of an agent without Windows. Both versions of
// the service (V1, V2) show the same objects.
//
// It rejects what Windows rejects: rules with addresses that cannot be parsed, of two families or too many, ports without a protocol that has
// them, priorities out of range, features that this Windows lacks according to Features, policies of the wrong kind of network, addresses that
// are in use or outside of their subnet, load balancers without endpoints or with a port that is in use. Where Microsoft documents no limit,
// it has the limit that this repository uses.
//
// Endpoints can be made to vanish (Vanish), and calls to fail or hang (Hook). Calls returns the calls in order. Allowed evaluates the first
// packet of a connection against an endpoint's rules as HNS does: the lowest priority decides, and if there is any rule, packets that no rule
// matches are blocked.
package hnsmem
