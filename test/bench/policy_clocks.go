package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/test/testbed"
)

const (
	clockPackets = 200_000
	clockTurns   = 10
	clockFlows   = 400    // of UDP and of TCP: an ACL of vpptest's VPP has 1 023 sessions
	firstFlows   = 10_000 // of which each first packet is measured
	largeRules   = 1000
	smallRules   = 10
)

// clockPair is two packet generators of a VPP: packets of the first go to the second.
type clockPair struct {
	*policyVPP
	dir      string
	sw       [2]interface_types.InterfaceIndex
	stream   int
	src, dst netip.Addr
}

// policyClocks compares packets under our policies with packets under a reflecting ACL, which is what policies were made of before.
func policyClocks(ctx context.Context, e *env) error {
	if !e.vpp {
		fmt.Println("   left out: there is no VPP")
		return nil
	}
	v, err := newPolicyVPP(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	p := &clockPair{policyVPP: v, src: netip.MustParseAddr("10.1.0.2"), dst: netip.MustParseAddr("10.1.1.2")}
	if p.dir, err = os.MkdirTemp("", "contiv-bench-pcap-"); err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	for i := range p.sw {
		for _, line := range []string{"create packet-generator interface pg%[1]d", "set interface ip address pg%[1]d 10.1.%[1]d.1/24", "set interface state pg%[1]d up",
			"set ip neighbor static pg%[1]d 10.1.%[1]d.2 02:00:00:00:00:0%[1]d"} {
			if _, err := v.cli(line, i); err != nil {
				return err
			}
		}
		if p.sw[i], err = v.index(fmt.Sprint("pg", i)); err != nil {
			return err
		}
	}
	plain, err := p.established(ctx, nil)
	if err != nil {
		return err
	}
	reflected, err := p.reflecting(ctx)
	if err != nil {
		return err
	}
	return p.ours(ctx, e, plain, reflected)
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

// clockFigures are clocks per packet.
type clockFigures map[policyClockCase]float64

func (p *clockPair) established(ctx context.Context, clear func() error) (clockFigures, error) {
	out := clockFigures{}
	for _, c := range policyClockCases {
		if clear != nil {
			if err := clear(); err != nil {
				return nil, err
			}
		}
		f := flows{n: c.flows}
		if c.tcp {
			f.tcpFlags = tcpACK
			for _, first := range []flows{{n: c.flows, tcpFlags: tcpSYN}, {n: c.flows, tcpFlags: tcpSYN | tcpACK, backwards: true}} {
				if _, err := p.run(ctx, first, c.flows); err != nil {
					return nil, err
				}
			}
		}
		best := 0.0
		for turn := range clockTurns + 1 {
			clocks, err := p.run(ctx, f, clockPackets)
			if err != nil {
				return nil, err
			}
			if turn > 0 && (best == 0 || clocks < best) {
				best = clocks
			}
		}
		out[c] = best
	}
	return out, nil
}

// first is what the first packets of many flows take, at best. What was decided on a flow holds for others of the same ends and port: toPorts leaves that out.
func (p *clockPair) first(ctx context.Context, toPorts bool) (best float64, err error) {
	for range clockTurns {
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

// run sends packets of so many flows and returns the clocks that each took in the graph. Backwards, they are the receiver's.
func (p *clockPair) run(ctx context.Context, f flows, packets int) (float64, error) {
	f.src, f.dst, f.perPort = p.src, []netip.AddrPort{netip.AddrPortFrom(p.dst, 80)}, 1
	pcap := filepath.Join(p.dir, fmt.Sprintf("%d-%t-%d-%t.pcap", f.n, f.toPorts, f.tcpFlags, f.backwards))
	if _, err := os.Stat(pcap); err != nil {
		if err := f.writePcap(pcap); err != nil {
			return 0, err
		}
	}
	from := 0
	if f.backwards {
		from = 1
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
	err := testbed.Eventually(ctx, 5*time.Millisecond, func() error {
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

// reflecting measures with an ACL at the receiver that reflects what it permits, and one that permits nothing else back.
func (p *clockPair) reflecting(ctx context.Context) (clockFigures, error) {
	acls := acl.NewServiceClient(p.conn)
	rules := aclRules(largeRules-1, 0, acl_types.ACL_ACTION_API_DENY)
	any4 := ip_types.Prefix{Address: ip_types.NewAddress(netip.IPv4Unspecified().AsSlice())}
	rules = append(rules, acl_types.ACLRule{IsPermit: acl_types.ACL_ACTION_API_PERMIT_REFLECT, SrcPrefix: any4, DstPrefix: any4, SrcportOrIcmptypeLast: 65535,
		DstportOrIcmpcodeLast: 65535})
	rep, err := acls.ACLAddReplace(ctx, &acl.ACLAddReplace{ACLIndex: ^uint32(0), Tag: "bench", Count: uint32(len(rules)), R: rules})
	if err != nil {
		return nil, err
	}
	bind := func(list ...uint32) error { // behind n_input there are the outgoing ones
		_, err := acls.ACLInterfaceSetACLList(ctx, &acl.ACLInterfaceSetACLList{SwIfIndex: p.sw[1], Count: uint8(len(list)), Acls: list})
		return err
	}
	if err := bind(rep.ACLIndex); err != nil {
		return nil, err
	}
	out, err := p.established(ctx, nil)
	return out, errors.Join(err, bind())
}

// ours measures with our policies, and prints.
func (p *clockPair) ours(ctx context.Context, e *env, plain, reflected clockFigures) error {
	for i, a := range []netip.Addr{p.src, p.dst} {
		_, err := p.api.ContivEndpointSet(ctx, &contiv.ContivEndpointSet{SwIfIndex: p.sw[i], Role: contiv.CONTIV_ROLE_API_POD, Name: fmt.Sprint("pg", i),
			NAddresses: 1, Addresses: []ip_types.Address{ip_types.NewAddress(a.AsSlice())}})
		if err != nil {
			return err
		}
	}
	first := map[string]float64{}
	kinds := []string{"one set", "a set each", "a set and a port each"}
	for _, kind := range kinds {
		for _, n := range []int{smallRules, largeRules} {
			if err := p.policy(ctx, n, kind != kinds[0], kind == kinds[2]); err != nil {
				return err
			}
			for _, toPorts := range []bool{false, true} {
				clocks, err := p.first(ctx, toPorts)
				if err != nil {
					return err
				}
				first[fmt.Sprint(kind, n, toPorts)] = clocks
			}
		}
	}
	clear := func() error { _, err := p.cli("clear contiv connections"); return err }
	ours, err := p.established(ctx, clear)
	if err != nil {
		return err
	}
	for _, n := range policyClockCases {
		fmt.Printf("   established %s, clocks a packet: plain %.0f, reflecting ACL of %d rules %.0f, our policy of %d rules %.0f\n", n, plain[n], largeRules,
			reflected[n], largeRules, ours[n])
		e.ratio(fmt.Sprintf("established %s: our policy's clocks to the ACL's, beyond plain (aim <= 0.7)", n),
			bar{name: "policy", value: ours[n] - plain[n]}, bar{name: "reflecting ACL", value: reflected[n] - plain[n]})
	}
	for _, kind := range kinds {
		for i, which := range []string{"flows to one port", "each flow to another port"} {
			toPorts := i == 1
			e.ratio(fmt.Sprintf("first packet, rules with %s, %s: among %d to among %d (aim <= 2)", kind, which, largeRules, smallRules),
				bar{name: fmt.Sprint(largeRules, " rules"), value: first[fmt.Sprint(kind, largeRules, toPorts)]},
				bar{name: fmt.Sprint(smallRules, " rules"), value: first[fmt.Sprint(kind, smallRules, toPorts)]})
		}
	}
	return nil
}

// policy gives the receiver a policy in which the last rule allows what the others do not match: their sets do not have the sender. Each of the others
// has the same set, or its own, and all ports, or one of its own.
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
		if ports { // some of those that flows go to
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
