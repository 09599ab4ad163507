// Package vxlan connects nodes by a full mesh of VXLAN tunnels (RFC 7348), VNI 10.
//
// There is no MAC learning and no flooding: every node computes every other node's overlay address and MAC from the node ID, so that
// neighbours and forwarding entries are static.
//
// In VPP the tunnels are members of the bridge domain vxlanBD, in one split-horizon group, since the mesh is full. vxlanBVI connects the
// bridge domain with the pod VRF:
//
//	pod VRF ── route 10.1.<id>.0/24 via 192.168.30.<id> ── vxlanBVI ── vxlanBD ── vxlan-default-<id> ── main VRF ── node <id>
//
// In Linux there is one VXLAN device, with the same addresses, neighbours and forwarding entries, so that one cluster can have nodes of
// both kinds.
package vxlan
