package wiring

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/nb"
	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// TestPodsAreMadeClosed: an endpoint is never open before the driver has written its rules.
func TestPodsAreMadeClosed(t *testing.T) {
	r := newRig(t, hnsmem.New())
	pod := r.pod(1)
	r.must(r.commit(txn.FullResync, bridge(), pod))
	e := r.endpoints()[PodPrefix+"1"]
	for _, dir := range []hns.Direction{hns.In, hns.Out} {
		allowed, err := r.host.Allowed(e.ID, dir, hnsmem.Packet{Protocol: 6, Local: podAddr(1), Remote: podAddr(2), LocalPort: 80, RemotePort: 99})
		if err != nil || allowed {
			t.Errorf("a packet %s before any policy is allowed: %v, %v", dir, allowed, err)
		}
	}
	if gw := r.endpoints()[gatewayEndpoint]; len(r.host.ACLs(gw.ID)) > 0 || gw.HostComputeNamespace == "" {
		t.Errorf("the node's own endpoint: %+v", gw)
	}
	nat, err := hcn.SettingsOf[hcn.OutboundNATSettings](e.Policies, hcn.TypeOutBoundNAT)
	if err != nil || len(nat) != 1 || e.HostComputeNamespace == "" || len(e.Routes) != 2 {
		t.Errorf("%+v, NAT %v, %v", e, nat, err)
	}
	// The driver owns the rules that it has written: no resync changes them.
	r.must(r.host.V1().ApplyACLs(e.ID, r.host.ACLs(e.ID)[:1]))
	r.host.Calls()
	r.must(r.commit(txn.FullResync, bridge(), pod))
	for _, c := range r.host.Calls() {
		if c.Writes() {
			t.Errorf("a resync with nothing changed: %v", c)
		}
	}
	r.must(r.commit(txn.Update, removed(pod)))
	if _, is := r.endpoints()[PodPrefix+"1"]; is {
		t.Error("the pod has gone and has an endpoint")
	}
}

// TestIPv6: a bridge has both families if Windows supports them; otherwise the error names the network and contains the fix.
func TestIPv6(t *testing.T) {
	r := newRig(t, hnsmem.New())
	pod := r.pod(1)
	r.must(r.commit(txn.FullResync, bridge(), pod))
	e := r.endpoints()[PodPrefix+"1"]
	if len(e.IPConfigurations) != 2 || e.IPConfigurations[1].IPAddress != "fd00:1::11" || len(e.Routes) != 2 || e.Routes[1].DestinationPrefix != "::/0" {
		t.Errorf("%+v", e)
	}
	if gw := r.endpoints()[gatewayEndpoint]; len(gw.IPConfigurations) != 2 {
		t.Errorf("the node's own endpoint has not both gateways: %+v", gw)
	}
	both := overlay()
	both.Value.(*windows_hns.Network).Subnets = bridge().Value.(*windows_hns.Network).Subnets
	six := bridge()
	six.Value.(*windows_hns.Network).Subnets = six.Value.(*windows_hns.Network).Subnets[1:]
	old := hnsmem.New()
	old.SetFeatures(hns.Features{AddressLists: true, PortRanges: true}, hcn.Features{RemoteSubnet: true, HostRoute: true})
	for name, tc := range map[string]struct {
		host    *hnsmem.Host
		network txn.KV
		want    string
	}{
		"an old Windows": {old, bridge(), "fd00:1::/64: this Windows has no IPv6 for containers; use Windows Server 2022"},
		"overlay":        {hnsmem.New(), both, "fd00:1::/64: Windows has no IPv6 in overlay networks; set nodeToNodeTransport to nooverlay"},
		"IPv6 alone":     {hnsmem.New(), six, "Windows has no networks with IPv6 alone; add an IPv4 network to podSubnetCIDR"},
	} {
		r := newRig(t, tc.host)
		if err := r.commit(txn.FullResync, tc.network); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if list, err := tc.host.V2().ListNetworks(); err != nil || len(list) > 0 {
			t.Errorf("%s: networks %v, %v", name, list, err)
		}
	}
}

