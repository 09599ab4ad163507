package cnat_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/internal/testbed"
)

const (
	guardedNet = "2001:db8:113::/64" // of load balancers
	// farIP is a client outside to which the hosts have no route, but VPP of the first node has.
	farIP = "2001:db8:9::9"
)

func guarded(n int) string { return fmt.Sprintf("2001:db8:113::%x", n+1) }

// balancer gives a service a load balancer's address, which may be used from some networks only.
func balancer(ip string, from ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, from
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	}
}

// rangesWorld is a world in which hosts forward, as those of Kubernetes do, and guarded leads to the first node.
func rangesWorld(t *testing.T) (w *world, outside *machine) {
	w = newWorld(t, 2)
	outside = w.outside()
	w.run(w.Underlay, "ip", "-6", "route", "add", guardedNet, "via", node1, "dev", "uplink")
	w.run(w.Underlay, "ip", "addr", "add", farIP+"/128", "dev", "lo")
	for _, n := range w.Nodes {
		w.run(n.Namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
	}
	return w, outside
}

func (w *world) run(ns *testbed.Namespace, name string, args ...string) {
	w.t.Helper()
	_, err := ns.Run(w.ctx, name, args...)
	w.must(err)
}

// wayToFar gives VPP a route to the far client, as its default gateway would.
func (w *world) wayToFar() {
	w.t.Helper()
	_, err := w.Nodes[0].VPP.CLI("ip route add " + farIP + "/128 via " + outsideIP + " host-" + testbed.UplinkNIC)
	w.must(err)
}

// askFrom is askOnce with the machine's own address, if it has one, as the source.
func (m *machine) askFrom(network, to string) (name string, err error) {
	d := net.Dialer{Timeout: time.Second}
	switch source := net.IP(m.ip.AsSlice()); {
	case !m.ip.IsValid():
	case network == "udp":
		d.LocalAddr = &net.UDPAddr{IP: source}
	default:
		d.LocalAddr = &net.TCPAddr{IP: source}
	}
	return name, m.Do(func() error {
		conn, err := d.Dial(network, to)
		if err != nil {
			return err
		}
		c := &call{conn, bufio.NewReader(conn)}
		defer c.Close()
		name, _, err = c.ask()
		return err
	})
}

// reached waits until a machine has been served by each of the backends; nobody else may answer.
func (w *world) reached(m *machine, network, to string, backends ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	missing := slices.Clone(backends)
	if err := testbed.Eventually(ctx, 10*time.Millisecond, func() error {
		name, err := m.askFrom(network, to)
		if err != nil {
			return err
		}
		if missing = slices.DeleteFunc(missing, func(other string) bool { return other == name }); len(missing) > 0 {
			return fmt.Errorf("%s have not answered", missing)
		}
		return nil
	}); err != nil {
		w.t.Errorf("from %s to %s %s: %v", m.name, network, to, err)
	}
}

// TestSourceRanges: who may use an address does, in pods and on hosts of both nodes and outside, and nobody else, whatever
// happens.
func TestSourceRanges(t *testing.T) {
	w, outside := rangesWorld(t)
	t.Run("who may", func(t *testing.T) { w.in(t).whoMay(outside) })
	t.Run("hold", func(t *testing.T) {
		if testing.Short() {
			t.Skip("restarts agents and VPP")
		}
		w.in(t).rangesHold(outside)
	})
}

// in is the world for a part of a test.
func (w *world) in(t *testing.T) *world {
	part := *w
	part.t = t
	return &part
}

// rangeCase is a service with an address for some clients.
type rangeCase struct {
	name      string
	from      []string
	may       []*machine
	nodePorts bool
}

func (w *world) whoMay(outside *machine) {
	a, b := w.pod(0, "a", 1), w.pod(1, "b", 1)
	w.wayToFar()
	far := &machine{Namespace: w.Underlay, name: "far", ip: netip.MustParseAddr(farIP)}
	h1, h2 := &machine{Namespace: w.Nodes[0].Namespace, name: "h1"}, &machine{Namespace: w.Nodes[1].Namespace, name: "h2"}
	all := []*machine{a, b, outside, far, h1, h2}
	cases := []rangeCase{
		{"the client outside", []string{outsideIP + "/128"}, []*machine{outside}, true},
		{"a client far away", []string{farIP + "/64"}, []*machine{far}, true},
		{"pods, one twice", []string{"fd10:1::/48", b.ip.String() + "/128"}, []*machine{a, b}, true},
		{"pods, no node ports", []string{"fd10:1::/48"}, []*machine{a, b}, false},
		{"a node", []string{node1 + "/128"}, []*machine{h1}, true},
		{"IPv4 only", []string{"192.0.2.0/24"}, nil, true},
	}
	for i, c := range cases {
		w.service(fmt.Sprint("s", i), vip(0x10+i), func(s *corev1.Service) {
			balancer(guarded(i), c.from...)(s)
			if c.nodePorts {
				nodePort(int32(30080+i), false)(s)
				s.Spec.Type = corev1.ServiceTypeLoadBalancer
			}
		}, a, b)
	}
	w.service("open", vip(0x20), func(s *corev1.Service) { // another port of an address that is not for everybody
		s.Spec.ExternalIPs = []string{guarded(0)}
		s.Spec.Ports[0].Port, s.Spec.Ports[1].Port = 443, 443
	}, a, b)
	for _, network := range []string{"tcp", "udp"} {
		for i, c := range cases {
			for _, m := range c.may {
				w.reached(m, network, at(guarded(i), 80), "a", "b")
			}
		}
		for _, m := range all {
			w.reached(m, network, at(guarded(0), 443), "a", "b")
		}
	}
	if !w.t.Failed() {
		w.othersMayNot(cases, all)
	}
	w.refused(a, "tcp", at(guarded(2), 81)) // nothing is served there
	w.refused(outside, "udp", at(guarded(2), 81))
}

// othersMayNot: those who may not hear nothing.
func (w *world) othersMayNot(cases []rangeCase, all []*machine) {
	var work sync.WaitGroup
	for i, c := range cases {
		for _, m := range all {
			if slices.Contains(c.may, m) {
				continue
			}
			for _, network := range []string{"tcp", "udp"} {
				work.Go(func() {
					// The host's own packets end where they are sent.
					if name, err := m.askFrom(network, at(guarded(i), 80)); !isTimeout(err) && !errors.Is(err, unix.EPERM) {
						w.t.Errorf("%s: from %s by %s: %q, %v; want silence", c.name, m.name, network, name, err)
					}
				})
			}
		}
	}
	work.Wait()
}

// BenchmarkByTheHost makes connections to an address that the host serves, and to the same service's cluster IP.
func BenchmarkByTheHost(b *testing.B) {
	w := newWorld(b, 1)
	w.run(w.Nodes[0].Namespace, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
	server, client := w.pod(0, "a", 1), w.pod(0, "c", 1)
	w.service("web", vip(0x10), balancer(guarded(0), "fd10:1::/48"), server)
	for _, to := range []string{guarded(0), vip(0x10)} {
		b.Run(to, func(b *testing.B) {
			w.reached(client, "tcp", at(to, 80), "a")
			for n := range b.N {
				if _, err := client.askFrom("tcp", at(to, 80)); err != nil {
					b.Fatalf("connection %d: %v", n, err)
				}
			}
		})
	}
}
