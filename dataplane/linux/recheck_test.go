package intdataplane

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

func flow(protocol uint8, from, to string, port uint16) conntrack.Flow {
	dst := netip.AddrPortFrom(addr(to), port)
	return conntrack.Flow{Proto: protocol, From: netip.AddrPortFrom(addr(from), 30000), To: dst, Answers: dst}
}

// suspected returns the addresses that the last step has noted.
func (b *bench) suspected() []string {
	var list []string
	for a := range b.d.recheck.due {
		list = append(list, a.String())
	}
	b.d.recheck.due = suspects{}
	slices.Sort(list)
	return list
}

func namedPort(set string) *proto.Rule {
	return &proto.Rule{Action: "allow", Protocol: &proto.Protocol{NumberOrName: &proto.Protocol_Number{Number: 6}}, DstNamedPortIpSetIds: []string{set}}
}

// TestRecheckAgreesWithTheRules: recheck allows a connection if the kernel's rules accept its first packet, for all packets between
// workloads, the node and others.
func TestRecheckAgreesWithTheRules(t *testing.T) {
	b := newBench(t, Config{RulesConfig: rules.Config{NodeAndSelfExempt: true}})
	named := &proto.IPSetUpdate{Id: "named", Type: proto.IPSetUpdate_IP_AND_PORT, Members: []string{"10.65.0.1,tcp:90"}}
	nets := &proto.IPSetUpdate{Id: "nets", Type: proto.IPSetUpdate_NET, Members: []string{"192.0.2.0/24", "10.65.0.3"}}
	both := &proto.TierInfo{Name: "default", IngressPolicies: []string{"web"}, EgressPolicies: []string{"out"}}
	b.must(openProfile(), named, nets, ipSet("clients", "10.65.0.2"), ifAddrs("eth0", "172.16.0.1"),
		policy("web", tcpPort("allow", 80), namedPort("named"), fromSet("deny", "nets"), fromSet("pass", "clients")),
		&proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "default", Name: "out"}, Policy: &proto.Policy{OutboundRules: []*proto.Rule{
			{Action: "allow", DstIpSetIds: []string{"nets"}}}}},
		endpoint("w1", "cali1", 1, withTiers(both)), endpoint("w2", "cali2", 2), endpoint("w3", "cali3", 3, withTiers(ingress("web"))),
		endpoint("w4", "cali4", 4, func(ep *proto.WorkloadEndpoint) { ep.ProfileIds = nil }))
	ifaces := map[string]string{"10.65.0.1": "cali1", "10.65.0.2": "cali2", "10.65.0.3": "cali3", "10.65.0.4": "cali4",
		"192.0.2.9": "eth0", "198.51.100.1": "eth0", "172.16.0.1": ""}
	addrs := slices.Sorted(maps.Keys(ifaces))
	seen := map[bool]int{}
	for _, src := range addrs {
		for _, dst := range addrs {
			for _, port := range []uint16{80, 90, 91} {
				for _, protocol := range []uint8{6, 17} {
					p := rulestest.Packet{In: ifaces[src], Out: ifaces[dst], Src: addr(src), Dst: addr(dst), Proto: protocol, SrcPort: 30000,
						DstPort: port, CT: table.CTNew, Local: []netip.Addr{addr("172.16.0.1")}}
					want := b.verdict(p) != "drop"
					if ifaces[dst] == "" && ifaces[src] != "" && ifaces[src] != "eth0" {
						want = true // EndpointToHostAction is not policy, and drops here
					}
					if got := b.d.recheck.allowed(flow(protocol, src, dst, port)); got != want {
						t.Errorf("protocol %d from %s to %s:%d: recheck %t, rules %t", protocol, src, dst, port, got, want)
					}
					seen[want]++
				}
			}
		}
	}
	if seen[true] < 50 || seen[false] < 50 {
		t.Errorf("the cases are one-sided: %v", seen)
	}
}

