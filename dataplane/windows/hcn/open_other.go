//go:build !windows

package hcn

// Open returns ErrNotWindows.
func Open() (*Service, error) { return nil, ErrNotWindows }

// Service is a dummy, so that users of the service compile everywhere: all calls return ErrNotWindows.
type Service struct{}

// Features returns the features of this Windows.
func (*Service) Features() (Features, error) { return Features{}, ErrNotWindows }

// ListNetworks returns all networks of the machine.
func (*Service) ListNetworks() ([]Network, error) { return nil, ErrNotWindows }

// CreateNetwork returns the network as created, with its ID.
func (*Service) CreateNetwork(Network) (Network, error) { return Network{}, ErrNotWindows }

// DeleteNetwork removes a network and its content.
func (*Service) DeleteNetwork(string) error { return ErrNotWindows }

// AddNetworkPolicies adds policies to a network.
func (*Service) AddNetworkPolicies(string, ...Policy) error { return ErrNotWindows }

// RemoveNetworkPolicies removes policies, which are identified by all of their settings.
func (*Service) RemoveNetworkPolicies(string, ...Policy) error { return ErrNotWindows }

// ListEndpoints returns all endpoints of the machine.
func (*Service) ListEndpoints() ([]Endpoint, error) { return nil, ErrNotWindows }

// CreateEndpoint makes an endpoint of e.HostComputeNetwork.
func (*Service) CreateEndpoint(Endpoint) (Endpoint, error) { return Endpoint{}, ErrNotWindows }

// DeleteEndpoint removes an endpoint.
func (*Service) DeleteEndpoint(string) error { return ErrNotWindows }

// RemoveEndpointPolicies removes the policies that have the same settings.
func (*Service) RemoveEndpointPolicies(string, ...Policy) error { return ErrNotWindows }

// UpdateEndpointPolicies replaces all policies of the given types.
func (*Service) UpdateEndpointPolicies(string, ...Policy) error { return ErrNotWindows }

// ListNamespaces returns all namespaces of the machine.
func (*Service) ListNamespaces() ([]Namespace, error) { return nil, ErrNotWindows }

// CreateNamespace makes a namespace.
func (*Service) CreateNamespace(Namespace) (Namespace, error) { return Namespace{}, ErrNotWindows }

// AttachEndpoint adds an endpoint to a namespace: the containers of the namespace have it as a network adapter.
func (*Service) AttachEndpoint(string, string) error { return ErrNotWindows }

// DetachEndpoint removes an endpoint from a namespace.
func (*Service) DetachEndpoint(string, string) error { return ErrNotWindows }

// ListLoadBalancers returns all load balancers of the machine.
func (*Service) ListLoadBalancers() ([]LoadBalancer, error) { return nil, ErrNotWindows }

// CreateLoadBalancer makes a load balancer.
func (*Service) CreateLoadBalancer(LoadBalancer) (LoadBalancer, error) {
	return LoadBalancer{}, ErrNotWindows
}

// UpdateLoadBalancer changes a load balancer in place, if Windows has Features.ModifyLoadbalancer.
func (*Service) UpdateLoadBalancer(string, LoadBalancer) (LoadBalancer, error) {
	return LoadBalancer{}, ErrNotWindows
}

// DeleteLoadBalancer removes a load balancer.
func (*Service) DeleteLoadBalancer(string) error { return ErrNotWindows }
