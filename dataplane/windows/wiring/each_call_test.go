package wiring

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// faulty is an HNS whose calls go through a function.
type faulty struct {
	HCN
	fault func(op string, call func() error) error
}

func through[T any](f faulty, op string, call func() (T, error)) (out T, err error) {
	err = f.fault(op, func() (err error) {
		out, err = call()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}

func (f faulty) ListNetworks() ([]hcn.Network, error) {
	return through(f, "ListNetworks", f.HCN.ListNetworks)
}

func (f faulty) CreateNetwork(n hcn.Network) (hcn.Network, error) {
	return through(f, "CreateNetwork", func() (hcn.Network, error) { return f.HCN.CreateNetwork(n) })
}

func (f faulty) DeleteNetwork(id string) error {
	return f.fault("DeleteNetwork", func() error { return f.HCN.DeleteNetwork(id) })
}

func (f faulty) ListEndpoints() ([]hcn.Endpoint, error) {
	return through(f, "ListEndpoints", f.HCN.ListEndpoints)
}

func (f faulty) CreateEndpoint(e hcn.Endpoint) (hcn.Endpoint, error) {
	return through(f, "CreateEndpoint", func() (hcn.Endpoint, error) { return f.HCN.CreateEndpoint(e) })
}

func (f faulty) DeleteEndpoint(id string) error {
	return f.fault("DeleteEndpoint", func() error { return f.HCN.DeleteEndpoint(id) })
}

func (f faulty) RemoveEndpointPolicies(id string, p ...hcn.Policy) error {
	return f.fault("RemoveEndpointPolicies", func() error { return f.HCN.RemoveEndpointPolicies(id, p...) })
}

func (f faulty) UpdateEndpointPolicies(id string, p ...hcn.Policy) error {
	return f.fault("UpdateEndpointPolicies", func() error { return f.HCN.UpdateEndpointPolicies(id, p...) })
}

func (f faulty) ListNamespaces() ([]hcn.Namespace, error) {
	return through(f, "ListNamespaces", f.HCN.ListNamespaces)
}

func (f faulty) AttachEndpoint(ns, id string) error {
	return f.fault("AttachEndpoint", func() error { return f.HCN.AttachEndpoint(ns, id) })
}

func (f faulty) DetachEndpoint(ns, id string) error {
	return f.fault("DetachEndpoint", func() error { return f.HCN.DetachEndpoint(ns, id) })
}

func (f faulty) Features() (hcn.Features, error) { return through(f, "Features", f.HCN.Features) }

func (f faulty) ListLoadBalancers() ([]hcn.LoadBalancer, error) {
	return through(f, "ListLoadBalancers", f.HCN.ListLoadBalancers)
}

func (f faulty) CreateLoadBalancer(lb hcn.LoadBalancer) (hcn.LoadBalancer, error) {
	return through(f, "CreateLoadBalancer", func() (hcn.LoadBalancer, error) { return f.HCN.CreateLoadBalancer(lb) })
}

func (f faulty) UpdateLoadBalancer(id string, lb hcn.LoadBalancer) (hcn.LoadBalancer, error) {
	return through(f, "UpdateLoadBalancer", func() (hcn.LoadBalancer, error) { return f.HCN.UpdateLoadBalancer(id, lb) })
}

func (f faulty) DeleteLoadBalancer(id string) error {
	return f.fault("DeleteLoadBalancer", func() error { return f.HCN.DeleteLoadBalancer(id) })
}

// change is a transaction on a state; the test makes each of its calls fail, one after the other.
type change struct {
	before, after []txn.KV
	kind          txn.Kind
	values        []txn.KV
}

// changes returns ADDs, DELs, and changes of services, as one change and as a start.
func changes(r *rig, network txn.KV) map[string]change {
	remote := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 9, i}) }
	one, two, three := r.pod(1), r.pod(2), r.pod(3)
	old := []txn.KV{network, one, three, service("a", 1, podAddr(1)), service("c", 3, podAddr(3), remote(3))}
	a, b := service("a", 1, podAddr(1), podAddr(2), remote(1)), service("b", 2, podAddr(2), remote(2))
	now := []txn.KV{network, one, two, a, b}
	return map[string]change{
		"start":  {kind: txn.FullResync, values: now, after: now},
		"change": {before: old, kind: txn.Update, values: []txn.KV{two, a, b, removed(three), removed(old[4])}, after: now},
	}
}

