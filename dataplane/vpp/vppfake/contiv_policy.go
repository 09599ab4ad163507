package vppfake

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"go.fd.io/govpp/binapi/interface_types"
)

// contivPolicies is the network policy of our own plugin, as set through its API.
type contivPolicies struct {
	epoch    uint64 // counts changes
	sets     map[uint64]*contivSet
	policies map[uint64]*contivPolicy
	police   map[uint32]*contivPolice // by interface
	denied   []contivDeniedFlow
	sequence uint64
	tick     int64 // of the newest denied flow, and the number of denied flows in that tick
	inTick   int
}

// contivSet is a set of networks or of ports.
type contivSet struct {
	name     string
	kind     contiv.ContivSetKind
	members  map[contivMember]bool
	overfull bool
}

type contivMember struct {
	net   netip.Prefix
	proto uint8
	port  uint16
}

// contivPolicy is a policy with its rules by side.
type contivPolicy struct {
	name  string
	rules [2][]*contivRule
	gone  bool // deleted, but still used by endpoints
}

type contivRule struct {
	set     contiv.ContivRule
	matched uint64
}

// contivPolice is the policy configuration of an endpoint, by side.
type contivPolice struct {
	name      string
	otherwise [2]contiv.ContivRuleAction
	items     [2][]contiv.ContivTierItem
	denied    [2]uint64
}

type contivDeniedFlow struct {
	details contiv.ContivDeniedDetails
	at      time.Time
}

const (
	contivMaxMembers    = 1 << 20
	contivMaxRules      = 16384
	contivMaxItems      = 8192
	contivRulePorts     = 8
	contivDeniedTimeout = 300
	contivDeniedKept    = 256
	contivDeniedATick   = 8
)

func (p *contivPolicies) start() {
	p.sets, p.policies, p.police = map[uint64]*contivSet{}, map[uint64]*contivPolicy{}, map[uint32]*contivPolice{}
}

// open reports whether the endpoint allows everything on both sides, as without policy.
func (e *contivPolice) open() bool {
	return len(e.items[0])+len(e.items[1]) == 0 && e.otherwise == [2]contiv.ContivRuleAction{contiv.CONTIV_RULE_API_ALLOW, contiv.CONTIV_RULE_API_ALLOW}
}

// restrict reports whether any endpoint has a policy that is not open.
func (p *contivPolicies) restrict() bool {
	for _, e := range p.police {
		if !e.open() {
			return true
		}
	}
	return false
}

// removeEndpoint removes the policy configuration of a deleted endpoint.
func (p *contivPolicies) removeEndpoint(ifx uint32) {
	delete(p.police, ifx)
	p.clean()
	p.epoch++
}

func registerContivPolicy(t *table) {
	on(t, writes, contivSetAddDel)
	dump(t, func(c *call, _ *contiv.ContivSetDump, send func(*contiv.ContivSetDetails)) {
		for id, s := range c.contiv.policy.sets {
			send(&contiv.ContivSetDetails{ID: id, Name: s.name, Kind: s.kind, NMembers: uint32(len(s.members)), Overfull: s.overfull})
		}
	})
	on(t, writes, contivSetMemberAddDel)
	dump(t, contivSetMemberDump)
	on(t, writes, contivPolicySet)
	on(t, writes, contivPolicyDel)
	dump(t, contivPolicyDump)
	on(t, writes, contivEndpointPolicySet)
	on(t, writes, contivEndpointPolicyDel)
	dump(t, contivEndpointPolicyDump)
	detail := t.add(new(contiv.ContivDeniedDetails))
	on(t, reads, func(c *call, q *contiv.ContivDeniedGet) *contiv.ContivDeniedGetReply {
		for _, f := range c.contiv.policy.denied {
			if f.details.Sequence > q.After {
				d := f.details
				d.Age = uint32(c.now().Sub(f.at) / (100 * time.Millisecond))
				c.send(detail, &d)
			}
		}
		return &contiv.ContivDeniedGetReply{}
	})
}

