// Package cnat renders services for VPP's cnat, of the families it is told: IPv6, unless IPv4 is wanted from it, too
// (docs/adr/0010 says why).
//
//	client ──> interface with cnat ── translation of address and port ──> backend
//	answer <── session               <── interface by which it leaves <──
//
// A translation for each address, protocol and port of a service. VPP finds them by the packet alone, whatever table it is in,
// so there is nothing per pod but two features on its interface. VPP changes the backends of a translation in place.
//
// The client's address is kept, but for two cases: a pod that reaches itself, and traffic from other machines to backends that
// are reached by other machines. Then it is the node's, and answers come back this way. Pods go outside with their own IPv6
// addresses, whatever natExternalTraffic says: that is what IPv6 has addresses for, and VPP could not tell a restarted agent
// which destinations are excepted.
//
// What nothing serves has no translation. The networks of cluster IPs, and other addresses of services, are routed by way of an
// address that VPP's table 0 rejects: nothing of them leaves by the uplink. (A network must not be rejected directly: VPP 25.10
// dies of translations below such a route.) What is to be dropped is in an ACL (package gate).
//
// Session affinity: clients with the same address get the same backend as long as it is there (Maglev over the source
// address), without a time limit. It depends on addresses alone, so a restart should not end it, and a change of backends
// should move few clients; neither is tested.
//
// What cnat cannot do, and what becomes of it:
//   - SCTP over IPv6: no translation; rejected like an unused port.
//   - loadBalancerSourceRanges: ACLs come behind cnat, so a load balancer's address with ranges is led to the host, whose own
//     stack looks who sends and sends it to another place of the service, as its own (kernel.go, dataplane/hostports,
//     docs/adr/0010).
//     With externalTrafficPolicy Local it is not served at all.
//   - externalTrafficPolicy Local for pods: they get what outside clients get, that is local backends only. The host's own
//     processes get all: the host sends them to the cluster IP (alias.go).
//   - Sessions cannot be ended one by one: VPP has only a purge of everything, translations included. A UDP client that goes on
//     sending from one port, without a pause as long as VPP's session-max-age (30 s by default), stays with a backend that
//     has gone.
//   - A client cannot use one port for two services with a backend in common, and where sources are translated, ports that are
//     in use are given again: VPP 25.10 loses some of many connections (docs/adr/0010, TestFaults).
//   - It knows VPP's table 0 only: contiv.conf must leave mainVRFID at 0.
//
// The agent makes the renderer with New and registers it with the service plugin (RegisterRenderer). Network is ipnet.
package cnat
