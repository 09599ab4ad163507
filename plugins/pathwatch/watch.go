package pathwatch

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/nodesync"
)

// Timing: a round begins every second; the timeout for answers is a little shorter.
const (
	every         = time.Second
	answerTimeout = 800 * time.Millisecond
	aliveTimeout  = 500 * time.Millisecond
	repairTimeout = 30 * time.Second
)

// Dataplane is the interface of the watch to the dataplane.
type Dataplane interface {
	// Programmed reports whether the dataplane is running and has been programmed; otherwise it is not checked.
	Programmed() bool
	// Alive checks that the dataplane responds.
	Alive(ctx context.Context) error
	// Links reads the counters of the uplink and of the link to the host; nil if there is none.
	Links(ctx context.Context) (uplink, host *Link, err error)
}

// SessionTable is the table of NAT sessions.
type SessionTable interface {
	// Sessions returns how full the table is.
	Sessions() Sessions
}

// Limits reports the senders that have reached their limit of connections.
type Limits interface {
	// Refusing returns all senders whose new connections may have been refused, the same ones in each call, with their counters.
	Refusing(ctx context.Context) ([]Refusing, error)
}

// Echo probes addresses.
type Echo interface {
	// Query returns for each address the round-trip time; a negative value means that there was no answer.
	Query(ctx context.Context, addrs []netip.Addr, timeout time.Duration) ([]time.Duration, error)
}

// Repair holds the repairs of a broken data path.
type Repair interface {
	// Recreate deletes and creates the link with all values that depend on it.
	Recreate(ctx context.Context, key, why string) error
	// Resync requests a comparison of dataplane and desired state.
	Resync(why string) error
}

// Nodes returns the nodes of the cluster.
type Nodes interface {
	GetNodeID() uint32
	GetAllNodes() nodesync.Nodes
}

// Addresses returns the addresses that follow from the ID of a node.
type Addresses interface {
	PodSubnets(nodeID uint32) ([]ipam.PodSubnet, error)
	HostInterconnect(nodeID uint32) ([]ipam.HostLink, error)
}

// Deps are the plugin's dependencies.
type Deps struct {
	infra.PluginDeps
	NodeName  string
	Nodes     Nodes
	Addresses Addresses
	// AsksGateway is true if the node's own gateway belongs to VPP, and not to the kernel.
	ProbesGateway bool
	Dataplane     Dataplane
	Table         SessionTable // nil: there is none
	Limits        Limits       // nil: no sender has its own limit
	Echo          Echo
	Repair        Repair   // nil: faults are only reported
	Reporter      Reporter // nil: there is no Kubernetes to report to
	HTTP          rest.HTTPHandlers
	Metrics       prometheus.Registerer
	Times         Times // zero: the default ones
}

// Plugin watches the data path.
type Plugin struct {
	Deps
	log     *slog.Logger
	core    *core // used only by Run's goroutine
	metrics *metrics
	reports *reportQueue
	state   atomic.Pointer[State] // from any goroutine; nil before the first round
	repairs repairs
	book    book

	mu      sync.Mutex
	targets *targets // guarded by mu; new targets since the last round; nil: unchanged

	gateway []netip.Addr // used only by Run's goroutine
	known   bool         // targets have been set; used only by Run's goroutine
}

// targets holds the addresses to probe.
type targets struct {
	self    uint32
	gateway []netip.Addr
	peers   []Peer
}

var _ api.EventHandler = (*Plugin)(nil)

// New returns the plugin, and registers its handler and metrics; Run starts the watch.
func New(deps Deps) (*Plugin, error) {
	if deps.Times == (Times{}) {
		deps.Times = defaultTimes()
	}
	p := &Plugin{Deps: deps, log: deps.Logger(), core: newCore(deps.Times), reports: newReportQueue(deps.NodeName)}
	var err error
	if p.metrics, err = newMetrics(deps.Metrics, p.State); err != nil {
		return nil, err
	}
	if deps.HTTP != nil {
		deps.HTTP.RegisterHTTPHandler(Path, p.serve)
	}
	return p, nil
}

// String implements api.EventHandler.
func (p *Plugin) String() string { return "pathwatch" }

// HandlesEvent implements api.EventHandler. It selects the events that change the peers.
func (p *Plugin) HandlesEvent(ev api.Event) bool {
	if _, ok := ev.(*nodesync.NodeUpdate); ok {
		return true
	}
	return ev.Method().IsResync() && ev.Method() != api.DownstreamResync
}

// Resync implements api.EventHandler.
func (p *Plugin) Resync(api.Event, api.KubeStateData, int, api.ResyncOperations) error {
	return p.find()
}

// Update implements api.EventHandler.
func (p *Plugin) Update(api.Event, api.UpdateOperations) (string, error) { return "", p.find() }

// Revert implements api.EventHandler.
func (p *Plugin) Revert(api.Event) error { return nil }

