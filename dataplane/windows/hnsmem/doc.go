// Package hnsmem is a Host Network Service in memory, for tests on every system and for trials of an agent without Windows. Both versions
// of the service (V1, V2) show the same objects.
//
// It refuses what Windows refuses: rules with addresses that do not parse, of two families or too many, ports without a protocol that has
// them, priorities out of range, what Features say that this Windows lacks, policies of the wrong kind of network, addresses that are in
// use or outside of their subnet, load balancers without endpoints or with a port that is taken. Where Microsoft documents no limit, it has
// the one that this repository keeps to.
//
// Endpoints may vanish (Vanish), and calls fail or hang on demand (Hook). Calls reports what was called, in order. Allowed walks the first
// packet of a connection through an endpoint's rules as HNS does: the lowest priority decides, and once there is any rule, what none
// matches is blocked.
package hnsmem
