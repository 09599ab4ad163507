package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/test/testbed/poll"
)

const (
	clockPackets = 200_000
	clockTurns   = 21
	firstTurns   = 10
	clockFlows   = 400    // of UDP and of TCP: an ACL of vpptest's VPP has 1 023 sessions
	firstFlows   = 10_000 // flows whose first packet is measured
	largeRules   = 1000
	smallRules   = 10
)

// clockVPP is a VPP in which clocks per packet are measured.
type clockVPP struct {
	*policyVPP
	dir    string
	stream int
}

// clockPair is a pair of packet generators of a VPP: packets of the first are routed to the second.
type clockPair struct {
	*clockVPP
	first    int // number of the first
	sw       [2]interface_types.InterfaceIndex
	src, dst netip.Addr
}

// policyClocks compares packets under our policies with packets under a reflecting ACL, which is how policies were implemented before.
func policyClocks(ctx context.Context, e *env) error {
	if !e.vpp {
		fmt.Println("   left out: there is no VPP")
		return nil
	}
	p, err := newPolicyVPP(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	v := &clockVPP{policyVPP: p}
	if v.dir, err = os.MkdirTemp("", "contiv-bench-pcap-"); err != nil {
		return err
	}
	defer os.RemoveAll(v.dir)
	pairs := [3]*clockPair{}
	for i := range pairs {
		if pairs[i], err = v.pair(2 * i); err != nil {
			return err
		}
	}
	if err := pairs[1].reflect(ctx); err != nil {
		return err
	}
	if err := pairs[2].endpoints(ctx); err != nil {
		return err
	}
	first, err := pairs[2].firsts(ctx)
	if err != nil {
		return err
	}
	for _, c := range policyClockCases {
		f, err := established(ctx, pairs, c)
		if err != nil {
			return err
		}
		fmt.Printf("   established %s, clocks a packet: plain %.0f, reflecting ACL of %d rules %.0f, our policy of %d rules %.0f\n", c, f.plain, largeRules,
			f.acl, largeRules, f.ours)
		e.ratio(fmt.Sprintf("established %s: our policy's clocks to the ACL's, beyond plain (aim <= 0.7)", c),
			bar{name: "policy", value: f.ours - f.plain}, bar{name: "reflecting ACL", value: f.acl - f.plain})
	}
	for _, kind := range ruleKinds {
		for i, which := range []string{"flows to one port", "each flow to another port"} {
			toPorts := i == 1
			e.ratio(fmt.Sprintf("first packet, rules with %s, %s: among %d to among %d (aim <= 2)", kind, which, largeRules, smallRules),
				bar{name: fmt.Sprint(largeRules, " rules"), value: first[firstCase{kind, largeRules, toPorts}]},
				bar{name: fmt.Sprint(smallRules, " rules"), value: first[firstCase{kind, smallRules, toPorts}]})
		}
	}
	return nil
}

// pair makes two packet generators with consecutive numbers.
func (v *clockVPP) pair(first int) (*clockPair, error) {
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i), 2}) }
	p := &clockPair{clockVPP: v, first: first, src: address(first), dst: address(first + 1)}
	for i := range p.sw {
		for _, line := range []string{"create packet-generator interface pg%[1]d", "set interface ip address pg%[1]d 10.1.%[1]d.1/24", "set interface state pg%[1]d up",
			"set ip neighbor static pg%[1]d 10.1.%[1]d.2 02:00:00:00:00:0%[1]d"} {
			if _, err := v.cli(line, first+i); err != nil {
				return nil, err
			}
		}
		sw, err := v.index(fmt.Sprint("pg", first+i))
		if err != nil {
			return nil, err
		}
		p.sw[i] = sw
	}
	return p, nil
}

// policyClockCase is a number of flows of UDP, or of TCP.
type policyClockCase struct {
	tcp   bool
	flows int
}

func (c policyClockCase) String() string {
	if c.tcp {
		return fmt.Sprintf("TCP, %d flows", c.flows)
	}
	return fmt.Sprintf("UDP, %d flows", c.flows)
}

var policyClockCases = []policyClockCase{{false, 1}, {false, clockFlows}, {true, 1}, {true, clockFlows}}

// clockFigures are clocks per packet: without a policy, under an ACL, and under our policy.
type clockFigures struct{ plain, acl, ours float64 }

