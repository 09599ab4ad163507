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
	"contiv.dev/vswitch/dataplane/proto"
)

// recheckDelay is how long changes are collected before the connections are checked, since a change may come in several batches. If checks
// take long, because there are many connections, the pause between two checks is as long as the last one took, up to recheckMost.
const (
	recheckDelay = 2 * time.Millisecond
	recheckMost  = 500 * time.Millisecond
	recheckRetry = time.Second // pause after an error
	recheckAgain = time.Second // after this time the connections are checked once more
)

// recheck removes connections of workloads that policy would no longer allow to be opened. The rules accept packets of known connections,
// so a change of policy alone does not end them.
//
// It is a manager that records what has changed: endpoints with changed policies, and addresses removed from sets. When the change is in
// the kernel, a job lists the connections of these endpoints and addresses. The loop judges them while nothing is recorded that is not in the
// kernel yet (settled): it walks the first packet of each connection through the chains that the kernel has. In between, the records are a
// mixture of two states that may deny what both of them allow.
//
// Each check is repeated once, after recheckAgain. A packet that the old rules accepted may enter its connection into the table only after the
// first check has listed it. An answer that was on its way when its connection was removed makes an entry in the opposite direction, which
// policy may allow; the packets of the denied client would then pass as answers. So the second check also removes the entries in the opposite
// direction of those that the first one removed.
//
// All fields without another comment are used by the loop only.
type recheck struct {
	*ruleRecord
	remove  removeFlows // used by the job
	log     *slog.Logger
	inspect func(f func()) error // runs f on the loop's goroutine; used by the job
	wake    chan struct{}

	noted   suspects // noted since the last sweep
	swept   bool     // there was a sweep
	settled bool     // the kernel has everything that was recorded
	known   map[epstate.WorkloadID]*proto.WorkloadEndpoint

	mu      sync.Mutex
	due     suspects    // guarded by mu; what the job has to check
	waiting []*question // guarded by mu
}

// question is a list of connections that the job wants to be judged.
type question struct {
	flows  []conntrack.Flow
	denied []bool        // of each of the flows; valid when done is closed
	done   chan struct{} // closed by the loop
}

// suspects holds the addresses whose connections may have to be removed.
type suspects map[netip.Addr]struct{}

func newRecheck(remove removeFlows, record *ruleRecord, inspect func(func()) error, log *slog.Logger) *recheck {
	return &recheck{ruleRecord: record, remove: remove, log: log, inspect: inspect, wake: make(chan struct{}, 1), noted: suspects{},
		known: map[epstate.WorkloadID]*proto.WorkloadEndpoint{}, due: suspects{}}
}

// OnUpdate records what has changed. It must run after the other managers.
func (r *recheck) OnUpdate(msg any) {
	r.settled = false
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
		if r.local[m.Name] = m.Addrs; m.Addrs == nil {
			delete(r.local, m.Name)
		}
	}
}

// CompleteDeferredWork does nothing: see sweep.
func (r *recheck) CompleteDeferredWork() error { return nil }

// endpoint handles an update or the removal of an endpoint.
func (r *recheck) endpoint(id epstate.WorkloadID, ep *proto.WorkloadEndpoint) {
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
	for _, ep := range r.known {
		if which(ep) {
			for _, a := range addressesOf(ep) {
				r.noted[a] = struct{}{}
			}
		}
	}
}

// everything marks all endpoints as suspects.
func (r *recheck) everything() { r.suspect(func(*proto.WorkloadEndpoint) bool { return true }) }

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

// sweep judges the connections that wait for it and makes the job check what was noted; the changes are in the kernel by now.
func (r *recheck) sweep() {
	r.swept, r.settled = true, true
	r.answerWaiting()
	if len(r.noted) == 0 {
		return
	}
	r.add(r.noted)
	r.noted = suspects{}
}

