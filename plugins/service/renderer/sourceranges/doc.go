// Package sourceranges restricts the addresses and ports of services to the clients that may use them (loadBalancerSourceRanges), where the
// load balancer of the dataplane does not match the client. It renders one ACL on all interfaces from which clients send.
//
// Each frontend has rules that permit its clients, and then one rule that denies all others. A frontend without clients drops its packets, where
// VPP would reject packets that it does not balance (renderer.Drop). Packets that no rule matches pass (dataplane/vpp).
//
// VPP applies ACLs before NAT44 (scenario acl_before_nat of vppfake), so the ACL protects a mapping (Guard).
package sourceranges
