// Package iface has the descriptors of VPP's interfaces: loopbacks, TAPs, af_packet, memif, VXLAN tunnels, sub-interfaces, pipes and
// NICs, and of their items (tables, addresses, MTU, receive modes, DHCP client, link up). Its Index and Snapshot list the interfaces
// of VPP for the other features; Leases, RxModeKeeper and DeletionQueue are jobs that run beside the descriptors.
package iface
