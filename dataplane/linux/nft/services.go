package nft

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// ServicesTable is the name of the tables of services, one in family ip and one in ip6.
const ServicesTable = "contiv-services"

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
	*view
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

func (s *service) key() string    { return "service " + s.Name }
func (s *service) fail(err error) { s.err = err }
func (s *service) failed() bool   { return s.err != nil }
func (s *service) touch()         {}

// OpenServices opens the tables of services. Nothing is read or written before the first Apply. Of opts, Table is ignored.
func OpenServices(opts Options) (*Services, error) {
	opts.Table = ServicesTable
	v, err := opts.view()
	if err != nil {
		return nil, err
	}
	return &Services{view: v, watch: opts.interval(), services: map[string]*service{}, failed: map[string]*service{},
		families: [2]*balancer{newBalancer(table.IPv4), newBalancer(table.IPv6)}}, nil
}

// Close closes the sockets. The kernel keeps its tables.
func (s *Services) Close() error {
	s.close()
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
		if b.f.id == f {
			b.pods = netSpans(f, nets)
		}
	}
}

// Resync makes the next Apply compare with the kernel what is noted as programmed.
func (s *Services) Resync() { s.resync = true }

// Pending is true when Apply would have something to do, also because another program has touched the tables.
func (s *Services) Pending() bool {
	for _, b := range s.families {
		if b.pending() {
			return true
		}
	}
	return s.pending()
}

// Apply writes what differs in one transaction; if it needs other chains than there are, they come before, in a separate transaction. A
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
		if attempt < maxAttempts && ctx.Err() == nil && s.learn(err) {
			continue
		}
		res.Err = fmt.Errorf("program nf_tables tables %s in %s: %w", ServicesTable, s.ns, err)
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
	return res
}

// retry gives services that the kernel has refused another chance.
func (s *Services) retry() {
	if len(s.failed) == 0 || time.Since(s.retried) < retryAfter {
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
	if err := s.connect(); err != nil {
		return 0, err
	}
	if err := s.sync(s.load); err != nil {
		return 0, err
	}
	writes, err = s.transact((*balancer).prepare, (*balancer).prepared)
	if err != nil {
		return 0, err
	}
	more, err := s.transact((*balancer).write, (*balancer).done)
	return writes + more, err
}

// transact has the kernel carry out what write adds for each family, and notes that by done.
func (s *Services) transact(write func(*balancer, *batch), done func(*balancer)) (writes int, err error) {
	t := newBatch(ServicesTable, s.cmd.seq+1)
	for _, b := range s.families {
		write(b, t)
	}
	if !t.empty() {
		if err := s.commit(t); err != nil {
			return 0, err
		}
	}
	for _, b := range s.families {
		done(b)
	}
	return t.writes, nil
}

// load reads what the kernel has.
func (s *Services) load() error {
	for _, b := range s.families {
		if err := b.load(lister{s.cmd, ServicesTable, b.f.proto}); err != nil {
			return err
		}
	}
	return nil
}

// learn takes what can be taken from a failure; false if trying again makes no sense.
func (s *Services) learn(err error) bool {
	var refused *refusal
	switch {
	case errors.Is(err, errStale):
		s.suspect = true
		return true
	case errors.Is(err, errDumpChanged):
		return true
	case errors.As(err, &refused):
		s.known = false // what was to be repaired is found out again
		return s.isolate(refused)
	}
	s.close()
	return false
}

// isolate leaves out the services that the kernel refuses.
func (s *Services) isolate(r *refusal) bool {
	learnt := false
	for o, err := range r.objects {
		svc, is := o.(*service)
		if !is || s.services[svc.Name] != svc || s.failed[svc.Name] != nil {
			continue
		}
		svc.err = err
		s.failed[svc.Name] = svc
		s.withdraw(svc)
		s.log.Warn("the kernel refuses a service, which is left out", "service", svc.Name, "error", err)
		learnt = true
	}
	if learnt {
		s.retried = time.Now()
	}
	return learnt
}

// Name is "services".
func (s *Services) Name() string { return "services in nf_tables" }
