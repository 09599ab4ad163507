package hcn

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/Microsoft/hcsshim/hcn"
)

// Open returns the Host Compute Network of this machine, or why it cannot be used.
func Open() (*Service, error) {
	if err := hcn.V2ApiSupported(); err != nil {
		return nil, fmt.Errorf("the Host Compute Network needs Windows Server 2019 or newer: %w", err)
	}
	return &Service{}, nil
}

// Service is HCN by hcsshim; it has no state.
type Service struct{}

// convert converts between the types of both packages, which have the same JSON.
func convert[T any](in any) (T, error) {
	var out T
	raw, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return out, fmt.Errorf("convert %T to %T: %w", in, out, err)
	}
	return out, nil
}

// convertAll converts the result of a call that may have failed.
func convertAll[T any](what string, in any, err error) (T, error) {
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", what, withSentinel(err))
	}
	return convert[T](in)
}

// withSentinel adds the error of this package that callers compare with.
func withSentinel(err error) error {
	switch {
	case err == nil:
		return nil
	case hcn.IsNotFoundError(err), hcn.IsElementNotFoundError(err):
		return errors.Join(ErrNotFound, err)
	case hcn.IsPortAlreadyExistsError(err):
		return errors.Join(ErrExists, err)
	case hcn.IsNotImplemented(err):
		return errors.Join(ErrUnsupported, err)
	}
	for code := uint32(firstCode); code <= lastCode; code++ {
		if means := meaning(code); means != nil && hcn.CheckErrorWithCode(err, hcn.ErrorCode(code)) {
			return errors.Join(means, err)
		}
	}
	if means := meaningOfText(err.Error()); means != nil {
		return errors.Join(means, err)
	}
	return err
}

// Features returns the features of this Windows.
func (*Service) Features() (Features, error) {
	f, err := hcn.GetCachedSupportedFeatures()
	if err != nil {
		return Features{}, fmt.Errorf("get the features of HCN: %w", err)
	}
	return Features{RemoteSubnet: f.RemoteSubnet, HostRoute: f.HostRoute, DSR: f.DSR,
		Slash32EndpointPrefixes: f.Slash32EndpointPrefixes, SessionAffinity: f.SessionAffinity, IPv6DualStack: f.IPv6DualStack,
		SetPolicy: f.SetPolicy, VxlanPort: f.VxlanPort, TierAcl: f.TierAcl, NetworkACL: f.NetworkACL, NestedIpSet: f.NestedIpSet,
		ModifyLoadbalancer: f.ModifyLoadbalancer}, nil
}

// ListNetworks returns all networks of the machine.
func (*Service) ListNetworks() ([]Network, error) {
	list, err := hcn.ListNetworks()
	return convertAll[[]Network]("list networks", list, err)
}

// CreateNetwork returns the network as created, with its ID.
func (*Service) CreateNetwork(n Network) (Network, error) {
	in, err := convert[hcn.HostComputeNetwork](n)
	if err != nil {
		return Network{}, err
	}
	made, err := in.Create()
	return convertAll[Network]("create network "+n.Name, made, err)
}

// DeleteNetwork removes a network and its content.
func (*Service) DeleteNetwork(id string) error {
	return wrap("delete network "+id, (&hcn.HostComputeNetwork{Id: id}).Delete())
}

// AddNetworkPolicies adds policies to a network.
func (*Service) AddNetworkPolicies(networkID string, policies ...Policy) error {
	request, err := convert[hcn.PolicyNetworkRequest](policyRequest{policies})
	if err != nil {
		return err
	}
	return wrap("add policies to network "+networkID, (&hcn.HostComputeNetwork{Id: networkID}).AddPolicy(request))
}

// RemoveNetworkPolicies removes policies, which are identified by all of their settings.
func (*Service) RemoveNetworkPolicies(networkID string, policies ...Policy) error {
	request, err := convert[hcn.PolicyNetworkRequest](policyRequest{policies})
	if err != nil {
		return err
	}
	return wrap("remove policies from network "+networkID, (&hcn.HostComputeNetwork{Id: networkID}).RemovePolicy(request))
}

type policyRequest struct{ Policies []Policy }

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, withSentinel(err))
}

