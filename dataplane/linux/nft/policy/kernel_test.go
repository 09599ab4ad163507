package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func do(a ...table.Action) []table.Action { return a }

var accept, dropIt = table.Action{Verb: table.Accept}, table.Action{Verb: table.Drop}

func jump(chain string) []table.Action { return do(table.Action{Verb: table.Jump, Chain: chain}) }

// nft runs the nft tool in the host's namespace.
func nft(t testing.TB, n *tabletest.Net, args ...string) string {
	t.Helper()
	var out []byte
	err := n.Host.NS.Do(func() (err error) {
		out, err = exec.Command("nft", args...).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("nft %s: %v: %.500s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// everything adds a desired state with all kinds of objects and conditions.
func everything(b *Backend) {
	f := table.IPv4
	b.ReplaceSet(f, table.Set{ID: "s:ip", Type: table.SetIP}, []table.Member{{Net: pfx("10.0.0.1/32")}, {Net: pfx("10.0.0.2/32")}})
	b.ReplaceSet(f, table.Set{ID: "s:net", Type: table.SetNet},
		[]table.Member{{Net: pfx("10.1.0.0/24")}, {Net: pfx("10.1.1.0/24")}, {Net: pfx("10.4.0.0/24")}, {Net: pfx("10.6.0.0/24")}, {Net: pfx("10.8.0.0/24")},
			{Net: pfx("240.0.0.0/4")}})
	b.ReplaceSet(f, table.Set{ID: "s:few", Type: table.SetNet}, []table.Member{{Net: pfx("192.0.2.0/25")}, {Net: pfx("192.0.2.128/25")}})
	b.ReplaceSet(f, table.Set{ID: "s:port", Type: table.SetIPAndPort},
		[]table.Member{{Net: pfx("10.0.0.1/32"), Proto: 6, Port: 80}})
	ports := []table.PortRange{{First: 80, Last: 80}, {First: 443, Last: 445}}
	many := append([]table.PortRange{{First: 1, Last: 1}, {First: 3, Last: 5}, {First: 7, Last: 7}, {First: 9, Last: 9},
		{First: 11, Last: 20}}, ports...)
	b.SetChains(f, table.Filter, table.Chain{Name: "all", Rules: []table.Rule{
		{Match: table.Match{CT: table.CTEstablished | table.CTRelated}, Actions: do(accept)},
		{Match: table.Match{Protocol: 6, DstPorts: ports, SrcNets: []netip.Prefix{pfx("10.0.0.0/8")}}, Comment: "policy web",
			Actions: do(table.Action{Verb: table.SetMark, Mark: 0x10000, Mask: 0x10000}, table.Action{Verb: table.Return})},
		{Match: table.Match{Protocol: 6, DstPorts: many}, Actions: do(table.Action{Verb: table.SetMark, Mark: 5, Mask: ^uint32(0)})},
		{Match: table.Match{Protocol: 17, NotDstPorts: ports, NotDstNets: []netip.Prefix{pfx("10.0.0.0/8"), pfx("192.168.0.0/16")}},
			Actions: do(dropIt)},
		{Match: table.Match{SrcSets: []string{"s:ip"}, NotDstSets: []string{"s:net"}},
			Actions: do(table.Action{Verb: table.Log, Prefix: "denied: "}, dropIt)},
		{Match: table.Match{SrcSets: []string{"s:few"}}, Actions: do(dropIt)},
		{Match: table.Match{DstPortSets: []string{"s:port"}}, Actions: do(table.Action{Verb: table.Goto, Chain: "other"})},
		{Match: table.Match{Protocol: 1, ICMP: &table.ICMP{Type: 8}}, Actions: do(accept)},
		{Match: table.Match{Protocol: 1, NotICMP: &table.ICMP{Type: 3, Code: 4}}, Actions: do(accept)},
		{Match: table.Match{Mark: 0x10000, MarkMask: 0x30000, MarkNot: true, InIface: "cali+", OutIface: "eth0"},
			Actions: do(table.Action{Verb: table.Reject})},
		{Match: table.Match{Dst: table.AddrLocal, Src: table.AddrNotLocal, DNATed: true,
			CTOrigDst: []netip.Prefix{pfx("10.96.0.0/12")}}},
		{Match: table.Match{CT: table.CTRelated, CTOrigSrc: []netip.Prefix{pfx("10.1.0.0/16")}, CTReplSrc: []netip.Prefix{pfx("10.1.0.1/32")}}},
	}}, table.Chain{Name: "other"})
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "all", "cali2": "other"},
		Default: []table.Rule{{Actions: do(dropIt)}}})
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Match: table.Match{InIface: "cali+"}, Actions: jump("from")})
	b.SetHook(f, table.Raw, table.Prerouting, table.Rule{Match: table.Match{NoReversePath: true}, Actions: do(dropIt)},
		table.Rule{Actions: do(table.Action{Verb: table.NoTrack})})
	to := netip.MustParseAddr("10.0.0.1")
	b.SetHook(f, table.NAT, table.Prerouting, table.Rule{Match: table.Match{Protocol: 6},
		Actions: do(table.Action{Verb: table.DNAT, To: to, Ports: table.PortRange{First: 80, Last: 80}})})
	b.SetHook(f, table.NAT, table.Postrouting,
		table.Rule{Match: table.Match{SrcNotOnOut: true}, Actions: do(table.Action{Verb: table.Masquerade, FullRandom: true})},
		table.Rule{Match: table.Match{Protocol: 17},
			Actions: do(table.Action{Verb: table.SNAT, To: to, Ports: table.PortRange{First: 80, Last: 90}})})
	b.SetHook(table.IPv6, table.Filter, table.Forward, table.Rule{Actions: do(accept),
		Match: table.Match{SrcNets: []netip.Prefix{pfx("fd00::/8"), pfx("::1/128")}, DstNets: []netip.Prefix{pfx("::/0")}}})
}