func (f clockFigures) ratio() float64 { return (f.ours - f.plain) / (f.acl - f.plain) }

// established measures the three cases in turns, and returns the turn whose ratio is the median: a change of the processor's speed affects all three.
func established(ctx context.Context, pairs [3]*clockPair, c policyClockCase) (clockFigures, error) {
	if _, err := pairs[0].cli("clear contiv connections"); err != nil {
		return clockFigures{}, err
	}
	f := flows{n: c.flows}
	if c.tcp {
		f.tcpFlags = tcpACK
		for _, p := range pairs {
			for _, first := range []flows{{n: c.flows, tcpFlags: tcpSYN}, {n: c.flows, tcpFlags: tcpSYN | tcpACK, backwards: true}} {
				if _, err := p.run(ctx, first, c.flows); err != nil {
					return clockFigures{}, err
				}
			}
		}
	}
	turns := make([]clockFigures, clockTurns+1)
	for i := range turns {
		for k, to := range []*float64{&turns[i].plain, &turns[i].acl, &turns[i].ours} {
			clocks, err := pairs[k].run(ctx, f, clockPackets)
			if err != nil {
				return clockFigures{}, err
			}
			*to = clocks
		}
	}
	turns = turns[1:] // the first turn includes the opening of flows
	slices.SortFunc(turns, func(a, b clockFigures) int { return cmp.Compare(a.ratio(), b.ratio()) })
	return turns[clockTurns/2], nil
}

// opening returns the minimum cost of the first packet of a flow, over many flows. A verdict for one flow also holds for others with the same ends
// and port: with toPorts each flow has another port, which avoids that.
func (p *clockPair) opening(ctx context.Context, toPorts bool) (best float64, err error) {
	for range firstTurns {
		if _, err := p.cli("clear contiv connections"); err != nil {
			return 0, err
		}
		clocks, err := p.run(ctx, flows{n: firstFlows, toPorts: toPorts}, firstFlows)
		if err != nil {
			return 0, err
		}
		if best == 0 || clocks < best {
			best = clocks
		}
	}
	return best, nil
}

