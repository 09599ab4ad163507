package wiring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
)

// remotePrefix is the prefix of the names of endpoints for backends on other nodes.
const remotePrefix = "contiv-remote-"

// serviceDescriptor returns the descriptor of services. Their load balancers share the endpoints of backends, so all of them are compared with HNS at
// once.
func (w *Wiring) serviceDescriptor() scheduler.Descriptor[*proto.BalancedServiceUpdate] {
	put := func(op *scheduler.Op, key string, s *proto.BalancedServiceUpdate) {
		w.desired[key] = s
		w.waiting = append(w.waiting, waitingService{op, key})
	}
	return scheduler.Descriptor[*proto.BalancedServiceUpdate]{
		Name: "hns-service", Prefix: nb.DriverServicePrefix, Rank: scheduler.RankFeature + 6,
		Deps:   func(_ string, _ *proto.BalancedServiceUpdate, add func(string)) { add(nb.HNSNetworkKey(w.Network)) },
		Equal:  func(_ string, a, b *proto.BalancedServiceUpdate) bool { return pb.Equal(a, b) },
		Create: put,
		Update: func(op *scheduler.Op, key string, _, s *proto.BalancedServiceUpdate) { put(op, key, s) },
		Delete: func(op *scheduler.Op, key string, _ *proto.BalancedServiceUpdate) {
			delete(w.desired, key)
			w.waiting = append(w.waiting, waitingService{op, key})
		},
		Dump: w.dumpServices,
	}
}

// dumpServices programs the desired load balancers and emits their services. HNS has no services, so it emits those in desired, completely if
// all of their load balancers exist.
func (w *Wiring) dumpServices(op *scheduler.DumpOp, emit func(string, *proto.BalancedServiceUpdate)) {
	if !w.reported && !op.Partial() {
		w.reported = true
		op.EachDesired(func(string, any) { w.reported = false }) // this resync includes services, which are compared then
	}
	var failed failures
	if w.reported {
		failed = w.syncServices()
	}
	if failed.all == nil {
		for key, s := range w.desired {
			if failed.of[key] != nil { // some of its load balancers may exist: the service is written again, or removed
				s = &proto.BalancedServiceUpdate{Namespace: s.GetNamespace(), Name: s.GetName()}
			}
			emit(key, s)
		}
	}
	op.Done(failed.all)
}

// flushServices compares load balancers once for all waiting operations, and again after pods among their backends have changed.
func (w *Wiring) flushServices() {
	if len(w.waiting) == 0 && (w.balanced || !w.reported) {
		return
	}
	w.reported = true
	failed := w.syncServices()
	if err := failed.any(); err != nil && !w.balanced && len(w.waiting) == 0 {
		w.Log.Warn("not all services are programmed", "error", err)
	}
	for _, q := range w.waiting {
		if w.desired[q.key] == nil {
			q.op.Done(cmp.Or(failed.all, failed.stale))
			continue
		}
		q.op.Done(scheduler.OutcomeUnknown(cmp.Or(failed.all, failed.of[q.key]))) // some of its load balancers may exist, and are removed with it
	}
	w.waiting = nil
}

// failures holds the errors of all services, of single services by key, and of objects that must be removed.
type failures struct {
	all, stale error
	of         map[string]error
}

func (f failures) any() error {
	return errors.Join(append(slices.Collect(maps.Values(f.of)), f.all, f.stale)...)
}

// blame adds an error to the services with the given keys; without keys, to the objects that must be removed.
func (f *failures) blame(err error, keys ...string) {
	switch {
	case err == nil:
	case len(keys) == 0:
		f.stale = errors.Join(f.stale, err)
	default:
		for _, key := range keys {
			f.of[key] = errors.Join(f.of[key], err)
		}
	}
}

// syncServices makes HNS have the load balancers of all services, and no others of ours.
func (w *Wiring) syncServices() failures {
	if err := w.recall(); err != nil {
		return failures{all: err}
	}
	has, err := w.lookAtServices()
	if err != nil {
		return failures{all: err}
	}
	failed := failures{of: map[string]error{}}
	want, conflicts := w.wanted(has.own)
	endpoints := w.knownOf(has.endpoints)
	if w.moveRemotes(endpoints, want, &failed) {
		if has, err = w.lookAtServices(); err != nil {
			return failures{all: err}
		}
		endpoints = w.knownOf(has.endpoints)
	}
	w.addRemotes(endpoints, want, &failed)
	specs := map[string]wantedLB{}
	for key, list := range want {
		for _, b := range list {
			if lb, ok := b.spec(endpoints.byAddr, has.features, endpoints.source(b.IPv6)); ok {
				specs[b.id()] = wantedLB{lb, key}
			}
		}
	}
	w.syncBalancers(specs, endpoints, has, &failed)
	w.removeRemotes(endpoints, want, &failed)
	w.balanced = failed.any() == nil
	for key, err := range conflicts { // a retry does not help before a service changes
		failed.blame(err, key)
	}
	return failed
}

