//go:build !windows

package hcn

// Open returns ErrNotWindows.
func Open() (*Service, error) { return nil, ErrNotWindows }

// Service is a dummy, so that what uses the service compiles everywhere: all calls return ErrNotWindows.
type Service struct{}

// Features reports what this Windows can do.
func (*Service) Features() (Features, error) { return Features{}, ErrNotWindows }

// ListNetworks returns all networks of the machine.
func (*Service) ListNetworks() ([]Network, error) { return nil, ErrNotWindows }

// CreateNetwork returns the network as it is, with the ID that it was given.
func (*Service) CreateNetwork(Network) (Network, error) { return Network{}, ErrNotWindows }

// DeleteNetwork removes a network and what is in it.
func (*Service) DeleteNetwork(string) error { return ErrNotWindows }

// AddNetworkPolicies adds to what a network has.
func (*Service) AddNetworkPolicies(string, ...Policy) error { return ErrNotWindows }

// RemoveNetworkPolicies removes policies, each of which is named by all of its settings.
func (*Service) RemoveNetworkPolicies(string, ...Policy) error { return ErrNotWindows }

// ListEndpoints returns all endpoints of the machine.
func (*Service) ListEndpoints() ([]Endpoint, error) { return nil, ErrNotWindows }

// CreateEndpoint makes an endpoint of e.HostComputeNetwork.
func (*Service) CreateEndpoint(Endpoint) (Endpoint, error) { return Endpoint{}, ErrNotWindows }

// DeleteEndpoint removes an endpoint.
func (*Service) DeleteEndpoint(string) error { return ErrNotWindows }

// RemoveEndpointPolicies removes those that have the same settings.
func (*Service) RemoveEndpointPolicies(string, ...Policy) error { return ErrNotWindows }

// UpdateEndpointPolicies replaces all that are of the given ones' types.
func (*Service) UpdateEndpointPolicies(string, ...Policy) error { return ErrNotWindows }

// ListNamespaces returns all namespaces of the machine.
func (*Service) ListNamespaces() ([]Namespace, error) { return nil, ErrNotWindows }

// CreateNamespace makes a namespace.
func (*Service) CreateNamespace(Namespace) (Namespace, error) { return Namespace{}, ErrNotWindows }

// AttachEndpoint puts an endpoint into a namespace: the containers of the namespace have it as a network adapter.
func (*Service) AttachEndpoint(string, string) error { return ErrNotWindows }

// DetachEndpoint takes an endpoint out of a namespace.
func (*Service) DetachEndpoint(string, string) error { return ErrNotWindows }

// ListLoadBalancers returns all load balancers of the machine.
func (*Service) ListLoadBalancers() ([]LoadBalancer, error) { return nil, ErrNotWindows }

// CreateLoadBalancer makes a load balancer.
func (*Service) CreateLoadBalancer(LoadBalancer) (LoadBalancer, error) {
	return LoadBalancer{}, ErrNotWindows
}

// UpdateLoadBalancer changes a load balancer in place, where Features.ModifyLoadbalancer says that Windows can.
func (*Service) UpdateLoadBalancer(string, LoadBalancer) (LoadBalancer, error) {
	return LoadBalancer{}, ErrNotWindows
}

// DeleteLoadBalancer removes a load balancer.
func (*Service) DeleteLoadBalancer(string) error { return ErrNotWindows }
