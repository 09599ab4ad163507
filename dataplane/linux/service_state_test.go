package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/nsdo"
)

// webService returns a service with a cluster IP and pods of the test.
func (n *node) webService(name string, i int, pods ...int) *serviceMsg {
	s := newLB(name)
	bothFamilies(func(f table.Family) { s.port(f, n.pods(f, pods...), nil, front(cluster, vip(f, i), 80)) })
	return s
}

// widely returns a service with the given number of backends, which are ports of the three pods.
func (n *node) widely(name string, i, backends int) *serviceMsg {
	s := newLB(name)
	bothFamilies(func(f table.Family) {
		g := &proto.BalancedGroup{}
		for k := range backends {
			g.Addresses = append(g.Addresses, n.addr(k%3+1, f).AsSlice()...)
			g.Ports = append(g.Ports, podPort+uint32(k/3))
		}
		s.port(f, g, nil, front(cluster, vip(f, i), 80))
	})
	return s
}

func at(f table.Family, i int) netip.AddrPort { return netip.AddrPortFrom(vip(f, i), 80) }

// restart simulates a new process on the state of the last one.
func (n *node) restart(msgs ...any) {
	n.t.Helper()
	n.stop()
	n.start()
	n.apply(append(append(podPools(), msgs...), n.open()...)...)
	n.up("pod1", "pod2", "pod3")
}

// TestServiceAffinity: a client keeps its backend, even over a restart, until the backend is removed, and then keeps another.
func TestServiceAffinity(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		sticky := func(pods ...int) *proto.BalancedServiceUpdate {
			return n.webService("sticky", 1, pods...).affinity(3600).m
		}
		n.apply(sticky(1, 2, 3))
		first := map[table.Family]string{}
		same := func(why string) {
			bothFamilies(func(f table.Family) {
				for range 12 {
					got, err := query(n.Outside, "tcp", at(f, 1))
					if err != nil || got.by != first[f] {
						t.Errorf("%s: %q, %v, want %s", why, got.by, err, first[f])
						return
					}
				}
			})
		}
		meet := func() {
			bothFamilies(func(f table.Family) {
				got, err := query(n.Outside, "tcp", at(f, 1))
				if err != nil {
					t.Error(err)
				}
				first[f] = got.by
			})
		}
		meet()
		same("at first")
		n.restart(sticky(1, 2, 3))
		same("after a restart")
		left := slices.DeleteFunc([]int{1, 2, 3}, func(i int) bool { return first[4] == fmt.Sprintf("pod%d", i) })
		n.apply(sticky(left...))
		gone := first[4]
		meet()
		if first[4] == gone {
			t.Errorf("%s is gone and still answers", gone)
		}
		same("with another backend")
		n.apply(sticky(1, 2, 3))
		same("now that the first is back")
	})
}

// TestServiceAffinityEnds: after its timeout a client may get any backend.
func TestServiceAffinityEnds(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		n.apply(n.webService("sticky", 1, 1, 2, 3).affinity(1).m)
		got, err := query(n.Outside, "tcp", at(4, 1))
		if err != nil {
			t.Fatal(err)
		}
		// It ends after 1.3 seconds without a connection.
		for range 12 {
			time.Sleep(1300 * time.Millisecond)
			next, err := query(n.Outside, "tcp", at(4, 1))
			if err == nil && next.by != got.by {
				return
			}
		}
		t.Error("the client met the same backend 13 times, though it came rarely enough; by chance this is 1 in 500,000")
	})
}

// TestServiceDatagrams: packets of clients that keep sending UDP from the same port no longer go to a removed backend, and reach the first
// backend of a service that had none.
func TestServiceDatagrams(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		bothFamilies(func(f table.Family) {
			n.apply(n.webService("dns", 1, 2).m)
			conn, err := dial(n.Pods[0], "udp", at(f, 1))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			meets := func(why, pod string) {
				eventually(t, why, func() bool {
					got, err := queryOver(conn, "udp")
					return err == nil && got.by == pod
				})
			}
			meets("the backend", "pod2")
			n.apply(n.webService("dns", 1, 3).m)
			meets("the backend is another", "pod3")
			none := newLB("dns")
			bothFamilies(func(f table.Family) {
				none.port(f, noBackend(proto.BalancedGroup_REJECT), nil, front(cluster, vip(f, 1), 80))
			})
			n.apply(none.m)
			eventually(t, "no backend serves", func() bool { _, err := queryOver(conn, "udp"); return errors.Is(err, errRefused) })
			n.apply(n.webService("dns", 1, 1, 2).m, n.webService("dns", 1, 2).m)
			meets("the first backend", "pod2")
		})
	})
}

