package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// tableName is the name of the tables of services, one in family ip and one in ip6.
const tableName = "contiv-services"

// Services programs services. They have separate tables, so that neither policy nor services make the kernel check the other's tables again
// when rules change. Almost all of their contents are elements of maps:
//
//	frontends   address . protocol . port → masquerade . group      for packets of pods and of the node itself
//	outside     the same, for packets of others, if that differs
//	counts      group → 0 . size and shard . seconds of affinity
//	pick        size and shard . seconds → goto the chain that selects a backend
//	backends-n  group . block → as many backends as fit, address . port each (pick.go)
//	affinity    group . client → address . port, with a timeout, written by the kernel
//
// A change of endpoints writes elements of backends, and of counts if the size, which grows in powers of two, changes.
type Services struct {
	view     *wire.View
	watch    time.Duration
	services map[string]*service
	families [2]*balancer

	failed  map[string]*service // services that the kernel has rejected
	retried time.Time
}

// service is one service, with the kernel's error if it was rejected.
type service struct {
	*lb.Service
	err error
}

func (s *service) Key() string    { return "service " + s.Name }
func (s *service) Fail(err error) { s.err = err }
func (s *service) Failed() bool   { return s.err != nil }
func (s *service) Touch()         {}

// Options configure Services.
type Options struct {
	NS  *nsdo.Namespace // nil: that of the process
	Log *slog.Logger    // nil: no log
	// Watch is the interval at which an Apply is requested, to check whether another program has changed the tables; default 1 s, negative:
	// never. Such an Apply takes a few microseconds.
	Watch time.Duration
	// Beside is another view of the same goroutine and namespace whose sockets are shared. Closing one of them closes the sockets; they are
	// opened again when used again.
	Beside *wire.View
}

// Open opens the tables of services. Nothing is read or written before the first Apply.
func Open(opts Options) (*Services, error) {
	v, err := wire.Open(opts.NS, opts.Log, tableName, opts.Beside)
	if err != nil {
		return nil, err
	}
	return &Services{view: v, watch: wire.WatchInterval(opts.Watch), services: map[string]*service{}, failed: map[string]*service{},
		families: [2]*balancer{newBalancer(table.IPv4), newBalancer(table.IPv6)}}, nil
}

// Close closes the sockets. The kernel's tables remain.
func (s *Services) Close() error {
	s.view.Close()
	return nil
}

// Set adds a service or replaces it.
func (s *Services) Set(svc *lb.Service) {
	s.Delete(svc.Name)
	now := &service{Service: svc}
	s.services[svc.Name] = now
	for _, b := range s.families {
		b.add(now)
	}
}

// Delete removes a service.
func (s *Services) Delete(name string) {
	old := s.services[name]
	if old == nil {
		return
	}
	delete(s.services, name)
	if s.failed[name] != nil {
		delete(s.failed, name) // already withdrawn
		return
	}
	s.withdraw(old)
}

func (s *Services) withdraw(svc *service) {
	for _, b := range s.families {
		b.remove(svc)
	}
}

// SetPods sets the subnets of pods.
func (s *Services) SetPods(f table.Family, nets []netip.Prefix) {
	for _, b := range s.families {
		if b.f.ID == f {
			b.pods = wire.Nets(f, nets)
		}
	}
}

// Resync makes the next Apply compare the recorded state with the kernel.
func (s *Services) Resync() { s.view.Resync = true }

// Pending reports whether Apply would have something to do, including because another program has changed the tables.
func (s *Services) Pending() bool {
	for _, b := range s.families {
		if b.pending(s.view.Grace.Over()) {
			return true
		}
	}
	return s.view.Pending()
}

// Apply writes the differences in one transaction. If it needs new chains, they are created before in a separate transaction. Chains that
// nothing refers to any more are removed in a later Apply, after a grace period. A service that the kernel rejects is left out, and
// reported in Broken.
func (s *Services) Apply(ctx context.Context) table.Result {
	res := table.Result{}
	s.retry()
	for attempt := 0; ; attempt++ {
		writes, err := s.attempt(ctx)
		if err == nil {
			res.Writes, res.Repaired = writes, s.view.Repaired(writes)
			break
		}
		if attempt < wire.MaxAttempts && ctx.Err() == nil && s.handleFailure(err) {
			continue
		}
		res.Err = fmt.Errorf("program nf_tables tables %s in %s: %w", tableName, s.view.NS, err)
		break
	}
	for name, svc := range s.failed {
		if res.Broken == nil {
			res.Broken = map[string]error{}
		}
		res.Broken["service "+name] = svc.err
	}
	if res.Err == nil {
		res.Again = s.watch
	}
	for _, b := range s.families {
		if res.Err == nil && len(b.leaving) > 0 {
			res.Again = wire.GraceLook
		}
	}
	return res
}

// retry adds services again that the kernel has rejected, if RetryAfter has passed.
func (s *Services) retry() {
	if len(s.failed) == 0 || time.Since(s.retried) < wire.RetryAfter {
		return
	}
	s.retried = time.Now()
	for name, svc := range s.failed {
		delete(s.failed, name)
		svc.err = nil
		for _, b := range s.families {
			b.add(svc)
		}
	}
}

func (s *Services) attempt(ctx context.Context) (writes int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := s.view.Connect(); err != nil {
		return 0, err
	}
	if err := s.view.Sync(s.load); err != nil {
		return 0, err
	}
	writes, err = s.transact((*balancer).prepare, (*balancer).prepared)
	if err != nil {
		return 0, err
	}
	over := s.view.Grace.Over()
	write := func(b *balancer, t *wire.Batch) { b.write(t, over) }
	more, err := s.transact(write, func(b *balancer) { b.done(); b.left(&s.view.Grace) })
	return writes + more, err
}

// transact commits what write adds for each family, and calls done to record it.
func (s *Services) transact(write func(*balancer, *wire.Batch), done func(*balancer)) (writes int, err error) {
	t := s.view.NewBatch()
	for _, b := range s.families {
		write(b, t)
	}
	if !t.Empty() {
		if err := s.view.Commit(t); err != nil {
			return 0, err
		}
	}
	for _, b := range s.families {
		done(b)
	}
	return t.Writes, nil
}

// load reads the kernel's state.
func (s *Services) load() error {
	for _, b := range s.families {
		if err := b.load(s.view.Lister(b.f.Proto)); err != nil {
			return err
		}
	}
	return nil
}

// handleFailure handles a failure; it returns false if a retry does not make sense.
func (s *Services) handleFailure(err error) bool {
	var refused *wire.Refusal
	if errors.As(err, &refused) {
		s.view.Invalidate() // the repairs are determined again
		return s.isolate(refused)
	}
	return s.view.Again(err)
}

// isolate leaves out the services that the kernel rejects.
func (s *Services) isolate(r *wire.Refusal) bool {
	learnt := false
	for o, err := range r.Objects {
		svc, is := o.(*service)
		if !is || s.services[svc.Name] != svc || s.failed[svc.Name] != nil {
			continue
		}
		svc.err = err
		s.failed[svc.Name] = svc
		s.withdraw(svc)
		s.view.Log.Warn("the kernel rejects a service, which is not served", "service", svc.Name, "error", err)
		learnt = true
	}
	if learnt {
		s.retried = time.Now()
	}
	return learnt
}

// Name returns the name for logs.
func (s *Services) Name() string { return "services in nf_tables" }
