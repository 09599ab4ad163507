// Package vpp registers the descriptors of VPP's objects: how each northbound value of dataplane/nb becomes requests of VPP's binary API,
// and how what VPP has becomes northbound values again. It also reads what belongs to no object: counters, buffers, NICs, packet traces.
//
// One package per feature of VPP (iface, l2, l3, acl, nat44, and contiv for our own plugin), one file per object; kit has what they share.
// A descriptor is a scheduler.Kind: validate, equal, dependencies, create, update, delete, dump. It starts requests on
// a conn.Lane and ends its operation in the reply's callback, so all operations of a wave are in flight together. See
// docs/adding-a-vpp-object.md.
//
// # Ownership
//
// Nothing is kept on disk. What is ours is found by the marks that we leave in VPP: the tag of an interface and of a bridge domain, the
// name of a table (kit/tags.go). Objects without a mark of their own belong to what they hang on: addresses to their interface, routes to their
// table (only those whose source is the API), L2 FIB entries to their bridge domain. ACLs carry their name in their tag (acl/acl.go); of an
// interface's list those of another program are kept (acl/interface.go). NAT mappings carry their DNat44 in their tag (nat44/tag.go); the
// settings of NAT, its pool and its interfaces are all ours. All that our own plugin has is ours (contiv). The address and the
// default route of a DHCP lease belong to the DHCP client (iface/dhcp.go). Everything else in VPP is never touched.
//
// What VPP cannot tell (the secret of a memif, the size of an af_packet ring) is taken from the desired value when a dump is compared: a
// dump completes its values with it, and so a restart with nothing changed writes nothing.
//
// # Interfaces
//
// The value of an interface is the interface itself, created down, with its tag and hardware address. The rest of it are derived items,
// each a value of its own kind: table (per address family), addresses, unnumbered, MTU, receive modes and placement and, last, the link
// going up.
package vpp
