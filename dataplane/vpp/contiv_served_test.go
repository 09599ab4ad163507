package vpp

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// servedVersions returns two states in which other pods serve the same addresses: with the same sets of backends, and with others.
func servedVersions() (before, after values) {
	web := func(service uint64) *vpp_contiv.Frontend {
		return frontend("10.96.0.1:80", vpp_contiv.Frontend_TCP, balance(service), balance(service))
	}
	v6 := frontend("[fd00:96::1]:80", vpp_contiv.Frontend_TCP, balance(1), balance(1))
	before = values{v6, web(3), contivService(1, "[fd00:1::2]:80"), contivService(3, "10.1.0.2:80", "10.1.0.3:80")}
	after = values{v6, web(4), contivService(1, "[fd00:1::3]:80"), contivService(4, "10.1.0.4:80")}
	return before, after
}

func fakeWithPlugin(t *testing.T) *target {
	t.Helper()
	f := vppfake.New(vppfake.Config{Seed: 1, Plugin: true})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	return &target{socket: socket, fake: f}
}

// unserved lists the frontends whose clients are rejected now, or soon: all of their remaining backends are draining. Another agent may write between
// two dumps: a frontend counts if it has the same service before and after the dump of the backends. before are the services of the frontends in an
// earlier dump, after those in a new one.
func (a *agent) unserved(before map[string]uint64) (after map[string]uint64, list []string) {
	a.t.Helper()
	serve := map[uint64]bool{}
	conn.Dump(a.lane, &contiv.ContivBackendDump{}, func(d *contiv.ContivBackendDetails) {
		serve[d.ServiceID] = serve[d.ServiceID] || !d.Draining
	}, a.must)
	a.lane.Flush(a.t.Context())
	after = a.frontends()
	for at, service := range before {
		if after[at] == service && !serve[service] {
			list = append(list, fmt.Sprintf("%s by service %d", at, service))
		}
	}
	if len(before) != 2 || len(after) != 2 {
		list = append(list, fmt.Sprintf("%d frontends, then %d", len(before), len(after)))
	}
	return after, list
}

// frontends returns the services of the frontends by address and port.
func (a *agent) frontends() map[string]uint64 {
	a.t.Helper()
	list := map[string]uint64{}
	conn.Dump(a.lane, &contiv.ContivFrontendDump{}, func(d *contiv.ContivFrontendDetails) {
		list[fmt.Sprintf("%s:%d", d.Address, d.Port)] = d.InCluster.ServiceID
	}, a.must)
	a.lane.Flush(a.t.Context())
	return list
}

func (a *agent) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// TestServedMeanwhile checks that every service that has backends before and after a change also has some if an agent ends, or VPP stops answering,
// at any point of the change: VPP may stay in that state until the next agent has started.
func TestServedMeanwhile(t *testing.T) {
	before, after := servedVersions()
	for _, kind := range []txn.Kind{txn.Update, txn.FullResync} {
		for n := 1; ; n++ {
			hit := false
			t.Run(fmt.Sprintf("%s, request %d", kind, n), func(t *testing.T) {
				g := fakeWithPlugin(t)
				newAgent(t, g, Deps{}).resync(before...)
				a := newAgent(t, g, Deps{})
				change := kvs(t, after)
				if kind == txn.Update {
					a.resync(before...)
					change = updates(t, [][]proto.Message{before, after}, 1)
				}
				rule := g.fake.Faults.Add(vppfake.Fault{Message: "contiv_*", WritesOnly: true, Nth: n, Disconnect: true})
				_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: kind, Values: change, NoRetry: true})
				if hit = rule.Hits() > 0; !hit && err != nil {
					t.Fatal(err)
				}
				g.fake.Faults.Clear()
				next := newAgent(t, g, Deps{})
				if _, left := next.unserved(next.frontends()); len(left) > 0 {
					t.Errorf("nothing serves %v", left)
				}
			})
			if !hit {
				break
			}
		}
	}
}

// TestServedBySlowVPP checks that no client is rejected if VPP takes longer for a request than it keeps the last backend of a service.
func TestServedBySlowVPP(t *testing.T) {
	before, after := servedVersions()
	g := fakeWithPlugin(t)
	a, watcher := newAgent(t, g, Deps{}), newAgent(t, g, Deps{})
	a.resync(before...)
	g.fake.Faults.Add(vppfake.Fault{Message: "contiv_*", WritesOnly: true, Delay: 300 * time.Millisecond})
	versions := [][]proto.Message{before, after}
	looks := 0
	for round := 1; looks < 3; round++ { // on a busy machine there may be few looks during one change
		if round > 10 {
			t.Fatalf("after %d changes only %d looks", round-1, looks)
		}
		looks += watcher.looksDuring(func() error {
			_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: txn.Update, Values: updates(t, versions, 1), NoRetry: true})
			return err
		})
		slices.Reverse(versions)
	}
}

// looksDuring returns how often it has looked at the services while change was running. At each look, every frontend must have a service.
func (a *agent) looksDuring(change func() error) (looks int) {
	a.t.Helper()
	frontends := a.frontends()
	done := make(chan error, 1)
	go func() { done <- change() }()
	for ; ; looks++ {
		var left []string
		if frontends, left = a.unserved(frontends); len(left) > 0 {
			a.t.Errorf("nothing serves %v", left)
		}
		select {
		case err := <-done:
			a.must(err)
			return looks
		default:
		}
	}
}