// TestServiceTooEarly: a client that connected before the service was announced is served as soon as it is, from the same port. The kernel
// had recorded that the connection is not translated.
func TestServiceTooEarly(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		const port = 20000
		from := func(node *tabletest.Node, f table.Family) (answer, error) {
			d := net.Dialer{Timeout: silence, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(node.Addr(f), port))}
			var conn net.Conn
			err := node.NS.Do(func() (err error) {
				conn, err = d.DialContext(context.Background(), "tcp", at(f, 1).String())
				return err
			})
			if err != nil {
				return answer{}, err
			}
			defer conn.Close()
			if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // the port is free at once
				return answer{}, err
			}
			return queryOver(conn, "tcp")
		}
		clients := []*tabletest.Node{n.Pods[0], n.Outside}
		bothFamilies(func(f table.Family) {
			for _, c := range clients {
				eventually(t, fmt.Sprintf("IPv%d: the kernel remembers an attempt of %s", f, c.Name), func() bool {
					if got, err := from(c, f); err == nil {
						t.Fatalf("IPv%d: %s answers before there is a service", f, got.by)
					}
					return n.tracks(c.Addr(f), port)
				})
			}
		})
		n.apply(n.webService("web", 1, 2).m)
		bothFamilies(func(f table.Family) {
			for _, c := range clients {
				eventually(t, fmt.Sprintf("IPv%d: %s is served", f, c.Name), func() bool {
					got, err := from(c, f)
					return err == nil && got.by == "pod2"
				})
			}
		})
	})
}

// tracks reports whether the node tracks a connection from an address and port.
func (n *node) tracks(from netip.Addr, port uint16) (found bool) {
	n.t.Helper()
	_, err := conntrack.DeleteFlows(context.Background(), n.Host.NS, conntrack.Which{Protocols: []uint8{protoTCP}},
		func(f conntrack.Flow) bool {
			found = found || f.From == netip.AddrPortFrom(from, port)
			return false
		})
	if err != nil {
		n.t.Fatal(err)
	}
	return found
}

// TestServiceRestart: without changes, a restart of the agent writes nothing, and neither open nor new connections are affected.
func TestServiceRestart(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		var all []any
		for i := range 20 {
			all = append(all, n.webService(fmt.Sprintf("s%d", i), i+1, 2, 3).affinity(uint32(i%2*3600)).m)
		}
		n.apply(all...)
		var failed, done atomic.Int64
		stop := make(chan struct{})
		bothFamilies(func(f table.Family) {
			n.serving.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := query(n.Pods[0], "tcp", at(f, 1)); err != nil {
						failed.Add(1)
					}
					done.Add(1)
				}
			})
		})
		held, err := dial(n.Pods[0], "udp", at(4, 1))
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		before, err := queryOverWithin(maxWait, held, "udp")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n.restart(all...)
			if dump, err := n.d.Dump(); err != nil || dump.Writes != 0 {
				t.Errorf("restart: %v, %d objects were written, want none", err, dump.Writes)
			}
			n.apply(all...)
			if dump, err := n.d.Dump(); err != nil || dump.Writes != 0 {
				t.Errorf("the same again: %v, %d objects were written, want none", err, dump.Writes)
			}
		}
		if after, err := queryOverWithin(maxWait, held, "udp"); err != nil || after.by != before.by {
			t.Errorf("the open flow went from %s to %s, %v", before.by, after.by, err)
		}
		eventually(t, "connections were made", func() bool { return done.Load() > 50 })
		close(stop)
		if failed.Load() > 0 {
			t.Errorf("%d of %d connections failed", failed.Load(), done.Load())
		}
	})
}

// TestServiceSpread: connections are spread evenly for any number of backends, and each backend gets some. (The probability of a chi-square
// beyond the limit is 1 in 10,000 or less.)
func TestServiceSpread(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		for i := range 3 {
			n.serve(i+1, podPort+1)
			n.serve(i+1, podPort+2)
		}
		for _, c := range []struct {
			backends int
			limit    float64
		}{{3, 18.4}, {5, 23.5}, {9, 31.8}} {
			n.apply(n.widely("web", 1, c.backends).m)
			bothFamilies(func(f table.Family) {
				const each = 80
				met := map[string]float64{}
				for range each * c.backends {
					got, err := query(n.Outside, "udp", at(f, 1))
					if err != nil {
						t.Fatal(err)
					}
					met[got.by]++
				}
				chi := 0.0
				for _, times := range met {
					chi += (times - each) * (times - each) / each
				}
				if chi > c.limit || len(met) != c.backends {
					t.Errorf("IPv%d, %d backends: %v, chi-square %.1f", f, c.backends, met, chi)
				}
			})
		}
	})
}

