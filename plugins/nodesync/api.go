package nodesync

import (
	"net"
	"time"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
)

// API defines the methods that NodeSync provides to other plugins.
type API interface {
	// GetNodeID returns the integer ID allocated for this node.
	// The method is thread-safe, but should not be called before the startup resync.
	GetNodeID() uint32

	// PublishNodeIPs publishes the currently assigned VPP addresses of this node for the given IP version. The method is efficient enough
	// to be called during every resync: an update is sent only if the addresses have changed. It must be called only from the main event
	// loop (not thread safe) and not before the startup resync.
	PublishNodeIPs(addresses contivconf.IPsWithNetworks, version contivconf.IPVersion) error

	// GetAllNodes returns information about all nodes in the cluster.
	// The method must be called only from the main event loop (not thread safe) and not before the startup resync.
	GetAllNodes() Nodes // node name -> node info
}

// Nodes maps node names to nodes.
type Nodes map[string]*Node

// Node represents a single node in the cluster. Values are immutable.
type Node struct {
	ID             uint32
	Name           string
	VppIPAddresses contivconf.IPsWithNetworks
	// MgmtIPAddresses are the addresses of the host's own interfaces, as published by the node's agent, followed by those that only the
	// Node object of Kubernetes has (InternalIP, ExternalIP). The latter may be addresses of a gateway in front of the node;
	// NodeSync.HostIPs does not return them.
	MgmtIPAddresses []net.IP
}

// ClusterWideDB defines the API that a DB client must provide for NodeSync to allocate the node ID and to publish node IPs to other nodes.
type ClusterWideDB interface {
	// OnConnect registers a callback that is called once the (first) connection to the DB is established. If the connection is already
	// established, the callback should be called immediately (synchronously).
	OnConnect(callback func() error)

	// NewBroker creates a new DB broker that prefixes all keys with the given prefix.
	NewBroker(prefix string) keyval.ProtoBroker

	// PutIfNotExists atomically puts the given key-value pair into the DB if the key has no value.
	PutIfNotExists(key string, value []byte) (succeeded bool, err error)

	// Close closes the connection to the DB and releases all allocated resources.
	Close() error
}

// Deps lists dependencies of NodeSync.
type Deps struct {
	infra.PluginDeps
	ServiceLabel servicelabel.ReaderAPI
	EventLoop    controller.EventLoop
	DB           ClusterWideDB
}

// Option is a function for NewPlugin that customizes NodeSync.
type Option func(*NodeSync)

// UseDeps returns an Option that injects custom dependencies.
func UseDeps(f func(*Deps)) Option {
	return func(ns *NodeSync) { f(&ns.Deps) }
}

// UsePreferredID makes the allocation of a new ID first try the ID that the node had before the cluster database lost its data, if the node
// remembers one: the addresses of its running pods follow from this ID. UseIdentity includes this function.
func UsePreferredID(remembered func() (id uint32, ok bool)) Option {
	return func(ns *NodeSync) { ns.state.preferred = remembered }
}

// UseIdentity makes the node keep a UUID and its claim of an ID in store, which prove its identity: the node keeps its ID even if the
// cluster database loses data, and of two machines with one name the second is detected. Without it a node is identified by its name alone.
func UseIdentity(store IdentityStore) Option {
	return func(ns *NodeSync) { ns.state.identityStore = store }
}

// UseVersion puts the version of the agent into the node's record.
func UseVersion(version string) Option {
	return func(ns *NodeSync) { ns.state.version = version }
}

// UseKubernetes sets current, which returns the reason why this node's view of the nodes of Kubernetes may be outdated, or nil. While it
// may be outdated, the node releases no ID: a missing node may have joined unnoticed.
func UseKubernetes(current func() error) Option {
	return func(ns *NodeSync) { ns.state.kubernetes = current }
}

// intervals holds intended delays. Zero means the default, a negative time means no delay.
type intervals struct {
	// Quarantine is the time during which the ID of a deleted node is not assigned to another one: pods, routes and connection tables
	// elsewhere still have addresses that follow from it. 10 minutes; in whole seconds.
	Quarantine time.Duration
	// Probation is how long a node that claims its very first ID waits before it uses it, so that nodes that are missing in a wiped or
	// restored database can take theirs back. It should be longer than the time in which a connection to the database is restored. 10 s;
	// none if the database serves this machine only.
	Probation time.Duration
	// Hold is how long nodes that the database has lost, although they were not released, still count as present. 10 minutes.
	Hold time.Duration
	// Departed is how long a node's Node object may be missing in Kubernetes before the node's ID is released. 10 minutes; each agent waits
	// for a different, slightly longer time.
	Departed time.Duration
}

// useTimes replaces the default times.
func useTimes(times intervals) Option {
	return func(ns *NodeSync) { ns.state.times = times }
}

// UseHTTP serves the REST operations of this package: the list of nodes, and the release of the ID of a deleted node.
func UseHTTP(handlers rest.HTTPHandlers) Option {
	return func(ns *NodeSync) { ns.state.http = handlers }
}

// DefaultPlugin is a default instance of NodeSync. It is part of the documented API and the exception to the rule that there
// are no package-level variables; the agent does not use it.
var DefaultPlugin = *NewPlugin()
