package compiler

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// Compiler holds the objects and the output that was compiled from them. Only one goroutine may use it. Objects that are passed to it must
// not be changed afterwards.
type Compiler struct {
	pods      map[model.EndpointID]*pod
	claims    claims
	endpoints map[model.EndpointID]*endpoint
	policies  map[model.PolicyID]*policy
	sets      map[model.SetID]*set
	// peers relates all pods that have their own addresses to the selectors of peers, locals relates the endpoints to the selectors of
	// policies.
	peers, locals *selection
	nodes         nodes
	blocked       map[string][]string // the problems of namespaces whose labels are not known, by name
	large         sizes
	all           bool // policies that select no endpoint are compiled, too

	dirtySets      map[*set]struct{}
	dirtyPolicies  map[*policy]struct{}
	dirtyEndpoints map[*endpoint]struct{}
}

// endpoint is a pod of this node.
type endpoint struct {
	Local
	gone     bool
	reported bool
	out      model.Endpoint
}

// Local is a pod that this node has connected.
type Local struct {
	ID model.EndpointID
	// UID is the UID of the pod; empty if it is not known. A pod object with another UID belongs to another pod.
	UID string
	// Addresses are the addresses of the pod. They are valid before the pod object has them.
	Addresses []netip.Addr
}

// New returns a compiler without objects.
func New() *Compiler {
	c := &Compiler{
		pods: map[model.EndpointID]*pod{}, claims: newClaims(), endpoints: map[model.EndpointID]*endpoint{},
		policies: map[model.PolicyID]*policy{}, sets: map[model.SetID]*set{},
		nodes: newNodes(), blocked: map[string][]string{}, large: sizes{limit: model.MaxMembers},
		dirtySets: map[*set]struct{}{}, dirtyPolicies: map[*policy]struct{}{}, dirtyEndpoints: map[*endpoint]struct{}{},
	}
	c.peers = newSelection(peersOf, c.peerChanged)
	c.locals = newSelection(localsOf, c.localChanged)
	return c
}

func (c *Compiler) peerChanged(ch *choice, p *pod, joined bool) { c.inSets(ch, p, by(joined)) }

func (c *Compiler) localChanged(ch *choice, p *pod, joined bool) {
	c.inSets(ch, p, by(joined))
	for _, pol := range ch.policies {
		c.dirtyPolicies[pol] = struct{}{}
	}
	if e := c.endpoints[p.id]; e != nil && len(ch.policies) > 0 {
		c.dirtyEndpoints[e] = struct{}{}
	}
}

func by(joined bool) int {
	if joined {
		return 1
	}
	return -1
}

func (c *Compiler) inSets(ch *choice, p *pod, by int) {
	for _, s := range ch.sets {
		s.take(p, by)
		if len(s.pending) > 0 || s.over {
			c.dirtySets[s] = struct{}{}
		}
	}
}

// SetNamespace adds or changes a namespace; nil removes it. Without an object, or if the object has problems, its labels are not known, and
// its pods are closed: policies that deny by its labels cannot apply to them. Kubernetes removes a namespace after its pods.
func (c *Compiler) SetNamespace(name string, obj *kube.Namespace) {
	problems, was := obj.GetProblems(), c.hasLabels(name)
	known := obj != nil && len(problems) == 0
	c.peers.setNamespace(name, obj.GetLabels(), known)
	c.locals.setNamespace(name, obj.GetLabels(), known)
	if delete(c.blocked, name); len(problems) > 0 {
		c.blocked[name] = problems
	}
	if ns := c.locals.namespaces[name]; ns != nil && was != known {
		for p := range ns.pods.all() {
			c.dirtyEndpoints[c.endpoints[p.id]] = struct{}{}
		}
	}
}

// hasLabels reports whether the compiler has the labels of a namespace.
func (c *Compiler) hasLabels(namespace string) bool {
	ns := c.locals.namespaces[namespace]
	return ns != nil && ns.known
}

// Blocked returns the reasons why the pods of a namespace are closed; none if they are not.
func (c *Compiler) Blocked(namespace string) []string {
	if problems := c.blocked[namespace]; len(problems) > 0 {
		return problems
	}
	if !c.hasLabels(namespace) {
		return []string{"the agent does not have the object of namespace " + namespace}
	}
	return nil
}