// TestServiceAffinityOfMany: clients keep their backends if there are more than a few.
func TestServiceAffinityOfMany(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		for i := range 3 {
			n.serve(i+1, podPort+1)
			n.serve(i+1, podPort+2)
		}
		const services = 20
		var msgs []any
		for i := range services {
			msgs = append(msgs, n.widely(fmt.Sprint("sticky", i), i+1, 9).affinity(3600).m)
		}
		n.apply(msgs...)
		bothFamilies(func(f table.Family) {
			met := map[string]bool{}
			for i := range services {
				first, err := query(n.Outside, "udp", at(f, i+1))
				if err != nil {
					t.Fatal(err)
				}
				met[first.by] = true
				for range 4 {
					if got, err := query(n.Outside, "udp", at(f, i+1)); err != nil || got.by != first.by {
						t.Fatalf("IPv%d, service %d: first %s, then %q, %v", f, i, first.by, got.by, err)
					}
				}
			}
			if len(met) < 4 { // the probability of this is one in a million
				t.Errorf("IPv%d: of nine backends only %v are ever met", f, met)
			}
		})
	})
}

// TestServicePolicy: a pod's policy sees the backend's port and, for clients that are pods, the client's address.
func TestServicePolicy(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		rule := tcpPort("allow", podPort)
		rule.SrcNet = []string{n.addr(1, 4).String() + "/32", n.addr(1, 6).String() + "/128"}
		n.apply(policy("web", rule), n.pod(2, withTiers(ingress("web"))), n.webService("web", 1, 2).m)
		n.up("pod2")
		bothFamilies(func(f table.Family) {
			n.expectBy("tcp", "allowed", n.Pods[0], at(f, 1), want{by: []string{"pod2"}})
			n.expectBy("tcp", "not allowed", n.Pods[2], at(f, 1), want{err: errSilence})
		})
	})
}

// TestServiceFaults: an invalid service is left out and reported; an address moves to another service that is announced before the first
// one is removed; SCTP is accepted; objects that another program removes are restored.
func TestServiceFaults(t *testing.T) {
	withServices(t, func(t *testing.T, n *node) {
		bad := n.webService("bad", 9, 1)
		bad.m.Ports[0].Protocol = 1
		sctp := n.webService("sctp", 8, 1)
		for _, p := range sctp.m.Ports {
			p.Protocol = 132
		}
		n.apply(bad.m, n.webService("b", 2, 2).m, n.webService("a", 1, 3).m, sctp.m)
		bothFamilies(func(f table.Family) {
			n.expect("the one that has it", n.Pods[0], at(f, 1), want{by: []string{"pod3"}})
			n.expect("not served", n.Pods[0], netip.AddrPortFrom(vip(f, 8), 81), want{err: errRefused})
		})
		dump, err := n.d.Dump()
		if err != nil || !strings.Contains(dump.Broken["service default/bad"], "protocol 1") || len(dump.Broken) != 1 {
			t.Errorf("broken: %v, %v", dump.Broken, err)
		}
		n.apply(n.webService("b", 1, 2).m, &proto.BalancedServiceRemove{Namespace: "default", Name: "a"},
			&proto.BalancedServiceRemove{Namespace: "default", Name: "bad"})
		n.expect("the other", n.Pods[0], at(4, 1), want{by: []string{"pod2"}})
		if n.config.RulesConfig.Backend == rules.BackendNFT {
			n.run("nft", "delete", "table", "ip", "contiv-services")
			for i := range 4 {
				n.run("nft", "flush", "map", "ip6", "contiv-services", fmt.Sprint("backends-", i))
			}
		} else {
			n.run("iptables", "-t", "nat", "-F", chainServicesIn)
			n.run("ip6tables", "-t", "nat", "-F", chainServicesIn)
		}
		bothFamilies(func(f table.Family) {
			eventually(t, "it is repaired", func() bool {
				got, err := query(n.Pods[0], "udp", at(f, 1))
				return err == nil && got.by == "pod2"
			})
		})
		n.apply(&proto.BalancedServiceRemove{Namespace: "default", Name: "b"},
			&proto.BalancedServiceRemove{Namespace: "default", Name: "sctp"})
		if text := n.kernel(); strings.Contains(text, "services") || strings.Contains(text, "cali-s") {
			t.Errorf("no service is left, but:\n%s", text)
		}
	})
}