// TestNATChangesInPlace: a pod keeps its endpoint when the networks change that it reaches with its own address.
func TestNATChangesInPlace(t *testing.T) {
	r := newRig(t, hnsmem.New())
	pod := r.pod(1)
	r.must(r.commit(txn.FullResync, bridge(), pod))
	id := r.endpoints()[PodPrefix+"1"].ID
	for _, nets := range [][]string{{"10.0.0.0/8", "192.0.2.0/24"}, nil, {"10.0.0.0/8"}} {
		changed := r.pod(1)
		changed.Value.(*windows_hns.Endpoint).NoNat = nets
		r.must(r.commit(txn.Update, changed))
		e := r.endpoints()[PodPrefix+"1"]
		nat, err := hcn.SettingsOf[hcn.OutboundNATSettings](e.Policies, hcn.TypeOutBoundNAT)
		if err != nil || e.ID != id || len(nat) > 1 || len(nat) == 1 && len(nat[0].Exceptions) != len(nets) || len(nat) == 0 && nets != nil {
			t.Errorf("%v: %+v, %v", nets, nat, err)
		}
		if len(r.host.ACLs(id)) == 0 {
			t.Errorf("%v: the endpoint has lost its rules", nets)
		}
	}
}

// TestHNSThatHangs: no call blocks the scheduler; a call that ends late is found, and nothing is made twice.
func TestHNSThatHangs(t *testing.T) {
	for _, op := range []string{"CreateEndpoint", "AttachEndpoint", "ListEndpoints", "ListNetworks", "CreateNetwork"} {
		t.Run(op, func(t *testing.T) {
			r := newRig(t, hnsmem.New())
			pods := []txn.KV{r.pod(1), r.pod(2), r.pod(3)}
			release, calls := r.hang(op)
			defer release()
			err := r.commit(txn.FullResync, append(pods, bridge())...)
			if err == nil || !strings.Contains(err.Error(), "does not respond") {
				t.Fatalf("%v", err)
			}
			if n := calls(); n != 1 {
				t.Errorf("one transaction waited for %d calls", n)
			}
			if err := r.commit(txn.Update, r.pod(4)); err == nil {
				t.Error("HNS hangs, and a pod is connected")
			}
			release()
			r.eventually("all pods", func() error {
				for i := range 4 {
					e, is := r.endpoints()[fmt.Sprintf("%s%d", PodPrefix, i+1)]
					if !is || e.HostComputeNamespace == "" {
						// A resync that could not read HNS is repeated by the controller.
						return errors.Join(fmt.Errorf("pod %d: %+v", i+1, e), r.commit(txn.FullResync, append(pods, r.pod(4), bridge())...))
					}
				}
				return nil
			})
			r.must(r.commit(txn.FullResync, append(pods, r.pod(4), bridge())...))
			if n := len(r.endpoints()); n != 5 {
				t.Errorf("%d endpoints: %v", n, r.endpoints())
			}
		})
	}
}

// TestServicesThatHang: a call for one load balancer that hangs affects only that service.
func TestServicesThatHang(t *testing.T) {
	r := newRig(t, hnsmem.New())
	r.noIPv6 = true
	r.must(r.commit(txn.FullResync, overlay(), r.pod(1)))
	release, _ := r.hang("CreateLoadBalancer")
	defer release()
	if err := r.commit(txn.Update, service("a", 1, podAddr(1))); err == nil || !strings.Contains(err.Error(), "does not respond") {
		t.Errorf("%v", err)
	}
	if err := r.commit(txn.Update, r.pod(2)); err != nil {
		t.Errorf("a pod beside it: %v", err)
	}
	release()
	r.eventually("service", func() error { return r.leads("10.96.0.1", podAddr(1)) })
}

// leads returns an error if an address does not have the given backends.
func (r *rig) leads(vip string, to ...netip.Addr) error {
	for line := range strings.Lines(r.state()) {
		if strings.Contains(line, `"FrontendVIPs":["`+vip+`"]`) {
			var missing []error
			for _, a := range to {
				if !strings.Contains(line, `"`+a.String()+`"`) {
					missing = append(missing, fmt.Errorf("%s is not in %s", a, line))
				}
			}
			return errors.Join(missing...)
		}
	}
	return fmt.Errorf("no load balancer %s", vip)
}

