package intdataplane

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/conntrack"
)

// flowSweeper removes connections that would keep clients from a service as it is now.
//
// Those without end (UDP) or whose end may not come (SCTP) go when their backend has gone: else a client that goes on sending would go on
// sending there. The same holds for those that were made when a service had no backend.
//
// Of TCP, attempts go that were made before the frontend had a server and that nothing has answered. The kernel remembers for two minutes
// that they are not to be translated; the next connection from the same port of the client would not be, and go where service addresses
// lead to without us: mostly, nowhere ("network is unreachable").
type flowSweeper struct {
	remove removeFlows
	log    *slog.Logger

	noted outdated // by the loop, since the last sweep

	mu   sync.Mutex
	due  outdated // guarded by mu; what the job is to look at
	wake chan struct{}
}

// outdated reports which connections are stale.
type outdated struct {
	backends map[balance.Key]backends // without end: those to the key that go to none of these
	attempts map[balance.Key]struct{} // of TCP: those to the key that are not translated
}

func noOutdated() outdated {
	return outdated{map[balance.Key]backends{}, map[balance.Key]struct{}{}}
}

func (o outdated) none() bool { return len(o.backends)+len(o.attempts) == 0 }

func (o outdated) gone(f conntrack.Flow) bool {
	valid, is := o.backends[balance.Key{Addr: f.To.Addr(), Proto: f.Proto, Port: f.To.Port()}]
	if !is {
		return false
	}
	_, ok := valid[f.Answers]
	return !ok
}

func (o outdated) tooEarly(f conntrack.Flow) bool {
	_, is := o.attempts[balance.Key{Addr: f.To.Addr(), Proto: f.Proto, Port: f.To.Port()}]
	return is && !f.Translated()
}

// removeFlows removes those of some connections that are stale.
type removeFlows func(ctx context.Context, which conntrack.Which, stale func(conntrack.Flow) bool) (int, error)

type backends map[netip.AddrPort]struct{}

func newFlowSweeper(remove removeFlows, log *slog.Logger) *flowSweeper {
	return &flowSweeper{remove: remove, log: log, noted: noOutdated(), due: noOutdated(), wake: make(chan struct{}, 1)}
}

const (
	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)

func connectionless(protocol uint8) bool { return protocol == protoUDP || protocol == protoSCTP }

// compare notes the frontends of which connections may have become stale. A service that is new to this process had perhaps
// other backends in the last one.
func (f *flowSweeper) compare(old, now *balance.Service) {
	before, after := frontendsOf(old), frontendsOf(now)
	for key, had := range before {
		for backend := range had {
			if _, has := after[key][backend]; !has {
				f.noted.backends[key] = after[key]
				break
			}
		}
	}
	for key, has := range after {
		if len(before[key]) == 0 {
			f.noted.backends[key] = has
		}
	}
	served := map[balance.Key]bool{}
	eachServed(old, func(key balance.Key) { served[key] = true })
	eachServed(now, func(key balance.Key) {
		if !served[key] {
			f.noted.attempts[key] = struct{}{}
		}
	})
}

// eachServed are the frontends of TCP that have backends.
func eachServed(s *balance.Service, do func(balance.Key)) {
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

// frontendsOf are the frontends of a service that matter here, with their backends.
func frontendsOf(s *balance.Service) map[balance.Key]backends {
	if s == nil {
		return nil
	}
	var out map[balance.Key]backends
	for i := range s.Ports {
		if !connectionless(s.Ports[i].Proto) {
			continue
		}
		for j := range s.Ports[i].Frontends {
			front := &s.Ports[i].Frontends[j]
			if out == nil {
				out = map[balance.Key]backends{}
			}
			set := backends{}
			for _, g := range []*balance.Group{front.Inside, front.Outside} {
				for k := range g.Len() {
					set[g.At(k)] = struct{}{}
				}
			}
			out[front.Key] = set
		}
	}
	return out
}

// sweep has the job look at what was noted. The kernel has the new backends by now.
func (f *flowSweeper) sweep() {
	if f.noted.none() {
		return
	}
	f.mu.Lock()
	maps.Copy(f.due.backends, f.noted.backends)
	maps.Copy(f.due.attempts, f.noted.attempts)
	f.mu.Unlock()
	f.noted = noOutdated()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run is the job.
func (f *flowSweeper) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		f.mu.Lock()
		due := f.due
		f.due = noOutdated()
		f.mu.Unlock()
		if len(due.attempts) > 0 {
			f.forget(ctx, conntrack.Which{Protocols: []uint8{protoTCP}, Unanswered: true}, due.tooEarly,
				"attempts to connect to a service before it was served were forgotten")
		}
		if len(due.backends) > 0 {
			f.forget(ctx, conntrack.Which{Protocols: []uint8{protoUDP, protoSCTP}}, due.gone,
				"connections of removed backends were forgotten")
		}
	}
}

func (f *flowSweeper) forget(ctx context.Context, which conntrack.Which, stale func(conntrack.Flow) bool, what string) {
	removed, err := f.remove(ctx, which, stale)
	if err != nil && ctx.Err() == nil {
		f.log.Warn("stale connections may stay until they time out", "protocols", which.Protocols, "error", err)
	}
	if removed > 0 {
		f.log.Info(what, "connections", removed)
	}
}
