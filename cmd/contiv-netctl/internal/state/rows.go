package state

import (
	"context"
	"errors"
	"net/netip"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// The paths of the agents' REST API.
const (
	PodsPath     = "/contiv/v1/pods"
	ServicesPath = "/contiv/v1/services"
)

// Get returns a function that requests a path from an agent.
func Get[T any](path string) func(context.Context, *client.Agent) (T, error) {
	return func(ctx context.Context, a *client.Agent) (v T, err error) {
		err = a.Get(ctx, path, &v)
		return v, err
	}
}

// NoAnswer describes in a few words why an agent did not respond.
func NoAnswer(err error) string {
	var u *client.Unreachable
	if errors.As(err, &u) {
		return "no reply: " + u.Cause.Error()
	}
	var e *client.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return err.Error()
}

// Pod is a pod and the node that it is on.
type Pod struct {
	Node        string         `json:"node"`
	Namespace   string         `json:"namespace"`
	Name        string         `json:"name"`
	Addresses   []netip.Prefix `json:"addresses"`
	Interface   string         `json:"interface"`
	ContainerID string         `json:"containerID"`
	Netns       string         `json:"netns"`
	Current     bool           `json:"current"`
}

// ID returns NAMESPACE/NAME; a pod without Kubernetes has no namespace.
func (p *Pod) ID() string {
	if p.Namespace == "" {
		return p.Name
	}
	return p.Namespace + "/" + p.Name
}

// PodList holds pods and the answers of the nodes.
type PodList struct {
	Pods    []Pod
	Answers []client.Answer[[]Pod]
}

// Pods requests the pods of nodes; of all nodes, if none is given.
func Pods(ctx context.Context, c *client.Cluster, nodes []string) PodList {
	out := PodList{Pods: []Pod{}, Answers: client.Each(ctx, c, nodes, Get[[]Pod](PodsPath))}
	for _, a := range out.Answers {
		for _, p := range a.Value {
			p.Node = a.Node
			out.Pods = append(out.Pods, p)
		}
	}
	return out
}

// IPAM is a node's share of the cluster's addresses.
type IPAM struct {
	NodeID            uint32  `json:"nodeId"`
	NodeName          string  `json:"nodeName"`
	NodeIP            string  `json:"nodeIP"`
	PodSubnetThisNode string  `json:"podSubnetThisNode"`
	VppHostNetwork    string  `json:"vppHostNetwork"`
	Subnets           []Usage `json:"subnets"`
}

// Usage is the number of used and free addresses of a subnet.
type Usage struct {
	Subnet     string
	Used, Free int
}

// QueryIPAM requests the subnets of a node.
func QueryIPAM(ctx context.Context, a *client.Agent) (row IPAM, err error) {
	if err := a.Get(ctx, "/contiv/v1/ipam", &row); err != nil {
		return row, err
	}
	var allocations struct{ Subnets []Usage }
	err = a.Get(ctx, "/contiv/v1/ipam/allocations", &allocations)
	row.Subnets = allocations.Subnets
	return row, err
}

// Service is a service as a node's dataplane has it.
type Service struct {
	Namespace, Name                          string
	ClusterIPs, ExternalIPs, LoadBalancerIPs []string
	TrafficPolicy, InternalTrafficPolicy     string
	SessionAffinityTimeout                   uint32 `json:",omitempty"`
	HealthCheckNodePort                      uint16 `json:",omitempty"`
	HealthCheckError                         string `json:",omitempty"`
	Ports                                    []ServicePort
}

// ServicePort is a port of a service with its backends, address:port each.
type ServicePort struct {
	Name, Protocol string
	Port           uint16
	NodePort       uint16 `json:",omitempty"`
	Backends       []string
}
