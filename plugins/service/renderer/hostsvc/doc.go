// Package hostsvc renders services for the in-process Linux dataplane (dataplane/linux), for both families, TCP, UDP and SCTP.
//
// A service becomes one value, a proto.BalancedServiceUpdate under config/contiv/driver/v1/service/<namespace>/<name>, which dataplane/feed
// passes to the driver. The renderer decides everything that depends on Kubernetes: the addresses that a service has on this node, the
// backends that serve each address, and the verdict for traffic without a backend. The driver only processes packets.
//
//	New(Deps{Txn: services.Txn(), Log: log})    services is the *service.Plugin, to which it is then registered
//
// The meaning of a frontend's source (see the message):
//
//	ClusterIPs                        CLUSTER; here_only if internalTrafficPolicy is Local
//	ExternalIPs, node ports           EXTERNAL, or EXTERNAL_LOCAL if externalTrafficPolicy is Local
//	LoadBalancerIPs                   the same, with source ranges, to which the VIP itself belongs, for nodes that have it
//
// Node ports are served at the addresses that the processor reports as this node's, and never at loopback addresses.
package hostsvc