func contivSetAddDel(c *call, q *contiv.ContivSetAddDel) *contiv.ContivSetAddDelReply {
	p := &c.contiv.policy
	s, rv := p.sets[q.ID], int32(0)
	switch {
	case q.ID == 0, q.IsAdd && q.Kind != contiv.CONTIV_SET_API_NETWORKS && q.Kind != contiv.CONTIV_SET_API_PORTS,
		q.IsAdd && s != nil && s.kind != q.Kind:
		rv = rvInvalidValue
	case q.IsAdd && s == nil:
		p.sets[q.ID] = &contivSet{name: q.Name, kind: q.Kind, members: map[contivMember]bool{}}
		p.epoch++
	case q.IsAdd:
		s.name = q.Name
	case s == nil:
		rv = rvNoSuchEntry
	default:
		delete(p.sets, q.ID)
		p.epoch++
	}
	return &contiv.ContivSetAddDelReply{Retval: rv}
}

func contivSetMemberAddDel(c *call, q *contiv.ContivSetMemberAddDel) *contiv.ContivSetMemberAddDelReply {
	p := &c.contiv.policy
	net, ok := contivPrefix(q.Prefix)
	m, s, rv := contivMember{net, q.Protocol, q.Port}, p.sets[q.SetID], int32(0)
	switch {
	case !ok, q.SetID == 0:
		rv = rvInvalidValue
	case s == nil:
		rv = rvNoSuchEntry
	case !s.takes(m):
		rv = rvInvalidValue
	case q.IsAdd && len(s.members) >= contivMaxMembers && !s.members[m]:
		s.overfull, rv = true, rvLimitExceeded
		p.epoch++
	case q.IsAdd:
		s.members[m] = true
		p.epoch++
	case !s.members[m]:
		rv = rvNoSuchEntry
	default:
		delete(s.members, m)
		p.epoch++
	}
	return &contiv.ContivSetMemberAddDelReply{Retval: rv}
}

func (s *contivSet) takes(m contivMember) bool {
	if s.kind == contiv.CONTIV_SET_API_NETWORKS {
		return m.proto == 0 && m.port == 0
	}
	return m.proto != 0 && m.port != 0 && m.net.IsSingleIP()
}

func contivSetMemberDump(c *call, q *contiv.ContivSetMemberDump, send func(*contiv.ContivSetMemberDetails)) {
	for id, s := range c.contiv.policy.sets {
		if q.SetID != 0 && q.SetID != id {
			continue
		}
		for m := range s.members {
			send(&contiv.ContivSetMemberDetails{SetID: id, Prefix: apiPrefix(m.net), Protocol: m.proto, Port: m.port})
		}
	}
}

func contivValidRule(r *contiv.ContivRule) bool {
	ports := r.Protocol == ProtoTCP || r.Protocol == ProtoUDP || r.Protocol == ProtoSCTP
	icmp := r.Protocol == ProtoICMP || r.Protocol == ProtoICMPv6
	switch {
	case r.Action < contiv.CONTIV_RULE_API_ALLOW || r.Action > contiv.CONTIV_RULE_API_PASS,
		r.Family != 0 && r.Family != 4 && r.Family != 6,
		r.NPorts > contivRulePorts || r.NPorts > 0 && !ports,
		r.Flags > 3 || r.Flags != 0 && !icmp || r.Flags == contiv.CONTIV_RULE_API_ICMP_CODE:
		return false
	}
	return !slices.ContainsFunc(r.Ports[:r.NPorts], func(p contiv.ContivPortRange) bool { return p.First > p.Last })
}

func contivPolicySet(c *call, q *contiv.ContivPolicySet) *contiv.ContivPolicySetReply {
	p := &c.contiv.policy
	if q.ID == 0 || len(q.Rules) > contivMaxRules || int(q.NIngress) > len(q.Rules) {
		return &contiv.ContivPolicySetReply{Retval: rvInvalidValue}
	}
	n, old := &contivPolicy{name: q.Name}, p.policies[q.ID]
	for i := range q.Rules {
		if !contivValidRule(&q.Rules[i]) {
			return &contiv.ContivPolicySetReply{Retval: rvInvalidValue}
		}
		side := contiv.CONTIV_SIDE_API_INGRESS
		if i >= int(q.NIngress) {
			side = contiv.CONTIV_SIDE_API_EGRESS
		}
		r := &contivRule{set: q.Rules[i]}
		if at := len(n.rules[side]); old != nil && at < len(old.rules[side]) && old.rules[side][at].set == r.set {
			r.matched = old.rules[side][at].matched
		}
		n.rules[side] = append(n.rules[side], r)
	}
	p.policies[q.ID] = n
	p.epoch++
	return &contiv.ContivPolicySetReply{}
}