// TestListing: the nft tool lists our rules as an operator would have written them, and can load the listing.
func TestListing(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	mustApply(t, b)
	got := nft(t, n, "list", "table", "ip", defaultTable)
	for _, want := range []string{
		"set set-s/ip { type ipv4_addr elements = { 10.0.0.1, 10.0.0.2 } }",
		"set set-s/net { type ipv4_addr flags interval elements = { 10.1.0.0/24, 10.1.1.0/24, 10.4.0.0/24, 10.6.0.0/24, 10.8.0.0/24, 240.0.0.0/4 } }",
		"type ipv4_addr . inet_proto . inet_service elements = { 10.0.0.1 . tcp . 80 }",
		"flags constant,interval elements = { 1, 3-5, 7, 9, 11-20, 80, 443-445 }",
		`map map-filter-from { type ifname : verdict elements = { "cali1" : goto filter-all, "cali2" : goto filter-other } }`,
		"ct state established,related accept",
		`ip saddr 10.0.0.0/8 tcp dport 80 meta mark set meta mark | 0x00010000 return comment "policy web"`,
		"ip saddr 10.0.0.0/8 tcp dport 443-445 meta mark set",
		"tcp dport @list-d7d5ded3d4efa51c980c meta mark set 0x00000005",
		"ip daddr != 10.0.0.0/8 ip daddr != 192.168.0.0/16 udp dport != 80 udp dport != 443-445 drop",
		"ip saddr 192.0.2.0/24 drop",
		`ip saddr @set-s/ip ip daddr != @set-s/net log prefix "denied: " drop`,
		"ip daddr . meta l4proto . th dport @set-s/port goto filter-other",
		"icmp type echo-request icmp code net-unreachable accept",
		"icmp type != destination-unreachable accept icmp type destination-unreachable icmp code != frag-needed accept",
		`iifname "cali*" oifname "eth0" meta mark & 0x00030000 != 0x00010000 reject with tcp reset`,
		"ct status dnat fib saddr type != local fib daddr type local ct original ip daddr 10.96.0.0/12 counter",
		"iifname vmap @map-filter-from drop",
		`type filter hook forward priority filter; policy accept; iifname "cali*" jump filter-from`,
		"type nat hook postrouting priority srcnat; policy accept; fib saddr . oif type != local masquerade fully-random",
		"snat to 10.0.0.1:80-90",
		"type nat hook prerouting priority dstnat; policy accept;",
		"dnat to 10.0.0.1:80",
		"type filter hook prerouting priority raw; policy accept; fib saddr . iif oif missing drop notrack",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("the listing lacks %q:\n%s", want, got)
		}
	}
	if got := nft(t, n, "list", "table", "ip6", defaultTable); !strings.Contains(got, "ip6 saddr fd00::/8 accept") {
		t.Errorf("the IPv6 table:\n%s", got)
	}
}

