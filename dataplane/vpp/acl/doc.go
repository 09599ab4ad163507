// Package acl has the descriptors of ACLs and of their bindings to interfaces. On a VPP without our plugin ACLs implement the source
// ranges of load balancers: NAT44 serves an address that an ACL guards only while the ACL is in place.
package acl
