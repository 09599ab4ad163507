package iptables

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

func nets(ss ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(ss))
	for i, s := range ss {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

func act(v table.Verb) []table.Action { return []table.Action{{Verb: v}} }

func jump(chain string) table.Rule {
	return table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: chain}}}
}

// allConditions returns one match of each kind, for both families.
func allConditions(f table.Family) []table.Match {
	a, b, host, icmp := "10.0.0.0/8", "192.168.1.0/24", "10.1.2.3/32", uint8(1)
	if f == table.IPv6 {
		a, b, host, icmp = "fd00::/8", "2001:db8::/32", "fd00::1/128", 58
	}
	many := make([]table.PortRange, 20)
	for i := range many {
		many[i] = table.PortRange{First: uint16(100 * i), Last: uint16(100*i + i%2)}
	}
	return []table.Match{
		{InIface: "cali+", OutIface: "eth0"},
		{NotProtocol: 6},
		{SrcNets: nets(a), DstNets: nets(b), NotSrcNets: nets(host)},
		{SrcNets: nets(a, b, host), NotDstNets: nets(a, b)},
		{NotSrcNets: nets(a), NotDstNets: nets(host)},
		{SrcSets: []string{"nets"}, NotDstSets: []string{"ips", "nets"}},
		{Protocol: 6, SrcPorts: many[:1], DstPorts: many, NotDstPorts: many},
		{Protocol: 17, DstPorts: many[:2], DstPortSets: []string{"ports"}, NotSrcPortSets: []string{"ports"}},
		{Protocol: 132, DstPorts: many[1:2]},
		{DstPortSets: []string{"ports"}},
		{Protocol: icmp, ICMP: &table.ICMP{Type: 8, Code: 1}, NotICMP: &table.ICMP{Type: 3, AnyCode: true}},
		{CT: table.CTNew | table.CTEstablished | table.CTRelated | table.CTInvalid | table.CTUntracked},
		{Mark: 0x40000, MarkMask: 0xc0000, MarkNot: true},
		{Src: table.AddrLocal, Dst: table.AddrNotLocal},
		{DNATed: true, CTOrigDst: nets(a, b)},
		{CT: table.CTRelated, CTOrigSrc: nets(a, b), CTReplSrc: nets(host)},
	}
}

// everything adds one object of each kind to a backend.
func everything(b *Backend) {
	for _, f := range []table.Family{4, 6} {
		b.ReplaceSet(f, table.Set{ID: "nets", Type: table.SetNet}, nil)
		b.ReplaceSet(f, table.Set{ID: "ips", Type: table.SetIP}, nil)
		b.ReplaceSet(f, table.Set{ID: "ports", Type: table.SetIPAndPort}, nil)
		to, masq := netip.MustParseAddr("10.1.1.1"), table.PortRange{First: 1000, Last: 2000}
		if f == 6 {
			to = netip.MustParseAddr("fd00::5")
		}
		for _, l := range []table.Layer{table.Raw, table.Mangle, table.NAT, table.Filter} {
			c := table.Chain{Name: "cali-all"}
			for i, m := range allConditions(f) {
				c.Rules = append(c.Rules, table.Rule{
					Match: m, Comment: fmt.Sprintf("rule %d \"quoted\" \\ and\n-A INPUT -j DROP", i),
					Actions: []table.Action{{Verb: table.Log, Prefix: "a \"log\": "}, {Verb: table.SetMark, Mark: 0x80000, Mask: 0xc0000},
						{Verb: table.Return}},
				})
			}
			c.Rules = append(c.Rules,
				table.Rule{Match: table.Match{SrcNets: nets("10.0.0.0/8", "fd00::/8")}},
				table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: "cali-sub"}, {Verb: table.Return}}},
				table.Rule{Match: table.Match{MarkMask: 1, Mark: 1},
					Actions: []table.Action{{Verb: table.SetMark, Mask: 1}, {Verb: table.Goto, Chain: "cali-sub"}}})
			twin := table.Chain{Name: "cali-twin", Rules: c.Rules[len(c.Rules)-2:]} // shares the helpers
			b.SetChains(f, l, c, twin, table.Chain{Name: "cali-sub"}, table.Chain{Name: "cali-not-referred-to"})
			b.SetHook(f, l, table.Output, jump("cali-all"), jump("cali-twin"))
		}
		tcp := table.Match{Protocol: 6}
		b.SetChains(f, table.Raw, table.Chain{Name: "cali-pre", Rules: []table.Rule{
			{Match: table.Match{NoReversePath: true}, Actions: act(table.Drop)},
			{Actions: []table.Action{{Verb: table.NoTrack}, {Verb: table.Accept}}},
		}})
		b.SetHook(f, table.Raw, table.Prerouting, jump("cali-pre"))
		b.SetChains(f, table.NAT, table.Chain{Name: "cali-dnat", Rules: []table.Rule{
			{Match: tcp, Actions: []table.Action{{Verb: table.DNAT, To: to, Ports: table.PortRange{First: 80, Last: 80}}}},
			{Actions: []table.Action{{Verb: table.DNAT, To: to}}},
		}}, table.Chain{Name: "cali-snat", Rules: []table.Rule{
			{Match: table.Match{SrcNotOnOut: true, Src: table.AddrLocal}, Actions: act(table.Masquerade)},
			{Match: tcp, Actions: []table.Action{{Verb: table.SNAT, To: to, Ports: masq, FullRandom: true}}},
			{Match: tcp, Actions: []table.Action{{Verb: table.Masquerade, Ports: masq, FullRandom: true}}},
		}})
		b.SetHook(f, table.NAT, table.Prerouting, jump("cali-dnat"))
		b.SetHook(f, table.NAT, table.Postrouting, jump("cali-snat"))
		b.SetChains(f, table.Filter, table.Chain{Name: "cali-rej", Rules: []table.Rule{
			{Match: tcp, Actions: act(table.Reject)}, {Match: table.Match{NotProtocol: 17}, Actions: act(table.Reject)},
			{Actions: act(table.Reject)},
		}})
		d := table.Dispatch{Name: "cali-from", Chains: map[string]string{}, Default: []table.Rule{{Actions: act(table.Drop)}}}
		for i := range 100 {
			d.Chains[fmt.Sprintf("cali%x", i*77777)] = "cali-sub"
		}
		b.SetDispatch(f, table.Filter, d)
		b.SetHook(f, table.Filter, table.Forward, jump("cali-rej"), jump("cali-from"))
	}
}

