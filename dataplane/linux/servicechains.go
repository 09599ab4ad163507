package intdataplane

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// The chains and sets of services. In layer nat:
//
//	svc-in, svc-out   by frontend, one rule or two for each; for others and pods, and for the node itself
//	sg-<group>        draws a backend
//	se-<backend>      is one, if there is more to do than to translate
//	svc-post          masquerades what was marked
//
// and in layer filter svc-check, svc-check-out, which refuse by sets.
const (
	chainServicesIn       = "cali-svc-in"
	chainServicesOut      = "cali-svc-out"
	chainServicesPost     = "cali-svc-post"
	chainServicesCheck    = "cali-svc-check"
	chainServicesCheckOut = "cali-svc-check-out"
	prefixServiceGroup    = "cali-sg-"
	prefixServiceBackend  = "cali-se-"

	setServicePods       = "svc-pods"
	setServiceFronts     = "svc-frontends"
	setServiceClusterIPs = "svc-cluster-ips"
	setServiceReject     = "svc-reject"
	setServiceDrop       = "svc-drop"
	setServiceRejectOut  = "svc-reject-outside"
	setServiceDropOut    = "svc-drop-outside"
	setServiceRestricted = "svc-restricted"
)

// chainServices programs services as chains of a table.Backend: the way for iptables. A frontend costs a rule, so that new
// connections cost more the more services there are, and a change rewrites what it touches.
type chainServices struct {
	out    table.Backend
	render rules.RuleRenderer
	own    func(felix string) string // rules.Config.Own
	mark   uint32
	tables map[table.Family]*chainTable
}

// chainTable is the table of one family.
type chainTable struct {
	services map[string]*balance.Service
	pods     []netip.Prefix
	own      map[string][]string // chains by service
	dirty    bool
	hooked   bool
}

var _ serviceProgrammer = (*chainServices)(nil)

func newChainServices(families []table.Family, config rules.Config, render rules.RuleRenderer, out table.Backend) *chainServices {
	c := &chainServices{out: out, render: render, own: config.Own, mark: config.IptablesMarkMasquerade, tables: map[table.Family]*chainTable{}}
	for _, f := range families {
		c.tables[f] = &chainTable{services: map[string]*balance.Service{}, own: map[string][]string{}}
	}
	return c
}

// Set adds a service or replaces it.
func (c *chainServices) Set(s *balance.Service) {
	for f, t := range c.tables {
		has := slices.ContainsFunc(s.Ports, func(p balance.Port) bool { return p.Family == f })
		if !has && t.services[s.Name] == nil {
			continue
		}
		chains := c.groupChains(f, s)
		names := make([]string, len(chains))
		for i := range chains {
			names[i] = chains[i].Name
		}
		gone := slices.DeleteFunc(t.own[s.Name], func(name string) bool { return slices.Contains(names, name) })
		c.out.SetChains(f, table.NAT, chains...)
		c.out.DeleteChains(f, table.NAT, gone...)
		t.services[s.Name], t.own[s.Name], t.dirty = s, names, true
	}
}

// Delete removes a service.
func (c *chainServices) Delete(name string) {
	for f, t := range c.tables {
		if t.services[name] == nil {
			continue
		}
		c.out.DeleteChains(f, table.NAT, t.own[name]...)
		delete(t.services, name)
		delete(t.own, name)
		t.dirty = true
	}
}

// SetPods reports which nets are those of pods.
func (c *chainServices) SetPods(f table.Family, nets []netip.Prefix) {
	t := c.tables[f]
	t.pods, t.dirty = nets, true
}

// Render hands over what all services have in common.
func (c *chainServices) Render() {
	for f, t := range c.tables {
		if !t.dirty {
			continue
		}
		t.dirty = false
		if len(t.services) > 0 {
			c.renderTable(f, t)
		} else if t.hooked {
			c.removeTable(f)
		}
		t.hooked = len(t.services) > 0
	}
}

// Apply has nothing left to do: the backend writes.
func (c *chainServices) Apply(context.Context) table.Result { return table.Result{} }

// Resync has nothing to do.
func (c *chainServices) Resync() {}

// Close has nothing to do.
func (c *chainServices) Close() error { return nil }

// hook puts a jump to a chain of ours in front of the rules at a hook, or takes it away with an empty name.
func (c *chainServices) hook(f table.Family, l table.Layer, h table.Hook, chain string) {
	list := c.render.Hooks(l)[h]
	if chain != "" {
		list = append([]table.Rule{{Actions: []table.Action{{Verb: table.Jump, Chain: chain}}}}, list...)
	}
	c.out.SetHook(f, l, h, list...)
}

type serviceJump struct {
	l     table.Layer
	h     table.Hook
	chain string
}

