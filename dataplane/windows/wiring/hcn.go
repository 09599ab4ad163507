package wiring

import (
	"context"
	"errors"
	"fmt"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
)

// HCN is the part of version 2 of HNS that the descriptors need: hcn.Service, or hnsmem.V2 in memory.
type HCN interface {
	networks
	endpoints
	namespaces
	loadBalancers
}

type networks interface {
	ListNetworks() ([]hcn.Network, error)
	CreateNetwork(n hcn.Network) (hcn.Network, error)
	DeleteNetwork(id string) error
}

type endpoints interface {
	ListEndpoints() ([]hcn.Endpoint, error)
	CreateEndpoint(e hcn.Endpoint) (hcn.Endpoint, error)
	DeleteEndpoint(id string) error
	RemoveEndpointPolicies(endpointID string, policies ...hcn.Policy) error
	UpdateEndpointPolicies(endpointID string, policies ...hcn.Policy) error
}

type namespaces interface {
	ListNamespaces() ([]hcn.Namespace, error)
	CreateNamespace(ns hcn.Namespace) (hcn.Namespace, error)
	AttachEndpoint(namespaceID, endpointID string) error
	DetachEndpoint(namespaceID, endpointID string) error
}

type loadBalancers interface {
	Features() (hcn.Features, error)
	ListLoadBalancers() ([]hcn.LoadBalancer, error)
	CreateLoadBalancer(lb hcn.LoadBalancer) (hcn.LoadBalancer, error)
	UpdateLoadBalancer(id string, lb hcn.LoadBalancer) (hcn.LoadBalancer, error)
	DeleteLoadBalancer(id string) error
}

// within makes the calls for one object with a timeout. They run on another goroutine, so they must not access w.
func within[T any](w *Wiring, object string, calls func() (T, error)) (T, error) {
	v, err := hnscall.Do(w.calls, object, calls)
	return v, hnsError(object, err)
}

// do is within for calls that return nothing.
func (w *Wiring) do(object string, calls func() error) error {
	_, err := within(w, object, func() (none struct{}, err error) { return none, calls() })
	return err
}

// hnsError classifies an error by whether a retry may succeed: errors about what HNS does not support are permanent. After a call that has not
// ended, or whose object already exists, HNS is read again before a retry.
func hnsError(what string, err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, hnscall.ErrNoAnswer): // the error names the object
		return scheduler.OutcomeUnknown(err)
	case errors.Is(err, hcn.ErrExists):
		return scheduler.OutcomeUnknown(fmt.Errorf("%s: %w", what, err))
	case errors.Is(err, hcn.ErrUnsupported), errors.Is(err, hcn.ErrInvalid):
		return fmt.Errorf("%s: %w", what, err)
	}
	return scheduler.Retry(fmt.Errorf("%s: %w", what, err))
}

// gone treats an object that does not exist as removed.
func gone(err error) error {
	if errors.Is(err, hcn.ErrNotFound) {
		return nil
	}
	return err
}

// Snapshot holds the objects of HNS, for diagnosis.
type Snapshot struct {
	Networks      []hcn.Network      `json:"networks"`
	Endpoints     []hcn.Endpoint     `json:"endpoints"`
	LoadBalancers []hcn.LoadBalancer `json:"loadBalancers"`
}

// Snapshot reads all objects of HNS, until ctx ends at the latest. It may be called from any goroutine.
func (w *Wiring) Snapshot(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Calls.Timeout)
	defer cancel()
	return hnscall.CallOutsidePass(ctx, w.calls, "HNS snapshot", func() (s Snapshot, err error) {
		var errs [3]error
		s.Networks, errs[0] = w.HCN.ListNetworks()
		s.Endpoints, errs[1] = w.HCN.ListEndpoints()
		s.LoadBalancers, errs[2] = w.HCN.ListLoadBalancers()
		return s, errors.Join(errs[:]...)
	})
}