// TestTampering: any change of another program to our tables is reported as pending, without a resync, and is repaired.
func TestTampering(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	mustApply(t, b)
	before := dump(t, b)
	nft(t, n, "add table ip other; add chain ip other x { type filter hook forward priority 7; }; add rule ip other x drop")
	if b.Pending() {
		t.Error("another program's own table is none of our business")
	}
	for _, evil := range []string{
		"delete element ip contiv set-s/ip { 10.0.0.1 }",
		"add element ip contiv set-s/ip { 10.9.9.9 }",
		"delete element ip contiv set-s/net { 240.0.0.0/4 }",
		"add element ip contiv set-s/net { 10.5.0.1-10.5.0.6 }", // not a prefix
		"add element ip contiv set-s/port { 10.9.9.9 . udp . 7 }",
		"flush set ip contiv set-s/ip",
		"delete element ip contiv map-filter-from { cali2 }",
		"add element ip contiv map-filter-from { cali9 : goto filter-other }",
		"add element ip contiv map-filter-from { cali9 : accept }",
		"flush chain ip contiv filter-all",
		"add rule ip contiv filter-other accept",
		"insert rule ip contiv hook-filter-forward accept",
		"add chain ip contiv theirs; add rule ip contiv theirs drop; add rule ip contiv filter-other jump theirs",
		"add chain ip contiv theirs { type filter hook input priority 5; policy drop; }",
		"add set ip contiv theirs { type inet_service; }; add rule ip contiv filter-other tcp dport @theirs drop",
		"delete chain ip contiv hook-raw-prerouting; add chain ip contiv hook-raw-prerouting",
		"flush chain ip contiv filter-all; delete set ip contiv list-d7d5ded3d4efa51c980c; " +
			"add set ip contiv list-d7d5ded3d4efa51c980c { type inet_service; flags constant,interval; elements = { 7-9 }; }",
		"add set ip contiv list-0123 { type inet_service; flags constant,interval; elements = { 7-9 }; }",
		"add set ip contiv set-theirs { type inet_service; flags interval; }",
		"add table ip contiv { flags dormant; }",
		"flush table ip contiv",
		"delete table ip contiv",
		"delete table ip6 contiv",
		"delete table ip6 contiv; add table ip6 contiv; add chain ip6 contiv hook-filter-forward",
		"flush ruleset",
	} {
		nft(t, n, strings.ReplaceAll(evil, "contiv", defaultTable))
		if !b.Pending() {
			t.Errorf("%s: nothing is pending", evil)
		}
		if res := mustApply(t, b); res.Writes == 0 {
			t.Errorf("%s: nothing was written", evil)
		}
		if after := dump(t, b); after != before {
			t.Fatalf("%s: not undone:\n%s", evil, after)
		}
		if b.Pending() {
			t.Errorf("%s: something is pending after the repair", evil)
		}
	}
	b.Resync(true, true)
	if res := mustApply(t, b); res.Writes != 0 || b.Pending() {
		t.Errorf("a resync wrote %d objects", res.Writes)
	}
}