// add makes the job check addresses.
func (r *recheck) add(list suspects) {
	r.mu.Lock()
	maps.Copy(r.due, list)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// flowCheck is one check of connections.
type flowCheck struct {
	at     time.Time // earliest start, of a second check
	addrs  suspects
	second bool
	// ended are the connections that the first check has removed, each with its ends in the direction of the answers.
	ended map[flowEnds]struct{}
}

type flowEnds struct {
	proto    uint8
	from, to netip.AddrPort
}

// run checks connections after each sweep, until ctx ends.
func (r *recheck) run(ctx context.Context) error {
	var next time.Time    // earliest start of the next check
	var again []flowCheck // by time
	for {
		var c flowCheck
		select {
		case <-ctx.Done():
			return nil
		case <-whenDue(again, next):
			c, again = again[0], again[1:]
		case <-r.wake:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(max(recheckDelay, time.Until(next))):
			}
			c.addrs = r.takeDue()
		}
		if len(c.addrs) == 0 {
			continue
		}
		begin := time.Now()
		ended, err := r.check(ctx, c)
		now := time.Now()
		next = now.Add(min(now.Sub(begin), recheckMost))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			r.log.Warn("connections that policy does not allow any more may still be open; retrying", "retryIn", recheckRetry, "error", err)
			next = now.Add(recheckRetry)
			if c.second {
				c.at = next
				again = append(again, c)
			} else {
				r.add(c.addrs)
			}
		case !c.second:
			again = checkAgain(again, flowCheck{at: now.Add(recheckAgain), addrs: c.addrs, second: true, ended: ended})
		}
	}
}

// whenDue returns a channel that receives when the first of the checks is due, but not before next.
func whenDue(list []flowCheck, next time.Time) <-chan time.Time {
	if len(list) == 0 {
		return nil
	}
	return time.After(max(0, time.Until(list[0].at), time.Until(next)))
}

// checkAgain adds a second check to a list. Checks at nearly the same time become one.
func checkAgain(list []flowCheck, c flowCheck) []flowCheck {
	if n := len(list); n > 0 && c.at.Sub(list[n-1].at) < recheckAgain/4 {
		maps.Copy(list[n-1].addrs, c.addrs)
		maps.Copy(list[n-1].ended, c.ended)
		return list
	}
	return append(list, c)
}

func (r *recheck) takeDue() suspects {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.due
	r.due = suspects{}
	return due
}

// check removes connections that policy does not allow, and returns them.
func (r *recheck) check(ctx context.Context, c flowCheck) (ended map[flowEnds]struct{}, err error) {
	ended = map[flowEnds]struct{}{}
	confirm := func(ctx context.Context, flows []conntrack.Flow) ([]bool, error) {
		denied, err := r.denied(ctx, flows)
		if err != nil {
			return nil, err
		}
		for i, f := range flows {
			if _, answers := c.ended[flowEnds{f.Proto, f.From, f.Answers}]; answers {
				denied[i] = true
			}
			if denied[i] {
				ended[flowEnds{f.Proto, f.Answers, f.From}] = struct{}{}
			}
		}
		return denied, nil
	}
	removed, err := r.remove(ctx, conntrack.Which{Protocols: allProtocols(), Confirm: confirm}, c.addrs.have)
	if removed > 0 {
		r.log.Info("ended connections that policy no longer allows", "connections", removed)
	}
	return ended, err
}

// denied returns which connections policy would not allow to be opened. It waits until the loop has judged them.
func (r *recheck) denied(ctx context.Context, flows []conntrack.Flow) ([]bool, error) {
	q := &question{flows: flows, done: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, q)
	r.mu.Unlock()
	if err := r.inspect(r.answerWaiting); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-q.done:
		return q.denied, nil
	}
}

// answerWaiting answers the questions that wait, unless the kernel does not have everything yet; then the next sweep answers them.
func (r *recheck) answerWaiting() {
	if !r.settled {
		return
	}
	r.mu.Lock()
	waiting := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	for _, q := range waiting {
		q.denied = make([]bool, len(q.flows))
		for i, f := range q.flows {
			q.denied[i] = !r.allowed(f)
		}
		close(q.done)
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
