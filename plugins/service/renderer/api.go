package renderer

import "net/netip"

// ServiceRendererAPI defines the API of Service Renderer.
//
// Service Renderer is a pluggable component of the service plugin, sitting below the processor and implementing rendering of
// ContivService instances into the configuration of the target network stack.
type ServiceRendererAPI interface {
	// AddService is called for a newly added service.
	AddService(service *ContivService) error

	// UpdateService informs renderer about a change in the configuration
	// or in the state of a service. The renderer can also use info about
	// other existing services to perform update correctly.
	UpdateService(oldService, newService *ContivService, otherExistingServices []*ContivService) error

	// DeleteService is called for every removed service. The renderer can
	// also use info about other existing services to handle service removal correctly.
	DeleteService(service *ContivService, otherExistingServices []*ContivService) error

	// UpdateNodePortServices is called whenever the set of node IPs in the cluster
	// changes.
	UpdateNodePortServices(nodeIPs *IPAddresses, npServices []*ContivService) error

	// UpdateLocalFrontendIfs gives an update about a changed set of Frontend
	// interfaces (VPP specific).
	UpdateLocalFrontendIfs(oldIfNames, newIfNames Interfaces) error

	// UpdateLocalBackendIfs gives an updated about a changed set of backend
	// interfaces (VPP specific).
	UpdateLocalBackendIfs(oldIfNames, newIfNames Interfaces) error

	// Resync provides a complete snapshot of all service-related data.
	// The render should resolve any discrepancies between the state of K8s
	// services and the currently rendered configuration.
	Resync(resyncEv *ResyncEventData) error
}

// LocalNodeIPsRenderer is implemented by renderers for which the node's own addresses are not like those of other nodes. It
// is an addition to the documented API.
type LocalNodeIPsRenderer interface {
	// UpdateLocalNodeIPs is called when the set of this node's addresses changes, before UpdateNodePortServices if that is
	// called for the same reason. npServices are all services with node ports.
	UpdateLocalNodeIPs(localNodeIPs *IPAddresses, npServices []*ContivService) error
}

// NodesRenderer is implemented by renderers for which it matters how addresses of nodes are reached. It is an addition to the
// documented API.
type NodesRenderer interface {
	// UpdateNodes is called when data of a node has changed that no other method reports, after the other methods. addrs are the
	// addresses of that node, those that it had before included. Only how they are reached may have changed.
	UpdateNodes(addrs []netip.Addr) error
}
