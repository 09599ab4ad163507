package intdataplane

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/walk"
	"contiv.dev/vswitch/dataplane/proto"
)

// recheckDelay is how long changes are collected before the connections are checked, since a change may come in several batches. If checks
// take long, because there are many connections, the pause between two checks is as long as the last one took, up to recheckMost.
const (
	recheckDelay = 2 * time.Millisecond
	recheckMost  = 500 * time.Millisecond
)

// recheck removes connections of workloads that policy would no longer allow to be opened. The rules accept packets of known connections,
// so a change of policy alone does not end them.
//
// It is a manager that records what has changed: endpoints with changed policies, and addresses removed from sets. When the change is in
// the kernel, a job checks the connections of these endpoints and addresses: it walks the first packet of each connection through the
// chains that the kernel has.
type recheck struct {
	remove   removeFlows
	log      *slog.Logger
	own      func(felix string) string // rules.Config.Own
	accept   uint32                    // mark of packets that policy has accepted
	families map[table.Family]*familyManagers
	wake     chan struct{}

	noted suspects // used by the loop only: noted since the last sweep
	swept bool     // used by the loop only: there was a sweep

	mu     sync.RWMutex // guards the fields below, and the members of sets
	chains map[chainID][]table.Rule
	shared map[chainID]map[string]string // of rules.SharedDispatch
	ifaces map[netip.Addr]string         // of workloads, by address
	known  map[epstate.WorkloadID]*proto.WorkloadEndpoint
	local  map[string][]netip.Addr // the node's own, by interface
	due    suspects                // what the job has to check
}

// suspects holds the addresses whose connections may have to be removed.
type suspects map[netip.Addr]struct{}

type chainID struct {
	family table.Family
	name   string
}

func newRecheck(remove removeFlows, accept uint32, own func(string) string, log *slog.Logger) *recheck {
	return &recheck{remove: remove, log: log, accept: accept, own: own, families: map[table.Family]*familyManagers{}, wake: make(chan struct{}, 1),
		noted: suspects{}, chains: map[chainID][]table.Rule{}, shared: map[chainID]map[string]string{}, ifaces: map[netip.Addr]string{},
		known: map[epstate.WorkloadID]*proto.WorkloadEndpoint{}, local: map[string][]netip.Addr{}, due: suspects{}}
}

// OnUpdate records what has changed. It must run after the other managers.
func (r *recheck) OnUpdate(msg any) {
	switch m := msg.(type) {
	case *proto.WorkloadEndpointUpdate:
		r.endpoint(epstate.WorkloadIDOf(m.GetId()), m.GetEndpoint())
	case *proto.WorkloadEndpointRemove:
		r.endpoint(epstate.WorkloadIDOf(m.GetId()), nil)
	case *proto.ActivePolicyUpdate:
		r.policy(m.GetId().GetName())
	case *proto.ActivePolicyRemove:
		r.policy(m.GetId().GetName())
	case *proto.ActiveProfileUpdate, *proto.ActiveProfileRemove:
		r.suspect(func(*proto.WorkloadEndpoint) bool { return true })
	case *proto.IPSetDeltaUpdate:
		r.members(m)
	case *proto.IPSetUpdate:
		r.set(m.GetId())
	case *proto.IPSetRemove:
		r.set(m.GetId())
	case *ifaceAddrs:
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.local[m.Name] = m.Addrs; m.Addrs == nil {
			delete(r.local, m.Name)
		}
	}
}

// CompleteDeferredWork does nothing: see sweep.
func (r *recheck) CompleteDeferredWork() error { return nil }

// endpoint handles an update or the removal of an endpoint.
func (r *recheck) endpoint(id epstate.WorkloadID, ep *proto.WorkloadEndpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.known[id]
	same := before != nil && ep != nil && samePolicy(before, ep)
	for _, a := range addressesOf(before) {
		if r.ifaces[a] == before.GetName() {
			delete(r.ifaces, a)
		}
		// The connections of a removed endpoint are removed with its route.
	}
	if r.known[id] = ep; ep == nil {
		delete(r.known, id)
		return
	}
	for _, a := range addressesOf(ep) {
		r.ifaces[a] = ep.GetName()
		// A new endpoint has no connections yet, except at the start of the agent.
		if !same && (before != nil || !r.swept) {
			r.noted[a] = struct{}{}
		}
	}
}

