package intdataplane

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/proto"
)

// dnsService returns a UDP service with backends 10.1.0.x.
func dnsService(t *testing.T, backends ...byte) *lb.Service {
	t.Helper()
	group := &proto.BalancedGroup{Verdict: proto.BalancedGroup_DROP}
	if len(backends) > 0 {
		group = &proto.BalancedGroup{Ports: []uint32{5353}}
	}
	for _, b := range backends {
		group.Addresses = append(group.Addresses, 10, 1, 0, b)
	}
	s, err := lb.Parse(&proto.BalancedServiceUpdate{Namespace: "default", Name: "dns", Ports: []*proto.BalancedPort{{Name: "dns", Protocol: protoUDP,
		Frontends: []*proto.BalancedFrontend{{Address: []byte{10, 96, 0, 10}, Port: 53}}, Everywhere: group}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keeping adds backends 10.1.0.x that only keep their connections.
func keeping(s *lb.Service, t *testing.T, backends ...byte) *lb.Service {
	t.Helper()
	s.Ports[0].Kept = dnsService(t, backends...).Ports[0].Frontends[0].Inside
	return s
}

// TestFlowsToServingBackendsStay: a connection to a backend that still serves stays, although the backend gets no new connections, until it
// does not serve any more. A connection that was rejected does not stay when the first backend gets new connections.
func TestFlowsToServingBackendsStay(t *testing.T) {
	remove := func(context.Context, conntrack.Which, func(conntrack.Flow) bool) (int, error) { return 0, nil }
	f := newFlowSweeper(remove, slog.New(slog.DiscardHandler))
	steps := []struct {
		name     string
		old, now *lb.Service
		stale    []byte
	}{
		{"1 terminates", dnsService(t, 1, 2), keeping(dnsService(t, 2), t, 1), nil},
		{"1 does not serve any more", keeping(dnsService(t, 2), t, 1), dnsService(t, 2), []byte{1}},
		{"no backend gets new connections", dnsService(t, 1, 2), keeping(dnsService(t), t, 1, 2), nil},
		{"the first one does again", keeping(dnsService(t), t, 1), keeping(dnsService(t, 2), t, 1), []byte{0}},
		{"a new process", nil, keeping(dnsService(t, 2), t, 1), []byte{0, 3}},
	}
	for _, s := range steps {
		f.noted = noOutdated()
		f.compare(s.old, s.now)
		for backend := range byte(4) {
			flow := dnsFlow(backend)
			if backend == 0 {
				flow.Answers = flow.To // not translated
			}
			if want := slices.Contains(s.stale, backend); want && !f.noted.gone(flow) {
				t.Errorf("%s: the connection to %s stays", s.name, flow.Answers)
			} else if !want && backend != 0 && backend != 3 && f.noted.gone(flow) {
				t.Errorf("%s: the connection to %s is removed", s.name, flow.Answers)
			}
		}
	}
}

// TestFlowsOfMovedFrontends: when a frontend moves to another service, connections to backends of that service stay, in whatever order the
// driver hears of the two services.
func TestFlowsOfMovedFrontends(t *testing.T) {
	remove := func(context.Context, conntrack.Which, func(conntrack.Flow) bool) (int, error) { return 0, nil }
	named := func(name string, backends ...byte) *lb.Service {
		s := dnsService(t, backends...)
		s.Name = name
		return s
	}
	a, b := named("a", 1), named("b", 2)
	for _, takesFirst := range []bool{true, false} {
		f := newFlowSweeper(remove, slog.New(slog.DiscardHandler))
		f.compare(nil, a)
		if takesFirst {
			f.compare(nil, b)
		}
		f.compare(a, nil)
		if !takesFirst {
			f.compare(nil, b)
		}
		if f.noted.gone(dnsFlow(2)) || !f.noted.gone(dnsFlow(1)) {
			t.Errorf("the other service is announced first: %t: connections to its backend are removed: %t, to the previous one's: %t, want false, true",
				takesFirst, f.noted.gone(dnsFlow(2)), f.noted.gone(dnsFlow(1)))
		}
		f.noted = noOutdated()
		if f.compare(b, nil); !f.noted.gone(dnsFlow(2)) {
			t.Error("the other service is deleted: its connections stay")
		}
		if len(f.owners) > 0 {
			t.Errorf("no service is left, but %d frontends have an owner", len(f.owners))
		}
	}
}

// dnsFlow returns a client's connection that backend 10.1.0.x serves.
func dnsFlow(backend byte) conntrack.Flow {
	return conntrack.Flow{Proto: protoUDP, From: netip.MustParseAddrPort("10.2.0.1:30000"), To: netip.MustParseAddrPort("10.96.0.10:53"),
		Answers: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, backend}), 5353)}
}

// TestFlowsToNewBackendsStay: connections to a removed backend are removed, also after an error, and those to a backend that was added after the
// removal stay, whether it was added before the removal was in the kernel, before the job began, while it runs, or after an error.
func TestFlowsToNewBackendsStay(t *testing.T) {
	for _, when := range []string{"noted", "due", "running", "failed"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f *flowSweeper
				add := func() { f.compare(dnsService(t, 2), dnsService(t, 2, 3)) }
				removed := make(chan []conntrack.Flow, 1)
				failed := false
				f = newFlowSweeper(func(_ context.Context, which conntrack.Which, stale func(conntrack.Flow) bool) (int, error) {
					if when == "failed" && !failed {
						failed = true
						return 0, errors.New("no buffer space")
					}
					if when == "running" {
						add()
					}
					var gone []conntrack.Flow
					for _, flow := range []conntrack.Flow{dnsFlow(1), dnsFlow(2), dnsFlow(3)} {
						if slices.Contains(which.Protocols, flow.Proto) && stale(flow) {
							gone = append(gone, flow)
						}
					}
					removed <- gone
					return len(gone), nil
				}, slog.New(slog.DiscardHandler))
				f.compare(dnsService(t, 1, 2), dnsService(t, 2))
				if when == "noted" {
					add()
				}
				f.sweep()
				if when == "due" {
					add()
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- f.run(ctx) }()
				if synctest.Wait(); when == "failed" {
					add()
					time.Sleep(2 * recheckRetry)
				}
				if gone := <-removed; !slices.Equal(gone, []conntrack.Flow{dnsFlow(1)}) {
					t.Errorf("removed %v, want the connection to the removed backend", gone)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