// wantedLB is a load balancer, and the key of its service.
type wantedLB struct {
	spec hcn.LoadBalancer
	key  string
}

// wanted returns the load balancers of all services, by key. Each has one owner: the processor of services decides which service has a
// frontend (docs/adr/0016). If two services still have the same load balancer (HNS has one for a port at all addresses of the node), the first
// one gets it, and the other one gets an error.
func (w *Wiring) wanted(own []netip.Addr) (want map[string][]balancer, conflicts map[string]error) {
	want, conflicts = map[string][]balancer{}, map[string]error{}
	owner := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(w.desired)) {
		for _, b := range balancers(w.desired[key], own) {
			if other, taken := owner[b.id()]; taken {
				conflicts[key] = errors.Join(conflicts[key], fmt.Errorf("%s is the load balancer of service %s, and HNS has one only: "+
					"change the port or the address of one of them", b, strings.TrimPrefix(other, nb.DriverServicePrefix)))
				continue
			}
			owner[b.id()] = key
			want[key] = append(want[key], b)
		}
	}
	return want, conflicts
}

// serviceState holds the data that load balancers depend on besides services.
type serviceState struct {
	features  hcn.Features
	own       []netip.Addr // the node's addresses
	endpoints []hcn.Endpoint
	balancers []hcn.LoadBalancer
	settled   bool // no call was running that may create more
}

func (w *Wiring) lookAtServices() (serviceState, error) {
	settled := w.calls.Hanging() == 0
	s, err := within(w, "list of load balancers", w.readServices)
	s.settled = settled
	return s, err
}

// readServices reads the state of HNS. It runs on its own goroutine.
func (w *Wiring) readServices() (s serviceState, err error) {
	if s.features, err = w.HCN.Features(); err != nil {
		return s, err
	}
	if s.own, err = w.NodeAddresses(); err != nil {
		return s, fmt.Errorf("addresses of the node: %w", err)
	}
	if s.endpoints, err = w.HCN.ListEndpoints(); err != nil {
		return s, err
	}
	s.balancers, err = w.HCN.ListLoadBalancers()
	return s, err
}

// known holds the endpoints of our network in HNS.
type known struct {
	network string
	overlay bool
	byAddr  map[netip.Addr]string
	remotes map[netip.Addr]string
	ours    map[string]bool // IDs
	all     map[string]bool // IDs, including those of other networks
	sources []netip.Addr
	// provider is this node's address on an overlay; providers holds those of the endpoints in remotes, by ID.
	provider  netip.Addr
	providers map[string]string
}

// source returns the source address of an overlay's load balancers.
func (k *known) source(ipv6 bool) string {
	for _, a := range k.sources {
		if a.Is6() == ipv6 {
			return a.String()
		}
	}
	return ""
}

// sendsFromUs reports whether a load balancer sends from our endpoint of an overlay.
func (k *known) sendsFromUs(lb hcn.LoadBalancer) bool {
	source, err := netip.ParseAddr(lb.SourceVIP)
	return err == nil && slices.Contains(k.sources, source)
}

// orphaned reports whether all endpoints of a load balancer have been removed.
func (k *known) orphaned(lb hcn.LoadBalancer) bool {
	return !slices.ContainsFunc(lb.HostComputeEndpoints, func(id string) bool { return k.all[id] })
}

func (w *Wiring) knownOf(list []hcn.Endpoint) *known {
	k := &known{network: w.networks[w.Network], byAddr: map[netip.Addr]string{}, remotes: map[netip.Addr]string{}, ours: map[string]bool{},
		all: map[string]bool{}, providers: map[string]string{}}
	for _, e := range list {
		k.all[e.ID] = true
		if e.HostComputeNetwork != k.network {
			continue
		}
		k.ours[e.ID] = true
		at, err := providerOf(e) // an endpoint with an unreadable address is written again
		if k.providers[e.ID] = canonical(at); e.Name == sourceEndpoint && err == nil {
			k.provider, _ = netip.ParseAddr(at)
		}
		for _, c := range e.IPConfigurations {
			a, err := netip.ParseAddr(c.IPAddress)
			if err != nil {
				continue
			}
			switch {
			case e.Name == sourceEndpoint:
				k.overlay, k.sources = true, append(k.sources, a)
			case strings.HasPrefix(e.Name, remotePrefix):
				k.remotes[a], k.byAddr[a] = e.ID, e.ID
			case e.Name != gatewayEndpoint:
				k.byAddr[a] = e.ID
			}
		}
	}
	return k
}

