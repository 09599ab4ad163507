package nft

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Supported is nil if the kernel has all that this package uses of nf_tables. Nothing is changed: what is needed is asked for
// in a transaction that the kernel cannot complete, and so undoes.
func Supported(ns *nsdo.Namespace) error {
	c, err := dial(ns)
	if err != nil {
		return err
	}
	defer c.close()
	for _, id := range []table.Family{table.IPv4, table.IPv6} {
		for attempt := 0; ; attempt++ {
			err := probe(c, newFamily(id))
			if err == nil {
				err = probeServices(c, id)
			}
			if errors.Is(err, errStale) && attempt < maxAttempts {
				continue
			}
			if err != nil {
				return fmt.Errorf("the kernel's nf_tables cannot do all that IPv%d needs: %w; use the iptables backend", id, err)
			}
			break
		}
	}
	return nil
}

// feature is something that the kernel may not have.
type feature struct {
	name string
	err  error
}

func (f *feature) key() string { return f.name }

func (f *feature) fail(err error) { f.err = err }

func (f *feature) failed() bool { return f.err != nil }

func (f *feature) touch() {}

const probeTable = "contiv-probe"

// probeServices asks for a table with a service that needs all there is.
func probeServices(c *conn, id table.Family) error {
	gen, err := c.generation()
	if err != nil {
		return err
	}
	f := newBalancer(id)
	b := newBatch(probeTable, c.seq+1)
	f.add(&service{Service: probeService(id)})
	f.write(b)
	end := &feature{name: "end"} // fails always: nothing has such a set
	b.delSet(f.f, "never", end)
	err = c.commit(b, b.close(), gen)
	var refused *refusal
	if !errors.As(err, &refused) {
		return cmpErr(err, errors.New("a transaction that must fail did not"))
	}
	if refused.other != nil {
		return fmt.Errorf("services: %w", refused.other)
	}
	for o, err := range refused.objects {
		if o != object(end) {
			return fmt.Errorf("services: %w", err)
		}
	}
	return nil
}

func probeService(id table.Family) *balance.Service {
	g := &balance.Group{ID: 1}
	front := balance.Frontend{Key: balance.Key{Addr: netip.IPv4Unspecified(), Proto: 6, Port: 1}, Inside: g, Outside: g,
		Masquerade: balance.Always, Restricted: true}
	if id == table.IPv6 {
		front.Addr = netip.IPv6Unspecified()
	}
	return &balance.Service{Name: "probe", Affinity: time.Second, Ports: []balance.Port{{Family: id, Proto: 6,
		Frontends: []balance.Frontend{front}}}}
}

func probe(c *conn, f *family) error {
	gen, err := c.generation()
	if err != nil {
		return err
	}
	b := newBatch(probeTable, c.seq+1)
	b.begin(f, unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, &feature{name: "tables"})
	b.end()
	probeSets(b, f)
	if err := probeRules(b, f); err != nil {
		return err
	}
	end := &feature{name: "end"} // fails always: nothing has such a set
	b.delSet(f, "never", end)
	err = c.commit(b, b.close(), gen)
	var refused *refusal
	if !errors.As(err, &refused) {
		return cmpErr(err, errors.New("a transaction that must fail did not"))
	}
	if !errors.Is(refused.objects[end], unix.ENOENT) {
		return fmt.Errorf("the transaction ended with %w", cmpErr(refused.other, refused.objects[end], errLost))
	}
	if first := refused.order[0]; first != end { // others may only fail because of it
		return fmt.Errorf("%s: %w", first.key(), refused.objects[first])
	}
	return refused.other
}

// probeSets asks for every kind of set.
func probeSets(b *batch, f *family) {
	for _, t := range []table.SetType{table.SetIP, table.SetIPAndPort, table.SetNet} {
		s := f.set(fmt.Sprintf("probe%d", t))
		s.replace(table.Set{ID: s.id, Type: t}, nil)
		typ, size := keyType(f, t)
		b.begin(f, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, &feature{name: fmt.Sprintf("sets of type %d", t)})
		b.str(unix.NFTA_SET_NAME, s.name)
		b.u32(unix.NFTA_SET_FLAGS, setFlags(t))
		b.u32(unix.NFTA_SET_KEY_TYPE, typ)
		b.u32(unix.NFTA_SET_KEY_LEN, size)
		b.sets++
		b.u32(unix.NFTA_SET_ID, b.sets)
		b.end()
	}
	b.newMap(f.node(table.Filter, "probe"))
}

// wanted is a rule that needs a feature.
type wanted struct {
	name string
	l    table.Layer
	h    table.Hook
	m    table.Match
	do   []table.Action
}

// wantedRules need every expression, hook and type of chain.
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
			table.Match{CT: table.CTNew, DNATed: true, CTOrigDst: nets}, verb(table.Action{Verb: table.Return})},
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

func probeRules(b *batch, f *family) error {
	for _, w := range wantedRules(f.id) {
		r := table.Rule{Match: w.m, Actions: w.do}
		if err := probeRule(b, f.hook(w.l, w.h), r, &feature{name: w.name}); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// probeRule asks for a chain, unless it has been asked for, and a rule in it, on behalf of a feature.
func probeRule(b *batch, n *node, r table.Rule, who object) error {
	content := compile(n, []table.Rule{r})
	if content.err != nil {
		return content.err
	}
	at := len(b.blame)
	if !n.present {
		b.newChain(n)
		n.present = true
	}
	b.newRules(n, content.programs)
	for i := at; i < len(b.blame); i++ {
		b.blame[i] = who
	}
	return nil
}
