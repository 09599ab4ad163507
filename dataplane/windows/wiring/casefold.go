package wiring

import (
	"strings"

	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// folded is an HNS with all IDs in upper case. They are GUIDs: Windows accepts either case, and does not guarantee the same case in every
// reference to an object.
type folded struct{ HCN }

func capitals(ids ...*string) {
	for _, id := range ids {
		*id = strings.ToUpper(*id)
	}
}

func foldBalancer(lb *hcn.LoadBalancer) {
	capitals(&lb.ID)
	for i := range lb.HostComputeEndpoints {
		capitals(&lb.HostComputeEndpoints[i])
	}
}

// ListNetworks implements HCN.
func (f folded) ListNetworks() ([]hcn.Network, error) {
	list, err := f.HCN.ListNetworks()
	for i := range list {
		capitals(&list[i].ID)
	}
	return list, err
}

// CreateNetwork implements HCN.
func (f folded) CreateNetwork(n hcn.Network) (hcn.Network, error) {
	made, err := f.HCN.CreateNetwork(n)
	capitals(&made.ID)
	return made, err
}

// ListEndpoints implements HCN. IDs of namespaces are not converted, because other programs use them.
func (f folded) ListEndpoints() ([]hcn.Endpoint, error) {
	list, err := f.HCN.ListEndpoints()
	for i := range list {
		capitals(&list[i].ID, &list[i].HostComputeNetwork)
	}
	return list, err
}

// CreateEndpoint implements HCN.
func (f folded) CreateEndpoint(e hcn.Endpoint) (hcn.Endpoint, error) {
	made, err := f.HCN.CreateEndpoint(e)
	capitals(&made.ID, &made.HostComputeNetwork)
	return made, err
}

// ListLoadBalancers implements HCN.
func (f folded) ListLoadBalancers() ([]hcn.LoadBalancer, error) {
	list, err := f.HCN.ListLoadBalancers()
	for i := range list {
		foldBalancer(&list[i])
	}
	return list, err
}

// CreateLoadBalancer implements HCN.
func (f folded) CreateLoadBalancer(lb hcn.LoadBalancer) (hcn.LoadBalancer, error) {
	made, err := f.HCN.CreateLoadBalancer(lb)
	foldBalancer(&made)
	return made, err
}
