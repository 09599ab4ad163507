package services

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

func nodePort(s *corev1.Service, _ int) { s.Spec.Type = corev1.ServiceTypeNodePort }

func nodePortLocal(s *corev1.Service, _ int) {
	s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyLocal
}

func internalLocal(s *corev1.Service, _ int) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	s.Spec.InternalTrafficPolicy = &local
}

func externalIPs(s *corev1.Service, number int) { s.Spec.ExternalIPs = external(number) }

// loadBalancer adds an address of each family; ranges are the permitted source ranges.
func loadBalancer(ranges ...string) func(*corev1.Service, int) {
	return func(s *corev1.Service, number int) {
		s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, ranges
		for _, ip := range external(number) {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
	}
}

func loadBalancerLocal(ranges ...string) func(*corev1.Service, int) {
	return func(s *corev1.Service, number int) {
		loadBalancer(ranges...)(s, number)
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
}

func loadBalancerMode(m corev1.LoadBalancerIPMode) func(*corev1.Service, int) {
	return func(s *corev1.Service, number int) {
		loadBalancer()(s, number)
		for i := range s.Status.LoadBalancer.Ingress {
			s.Status.LoadBalancer.Ingress[i].IPMode = &m
		}
	}
}

func affinity(s *corev1.Service, _ int) {
	seconds := int32(600)
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
}

func foreignProxy(s *corev1.Service, _ int) {
	s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
}

func sameZone(s *corev1.Service, _ int) {
	same := "PreferSameZone"
	s.Spec.TrafficDistribution = &same
}

func withSCTP(s *corev1.Service, _ int) {
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "sctp", Protocol: corev1.ProtocolSCTP, Port: 80})
}

// onVPP describes how VPP deviates, and why.
func onVPP(why string, expect ...string) map[string]deviation {
	return map[string]deviation{"vpp": {why, expect}}
}

const sameForAll = "NAT44 does not tell clients in the cluster from those outside: externalTrafficPolicy Local is for all"

