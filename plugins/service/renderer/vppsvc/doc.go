// Package vppsvc renders services for our own VPP plugin (dataplane/vpp/plugin), both families alike.
//
// A port of a service becomes one or two sets of backends (all of them, and those of this node), and a frontend for each address and
// port that clients connect to. A frontend has one action for clients in the cluster and one for clients outside. The plugin does everything
// else: connections, source NAT, affinity, rejections.
//
// An address that only services use, such as a cluster IP, also gets a frontend that rejects packets to all other ports. The host has routes
// to VPP for external addresses.
//
// On a VPP without the plugin renderer/nat44 serves IPv4 instead; renderer/choice selects the renderer.
package vppsvc