func dump(t testing.TB, b *Backend) string {
	t.Helper()
	s, err := b.Dump()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMissedEvents: if notifications were lost, or sent while we did not receive any, the generation shows it.
func TestMissedEvents(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	mustApply(t, b)
	before := dump(t, b)
	b.view.Events.Pause()
	nft(t, n, "flush chain ip contiv filter-all")
	b.view.Events.Resume()
	if res := mustApply(t, b); res.Writes == 0 || dump(t, b) != before {
		t.Errorf("a change that was not told was not found (%d writes)", res.Writes)
	}
	// The next change is reported, but the one before was not.
	b.view.Events.Pause()
	nft(t, n, "flush chain ip contiv filter-all")
	b.view.Events.Resume()
	nft(t, n, "add table ip others")
	if res := mustApply(t, b); res.Writes == 0 || dump(t, b) != before {
		t.Errorf("a change before one that was told was not found (%d writes)", res.Writes)
	}
	// Our change is for an outdated generation.
	b.view.Events.Pause()
	if err := b.view.Sync(b.load); err != nil {
		t.Fatal(err)
	}
	nft(t, n, "flush chain ip contiv filter-all")
	plans := [2]*plan{{f: b.families[0], clear: true}, {f: b.families[1]}}
	if _, err := b.transact(plans); !errors.Is(err, wire.ErrStale) {
		t.Errorf("a transaction for an old generation ended with %v", err)
	}
	if res := mustApply(t, b); res.Writes == 0 || dump(t, b) != before {
		t.Error("the table is not as desired")
	}
}

// TestTwoWriters: other programs that constantly write to their own tables do not block us.
func TestTwoWriters(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	mustApply(t, b)
	other, err := Open(Options{NS: n.Host.NS, Table: "other"})
	if err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int32
	var writer sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	writer.Go(func() {
		for ctx.Err() == nil {
			hook := table.Rule{Match: table.Match{Mark: uint32(writes.Load()), MarkMask: 0xff}}
			other.SetHook(table.IPv4, table.Filter, table.Forward, hook)
			if res := other.Apply(context.Background()); res.Err == nil {
				writes.Add(1)
			}
		}
	})
	for i := 0; i < 300 || writes.Load() < 100 && !t.Failed(); i++ {
		m := []table.Member{{Net: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 3, 0, byte(i)}), 32)}}
		b.ChangeSet(table.IPv4, "s:ip", m, nil)
		mustApply(t, b)
		b.ChangeSet(table.IPv4, "s:ip", nil, m)
	}
	stop()
	writer.Wait()
	other.Close()
	mustApply(t, b)
	after := dump(t, b)
	fresh := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	one := open(t, fresh.Host.NS)
	everything(one)
	mustApply(t, one)
	if want := dump(t, one); after != want {
		t.Errorf("after writing together:\n%s\nwant:\n%s", after, want)
	}
}

// TestRefused: objects that only the kernel finds invalid are isolated, with their users, and retried.
func TestRefused(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	f := b.families[0]
	f.set("s:ip").flat[table.Member{Net: pfx("::1/128")}] = struct{}{} // a key of another size
	f.hook(table.NAT, table.Prerouting).base.typ = "nonsense"
	res := b.Apply(t.Context())
	if got := slices.Sorted(maps.Keys(res.Broken)); res.Err != nil ||
		!slices.Equal(got, []string{"chain v4 filter all", "hook v4 nat prerouting", "set v4 s:ip"}) {
		t.Fatalf("error %v, broken %v", res.Err, res.Broken)
	}
	if !errors.Is(res.Broken["set v4 s:ip"], unix.EINVAL) {
		t.Errorf("set v4 s:ip is broken because of %v", res.Broken["set v4 s:ip"])
	}
	list := strings.Join(strings.Fields(nft(t, n, "list", "table", "ip", defaultTable)), " ")
	for _, want := range []string{`chain filter-all { drop comment "broken, see the agent's log" }`,
		"chain hook-nat-postrouting", "set-s/net"} {
		if !strings.Contains(list, want) {
			t.Errorf("not in the table: %q\n%s", want, list)
		}
	}
	if b.Pending() {
		t.Error("pending because of what is broken")
	}
	if res := b.Apply(t.Context()); len(res.Broken) != 3 || res.Writes != 0 {
		t.Errorf("again: broken %v, %d writes", res.Broken, res.Writes)
	}
	delete(f.set("s:ip").flat, table.Member{Net: pfx("::1/128")})
	f.hook(table.NAT, table.Prerouting).base.typ = "nat"
	b.ChangeSet(table.IPv4, "s:ip", nil, nil)
	mustApply(t, b)
	list = nft(t, n, "list", "table", "ip", defaultTable)
	if strings.Contains(list, "broken") || !strings.Contains(list, "set-s/ip") {
		t.Errorf("not healed:\n%s", list)
	}
}

