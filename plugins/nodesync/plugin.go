package nodesync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// stopTimeout bounds Close.
const stopTimeout = 10 * time.Second

// NodeSync plugin implements synchronization between Kubernetes nodes running VPP vswitch using a key-value database (by
// default etcd). Specifically, it allocates the first free positive integer, starting with 1, as a cluster-wide node
// identifier, primarily used for IP allocations for endpoints inside this node that will not collide with other nodes.
// Furthermore, NodeSync publishes allocations/changes of the VPP-side of node IP address(es) - information that is not known
// to Kubernetes.
type NodeSync struct {
	Deps
	state *state // a pointer, because DefaultPlugin is a copy
}

// state is what NodeSync knows.
type state struct {
	nodeID    atomic.Uint32
	connected atomic.Bool // the database has answered at least once
	preferred func() (uint32, bool)
	jobs      *lifecycle.Group
	publisher *publisher

	// used by the event loop only
	sources sources
	nodes   Nodes
	// published is what PublishNodeIPs was called with last, per IP version
	published map[contivconf.IPVersion]contivconf.IPsWithNetworks
}

var (
	_ API                     = (*NodeSync)(nil)
	_ controller.EventHandler = (*NodeSync)(nil)
)

// NewPlugin creates a new plugin with the provided options.
func NewPlugin(opts ...Option) *NodeSync {
	ns := &NodeSync{state: &state{
		sources:   newSources(),
		nodes:     Nodes{},
		published: map[contivconf.IPVersion]contivconf.IPsWithNetworks{},
	}}
	ns.SetName("nodesync")
	for _, o := range opts {
		o(ns)
	}
	return ns
}

// Init starts the job that publishes the node's record.
func (ns *NodeSync) Init() error {
	if ns.ServiceLabel == nil || ns.EventLoop == nil || ns.DB == nil {
		return errors.New("nodesync: ServiceLabel, EventLoop or DB is missing in Deps")
	}
	if ns.ServiceLabel.GetAgentLabel() == "" {
		return errors.New("nodesync: the node has no name; set the node name")
	}
	s := ns.state
	s.publisher = newPublisher(ns.DB, ns.ServiceLabel.GetAgentLabel(), ns.Logger())
	// The documented API has no context to derive from; Close ends the job.
	s.jobs = lifecycle.NewGroup(context.Background(), ns.Logger())
	s.jobs.Go("nodesync-publish", s.publisher.run)
	ns.DB.OnConnect(func() error {
		s.connected.Store(true)
		return nil
	})
	return nil
}

// Close stops publishing.
func (ns *NodeSync) Close() error {
	if ns.state.jobs == nil {
		return nil
	}
	if err := ns.state.jobs.Stop(stopTimeout); err != nil {
		return fmt.Errorf("nodesync: %w", err)
	}
	return nil
}

// HandlesEvent selects database events - specifically DB entries related to node information.
func (ns *NodeSync) HandlesEvent(event controller.Event) bool {
	if change, ok := event.(*controller.KubeStateChange); ok {
		return change.Resource == allocatedIDs
	}
	return event.Method().IsResync()
}

// Resync during startup phase allocates or retrieves already allocated ID for this node. In the runtime, only status of other
// nodes is re-synchronized.
func (ns *NodeSync) Resync(event controller.Event, kubeStateData controller.KubeStateData, _ int,
	_ controller.ResyncOperations) error {
	s := ns.state
	mgmtIPs := s.sources.mgmtIPs
	s.sources = newSources()
	s.sources.mgmtIPs = mgmtIPs
	s.sources.load(kubeStateData)
	if s.nodeID.Load() == 0 {
		if err := ns.start(); err != nil {
			s.nodes = s.sources.nodes()
			return err
		}
	}
	s.nodes = s.sources.nodes()
	return ns.checkOwnRecord()
}

// start finds or allocates this node's ID. Without one nothing can be configured, so failing aborts the event.
func (ns *NodeSync) start() error {
	s, name := ns.state, ns.ServiceLabel.GetAgentLabel()
	id, known := s.sources.ownID(name)
	if !known {
		var err error
		if id, err = ns.allocateID(); err != nil {
			return controller.NewAbortEventError(err)
		}
		s.sources.records[id] = &vppnode.VppNode{Id: id, Name: name}
	}
	s.nodeID.Store(id)
	for _, ip := range addressesOf(s.sources.records[id]) {
		s.published[ip.Version] = append(s.published[ip.Version], ip)
	}
	ns.Logger().Info("this node has its ID", "node", name, "id", id, "new", !known)
	ns.publish()
	return nil
}