func contivPolicyDel(c *call, q *contiv.ContivPolicyDel) *contiv.ContivPolicyDelReply {
	p := &c.contiv.policy
	if old := p.policies[q.ID]; old == nil || old.gone {
		return &contiv.ContivPolicyDelReply{Retval: rvNoSuchEntry}
	}
	p.policies[q.ID].gone = true
	p.clean()
	return &contiv.ContivPolicyDelReply{}
}

// clean removes deleted policies that no endpoint uses.
func (p *contivPolicies) clean() {
	for id, policy := range p.policies {
		refers := func(i contiv.ContivTierItem) bool { return i.PolicyID == id }
		used := !policy.gone
		for _, e := range p.police {
			used = used || slices.ContainsFunc(e.items[0], refers) || slices.ContainsFunc(e.items[1], refers)
		}
		if !used {
			delete(p.policies, id)
		}
	}
}

func contivPolicyDump(c *call, _ *contiv.ContivPolicyDump, send func(*contiv.ContivPolicyDetails)) {
	for id, p := range c.contiv.policy.policies {
		if p.gone {
			continue
		}
		d := &contiv.ContivPolicyDetails{ID: id, Name: p.name, NIngress: uint32(len(p.rules[0]))}
		for _, r := range slices.Concat(p.rules[0], p.rules[1]) {
			d.Rules = append(d.Rules, contiv.ContivCountedRule{Rule: r.set, Matched: r.matched})
		}
		d.NRules = uint32(len(d.Rules))
		send(d)
	}
}

// forNode reports whether any policy applies to packets from the pod to its node.
func (e *contivPolice) forNode() bool {
	return slices.ContainsFunc(e.items[contiv.CONTIV_SIDE_API_EGRESS], func(i contiv.ContivTierItem) bool { return i.PolicyID != 0 && i.Action != 0 })
}

// validItems checks that each tier has an end and that each policy exists.
func (p *contivPolicies) validItems(side contiv.ContivSide, items []contiv.ContivTierItem) int32 {
	if len(items) > contivMaxItems || len(items) > 0 && items[len(items)-1].PolicyID != 0 {
		return rvInvalidValue
	}
	for _, i := range items {
		switch {
		case i.PolicyID != 0 && i.Action != 0 && (i.Action != contiv.CONTIV_RULE_API_PASS || side != contiv.CONTIV_SIDE_API_EGRESS),
			i.PolicyID == 0 && (i.Action < contiv.CONTIV_RULE_API_ALLOW || i.Action > contiv.CONTIV_RULE_API_PASS):
			return rvInvalidValue
		case i.PolicyID != 0 && (p.policies[i.PolicyID] == nil || p.policies[i.PolicyID].gone):
			return rvNoSuchEntry
		}
	}
	return 0
}

