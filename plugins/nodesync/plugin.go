package nodesync

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// stopTimeout bounds Close.
const stopTimeout = 10 * time.Second

// NodeSync is the plugin that synchronizes Kubernetes nodes with a VPP vswitch through a key-value database (by default etcd). It allocates
// the first free positive integer, starting with 1, as a cluster-wide node identifier. The addresses of endpoints on this node follow from
// it, so that they do not collide with those of other nodes. NodeSync also publishes the VPP-side addresses of the node and their changes,
// which Kubernetes does not have.
type NodeSync struct {
	Deps
	state *state // a pointer, because DefaultPlugin is a copy
}

// state is the data of NodeSync.
type state struct {
	// set by options
	preferred     func() (uint32, bool)
	identityStore IdentityStore
	times         intervals
	http          rest.HTTPHandlers
	kubernetes    func() error

	nodeID     atomic.Uint32
	connected  atomic.Bool // the database has responded at least once
	jobs       *lifecycle.Group
	store      cas.Store
	keeper     *keeper
	holds      *holds
	departed   *departures
	remembered remembered

	// used by the event loop only
	identity *identity
	claim    claim
	loss     *lossError // the reason why the ID no longer belongs to this node
	sources  sources
	nodes    Nodes
	// published holds the addresses of the last call of PublishNodeIPs, by IP version
	published     map[contivconf.IPVersion]contivconf.IPsWithNetworks
	publishedMgmt []string
	// version is the version of the agent, for the record.
	version string
}

var (
	_ API                     = (*NodeSync)(nil)
	_ controller.EventHandler = (*NodeSync)(nil)
)

// NewPlugin creates a new plugin with the provided options.
func NewPlugin(opts ...Option) *NodeSync {
	ns := &NodeSync{state: &state{
		sources:   newSources(0),
		nodes:     Nodes{},
		published: map[contivconf.IPVersion]contivconf.IPsWithNetworks{},
	}}
	ns.SetName("nodesync")
	for _, o := range opts {
		o(ns)
	}
	return ns
}

// Init reads the node's identity and starts the jobs.
func (ns *NodeSync) Init() error {
	if ns.ServiceLabel == nil || ns.EventLoop == nil || ns.DB == nil {
		return errors.New("nodesync: ServiceLabel, EventLoop or DB is missing in Deps")
	}
	name := ns.ServiceLabel.GetAgentLabel()
	if name == "" {
		return errors.New("nodesync: the node has no name; set the node name")
	}
	s := ns.state
	var err error
	if s.identity, err = loadIdentity(s.identityStore, name, ns.Logger()); err != nil {
		return fmt.Errorf("nodesync: %w", err)
	}
	s.store = storeOf(ns.DB)
	s.times = s.times.complete(ns.DB)
	s.holds = newHolds(s.times.Hold)
	s.departed = newDepartures(name, s.times.Departed)
	if s.kubernetes != nil {
		s.departed.current = s.kubernetes
	}
	s.keeper = &keeper{
		store: s.store, me: s.identity.self(), quarantine: s.times.Quarantine, log: ns.Logger(), wake: make(chan struct{}, 1),
		lost: func(loss *lossError) error { return ns.EventLoop.PushEvent(&idLost{loss}) },
	}
	// The documented API has no context to derive from; Close ends the jobs.
	s.jobs = lifecycle.NewGroup(context.Background(), ns.Logger())
	s.jobs.Go("nodesync-keeper", s.keeper.run)
	s.jobs.Go("nodesync-holds", func(ctx context.Context) error { return s.holds.run(ctx, ns.EventLoop.PushEvent) })
	s.jobs.Go("nodesync-departed", func(ctx context.Context) error { return s.departed.run(ctx, ns.ReleaseNodeID, ns.Logger()) })
	ns.DB.OnConnect(func() error {
		s.connected.Store(true)
		return nil
	})
	if s.http != nil {
		s.http.RegisterHTTPHandler(nodesPath, ns.serveNodes)
		s.http.RegisterHTTPHandler(releasePath, ns.serveRelease, http.MethodPost)
	}
	return nil
}