// find collects the addresses to probe.
func (p *Plugin) find() error {
	t := &targets{self: p.Nodes.GetNodeID()}
	if p.ProbesGateway {
		links, err := p.Addresses.HostInterconnect(t.self)
		if err != nil {
			return fmt.Errorf("addresses of the host's link: %w", err)
		}
		for _, l := range links {
			t.gateway = append(t.gateway, l.VPP.Addr())
		}
	}
	for name, node := range p.Nodes.GetAllNodes() {
		if name == p.NodeName || node.ID == t.self {
			continue
		}
		subnets, err := p.Addresses.PodSubnets(node.ID)
		if err != nil { // such a node is not connected either, which ipnet reports
			p.log.Debug("a node is not watched", "node", name, "error", err)
			continue
		}
		peer := Peer{Name: name, ID: node.ID}
		for _, s := range subnets {
			peer.Addrs = append(peer.Addrs, s.Gateway)
		}
		t.peers = append(t.peers, peer)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = t
	return nil
}

// State returns the state of the data path as of the last round.
func (p *Plugin) State() State {
	if s := p.state.Load(); s != nil {
		return *s
	}
	return State{Causes: []Cause{}}
}

// Ready returns the reason why the data path does not serve the node's pods, or nil.
func (p *Plugin) Ready() error { return p.State().Ready() }

// Warnings returns the faults that do not make the node unready.
func (p *Plugin) Warnings() (list []Cause) {
	for _, c := range p.State().Causes { // the slice is shared by all callers of State
		if !c.Unready {
			list = append(list, c)
		}
	}
	return list
}

// Run watches until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		p.round(ctx)
	}
}

// round checks the data path once, and runs the repair that is due.
func (p *Plugin) round(ctx context.Context) {
	p.mu.Lock()
	t := p.targets
	p.targets = nil
	p.mu.Unlock()
	if t != nil {
		p.core.SetPeers(t.self, t.peers)
		p.book.keep(t.peers)
		p.gateway, p.known = t.gateway, true
	}
	if !p.known || !p.Dataplane.Programmed() {
		p.core.Pause()
		p.publish(time.Now(), false)
		return
	}
	r, err := p.observe(ctx)
	if ctx.Err() != nil || !p.Dataplane.Programmed() { // the dataplane has stopped meanwhile
		return
	}
	if err != nil {
		p.log.Debug("not everything of the data path can be seen", "error", err)
	}
	action := p.core.Step(r)
	p.book.note(r.At, r.Peers, p.core.Down)
	p.publish(r.At, r.Alive)
	if !action.None() && p.Repair != nil {
		p.repair(ctx, action)
	}
}

// observe sends the probes and reads the counters.
func (p *Plugin) observe(ctx context.Context) (Round, error) {
	r := Round{Peers: p.core.Query(), Alive: true}
	queried := slices.Concat(p.gateway, addressesOf(r.Peers))
	took, err := p.Echo.Query(ctx, queried, answerTimeout)
	if err != nil { // a fault of this node, so no peer counts as silent
		r.Peers = nil
		r.At, r.Alive = time.Now(), false
		return r, fmt.Errorf("echo: %w", err)
	}
	for i := range p.gateway {
		if took[i] >= 0 {
			r.Gateway = answered
		} else if r.Gateway == notQueried {
			r.Gateway = silent
		}
	}
	for i := range r.Peers {
		rtt := took[len(p.gateway)+i]
		r.Peers[i].OK, r.Peers[i].Took = rtt >= 0, max(rtt, 0)
		p.metrics.queried(rtt)
	}
	if r.Gateway == silent {
		alive, cancel := context.WithTimeout(ctx, aliveTimeout)
		r.Alive = p.Dataplane.Alive(alive) == nil
		cancel()
	}
	r.Uplink, r.Host, err = p.Dataplane.Links(ctx)
	if p.Table != nil {
		r.Sessions = p.Table.Sessions()
	}
	if p.Limits != nil && err == nil {
		r.Refusing, err = p.Limits.Refusing(ctx)
	}
	r.At = time.Now()
	return r, err
}

// publish stores the current state, and logs the changes.
func (p *Plugin) publish(at time.Time, seen bool) {
	before, now := p.State(), p.core.State()
	p.state.Store(&now)
	has := func(s State, c Cause) bool {
		return slices.ContainsFunc(s.Causes, func(o Cause) bool { return o.Kind == c.Kind && o.Object == c.Object })
	}
	for _, c := range now.Causes {
		if !has(before, c) {
			p.log.Warn("data path: fault", "reason", c.Kind, "object", c.Object, "detail", c.Text, "unready", c.Unready)
		}
	}
	for _, c := range before.Causes {
		if !has(now, c) {
			p.log.Info("data path: recovered", "reason", c.Kind, "object", c.Object, "outage", at.Sub(c.Since).Round(time.Second))
		}
	}
	if seen {
		p.reports.see(at, now)
	}
}

// repair runs the repair that the core has returned.
func (p *Plugin) repair(ctx context.Context, a action) {
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	p.log.Warn("data path: repairing", "link", a.Recreate, "resync", a.Resync, "reason", a.Why.String())
	start := time.Now()
	var err error
	if a.Resync {
		err = p.Repair.Resync(a.Why.String())
	} else {
		err = p.Repair.Recreate(ctx, a.Recreate, a.Why.String())
		p.core.Recreated()
	}
	if err != nil {
		p.log.Error("data path: repair failed", "link", a.Recreate, "error", err)
	}
	p.metrics.repaired(a, err)
	p.repairs.add(a, start, err)
	p.reports.repaired(a, err)
}