// TestOneServiceFails: if HNS rejects a part of one service, no other service fails, and the part is created when HNS accepts it.
func TestOneServiceFails(t *testing.T) {
	r := newRig(t, hnsmem.New())
	remote := netip.MustParseAddr("10.1.9.9")
	r.noIPv6 = true
	r.must(r.commit(txn.FullResync, overlay(), r.pod(1)))
	r.host.Hook(func(c hnsmem.Call) error {
		if c.Op == "CreateEndpoint" && strings.HasPrefix(c.ID, remotePrefix) {
			return errors.New("no luck")
		}
		return nil
	})
	err := r.commit(txn.Update, service("a", 1, remote), service("b", 2, podAddr(1)))
	var failed *txn.Error
	if !errors.As(err, &failed) || len(failed.Failed) != 1 || !strings.HasSuffix(failed.Failed[0].Key, "/a") {
		t.Errorf("%v, want an error of service a only", err)
	}
	r.must(r.leads("10.96.0.2", podAddr(1)))
	r.host.Hook(nil)
	r.eventually("retried", func() error { return r.leads("10.96.0.1", remote) })
	r.host.Hook(func(c hnsmem.Call) error {
		if c.Op == "DeleteLoadBalancer" {
			return errors.New("no luck")
		}
		return nil
	})
	if err := r.commit(txn.Update, removed(service("a", 1))); err == nil {
		t.Error("a load balancer stays, and its service is taken for removed")
	}
	r.host.Hook(nil)
	r.eventually("removed", func() error {
		if strings.Contains(r.state(), `["10.96.0.1"]`) || strings.Contains(r.state(), remotePrefix) {
			return errors.New(r.state())
		}
		return nil
	})
}

// TestRandomOrder: whatever the order, the failures and the endpoints that vanish, a last resync ends in the same state as a single resync.
func TestRandomOrder(t *testing.T) {
	for seed := range uint64(15) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		network := bridge()
		if seed%2 == 0 {
			network = overlay()
		}
		r := newRig(t, disorderly(seed))
		r.noIPv6 = seed%2 == 0
		r.must(r.commit(txn.FullResync, network))
		fail := unlucky(seed)
		want := map[string]txn.KV{network.Key: network}
		for range 60 {
			v := r.pod(rnd.IntN(6))
			if rnd.IntN(2) == 0 {
				v = service(fmt.Sprint("s", rnd.IntN(4)), byte(1+rnd.IntN(5)), podAddr(rnd.IntN(6)), netip.AddrFrom4([4]byte{10, 1, 9, byte(rnd.IntN(3))}))
			}
			if rnd.IntN(4) == 0 {
				v = removed(v)
				delete(want, v.Key)
			} else {
				want[v.Key] = v
			}
			if rnd.IntN(8) == 0 {
				for _, e := range r.endpoints() {
					if strings.HasPrefix(e.Name, PodPrefix) {
						r.host.Vanish(e.ID)
						break
					}
				}
			}
			r.host.Hook(fail)
			_ = r.commit(txn.Update, v) // it may fail
			r.host.Hook(nil)
		}
		var values []txn.KV
		for _, v := range want {
			values = append(values, v)
		}
		other := newRig(t, hnsmem.New())
		other.noIPv6 = r.noIPv6
		for i := range 6 {
			other.pod(i)
		}
		conflicts := failedKeys(other.commit(txn.FullResync, values...))
		r.eventually("resync", func() error {
			err := r.commit(txn.FullResync, values...)
			if slices.Equal(failedKeys(err), conflicts) { // errors of services with the same frontend
				return nil
			}
			return fmt.Errorf("%w, want failures of %v", err, conflicts)
		})
		r.host.Calls()
		if keys := failedKeys(r.commit(txn.FullResync, values...)); !slices.Equal(keys, conflicts) {
			t.Errorf("seed %d: a resync with nothing changed: failures of %v, want %v", seed, keys, conflicts)
		}
		for _, c := range r.host.Calls() {
			if c.Writes() {
				t.Errorf("seed %d: a resync with nothing changed: %v", seed, c)
			}
		}
		r.host.Disorder(nil)
		if got, want := r.state(), other.state(); got != want {
			t.Fatalf("seed %d: HNS has\n%s\nand after one resync\n%s", seed, got, want)
		}
	}
}

