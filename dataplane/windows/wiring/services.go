package wiring

import (
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
)

// remotePrefix starts the names of the endpoints that stand for backends on other nodes.
const remotePrefix = "contiv-remote-"

// serviceKind are services. Their load balancers share endpoints of backends, so all of them are compared with HNS at once.
func (w *Wiring) serviceKind() scheduler.Kind[*proto.BalancedServiceUpdate] {
	put := func(op *scheduler.Op, key string, s *proto.BalancedServiceUpdate) {
		w.desired[key] = s
		w.waiting = append(w.waiting, waitingService{op, key})
	}
	return scheduler.Kind[*proto.BalancedServiceUpdate]{
		Name: "hns-service", Prefix: nb.DriverServicePrefix, Rank: scheduler.RankFeature + 6,
		Deps:   func(_ string, _ *proto.BalancedServiceUpdate, add func(string)) { add(nb.HNSNetworkKey(w.Network)) },
		Equal:  func(_ string, a, b *proto.BalancedServiceUpdate) bool { return pb.Equal(a, b) },
		Create: put,
		Update: func(op *scheduler.Op, key string, _, s *proto.BalancedServiceUpdate) { put(op, key, s) },
		Delete: func(op *scheduler.Op, key string, _ *proto.BalancedServiceUpdate) {
			delete(w.desired, key)
			w.waiting = append(w.waiting, waitingService{op, key})
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *proto.BalancedServiceUpdate)) {
			// HNS does not know services: those that we know are there, if their load balancers are.
			if len(w.desired) > 0 {
				if err := w.syncServices(); err != nil {
					w.Log.Warn("not all services are programmed", "error", err)
				}
			}
			for key, s := range w.desired {
				emit(key, s)
			}
			op.Done(nil)
		},
	}
}

// flushServices compares load balancers once for all operations that wait, and again after the pods that they lead to have changed.
func (w *Wiring) flushServices() {
	if len(w.waiting) == 0 && (w.balanced || len(w.desired) == 0) {
		return
	}
	err := hnsError("load balancers", w.syncServices())
	if err != nil && len(w.waiting) == 0 {
		w.Log.Warn("not all services are programmed", "error", err)
	}
	for _, q := range w.waiting {
		q.op.Done(err)
	}
	w.waiting = nil
}

// syncServices makes HNS have the load balancers of all services, and no others of ours.
func (w *Wiring) syncServices() error {
	features, err := w.HCN.Features()
	if err != nil {
		return err
	}
	own, err := w.NodeAddresses()
	if err != nil {
		return err
	}
	var want []balancer
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(w.desired)) {
		for _, b := range balancers(w.desired[key], own) {
			if !seen[b.id()] { // two services with one address: the first keeps it
				seen[b.id()] = true
				want = append(want, b)
			}
		}
	}
	endpoints, err := w.readEndpoints()
	if err != nil {
		return err
	}
	errs := w.addRemotes(endpoints, want)
	specs := map[string]hcn.LoadBalancer{}
	for _, b := range want {
		if lb, ok := b.spec(endpoints.byAddr, features, endpoints.source(b.IPv6)); ok {
			specs[b.id()] = lb
		}
	}
	errs = append(errs, w.syncBalancers(specs, endpoints, features)...)
	errs = append(errs, w.removeRemotes(endpoints, want)...)
	w.balanced = len(errs) == 0
	return errors.Join(errs...)
}

// known is what HNS has of endpoints of our network.
type known struct {
	network string
	overlay bool
	byAddr  map[netip.Addr]string
	remotes map[netip.Addr]string
	ours    map[string]bool // IDs
	sources []netip.Addr
}

// source is the address that an overlay's load balancers send from.
func (k *known) source(ipv6 bool) string {
	for _, a := range k.sources {
		if a.Is6() == ipv6 {
			return a.String()
		}
	}
	return ""
}