func samePolicy(a, b *proto.WorkloadEndpoint) bool {
	return slices.EqualFunc(a.GetTiers(), b.GetTiers(), func(x, y *proto.TierInfo) bool { return pb.Equal(x, y) }) &&
		slices.Equal(a.GetProfileIds(), b.GetProfileIds())
}

func addressesOf(ep *proto.WorkloadEndpoint) []netip.Addr {
	var list []netip.Addr
	for _, text := range slices.Concat(ep.GetIpv4Nets(), ep.GetIpv6Nets()) {
		if p, err := rules.ParseNet(text); err == nil && p.IsSingleIP() {
			list = append(list, p.Addr())
		}
	}
	return list
}

// policy marks the endpoints to which a policy of this name applies as suspects, in all tiers: a removal may lack the tier, and the tier
// may have changed.
func (r *recheck) policy(name string) {
	r.suspect(func(ep *proto.WorkloadEndpoint) bool {
		return slices.ContainsFunc(ep.GetTiers(), func(t *proto.TierInfo) bool {
			return slices.Contains(t.GetIngressPolicies(), name) || slices.Contains(t.GetEgressPolicies(), name)
		})
	})
}

func (r *recheck) suspect(which func(*proto.WorkloadEndpoint) bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, ep := range r.known {
		if which(ep) {
			for _, a := range addressesOf(ep) {
				r.noted[a] = struct{}{}
			}
		}
	}
}

// members handles a change of a set: the set may have allowed an address that was removed from it, and may deny an address that was added.
func (r *recheck) members(m *proto.IPSetDeltaUpdate) {
	for _, text := range m.GetRemovedMembers() {
		r.leaves(m.GetId(), text)
	}
	if len(m.GetAddedMembers()) > 0 && r.denies(m.GetId()) {
		r.set(m.GetId())
	}
}

func (r *recheck) leaves(id, text string) {
	for _, kind := range []table.SetType{table.SetIPAndPort, table.SetNet} {
		member, err := parseMember(kind, text)
		switch {
		case err != nil:
		case member.Net.IsSingleIP():
			r.noted[member.Net.Addr()] = struct{}{}
		default:
			r.set(id)
		}
	}
}

// users calls yield for each list of rules that uses a set.
func (r *recheck) users(id string, yield func(list *policyList)) {
	for _, f := range r.families {
		for list := range f.policies.setUsers[id] {
			yield(list)
		}
	}
}

// denies reports whether rules with another action than allow use a set.
func (r *recheck) denies(id string) (yes bool) {
	r.users(id, func(list *policyList) {
		yes = yes || slices.ContainsFunc(list.rules, func(rule *proto.Rule) bool {
			return rule.GetAction() != "" && rule.GetAction() != "allow"
		})
	})
	return yes
}

// set marks the endpoints whose policies need a set as suspects.
func (r *recheck) set(id string) {
	r.users(id, func(list *policyList) {
		if list.Profile {
			r.suspect(func(*proto.WorkloadEndpoint) bool { return true })
		} else {
			r.policy(list.Policy.Name)
		}
	})
}

// sweep makes the job check what was noted; the changes are in the kernel by now.
func (r *recheck) sweep() {
	r.swept = true
	if len(r.noted) == 0 {
		return
	}
	r.mu.Lock()
	maps.Copy(r.due, r.noted)
	r.mu.Unlock()
	r.noted = suspects{}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run checks connections after each sweep, until ctx ends.
func (r *recheck) run(ctx context.Context) error {
	var next time.Time // earliest start of the next check
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(recheckDelay, time.Until(next))):
		}
		begin := time.Now()
		r.mu.Lock()
		due := r.due
		r.due = suspects{}
		r.mu.Unlock()
		if len(due) == 0 {
			continue
		}
		removed, err := r.remove(ctx, conntrack.Which{Protocols: allProtocols()}, func(f conntrack.Flow) bool {
			return due.have(f) && !r.allowed(f)
		})
		if err != nil && ctx.Err() == nil {
			r.log.Warn("connections that policy does not allow any more may live on until they end", "error", err)
		}
		next = time.Now().Add(min(time.Since(begin), recheckMost))
		if removed > 0 {
			r.log.Info("ended connections that policy no longer allows", "connections", removed)
		}
	}
}

