// Package vpp registers the descriptors of VPP's objects: how each northbound value of dataplane/nb is converted to requests of VPP's binary
// API, and how VPP's objects are converted back to northbound values. It also reads data that belongs to no object: buffers, NICs, counters of
// links, packet traces. Package traffic reads connections, sessions and counts of packets.
//
// There is one package per feature of VPP (iface, l2, l3, acl, nat44, and contiv for our own plugin), and one file per object; kit has the
// shared code. A scheduler.Descriptor has: validate, equal, dependencies, create, update, delete, dump. It starts requests on a conn.Lane
// and ends its operation in the reply's callback, so all operations of a wave are in flight together. See docs/adding-a-vpp-object.md.
//
// # Ownership
//
// Nothing is stored on disk. Our objects are found by the marks that we leave in VPP: the tag of an interface and of a bridge domain, the name
// of a table (kit/tags.go). Objects without their own mark belong to a parent: addresses to their interface, routes to their table (only those
// whose source is the API), L2 FIB entries to their bridge domain. ACLs have their name in their tag (acl/acl.go); ACLs of other programs in an
// interface's list are kept (acl/interface.go). NAT mappings have their DNat44 in their tag (nat44/tag.go); the settings of NAT, its pool and
// its interfaces are all ours. All objects of our own plugin are ours (contiv). The address and the default route of a DHCP lease belong to the
// DHCP client (iface/dhcp.go). No other object in VPP is ever changed.
//
// Data that VPP does not report (the secret of a memif, the size of an af_packet ring) is taken from the desired value when a dump is compared:
// a dump completes its values with that data, and so a restart without changes writes nothing.
//
// # Interfaces
//
// The value of an interface is the interface itself, created with its link down, with its tag and hardware address. The other properties are
// derived items, each a value with its own descriptor: table (per address family), addresses, unnumbered, MTU, receive modes and placement and, last,
// bringing up the link.
package vpp