// TestRecheckLooksAtWhatHasChanged: recheck checks the connections affected by a change, and no others.
func TestRecheckLooksAtWhatHasChanged(t *testing.T) {
	b := newBench(t, Config{})
	b.must(openProfile(), ipSet("clients", "10.0.0.1", "10.0.0.2"), ipSet("bad"), policy("web", fromSet("allow", "clients")),
		policy("other", fromSet("deny", "bad")), endpoint("w1", "cali1", 1, withTiers(ingress("web"))),
		endpoint("w2", "cali2", 2, withTiers(ingress("other"))), endpoint("w3", "cali3", 3))
	all := b.suspected()
	if len(all) != 6 { // two addresses each
		t.Errorf("at first: %q", all)
	}
	of := func(n int) (list []string) {
		for _, a := range addressesOf(b.d.recheck.known[wlKey([]string{"", "w1", "w2", "w3"}[n])]) {
			list = append(list, a.String())
		}
		slices.Sort(list)
		return list
	}
	for _, step := range []struct {
		name string
		msg  any
		want []string
	}{
		{"the same endpoint", endpoint("w1", "cali1", 1, withTiers(ingress("web"))), nil},
		{"a policy", policy("web", fromSet("allow", "clients"), tcpPort("allow", 1)), of(1)},
		{"a member more", &proto.IPSetDeltaUpdate{Id: "clients", AddedMembers: []string{"10.0.0.3"}}, nil},
		{"a member less", &proto.IPSetDeltaUpdate{Id: "clients", RemovedMembers: []string{"10.0.0.2"}}, []string{"10.0.0.2"}},
		{"a member more that is denied", &proto.IPSetDeltaUpdate{Id: "bad", AddedMembers: []string{"10.0.0.3"}}, of(2)},
		{"a replaced set", ipSet("clients", "10.0.0.1"), of(1)},
		{"another policy for an endpoint", endpoint("w3", "cali3", 3, withTiers(ingress("other"))), of(3)},
		{"a policy less", noPolicy("other"), slices.Sorted(slices.Values(append(of(2), of(3)...)))},
		{"an endpoint less", gone("w1"), nil},
		{"an endpoint more", endpoint("w4", "cali4", 4, withTiers(ingress("web"))), nil},
	} {
		b.must(step.msg)
		if got := b.suspected(); !slices.Equal(got, step.want) {
			t.Errorf("%s: looks at %q, want %q", step.name, got, step.want)
		}
	}
}

// TestRecheckOfAnotherTier: connections of a policy's endpoints are checked when the policy is removed, even if the removal does not name
// its tier, and when it changes its tier.
func TestRecheckOfAnotherTier(t *testing.T) {
	b := newBench(t, Config{})
	inSec, removal := namespaced("sec", "ns", "p", tcpPort("allow", 80))
	inOther, _ := namespaced("other", "ns", "p", tcpPort("allow", 80))
	b.must(openProfile(), inSec, endpoint("w1", "cali1", 1, withTiers(&proto.TierInfo{Name: "sec", IngressPolicies: []string{"p"}})))
	for name, msg := range map[string]any{"it goes to another tier": inOther, "it goes": removal} {
		b.suspected()
		b.must(inSec)
		b.suspected()
		if b.must(msg); len(b.suspected()) != 2 {
			t.Errorf("%s: its endpoint's connections are not looked at", name)
		}
	}
}

// TestRecheckAfterRepair: after the backend has repaired rules that another program had removed, the connections of all endpoints and of all
// services are checked, once.
func TestRecheckAfterRepair(t *testing.T) {
	b := newBench(t, Config{})
	b.must(openProfile(), endpoint("w1", "cali1", 1), endpoint("w2", "cali2", 2))
	dns := dnsService(t, 2)
	b.d.services.services["default/dns"] = dns
	b.suspected()
	for _, repaired := range []bool{false, true, false} {
		b.fake.Repaired, b.d.flows.due = repaired, noOutdated()
		b.must()
		want := 0
		if repaired {
			want = 4 // two addresses each
		}
		if got := b.suspected(); len(got) != want {
			t.Errorf("repaired %t: looks at %q", repaired, got)
		}
		if _, is := b.d.flows.due.backends[dns.Ports[0].Frontends[0].Key]; is != repaired {
			t.Errorf("repaired %t: the service's connections are checked: %t", repaired, is)
		}
	}
}

