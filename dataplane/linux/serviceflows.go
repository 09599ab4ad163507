package intdataplane

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/conntrack"
)

// flowSweeper removes connections without end (UDP) or whose end may not come (SCTP) when their backend has gone: else a client
// that goes on sending would go on sending there. The same holds for those that were made when a service had no backend.
type flowSweeper struct {
	remove removeFlows
	log    *slog.Logger

	noted map[balance.Key]backends // by the loop, since the last sweep

	mu   sync.Mutex
	due  map[balance.Key]backends // guarded by mu; what the job is to look at
	wake chan struct{}
}

// removeFlows removes the connections of some protocols that are stale.
type removeFlows func(ctx context.Context, protocols []uint8, stale func(conntrack.Flow) bool) (int, error)

type backends map[netip.AddrPort]struct{}

func newFlowSweeper(remove removeFlows, log *slog.Logger) *flowSweeper {
	return &flowSweeper{remove: remove, log: log, noted: map[balance.Key]backends{}, due: map[balance.Key]backends{},
		wake: make(chan struct{}, 1)}
}

func connectionless(protocol uint8) bool { return protocol == 17 || protocol == 132 }

// compare notes the frontends of which connections may have become stale. A service that is new to this process had perhaps
// other backends in the last one.
func (f *flowSweeper) compare(old, now *balance.Service) {
	before, after := frontendsOf(old), frontendsOf(now)
	for key, had := range before {
		for backend := range had {
			if _, has := after[key][backend]; !has {
				f.noted[key] = after[key]
				break
			}
		}
	}
	for key, has := range after {
		if len(before[key]) == 0 {
			f.noted[key] = has
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
	if len(f.noted) == 0 {
		return
	}
	f.mu.Lock()
	for key, set := range f.noted {
		f.due[key] = set
	}
	f.mu.Unlock()
	f.noted = map[balance.Key]backends{}
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
		f.due = map[balance.Key]backends{}
		f.mu.Unlock()
		removed, err := f.remove(ctx, []uint8{17, 132}, func(flow conntrack.Flow) bool {
			valid, is := due[balance.Key{Addr: flow.To.Addr(), Proto: flow.Proto, Port: flow.To.Port()}]
			if !is {
				return false
			}
			_, ok := valid[flow.Answers]
			return !ok
		})
		if err != nil && ctx.Err() == nil {
			f.log.Warn("connections of removed backends may live on until they time out", "error", err)
		}
		if removed > 0 {
			f.log.Info("connections of removed backends were forgotten", "connections", removed)
		}
	}
}