// ListEndpoints returns all endpoints of the machine.
func (*Service) ListEndpoints() ([]Endpoint, error) {
	list, err := hcn.ListEndpoints()
	return convertAll[[]Endpoint]("list endpoints", list, err)
}

// CreateEndpoint makes an endpoint of e.HostComputeNetwork.
func (*Service) CreateEndpoint(e Endpoint) (Endpoint, error) {
	in, err := convert[hcn.HostComputeEndpoint](e)
	if err != nil {
		return Endpoint{}, err
	}
	made, err := in.Create()
	return convertAll[Endpoint]("create endpoint "+e.Name, made, err)
}

// DeleteEndpoint removes an endpoint.
func (*Service) DeleteEndpoint(id string) error {
	return wrap("delete endpoint "+id, (&hcn.HostComputeEndpoint{Id: id}).Delete())
}

// RemoveEndpointPolicies removes the policies that have the same settings.
func (*Service) RemoveEndpointPolicies(id string, policies ...Policy) error {
	return applyPolicies(id, hcn.RequestTypeRemove, policies)
}

// UpdateEndpointPolicies replaces all policies of the given types.
func (*Service) UpdateEndpointPolicies(id string, policies ...Policy) error {
	return applyPolicies(id, hcn.RequestTypeUpdate, policies)
}

func applyPolicies(id string, kind hcn.RequestType, policies []Policy) error {
	request, err := convert[hcn.PolicyEndpointRequest](policyRequest{policies})
	if err != nil {
		return err
	}
	return wrap(fmt.Sprintf("%s policies of endpoint %s", kind, id), (&hcn.HostComputeEndpoint{Id: id}).ApplyPolicy(kind, request))
}

// ListNamespaces returns all namespaces of the machine.
func (*Service) ListNamespaces() ([]Namespace, error) {
	list, err := hcn.ListNamespaces()
	return convertAll[[]Namespace]("list namespaces", list, err)
}

// CreateNamespace makes a namespace.
func (*Service) CreateNamespace(ns Namespace) (Namespace, error) {
	in, err := convert[hcn.HostComputeNamespace](ns)
	if err != nil {
		return Namespace{}, err
	}
	made, err := in.Create()
	return convertAll[Namespace]("create namespace", made, err)
}

// AttachEndpoint adds an endpoint to a namespace: the containers of the namespace have it as a network adapter.
func (*Service) AttachEndpoint(namespaceID, endpointID string) error {
	return wrap(fmt.Sprintf("attach endpoint %s to namespace %s", endpointID, namespaceID),
		hcn.AddNamespaceEndpoint(namespaceID, endpointID))
}

// DetachEndpoint removes an endpoint from a namespace.
func (*Service) DetachEndpoint(namespaceID, endpointID string) error {
	return wrap(fmt.Sprintf("detach endpoint %s from namespace %s", endpointID, namespaceID),
		hcn.RemoveNamespaceEndpoint(namespaceID, endpointID))
}

// ListLoadBalancers returns all load balancers of the machine.
func (*Service) ListLoadBalancers() ([]LoadBalancer, error) {
	list, err := hcn.ListLoadBalancers()
	return convertAll[[]LoadBalancer]("list load balancers", list, err)
}

// CreateLoadBalancer makes a load balancer.
func (*Service) CreateLoadBalancer(lb LoadBalancer) (LoadBalancer, error) {
	in, err := convert[hcn.HostComputeLoadBalancer](lb)
	if err != nil {
		return LoadBalancer{}, err
	}
	made, err := in.Create()
	return convertAll[LoadBalancer]("create load balancer", made, err)
}

// UpdateLoadBalancer changes a load balancer in place, if Windows has Features.ModifyLoadbalancer.
func (*Service) UpdateLoadBalancer(id string, lb LoadBalancer) (LoadBalancer, error) {
	in, err := convert[hcn.HostComputeLoadBalancer](lb)
	if err != nil {
		return LoadBalancer{}, err
	}
	made, err := in.Update(id)
	return convertAll[LoadBalancer]("update load balancer "+id, made, err)
}

// DeleteLoadBalancer removes a load balancer.
func (*Service) DeleteLoadBalancer(id string) error {
	return wrap("delete load balancer "+id, (&hcn.HostComputeLoadBalancer{Id: id}).Delete())
}