// TestTooDeep: the kernel reports for a whole rule set that jumps are nested too deeply; only some chains are given up.
func TestTooDeep(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	for i := range 30 {
		c := table.Chain{Name: fmt.Sprintf("deep-%02d", i)}
		if i < 29 {
			c.Rules = []table.Rule{{Actions: jump(fmt.Sprintf("deep-%02d", i+1))}}
		}
		b.SetChains(table.IPv4, table.Filter, c)
	}
	b.SetHook(table.IPv4, table.Filter, table.Input, table.Rule{Actions: jump("deep-00")})
	res := b.Apply(t.Context())
	if res.Err != nil || len(res.Broken) == 0 || len(res.Broken) > 20 {
		t.Fatalf("error %v, broken %v", res.Err, res.Broken)
	}
	for name := range res.Broken {
		if !strings.Contains(name, "deep") && name != "hook v4 filter input" {
			t.Errorf("%s is broken", name)
		}
	}
	if list := nft(t, n, "list", "table", "ip", defaultTable); !strings.Contains(list, "chain filter-all") {
		t.Errorf("the rest is not there:\n%s", list)
	}
}

// TestLoops: one chain of a loop is broken, the rest works; removing a reference repairs it.
func TestLoops(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	f := table.IPv4
	to := func(name string, targets ...string) table.Chain {
		c := table.Chain{Name: name}
		for _, target := range targets {
			c.Rules = append(c.Rules, table.Rule{Actions: jump(target)})
		}
		return c
	}
	b.SetChains(f, table.Filter, to("a", "b"), to("b", "c", "d"), to("c", "a"), to("d"), to("self", "self"))
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Actions: jump("a")}, table.Rule{Actions: jump("self")})
	res := b.Apply(t.Context())
	if res.Err != nil || len(res.Broken) != 2 || !errors.Is(res.Broken["chain v4 filter self"], errLoop) {
		t.Fatalf("error %v, broken %v", res.Err, res.Broken)
	}
	b.SetChains(f, table.Filter, to("c"), to("self"))
	mustApply(t, b)
	// A dispatch chain can be part of a loop.
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "fork", Chains: map[string]string{"x": "d", "y": "c"}})
	b.SetChains(f, table.Filter, to("a", "b", "fork"), to("d", "a"))
	if res := b.Apply(t.Context()); res.Err != nil || len(res.Broken) == 0 || len(res.Broken) > 2 {
		t.Fatalf("error %v, broken %v", res.Err, res.Broken)
	}
	b.SetChains(f, table.Filter, to("d"))
	mustApply(t, b)
	if want := "filter-a { jump filter-b jump filter-fork }"; !strings.Contains(
		strings.Join(strings.Fields(nft(t, n, "list", "table", "ip", defaultTable)), " "), want) {
		t.Errorf("the table lacks %q", want)
	}
}

// TestHooksMatter: a chain that translates is broken while packets reach it from a hook at which translation is not allowed.
func TestHooksMatter(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	f := table.IPv4
	dnat := table.Rule{Actions: do(table.Action{Verb: table.DNAT, To: netip.MustParseAddr("10.0.0.1")})}
	b.SetChains(f, table.NAT, table.Chain{Name: "dnat", Rules: []table.Rule{dnat}},
		table.Chain{Name: "way", Rules: []table.Rule{{Actions: jump("dnat")}}})
	b.SetHook(f, table.NAT, table.Prerouting, table.Rule{Actions: jump("dnat")})
	mustApply(t, b)
	b.SetHook(f, table.NAT, table.Postrouting, table.Rule{Actions: jump("way")}) // the chain with DNAT itself did not change
	res := b.Apply(t.Context())
	if len(res.Broken) != 1 || res.Err != nil {
		t.Fatalf("error %v, broken %v", res.Err, res.Broken)
	}
	b.SetHook(f, table.NAT, table.Postrouting)
	mustApply(t, b)
	b.SetHook(f, table.NAT, table.Forward, dnat)
	if res := b.Apply(t.Context()); len(res.Broken) != 1 || res.Broken["hook v4 nat forward"] == nil {
		t.Fatalf("error %v, broken %v", res.Err, res.Broken)
	}
}

