package policy

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

// bulkChains returns n policy chains of ten rules: single prefixes and ports, lists of both, sets and marks, as policies have them.
func bulkChains(n, salt int) []table.Chain {
	chains := make([]table.Chain, n)
	for i := range chains {
		c := table.Chain{Name: fmt.Sprintf("pol-%d", i)}
		for j := range 10 {
			m := table.Match{Protocol: 6, DstPorts: []table.PortRange{{First: uint16(1000 + i%5000), Last: uint16(1000 + i%5000 + j)}}}
			m.SrcNets = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(j + salt)}), 32)}
			if j == 9 {
				m.DstPorts = append(m.DstPorts, table.PortRange{First: 80, Last: 80}, table.PortRange{First: 443, Last: 443})
			}
			r := table.Rule{Match: m, Actions: []table.Action{{Verb: table.SetMark, Mark: 0x10000, Mask: 0x10000}, {Verb: table.Return}}}
			c.Rules = append(c.Rules, r)
		}
		chains[i] = c
	}
	return chains
}

// desireBulk adds n chains to the desired state, all of which are reached from the forward hook by a map of interfaces.
func desireBulk(b *Backend, n int) {
	b.SetChains(table.IPv4, table.Filter, bulkChains(n, 0)...)
	d := table.Dispatch{Name: "from", Chains: map[string]string{}}
	for i := range n {
		d.Chains[fmt.Sprintf("cali%d", i)] = fmt.Sprintf("pol-%d", i)
	}
	b.SetDispatch(table.IPv4, table.Filter, d)
	b.SetHook(table.IPv4, table.Filter, table.Forward,
		table.Rule{Match: table.Match{InIface: "cali+"}, Actions: []table.Action{{Verb: table.Jump, Chain: "from"}}})
}

func benchNet(b *testing.B) *tabletest.Net { return tabletest.NewNet(b, tabletest.Options{Pods: 1}) }

func mustApply(t testing.TB, b *Backend) table.Result {
	t.Helper()
	res := settled(t, b, b.Apply(t.Context()))
	if res.Err != nil || len(res.Broken) > 0 {
		t.Fatalf("apply: %v, broken %v", res.Err, res.Broken)
	}
	return res
}

// settled applies until objects with a grace period are removed, and adds the writes.
func settled(t testing.TB, b *Backend, res table.Result) table.Result {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); res.Err == nil && res.Again == wire.GraceLook; {
		if time.Now().After(end) {
			t.Fatal("what is to go is still there after 10 s")
		}
		b.view.Grace.Wait()
		writes := res.Writes
		res = b.Apply(t.Context())
		res.Writes += writes
	}
	return res
}

// BenchmarkColdStart programs 5,000 chains of 10 rules into an empty kernel.
func BenchmarkColdStart(b *testing.B) {
	n := benchNet(b)
	for b.Loop() {
		be := open(b, n.Host.NS)
		desireBulk(be, 5000)
		if res := mustApply(b, be); res.Writes < 55_000 {
			b.Fatal(res.Writes)
		}
		b.StopTimer()
		be.Close()
		clean := open(b, n.Host.NS)
		mustApply(b, clean)
		clean.Close()
		b.StartTimer()
	}
}

// BenchmarkRestart is a new process that finds 5,000 chains of 10 rules as desired.
func BenchmarkRestart(b *testing.B) {
	n := benchNet(b)
	first := open(b, n.Host.NS)
	desireBulk(first, 5000)
	mustApply(b, first)
	for b.Loop() {
		be := open(b, n.Host.NS)
		desireBulk(be, 5000)
		if res := mustApply(b, be); res.Writes != 0 {
			b.Fatal(res.Writes)
		}
		be.Close()
	}
}

// BenchmarkChange changes one chain among 5,000.
func BenchmarkChange(b *testing.B) {
	n := benchNet(b)
	be := open(b, n.Host.NS)
	desireBulk(be, 5000)
	mustApply(b, be)
	i := 0
	for b.Loop() {
		i++
		be.SetChains(table.IPv4, table.Filter, bulkChains(1, i%200)...)
		mustApply(b, be)
	}
}

// BenchmarkMember adds a member to one set among 2,000 of 20 members.
func BenchmarkMember(b *testing.B) {
	for _, sets := range []int{10, 2000, 5000} {
		b.Run(fmt.Sprintf("sets=%d", sets), func(b *testing.B) {
			n := benchNet(b)
			be := open(b, n.Host.NS)
			manySets(be, sets)
			mustApply(b, be)
			i := 0
			for b.Loop() {
				i++
				a := netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
				be.ChangeSet(table.IPv4, "set1", []table.Member{{Net: netip.PrefixFrom(a, 32)}}, nil)
				mustApply(b, be)
			}
		})
	}
}