// calamity is the fault that happens at one call.
type calamity struct {
	// at is called instead of the call at which the fault happens.
	at func(r *rig, call func() error) error
	// killed: the agent ends at this call. All later calls fail, and another agent continues with the record of that moment.
	killed bool
}

func calamities() map[string]calamity {
	noLuck := errors.New("no luck")
	hang := func(r *rig, call func() error) error { // the call times out at once, but continues
		r.pop <- time.Time{}
		return call()
	}
	vanish := func(r *rig, call func() error) error { // after the last read and before the call
		for _, e := range r.endpoints() {
			r.host.Vanish(e.ID)
		}
		return call()
	}
	return map[string]calamity{
		"fails":                {at: func(*rig, func() error) error { return noLuck }},
		"fails after its work": {at: func(_ *rig, call func() error) error { return errors.Join(noLuck, call()) }},
		"is late":              {at: hang},
		"finds endpoints gone": {at: vanish},
		"is the last one":      {at: func(_ *rig, call func() error) error { return errors.Join(noLuck, call()) }, killed: true},
		"is not made any more": {at: func(*rig, func() error) error { return noLuck }, killed: true},
		"is refused":           {at: func(*rig, func() error) error { return hcn.ErrInvalid }},
	}
}

// TestEachCall: whichever fault happens at whichever call of a start or of a change, HNS ends in the state of a run without a fault, after one
// resync at most; after that, nothing more is written.
func TestEachCall(t *testing.T) {
	for i, network := range []txn.KV{bridge(), overlay()} {
		for what, c := range calamities() {
			for _, name := range []string{"start", "change"} {
				t.Run(fmt.Sprintf("%d/%s/%s", i, name, strings.ReplaceAll(what, " ", "_")), func(t *testing.T) {
					t.Parallel()
					calls := 0
					for n := 1; tryAt(t, network, name, c, n, i == 1); n++ {
						calls++
					}
					if calls < 5 {
						t.Errorf("it happened at %d calls only", calls)
					}
				})
			}
		}
	}
}

// tryAt makes the fault happen at the n-th call, and reports whether there was an n-th call.
func tryAt(t *testing.T, network txn.KV, name string, c calamity, n int, noIPv6 bool) bool {
	t.Helper()
	host := hnsmem.New()
	host.Disorder(rand.New(rand.NewPCG(uint64(n), 7)))
	if n%2 == 0 {
		host.KeepBalancers()
	}
	r := newRig(t, host)
	r.noIPv6 = noIPv6
	ch := changes(r, network)[name]
	if ch.before != nil {
		r.must(r.commit(txn.FullResync, ch.before...))
	}
	var mu sync.Mutex
	count, dead := 0, false
	record := &memoryRecord{}
	inner := r.w.HCN
	r.w.HCN = faulty{inner, func(_ string, call func() error) error {
		mu.Lock()
		count++
		mine, isDead := count == n, dead
		if mine && c.killed {
			dead = true
		}
		mu.Unlock()
		switch {
		case isDead:
			return errors.New("the agent was killed")
		case !mine:
			return call()
		}
		err := c.at(r, call)
		if c.killed {
			ids, _ := r.record.Load()
			record.ids = slices.Clone(ids)
		}
		return err
	}}
	_ = r.commit(ch.kind, ch.values...) // it may fail
	mu.Lock()
	reached := count >= n
	if !reached {
		n = -1 // the fault does not happen later
	}
	mu.Unlock()
	again := r
	if c.killed && reached {
		again = newRigAfter(t, host, record)
		again.noIPv6 = noIPv6
	}
	clean := newRig(t, hnsmem.New())
	clean.noIPv6 = noIPv6
	for i := range 3 {
		clean.pod(i + 1)
	}
	clean.must(clean.commit(txn.FullResync, ch.after...))
	again.eventually("a resync", func() error { return again.commit(txn.FullResync, ch.after...) })
	host.Disorder(nil)
	if got, want := again.state(), clean.state(); got != want {
		t.Fatalf("call %d: HNS has\n%s\nand without a fault\n%s", n, got, want)
	}
	host.Calls()
	again.must(again.commit(txn.FullResync, ch.after...))
	for _, call := range host.Calls() {
		if call.Writes() {
			t.Fatalf("call %d: a resync with nothing changed: %v", n, call)
		}
	}
	ids, _ := again.record.Load()
	if lbs := again.balancers(); len(ids) != len(lbs) {
		t.Fatalf("call %d: the record has %v, HNS %v", n, ids, lbs)
	}
	return reached
}