// run sends packets of a number of flows and returns the clocks that each packet took in the graph. Backwards, the receiver sends them.
func (p *clockPair) run(ctx context.Context, f flows, packets int) (float64, error) {
	f.src, f.dst, f.perPort = p.src, []netip.AddrPort{netip.AddrPortFrom(p.dst, 80)}, 1
	pcap := filepath.Join(p.dir, fmt.Sprintf("%d-%d-%t-%d-%t.pcap", p.first, f.n, f.toPorts, f.tcpFlags, f.backwards))
	if _, err := os.Stat(pcap); err != nil {
		if err := f.writePcap(pcap); err != nil {
			return 0, err
		}
	}
	from := p.first
	if f.backwards {
		from++
	}
	p.stream++
	name := fmt.Sprint("s", p.stream)
	for _, line := range []string{fmt.Sprintf("packet-generator new { name %s limit %d interface pg%d node ip4-input pcap %s }", name, packets, from, pcap),
		"clear runtime", "packet-generator enable-stream " + name} {
		if _, err := p.cli("%s", line); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := poll.Until(ctx, 5*time.Millisecond, func() error {
		out, err := p.cli("show packet-generator")
		if err == nil && strings.Contains(out, "Yes") {
			err = errors.New("packets are still being generated")
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	out, err := p.cli("show runtime")
	if err != nil {
		return 0, err
	}
	stats := parseRuntime(out)
	if share := float64(stats.sent()) / float64(packets); share < 0.99 {
		return 0, fmt.Errorf("only %.1f %% of %d packets of %+v came through", share*100, packets, f)
	}
	_, err = p.cli("packet-generator delete %s", name)
	return stats.graph() / float64(packets), err
}

// reflect gives the receiver an ACL that reflects permitted connections, and one that permits nothing else in the reverse direction.
func (p *clockPair) reflect(ctx context.Context) error {
	acls := acl.NewServiceClient(p.conn)
	rules := aclRules(largeRules-1, 0, acl_types.ACL_ACTION_API_DENY)
	any4 := ip_types.Prefix{Address: ip_types.NewAddress(netip.IPv4Unspecified().AsSlice())}
	rules = append(rules, acl_types.ACLRule{IsPermit: acl_types.ACL_ACTION_API_PERMIT_REFLECT, SrcPrefix: any4, DstPrefix: any4, SrcportOrIcmptypeLast: 65535,
		DstportOrIcmpcodeLast: 65535})
	rep, err := acls.ACLAddReplace(ctx, &acl.ACLAddReplace{ACLIndex: ^uint32(0), Tag: "bench", Count: uint32(len(rules)), R: rules})
	if err != nil {
		return err
	}
	// the outgoing ACLs come after the first n_input ones
	_, err = acls.ACLInterfaceSetACLList(ctx, &acl.ACLInterfaceSetACLList{SwIfIndex: p.sw[1], Count: 1, Acls: []uint32{rep.ACLIndex}})
	return err
}

// endpoints makes both generators pods.
func (p *clockPair) endpoints(ctx context.Context) error {
	for i, a := range []netip.Addr{p.src, p.dst} {
		_, err := p.api.ContivEndpointSet(ctx, &contiv.ContivEndpointSet{SwIfIndex: p.sw[i], Role: contiv.CONTIV_ROLE_API_POD, Name: fmt.Sprint("pg", p.first+i),
			NAddresses: 1, Addresses: []ip_types.Address{ip_types.NewAddress(a.AsSlice())}})
		if err != nil {
			return err
		}
	}
	return nil
}

// ruleKinds are the kinds of rules in a policy; the last one is used to measure established packets.
var ruleKinds = []string{"one set", "a set each", "a set and a port each"}

type firstCase struct {
	kind    string
	rules   int
	toPorts bool
}

// firsts measures first packets, and leaves the largest policy in place.
func (p *clockPair) firsts(ctx context.Context) (map[firstCase]float64, error) {
	first := map[firstCase]float64{}
	for _, kind := range ruleKinds {
		for _, n := range []int{smallRules, largeRules} {
			if err := p.policy(ctx, n, kind != ruleKinds[0], kind == ruleKinds[2]); err != nil {
				return nil, err
			}
			for _, toPorts := range []bool{false, true} {
				clocks, err := p.opening(ctx, toPorts)
				if err != nil {
					return nil, err
				}
				first[firstCase{kind, n, toPorts}] = clocks
			}
		}
	}
	return first, nil
}

// policy gives the receiver a policy in which the last rule allows the packets that the others do not match: their sets do not contain the sender.
// The other rules have the same set or one each, and all ports or one each.
func (p *clockPair) policy(ctx context.Context, n int, each, ports bool) error {
	set := &contiv.ContivPolicySet{ID: 1, Name: "clocks", NIngress: uint32(n), NRules: uint32(n), Rules: make([]contiv.ContivRule, n)}
	for i := range set.Rules {
		id := uint64(1)
		if each {
			id = uint64(1 + i)
		}
		if each || i == 0 {
			_, err := p.api.ContivSetAddDel(ctx, &contiv.ContivSetAddDel{IsAdd: true, ID: id, Name: "others", Kind: contiv.CONTIV_SET_API_NETWORKS})
			if err != nil {
				return err
			}
			_, err = p.api.ContivSetMemberAddDel(ctx, &contiv.ContivSetMemberAddDel{IsAdd: true, SetID: id, Prefix: vppPrefix(routeDst(i))})
			if err != nil {
				return err
			}
		}
		set.Rules[i] = contiv.ContivRule{Action: contiv.CONTIV_RULE_API_DENY, Protocol: 17, Source: id}
		if ports { // some of the ports of the flows
			port := uint16(1024 + 7*i)
			set.Rules[i].NPorts, set.Rules[i].Ports[0] = 1, contiv.ContivPortRange{First: port, Last: port}
		}
	}
	set.Rules[n-1] = contiv.ContivRule{Action: contiv.CONTIV_RULE_API_ALLOW}
	if _, err := p.api.ContivPolicySet(ctx, set); err != nil {
		return err
	}
	_, err := p.api.ContivEndpointPolicySet(ctx, &contiv.ContivEndpointPolicySet{SwIfIndex: p.sw[1], Name: "clocks", Ingress: contiv.CONTIV_RULE_API_ALLOW,
		Egress: contiv.CONTIV_RULE_API_ALLOW, NIngress: 2, NItems: 2, Items: []contiv.ContivTierItem{{PolicyID: 1}, {Action: contiv.CONTIV_RULE_API_DENY}}})
	return err
}
