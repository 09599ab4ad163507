package tabletest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// openFunc opens a backend for a namespace. Every call returns a new object, as a new process would have.
type openFunc func(t *testing.T, ns *nsdo.Namespace) table.Backend

// Run tests the effect of a backend on packets. If the backend has a method Dump() (string, error), it returns the kernel's state in a form
// that does not depend on its history; otherwise the state is taken from iptables-save and ipset.
func Run(t *testing.T, open func(t *testing.T, ns *nsdo.Namespace) table.Backend) {
	NeedRoot(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *rig)
	}{
		{"Matches", testMatches},
		{"RandomMatches", testRandomMatches},
		{"Interfaces", testInterfaces},
		{"Addresses", testAddressTypes},
		{"Conntrack", testConntrack},
		{"ReversePath", testReversePath},
		{"Walk", testWalk},
		{"Once", testOnce},
		{"Actions", testActions},
		{"Dispatch", testDispatch},
		{"DispatchDelta", testDispatchDelta},
		{"DNAT", testDNAT},
		{"SNAT", testSNAT},
		{"Sets", testSets},
		{"SetChanges", testSetChanges},
		{"LargeSet", testLargeSet},
		{"SwapChain", testSwapChain},
		{"SwapSet", testSwapSet},
		{"Restart", testRestart},
		{"Leftovers", testLeftovers},
		{"Foreign", testForeign},
		{"Flushed", testFlushed},
		{"SetOverMax", testSetOverMax},
		{"BadChain", testBadChain},
		{"RandomEdits", testRandomEdits},
		{"Counters", testCounters},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // each has separate namespaces, and waits for the kernel most of the time
			n := NewNet(t, Options{})
			test.run(t, &rig{t: t, net: n, open: open, b: openBackend(t, open, n.Host.NS)})
		})
	}
}

func openBackend(t *testing.T, open openFunc, ns *nsdo.Namespace) table.Backend {
	t.Helper()
	b := open(t, ns)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// rig is a network and the backend that programs its host.
type rig struct {
	t    *testing.T
	net  *Net
	open openFunc
	b    table.Backend
}

func (r *rig) pod(i int) *Node { return r.net.Pods[i-1] }

// restart replaces the backend by a new one, as if the process had been restarted.
func (r *rig) restart() {
	r.t.Helper()
	r.b = openBackend(r.t, r.open, r.net.Host.NS)
}

// apply applies; everything must be written.
func (r *rig) apply() table.Result {
	r.t.Helper()
	res := r.tryApply()
	if res.Err != nil || len(res.Broken) > 0 {
		r.t.Fatalf("apply: error %v, broken %v", res.Err, res.Broken)
	}
	return res
}

func (r *rig) tryApply() table.Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	return r.settled(ctx, r.b.Apply(ctx))
}

// settled applies until objects with a grace period are removed, and adds the writes.
func (r *rig) settled(ctx context.Context, res table.Result) table.Result {
	r.t.Helper()
	const soon = 50 * time.Millisecond
	for res.Err == nil && res.Again > 0 && res.Again < soon {
		if ctx.Err() != nil {
			r.t.Fatal("another Apply is asked for again and again")
		}
		time.Sleep(res.Again)
		writes := res.Writes
		res = r.b.Apply(ctx)
		res.Writes += writes
	}
	return res
}

// broken applies; exactly the named objects must be broken.
func (r *rig) broken(want ...string) {
	r.t.Helper()
	res := r.tryApply()
	got := slices.Sorted(maps.Keys(res.Broken))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Fatalf("broken objects %v (error %v), want %v", res.Broken, res.Err, want)
	}
	for name, err := range res.Broken {
		if err == nil {
			r.t.Errorf("%s is broken without a reason", name)
		}
	}
}

// families runs a test for both families; the names of subtests are v4 and v6.
func (r *rig) families(test func(f table.Family)) {
	t := r.t
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		t.Run(fmt.Sprintf("v%d", f), func(t *testing.T) {
			r.t = t
			defer func() { r.t = nil }()
			test(f)
		})
		r.t = t
	}
}

func both(do func(f table.Family)) {
	do(table.IPv4)
	do(table.IPv6)
}

// Shorthands for rules.

func rule(m table.Match, actions ...table.Action) table.Rule {
	return table.Rule{Match: m, Actions: actions}
}

func accept(m table.Match) table.Rule { return rule(m, table.Action{Verb: table.Accept}) }
func drop(m table.Match) table.Rule   { return rule(m, table.Action{Verb: table.Drop}) }
func jump(m table.Match, chain string) table.Rule {
	return rule(m, table.Action{Verb: table.Jump, Chain: chain})
}
func gotoChain(m table.Match, chain string) table.Rule {
	return rule(m, table.Action{Verb: table.Goto, Chain: chain})
}
func returns(m table.Match) table.Rule { return rule(m, table.Action{Verb: table.Return}) }
func mark(m table.Match, value, mask uint32) table.Rule {
	return rule(m, table.Action{Verb: table.SetMark, Mark: value, Mask: mask})
}

func chain(name string, rules ...table.Rule) table.Chain {
	return table.Chain{Name: name, Rules: rules}
}

// always matches all packets.
var always = table.Match{}

// icmpProto returns the protocol number of the family's ICMP.
func icmpProto(f table.Family) uint8 {
	if f == table.IPv4 {
		return 1
	}
	return 58
}

// host returns the prefix that contains only this address.
func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// anywhere returns the i-th address (from 1) of the prefix with index net in Anywhere.
func anywhere(f table.Family, net, i int) netip.Addr {
	b := Anywhere(f)[net].Addr().AsSlice()
	b[len(b)-1] = byte(i)
	a, _ := netip.AddrFromSlice(b)
	return a
}

// outgoing makes packets that pod 1 sends through the host pass a chain of layer filter; all other packets pass.
func (r *rig) outgoing(f table.Family, name string) {
	r.b.SetHook(f, table.Filter, table.Forward, jump(table.Match{InIface: "cali1"}, name))
}