// TestFirstBrokenChainIsIsolated: of chains on one path that all violate the restrictions, the first is broken; then no packet reaches the
// others.
func TestFirstBrokenChainIsIsolated(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	f := table.IPv4
	masq := table.Rule{Actions: do(table.Action{Verb: table.Masquerade})}
	b.SetChains(f, table.NAT, table.Chain{Name: "first", Rules: []table.Rule{{Actions: jump("second")}, masq}},
		table.Chain{Name: "second", Rules: []table.Rule{{Actions: jump("third")}, masq}},
		table.Chain{Name: "third", Rules: []table.Rule{masq}})
	b.SetHook(f, table.NAT, table.Postrouting, table.Rule{Actions: jump("second")})
	for range 8 { // for any order of map iteration
		b.SetHook(f, table.NAT, table.Output, table.Rule{Actions: jump("first")})
		if res := b.Apply(t.Context()); len(res.Broken) != 1 || res.Broken["chain v4 nat first"] == nil {
			t.Fatalf("error %v, broken %v", res.Err, res.Broken)
		}
		b.SetHook(f, table.NAT, table.Output)
		mustApply(t, b)
	}
}

// TestDeny: a rule that would drop members of a broken set does not let them pass instead.
func TestDeny(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{})
	b := open(t, n.Host.NS)
	f := table.IPv4
	b.ReplaceSet(f, table.Set{ID: "evil", Type: table.SetNet, Max: 1},
		[]table.Member{{Net: pfx("203.0.113.0/24")}, {Net: pfx("9.0.0.0/8")}})
	b.SetChains(f, table.Filter, table.Chain{Name: "deny", Rules: []table.Rule{
		{Match: table.Match{DstSets: []string{"evil"}}, Actions: do(dropIt)}, {Actions: do(accept)}}})
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Match: table.Match{InIface: "cali1"}, Actions: jump("deny")})
	res := b.Apply(t.Context())
	if res.Broken["set v4 evil"] == nil || res.Broken["chain v4 filter deny"] == nil {
		t.Fatalf("broken %v", res.Broken)
	}
	evil := netip.MustParseAddr("203.0.113.1")
	n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(evil, 1)},
		tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[1].UDP(evil, 1)})
	b.ChangeSet(f, "evil", nil, []table.Member{{Net: pfx("9.0.0.0/8")}})
	mustApply(t, b)
	n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(evil, 1)},
		tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.Outside.Addr(f), 1)})
}

// TestMissingTarget: packets of an interface whose chain does not exist are dropped; the interface gets the chain as soon as it exists.
func TestMissingTarget(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{})
	b := open(t, n.Host.NS)
	f := table.IPv4
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from",
		Chains: map[string]string{"cali1": "one", "cali2": "two", "an-interface-with-a-long-name": "one"}})
	b.SetChains(f, table.Filter, table.Chain{Name: "one", Rules: []table.Rule{{Actions: do(accept)}}})
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Match: table.Match{InIface: "cali+"}, Actions: jump("from")})
	expect := func(one, two tabletest.Verdict, broken ...string) {
		t.Helper()
		res := b.Apply(t.Context())
		if got := slices.Sorted(maps.Keys(res.Broken)); res.Err != nil || !slices.Equal(got, broken) {
			t.Fatalf("error %v, broken %v", res.Err, res.Broken)
		}
		o := n.Outside.Addr(f)
		n.Expect(t, tabletest.Case{Want: one, Probe: n.Pods[0].UDP(o, 1)}, tabletest.Case{Want: two, Probe: n.Pods[1].UDP(o, 1)},
			tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[2].UDP(o, 1)}) // not named, no default
	}
	expect(tabletest.Pass, tabletest.Drop, "chain v4 filter from")
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "one", "cali2": "two"}})
	expect(tabletest.Pass, tabletest.Drop, "chain v4 filter from")
	b.SetChains(f, table.Filter, table.Chain{Name: "two", Rules: []table.Rule{{Actions: do(accept)}}})
	expect(tabletest.Pass, tabletest.Pass)
	b.DeleteChains(f, table.Filter, "one")
	expect(tabletest.Drop, tabletest.Pass, "chain v4 filter from")
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali2": "two"}})
	expect(tabletest.Pass, tabletest.Pass)
	b.DeleteChains(f, table.Filter, "two") // before the interface is removed: the same Apply sees both
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from"})
	expect(tabletest.Pass, tabletest.Pass)
	// From a dispatch chain to one of rules and back.
	b.SetChains(f, table.Filter, table.Chain{Name: "from", Rules: []table.Rule{{Actions: do(dropIt)}}})
	b.SetChains(f, table.Filter, table.Chain{Name: "one", Rules: []table.Rule{{Actions: do(accept)}}})
	mustApply(t, b)
	n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.Outside.Addr(f), 1)})
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "one", "cali2": "one"}})
	expect(tabletest.Pass, tabletest.Pass)
}

