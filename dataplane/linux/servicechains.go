package intdataplane

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/ipaddr"
)

// The chains and sets of services. In layer nat:
//
//	svc-in, svc-out   one rule or two per frontend; for packets of pods and other hosts, and for packets of the node itself
//	sg-<group>        selects a backend
//	se-<backend>      translates to one backend, if more than the translation is needed
//	svc-post          masquerades marked packets
//
// and in layer filter svc-check, svc-check-out, which reject packets by sets.
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

// chainServices programs services as chains of a table.Backend, as iptables needs it. Each frontend is a rule, so the cost of a new
// connection grows with the number of services; a change rewrites only the chains that it affects.
type chainServices struct {
	out    table.Backend
	render rules.RuleRenderer
	own    func(felix string) string // rules.Config.Own
	mark   uint32
	tables map[table.Family]*chainTable
}

// chainTable is the state of one family.
type chainTable struct {
	services map[string]*lb.Service
	pods     []netip.Prefix
	own      map[string][]string // chains by service
	dirty    bool
	hooked   bool
}

var _ serviceProgrammer = (*chainServices)(nil)

func newChainServices(families []table.Family, config rules.Config, render rules.RuleRenderer, out table.Backend) *chainServices {
	c := &chainServices{out: out, render: render, own: config.Own, mark: config.IptablesMarkMasquerade, tables: map[table.Family]*chainTable{}}
	for _, f := range families {
		c.tables[f] = &chainTable{services: map[string]*lb.Service{}, own: map[string][]string{}}
	}
	return c
}

