// Package vppsvc renders services for our own VPP plugin (dataplane/vpp/plugin), both families alike.
//
// A port of a service becomes one or two sets of backends (all of them, and those of this node), and a frontend for each address and
// port that clients connect to. A frontend says what clients in the cluster get, and what clients outside get. Everything else is the
// plugin's business: connections, source NAT, affinity, rejecting.
//
// Each address that belongs to services alone, such as a cluster IP, also gets a frontend for all other ports: they are rejected.
// The host sends external addresses to VPP by a route.
//
// On a VPP without the plugin renderer/nat44 serves IPv4 instead; renderer/choice picks.
package vppsvc
