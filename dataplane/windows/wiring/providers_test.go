package wiring

import (
	"fmt"
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// peer passes another node to the wiring, like the feed: a transaction with a service follows.
func (r *rig) peer(name, address, block string) {
	r.w.Observe(&proto.VXLANTunnelEndpointUpdate{Node: name, ParentDeviceIp: address})
	r.w.Observe(&proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_REMOTE_WORKLOAD, IpPoolType: proto.IPPoolType_VXLAN, Dst: block, DstNodeName: name})
}

// provided returns an error if a backend's endpoint does not have a node's address.
func (r *rig) provided(backend netip.Addr, want string) error {
	e, is := r.endpoints()[remotePrefix+backend.String()]
	if at, err := providerOf(e); err != nil || at != want || !is {
		return fmt.Errorf("backend %s has provider address %q, want %s (%v)", backend, at, want, err)
	}
	return nil
}

// TestProvidersOfBackends: on an overlay, a backend's endpoint has the address of the node that has the pod, and follows it: when the node has
// another address, and when the pod's addresses move to another node. A backend outside of the cluster has this node's address. HNS may not
// change it in place.
func TestProvidersOfBackends(t *testing.T) {
	pod, host, outside := netip.MustParseAddr("10.1.9.9"), netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("203.0.113.9")
	for name, wrap := range map[string]func(HCN) HCN{
		"in place": func(h HCN) HCN { return h },
		"nothing":  func(h HCN) HCN { return rigidHNS{h, nil} },
		"refused":  func(h HCN) HCN { return rigidHNS{h, fmt.Errorf("no: %w", hcn.ErrUnsupported)} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, hnsmem.New())
			r.noIPv6 = true
			r.w.HCN = wrap(r.w.HCN)
			r.peer("two", host.String(), "10.1.9.0/24")
			values := []txn.KV{overlay(), r.pod(1), service("a", 1, podAddr(1), pod), service("b", 2, host), service("c", 3, outside)}
			r.must(r.commit(txn.FullResync, values...))
			check := func(what string, want map[netip.Addr]string) {
				t.Helper()
				for backend, at := range want {
					if err := r.provided(backend, at); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				r.must(r.leads("10.96.0.1", podAddr(1), pod))
				r.must(r.leads("10.96.0.3", outside))
				r.unwritten(what, values)
			}
			check("at first", map[netip.Addr]string{pod: "192.0.2.9", host: "192.0.2.9", outside: "192.0.2.1"})
			before := r.endpoints()[remotePrefix+pod.String()].ID
			r.w.Observe(&proto.VXLANTunnelEndpointUpdate{Node: "two", ParentDeviceIp: "192.0.2.30"})
			route := kv(nb.HNSHostRouteKey("10.9.0.0/24"), &windows_hns.HostRoute{Destination: "10.9.0.0/24", NextHop: "192.0.2.8"})
			r.must(r.commit(txn.Update, route)) // no service and no pod changes
			values = append(values, route)
			check("another address", map[netip.Addr]string{pod: "192.0.2.30", host: "192.0.2.1", outside: "192.0.2.1"})
			if same := before == r.endpoints()[remotePrefix+pod.String()].ID; same != (name == "in place") {
				t.Errorf("the same endpoint: %v", same)
			}
			r.peer("three", "192.0.2.40", "10.1.9.0/24")
			r.must(r.commit(txn.FullResync, values...))
			check("another node", map[netip.Addr]string{pod: "192.0.2.40"})
			r.w.Observe(&proto.RouteRemove{Dst: "10.1.9.0/24"})
			r.must(r.commit(txn.FullResync, values...))
			check("no node", map[netip.Addr]string{pod: "192.0.2.1"})
		})
	}
}

// TestOwnAddressOfBackends: the endpoints of backends outside of the cluster follow this node's own address.
func TestOwnAddressOfBackends(t *testing.T) {
	r := newRig(t, hnsmem.New())
	r.noIPv6 = true
	outside := netip.MustParseAddr("203.0.113.9")
	for _, address := range []string{"192.0.2.1", "192.0.2.50"} {
		r.must(r.commit(txn.FullResync, append(r.nodeAt(overlay(), address), service("c", 3, outside))...))
		r.must(r.provided(outside, address))
	}
}