// Chains whose names do not show that they are ours are found and removed by the next process, including empty ones; chains of others are
// not.
func TestLeftoversWithoutPrefix(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		n := newNS(t)
		tool := "iptables-" + string(v)
		n.sh(tool + " -N theirs; " + tool + " -N empty-theirs; " + tool + " -A theirs -j DROP")
		b := n.open(Config{Variant: v})
		b.SetChains(4, table.Filter, table.Chain{Name: "nothing"}, numberedChain("something", 1),
			table.Chain{Name: "nowhere", Rules: []table.Rule{{Match: table.Match{SrcNets: nets("fd00::/8")}, Actions: act(table.Drop)}}})
		b.SetDispatch(4, table.Filter, table.Dispatch{Name: "nobody"})
		b.SetHook(4, table.Filter, table.Forward, jump("nothing"), jump("something"), jump("nowhere"), jump("nobody"))
		apply(t, b)
		next := n.open(Config{Variant: v})
		next.SetChains(4, table.Filter, table.Chain{Name: "nothing"})
		next.SetHook(4, table.Filter, table.Forward, jump("nothing"))
		apply(t, next)
		chains := n.sh(tool + "-save -t filter | grep '^:' | cut -d' ' -f1 | sort | tr '\\n' ' '")
		if want := ":FORWARD :INPUT :OUTPUT :empty-theirs :nothing :theirs "; chains != want {
			t.Errorf("chains %q, want %q", chains, want)
		}
	})
}

// stillClock always returns the same time, so that no check of the kernel becomes due.
type stillClock struct {
	realClock
	now time.Time
}

func (c stillClock) Now() time.Time { return c.now }

// Everything that the model can express is accepted by the kernel, and recognised as correct by the next process.
func TestEverythingLoads(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		n := newNS(t)
		b := n.open(Config{Variant: v, Clock: stillClock{now: time.Now()}})
		everything(b)
		if r := apply(t, b); r.Writes < 400 {
			t.Errorf("only %d writes", r.Writes)
		}
		rules := n.sh("iptables-" + string(v) + "-save; ip6tables-" + string(v) + "-save")
		if strings.Contains(rules, "cali-not-referred-to") {
			t.Error("a chain that nothing leads to is programmed")
		}
		if b.Pending() {
			t.Error("still pending")
		}
		if r := apply(t, b); r.Writes != 0 {
			t.Errorf("second apply: %d writes", r.Writes)
		}
		b.Resync(true, true)
		if r := apply(t, b); r.Writes != 0 {
			t.Errorf("resync: %d writes", r.Writes)
		}
		again := n.open(Config{Variant: v})
		everything(again)
		if r := apply(t, again); r.Writes != 0 {
			t.Errorf("restart: %d writes", r.Writes)
		}
		empty := n.open(Config{Variant: v})
		if r := apply(t, empty); r.Writes == 0 {
			t.Error("leftovers stay")
		}
		if left := n.sh("iptables-" + string(v) + "-save; ip6tables-" + string(v) + "-save"); strings.Contains(left, "cali-") {
			t.Errorf("left over: %s", left)
		}
	})
}