func (c *chainServices) jumps() []serviceJump {
	return []serviceJump{
		{table.NAT, table.Prerouting, c.own(chainServicesIn)}, {table.NAT, table.Output, c.own(chainServicesOut)},
		{table.NAT, table.Postrouting, c.own(chainServicesPost)}, {table.Filter, table.Input, c.own(chainServicesCheck)},
		{table.Filter, table.Forward, c.own(chainServicesCheck)}, {table.Filter, table.Output, c.own(chainServicesCheckOut)},
	}
}

func (c *chainServices) renderTable(f table.Family, t *chainTable) {
	var in, out []table.Rule
	skip := table.Rule{Match: table.Match{NotDstPortSets: []string{setServiceFronts}}, Actions: verdict(table.Return)}
	in, out = append(in, skip), append(out, skip)
	members := map[string]map[table.Member]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.services)) {
		s := t.services[name]
		for i := range s.Ports {
			if s.Ports[i].Family != f {
				continue
			}
			for j := range s.Ports[i].Frontends {
				front := &s.Ports[i].Frontends[j]
				in, out = append(in, c.inbound(front)...), append(out, c.outbound(front)...)
				noteFrontend(members, front)
			}
		}
	}
	for _, set := range serviceSets() {
		c.out.ReplaceSet(f, set, slices.Collect(maps.Keys(members[set.ID])))
	}
	var pods []table.Member
	for _, net := range t.pods {
		pods = append(pods, table.Member{Net: net})
	}
	c.out.ReplaceSet(f, table.Set{ID: setServicePods, Type: table.SetNet}, unique(pods))
	c.out.SetChains(f, table.NAT, table.Chain{Name: c.own(chainServicesIn), Rules: in}, table.Chain{Name: c.own(chainServicesOut), Rules: out},
		c.postrouting())
	c.out.SetChains(f, table.Filter, check(c.own(chainServicesCheck), true), check(c.own(chainServicesCheckOut), false))
	if !t.hooked {
		for _, j := range c.jumps() {
			c.hook(f, j.l, j.h, j.chain)
		}
	}
}

func (c *chainServices) removeTable(f table.Family) {
	for _, j := range c.jumps() {
		c.hook(f, j.l, j.h, "")
		c.out.DeleteChains(f, j.l, j.chain)
	}
	for _, set := range serviceSets() {
		c.out.DeleteSet(f, set.ID)
	}
	c.out.DeleteSet(f, setServicePods)
}

func serviceSets() []table.Set {
	sets := []table.Set{{ID: setServiceClusterIPs, Type: table.SetIP}}
	for _, id := range []string{setServiceFronts, setServiceReject, setServiceDrop, setServiceRejectOut, setServiceDropOut,
		setServiceRestricted} {
		sets = append(sets, table.Set{ID: id, Type: table.SetIPAndPort})
	}
	return sets
}

// noteFrontend puts a frontend into the sets that it belongs to.
func noteFrontend(members map[string]map[table.Member]bool, front *balance.Frontend) {
	put := func(set string, m table.Member) {
		if members[set] == nil {
			members[set] = map[table.Member]bool{}
		}
		members[set][m] = true
	}
	m := table.Member{Net: hostNet(front.Addr), Proto: front.Proto, Port: front.Port}
	put(setServiceFronts, m)
	if front.Cluster {
		put(setServiceClusterIPs, table.Member{Net: m.Net})
	}
	if front.Restricted {
		put(setServiceRestricted, m)
	}
	for _, v := range []struct {
		g            *balance.Group
		reject, drop string
	}{{front.Inside, setServiceReject, setServiceDrop}, {front.Outside, setServiceRejectOut, setServiceDropOut}} {
		switch v.g.Verdict {
		case balance.Reject:
			put(v.reject, m)
		case balance.Drop:
			put(v.drop, m)
		}
	}
}

func verdict(v table.Verb) []table.Action { return []table.Action{{Verb: v}} }

// toFrontend matches what is sent to a frontend by those that may.
func toFrontend(front *balance.Frontend) table.Match {
	m := table.Match{Protocol: front.Proto, DstNets: []netip.Prefix{hostNet(front.Addr)},
		DstPorts: []table.PortRange{{First: front.Port, Last: front.Port}}}
	if front.Restricted {
		m.SrcNets = front.Sources
	}
	return m
}

// to goes to a group, after marking the connection if it is to be masqueraded.
func (c *chainServices) to(g *balance.Group, masquerade bool) []table.Action {
	var list []table.Action
	if masquerade {
		list = append(list, table.Action{Verb: table.SetMark, Mark: c.mark, Mask: c.mark})
	}
	return append(list, table.Action{Verb: table.Goto, Chain: c.groupName(g)})
}

// inbound are the rules for packets of pods and of others.
func (c *chainServices) inbound(front *balance.Frontend) []table.Rule {
	if front.Restricted && len(front.Sources) == 0 {
		return nil
	}
	all, others := toFrontend(front), toFrontend(front)
	others.NotSrcSets = []string{setServicePods}
	var list []table.Rule
	if front.Outside.Verdict == balance.Balance && (front.Outside != front.Inside || front.Masquerade == balance.NotPods) {
		list = append(list, table.Rule{Match: others, Actions: c.to(front.Outside, front.Masquerade != balance.OwnOnly)})
	} else if front.Outside.Verdict != balance.Balance {
		list = append(list, table.Rule{Match: others, Actions: verdict(table.Return)})
	}
	if front.Inside.Verdict == balance.Balance {
		list = append(list, table.Rule{Match: all, Actions: c.to(front.Inside, front.Masquerade == balance.Always)})
	}
	return list
}