// Set adds a service or replaces it. A change of backends rewrites only the chains of the service: the chains and sets that all services
// share depend on the frontends alone.
func (c *chainServices) Set(s *lb.Service) {
	for f, t := range c.tables {
		has := slices.ContainsFunc(s.Ports, func(p lb.Port) bool { return p.Family == f })
		old := t.services[s.Name]
		if !has && old == nil {
			continue
		}
		t.services[s.Name] = s
		t.dirty = t.dirty || old == nil || !old.SameFrontends(s, f)
		if old != nil && old.SameBackends(s, f) {
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
		t.own[s.Name] = names
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

// SetPods sets the subnets of pods, in any order.
func (c *chainServices) SetPods(f table.Family, nets []netip.Prefix) {
	t := c.tables[f]
	nets = slices.SortedFunc(slices.Values(nets), netip.Prefix.Compare)
	t.dirty = t.dirty || !slices.Equal(t.pods, nets)
	t.pods = nets
}

// Render passes the chains and sets that all services share to the backend.
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

// Apply does nothing: the backend writes the chains.
func (c *chainServices) Apply(context.Context) table.Result { return table.Result{} }

// Resync does nothing.
func (c *chainServices) Resync() {}

// Close does nothing.
func (c *chainServices) Close() error { return nil }

// hook inserts a jump to one of our chains before the rules at a hook. An empty name removes the jump.
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

// noteFrontend adds a frontend to the sets that it belongs to.
func noteFrontend(members map[string]map[table.Member]bool, front *lb.Frontend) {
	put := func(set string, m table.Member) {
		if members[set] == nil {
			members[set] = map[table.Member]bool{}
		}
		members[set][m] = true
	}
	m := table.Member{Net: ipaddr.HostPrefix(front.Addr), Proto: front.Proto, Port: front.Port}
	put(setServiceFronts, m)
	if front.Cluster {
		put(setServiceClusterIPs, table.Member{Net: m.Net})
	}
	if front.Restricted {
		put(setServiceRestricted, m)
	}
	for _, v := range []struct {
		g            *lb.Group
		reject, drop string
	}{{front.Inside, setServiceReject, setServiceDrop}, {front.Outside, setServiceRejectOut, setServiceDropOut}} {
		switch v.g.Verdict {
		case lb.Reject:
			put(v.reject, m)
		case lb.Drop:
			put(v.drop, m)
		}
	}
}

func verdict(v table.Verb) []table.Action { return []table.Action{{Verb: v}} }

// toFrontend returns the match of packets to a frontend from sources that may use it.
func toFrontend(front *lb.Frontend) table.Match {
	m := table.Match{Protocol: front.Proto, DstNets: []netip.Prefix{ipaddr.HostPrefix(front.Addr)},
		DstPorts: []table.PortRange{{First: front.Port, Last: front.Port}}}
	if front.Restricted {
		m.SrcNets = front.Sources
	}
	return m
}

// to returns the actions that mark the connection if it is to be masqueraded, and go to the group's chain.
func (c *chainServices) to(g *lb.Group, masquerade bool) []table.Action {
	var list []table.Action
	if masquerade {
		list = append(list, table.Action{Verb: table.SetMark, Mark: c.mark, Mask: c.mark})
	}
	return append(list, table.Action{Verb: table.Goto, Chain: c.groupName(g)})
}

// inbound returns the rules for packets of pods and of other hosts.
func (c *chainServices) inbound(front *lb.Frontend) []table.Rule {
	if front.Restricted && len(front.Sources) == 0 {
		return nil
	}
	all, others := toFrontend(front), toFrontend(front)
	others.NotSrcSets = []string{setServicePods}
	var list []table.Rule
	if front.Outside.Verdict == lb.Balance && (front.Outside != front.Inside || front.Masquerade == lb.NotPods) {
		list = append(list, table.Rule{Match: others, Actions: c.to(front.Outside, front.Masquerade != lb.OwnOnly)})
	} else if front.Outside.Verdict != lb.Balance {
		list = append(list, table.Rule{Match: others, Actions: verdict(table.Return)})
	}
	if front.Inside.Verdict == lb.Balance {
		list = append(list, table.Rule{Match: all, Actions: c.to(front.Inside, front.Masquerade == lb.Always)})
	}
	return list
}

// outbound returns the rules for packets of the node itself.
func (c *chainServices) outbound(front *lb.Frontend) []table.Rule {
	if front.Inside.Verdict != lb.Balance || front.Restricted && len(front.Sources) == 0 {
		return nil
	}
	return []table.Rule{{Match: toFrontend(front), Actions: c.to(front.Inside, true)}}
}

func (c *chainServices) postrouting() table.Chain {
	return table.Chain{Name: c.own(chainServicesPost), Rules: []table.Rule{{Match: table.Match{Mark: c.mark, MarkMask: c.mark},
		Actions: []table.Action{{Verb: table.SetMark, Mask: c.mark}, {Verb: table.Masquerade, FullRandom: true}}}}}
}

// check returns a chain that rejects packets that are still addressed to a service: no rule has translated them.
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

func (c *chainServices) groupName(g *lb.Group) string {
	return fmt.Sprintf("%s%016x", c.own(prefixServiceGroup), g.ID)
}

// groupChains returns the chains of a service's groups, and of backends that need a chain.
func (c *chainServices) groupChains(f table.Family, s *lb.Service) []table.Chain {
	var out []table.Chain
	seen := map[uint64]bool{}
	for i := range s.Ports {
		if s.Ports[i].Family != f {
			continue
		}
		for j := range s.Ports[i].Frontends {
			front := &s.Ports[i].Frontends[j]
			for _, g := range []*lb.Group{front.Inside, front.Outside} {
				if g.Verdict == lb.Balance && !seen[g.ID] {
					seen[g.ID] = true
					out = append(out, c.groupChain(g, front.Proto, s.Affinity)...)
				}
			}
		}
	}
	return out
}

// groupChain returns the chains that select a backend: the client's previous backend if there is one, otherwise a random one.
func (c *chainServices) groupChain(g *lb.Group, protocol uint8, affinity time.Duration) []table.Chain {
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
			chain.Rules = append(chain.Rules, table.Rule{Match: table.Match{SrcNets: []netip.Prefix{ipaddr.HostPrefix(at.Addr())}},
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
