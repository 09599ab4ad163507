package wiring

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// foreign makes a load balancer of another program, and removes its endpoint.
func (r *rig) foreign(network, vip string) {
	r.t.Helper()
	list, err := r.host.V2().ListNetworks()
	r.must(err)
	i := slices.IndexFunc(list, func(n hcn.Network) bool { return n.Name == network })
	if i < 0 {
		n, err := r.host.V2().CreateNetwork(hcn.Network{Name: network, Type: hcn.NAT})
		r.must(err)
		list, i = []hcn.Network{n}, 0
	}
	e, err := r.host.V2().CreateEndpoint(hcn.Endpoint{HostComputeNetwork: list[i].ID, Flags: hcn.FlagRemote,
		IPConfigurations: []hcn.IPConfig{{IPAddress: "172.16.0.2", PrefixLength: 32}}})
	r.must(err)
	_, err = r.host.V2().CreateLoadBalancer(hcn.LoadBalancer{HostComputeEndpoints: []string{e.ID}, FrontendVIPs: []string{vip},
		SourceVIP: "172.16.0.1", PortMappings: []hcn.LBPortMapping{{Protocol: 6, InternalPort: 80, ExternalPort: 80}}})
	r.must(err)
	r.host.Vanish(e.ID)
}

// balancers returns the addresses of the load balancers of HNS.
func (r *rig) balancers() (vips []string) {
	r.t.Helper()
	list, err := r.host.V2().ListLoadBalancers()
	r.must(err)
	for _, lb := range list {
		vips = append(vips, lb.FrontendVIPs...)
	}
	slices.Sort(vips)
	return vips
}

// vanishNetwork removes our network, like another program. HNS removes its endpoints.
func (r *rig) vanishNetwork() {
	r.t.Helper()
	n, _ := r.host.Network("contiv")
	r.must(r.host.V2().DeleteNetwork(n.ID))
}

// TestBalancerWithoutServiceAndEndpoints: load balancers of a service that was removed together with its pods, while the agent did not run or
// when the network was made again, are removed. Load balancers of other programs stay, including those without endpoints.
func TestBalancerWithoutServiceAndEndpoints(t *testing.T) {
	for i, network := range []txn.KV{bridge(), overlay()} {
		for name, tc := range map[string]struct {
			gone    func(r *rig)
			restart bool
			left    []txn.KV
			want    []string
		}{
			"pods go while the agent does not run": {gone: func(r *rig) { r.host.Vanish(r.endpoints()[PodPrefix+"1"].ID) }, restart: true,
				left: []txn.KV{service("b", 2, podAddr(2))}, want: []string{"10.96.0.2"}},
			"all pods and services go while it does not run": {gone: func(r *rig) {
				r.host.Vanish(r.endpoints()[PodPrefix+"1"].ID)
				r.host.Vanish(r.endpoints()[PodPrefix+"2"].ID)
			}, restart: true},
			"the network goes while it does not run": {gone: (*rig).vanishNetwork, restart: true,
				left: []txn.KV{service("b", 2, podAddr(2))}, want: []string{"10.96.0.2"}},
			"the network and all services go while it does not run": {gone: (*rig).vanishNetwork, restart: true},
			"the network goes while it runs": {gone: (*rig).vanishNetwork,
				left: []txn.KV{service("b", 2, podAddr(2))}, want: []string{"10.96.0.2"}},
			"the network and all services go while it runs": {gone: (*rig).vanishNetwork},
		} {
			r := newRig(t, hnsmem.New())
			r.host.KeepBalancers()
			r.noIPv6 = i == 1
			pod, other := r.pod(1), r.pod(2)
			r.must(r.commit(txn.FullResync, network, pod, other, service("a", 1, podAddr(1)), service("b", 2, podAddr(2)),
				service("remote", 3, netip.MustParseAddr("10.1.9.9"))))
			r.foreign("other", "10.96.0.77")
			again := r
			if tc.restart {
				again = newRigAfter(t, r.host, r.record)
				again.noIPv6 = r.noIPv6
			}
			tc.gone(r)
			for range 2 {
				again.must(again.commit(txn.FullResync, append(tc.left, network, other)...))
				if got, want := again.balancers(), append(tc.want, "10.96.0.77"); !slices.Equal(got, want) {
					t.Errorf("%s: load balancers %v, want %v", name, got, want)
				}
			}
			if len(again.record.ids) != len(tc.want) {
				t.Errorf("%s: the record has %v", name, again.record.ids)
			}
		}
	}
}