// randomService returns a random service of a small world, in which services change often and conflict with each other.
func randomService(random *rand.Rand) *proto.BalancedServiceUpdate {
	s := newLB(fmt.Sprintf("s%d", random.IntN(8)))
	group := func(f table.Family) *proto.BalancedGroup {
		g := &proto.BalancedGroup{Ports: []uint32{8080}}
		for i := range 6 {
			if random.IntN(2) == 0 {
				a := netip.AddrFrom4([4]byte{10, 65, 0, byte(i + 1)})
				if f == table.IPv6 {
					a = netip.MustParseAddr(fmt.Sprintf("fd00:65::%x", i+1))
				}
				g.Addresses = append(g.Addresses, a.AsSlice()...)
			}
		}
		if len(g.Addresses) == 0 {
			return noBackend(proto.BalancedGroup_Verdict(1 + random.IntN(2)))
		}
		if random.IntN(2) == 0 {
			g.Own = g.Addresses
		}
		return g
	}
	bothFamilies(func(f table.Family) {
		if random.IntN(4) == 0 {
			return
		}
		var fronts []*proto.BalancedFrontend
		for i := range 4 {
			if random.IntN(2) == 0 {
				fr := front(proto.BalancedFrontend_Source(random.IntN(3)), vip(f, i+1), uint32(80+random.IntN(2)))
				if fr.Source != cluster && random.IntN(3) == 0 {
					fr.Restricted, fr.SourceRanges = true, []string{"192.0.2.0/24", "198.51.100.0/24"}[:random.IntN(3)]
					if f == table.IPv6 {
						fr.SourceRanges = nil
					}
				}
				fronts = append(fronts, fr)
			}
		}
		s.port(f, group(f), group(f), fronts...)
	})
	return s.affinity(uint32(random.IntN(3) * 60)).m
}

// owned returns services without shared frontends: each frontend belongs to the first service by name that has it, as
// plugins/service/owners ensures.
func owned(world map[string]*proto.BalancedServiceUpdate) map[string]*proto.BalancedServiceUpdate {
	taken, out := map[string]bool{}, map[string]*proto.BalancedServiceUpdate{}
	for _, name := range slices.Sorted(maps.Keys(world)) {
		m := pb.CloneOf(world[name])
		for _, p := range m.Ports {
			p.Frontends = slices.DeleteFunc(p.Frontends, func(f *proto.BalancedFrontend) bool {
				key := fmt.Sprintf("%x %d %d", f.Address, f.Port, p.Protocol)
				lost := taken[key]
				taken[key] = true
				return lost
			})
		}
		out[name] = m
	}
	return out
}

// changesOf returns the messages that lead from one state to another, in random order.
func changesOf(random *rand.Rand, before, after map[string]*proto.BalancedServiceUpdate) (msgs []any) {
	for name, m := range before {
		if after[name] == nil {
			msgs = append(msgs, &proto.BalancedServiceRemove{Namespace: m.Namespace, Name: m.Name})
		}
	}
	for name, m := range after {
		if before[name] == nil || !pb.Equal(before[name], m) {
			msgs = append(msgs, m)
		}
	}
	random.Shuffle(len(msgs), func(i, j int) { msgs[i], msgs[j] = msgs[j], msgs[i] })
	return msgs
}

// TestServiceRandom: every path to a state results in the same kernel state as a start in it, and a restart writes nothing. Frontends move
// from service to service; the driver receives the changes in any order.
func TestServiceRandom(t *testing.T) {
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			config := Config{IPv6Enabled: true, RulesConfig: rules.Config{Backend: backend}}
			walked := netns(t, "walk")
			walker := newStepper(t, config, walked)
			defer walker.stop()
			random := rand.New(rand.NewPCG(7, 7))
			world := map[string]*proto.BalancedServiceUpdate{}
			steps := map[string]int{rules.BackendNFT: 120, rules.BackendIptables: 12}[backend]
			walker.step(podPools()...)
			for i := range steps {
				before := owned(world)
				for range random.IntN(6) {
					m := randomService(random)
					if world[m.Name] != nil && random.IntN(4) == 0 {
						delete(world, m.Name)
					} else {
						world[m.Name] = m
					}
				}
				walker.step(changesOf(random, before, owned(world))...)
				if i%(steps/4) == steps/4-1 {
					compareWithStart(t, config, walked, owned(world))
				}
			}
		})
	}
}

func compareWithStart(t *testing.T, config Config, walked *nsdo.Namespace, world map[string]*proto.BalancedServiceUpdate) {
	t.Helper()
	msgs := podPools()
	for _, m := range world {
		msgs = append(msgs, m)
	}
	started := netns(t, fmt.Sprint("fresh", time.Now().UnixNano()%1000000))
	fresh := newStepper(t, config, started)
	fresh.step(msgs...)
	fresh.stop()
	backend := config.RulesConfig.Backend
	want, got := kernelText(t, started, backend), kernelText(t, walked, backend)
	if got != want {
		t.Fatalf("the kernel differs from that of a start:\n%s", difference(want, got))
	}
	again := newStepper(t, config, walked)
	again.step(msgs...)
	if again.d.progress.writes != 0 {
		t.Errorf("a start on what is there wrote %d objects", again.d.progress.writes)
	}
	again.stop()
}