// disorderly returns an HNS that lists objects in any order and spelling, and in every second case keeps load balancers whose endpoints are
// removed.
func disorderly(seed uint64) *hnsmem.Host {
	host := hnsmem.New()
	host.Disorder(rand.New(rand.NewPCG(seed, 7)))
	if seed/2%2 == 0 {
		host.KeepBalancers()
	}
	return host
}

// unlucky returns a hook that makes one write in four fail.
func unlucky(seed uint64) func(hnsmem.Call) error {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 2))
	return func(c hnsmem.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if c.Writes() && c.Op != "CreateNamespace" && rnd.IntN(4) == 0 {
			return errors.New("no luck")
		}
		return nil
	}
}

// TestHostRoutes: our routes are identified in the system's list, and are added, changed and removed.
func TestHostRoutes(t *testing.T) {
	r := newRig(t, hnsmem.New())
	route := func(hop string) txn.KV {
		return kv(nb.HNSHostRouteKey("10.1.9.0/24"), &windows_hns.HostRoute{Destination: "10.1.9.0/24", NextHop: hop})
	}
	for _, hop := range []string{"192.0.2.9", "192.0.2.8"} {
		r.must(r.commit(txn.FullResync, bridge(), route(hop)))
		if list, _ := r.routes.List(); len(list) != 1 || list[0].NextHop.String() != hop {
			t.Errorf("%v, want by %s", list, hop)
		}
	}
	r.must(r.commit(txn.FullResync, bridge()))
	if list, _ := r.routes.List(); len(list) != 0 {
		t.Errorf("%v", list)
	}
	if err := r.commit(txn.Update, kv(nb.HNSHostRouteKey("10.1.9.0/24"), &windows_hns.HostRoute{Destination: "x"})); err == nil {
		t.Error("a route to x")
	}
}

// TestSnapshot: a snapshot ends with its request, whatever HNS does.
func TestSnapshot(t *testing.T) {
	r := newRig(t, hnsmem.New())
	r.must(r.commit(txn.FullResync, bridge()))
	if s, err := r.w.Snapshot(t.Context()); err != nil || len(s.Networks) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	gate := make(chan struct{})
	r.host.Hook(func(hnsmem.Call) error { <-gate; return nil })
	defer close(gate)
	r.w.Calls.Timeout = time.Millisecond
	if _, err := r.w.Snapshot(t.Context()); err == nil {
		t.Error("HNS hangs, and there is an answer")
	}
}

// TestEndpointWithoutNamespace: an agent that was killed before it could attach an endpoint leaves one without a namespace. It is made again
// if its pod exists, and removed otherwise. HNS rejects an empty namespace ID by an error that does not mean that there is nothing to detach.
func TestEndpointWithoutNamespace(t *testing.T) {
	for name, wanted := range map[string]bool{"of a pod": true, "without a pod": false} {
		r := newRig(t, hnsmem.New())
		pod := r.pod(1)
		r.must(r.commit(txn.FullResync, bridge(), pod))
		e := r.endpoints()[PodPrefix+"1"]
		r.must(r.host.V2().DetachEndpoint(e.HostComputeNamespace, e.ID))
		again, values := newRig(t, r.host), []txn.KV{bridge()}
		if wanted {
			values = append(values, pod)
		}
		again.must(again.commit(txn.FullResync, values...))
		now, is := again.endpoints()[PodPrefix+"1"]
		if is != wanted || wanted && now.HostComputeNamespace != e.HostComputeNamespace {
			t.Errorf("%s: there %v, %+v", name, is, now)
		}
	}
}

// TestFeaturesAreNotKnown: if HNS does not report which rules it supports, no endpoint is made with rules that it may reject. The next attempt
// succeeds.
func TestFeaturesAreNotKnown(t *testing.T) {
	r := newRig(t, hnsmem.New())
	var failed atomic.Bool
	r.host.Hook(func(c hnsmem.Call) error {
		if c.Op == "SupportedFeatures" && failed.CompareAndSwap(false, true) {
			return errors.New("no luck")
		}
		return nil
	})
	if err := r.commit(txn.FullResync, bridge(), r.pod(1)); err == nil || !strings.Contains(err.Error(), "does not report the features of its rules") {
		t.Errorf("%v", err)
	}
	r.eventually("the pod's endpoint", func() error {
		if _, is := r.endpoints()[PodPrefix+"1"]; !is {
			return errors.New("is missing")
		}
		return nil
	})
}
