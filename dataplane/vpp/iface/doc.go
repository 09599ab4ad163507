// Package iface has the descriptors of VPP's interfaces: loopbacks, TAPs, af_packet, memif, VXLAN tunnels, sub-interfaces, pipes and
// NICs, and their items (tables, addresses, MTU, receive modes, DHCP client, the link going up). Its Index and Snapshot tell the
// other features which interfaces VPP has; Leases, RxModeKeeper and DeletionQueue are jobs beside the descriptors.
package iface
