package intdataplane

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/lb"
)

// flowSweeper removes stale connections that would keep clients from reaching a service in its current state.
//
// Connections of protocols without an end (UDP), or whose end may not be seen (SCTP), are removed when their backend no longer serves:
// otherwise packets of a client that keeps sending would still go to that backend. A backend that still serves but gets no new connections
// keeps those that it has, as with kube-proxy. Connections that were created while a service had no backend are removed, too.
//
// For TCP, unanswered attempts are removed that were made before the frontend had a backend. For two minutes the kernel does not translate
// packets of such an attempt. A new connection from the same client port would not be translated either, and would follow the routes to the
// service address: there are usually none ("network is unreachable").
type flowSweeper struct {
	remove removeFlows
	log    *slog.Logger

	noted  outdated          // used by the loop only: noted since the last sweep
	owners map[lb.Key]string // used by the loop only: the service of each UDP and SCTP frontend

	mu      sync.Mutex
	due     outdated // guarded by mu; what the job has to check
	running outdated // guarded by mu; what the job is checking
	wake    chan struct{}
}

// outdated describes which connections are stale.
type outdated struct {
	backends map[lb.Key]backends // UDP and SCTP: connections to the key with none of these backends
	attempts map[lb.Key]struct{} // TCP: connections to the key that are not translated
}

func noOutdated() outdated {
	return outdated{map[lb.Key]backends{}, map[lb.Key]struct{}{}}
}

func (o outdated) none() bool { return len(o.backends)+len(o.attempts) == 0 }

func (o outdated) gone(f conntrack.Flow) bool {
	valid, is := o.backends[lb.Key{Addr: f.To.Addr(), Proto: f.Proto, Port: f.To.Port()}]
	if !is {
		return false
	}
	_, ok := valid[f.Answers]
	return !ok
}

func (o outdated) tooEarly(f conntrack.Flow) bool {
	_, is := o.attempts[lb.Key{Addr: f.To.Addr(), Proto: f.Proto, Port: f.To.Port()}]
	return is && !f.Translated()
}

// removeFlows removes the connections selected by which for which stale returns true, and returns their number.
type removeFlows func(ctx context.Context, which conntrack.Which, stale func(conntrack.Flow) bool) (int, error)

type backends map[netip.AddrPort]struct{}

// serving describes the backends of a frontend: those that may have connections, and whether any of them gets new ones.
type serving struct {
	backends
	takesNew bool
}

func newFlowSweeper(remove removeFlows, log *slog.Logger) *flowSweeper {
	return &flowSweeper{remove: remove, log: log, noted: noOutdated(), owners: map[lb.Key]string{}, due: noOutdated(), running: noOutdated(),
		wake: make(chan struct{}, 1)}
}

const (
	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)

func connectionless(protocol uint8) bool { return protocol == protoUDP || protocol == protoSCTP }

// compare notes the frontends whose connections may have become stale. A service that is new to this process may have had other backends in
// the previous process. A frontend may move to another service, which may be announced before the previous one loses it: then the
// connections belong to the other service.
func (f *flowSweeper) compare(old, now *lb.Service) {
	before, after := frontendsOf(old), frontendsOf(now)
	for key, had := range before {
		if owner, owned := f.owners[key]; owned && owner != old.Name {
			continue
		}
		delete(f.owners, key)
		for backend := range had.backends {
			if _, has := after[key].backends[backend]; !has {
				f.noted.backends[key] = after[key].backends
				break
			}
		}
	}
	for key, has := range after {
		f.owners[key] = now.Name
		if had, known := before[key]; !known || has.takesNew && !had.takesNew {
			f.noted.backends[key] = has.backends
		}
	}
	f.update(after)
	served := map[lb.Key]bool{}
	eachServed(old, func(key lb.Key) { served[key] = true })
	eachServed(now, func(key lb.Key) {
		if !served[key] {
			f.noted.attempts[key] = struct{}{}
		}
	})
}