// SetPod adds or changes a pod; nil removes it.
func (c *Compiler) SetPod(id model.EndpointID, obj *kube.Pod) {
	p := c.pods[id]
	if p == nil {
		if obj == nil {
			return
		}
		p = &pod{id: id}
		c.pods[id] = p
	}
	c.change(p, obj)
	if obj == nil {
		delete(c.pods, id)
	}
}

// SetEndpoint adds or changes a pod of this node.
func (c *Compiler) SetEndpoint(l Local) {
	e := c.endpoints[l.ID]
	if e == nil {
		e = &endpoint{}
		c.endpoints[l.ID] = e
	}
	e.Local, e.gone = l, false
	c.endpointChanged(e)
}

// DeleteEndpoint removes a pod of this node. Its object stays.
func (c *Compiler) DeleteEndpoint(id model.EndpointID) {
	if e := c.endpoints[id]; e != nil {
		e.gone = true
		c.endpointChanged(e)
	}
}

func (c *Compiler) endpointChanged(e *endpoint) {
	c.dirtyEndpoints[e] = struct{}{}
	if p := c.pods[e.ID]; p != nil {
		c.change(p, p.obj)
	}
}

// localOf returns the endpoint of a pod, if the pod has one and the object belongs to the same pod.
func (c *Compiler) localOf(id model.EndpointID, obj *kube.Pod) *endpoint {
	e := c.endpoints[id]
	if e == nil || e.gone || obj == nil || obj.GetHostNetwork() || !isOf(obj, e.UID) {
		return nil
	}
	return e
}

// isOf reports whether an object belongs to the pod with a UID. If one of the two UIDs is not known, only the name counts.
func isOf(obj *kube.Pod, uid string) bool {
	return uid == "" || obj.GetUid() == "" || uid == obj.GetUid() || uid == obj.GetStaticUid()
}

// HasPod reports whether the objects of a pod and of its namespace exist.
func (c *Compiler) HasPod(id model.EndpointID, uid string) bool {
	p := c.pods[id]
	return p != nil && isOf(p.obj, uid) && (c.hasLabels(id.Namespace) || len(c.blocked[id.Namespace]) > 0)
}

// Addresses returns the addresses that only this pod has.
func (c *Compiler) Addresses(id model.EndpointID) []netip.Addr {
	if p := c.pods[id]; p != nil {
		return slices.Clone(p.addrs)
	}
	return nil
}

// Owner returns the pod that has an address, if it is the only one.
func (c *Compiler) Owner(a netip.Addr) (id model.EndpointID, has bool) {
	p := c.claims.one[a]
	if p == nil {
		return id, false
	}
	return p.id, true
}

// Members returns the members of a set, sorted.
func (c *Compiler) Members(id model.SetID) []model.Member {
	var list []model.Member
	if s := c.sets[id]; s != nil {
		s.each(func(m model.Member) { list = append(list, m) })
	}
	slices.SortFunc(list, model.Member.Compare)
	return list
}

// Contains reports whether a set has a member that covers m.
func (c *Compiler) Contains(id model.SetID, m model.Member) bool {
	s := c.sets[id]
	if s == nil {
		return false
	}
	if s.nodes != nil {
		return m == model.Member{Net: m.Net} && m.Net.IsSingleIP() && s.nodes.addrs[m.Net.Addr()] > 0
	}
	if s.choice == nil {
		return slices.ContainsFunc(s.nets, func(n netip.Prefix) bool { return n.Bits() <= m.Net.Bits() && n.Contains(m.Net.Addr()) })
	}
	found := false
	for _, p := range c.claims.of(m.Net.Addr()) {
		if s.choice.pods.has(p) {
			p.members(s, func(have model.Member) { found = found || have == m })
		}
	}
	return found
}

// change gives a pod a new object, or nil, and updates all selections and sets according to the object and to the endpoint.
func (c *Compiler) change(p *pod, obj *kube.Pod) {
	c.hide(p)
	local := c.localOf(p.id, obj)
	ips := parseIPs(obj)
	if local != nil && len(local.Addresses) > 0 {
		ips = local.Addresses
	}
	before, now := p.labels(), obj.GetLabels()
	follow(c.peers, p, &p.peer, obj != nil && !obj.GetHostNetwork(), before, now)
	follow(c.locals, p, &p.local, local != nil, before, now)
	p.obj = obj
	if e := c.endpoints[p.id]; e != nil {
		c.dirtyEndpoints[e] = struct{}{}
	}
	others := c.claim(p, ips)
	c.show(p)
	for _, q := range others {
		c.hide(q)
		q.addrs = c.claims.owned(q)
		c.show(q)
	}
}

