package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// tableName is the name of the tables of services, one in family ip and one in ip6.
const tableName = "contiv-services"

// Services programs services. They have their own tables, so that neither policy nor services make the kernel look at the other again when
// rules change, and in them almost everything is an element of a map:
//
//	frontends   address . protocol . port → masquerade . group      what pods and the node itself get
//	outside     the same, for others, where that is not the same
//	counts      group → 0 . size and shard . seconds of affinity
//	pick        size and shard . seconds → goto the chain that draws a backend
//	backends-n  group . block → as many backends as fit, address . port each (services_pick.go)
//	affinity    group . client → address . port, with a timeout, filled by the kernel
//
// A change of endpoints is elements of backends, and of counts if the size, which goes in powers of two, is another.
type Services struct {
	view     *wire.View
	watch    time.Duration
	services map[string]*service
	families [2]*balancer

	failed  map[string]*service // that the kernel has refused
	retried time.Time
}

// service is one service and whether the kernel takes it.
type service struct {
	*balance.Service
	err error
}

func (s *service) Key() string    { return "service " + s.Name }
func (s *service) Fail(err error) { s.err = err }
func (s *service) Failed() bool   { return s.err != nil }
func (s *service) Touch()         {}

// Options say where and how Services work.
type Options struct {
	NS  *nsdo.Namespace // nil: the process's own
	Log *slog.Logger    // nil: silent
	// Watch is how often an Apply is asked for to see whether another program has touched the tables; default 1 s, negative
	// never. Such an Apply costs some microseconds.
	Watch time.Duration
	// Beside is another view of the same goroutine and namespace whose sockets are to be used. Whichever is closed first closes
	// them; they are opened again when they are used again.
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

// Close closes the sockets. The kernel keeps its tables.
func (s *Services) Close() error {
	s.view.Close()
	return nil
}

// Set adds a service or replaces it.
func (s *Services) Set(svc *balance.Service) {
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
		delete(s.failed, name) // withdrawn already
		return
	}
	s.withdraw(old)
}

func (s *Services) withdraw(svc *service) {
	for _, b := range s.families {
		b.remove(svc)
	}
}

// SetPods reports which nets are those of pods.
func (s *Services) SetPods(f table.Family, nets []netip.Prefix) {
	for _, b := range s.families {
		if b.f.ID == f {
			b.pods = wire.Nets(f, nets)
		}
	}
}

// Resync makes the next Apply compare with the kernel what is noted as programmed.
func (s *Services) Resync() { s.view.Resync = true }

// Pending is true when Apply would have something to do, also because another program has touched the tables.
func (s *Services) Pending() bool {
	for _, b := range s.families {
		if b.pending(s.view.Grace.Over()) {
			return true
		}
	}
	return s.view.Pending()
}

// Apply writes what differs in one transaction; if it needs other chains than there are, they come before, in a separate transaction, and chains that
// nothing leads to any more go with a later Apply, behind a grace period. A
// service that the kernel refuses is left out, and is in Broken.
func (s *Services) Apply(ctx context.Context) table.Result {
	res := table.Result{}
	s.retry()
	for attempt := 0; ; attempt++ {
		writes, err := s.attempt(ctx)
		if err == nil {
			res.Writes = writes
			break
		}
		if attempt < wire.MaxAttempts && ctx.Err() == nil && s.learn(err) {
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

// retry gives services that the kernel has refused another chance.
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

// transact has the kernel carry out what write adds for each family, and notes that by done.
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

// load reads what the kernel has.
func (s *Services) load() error {
	for _, b := range s.families {
		if err := b.load(s.view.Lister(b.f.Proto)); err != nil {
			return err
		}
	}
	return nil
}

// learn takes what can be taken from a failure; false if trying again makes no sense.
func (s *Services) learn(err error) bool {
	var refused *wire.Refusal
	if errors.As(err, &refused) {
		s.view.Forget() // what was to be repaired is found out again
		return s.isolate(refused)
	}
	return s.view.Again(err)
}

// isolate leaves out the services that the kernel refuses.
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
		s.view.Log.Warn("the kernel refuses a service, which is left out", "service", svc.Name, "error", err)
		learnt = true
	}
	if learnt {
		s.retried = time.Now()
	}
	return learnt
}

// Name is "services".
func (s *Services) Name() string { return "services in nf_tables" }