func contivEndpointPolicySet(c *call, q *contiv.ContivEndpointPolicySet) *contiv.ContivEndpointPolicySetReply {
	refuse := func(rv int32) *contiv.ContivEndpointPolicySetReply {
		return &contiv.ContivEndpointPolicySetReply{Retval: rv}
	}
	p, ifx := &c.contiv.policy, uint32(q.SwIfIndex)
	e := c.contiv.endpoints[ifx]
	switch {
	case c.iface(q.SwIfIndex) == nil:
		return refuse(rvInvalidSwIfIndex)
	case int(q.NIngress) > len(q.Items):
		return refuse(rvInvalidValue)
	case e == nil:
		return refuse(rvNoSuchEntry)
	case e.set.Role != contiv.CONTIV_ROLE_API_POD:
		return refuse(rvInvalidValue)
	}
	n := &contivPolice{
		name: q.Name, otherwise: [2]contiv.ContivRuleAction{q.Ingress, q.Egress},
		items: [2][]contiv.ContivTierItem{q.Items[:q.NIngress], q.Items[q.NIngress:]},
	}
	for side, otherwise := range n.otherwise {
		if otherwise != contiv.CONTIV_RULE_API_ALLOW && otherwise != contiv.CONTIV_RULE_API_DENY {
			return refuse(rvInvalidValue)
		}
		if rv := p.validItems(contiv.ContivSide(side), n.items[side]); rv != 0 {
			return refuse(rv)
		}
	}
	if old := p.police[ifx]; old != nil {
		n.denied = old.denied
	}
	p.police[ifx] = n
	p.clean()
	p.epoch++
	return refuse(0)
}

func contivEndpointPolicyDel(c *call, q *contiv.ContivEndpointPolicyDel) *contiv.ContivEndpointPolicyDelReply {
	switch {
	case c.iface(q.SwIfIndex) == nil:
		return &contiv.ContivEndpointPolicyDelReply{Retval: rvInvalidSwIfIndex}
	case c.contiv.policy.police[uint32(q.SwIfIndex)] == nil:
		return &contiv.ContivEndpointPolicyDelReply{Retval: rvNoSuchEntry}
	}
	c.contiv.policy.removeEndpoint(uint32(q.SwIfIndex))
	return &contiv.ContivEndpointPolicyDelReply{}
}

func contivEndpointPolicyDump(c *call, _ *contiv.ContivEndpointPolicyDump, send func(*contiv.ContivEndpointPolicyDetails)) {
	p := &c.contiv.policy
	for _, ifx := range slices.Sorted(maps.Keys(p.police)) {
		e := p.police[ifx]
		items := slices.Concat(e.items[0], e.items[1])
		send(&contiv.ContivEndpointPolicyDetails{
			SwIfIndex: interface_types.InterfaceIndex(ifx), Name: e.name, Ingress: e.otherwise[0], Egress: e.otherwise[1],
			DeniedIngress: e.denied[0], DeniedEgress: e.denied[1], NIngress: uint32(len(e.items[0])), NItems: uint32(len(items)), Items: items,
		})
	}
}

func (p *contivPolicies) dump(st *state, d *dumper) {
	for id, s := range p.sets {
		d.add("contiv set %x %q kind %d overfull %t", id, s.name, s.kind, s.overfull)
		for m := range s.members {
			d.add("contiv set %x: %s %d %d", id, m.net, m.proto, m.port)
		}
	}
	for id, policy := range p.policies {
		if policy.gone {
			continue
		}
		for side, rules := range policy.rules {
			d.add("contiv policy %x %q side %d: %d rules", id, policy.name, side, len(rules))
			for i, r := range rules {
				d.add("contiv policy %x side %d rule %d: %+v", id, side, i, r.set)
			}
		}
	}
	for ifx, e := range p.police {
		d.add("contiv policy of %s: %q otherwise %v %v %v", st.ifs.all[ifx].label(), e.name, e.otherwise, e.items[0], e.items[1])
	}
}

// report stores a denied flow, unless there were too many in this tick.
func (p *contivPolicies) report(d contiv.ContivDeniedDetails, now time.Time) {
	if tick := now.UnixMilli() / 100; tick != p.tick {
		p.tick, p.inTick = tick, 0
	}
	if p.inTick++; p.inTick > contivDeniedATick {
		return
	}
	p.sequence++
	d.Sequence = p.sequence
	p.denied = append(p.denied, contivDeniedFlow{d, now})
	p.denied = p.denied[max(0, len(p.denied)-contivDeniedKept):]
}

// contivPod returns the interface of the pod, or of the node itself, that has the address; none if no endpoint has it.
func (c *contivState) contivPod(a netip.Addr) uint32 {
	for _, ifx := range slices.SortedFunc(maps.Keys(c.endpoints), cmp.Compare[uint32]) {
		if c.endpoints[ifx].addrs[a] {
			return ifx
		}
	}
	return none
}