// removal is a fake of removeFlows: a table of connections.
type removal struct {
	mu      sync.Mutex
	flows   []conntrack.Flow // guarded by mu
	err     error            // guarded by mu; the first call fails
	removed chan []conntrack.Flow
}

// set changes the table; the next call fails if err is not nil.
func (r *removal) set(err error, flows ...conntrack.Flow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flows, r.err = flows, err
}

// list returns the table, or the error of this call.
func (r *removal) list() ([]conntrack.Flow, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.err
	r.err = nil
	return r.flows, err
}

func (r *removal) remove(ctx context.Context, which conntrack.Which, stale func(conntrack.Flow) bool) (int, error) {
	flows, err := r.list()
	if err != nil {
		return 0, err
	}
	var found, gone []conntrack.Flow
	for _, f := range flows {
		if slices.Contains(which.Protocols, f.Proto) && stale(f) {
			found = append(found, f)
		}
	}
	confirmed, err := which.Confirm(ctx, found)
	if err != nil {
		return 0, err
	}
	for i, f := range found {
		if confirmed[i] {
			gone = append(gone, f)
		}
	}
	r.removed <- gone
	return len(gone), nil
}

// recheckJob runs the job of the bench's driver on a table of connections. inspect takes the functions for the loop.
func (b *bench) recheckJob(err error, flows ...conntrack.Flow) (removed <-chan []conntrack.Flow, inspect <-chan func()) {
	table := &removal{flows: flows, err: err, removed: make(chan []conntrack.Flow, 1)}
	return table.removed, b.recheckTable(table)
}

// recheckTable is like recheckJob, for a table that the test changes.
func (b *bench) recheckTable(table *removal) (inspect <-chan func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	inspections := make(chan func())
	b.d.recheck.remove = table.remove
	b.d.recheck.inspect = func(f func()) error {
		select {
		case inspections <- f:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan error, 1)
	go func() { done <- b.d.recheck.run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	return inspections
}

// TestRecheckRemoves: of the checked connections, the job removes those that are not allowed, also after a failed attempt.
func TestRecheckRemoves(t *testing.T) {
	for name, fault := range map[string]error{"at once": nil, "after an error": errors.New("no buffer space")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Config{})
				b.must(openProfile(), policy("web", tcpPort("allow", 80)), endpoint("w1", "cali1", 1, withTiers(ingress("web"))))
				web := addressesOf(b.d.recheck.known[wlKey("w1")])[0].String()
				flows := map[conntrack.Flow]bool{ // true: must be removed
					flow(6, "192.0.2.1", web, 80): false, flow(6, "192.0.2.1", web, 81): true, flow(17, "192.0.2.1", web, 80): true,
					flow(6, web, "192.0.2.1", 81): false, flow(6, "192.0.2.1", "192.0.2.2", 81): false,
				}
				removed, inspect := b.recheckJob(fault, slices.Collect(maps.Keys(flows))...)
				b.d.recheck.sweep()
				(<-inspect)()
				gone := <-removed
				for f, want := range flows {
					if slices.Contains(gone, f) != want {
						t.Errorf("%v: removed %t", f, !want)
					}
				}
			})
		})
	}
}