func manySets(be *Backend, sets int) {
	for s := range sets {
		members := make([]table.Member, 20)
		for i := range members {
			members[i].Net = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(s >> 8), byte(s), byte(2 * i)}), 32)
		}
		typ := table.SetIP
		if s%2 == 0 {
			typ = table.SetNet
		}
		be.ReplaceSet(table.IPv4, table.Set{ID: fmt.Sprintf("set%d", s), Type: typ}, members)
	}
}

// BenchmarkEndpoint adds an endpoint (its chain, its interface) and removes it, among others.
func BenchmarkEndpoint(b *testing.B) {
	for _, among := range []int{10, 500, 5000} {
		b.Run(fmt.Sprintf("among=%d", among), func(b *testing.B) {
			n := benchNet(b)
			be := open(b, n.Host.NS)
			desireBulk(be, among)
			mustApply(b, be)
			with, without := map[string]string{"new": "new"}, map[string]string{}
			for i := range among {
				with[fmt.Sprintf("cali%d", i)] = fmt.Sprintf("pol-%d", i)
				without[fmt.Sprintf("cali%d", i)] = fmt.Sprintf("pol-%d", i)
			}
			c := bulkChains(1, 7)[0]
			c.Name = "new"
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					be.SetChains(table.IPv4, table.Filter, c)
					be.SetDispatch(table.IPv4, table.Filter, table.Dispatch{Name: "from", Chains: with})
				} else {
					be.DeleteChains(table.IPv4, table.Filter, "new")
					be.SetDispatch(table.IPv4, table.Filter, table.Dispatch{Name: "from", Chains: without})
				}
				mustApply(b, be)
			}
		})
	}
}

// BenchmarkIdle is an Apply that has nothing to do.
func BenchmarkIdle(b *testing.B) {
	n := benchNet(b)
	be := open(b, n.Host.NS)
	desireBulk(be, 500)
	mustApply(b, be)
	for b.Loop() {
		mustApply(b, be)
	}
}

// BenchmarkLargeSet creates a set of 100,000 members.
func BenchmarkLargeSet(b *testing.B) {
	for _, typ := range []table.SetType{table.SetIP, table.SetIPAndPort, table.SetNet} {
		b.Run(fmt.Sprintf("type=%d", typ), func(b *testing.B) {
			n := benchNet(b)
			members := make([]table.Member, 100_000)
			for i := range members {
				a := netip.AddrFrom4([4]byte{10, byte(i >> 15), byte(i >> 7), byte(i << 1)})
				members[i] = table.Member{Net: netip.PrefixFrom(a, 32), Proto: 6, Port: 80}
			}
			for b.Loop() {
				be := open(b, n.Host.NS)
				be.ReplaceSet(table.IPv4, table.Set{ID: "large", Type: typ}, members)
				mustApply(b, be)
				b.StopTimer()
				be.DeleteSet(table.IPv4, "large")
				mustApply(b, be)
				be.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkNftTool does the work of BenchmarkColdStart and BenchmarkMember with nft -f, with the text that nft itself lists.
func BenchmarkNftTool(b *testing.B) {
	run := func(b *testing.B, n *tabletest.Net, stdin string, args ...string) string {
		var out bytes.Buffer
		err := n.Host.NS.Do(func() error {
			cmd := exec.Command("nft", args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
			return cmd.Run()
		})
		if err != nil {
			b.Fatalf("nft %v: %v: %.300s", args, err, out.String())
		}
		return out.String()
	}
	b.Run("cold", func(b *testing.B) {
		n := benchNet(b)
		be := open(b, n.Host.NS)
		desireBulk(be, 5000)
		mustApply(b, be)
		text := run(b, n, "", "-n", "list", "table", "ip", defaultTable)
		for b.Loop() {
			b.StopTimer()
			run(b, n, "", "flush", "ruleset")
			b.StartTimer()
			run(b, n, text, "-f", "-")
		}
	})
	b.Run("member", func(b *testing.B) {
		n := benchNet(b)
		be := open(b, n.Host.NS)
		manySets(be, 2000)
		mustApply(b, be)
		i := 0
		for b.Loop() {
			i++
			run(b, n, fmt.Sprintf("add element ip %s set-set1 { 11.0.%d.%d }\n", defaultTable, byte(i>>8), byte(i)), "-f", "-")
		}
	})
}

// BenchmarkRawFloor sends the same transaction as BenchmarkColdStart, built beforehand: it measures the kernel's part.
func BenchmarkRawFloor(b *testing.B) {
	n := benchNet(b)
	for b.Loop() {
		b.StopTimer()
		be := open(b, n.Host.NS)
		desireBulk(be, 5000)
		if err := be.view.Sync(be.load); err != nil {
			b.Fatal(err)
		}
		f := be.families[0]
		p := f.plan(f.resolve(), 0)
		t := be.view.NewBatch()
		p.write(t)
		b.StartTimer()
		if err := be.view.Commit(t); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(len(t.B))/1e6, "MB")
		be.Close()
		clean := open(b, n.Host.NS)
		mustApply(b, clean)
		clean.Close()
		b.StartTimer()
	}
}
