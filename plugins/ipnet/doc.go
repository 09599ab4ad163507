// Package ipnet configures VPP-based network connectivity between Kubernetes pods and nodes.
//
// It only renders northbound values: for this node (main interface, VRFs, the link between VPP and the host), for each pod, and for each
// other node. Rendering is pure (node.go, pod.go, host.go). The plugin (plugin.go) stores which values are rendered for which node and puts
// the difference into the event's transaction.
//
// Pods are wired in one of two ways (useTAPInterfaces in contiv.conf):
//
//  1. TAP: the agent makes the Linux end, eth0, in the pod's namespace, and VPP attaches to it (docs/adr/0005).
//  2. VETH + AF_PACKET: a veth pair connects the pod with the namespace of VPP, which reads the near end through an
//     AF_PACKET socket. This does not need vhost-net.
//
// In VPP both ways look the same: the pod's interface is in the pod VRF, unnumbered to the pod gateway loopback, with a static neighbour
// and a /32 (/128) route. There is no flooding and no MAC learning.
//
//	  pod                       VPP                                     host
//	+--------+    TAP or    +---------------------------------+      +--------+
//	| eth0   |----veth------| pod VRF (1)      main VRF (0)   |--TAP-| vpp1   |
//	| /32    |              |  podGwLoop .1     tap-vpp2 .1   |      |  .2    |
//	+--------+              |  /32 per pod --0/0--> main NIC  |      +--------+
//	                        +---------------------------------+
//
// Without an overlay, traffic of pods to the outside passes through a pipe, so that NAT translates only this traffic: see egresspipe.go.
//
// The package serves GET /contiv/v1/ipam.
package ipnet