// TestResyncWithoutServices: load balancers of services that were removed while the agent did not run are removed, even if there is no other
// service.
func TestResyncWithoutServices(t *testing.T) {
	r := newRig(t, hnsmem.New())
	remote := netip.MustParseAddr("10.1.9.9")
	r.must(r.commit(txn.FullResync, bridge(), r.pod(1), service("a", 1, podAddr(1), remote)))
	again := newRig(t, r.host)
	_, err := again.s.Plan(t.Context(), &txn.Txn{Kind: txn.Update, Values: []txn.KV{service("b", 2, podAddr(1))}})
	again.must(err)
	again.must(again.leads("10.96.0.1", podAddr(1), remote))
	again.must(again.commit(txn.FullResync, bridge(), again.pod(1)))
	if _, is := again.endpoints()[remotePrefix+remote.String()]; is || len(again.balancers()) > 0 {
		t.Errorf("no service, and HNS has %v, %+v", again.balancers(), again.endpoints())
	}
	// A service is added later and removed, while another program changes HNS.
	again.must(again.commit(txn.Update, service("b", 2, podAddr(1))))
	again.must(again.leads("10.96.0.2", podAddr(1)))
	again.must(again.commit(txn.FullResync, bridge(), again.pod(1)))
	if len(again.balancers()) > 0 {
		t.Errorf("no service, and HNS has %v", again.balancers())
	}
}

// TestRestartKeepsBalancers: a restart with services writes nothing, whatever its record contains.
func TestRestartKeepsBalancers(t *testing.T) {
	r := newRig(t, hnsmem.New())
	values := []txn.KV{bridge(), r.pod(1), service("a", 1, podAddr(1))}
	r.must(r.commit(txn.FullResync, values...))
	for name, record := range map[string]*memoryRecord{
		"the same": r.record, "none": {}, "of other IDs": {ids: []string{"X", "Y"}},
	} {
		again := newRigAfter(t, r.host, record)
		r.host.Calls()
		again.must(again.commit(txn.FullResync, values...))
		for _, c := range r.host.Calls() {
			if c.Writes() {
				t.Errorf("a record %s: %v", name, c)
			}
		}
		if !slices.Equal(record.ids, r.record.ids) {
			t.Errorf("a record %s is %v afterwards, want %v", name, record.ids, r.record.ids)
		}
	}
}

// TestLateCallThatFails: the intent of a load balancer whose call has not ended stays in the record. After the call has ended without making
// anything, the intent is removed, also if the service has other backends by then.
func TestLateCallThatFails(t *testing.T) {
	r := newRig(t, hnsmem.New())
	release, late := make(chan struct{}), true
	r.w.HCN = faulty{r.w.HCN, func(op string, call func() error) error {
		if op != "CreateLoadBalancer" || !late {
			return call()
		}
		late = false
		r.pop <- time.Time{}
		<-release
		return errors.New("no luck")
	}}
	pods := []txn.KV{bridge(), r.pod(1), r.pod(2)}
	if err := r.commit(txn.FullResync, append(pods, service("a", 1, podAddr(1)))...); err == nil {
		t.Error("the call has not ended, and there is no error")
	}
	for range 2 {
		_ = r.commit(txn.FullResync, append(pods, service("a", 1, podAddr(2)))...)
		if ids := r.record.ids; !slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, intentPrefix) }) {
			t.Errorf("the call has not ended, and the record has %v", ids)
		}
	}
	close(release)
	r.eventually("a resync", func() error { return r.commit(txn.FullResync, append(pods, service("a", 1, podAddr(2)))...) })
	r.must(r.leads("10.96.0.1", podAddr(2)))
	if list, err := r.host.V2().ListLoadBalancers(); err != nil || len(list) != 1 || !slices.Equal(r.record.ids, []string{strings.ToUpper(list[0].ID)}) {
		t.Errorf("the record has %v, HNS %v, %v", r.record.ids, list, err)
	}
}

