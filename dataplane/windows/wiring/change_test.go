package wiring

import (
	"fmt"
	"slices"
	"testing"

	pb "google.golang.org/protobuf/proto"

	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// nodeAt returns a network and two pods on a node with an address, and a service.
func (r *rig) nodeAt(network txn.KV, address string) []txn.KV {
	n := pb.CloneOf(network.Value.(*windows_hns.Network))
	isOverlay := n.GetType() == windows_hns.Network_OVERLAY
	if isOverlay {
		n.ProviderAddress = address
	}
	values := []txn.KV{kv(network.Key, n), service("a", 1, podAddr(1))}
	for i := range 2 {
		pod := r.pod(i + 1)
		e := pod.Value.(*windows_hns.Endpoint)
		if e.ThroughSwitch = []string{"10.96.0.0/12"}; isOverlay {
			e.ProviderAddress = address
		} else {
			e.ThroughSwitch = append(e.ThroughSwitch, address+"/32")
		}
		values = append(values, pod)
	}
	return values
}

// at returns an error if HNS does not have the settings for an address of the node.
func (r *rig) at(network txn.KV, address string) error {
	names := []string{PodPrefix + "1", PodPrefix + "2"}
	isOverlay := network.Value.(*windows_hns.Network).GetType() == windows_hns.Network_OVERLAY
	if isOverlay {
		names = append(names, sourceEndpoint)
	}
	for _, name := range names {
		e := r.endpoints()[name]
		var is windows_hns.Endpoint
		if err := readNode(e, &is); err != nil {
			return err
		}
		if isOverlay && is.GetProviderAddress() != address || !isOverlay && !slices.Contains(is.GetThroughSwitch(), address+"/32") ||
			name != sourceEndpoint && !slices.Contains(is.GetThroughSwitch(), "10.96.0.0/12") || len(is.GetThroughSwitch()) > 2 {
			return fmt.Errorf("endpoint %s has provider address %q and routes to %v, want those of %s", name, is.GetProviderAddress(), is.GetThroughSwitch(), address)
		}
	}
	return r.leads("10.96.0.1", podAddr(1))
}

// TestNodeAddressChanges: when the node's address changes, its own endpoint and those of pods get the matching settings, by an update, by a
// resync and after a restart; pods keep their endpoints. Changes by another program are repaired.
func TestNodeAddressChanges(t *testing.T) {
	for _, network := range []txn.KV{overlay(), bridge()} {
		r := newRig(t, hnsmem.New())
		r.noIPv6 = network.Value.(*windows_hns.Network).GetType() == windows_hns.Network_OVERLAY
		r.must(r.commit(txn.FullResync, r.nodeAt(network, "192.0.2.1")...))
		r.must(r.at(network, "192.0.2.1"))
		before := r.endpoints()
		now := r
		for i, step := range []func(values []txn.KV) error{
			func(values []txn.KV) error { return now.commit(txn.Update, values...) },
			func(values []txn.KV) error { return now.commit(txn.UpstreamResync, values...) },
			func(values []txn.KV) error { return now.commit(txn.FullResync, values...) },
			func(values []txn.KV) error {
				now = newRigAfter(t, r.host, r.record)
				now.noIPv6 = r.noIPv6
				return now.commit(txn.FullResync, values...)
			},
		} {
			address := fmt.Sprintf("192.0.2.%d", 50+i)
			now.must(step(now.nodeAt(network, address)))
			if err := now.at(network, address); err != nil {
				t.Errorf("step %d: %v", i, err)
			}
			if id := now.endpoints()[PodPrefix+"1"].ID; id != before[PodPrefix+"1"].ID {
				t.Errorf("step %d: the pod has lost its endpoint", i)
			}
		}
		last := now.nodeAt(network, "192.0.2.53")
		now.unwritten("nothing has changed", last)
		kind, settings := hcn.TypeSDNRoute, any(hcn.SDNRouteSettings{DestinationPrefix: "192.0.2.7/32", NeedEncap: true})
		if now.noIPv6 {
			kind, settings = hcn.TypeProviderAddr, hcn.ProviderAddressSettings{ProviderAddress: "192.0.2.7"}
		}
		p, err := hcn.NewPolicy(kind, settings)
		now.must(err)
		for _, name := range []string{PodPrefix + "2", sourceEndpoint} {
			if e, is := now.endpoints()[name]; is {
				now.must(now.host.V2().UpdateEndpointPolicies(e.ID, p))
			}
		}
		now.must(now.commit(txn.FullResync, last...))
		now.must(now.at(network, "192.0.2.53"))
		now.unwritten("repaired", last)
	}
}

// unwritten resyncs, and fails the test if that writes anything.
func (r *rig) unwritten(what string, values []txn.KV) {
	r.t.Helper()
	r.host.Calls()
	r.must(r.commit(txn.FullResync, values...))
	for _, c := range r.host.Calls() {
		if c.Writes() {
			r.t.Errorf("%s, and a resync: %v", what, c)
		}
	}
}

// rigidHNS does not change an endpoint's provider address: it rejects the change, or does nothing.
type rigidHNS struct {
	HCN
	err error
}

func (h rigidHNS) UpdateEndpointPolicies(id string, policies ...hcn.Policy) error {
	if len(ofType(policies, hcn.TypeProviderAddr)) > 0 {
		return h.err
	}
	return h.HCN.UpdateEndpointPolicies(id, policies...)
}

// TestNodeAddressOnRigidHNS: if HNS does not change endpoints in place, they are made again.
func TestNodeAddressOnRigidHNS(t *testing.T) {
	for _, err := range []error{nil, fmt.Errorf("no: %w", hcn.ErrUnsupported), fmt.Errorf("no: %w", hcn.ErrInvalid)} {
		r := newRig(t, hnsmem.New())
		r.noIPv6 = true
		r.w.HCN = rigidHNS{r.w.HCN, err}
		r.must(r.commit(txn.FullResync, r.nodeAt(overlay(), "192.0.2.1")...))
		_ = r.commit(txn.Update, r.nodeAt(overlay(), "192.0.2.9")...) // the first endpoint fails, and is retried
		r.eventually("another address", func() error { return r.at(overlay(), "192.0.2.9") })
		r.eventually("a resync", func() error { return r.commit(txn.FullResync, r.nodeAt(overlay(), "192.0.2.9")...) })
		r.unwritten("another address", r.nodeAt(overlay(), "192.0.2.9"))
	}
}
