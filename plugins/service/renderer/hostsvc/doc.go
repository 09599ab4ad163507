// Package hostsvc renders services for the in-process Linux dataplane (dataplane/linux), for both families, TCP, UDP and SCTP.
//
// A service becomes one value, a proto.BalancedServiceUpdate under config/contiv/driver/v1/service/<namespace>/<name>, which dataplane/feed
// hands to the driver. The renderer decides what depends on Kubernetes: which addresses a service has on this node, which backends serve
// which of them, and what becomes of traffic that nothing serves. The driver has packets only.
//
//	New(Deps{Txn: services.Txn(), Log: log})    services is the *service.Plugin, to which it is then registered
//
// What a frontend's source means (see the message):
//
//	ClusterIPs                        CLUSTER; here_only if internalTrafficPolicy is Local
//	ExternalIPs, node ports           EXTERNAL, or EXTERNAL_LOCAL if externalTrafficPolicy is Local
//	LoadBalancerIPs                   the same, with source ranges, to which the VIP itself belongs, for nodes that have it
//
// Node ports are served at the addresses that the processor says are this node's, and never at the loopback's.
package hostsvc