func (w *Wiring) readEndpoints() (*known, error) {
	list, err := w.HCN.ListEndpoints()
	if err != nil {
		return nil, err
	}
	k := &known{network: w.networks[w.Network], byAddr: map[netip.Addr]string{}, remotes: map[netip.Addr]string{}, ours: map[string]bool{}}
	for _, e := range list {
		if e.HostComputeNetwork != k.network {
			continue
		}
		k.ours[e.ID] = true
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
	return k, nil
}

// addRemotes makes endpoints for backends that are not pods of this node.
func (w *Wiring) addRemotes(k *known, want []balancer) (errs []error) {
	ofPods := func(a netip.Addr) bool {
		return slices.ContainsFunc(w.subnets, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	for _, b := range want {
		for _, a := range b.Backends {
			if k.byAddr[a] != "" || ofPods(a) { // a pod of this node that is being connected, or has gone
				continue
			}
			e := hcn.Endpoint{
				Name: remotePrefix + a.String(), HostComputeNetwork: k.network, Flags: hcn.FlagRemote, SchemaVersion: hcn.V2,
				IPConfigurations: []hcn.IPConfig{ipConfig(a.String(), "")},
			}
			if k.overlay {
				e.MacAddress = remoteMAC(a)
			}
			made, err := w.HCN.CreateEndpoint(e)
			if err != nil {
				errs = append(errs, fmt.Errorf("backend %s: %w", a, err))
				continue
			}
			k.byAddr[a], k.remotes[a], k.ours[made.ID] = made.ID, made.ID, true
		}
	}
	return errs
}

// remoteMAC is any MAC address that no other endpoint has: the overlay's router replaces it.
func remoteMAC(a netip.Addr) string {
	b := a.As16()
	return fmt.Sprintf("02-11-%02X-%02X-%02X-%02X", b[12], b[13], b[14], b[15])
}

// syncBalancers removes first: an address and port are one load balancer's.
func (w *Wiring) syncBalancers(specs map[string]hcn.LoadBalancer, k *known, features hcn.Features) (errs []error) {
	list, err := w.HCN.ListLoadBalancers()
	if err != nil {
		return []error{err}
	}
	for _, lb := range list {
		if len(lb.PortMappings) != 1 || !slices.ContainsFunc(lb.HostComputeEndpoints, func(id string) bool { return k.ours[id] }) {
			continue // another program's
		}
		spec, wanted := specs[lbID(lb)]
		switch {
		case wanted && sameLB(spec, lb):
			delete(specs, lbID(lb))
		case wanted && features.ModifyLoadbalancer:
			delete(specs, lbID(lb))
			if _, err := w.HCN.UpdateLoadBalancer(lb.ID, spec); err != nil {
				errs = append(errs, fmt.Errorf("change load balancer %s: %w", lbID(lb), err))
			}
		default:
			if err := w.HCN.DeleteLoadBalancer(lb.ID); err != nil && !errors.Is(err, hcn.ErrNotFound) {
				errs = append(errs, fmt.Errorf("remove load balancer %s: %w", lbID(lb), err))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(specs)) {
		if _, err := w.HCN.CreateLoadBalancer(specs[id]); err != nil {
			errs = append(errs, fmt.Errorf("load balancer %s: %w", id, err))
		}
	}
	return errs
}

// removeRemotes removes endpoints of backends that no service has any more.
func (w *Wiring) removeRemotes(k *known, want []balancer) (errs []error) {
	used := map[netip.Addr]bool{}
	for _, b := range want {
		for _, a := range b.Backends {
			used[a] = true
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(k.remotes), byAddr) {
		if used[a] {
			continue
		}
		if err := w.HCN.DeleteEndpoint(k.remotes[a]); err != nil && !errors.Is(err, hcn.ErrNotFound) {
			errs = append(errs, fmt.Errorf("backend %s: %w", a, err))
		}
	}
	return errs
}