func allProtocols() []uint8 {
	list := make([]uint8, 255)
	for i := range list {
		list[i] = uint8(i + 1)
	}
	return list
}

func (s suspects) have(f conntrack.Flow) bool {
	_, from := s[f.From.Addr()]
	_, to := s[f.Answers.Addr()]
	return from || to
}

// allowed reports whether policy would allow the connection to be opened. The node's own connections are not subject to policy.
func (r *recheck) allowed(f conntrack.Flow) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := recheckState{r, familyOf(f.From.Addr())}
	p := walk.Packet{Proto: f.Proto, Src: f.From.Addr(), Dst: f.Answers.Addr(), SrcPort: f.From.Port(), DstPort: f.Answers.Port()}
	from, sends := r.ifaces[p.Src]
	to, receives := r.ifaces[p.Dst]
	p.In, p.Out = from, to
	if sends && !walk.Allowed(s, s.chainsOf(rules.WorkloadFromEndpointPfx, rules.ChainFromWorkloadPolicies, from), r.accept, p) {
		return false
	}
	return !receives || !sends && s.Local(p.Src) ||
		walk.Allowed(s, s.chainsOf(rules.WorkloadToEndpointPfx, rules.ChainToWorkloadPolicies, to), r.accept, p)
}

// chainsOf returns the chains that a packet of an interface passes: the interface's own chain, and the one it shares with others.
func (s recheckState) chainsOf(prefix, dispatch, iface string) []string {
	list := []string{rules.IfaceChain(s.own(prefix), iface)}
	if shared := s.shared[chainID{s.family, s.own(dispatch)}]; shared != nil {
		list = append(list, shared[iface])
	}
	return list
}

// recheckState provides the state that the chains of a family refer to. The caller holds the lock.
type recheckState struct {
	*recheck
	family table.Family
}

// Chain implements walk.State.
func (s recheckState) Chain(name string) ([]table.Rule, bool) {
	list, known := s.chains[chainID{s.family, name}]
	return list, known
}

// Local implements walk.State.
func (s recheckState) Local(a netip.Addr) bool {
	for _, list := range s.local {
		if slices.ContainsFunc(list, func(own netip.Addr) bool { return own.WithZone("").Unmap() == a }) {
			return true
		}
	}
	return false
}

// InSet implements walk.State.
func (s recheckState) InSet(id string, m table.Member) bool {
	set := s.families[s.family].ipsets.sets[id]
	if set == nil {
		return false
	}
	if set.kind != table.SetNet {
		_, has := set.members[m]
		return has
	}
	for bits := m.Net.Bits(); bits >= 0; bits-- {
		if _, has := set.members[table.Member{Net: netip.PrefixFrom(m.Net.Addr(), bits).Masked()}]; has {
			return true
		}
	}
	return false
}

// chainRecorder is a chainSink that also passes the chains of layer Filter to recheck.
type chainRecorder struct {
	chainSink
	to *recheck
}

func (c chainRecorder) SetChains(f table.Family, l table.Layer, chains ...table.Chain) {
	if l == table.Filter {
		c.to.mu.Lock()
		for _, chain := range chains {
			c.to.chains[chainID{f, chain.Name}] = chain.Rules
		}
		c.to.mu.Unlock()
	}
	c.chainSink.SetChains(f, l, chains...)
}

func (c chainRecorder) SetDispatch(f table.Family, l table.Layer, d table.Dispatch) {
	if d.Name == c.to.own(rules.ChainFromWorkloadPolicies) || d.Name == c.to.own(rules.ChainToWorkloadPolicies) {
		c.to.mu.Lock()
		c.to.shared[chainID{f, d.Name}] = d.Chains
		c.to.mu.Unlock()
	}
	c.chainSink.SetDispatch(f, l, d)
}

func (c chainRecorder) DeleteChains(f table.Family, l table.Layer, names ...string) {
	if l == table.Filter {
		c.to.mu.Lock()
		for _, name := range names {
			delete(c.to.chains, chainID{f, name})
		}
		c.to.mu.Unlock()
	}
	c.chainSink.DeleteChains(f, l, names...)
}

// lockedSets is an ipsetsManager that takes the lock for updates, since recheck reads the members of its sets.
type lockedSets struct {
	*ipsetsManager
	mu *sync.RWMutex
}

func (m lockedSets) OnUpdate(msg any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ipsetsManager.OnUpdate(msg)
}
