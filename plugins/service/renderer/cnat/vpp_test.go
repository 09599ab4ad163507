package cnat_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/internal/testbed"
)

// The nodes' addresses for other machines.
const (
	node1 = "fd00:192:168:16::1"
	node2 = "fd00:192:168:16::2"
	// hostIP is the first node's on its link to VPP.
	hostIP = "fd00:172:30:1::2"
)

func vip(n int) string           { return fmt.Sprintf("fd00:10:96::%x", n) }
func at(ip string, p int) string { return net.JoinHostPort(ip, fmt.Sprint(p)) }

func nodePort(port int32, local bool) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = port
		}
		if local {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
}

// TestServices: real connections over IPv6 through real VPP on two nodes, with pods in VRF 1.
func TestServices(t *testing.T) {
	w := newWorld(t, 2)
	a, a2, b, outside := w.pod(0, "a", 1), w.pod(0, "a2", 1), w.pod(1, "b", 1), w.outside()
	host := &machine{Namespace: w.Nodes[0].Namespace, name: "host"}
	w.service("web", vip(0x10), nil, a, b)
	self := w.service("self", vip(0x11), nil, a)
	w.service("np", vip(0x12), nodePort(30080, false), a, b)
	w.service("np-local", vip(0x13), nodePort(30081, true), a)
	w.service("ext", vip(0x14), func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"fd00:99::1"} }, a, b)
	w.service("sticky", vip(0x15), func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, a, b)
	for _, network := range []string{"tcp", "udp"} {
		for _, from := range []*machine{a, a2, b, host} {
			w.reaches(from, network, at(vip(0x10), 80), "a", "b")
			w.reaches(from, network, at("fd00:99::1", 80), "a", "b")
		}
		w.sees(a2, network, at(vip(0x11), 80), a2.ip.String())
		w.sees(a, network, at(vip(0x11), 80), node1) // itself
		w.reaches(outside, network, at(node1, 30080), "a", "b")
		w.reaches(outside, network, at(node2, 30080), "a", "b")
		w.reaches(a2, network, at(node1, 30080), "a", "b")
		w.reaches(b, network, at(node1, 30080), "a", "b")
		w.reaches(host, network, at(node1, 30080), "a", "b")
		w.sees(outside, network, at(node1, 30081), outsideIP)
		w.refused(b, network, at(vip(0x10), 81))
		w.refused(host, network, at(vip(0x99), 80))
		first, _, err := a2.askOnce(network, at(vip(0x15), 80))
		w.must(err)
		for range 10 {
			w.reaches(a2, network, at(vip(0x15), 80), first)
		}
	}
	w.hostItself(host)
	w.endpoints(self)
	for _, from := range []*machine{a, a2, b, host} {
		w.refused(from, "tcp", at(vip(0x11), 80))
		w.refused(from, "udp", at(vip(0x11), 80))
	}
}

// hostItself: the host reaches a server of its own that has its address on the link to VPP (for other addresses: test/services).
func (w *world) hostItself(host *machine) {
	w.t.Helper()
	host.ip, host.node = netip.MustParseAddr(hostIP), w.Nodes[0].Name
	w.service("host", vip(0x16), nil, w.serve(host))
	for _, network := range []string{"tcp", "udp"} {
		w.reaches(host, network, at(vip(0x16), 80), "host")
		w.sees(host, network, at(vip(0x16), 80), node1)
	}
}