// TestSplit: changes that are too large for a single transaction are split; rules only see complete sets.
func TestSplit(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	b.maxBatch = 2000
	everything(b)
	manySets(b, 30)
	c, err := wire.Dial(n.Host.NS)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before, err := c.Generation()
	if err != nil {
		t.Fatal(err)
	}
	if res := mustApply(t, b); res.Writes < 600 {
		t.Errorf("%d writes", res.Writes)
	}
	if after, err := c.Generation(); err != nil || after-before < 30 {
		t.Errorf("%d transactions, error %v", after-before, err)
	}
	fresh := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	one := open(t, fresh.Host.NS)
	everything(one)
	manySets(one, 30)
	mustApply(t, one)
	if dump(t, b) != dump(t, one) {
		t.Error("many transactions and one do not make the same")
	}
	again := open(t, n.Host.NS)
	everything(again)
	manySets(again, 30)
	if res := mustApply(t, again); res.Writes != 0 {
		t.Errorf("a restart wrote %d objects", res.Writes)
	}
}

// TestSocketFails: a broken socket is an error once; then everything works as before.
func TestSocketFails(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	everything(b)
	mustApply(t, b)
	b.view.Cmd.Close()
	b.ChangeSet(table.IPv4, "s:ip", []table.Member{{Net: pfx("10.7.7.7/32")}}, nil)
	if res := b.Apply(t.Context()); res.Err == nil {
		t.Error("no error though the socket is gone")
	}
	if !b.Pending() {
		t.Error("the change is forgotten")
	}
	if res := mustApply(t, b); res.Writes != 1 || !strings.Contains(dump(t, b), "0a070707") {
		t.Errorf("%d writes", res.Writes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.ChangeSet(table.IPv4, "s:ip", nil, []table.Member{{Net: pfx("10.7.7.7/32")}})
	if res := b.Apply(ctx); !errors.Is(res.Err, context.Canceled) || !b.Pending() {
		t.Errorf("with a cancelled context: %v", res.Err)
	}
	mustApply(t, b)
}

// TestNothingStays: removed objects are dropped from memory and from the kernel.
func TestNothingStays(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	for round := range 5 {
		everything(b)
		b.SetChains(table.IPv4, table.Filter, table.Chain{Name: fmt.Sprintf("unreachable-%d", round)},
			table.Chain{Name: "other", Rules: []table.Rule{{Match: table.Match{SrcSets: []string{"none"}}, Actions: jump("none")}}})
		b.SetDispatch(table.IPv4, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"x": "none-either"}})
		if res := b.Apply(t.Context()); res.Err != nil || len(res.Broken) != 2 {
			t.Fatalf("error %v, broken %v", res.Err, res.Broken)
		}
		for _, l := range []table.Layer{table.Raw, table.NAT, table.Filter} {
			for _, h := range []table.Hook{table.Prerouting, table.Forward, table.Postrouting} {
				b.SetHook(table.IPv4, l, h)
				b.SetHook(table.IPv6, l, h)
			}
		}
		b.DeleteChains(table.IPv4, table.Filter, "all", "other", "from", fmt.Sprintf("unreachable-%d", round), "never-was")
		for _, id := range []string{"s:ip", "s:net", "s:few", "s:port", "never-was"} {
			b.DeleteSet(table.IPv4, id)
		}
		mustApply(t, b)
	}
	if out := nft(t, n, "list", "ruleset"); strings.TrimSpace(out) != "" {
		t.Errorf("left in the kernel:\n%s", out)
	}
	f := b.families[0]
	for name, node := range f.nodes {
		if node.base == nil {
			t.Errorf("node %s stays", name)
		}
	}
	if len(f.sets)+len(f.lists)+len(f.brokenNodes)+len(f.brokenSets)+len(f.dirtyNodes)+len(f.dirtySets) > 0 {
		t.Errorf("%d sets, %d lists stay", len(f.sets), len(f.lists))
	}
}
