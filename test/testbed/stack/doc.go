// Package stack is a small model of Linux's IP stack, for tests that walk packets through vppfake: it gives a walk what lies beyond VPP's
// interfaces, in pods, in the hosts' own network namespaces and outside. It has addresses, routes, neighbours, forwarding, and the rules of
// dataplane/hostports with the connection tracking that they need, and takes all of that as values (dataplane/nb/linux), never as text. So
// tests need no root, no namespaces and no kernel.
//
// It does not have: rp_filter, policy routing, fragments, neighbour discovery (who has an address on a link is said by the test), timeouts
// of tracked connections, and rules of other programs.
package stack