// usersOf returns the services that have each backend, and the backends in order.
func usersOf(want map[string][]balancer) (users map[netip.Addr][]string, addrs []netip.Addr) {
	users = map[netip.Addr][]string{}
	for key, list := range want {
		for _, b := range list {
			for _, a := range b.Backends {
				users[a] = append(users[a], key)
			}
		}
	}
	return users, slices.SortedFunc(maps.Keys(users), netip.Addr.Compare)
}

// addRemotes makes endpoints for backends that are not pods of this node.
func (w *Wiring) addRemotes(k *known, want map[string][]balancer, failed *failures) {
	ofPods := func(a netip.Addr) bool {
		return slices.ContainsFunc(w.subnets, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	users, addrs := usersOf(want)
	for _, a := range addrs {
		if k.byAddr[a] != "" || ofPods(a) { // a pod of this node that is being connected, or has been removed
			continue
		}
		e, err := w.remoteSpec(k, a)
		if err != nil {
			failed.blame(scheduler.Retry(err), users[a]...)
			continue
		}
		made, err := within(w, "backend "+a.String(), func() (hcn.Endpoint, error) { return w.HCN.CreateEndpoint(e) })
		if err != nil {
			failed.blame(err, users[a]...)
			continue
		}
		k.byAddr[a], k.remotes[a], k.ours[made.ID] = made.ID, made.ID, true
	}
}

// remoteMAC returns a MAC address that no other endpoint has; its value does not matter, because the overlay's router replaces it.
func remoteMAC(a netip.Addr) string {
	b := a.As16()
	return fmt.Sprintf("02-11-%02X-%02X-%02X-%02X", b[12], b[13], b[14], b[15])
}

// syncBalancers removes first, because an address and port can belong to only one load balancer.
func (w *Wiring) syncBalancers(specs map[string]wantedLB, k *known, has serviceState, failed *failures) {
	ours := w.oursOf(k, has)
	for _, lb := range has.balancers {
		if len(lb.PortMappings) != 1 {
			continue // of another program
		}
		id := lbID(lb)
		want, wanted := specs[id]
		if !ours[lb.ID] && !(wanted && k.orphaned(lb)) {
			continue // of another program
		}
		switch {
		case wanted && sameLB(want.spec, lb):
			delete(specs, id)
		case wanted && has.features.ModifyLoadbalancer:
			delete(specs, id)
			failed.blame(w.do("load balancer "+id, func() error { _, err := w.HCN.UpdateLoadBalancer(lb.ID, want.spec); return err }), want.key)
		default:
			err := w.do("load balancer "+id, func() error { return gone(w.HCN.DeleteLoadBalancer(lb.ID)) })
			if wanted {
				failed.blame(err, want.key)
			} else {
				failed.blame(err)
			}
		}
	}
	w.makeBalancers(specs, failed)
}

// makeBalancers makes load balancers between two writes of the record: the first one has their intents, the second one their IDs.
func (w *Wiring) makeBalancers(specs map[string]wantedLB, failed *failures) {
	blame := func(err error) {
		for _, want := range specs {
			failed.blame(err, want.key)
		}
		if len(specs) == 0 {
			failed.blame(err)
		}
	}
	if err := w.intend(specs); err != nil {
		blame(err)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(specs)) {
		want := specs[id]
		made, err := within(w, "load balancer "+id, func() (hcn.LoadBalancer, error) { return w.HCN.CreateLoadBalancer(want.spec) })
		if err == nil {
			w.balancers[made.ID] = true
		}
		if !errors.Is(err, hnscall.ErrNoAnswer) { // otherwise it may still be made later
			delete(w.balancers, intent(want.spec))
		}
		failed.blame(err, want.key)
	}
	blame(w.storeRecord())
}

// removeRemotes removes endpoints of backends that no service has any more.
func (w *Wiring) removeRemotes(k *known, want map[string][]balancer, failed *failures) {
	users, _ := usersOf(want)
	for _, a := range slices.SortedFunc(maps.Keys(k.remotes), netip.Addr.Compare) {
		if len(users[a]) > 0 {
			continue
		}
		id := k.remotes[a]
		failed.blame(w.do("backend "+a.String(), func() error { return gone(w.HCN.DeleteEndpoint(id)) }))
	}
}