// checkOwnRecord looks at what the database says about this node's ID: the record must be there and be this node's.
func (ns *NodeSync) checkOwnRecord() error {
	id, name := ns.GetNodeID(), ns.ServiceLabel.GetAgentLabel()
	record := ns.state.sources.records[id]
	if owner := record.GetName(); record != nil && owner != name {
		return controller.NewFatalError(fmt.Errorf("node ID %d of this node (%s) has been taken by node %s, probably because the "+
			"cluster database lost its data: the pods of both have the same addresses; delete the pods of one node and restart its "+
			"agent", id, name, owner))
	}
	if record == nil || !slices.Equal(addressTexts(addressesOf(record)), addressTexts(ns.ownAddresses())) {
		ns.publish() // it was lost, or changed by somebody else
	}
	return nil
}

// Update is called for KubeStateChange.
func (ns *NodeSync) Update(event controller.Event, _ controller.UpdateOperations) (changeDescription string, err error) {
	change, ok := event.(*controller.KubeStateChange)
	if !ok || change.Resource != allocatedIDs {
		return "", nil
	}
	s := ns.state
	prev, _ := change.PrevValue.(*vppnode.VppNode)
	next, _ := change.NewValue.(*vppnode.VppNode)
	id, ok := idOf(change.Key, next)
	if !ok {
		return "", fmt.Errorf("the key %s of a node's record does not end in a node ID", change.Key)
	}
	affected := map[string]bool{}
	for _, record := range []*vppnode.VppNode{prev, s.sources.records[id], next} {
		if record != nil {
			affected[record.GetName()] = true
		}
	}
	if next == nil {
		delete(s.sources.records, id)
	} else {
		s.sources.records[id] = next
	}
	changeDescription, err = ns.updateNodes(event, slices.Sorted(maps.Keys(affected)))
	if id == ns.GetNodeID() {
		err = errors.Join(err, ns.checkOwnRecord())
	}
	return changeDescription, err
}

// updateNodes puts the named nodes together anew and tells the other plugins about those that have changed.
func (ns *NodeSync) updateNodes(cause controller.Event, names []string) (string, error) {
	s := ns.state
	changes := 0
	var errs []error
	for _, name := range names {
		prev, next := s.nodes[name], s.sources.node(name)
		if next == nil {
			delete(s.nodes, name)
		} else {
			s.nodes[name] = next
		}
		if name == ns.ServiceLabel.GetAgentLabel() || sameNode(prev, next) {
			continue
		}
		changes++
		if err := ns.EventLoop.PushFollowUp(cause, &NodeUpdate{NodeName: name, PrevState: prev, NewState: next}); err != nil {
			errs = append(errs, fmt.Errorf("update of node %s: %w", name, err))
		}
	}
	if changes == 0 {
		return "", errors.Join(errs...)
	}
	return fmt.Sprintf("%d node update(s)", changes), errors.Join(errs...)
}

// Revert is NOOP - plugin handles only BestEffort events.
func (ns *NodeSync) Revert(controller.Event) error { return nil }

// GetNodeID returns the integer ID allocated for this node.
// The method is thread-safe, but should not be called before the startup resync.
func (ns *NodeSync) GetNodeID() uint32 { return ns.state.nodeID.Load() }

// GetAllNodes returns information about all nodes in the cluster.
// Methods should not be called before the startup resync.
// The method should be called only from within the main event loop (not thread safe) and not before the startup resync.
func (ns *NodeSync) GetAllNodes() Nodes { return maps.Clone(ns.state.nodes) }

// PublishNodeIPs can be used to publish update about currently assigned
// node IPs of the given IP version on the VPP-side.
// The method is efficient enough that it can be called during every resync
// - only if something has really changed an update will be sent.
// The method should be called only from within the main event loop (not thread
// safe) and not before the startup resync.
func (ns *NodeSync) PublishNodeIPs(addresses contivconf.IPsWithNetworks, version contivconf.IPVersion) error {
	if ns.GetNodeID() == 0 {
		return errors.New("node addresses cannot be published before the start-up resync: the node has no ID yet")
	}
	if err := checkAddresses(addresses, version); err != nil {
		return err
	}
	s := ns.state
	wanted := sorted(slices.Clone(addresses))
	if slices.Equal(addressTexts(s.published[version]), addressTexts(wanted)) {
		return nil
	}
	s.published[version] = wanted
	ns.publish()
	return nil
}

// ownAddresses are the addresses of both versions.
func (ns *NodeSync) ownAddresses() contivconf.IPsWithNetworks {
	return slices.Concat(ns.state.published[contivconf.IPv4], ns.state.published[contivconf.IPv6])
}

// publish hands the node's record over to the job that writes it.
func (ns *NodeSync) publish() {
	ns.state.publisher.want(&vppnode.VppNode{
		Id:          ns.GetNodeID(),
		Name:        ns.ServiceLabel.GetAgentLabel(),
		IpAddresses: addressTexts(ns.ownAddresses()),
	})
}
