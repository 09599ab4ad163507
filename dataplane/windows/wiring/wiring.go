package wiring

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
)

// HostRoutes manages the node's routes that are ours.
type HostRoutes interface {
	List() ([]HostRoute, error)
	Add(HostRoute) error
	// Remove returns nil for a route that does not exist any more.
	Remove(HostRoute) error
}

// HostRoute is a route to the pods of another node.
type HostRoute struct {
	Destination netip.Prefix
	NextHop     netip.Addr
}

// Deps holds the dependencies of the descriptors.
type Deps struct {
	HCN    HCN
	Routes HostRoutes
	// Closed returns the policies that a pod's endpoint is created with, so that it is never open before its network policy is known; see
	// windataplane.ClosedRulesOn. It may call HNS.
	Closed func() ([]hcn.Policy, error)
	// NodeAddresses returns the addresses of this node: a service's port at one of them is a node port.
	NodeAddresses func() ([]netip.Addr, error)
	// Network is the name of the network whose endpoints are backends of load balancers.
	Network string
	// Record stores the identities of load balancers across restarts; nil: on an L2 bridge, load balancers whose endpoints were removed in between
	// stay.
	Record Record
	Log    *slog.Logger

	// Calls has the timeout of one call (0: 15 s) and the clock; New sets the rest. One transaction waits at most once for an HNS that does not
	// respond.
	Calls hnscall.Config
}

const defaultCallTimeout = 15 * time.Second

// Wiring is the backend of the descriptors. Its methods run on the scheduler's goroutine.
type Wiring struct {
	Deps
	calls     *hnscall.Caller
	networks  map[string]string // IDs in HNS by name
	endpoints map[string]string // the same of pods' endpoints
	subnets   []netip.Prefix    // of the network
	rigid     bool              // HNS does not change in place the settings that depend on the node's addresses

	desired  map[string]*proto.BalancedServiceUpdate // by key
	waiting  []waitingService
	reported bool // desired is complete: the first wave of services has arrived, or there are none
	balanced bool // HNS has the load balancers of desired
	// balancers holds the IDs of our load balancers: HNS may list them after their endpoints, which show that they are ours, have been removed. Load
	// balancers that are being made are stored by their intents, with the value false if this agent makes them. nil: not read yet.
	balancers map[string]bool
	recorded  map[string]bool // the content of Record
	nodes     nodes
}

// waitingService is an operation on a service, which ends after load balancers have been compared.
type waitingService struct {
	op  *scheduler.Op
	key string
}

// New makes the backend of the descriptors.
func New(deps Deps) *Wiring {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Calls.Timeout <= 0 {
		deps.Calls.Timeout = defaultCallTimeout
	}
	deps.Calls.Log, deps.Calls.MaxGivenUp = deps.Log, 1
	deps.HCN = folded{deps.HCN}
	return &Wiring{
		Deps: deps, networks: map[string]string{}, endpoints: map[string]string{}, desired: map[string]*proto.BalancedServiceUpdate{},
		nodes: nodes{blocks: map[netip.Prefix]string{}, at: map[string][]netip.Addr{}, owners: map[netip.Addr]string{}},
		calls: hnscall.New(deps.Calls),
	}
}

var (
	_ scheduler.Backend = (*Wiring)(nil)
	_ scheduler.Pinner  = (*Wiring)(nil)
)

// Pin implements scheduler.Pinner: a transaction begins, so timeouts of HNS are counted from 0 again.
func (w *Wiring) Pin() { w.calls.Pass() }

// Flush implements scheduler.Backend. Calls of HNS are complete when they return; only services are deferred, because many may have changed.
func (w *Wiring) Flush(context.Context) { w.flushServices() }

// Close ends the jobs of New. The error names calls of HNS that have not ended.
func (w *Wiring) Close() error { return w.calls.Close() }

// Register adds the descriptors to a scheduler, which has w as a backend.
func Register(s *scheduler.Scheduler, w *Wiring) error {
	return errors.Join(scheduler.Register(s, w.networkDescriptor()), scheduler.Register(s, w.endpointDescriptor()),
		scheduler.Register(s, w.routeDescriptor()), scheduler.Register(s, w.serviceDescriptor()))
}

// dashed returns a MAC address in the notation of Windows.
func dashed(mac string) string { return strings.ToUpper(strings.ReplaceAll(mac, ":", "-")) }

// colons returns a MAC address in the usual notation.
func colons(mac string) string {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return mac
	}
	return hw.String()
}

// canonical returns an address or a net in a fixed spelling for comparison; HNS may use another one.
func canonical(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String()
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	return text
}

// sameTexts compares addresses or nets, whatever their order and spelling.
func sameTexts(a, b []string) bool {
	norm := func(list []string) []string {
		out := make([]string, len(list))
		for i, text := range list {
			out[i] = canonical(text)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(norm(a), norm(b))
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
