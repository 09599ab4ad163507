package service

import (
	"net"
	"net/netip"
	"sync"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/service/healthcheck"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Deps are the dependencies of the plugin.
type Deps struct {
	infra.PluginDeps
	ServiceLabel servicelabel.ReaderAPI
	ContivConf   contivconf.API
	IPNet        IPNet
	// MainInterface returns the interface that connects the node with others, which may have been found automatically; empty if there is
	// none. If MainInterface is nil, the configured interface is used.
	MainInterface func() string
	NodeSync      Nodes
	PodManager    Pods
	HTTPHandlers  rest.HTTPHandlers // nil: no REST
	// Healthy reports whether the dataplane can serve; health checks of load balancers return this. nil means that it always can.
	Healthy func() bool

	// NodeLeaving is called with whether this node is leaving, according to Kubernetes; may be nil.
	NodeLeaving func(leaving bool)

	// IgnoreExternalIPs and NodePortAddresses are as in processor.Config.
	IgnoreExternalIPs bool
	NodePortAddresses []netip.Prefix
	Reserved          Reserved
	// Problems receives the parts of services that are not served; may be nil.
	Problems Problems
	// HealthCheckAddress is the address at which health checks are answered; empty: all addresses of the host.
	HealthCheckAddress string
}

// Problems reports to users the services that are not served as specified.
type Problems interface {
	// Set replaces the problems of an object. report is true if this node writes the Events.
	Set(o problem.Object, list []problem.Problem, report bool)
}

// IPNet is the part of ipnet that the plugin uses.
type IPNet interface {
	// PodInterface returns the logical name of the interface of an attachment.
	PodInterface(id podmanager.AttachmentID) (name string, exists bool)
	// NodeAddresses returns the addresses of this node, also before this node's record contains them.
	NodeAddresses() []netip.Addr
	GetHostIPs() []net.IP
	GetHostInterconnectIfName() string
	GetVxlanBVIIfName() string
}

// Nodes is the part of nodesync that the plugin uses.
type Nodes interface {
	GetAllNodes() nodesync.Nodes
}

// Pods is the part of podmanager that the plugin uses.
type Pods interface {
	// LocalAttachments returns the attachments in the order in which they were made.
	LocalAttachments() []*podmanager.Attachment
}

// Plugin is the event handler.
type Plugin struct {
	Deps
	txn    Txn
	health *healthcheck.Server

	mu        sync.Mutex // for REST; the event loop holds it while it handles an event
	processor *processor.Processor
	nodes     addresses
}

var _ api.EventHandler = (*Plugin)(nil)

// New creates the plugin. Renderers are registered before the event loop starts.
func New(deps Deps) *Plugin {
	p := &Plugin{Deps: deps}
	p.health = healthcheck.New(healthcheck.Config{Healthy: deps.Healthy, Address: deps.HealthCheckAddress, Log: p.Logger()})
	p.processor = processor.New(processor.Config{
		NodeName: deps.ServiceLabel.GetAgentLabel(), IgnoreExternalIPs: deps.IgnoreExternalIPs,
		NodePortAddresses: deps.NodePortAddresses, PodNetworks: deps.ContivConf.IPAM().PodSubnetCIDR,
		ReservedNetworks: reservedNetworks(deps.ContivConf.IPAM()), ReservedNodePorts: deps.Reserved.nodePorts(),
		ReservedAddresses: deps.Reserved.Addresses, Etcd: deps.Reserved.Etcd,
		Problems: (*problems)(p),
	}, p.health)
	p.nodes = newAddresses()
	if deps.HTTPHandlers != nil {
		p.registerREST(deps.HTTPHandlers)
	}
	return p
}

// RegisterRenderer adds a renderer.
func (p *Plugin) RegisterRenderer(r renderer.ServiceRendererAPI) { p.processor.RegisterRenderer(r) }

// Txn returns the transaction of the event that is being handled, for renderers.
func (p *Plugin) Txn() *Txn { return &p.txn }

// String returns the name of the handler.
func (p *Plugin) String() string { return "service" }

// Close ends the health checks.
func (p *Plugin) Close() error { return p.health.Close() }

// HandlesEvent selects the events on which services depend.
func (p *Plugin) HandlesEvent(event api.Event) bool {
	switch ev := event.(type) {
	case *api.KubeStateChange:
		switch ev.Resource {
		case model.ServiceKeyword, model.EndpointSliceKeyword, model.NodeKeyword:
			return true
		}
		return false
	case *nodesync.NodeUpdate, *podmanager.AddPod, *podmanager.DeletePod:
		return true
	}
	return event.Method().IsResync()
}

// DescribeInternalData implements api.DataDescriber: the controller's verification mode compares updates with resyncs.
func (p *Plugin) DescribeInternalData() string { return p.processor.String() }

// Txn is the transaction of the event that is being handled, for renderers. They get it in each call and must not keep it.
type Txn struct {
	update api.UpdateOperations
	resync api.ResyncOperations
	notes  []string
}

// Update returns the transaction of an update; note is a text for the event history. While an event is being reverted, operations on the
// returned transaction are ignored: the controller reverts the dataplane's part.
func (t *Txn) Update(note string) api.UpdateOperations {
	if note != "" {
		t.notes = append(t.notes, note)
	}
	if t.update == nil {
		return discard{}
	}
	return t.update
}

// Resync returns the transaction of a resync.
func (t *Txn) Resync() api.ResyncOperations {
	if t.resync == nil {
		return discard{}
	}
	return t.resync
}
