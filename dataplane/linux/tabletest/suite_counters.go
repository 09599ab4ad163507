package tabletest

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// testCounters: rules report how many packets they matched, in whatever form the kernel has their conditions; counting continues after a
// restart.
func testCounters(t *testing.T, r *rig) {
	both(func(f table.Family) { r.countedChains(f) })
	r.apply()
	send := func(f table.Family) {
		var cases []Case
		for port, n := range map[uint16]int{1: 1, 2: 2, 3: 3, 10: 1, 11: 2, 9: 1} {
			for range n {
				want := Pass
				if port == 3 || port > 9 {
					want = Drop
				}
				cases = append(cases, Case{Want: want, Probe: r.pod(1).UDP(anywhere(f, 0, 1), port)})
			}
		}
		for _, c := range cases { // one after the other: each is a separate connection
			r.net.Expect(r.t, c)
		}
	}
	want := map[string]uint64{"counted one": 1, "counted two": 2, "counted three": 3, "counted many": 3}
	send(table.IPv4)
	r.counted("IPv4", []table.Family{table.IPv4}, want)
	r.counted("IPv6 without packets", []table.Family{table.IPv6}, map[string]uint64{})
	send(table.IPv6)
	twice := map[string]uint64{}
	for name, n := range want {
		twice[name] = 2 * n
	}
	r.counted("both families", []table.Family{table.IPv4, table.IPv6}, twice)
	r.restart()
	both(func(f table.Family) { r.countedChains(f) })
	if res := r.apply(); res.Writes != 0 {
		t.Errorf("%d writes after a restart", res.Writes)
	}
	r.counted("after a restart", []table.Family{table.IPv4, table.IPv6}, twice)
}

// countedChains creates rules that count by port: with one action, with two, with alternatives, which become separate rules, and two rules
// with the same comment.
func (r *rig) countedChains(f table.Family) {
	of := func(ports ...table.PortRange) table.Match { return table.Match{Protocol: 17, DstPorts: ports} }
	one := func(p uint16) table.PortRange { return table.PortRange{First: p, Last: p} }
	count := func(comment string, rule table.Rule) table.Rule {
		rule.Comment, rule.Counted = comment, comment != ""
		return rule
	}
	var many []table.PortRange
	for p := range uint16(20) {
		many = append(many, one(10+2*p), one(11+2*p))
	}
	accepts := []table.Action{{Verb: table.SetMark, Mark: 0x100, Mask: 0x100}, {Verb: table.Return}}
	nets := of(one(2))
	nets.SrcNets, nets.DstNets = Anywhere(f), Anywhere(f)
	nets.SrcNets = append(nets.SrcNets, host(r.pod(1).Addr(f)))
	r.b.SetChains(f, table.Filter, chain("policy",
		count("counted one", rule(of(one(1)), accepts...)), count("counted two", rule(nets, accepts...)),
		count("counted three", drop(of(one(3)))), count("", returns(of(one(9)))),
		count("counted many", drop(of(many...))), count("counted many", drop(of(one(100))))))
	r.outgoing(f, "policy")
}

// counted compares the counts of rules. Packets may be on their way; rules with a count of zero may be left out.
func (r *rig) counted(what string, families []table.Family, want map[string]uint64) {
	r.t.Helper()
	counters, can := r.b.(table.Counters)
	if !can {
		r.t.Fatal("the backend has no counters")
	}
	got := map[string]uint64{}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		clear(got)
		err := counters.ReadCounters(context.Background(), families, []string{"policy", "not-there"}, func(chain, comment string, packets uint64) {
			if chain != "policy" {
				r.t.Errorf("%s: a rule of chain %s", what, chain)
			}
			if packets > 0 {
				got[comment] += packets
			}
		})
		if err != nil {
			r.t.Fatalf("%s: %v", what, err)
		}
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Error(fmt.Errorf("%s: %v, want %v", what, got, want))
			return
		}
	}
}
