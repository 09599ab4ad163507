package policy

import (
	"fmt"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Supported returns nil if the kernel has all features of nf_tables that this package uses in a family. Nothing is changed.
func Supported(ns *nsdo.Namespace, id table.Family) error {
	return supported(ns, func() *family { return newFamily(id) })
}

func supported(ns *nsdo.Namespace, fresh func() *family) error {
	return wire.Probe(ns, fresh().Proto, func(b *wire.Batch) error {
		f := fresh()
		b.BlameOn("tables", func() { b.NewTable(f.Proto) })
		probeSets(b, f)
		return probeRules(b, f)
	})
}

// probeSets adds messages that create every kind of set.
func probeSets(b *wire.Batch, f *family) {
	for _, t := range []table.SetType{table.SetIP, table.SetIPAndPort, table.SetNet} {
		s := f.set(fmt.Sprintf("probe%d", t))
		s.replace(table.Set{ID: s.id, Type: t}, nil)
		b.BlameOn(fmt.Sprintf("sets of type %d", t), func() { newSet(b, s) })
	}
	newMap(b, f.node(table.Filter, "probe"))
}

// wanted is a rule that needs a feature.
type wanted struct {
	name string
	l    table.Layer
	h    table.Hook
	m    table.Match
	do   []table.Action
}

// wantedRules returns rules that together use every expression, hook and type of chain.
func wantedRules(f table.Family) []wanted {
	to := netip.AddrFrom4([4]byte{192, 0, 2, 1})
	if f == table.IPv6 {
		to = netip.IPv6LinkLocalAllNodes()
	}
	ports, nets := []table.PortRange{{First: 1, Last: 2}}, []netip.Prefix{netip.PrefixFrom(to, 8)}
	verb := func(a table.Action) []table.Action { return []table.Action{a} }
	return []wanted{
		{"nets and ports", table.Filter, table.Forward,
			table.Match{Protocol: 6, DstPorts: ports, NotSrcPorts: ports, SrcNets: nets}, verb(table.Action{Verb: table.Accept})},
		{"sets in rules", table.Filter, table.Forward, table.Match{Protocol: 6, SrcSets: []string{"probe0"},
			NotDstSets: []string{"probe2"}, DstPortSets: []string{"probe1"}}, verb(table.Action{Verb: table.Drop})},
		{"connection tracking", table.Filter, table.Forward,
			table.Match{CT: table.CTNew, DNATed: true, CTOrigDst: nets, CTOrigSrc: nets, CTReplSrc: nets}, verb(table.Action{Verb: table.Return})},
		{"fib", table.Raw, table.Prerouting, table.Match{NoReversePath: true, Dst: table.AddrLocal}, nil},
		{"fib of the outgoing interface", table.NAT, table.Postrouting, table.Match{SrcNotOnOut: true}, nil},
		{"notrack", table.Raw, table.Output, table.Match{}, verb(table.Action{Verb: table.NoTrack})},
		{"marks", table.Mangle, table.Output, table.Match{MarkMask: 1}, verb(table.Action{Verb: table.SetMark, Mark: 1, Mask: 1})},
		{"log", table.Mangle, table.Prerouting, table.Match{InIface: "x+"}, verb(table.Action{Verb: table.Log, Prefix: "x"})},
		{"reports", table.Filter, table.Forward, table.Match{}, verb(table.Action{Verb: table.Report, Prefix: "x"})},
		{"reject", table.Filter, table.Input, table.Match{}, verb(table.Action{Verb: table.Reject})},
		{"dnat", table.NAT, table.Prerouting, table.Match{Protocol: 6},
			verb(table.Action{Verb: table.DNAT, To: to, Ports: ports[0]})},
		{"snat", table.NAT, table.Postrouting, table.Match{}, verb(table.Action{Verb: table.SNAT, To: to, FullRandom: true})},
		{"masquerade", table.NAT, table.Postrouting, table.Match{}, verb(table.Action{Verb: table.Masquerade, FullRandom: true})},
	}
}

func probeRules(b *wire.Batch, f *family) error {
	for _, w := range wantedRules(f.ID) {
		r := table.Rule{Match: w.m, Actions: w.do}
		if err := probeRule(b, f.hook(w.l, w.h), r, w.name); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// probeRule adds messages that create a chain, unless that was done before, and a rule in it. Errors are attributed to the feature.
func probeRule(b *wire.Batch, n *node, r table.Rule, feature string) error {
	content := compile(n, []table.Rule{r})
	if content.err != nil {
		return content.err
	}
	b.BlameOn(feature, func() {
		if !n.present {
			newChain(b, n)
			n.present = true
		}
		newRules(b, n, content.programs)
	})
	return nil
}
