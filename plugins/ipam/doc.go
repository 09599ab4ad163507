// Package ipam computes the addresses of nodes and allocates the addresses of pods.
//
// The networks of a node are computed from its ID and the configuration (subnet.go), with the same result on every node, so that nodes need
// no communication for this:
//
//	pod slice      slice <id> of podSubnetCIDR    10.1.<id>.0/24      .1 gateway, .2 … .253 pods, .254 NAT loopback
//	VPP–host link  slice <id> of vppHostSubnet    172.30.<id>.0/24    .1 VPP, .2 host
//	interconnect   host <id>                      192.168.16.<id>     skipping the default gateway
//	VXLAN BVI      host <id>                      192.168.30.<id>
//
// The last ID that has a slice (2^bits) gets slice 0. IPv6 uses the same scheme.
//
// Pod addresses are allocated next-fit (alloc.go): a released address is reused only after all others, so that peers with stale state about
// it are unlikely to reach a new pod there. Addresses belong to attachments (container ID and interface), not to pods, so that a late DEL
// of an old sandbox cannot release the address of the new one. They are not stored here: after a restart they are read from the attachments
// that podmanager has stored.
package ipam
