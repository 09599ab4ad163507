package wiring

import (
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// otherWords is an HNS that lists subnets and addresses in another order, and IPv6 in another spelling, than it was given.
type otherWords struct{ HCN }

func (o otherWords) ListNetworks() ([]hcn.Network, error) {
	list, err := o.HCN.ListNetworks()
	for _, n := range list {
		for _, pool := range n.IPAMs {
			slices.Reverse(pool.Subnets)
			for i := range pool.Subnets {
				s := &pool.Subnets[i]
				s.IPAddressPrefix = strings.Replace(s.IPAddressPrefix, "fd00:1::", "FD00:1:0:0::", 1)
				for j := range s.Routes {
					s.Routes[j].NextHop = strings.ToUpper(s.Routes[j].NextHop)
				}
			}
		}
	}
	return list, err
}

func (o otherWords) ListEndpoints() ([]hcn.Endpoint, error) {
	list, err := o.HCN.ListEndpoints()
	for _, e := range list {
		slices.Reverse(e.IPConfigurations)
		for i := range e.IPConfigurations {
			e.IPConfigurations[i].IPAddress = strings.ToUpper(e.IPConfigurations[i].IPAddress)
		}
	}
	return list, err
}

// TestHNSListsInOtherWords: the order in which HNS lists subnets and addresses does not cause a network or a pod's endpoint to be made again.
func TestHNSListsInOtherWords(t *testing.T) {
	r := newRig(t, hnsmem.New())
	r.w.HCN = otherWords{r.w.HCN}
	pod := r.pod(1)
	r.must(r.commit(txn.FullResync, bridge(), pod))
	r.host.Calls()
	r.must(r.commit(txn.FullResync, bridge(), pod))
	for _, c := range r.host.Calls() {
		if c.Writes() {
			t.Errorf("a resync with nothing changed: %v", c)
		}
	}
}

// TestNodeEndpointIsRepaired: if the node's own endpoint is missing, or not in the node's namespace, it is made again, and the network and its
// pods stay.
func TestNodeEndpointIsRepaired(t *testing.T) {
	for name, network := range map[string]txn.KV{gatewayEndpoint: bridge(), sourceEndpoint: overlay()} {
		r := newRig(t, hnsmem.New())
		r.noIPv6 = name == sourceEndpoint
		pod := r.pod(1)
		r.must(r.commit(txn.FullResync, network, pod))
		before := r.endpoints()
		damages := map[string]func(hcn.Endpoint){"it is gone": func(e hcn.Endpoint) { r.must(r.host.V2().DeleteEndpoint(e.ID)) }}
		if name == gatewayEndpoint {
			damages["it is in no namespace"] = func(e hcn.Endpoint) {
				r.must(r.host.V2().DetachEndpoint(e.HostComputeNamespace, e.ID))
			}
		}
		for what, damage := range damages {
			damage(r.endpoints()[name])
			r.must(r.commit(txn.FullResync, network, pod))
			now := r.endpoints()
			if now[PodPrefix+"1"].ID != before[PodPrefix+"1"].ID {
				t.Errorf("%s: %s: the pod has lost its endpoint", name, what)
			}
			if now[name].ID == "" || (now[name].HostComputeNamespace == "") != (name == sourceEndpoint) {
				t.Errorf("%s: %s: after the repair: %+v", name, what, now[name])
			}
			r.host.Calls()
			r.must(r.commit(txn.FullResync, network, pod))
			for _, c := range r.host.Calls() {
				if c.Writes() {
					t.Errorf("%s: %s: written again: %v", name, what, c)
				}
			}
		}
	}
}

// TestBalancerOutlivesItsEndpoints: a load balancer whose pods have been removed is removed, or gets the new pods, also if HNS keeps it.
func TestBalancerOutlivesItsEndpoints(t *testing.T) {
	r := newRig(t, hnsmem.New())
	r.host.KeepBalancers()
	pod, other := r.pod(1), r.pod(2)
	s := service("a", 1, podAddr(1))
	r.must(r.commit(txn.FullResync, bridge(), pod, s))
	r.must(r.commit(txn.Update, removed(pod)))
	if err := r.leads("10.96.0.1"); err == nil {
		t.Errorf("no pod, and a load balancer: %s", r.state())
	}
	r.must(r.commit(txn.Update, pod))
	r.must(r.leads("10.96.0.1", podAddr(1)))
	// The agent restarts while the pod is removed.
	again := newRig(t, r.host)
	r.host.Vanish(r.endpoints()[PodPrefix+"1"].ID)
	again.must(again.commit(txn.FullResync, bridge(), other, service("a", 1, podAddr(2))))
	again.must(again.leads("10.96.0.1", podAddr(2)))
}
