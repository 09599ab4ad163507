package renderer

import "net/netip"

// ServiceRendererAPI defines the API of a service renderer.
//
// A service renderer is a pluggable component of the service plugin. It receives ContivService instances from the processor and renders
// them into the configuration of the target network stack.
type ServiceRendererAPI interface {
	// AddService is called for a newly added service.
	AddService(service *ContivService) error

	// UpdateService informs the renderer about a change in the configuration or in the state of a service. The renderer can use
	// otherExistingServices to perform the update correctly.
	UpdateService(oldService, newService *ContivService, otherExistingServices []*ContivService) error

	// DeleteService is called for every removed service. The renderer can use otherExistingServices to perform the removal correctly.
	DeleteService(service *ContivService, otherExistingServices []*ContivService) error

	// UpdateNodePortServices is called whenever the set of node IPs in the cluster
	// changes.
	UpdateNodePortServices(nodeIPs *IPAddresses, npServices []*ContivService) error

	// UpdateLocalFrontendIfs is called when the set of frontend interfaces has changed (VPP specific).
	UpdateLocalFrontendIfs(oldIfNames, newIfNames Interfaces) error

	// UpdateLocalBackendIfs is called when the set of backend interfaces has changed (VPP specific).
	UpdateLocalBackendIfs(oldIfNames, newIfNames Interfaces) error

	// Resync provides a complete snapshot of all service-related data. The renderer must resolve any differences between the state of K8s
	// services and the currently rendered configuration.
	Resync(resyncEv *ResyncEventData) error
}

// LocalNodeIPsRenderer is implemented by renderers that treat the node's own addresses differently from those of other nodes. It is an
// addition to the documented API.
type LocalNodeIPsRenderer interface {
	// UpdateLocalNodeIPs is called when the set of this node's addresses changes, before UpdateNodePortServices if that is
	// called for the same reason. npServices are all services with node ports.
	UpdateLocalNodeIPs(localNodeIPs *IPAddresses, npServices []*ContivService) error
}

// NodesRenderer is implemented by renderers that depend on how addresses of nodes are reached. It is an addition to the documented API.
type NodesRenderer interface {
	// UpdateNodes is called after the other methods when data of a node has changed that no other method reports. addrs are the addresses
	// of that node, including its previous ones. Only the routes to them may have changed.
	UpdateNodes(addrs []netip.Addr) error
}
