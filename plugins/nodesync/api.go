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

// API defines methods provided by NodeSync for use by other plugins.
type API interface {
	// GetNodeID returns the integer ID allocated for this node.
	// The method is thread-safe, but should not be called before the startup resync.
	GetNodeID() uint32

	// PublishNodeIPs can be used to publish update about currently assigned
	// node IPs of the given IP version on the VPP-side.
	// The method is efficient enough that it can be called during every resync
	// - only if something has really changed an update will be sent.
	// The method should be called only from within the main event loop (not thread
	// safe) and not before the startup resync.
	PublishNodeIPs(addresses contivconf.IPsWithNetworks, version contivconf.IPVersion) error

	// GetAllNodes returns information about all nodes in the cluster.
	// The method should be called only from within the main event loop (not thread
	// safe) and not before the startup resync.
	GetAllNodes() Nodes // node name -> node info
}

// Nodes is a map of node info. Key is the node name.
type Nodes map[string]*Node

// Node represents a single node in the cluster. Values are immutable.
type Node struct {
	ID             uint32
	Name           string
	VppIPAddresses contivconf.IPsWithNetworks
	// MgmtIPAddresses are the addresses of the host's own interfaces, as the node's agent has published them, and then those that only
	// the Node object of Kubernetes has (InternalIP, ExternalIP). The latter may be addresses of a gateway in front of the node;
	// NodeSync.HostIPs is without them.
	MgmtIPAddresses []net.IP
}

// ClusterWideDB defines API that a DB client must provide for NodeSync to be able to allocate node IP and to publish node IPs
// to other nodes.
type ClusterWideDB interface {
	// OnConnect registers callback to be triggered once the (first) connection
	// to DB is established. If the connection is already established, the callback
	// should be called immediately (synchronously).
	OnConnect(callback func() error)

	// NewBroker creates a new instance of DB broker prefixing all keys with the
	// given prefix.
	NewBroker(prefix string) keyval.ProtoBroker

	// PutIfNotExists atomically puts given key-value pair into DB if there
	// is no value set for the key.
	PutIfNotExists(key string, value []byte) (succeeded bool, err error)

	// Close closes connection to DB and releases all allocated resources.
	Close() error
}

// Deps lists dependencies of NodeSync.
type Deps struct {
	infra.PluginDeps
	ServiceLabel servicelabel.ReaderAPI
	EventLoop    controller.EventLoop
	DB           ClusterWideDB
}

// Option is a function that can be used in NewPlugin to customize NodeSync.
type Option func(*NodeSync)

// UseDeps returns Option that can inject custom dependencies.
func UseDeps(f func(*Deps)) Option {
	return func(ns *NodeSync) { f(&ns.Deps) }
}

// UsePreferredID makes the allocation of a new ID try first the one that the node had before the cluster database lost its
// data, if it remembers one: its running pods have addresses that follow from it. UseIdentity does the same and more.
func UsePreferredID(remembered func() (id uint32, ok bool)) Option {
	return func(ns *NodeSync) { ns.state.preferred = remembered }
}

// UseIdentity makes the node keep a UUID and its claim of an ID in store, by which it proves that it is itself: it keeps its
// ID whatever becomes of the cluster database, and of two machines with one name the second is found out. Without it a node
// is known by its name alone.
func UseIdentity(store IdentityStore) Option {
	return func(ns *NodeSync) { ns.state.identityStore = store }
}

// UseVersion puts the version of the agent into the node's record.
func UseVersion(version string) Option {
	return func(ns *NodeSync) { ns.state.version = version }
}

// UseKubernetes reports by current why this node's view of the nodes of Kubernetes may be old; nil: it is not. While it may be, the node
// releases no ID: a node that it misses may have joined unseen.
func UseKubernetes(current func() error) Option {
	return func(ns *NodeSync) { ns.state.kubernetes = current }
}

// intervals are how long things take on purpose. Zero is the default, a negative time is none.
type intervals struct {
	// Quarantine is how long the ID of a node that is gone is not given to another one: pods, routes and connection tables
	// elsewhere still have addresses that follow from it. 10 minutes; in whole seconds.
	Quarantine time.Duration
	// Probation is how long a node that claims an ID for the first time in its life waits before it uses it, so that nodes that a wiped or
	// restored database does not have can take theirs back. It should be longer than a connection to the database takes to come back. 10 s;
	// none if the database serves this machine only.
	Probation time.Duration
	// Hold is for how long nodes that the database has forgotten, although nothing released them, still count as there. 10 minutes.
	Hold time.Duration
	// Departed is for how long a node's Node object may be missing in Kubernetes before its ID is released. 10 minutes; one
	// node waits a little longer than another.
	Departed time.Duration
}

// useTimes replaces the default times.
func useTimes(times intervals) Option {
	return func(ns *NodeSync) { ns.state.times = times }
}

// UseHTTP serves the REST operations of this package: the list of nodes, and the release of the ID of a node that is gone.
func UseHTTP(handlers rest.HTTPHandlers) Option {
	return func(ns *NodeSync) { ns.state.http = handlers }
}

// DefaultPlugin is a default instance of NodeSync. It is part of the documented API and the exception to the rule that there
// are no package-level variables; the agent does not use it.
var DefaultPlugin = *NewPlugin()
