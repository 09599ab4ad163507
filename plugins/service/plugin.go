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
	// MainInterface is the interface that connects the node with others, which need not be configured by name; empty: there is
	// none. nil: the configured one.
	MainInterface func() string
	NodeSync      Nodes
	PodManager    Pods
	HTTPHandlers  rest.HTTPHandlers // nil: no REST
	// Healthy reports whether the dataplane can serve, which is the answer to load balancers; nil: it can.
	Healthy func() bool

	// NodeLeaving is informed whether this node is about to go, as far as Kubernetes says; nil: nothing is.
	NodeLeaving func(leaving bool)

	// IgnoreExternalIPs and NodePortAddresses are as in processor.Config.
	IgnoreExternalIPs bool
	NodePortAddresses []netip.Prefix
	// ReservedNodePorts are as in processor.Config; nil: DefaultReservedNodePorts.
	ReservedNodePorts []processor.NodePort
	// Problems receives the parts of services that are not served; may be nil.
	Problems Problems
	// HealthCheckAddress is where health checks are answered; empty: at all addresses of the host.
	HealthCheckAddress string
}

// Problems is where users are informed of services that are not served as they say.
type Problems interface {
	// Set reports what the problems of an object are now. tell: this node writes the Events.
	Set(o problem.Object, list []problem.Problem, tell bool)
}

// IPNet is what the plugin uses of ipnet.
type IPNet interface {
	// PodInterface is the logical name of the interface of an attachment.
	PodInterface(id podmanager.AttachmentID) (name string, exists bool)
	// NodeAddresses are those that this node's record will have, which at first it does not.
	NodeAddresses() []netip.Addr
	GetHostIPs() []net.IP
	GetHostInterconnectIfName() string
	GetVxlanBVIIfName() string
}

// Nodes is what the plugin uses of nodesync.
type Nodes interface {
	GetAllNodes() nodesync.Nodes
}

// Pods is what the plugin uses of podmanager.
type Pods interface {
	// LocalAttachments are in the order in which they were made.
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
		ReservedNetworks: reservedNetworks(deps.ContivConf.IPAM()), ReservedNodePorts: deps.reservedNodePorts(),
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

// Txn gives renderers the transaction of the event that is being handled.
func (p *Plugin) Txn() *Txn { return &p.txn }

// String names the handler.
func (p *Plugin) String() string { return "service" }

// Close stops answering health checks.
func (p *Plugin) Close() error { return p.health.Close() }

// HandlesEvent selects what services depend on.
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

// DescribeInternalData lets the controller's verification mode compare updates with resyncs.
func (p *Plugin) DescribeInternalData() string { return p.processor.String() }

// Txn is the transaction of the event that is being handled, for renderers. They ask for it in each call, and do not keep it.
type Txn struct {
	update api.UpdateOperations
	resync api.ResyncOperations
	notes  []string
}

// Update is the transaction of an update; note is a text for the event history. While an event is being undone what is put
// into it is thrown away: the controller undoes the dataplane's part.
func (t *Txn) Update(note string) api.UpdateOperations {
	if note != "" {
		t.notes = append(t.notes, note)
	}
	if t.update == nil {
		return discard{}
	}
	return t.update
}

// Resync is the transaction of a resync.
func (t *Txn) Resync() api.ResyncOperations {
	if t.resync == nil {
		return discard{}
	}
	return t.resync
}
