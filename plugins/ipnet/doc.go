// Package ipnet configures VPP-based network connectivity between Kubernetes pods and nodes.
//
// It renders northbound values and nothing else: for this node (main interface, VRFs, the link between VPP and the host), for each pod, and
// for each other node. Rendering is pure (node.go, pod.go, host.go); the plugin (plugin.go) keeps what is rendered for which node and puts
// the difference into the event's transaction.
//
// Pods are wired in one of two ways (useTAPInterfaces in contiv.conf):
//
//  1. TAP: VPP creates a TAP interface whose Linux end is moved into the pod as eth0.
//  2. VETH + AF_PACKET: a veth pair connects the pod with the namespace of VPP, which reads the near end through an
//     AF_PACKET socket; needs no vhost-net.
//
// Both ways have the same shape in VPP: the pod's interface is in the pod VRF, unnumbered to the pod gateway loopback, with a static
// neighbour and a /32 (/128) route; nothing is flooded and nothing is learned.
//
//	  pod                       VPP                                     host
//	+--------+    TAP or    +---------------------------------+      +--------+
//	| eth0   |----veth------| pod VRF (1)      main VRF (0)   |--TAP-| vpp1   |
//	| /32    |              |  podGwLoop .1     tap-vpp2 .1   |      |  .2    |
//	+--------+              |  /32 per pod --0/0--> main NIC  |      +--------+
//	                        +---------------------------------+
//
// What pods send to the outside without an overlay makes a detour, for NAT to translate it and nothing else: outside.go.
//
// The package serves GET /contiv/v1/ipam.
package ipnet