// TestLife: connections survive the agent, and the loss of other backends; a restarted agent writes nothing.
func TestLife(t *testing.T) {
	w := newWorld(t, 1)
	a, b, c := w.pod(0, "a", 1), w.pod(0, "b", 1), w.pod(0, "c", 1)
	web := w.service("web", vip(0x10), nil, a, b)
	w.reaches(c, "tcp", at(vip(0x10), 80), "a", "b")
	calls := map[string]*call{}
	for len(calls) < 4 {
		for _, network := range []string{"tcp", "udp"} {
			conn, err := c.dial(network, at(vip(0x10), 80))
			w.must(err)
			name, _, err := conn.ask()
			w.must(err)
			if calls[network+name] != nil {
				w.must(conn.Close())
				continue
			}
			calls[network+name] = conn
		}
	}
	served := func(when string, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if name, _, err := calls[key].ask(); err != nil || key[3:] != name {
				t.Errorf("%s: %s is answered by %q, %v", when, key, name, err)
			}
		}
	}
	n := w.Nodes[0]
	w.must(n.Agent.Kill())
	served("without an agent", "tcpa", "tcpb", "udpa", "udpb")
	w.start(n)
	if writes, err := n.Metric(w.ctx, "contiv_vpp_writes_total"); err != nil || writes != 0 {
		t.Errorf("the restarted agent has written %v times, %v", writes, err)
	}
	w.endpoints(web, a)
	w.reaches(c, "udp", at(vip(0x10), 80), "a")
	served("after the loss of b", "tcpa", "udpa")
	// VPP 25.10 has no way to end one session. This is what the documentation says; if it changes, rejoice.
	served("sessions of b", "udpb")
	w.endpoints(web, b)
	w.reaches(c, "tcp", at(vip(0x10), 80), "b")
	served("connections of a, which is not in the service any more", "tcpa")
}

// TestServicesIPv4: cnat serves IPv4, too, where it is asked to.
func TestServicesIPv4(t *testing.T) {
	w := newWorld(t, 2, "--cnat-ipv4")
	a, a2, b := w.pod(0, "a", 0), w.pod(0, "a2", 0), w.pod(1, "b", 0)
	w.service("web", "10.96.0.10", nil, a, b)
	for _, network := range []string{"tcp", "udp"} {
		for _, from := range []*machine{a, a2, b, {Namespace: w.Nodes[0].Namespace, name: "host"}} {
			w.reaches(from, network, "10.96.0.10:80", "a", "b")
		}
		w.refused(a, network, "10.96.0.10:81")
	}
	node := w.Nodes[0]
	host := &machine{Namespace: node.Namespace, name: "host", ip: netip.MustParseAddr(testbed.MgmtAddress(0)), node: node.Name}
	w.service("host", "10.96.0.11", nil, w.serve(host))
	for _, network := range []string{"tcp", "udp"} {
		w.reaches(a, network, "10.96.0.11:80", "host")
		w.reaches(b, network, "10.96.0.11:80", "host")
		w.reaches(&machine{Namespace: node.Namespace, name: "itself"}, network, "10.96.0.11:80", "host")
	}
	for _, n := range w.Nodes {
		_, err := n.Run(w.ctx, "sysctl", "-qw", "net.ipv4.ip_forward=1")
		w.must(err)
	}
	w.service("ranged", "10.96.0.12", balancer("203.0.113.1", a.ip.String()+"/32", b.ip.String()+"/32"), a, b)
	for _, network := range []string{"tcp", "udp"} {
		w.reached(a, network, "203.0.113.1:80", "a", "b")
		w.reached(b, network, "203.0.113.1:80", "a", "b")
		if name, err := a2.askFrom(network, "203.0.113.1:80"); !isTimeout(err) {
			t.Errorf("from a2, which may not, by %s: %q, %v", network, name, err)
		}
	}
}

// BenchmarkConnections makes connections to a service over IPv4, one after the other, by NAT44 and by cnat.
func BenchmarkConnections(b *testing.B) {
	for _, by := range []string{"--cnat-ipv4=false", "--cnat-ipv4=true"} {
		b.Run(by, func(b *testing.B) {
			w := newWorld(b, 1, by)
			server, client := w.pod(0, "a", 0), w.pod(0, "c", 0)
			w.service("web", "10.96.0.10", nil, server)
			w.reaches(client, "tcp", "10.96.0.10:80", "a")
			b.ResetTimer()
			for n := range b.N {
				if _, _, err := client.askOnce("tcp", "10.96.0.10:80"); err != nil {
					b.Fatalf("connection %d: %v", n, err)
				}
			}
			b.StopTimer()
		})
	}
}