// outbound are the rules for packets of the node itself.
func (c *chainServices) outbound(front *balance.Frontend) []table.Rule {
	if front.Inside.Verdict != balance.Balance || front.Restricted && len(front.Sources) == 0 {
		return nil
	}
	return []table.Rule{{Match: toFrontend(front), Actions: c.to(front.Inside, true)}}
}

func (c *chainServices) postrouting() table.Chain {
	return table.Chain{Name: c.own(chainServicesPost), Rules: []table.Rule{{Match: table.Match{Mark: c.mark, MarkMask: c.mark},
		Actions: []table.Action{{Verb: table.SetMark, Mask: c.mark}, {Verb: table.Masquerade, FullRandom: true}}}}}
}

// check rejects packets that are still addressed to a service: nothing has translated them.
func check(name string, others bool) table.Chain {
	to := func(set string, v table.Verb) table.Rule {
		return table.Rule{Match: table.Match{CT: table.CTNew, DstPortSets: []string{set}}, Actions: verdict(v)}
	}
	chain := table.Chain{Name: name}
	if others {
		for _, r := range []table.Rule{to(setServiceRejectOut, table.Reject), to(setServiceDropOut, table.Drop)} {
			r.Match.NotSrcSets = []string{setServicePods}
			chain.Rules = append(chain.Rules, r)
		}
	}
	return table.Chain{Name: name, Rules: append(chain.Rules, to(setServiceReject, table.Reject), to(setServiceDrop, table.Drop),
		to(setServiceRestricted, table.Drop),
		table.Rule{Match: table.Match{CT: table.CTNew, DstSets: []string{setServiceClusterIPs}}, Actions: verdict(table.Reject)})}
}

func (c *chainServices) groupName(g *balance.Group) string {
	return fmt.Sprintf("%s%016x", c.own(prefixServiceGroup), g.ID)
}

// groupChains are the chains of the groups of a service, and of backends that need one.
func (c *chainServices) groupChains(f table.Family, s *balance.Service) []table.Chain {
	var out []table.Chain
	seen := map[uint64]bool{}
	for i := range s.Ports {
		if s.Ports[i].Family != f {
			continue
		}
		for j := range s.Ports[i].Frontends {
			front := &s.Ports[i].Frontends[j]
			for _, g := range []*balance.Group{front.Inside, front.Outside} {
				if g.Verdict == balance.Balance && !seen[g.ID] {
					seen[g.ID] = true
					out = append(out, c.groupChain(g, front.Proto, s.Affinity)...)
				}
			}
		}
	}
	return out
}

// groupChain draws a backend: the one that the client had, or any.
func (c *chainServices) groupChain(g *balance.Group, protocol uint8, affinity time.Duration) []table.Chain {
	main := table.Chain{Name: c.groupName(g)}
	out := []table.Chain{main}
	var drawn []table.Rule
	for i := range g.Len() {
		at := g.At(i)
		r := table.Rule{Match: table.Match{Protocol: protocol, OneIn: uint32(g.Len() - i)}}
		translate := table.Action{Verb: table.DNAT, To: at.Addr(), Ports: table.PortRange{First: at.Port(), Last: at.Port()}}
		own := slices.Contains(g.Own(), at.Addr())
		if affinity == 0 && !own {
			r.Actions = []table.Action{translate}
			drawn = append(drawn, r)
			continue
		}
		name := rules.ChainName(c.own(prefixServiceBackend), fmt.Sprintf("%016x/%s", g.ID, at))
		r.Actions = []table.Action{{Verb: table.Goto, Chain: name}}
		drawn = append(drawn, r)
		chain := table.Chain{Name: name}
		if own {
			chain.Rules = append(chain.Rules, table.Rule{Match: table.Match{SrcNets: []netip.Prefix{hostNet(at.Addr())}},
				Actions: []table.Action{{Verb: table.SetMark, Mark: c.mark, Mask: c.mark}}})
		}
		last := table.Rule{Match: table.Match{Protocol: protocol}, Actions: []table.Action{translate}}
		if affinity > 0 {
			last.Match.Client = &table.Client{List: name, Note: true}
			out[0].Rules = append(out[0].Rules, table.Rule{Actions: []table.Action{{Verb: table.Goto, Chain: name}},
				Match: table.Match{Client: &table.Client{List: name, Seconds: uint32(affinity / time.Second)}}})
		}
		chain.Rules = append(chain.Rules, last)
		out = append(out, chain)
	}
	out[0].Rules = append(out[0].Rules, drawn...)
	return out
}