// follow updates a selection after a change of a pod's labels. is reports whether the pod belongs to the selection now.
func follow(s *selection, p *pod, in *bool, is bool, before, now map[string]string) {
	switch {
	case *in && !is:
		s.remove(p, before)
	case is && !*in:
		s.add(p, now)
	case is:
		s.relabel(p, before, now)
	}
	*in = is
}

// claim changes the addresses of a pod, and returns the other pods whose addresses have changed because of that.
func (c *Compiler) claim(p *pod, ips []netip.Addr) (others []*pod) {
	note := func(q *pod) {
		if q != nil && q != p && !slices.Contains(others, q) {
			others = append(others, q)
		}
	}
	for _, a := range p.ips {
		if !slices.Contains(ips, a) {
			note(c.claims.remove(a, p))
		}
	}
	for _, a := range ips {
		if !slices.Contains(p.ips, a) {
			note(c.claims.add(a, p))
		}
	}
	p.ips = ips
	p.addrs = c.claims.owned(p)
	return others
}

// hide removes a pod from all sets, show adds it again with its changes.
func (c *Compiler) hide(p *pod) {
	c.inAllSets(p, -1)
	p.hidden = true
}

func (c *Compiler) show(p *pod) {
	p.hidden = false
	c.inAllSets(p, 1)
}

func (c *Compiler) inAllSets(p *pod, by int) {
	for _, ch := range p.peers {
		c.inSets(ch, p, by)
	}
	for _, ch := range p.locals {
		c.inSets(ch, p, by)
	}
}

// Flush returns the difference between the current output and the output at the last Flush.
func (c *Compiler) Flush() model.Change {
	var out model.Change
	for p := range c.dirtyPolicies {
		c.rebuild(p)
	}
	for s := range c.dirtySets {
		c.checkSize(s)
	}
	for p := range c.dirtyPolicies {
		c.flushPolicy(p, &out)
	}
	for e := range c.dirtyEndpoints {
		c.flushEndpoint(e, &out)
	}
	for s := range c.dirtySets {
		c.flushSet(s, &out)
	}
	clear(c.dirtyPolicies)
	clear(c.dirtyEndpoints)
	clear(c.dirtySets)
	sortChange(&out)
	return out
}

func (c *Compiler) flushEndpoint(e *endpoint, out *model.Change) {
	if e.gone {
		if e.reported {
			out.EndpointsGone = append(out.EndpointsGone, e.ID)
		}
		delete(c.endpoints, e.ID)
		return
	}
	made := c.endpoint(e)
	if !e.reported || !reflect.DeepEqual(made, e.out) {
		out.Endpoints = append(out.Endpoints, made)
	}
	e.out, e.reported = made, true
}

func (c *Compiler) flushSet(s *set, out *model.Change) {
	if s.refs == 0 {
		s.parts(func(m model.Member) { s.note(m, -1) })
		delete(c.sets, s.ID)
		if s.choice != nil {
			s.choice.sets = without(s.choice.sets, s)
			s.from.release(s.choice)
		}
		if s.nodes != nil {
			c.nodes.release(s.nodes)
		}
		if !s.reported {
			return
		}
		out.SetsGone = append(out.SetsGone, s.ID)
	} else if s.over {
		if !s.reported {
			return
		}
		out.SetsGone, s.reported = append(out.SetsGone, s.ID), false
	} else if !s.reported {
		out.Sets = append(out.Sets, s.Set)
		s.reported = true
	}
	if d := s.difference(); len(d.Added)+len(d.Removed) > 0 {
		out.Members = append(out.Members, d)
	}
}

func sortChange(out *model.Change) {
	slices.SortFunc(out.Sets, func(a, b model.Set) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(out.Members, func(a, b model.Members) int { return cmp.Compare(a.Set, b.Set) })
	slices.SortFunc(out.Policies, func(a, b model.Policy) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(out.Endpoints, func(a, b model.Endpoint) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(out.EndpointsGone, model.EndpointID.Compare)
	slices.SortFunc(out.PoliciesGone, model.PolicyID.Compare)
	slices.Sort(out.SetsGone)
}
