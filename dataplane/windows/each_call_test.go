package windataplane

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// TestEachCallOfTheDriver: each call of HNS during a start, and during a change of policy, sets and nodes, fails once, or is the last one of a
// driver that is killed. The same driver, or the next one, ends in the state of a run without a fault, every workload has its status, and
// nothing is written after that.
func TestEachCallOfTheDriver(t *testing.T) {
	start := slices.Concat(crowd(4, 6), []any{vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2")})
	change := []any{policy("p", tcpPort("allow", 81), tcpPort("pass", 443)), &proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"203.0.113.1"}},
		endpoint("new", 77, withTiers(ingress("p"))), gone("w001"), vtep("node2", "192.0.2.3"), vtep("node3", "192.0.2.4"), remote("10.66.2.0/26", "node3")}
	for _, msg := range slices.Concat(start, change) {
		if w, is := msg.(*proto.WorkloadEndpointUpdate); is {
			w.Endpoint.Ipv6Nets = nil // an overlay has no IPv6
		}
	}
	clean := overlayBench(t, nil)
	clean.must(start...)
	clean.must(change...)
	for killed, name := range map[bool]string{false: "fails", true: "is the last one"} {
		for _, atStart := range []bool{true, false} {
			calls := 0
			for n := 1; ; n++ {
				b := overlayBench(t, nil)
				if !atStart {
					b.must(start...)
				}
				count := 0
				b.host.Hook(func(hnsmem.Call) error {
					if count++; count == n || killed && count > n {
						return errors.New("no luck")
					}
					return nil
				})
				if atStart {
					_ = b.step(start...)
				}
				_ = b.step(change...)
				b.host.Hook(nil)
				if killed {
					pods := b.pods
					b = newBenchOn(t, Config{VXLANEnabled: true}, b.host)
					b.pods = pods
					b.report(start...)
					b.report(change...)
				}
				for tries := 0; b.step() != nil; tries++ { // like the loop after RetryInterval
					if tries > 3 {
						t.Fatalf("call %d %s: %v", n, name, b.step())
					}
				}
				b.compare(n, name, clean)
				if count < n {
					break
				}
				calls++
			}
			if calls < 4 {
				t.Errorf("it %s at %d calls only", name, calls)
			}
		}
	}
}

// compare checks that the state equals that of another bench.
func (b *bench) compare(n int, what string, clean *bench) {
	b.t.Helper()
	for name := range clean.pods {
		if name == "w001" {
			continue // it was removed
		}
		if got, want := b.rules(name), clean.rules(name); got != want || want == "" {
			b.t.Fatalf("call %d %s: %s has\n%s\nwant\n%s", n, what, name, got, want)
		}
		b.expectStatus(name, "up", "")
	}
	if got, want := strings.Join(b.subnets(), ", "), strings.Join(clean.subnets(), ", "); got != want || want == "" {
		b.t.Fatalf("call %d %s: subnets %s, want %s", n, what, got, want)
	}
	b.host.Calls()
	b.d.resync()
	b.must()
	if w := b.writes(); len(w) > 0 {
		b.t.Fatalf("call %d %s: a refresh writes %v", n, what, w)
	}
}