// TestRecordCannotBeUsed: without the record no services change, and the error contains the fix. It is retried: once the record works, the
// services change.
func TestRecordCannotBeUsed(t *testing.T) {
	values := func(r *rig) []txn.KV { return []txn.KV{bridge(), r.pod(1), service("a", 1, podAddr(1))} }
	made := func(calls []hnsmem.Call) bool {
		return slices.ContainsFunc(calls, func(c hnsmem.Call) bool { return c.Op == "CreateLoadBalancer" })
	}
	noRoom := errors.New("no space left on device")
	for name, tc := range map[string]struct {
		load, store func(n int) error // errors of the n-th call
		want        string
		made        bool
	}{
		"cannot be read":    {load: func(int) error { return noRoom }, want: "make the file readable"},
		"cannot be written": {store: func(int) error { return noRoom }, want: "make the directory writable"},
		"cannot be written a second time": {store: func(n int) error {
			if n == 1 {
				return nil
			}
			return noRoom
		}, want: "make the directory writable", made: true},
	} {
		record := &memoryRecord{load: tc.load, store: tc.store}
		r := newRigAfter(t, hnsmem.New(), record)
		err := r.commit(txn.FullResync, values(r)...)
		if err == nil || !errors.Is(err, noRoom) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := made(r.host.Calls()); got != tc.made {
			t.Errorf("%s: load balancer made: %v, want %v", name, got, tc.made)
		}
		if _, is := r.endpoints()[PodPrefix+"1"]; !is {
			t.Errorf("%s: the pod has no endpoint", name)
		}
		record.repair()
		r.eventually(name, func() error {
			if err := r.leads("10.96.0.1", podAddr(1)); err != nil {
				return err
			}
			if ids, _ := record.Load(); len(ids) != 1 {
				return fmt.Errorf("the record has %v", ids)
			}
			return nil
		})
		again := newRigAfter(t, r.host, record)
		r.host.Calls()
		again.must(again.commit(txn.FullResync, values(again)...))
		for _, c := range r.host.Calls() {
			if c.Writes() {
				t.Errorf("%s: a restart writes %v", name, c)
			}
		}
	}
}

// killed is an HNS whose agent ends right after HNS has made a load balancer: left is the content of the record at that time.
type killed struct {
	HCN
	record *memoryRecord
	left   *memoryRecord
}

func (k killed) CreateLoadBalancer(lb hcn.LoadBalancer) (hcn.LoadBalancer, error) {
	made, err := k.HCN.CreateLoadBalancer(lb)
	if len(k.left.ids) == 0 {
		k.left.ids = slices.Clone(k.record.ids)
	}
	return made, err
}

// TestKilledBeforeRecord: an agent that is killed between the creation of a load balancer and the record of its ID leaves an orphan, if its
// pods are removed, too. The next agent removes it, because its intent was recorded. Load balancers of other programs stay, also at the same
// address with other endpoints.
func TestKilledBeforeRecord(t *testing.T) {
	for i, network := range []txn.KV{bridge(), overlay()} {
		r := newRig(t, hnsmem.New())
		r.host.KeepBalancers()
		r.noIPv6 = i == 1
		left := &memoryRecord{}
		r.w.HCN = killed{r.w.HCN, r.record, left}
		r.must(r.commit(txn.FullResync, network, r.pod(1), service("a", 1, podAddr(1))))
		if len(left.ids) == 0 || slices.Equal(left.ids, r.record.ids) || len(r.record.ids) != 1 {
			t.Fatalf("the record had %v before its end, and %v at its end", left.ids, r.record.ids)
		}
		r.foreign("other", "10.96.0.77")
		r.host.Vanish(r.endpoints()[PodPrefix+"1"].ID)
		again := newRigAfter(t, r.host, left)
		again.noIPv6 = r.noIPv6
		again.must(again.commit(txn.FullResync, network))
		if got := again.balancers(); !slices.Equal(got, []string{"10.96.0.77"}) {
			t.Errorf("%s: load balancers %v", network.Key, got)
		}
		again.must(again.commit(txn.FullResync, network)) // this agent has checked whether they were removed
		if len(left.ids) != 0 {
			t.Errorf("the record has %v", left.ids)
		}
		again.foreign("other", "10.96.0.1")
		third := newRigAfter(t, r.host, &memoryRecord{ids: []string{"NEW:10.96.0.1/FALSE/6/80=SOME-OTHER-ENDPOINT"}})
		third.noIPv6 = r.noIPv6
		third.must(third.commit(txn.FullResync, network))
		if got := third.balancers(); !slices.Equal(got, []string{"10.96.0.1", "10.96.0.77"}) {
			t.Errorf("load balancers %v: another program's is gone", got)
		}
	}
}
