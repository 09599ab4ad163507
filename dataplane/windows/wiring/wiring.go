package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// HostRoutes are the node's own routes, as far as they are ours.
type HostRoutes interface {
	List() ([]HostRoute, error)
	Add(HostRoute) error
	// Remove succeeds for a route that is gone.
	Remove(HostRoute) error
}

// HostRoute leads to the pods of another node.
type HostRoute struct {
	Destination netip.Prefix
	NextHop     netip.Addr
}

// Deps are what the kinds work with.
type Deps struct {
	HCN    hcn.API
	Routes HostRoutes
	// NodeAddresses are this node's: a service's port at one of them is a node port.
	NodeAddresses func() ([]netip.Addr, error)
	// Network is the name of the network whose endpoints load balancers lead to.
	Network string
	Log     *slog.Logger
}

// Wiring is the backend of the kinds. Its methods run on the scheduler's goroutine.
type Wiring struct {
	Deps
	networks  map[string]string // IDs in HNS by name
	endpoints map[string]string // the same of pods' endpoints
	subnets   []netip.Prefix    // of the network

	desired  map[string]*proto.BalancedServiceUpdate // by key
	waiting  []waitingService
	balanced bool // load balancers are to be compared
}

// waitingService is an operation on a service, which ends when load balancers have been compared.
type waitingService struct {
	op  *scheduler.Op
	key string
}

// New makes the backend of the kinds.
func New(deps Deps) *Wiring {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	return &Wiring{
		Deps: deps, networks: map[string]string{}, endpoints: map[string]string{}, desired: map[string]*proto.BalancedServiceUpdate{},
	}
}

var _ scheduler.Backend = (*Wiring)(nil)

// Flush implements scheduler.Backend: calls of HNS end when they return; what waits are services, of which many may have changed.
func (w *Wiring) Flush(context.Context) { w.flushServices() }

// Register adds the kinds to a scheduler, of which w is a backend.
func Register(s *scheduler.Scheduler, w *Wiring) error {
	return errors.Join(scheduler.Register(s, w.networkKind()), scheduler.Register(s, w.endpointKind()),
		scheduler.Register(s, w.routeKind()), scheduler.Register(s, w.serviceKind()))
}

// hnsError says whether a call may succeed later: HNS refuses what it cannot do for good.
func hnsError(what string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", what, err)
	if errors.Is(err, hcn.ErrUnsupported) || errors.Is(err, hcn.ErrInvalid) {
		return err
	}
	return scheduler.Retry(err)
}

// dashed is a MAC address as Windows writes it.
func dashed(mac string) string { return strings.ToUpper(strings.ReplaceAll(mac, ":", "-")) }

// colons is a MAC address as everything else writes it.
func colons(mac string) string {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return mac
	}
	return hw.String()
}

func defaultRoute(gateway string) hcn.Route {
	dst := "0.0.0.0/0"
	if a, err := netip.ParseAddr(gateway); err == nil && a.Is6() {
		dst = "::/0"
	}
	return hcn.Route{NextHop: gateway, DestinationPrefix: dst}
}

// policies collects policies.
type policies struct {
	list []hcn.Policy
	err  error
}

func (p *policies) add(kind hcn.PolicyType, settings any) {
	one, err := hcn.NewPolicy(kind, settings)
	p.list, p.err = append(p.list, one), errors.Join(p.err, err)
}
