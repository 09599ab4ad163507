// Package stack is a small model of Linux's IP stack, for tests that walk packets through vppfake: it models the stacks behind VPP's
// interfaces, in pods, in the hosts' own network namespaces and outside. It has addresses, routes, neighbours, forwarding, and the rules of
// dataplane/hostports with the connection tracking that they need; all of these are set as values (dataplane/nb/linux), not as text. So
// tests need no root, no namespaces and no kernel.
//
// It does not have: rp_filter, policy routing, fragments, neighbour discovery (the test sets the neighbours on a link), timeouts of tracked
// connections, and rules of other programs.
package stack