// update replaces the backends of frontends that are noted, due or being checked: connections to a backend that was added meanwhile are not stale.
func (f *flowSweeper) update(now map[lb.Key]serving) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, has := range now {
		for _, list := range []outdated{f.noted, f.due, f.running} {
			if _, is := list.backends[key]; is {
				list.backends[key] = has.backends
			}
		}
	}
}

// eachServed calls do for the TCP frontends that have backends.
func eachServed(s *lb.Service, do func(lb.Key)) {
	if s == nil {
		return
	}
	for i := range s.Ports {
		if s.Ports[i].Proto != protoTCP {
			continue
		}
		for j := range s.Ports[i].Frontends {
			if front := &s.Ports[i].Frontends[j]; front.Inside.Len()+front.Outside.Len() > 0 {
				do(front.Key)
			}
		}
	}
}

// frontendsOf returns the UDP and SCTP frontends of a service with their backends.
func frontendsOf(s *lb.Service) map[lb.Key]serving {
	if s == nil {
		return nil
	}
	var out map[lb.Key]serving
	for i := range s.Ports {
		if !connectionless(s.Ports[i].Proto) {
			continue
		}
		for j := range s.Ports[i].Frontends {
			front := &s.Ports[i].Frontends[j]
			if out == nil {
				out = map[lb.Key]serving{}
			}
			set := backends{}
			for _, g := range []*lb.Group{front.Inside, front.Outside, s.Ports[i].Kept} {
				if g == nil {
					continue
				}
				for k := range g.Len() {
					set[g.At(k)] = struct{}{}
				}
			}
			out[front.Key] = serving{set, front.Inside.Len()+front.Outside.Len() > 0}
		}
	}
	return out
}

// sweep makes the job check what was noted. The kernel has the new backends by now.
func (f *flowSweeper) sweep() {
	if f.noted.none() {
		return
	}
	f.add(f.noted)
	f.noted = noOutdated()
}

// add makes the job check connections.
func (f *flowSweeper) add(list outdated) {
	f.mu.Lock()
	maps.Copy(f.due.backends, list.backends)
	maps.Copy(f.due.attempts, list.attempts)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run removes stale connections after each sweep, until ctx ends. After an error it tries again.
func (f *flowSweeper) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		f.mu.Lock()
		f.running, f.due = f.due, noOutdated()
		running := f.running
		f.mu.Unlock()
		if f.deleteStale(ctx, running) {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(recheckRetry):
		}
		f.again()
	}
}

// again makes the job check what it was checking once more, unless there is newer information.
func (f *flowSweeper) again() {
	f.mu.Lock()
	list := f.running
	f.running = noOutdated()
	maps.Copy(list.backends, f.due.backends)
	maps.Copy(list.attempts, f.due.attempts)
	f.due = list
	f.mu.Unlock()
	f.add(noOutdated()) // wakes the job
}

// deleteStale removes the connections that are checked; false: not all of them could be removed.
func (f *flowSweeper) deleteStale(ctx context.Context, running outdated) (ok bool) {
	ok = true
	if len(running.attempts) > 0 {
		ok = f.deleteEntries(ctx, conntrack.Which{Protocols: []uint8{protoTCP}, Unanswered: true}, running.tooEarly,
			"removed conntrack entries of connections that began before the service was served")
	}
	f.mu.Lock()
	backends := len(running.backends)
	f.mu.Unlock()
	if backends > 0 {
		gone := func(flow conntrack.Flow) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return running.gone(flow)
		}
		ok = f.deleteEntries(ctx, conntrack.Which{Protocols: []uint8{protoUDP, protoSCTP}}, gone, "removed conntrack entries of connections to removed backends") && ok
	}
	return ok
}

func (f *flowSweeper) deleteEntries(ctx context.Context, which conntrack.Which, stale func(conntrack.Flow) bool, what string) (ok bool) {
	removed, err := f.remove(ctx, which, stale)
	if err != nil && ctx.Err() == nil {
		f.log.Warn("stale connections of services may still be open; retrying", "retryIn", recheckRetry, "protocols", which.Protocols, "error", err)
	}
	if removed > 0 {
		f.log.Info(what, "connections", removed)
	}
	return err == nil
}