// TestRecheckAgain: a second after a check the job checks the same connections once more. It then removes what came into the table meanwhile: a
// connection whose first packet the old rules had accepted, and the entry that an answer to a removed connection has made, which the rules allow
// as a connection of the pod.
func TestRecheckAgain(t *testing.T) {
	for name, fault := range map[string]error{"at once": nil, "after an error": errors.New("no buffer space")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Config{})
				b.must(openProfile(), policy("web", tcpPort("allow", 80)), endpoint("w1", "cali1", 1, withTiers(ingress("web"))))
				web := addressesOf(b.d.recheck.known[wlKey("w1")])[0].String()
				reverse := func(f conntrack.Flow) conntrack.Flow {
					return conntrack.Flow{Proto: f.Proto, From: f.Answers, To: f.From, Answers: f.From}
				}
				client, other := flow(17, "192.0.2.1", web, 53), flow(17, "192.0.2.2", web, 53)
				table := &removal{flows: []conntrack.Flow{client}, removed: make(chan []conntrack.Flow, 1)}
				inspect := b.recheckTable(table)
				b.d.recheck.sweep()
				(<-inspect)()
				if gone := <-table.removed; !slices.Equal(gone, []conntrack.Flow{client}) {
					t.Fatalf("the first check removed %v", gone)
				}
				synctest.Wait()
				own := reverse(flow(17, "192.0.2.3", web, 53))
				table.set(fault, other, reverse(client), own)
				begin := time.Now()
				(<-inspect)()
				if gone := <-table.removed; !slices.Equal(gone, []conntrack.Flow{other, reverse(client)}) {
					t.Errorf("the second check removed %v", gone)
				}
				want := recheckAgain
				if fault != nil {
					want += recheckRetry
				}
				if took := time.Since(begin); took < want || took > want+recheckAgain/4 {
					t.Errorf("the second check came after %s, want %s", took, want)
				}
				synctest.Wait()
				select {
				case <-inspect:
					t.Error("there was a third check")
				case <-time.After(time.Minute):
				}
			})
		})
	}
}

// TestRecheckOfManyChanges: changes that follow each other cause as many second checks as their time needs, not one for each change.
func TestRecheckOfManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{})
		b.must(openProfile(), policy("web", tcpPort("allow", 80)), endpoint("w1", "cali1", 1, withTiers(ingress("web"))))
		web := addressesOf(b.d.recheck.known[wlKey("w1")])[0]
		table := &removal{flows: []conntrack.Flow{flow(17, "192.0.2.1", web.String(), 53)}, removed: make(chan []conntrack.Flow, 1000)}
		inspect := b.recheckTable(table)
		const changes = 100
		end := time.After(time.Minute)
		for i, checks := 0, 0; ; {
			var change <-chan time.Time
			if i < changes {
				change = time.After(10 * time.Millisecond)
			}
			select {
			case f := <-inspect:
				f()
				checks++
			case <-change:
				i++
				b.d.recheck.add(suspects{web: {}})
			case <-end:
				if checks < changes+4 || checks > changes+10 {
					t.Errorf("%d checks of %d changes in a second", checks, changes)
				}
				return
			}
		}
	})
}

// TestRecheckJudgesNoMixture: while changes are recorded that the kernel does not have, no connection is judged: the records may deny a connection
// that the rules allowed before and allow afterwards.
func TestRecheckJudgesNoMixture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{})
		b.must(openProfile(), ipSet("blue", "192.0.2.1"), ipSet("green"), policy("web", fromSet("allow", "blue"), fromSet("allow", "green")),
			endpoint("w1", "cali1", 1, withTiers(ingress("web"))))
		web := addressesOf(b.d.recheck.known[wlKey("w1")])[0].String()
		removed, inspect := b.recheckJob(nil, flow(6, "192.0.2.1", web, 80), flow(6, "192.0.2.2", web, 80))
		b.report(&proto.IPSetDeltaUpdate{Id: "blue", RemovedMembers: []string{"192.0.2.1"}}) // not applied yet
		(<-inspect)()
		synctest.Wait()
		select {
		case gone := <-removed:
			t.Fatalf("removed %v by a mixture of two states", gone)
		default:
		}
		b.must(&proto.IPSetDeltaUpdate{Id: "green", AddedMembers: []string{"192.0.2.1"}})
		if gone := <-removed; len(gone) != 1 || gone[0].From.Addr() != addr("192.0.2.2") {
			t.Errorf("removed %v, want the connection of the client in no set", gone)
		}
	})
}
