// Package acl has the descriptors of ACLs and of what interfaces they are on. On a VPP without our plugin ACLs are the source ranges
// of load balancers: NAT44 serves an address that an ACL guards only while the ACL is in place.
package acl
