package intdataplane

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
)

// blocker is an external manager: it drops packets from the given addresses.
type blocker struct {
	tables *Tables
	begun  bool
	fail   func(error)
}

type block struct{ add, remove []netip.Addr }

func members(addrs []netip.Addr) (out []table.Member) {
	for _, a := range addrs {
		out = append(out, table.Member{Net: netip.PrefixFrom(a, a.BitLen())})
	}
	return out
}

func (b *blocker) OnUpdate(msg any) {
	if m, ok := msg.(block); ok {
		b.fail(b.tables.ChangeSet("blocked", members(m.add), members(m.remove)))
	}
	if b.begun {
		return
	}
	b.begun = true
	b.fail(b.tables.ReplaceSet(table.Set{ID: "blocked", Type: table.SetIP}, nil))
	b.fail(b.tables.SetChains(table.Filter, table.Chain{Name: "block", Rules: []table.Rule{
		{Match: table.Match{SrcSets: []string{"blocked"}}, Actions: []table.Action{{Verb: table.Drop}}},
	}}))
	b.fail(b.tables.SetHook(table.Filter, table.Forward, table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: "block"}}}))
}

func (b *blocker) CompleteDeferredWork() error { return nil }

// outsideNode returns a node whose driver has a blocker.
func outsideNode(t *testing.T, backend, mode string, before ...string) *node {
	n := &node{Net: tabletest.NewNet(t, tabletest.Options{NoRoutes: true}), t: t, config: Config{IptablesInsertMode: mode, IPv6Enabled: true,
		RulesConfig: rules.Config{Backend: backend, Hostname: "node1"}}}
	if len(before) > 0 {
		n.run(before[0], before[1:]...)
	}
	n.startWith(func(d *InternalDataplane) {
		d.RegisterManager(&blocker{tables: d.Tables(table.IPv4), fail: func(err error) {
			if err != nil {
				t.Error(err)
			}
		}})
	})
	t.Cleanup(func() { n.stop() })
	return n
}

// TestKernelManagerFromOutside: a registered manager can write IP sets and chains, its rules come before those of the driver, a change of a
// set rewrites no rule, and an uninstall removes all of its objects.
func TestKernelManagerFromOutside(t *testing.T) {
	tabletest.NeedRoot(t)
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		t.Run(backend, func(t *testing.T) {
			n := outsideNode(t, backend, "")
			n.apply(n.open()...)
			n.up("pod1", "pod2", "pod3")
			passes := tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.addr(2, 4), 80), Why: "not blocked yet"}
			n.Expect(t, passes)
			n.apply(block{add: []netip.Addr{n.addr(1, 4)}})
			n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(2, 4), 81), Why: "blocked from outside"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[2].UDP(n.addr(2, 4), 81), Why: "another pod"})
			n.apply(block{remove: []netip.Addr{n.addr(1, 4)}})
			passes.Probe, passes.Why = n.Pods[0].UDP(n.addr(2, 4), 82), "not blocked any more"
			n.Expect(t, passes)
		})
	}
}

// TestTablesRejects: invalid names and references to missing objects are errors that contain the name; nothing is written.
func TestTablesRejects(t *testing.T) {
	tables := newTables(Config{}, newRecorder(nil))[table.IPv4] // a write to the backend panics
	jump := func(to string) table.Rule { return table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: to}}} }
	for want, err := range map[string]error{
		`chain "": a name has`:                        tables.SetChains(table.Filter, table.Chain{}),
		`chain "a name that is far too`:               tables.SetChains(table.Filter, table.Chain{Name: "a name that is far too long"}),
		`chain "INPUT" does not exist`:                tables.SetHook(table.Filter, table.Input, jump("INPUT")),
		`chain "a": rule 0: chain "b" does not exist`: tables.SetChains(table.Filter, table.Chain{Name: "a", Rules: []table.Rule{jump("b")}}),
		`set "s" does not exist`:                      tables.ChangeSet("s", nil, nil),
		`rule 0: set "s" does not exist`: tables.SetHook(table.Filter, table.Input,
			table.Rule{Match: table.Match{NotDstSets: []string{"s"}}}),
		`set "a b": a name`: tables.ReplaceSet(table.Set{ID: "a b"}, nil),
		"set IPv6Enabled":   (&InternalDataplane{front: driver.NewFront("", "", slog.Default(), nil)}).Tables(table.IPv6).DeleteSet("x"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestKernelAppend: with nftables, "append" puts our rules after those of an existing table, "insert" does not.
func TestKernelAppend(t *testing.T) {
	tabletest.NeedRoot(t)
	for mode, seen := range map[string]string{"insert": "packets 0", "append": "packets 1"} {
		n := outsideNode(t, rules.BackendNFT, mode, "nft", "add table ip foreign; add chain ip foreign forward { type filter hook "+
			"forward priority 0; }; add rule ip foreign forward udp dport 4242 counter")
		n.apply(n.open()...)
		n.up("pod1", "pod2")
		n.apply(block{add: []netip.Addr{n.addr(1, 4)}}, &proto.InSync{})
		n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(2, 4), 4242), Why: "blocked"})
		if text := n.run("nft", "list table ip foreign"); !strings.Contains(text, seen) {
			t.Errorf("%s: want %q in\n%s", mode, seen, text)
		}
	}
}
