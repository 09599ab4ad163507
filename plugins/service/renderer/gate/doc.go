// Package gate says who may use which address and port of a service, where the dataplane's load balancer does not look at the client: as an
// ACL on all interfaces by which clients come.
//
// For each place there are rules for those that may use it, and then one that denies it to everybody. A place that nothing may use is one
// whose packets are to be dropped, where VPP would reject what it does not balance (renderer.Drop). This ACL does not handle other packets:
// what no rule matches is let through (dataplane/vpp).
//
// VPP looks up ACLs before NAT44 (scenario acl_before_nat of vppfake), so a mapping is guarded by the ACL (Guard).
package gate