// netOf returns the network that contains only this address.
func netOf(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

// clusterCases returns the cases of traffic inside of the cluster.
func clusterCases() []scenario {
	return []scenario{
		{name: "cluster IP", endpoints: []string{"a", "b", "c", "d"}, expect: []string{
			"p1,p2 any cluster -> a,b,c,d as client", "h1,h2 any cluster -> a,b,c,d"}},
		{name: "backend on this node", endpoints: []string{"a"}, expect: []string{
			"p1 any cluster -> a as client", "h1 any cluster -> a"}},
		{name: "backend on another node", endpoints: []string{"c"}, expect: []string{
			"p1 any cluster -> c as client", "h1 any cluster -> c"}},
		{name: "a backend reaches itself", endpoints: []string{"a"}, expect: []string{"a any cluster -> a as node"}},
		{name: "unused port", endpoints: []string{"a"}, expect: []string{"p1,h1 any cluster:81 -> rejected"}},
		{name: "no endpoints", expect: []string{"p1,p2,h1 any cluster -> rejected"}},
		{name: "no ready endpoints", endpoints: []string{"a:notready", "c:dead"}, expect: []string{
			"p1,h1 any cluster -> rejected"}},
		{name: "ready endpoints only", endpoints: []string{"a", "b:notready", "c:terminating"}, expect: []string{
			"p1,p2,h1 any cluster -> a"}},
		{name: "terminating endpoints if there are no others", endpoints: []string{"a:terminating", "c:terminating", "b:dead"},
			expect: []string{"p1,h2 any cluster -> a,c"}},
		{name: "target port by slice", endpoints: []string{"a", "c:other"}, expect: []string{"p1,h1 any cluster -> a,c"}},
		{name: "host network backend", endpoints: []string{"h1"}, expect: []string{"p1,p2,h2 any cluster -> h1"}},
		{name: "a host network backend reaches itself", endpoints: []string{"h1"}, expect: []string{"h1 any cluster -> h1"}},
		{name: "host network backends of both nodes", endpoints: []string{"h1", "h2"}, expect: []string{
			"p1,h1,h2 any cluster -> h1,h2"}},
		{name: "internalTrafficPolicy Local", change: internalLocal, endpoints: []string{"a"}, expect: []string{
			"p1,h1 any cluster -> a", "p2,h2 any cluster -> dropped"}},
		{name: "session affinity", change: affinity, endpoints: []string{"a", "b", "c", "d"}, expect: []string{
			"p1,p2,h1 any cluster -> one of a,b,c,d"}},
		{name: "zone hints", change: sameZone, endpoints: []string{"a:hint=zone1", "c:hint=zone2"}, expect: []string{
			"p1,h1 any cluster -> a", "p2,h2 any cluster -> c"}},
		{name: "SCTP beside TCP", change: withSCTP, endpoints: []string{"a"}, expect: []string{"p1,h1 any cluster -> a"}},
		{name: "another proxy's service", change: foreignProxy, endpoints: []string{"a"}, expect: []string{
			"p1,h1 any cluster -> nothing"}},
	}
}

// externalCases returns the cases of traffic to addresses that are reachable from outside of the cluster.
func externalCases() []scenario {
	out4, out6 := netOf(outAddrs[0]), netOf(outAddrs[1])
	return []scenario{
		{name: "node port", change: nodePort, endpoints: []string{"a", "c"}, expect: []string{
			"out any node1 -> a,c", "out any node2 -> a,c", "p1 any node1 -> a,c", "p1 any node2 -> a,c", "h1 any node1 -> a,c",
			"h1 any node2 -> a,c", "p1 any cluster -> a,c"}},
		{name: "node port at the host's address", change: nodePort, endpoints: []string{"a", "c"}, expect: []string{
			"h1,h2 any host1 -> a,c", "p1,p2 any host1 -> a,c"}},
		{name: "node port without endpoints", change: nodePort, expect: []string{"out,p1 any node1 -> rejected"},
			instead: onVPP("VPP answers for none of its own ports", "out,p1 any node1 -> nothing")},
		{name: "node port Local", change: nodePortLocal, endpoints: []string{"a"}, expect: []string{
			"out any node1 -> a as client", "out any node2 -> dropped", "p2 any node2 -> a as client", "h2 any node2 -> a",
			"p1 any node1 -> a as client", "h1 any node1 -> a"},
			instead: onVPP(sameForAll, "out,p1 any node1 -> a as client", "out,p2,h2 any node2 -> dropped", "h1 any node1 -> a")},
		{name: "node port Local, both nodes", change: nodePortLocal, endpoints: []string{"a", "c"}, expect: []string{
			"out any node1 -> a as client", "out any node2 -> c as client", "p1,h1 any node1 -> a,c", "p2,h2 any node2 -> a,c",
			"h1 any host1 -> a,c", "h2 any host2 -> a,c", "b any node1 -> a,c as client", "a any node1 -> a,c"},
			instead: onVPP(sameForAll, "out any node1 -> a as client", "out any node2 -> c as client", "p1,h1 any node1 -> a",
				"p2,h2 any node2 -> c", "h1 any host1 -> a", "h2 any host2 -> c", "b any node1 -> a as client", "a any node1 -> a")},
		{name: "node port Local at the host's address", change: nodePortLocal, endpoints: []string{"a", "b", "c"}, expect: []string{
			"h2 any host1 -> a,b as client", "h1 any host2 -> c as client", "p1,p2,h1 any cluster -> a,b,c", "h1 any host1 -> a,b,c"},
			instead: onVPP("the host hides its clients, and VPP has no way to answer by the host", "h2 any host1 -> a,b as node")},
		{name: "node port Local at the host's address, none here", change: nodePortLocal, endpoints: []string{"c"}, expect: []string{
			"h2 any host1 -> dropped", "h1 any host1 -> c"},
			instead: onVPP(sameForAll, "h1,h2 any host1 -> dropped")},
		{name: "node port Local at the host's address, none", change: nodePortLocal, expect: []string{"h1,h2 any host1 -> rejected"},
			instead: onVPP("VPP answers for none of its own ports", "h1,h2 any host1 -> nothing")},
		{name: "node port Local of another node", change: nodePortLocal, endpoints: []string{"a"}, expect: []string{
			"p1,h1 any node2 -> dropped"}}, // there they count as machines outside
		{name: "node port Local, the last endpoint terminates", change: nodePortLocal, endpoints: []string{"a:terminating", "c"},
			expect: []string{"out any node1 -> a as client", "out any node2 -> c as client", "p1 any cluster -> c"}},
		{name: "external IP", change: externalIPs, endpoints: []string{"a", "c"}, expect: []string{
			"out any external -> a,c", "p1,p2,h1 any external -> a,c"}},
		{name: "external IP without endpoints", change: externalIPs, expect: []string{"p1,out any external -> rejected"},
			instead: onVPP("NAT44 lets no ICMP error out by the uplink", "p1,h1 any external -> rejected", "out any external -> nothing")},
		{name: "load balancer", change: loadBalancer(), endpoints: []string{"a", "c"}, expect: []string{
			"out any lb -> a,c", "p1,h1 any lb -> a,c", "out any node2 -> a,c"}},
		{name: "load balancer Local", change: loadBalancerLocal(), endpoints: []string{"a"}, expect: []string{
			"out any lb -> a as client", "p2 any lb -> a as client", "h2 any lb -> a"},
			instead: onVPP(sameForAll, "out any lb -> a as client", "p1,h1 any lb -> a", "p2,h2 any lb -> dropped")},
		{name: "load balancer Local, none here", change: loadBalancerLocal(), endpoints: []string{"c"}, expect: []string{
			"out any lb -> dropped", "p1 any lb -> c as client", "h1 any lb -> c"},
			instead: onVPP(sameForAll, "out,p1,h1 any lb -> dropped", "p2,h2 any lb -> c")},
		{name: "load balancer Local, both nodes", change: loadBalancerLocal(), endpoints: []string{"a", "c"}, expect: []string{
			"out any lb -> a as client", "p1,p2,b any lb -> a,c as client", "h1,h2 any lb -> a,c", "a any lb -> a,c"},
			instead: onVPP(sameForAll, "out,p1 any lb -> a as client", "h1 any lb -> a", "p2,h2 any lb -> c")},
		{name: "load balancer Local, host network", change: loadBalancerLocal(), endpoints: []string{"h1", "c"}, expect: []string{
			"out any lb -> h1", "p1,p2,h1,h2 any lb -> h1,c"},
			instead: onVPP(sameForAll, "out,p1,h1 any lb -> h1", "p2,h2 any lb -> c")},
		{name: "load balancer with ipMode VIP", change: loadBalancerMode(corev1.LoadBalancerIPModeVIP), endpoints: []string{"a"},
			expect: []string{"p1,out any lb -> a"}},
		{name: "load balancer with ipMode Proxy", change: loadBalancerMode(corev1.LoadBalancerIPModeProxy), endpoints: []string{"a"},
			expect: []string{"p1,out any lb -> nothing"}},
		{name: "source range that has the client", change: loadBalancer(out4, out6), endpoints: []string{"a", "c"}, expect: []string{
			"out any lb -> a,c", "p1,p2,h1 any lb -> dropped", "p1 any cluster -> a,c"}},
		{name: "source range that has not", change: loadBalancer("198.51.100.0/24", "2001:db8:51::/64"), endpoints: []string{"a"},
			expect: []string{"out,p1,p2,h1 any lb -> dropped", "out any node1 -> a", "p1,h1 any cluster -> a"}},
		{name: "source range of pods", change: loadBalancer("10.1.0.0/16", "fd10:1::/48"), endpoints: []string{"a", "c"},
			expect: []string{"p1,p2,a any lb -> a,c", "out,h1,h2 any lb -> dropped"}},
		{name: "source range of a node", // with VPP the node has other addresses
			change:    loadBalancer("10.199.0.101/32", "192.168.16.101/32", "fd00:99::65/128", "fd00:16::65/128"),
			endpoints: []string{"a", "c"}, expect: []string{"h1 any lb -> a,c", "out,h2,p1 any lb -> dropped"}},
		{name: "source range with policy Local", change: loadBalancerLocal(out4, out6), endpoints: []string{"a"}, expect: []string{
			"out any lb -> a as client", "p1,p2,h2 any lb -> dropped"}},
		{name: "source range without endpoints", change: loadBalancer("10.1.0.0/16", "fd10:1::/48"), expect: []string{
			"p1 any lb -> rejected"}},
	}
}

// scenarios returns THE list of cases.
func scenarios() []scenario { return append(clusterCases(), externalCases()...) }
