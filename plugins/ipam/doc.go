// Package ipam computes the addresses of nodes and hands out the addresses of pods.
//
// What belongs to a node follows from its ID and the configuration by arithmetic (subnet.go), the same on every node, so that nodes know
// each other's networks without asking:
//
//	pod slice      slice <id> of podSubnetCIDR    10.1.<id>.0/24      .1 gateway, .2 … .253 pods, .254 NAT loopback
//	VPP–host link  slice <id> of vppHostSubnet    172.30.<id>.0/24    .1 VPP, .2 host
//	interconnect   host <id>                      192.168.16.<id>     skipping the default gateway
//	VXLAN BVI      host <id>                      192.168.30.<id>
//
// The last ID that has a slice (2^bits) gets slice 0. IPv6 works alike.
//
// Pod addresses are handed out next-fit (alloc.go): a released address comes back only after all others, so that peers which still have
// stale state about it are unlikely to meet a new pod there. Addresses belong to attachments (container ID and interface), not to pods, so
// that a late DEL of an old sandbox cannot take the address of the new one. They are not stored here: after a restart they are taken from
// the attachments that podmanager has kept.
package ipam
