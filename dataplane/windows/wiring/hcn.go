package wiring

import (
	"context"
	"errors"
	"fmt"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
)

// HCN is what the kinds need of version 2 of HNS: hcn.Service, or hnsmem.V2 in memory.
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

// within makes calls for one object with a limit. They run on another goroutine, so they must not touch w.
func within[T any](w *Wiring, object string, calls func() (T, error)) (T, error) {
	v, err := hnscall.Do(w.calls, object, calls)
	return v, hnsError(object, err)
}

// do is within, for calls that return nothing.
func (w *Wiring) do(object string, calls func() error) error {
	_, err := within(w, object, func() (none struct{}, err error) { return none, calls() })
	return err
}

// hnsError says whether a call may succeed later: HNS refuses what it cannot do for good. After a call that has not ended, or one that
// has found what it was to make, a look at HNS comes first.
func hnsError(what string, err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, hnscall.ErrNoAnswer): // names the object
		return scheduler.OutcomeUnknown(err)
	case errors.Is(err, hcn.ErrExists):
		return scheduler.OutcomeUnknown(fmt.Errorf("%s: %w", what, err))
	case errors.Is(err, hcn.ErrUnsupported), errors.Is(err, hcn.ErrInvalid):
		return fmt.Errorf("%s: %w", what, err)
	}
	return scheduler.Retry(fmt.Errorf("%s: %w", what, err))
}

// gone makes an object that is not there one that was removed.
func gone(err error) error {
	if errors.Is(err, hcn.ErrNotFound) {
		return nil
	}
	return err
}

// Snapshot is what HNS has, for people to look at.
type Snapshot struct {
	Networks      []hcn.Network      `json:"networks"`
	Endpoints     []hcn.Endpoint     `json:"endpoints"`
	LoadBalancers []hcn.LoadBalancer `json:"loadBalancers"`
}

// Snapshot asks HNS for all that it has, and waits no longer than ctx. It may be called from any goroutine.
func (w *Wiring) Snapshot(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, w.CallTimeout)
	defer cancel()
	type answer struct {
		Snapshot
		err error
	}
	done := make(chan answer, 1)
	w.jobs.Go("HNS snapshot", func(context.Context) error {
		var a answer
		var errs [3]error
		a.Networks, errs[0] = w.HCN.ListNetworks()
		a.Endpoints, errs[1] = w.HCN.ListEndpoints()
		a.LoadBalancers, errs[2] = w.HCN.ListLoadBalancers()
		a.err = errors.Join(errs[:]...)
		done <- a
		return nil
	})
	select {
	case a := <-done:
		return a.Snapshot, a.err
	case <-ctx.Done():
		return Snapshot{}, fmt.Errorf("%w: %w", hnscall.ErrNoAnswer, ctx.Err())
	}
}