// complete sets the times that are not set to the defaults for the database.
func (t intervals) complete(db ClusterWideDB) intervals {
	private := true
	if p, ok := db.(interface{ Private() bool }); ok {
		private = p.Private()
	}
	_, transactions := db.(cas.Store)
	set := func(value *time.Duration, byDefault time.Duration, sensible bool) {
		if *value == 0 && sensible {
			*value = byDefault
		}
		*value = max(*value, 0)
	}
	set(&t.Quarantine, 10*time.Minute, transactions)
	set(&t.Probation, 10*time.Second, !private)
	set(&t.Departed, 10*time.Minute, true)
	// Without transactions a release leaves no record, so a missing record means a release.
	set(&t.Hold, 10*time.Minute, transactions)
	return t
}

// Close stops the jobs.
func (ns *NodeSync) Close() error {
	if ns.state.jobs == nil {
		return nil
	}
	if err := ns.state.jobs.Stop(stopTimeout); err != nil {
		return fmt.Errorf("nodesync: %w", err)
	}
	return nil
}

// HandlesEvent selects database events about node records, and events of Kubernetes nodes.
func (ns *NodeSync) HandlesEvent(event controller.Event) bool {
	switch ev := event.(type) {
	case *controller.KubeStateChange:
		return ev.Resource == allocatedIDs || ev.Resource == model.NodeKeyword
	case *idLost, *holdOver:
		return true
	}
	return event.Method().IsResync()
}

// Resync allocates or reads the ID of this node at the start-up resync. Later it only resyncs the status of other nodes.
func (ns *NodeSync) Resync(event controller.Event, kubeStateData controller.KubeStateData, _ int,
	_ controller.ResyncOperations) error {
	s := ns.state
	ns.load(kubeStateData)
	s.departed.load(kubeStateData, s.nodes)
	if s.loss != nil {
		return controller.NewFatalError(s.loss)
	}
	if s.nodeID.Load() == 0 {
		resync, _ := event.(*controller.DBResync)
		if err := ns.start(resync != nil && resync.Local); err != nil {
			return err
		}
	}
	return ns.checkOwnRecord()
}

// load reads the records of a snapshot. Invalid records, and values of another type, are skipped.
func (ns *NodeSync) load(data controller.KubeStateData) {
	s := ns.state
	before := s.sources.broken
	s.sources = newSources(len(data[allocatedIDs]))
	for key, value := range data[allocatedIDs] {
		if record, ok := value.(*vppnode.VppNode); ok {
			if _, err := s.sources.set(key, record); err != nil && before[key] != err.Error() {
				ns.reportBroken(key, err)
			}
		}
	}
	for _, node := range model.Values[*model.Node](data, model.NodeKeyword) {
		s.sources.setKube(node.GetName(), node)
	}
	nodes := make(Nodes, len(s.sources.byName))
	for name := range s.sources.byName {
		nodes[name] = s.sources.node(name)
	}
	if own := s.nodes[ns.ServiceLabel.GetAgentLabel()]; own != nil && nodes[own.Name] == nil {
		nodes[own.Name] = own // this node is present, independent of the database
	}
	if s.holds != nil {
		s.holds.keep(s.nodes, nodes, &s.sources)
	}
	s.nodes = nodes
	s.remembered.replace(nodes, &s.sources)
}

func (ns *NodeSync) reportBroken(key string, err error) {
	ns.Logger().Error("a record in the cluster database is broken and is skipped", "key", key, "error", err)
}

// GetNodeID returns the integer ID allocated for this node.
// The method is thread-safe, but should not be called before the startup resync.
func (ns *NodeSync) GetNodeID() uint32 { return ns.state.nodeID.Load() }

// The method must be called only from the main event loop (not thread safe) and not before the startup resync.
func (ns *NodeSync) GetAllNodes() Nodes { return copyNodes(ns.state.nodes) }
