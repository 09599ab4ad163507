package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/dataplane/windows/wiring"
	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// request sends a CNI request for a container of a pod; their names differ.
func (r *windowsRig) request(command cniapi.Command, container, pod, namespace string, valid ...string) (*cniapi.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req := &cniapi.Request{Command: command, ContainerID: container, IfName: "eth0", Netns: namespace,
		Pod: cniapi.Pod{Namespace: "default", Name: pod}, Network: cniapi.Network{Name: "contiv"}}
	if command == cniapi.GC {
		req.ContainerID, req.IfName = "", ""
		req.Network.Name = namespace
		for _, id := range valid {
			req.ValidAttachments = append(req.ValidAttachments, cniapi.AttachmentRef{ContainerID: id, IfName: "eth0"})
		}
	}
	client := &cniapi.Client{Socket: r.agent.opts.cniSocket}
	return client.Do(ctx, req)
}

// namespace makes a namespace in the way of a container runtime.
func (r *windowsRig) namespace() string {
	ns, err := r.host.V2().CreateNamespace(hcn.Namespace{Type: hcn.NamespaceGuest})
	r.c.must(err)
	return ns.ID
}

// pods maps namespaces to the endpoints of pods.
func (r *windowsRig) pods() map[string]hcn.Endpoint {
	out := map[string]hcn.Endpoint{}
	for _, e := range r.podEndpoints() {
		if strings.HasPrefix(e.Name, wiring.PodPrefix) {
			out[e.HostComputeNamespace] = e
		}
	}
	return out
}

// TestWindowsCNIOrder: requests that a runtime repeats, sends too early or sends late do no harm: ADD twice, DEL before ADD and twice, GC of
// another network, and a new pod with the name of a previous one before the DEL of the previous one.
func TestWindowsCNIOrder(t *testing.T) {
	c := newWindowsCluster(t, "nooverlay")
	r := c.windowsNode(1)
	c.must(c.api.Put(kubeapi.Pod(r.name, "a", nil)))
	first, second := r.namespace(), r.namespace()
	if _, err := r.request(cniapi.Del, "c1", "a", first); err != nil {
		t.Errorf("DEL before ADD: %v", err)
	}
	one, err := r.request(cniapi.Add, "c1", "a", first)
	c.must(err)
	again, err := r.request(cniapi.Add, "c1", "a", first)
	c.must(err)
	if one.IPs[0].Address != again.IPs[0].Address || len(r.pods()) != 1 {
		t.Errorf("ADD twice: %v, then %v; HNS has %+v", one.IPs, again.IPs, r.pods())
	}
	if _, err := r.request(cniapi.GC, "", "", "another network"); err != nil || len(r.pods()) != 1 {
		t.Errorf("GC of another network: %v, HNS has %+v", err, r.pods())
	}
	// The pod is made again with its name before its old container is removed.
	two, err := r.request(cniapi.Add, "c2", "a", second)
	c.must(err)
	if two.IPs[0].Address == one.IPs[0].Address || len(r.pods()) != 2 {
		t.Errorf("both containers have %v and %v; HNS has %+v", one.IPs, two.IPs, r.pods())
	}
	for range 2 {
		if _, err := r.request(cniapi.Del, "c1", "a", first); err != nil {
			t.Errorf("DEL of the old container: %v", err)
		}
		if e, is := r.pods()[second]; !is || len(r.pods()) != 1 || e.IPConfigurations[0].IPAddress != two.IPs[0].Address.Addr().String() {
			t.Errorf("after DEL of the old container HNS has %+v", r.pods())
		}
	}
	if _, err := r.request(cniapi.Check, "c2", "a", second); err != nil {
		t.Errorf("CHECK of the new container: %v", err)
	}
	if _, err := r.request(cniapi.GC, "", "", "contiv", "c2"); err != nil || len(r.pods()) != 1 {
		t.Errorf("GC: %v, HNS has %+v", err, r.pods())
	}
	if _, err := r.request(cniapi.GC, "", "", "contiv"); err != nil || len(r.pods()) != 0 {
		t.Errorf("GC of all: %v, HNS has %+v", err, r.pods())
	}
}

// TestWindowsNodeAddressChanges: a node that restarts with another address keeps its pods' endpoints, and the other nodes send to the new
// address.
func TestWindowsNodeAddressChanges(t *testing.T) {
	c := newWindowsCluster(t, "vxlan")
	one, two := c.windowsNode(1), c.windowsNode(2)
	a, _ := one.add("a")
	via := func(want string) func() error {
		return func() error {
			n, _ := two.host.Network("contiv")
			list, err := hcn.SettingsOf[hcn.RemoteSubnetSettings](n.Policies, hcn.TypeRemoteSubnet)
			for _, s := range list {
				if p, err := netip.ParsePrefix(s.DestinationPrefix); err == nil && p.Contains(a) && s.ProviderAddress == want {
					return nil
				}
			}
			return fmt.Errorf("%s is not reached by %s: %+v, %w", a, want, list, err)
		}
	}
	c.eventually("the first address", via("192.0.2.1"))
	before := one.endpointOf(a)
	one.stop()
	one.nics = []netip.Prefix{netip.MustParsePrefix("192.0.2.51/24")}
	c.must(c.api.Put(kubeapi.Node(one.name, []netip.Addr{one.nics[0].Addr()})))
	one.start()
	c.eventually("the new address", via("192.0.2.51"))
	if now := one.endpointOf(a); now.ID != before.ID {
		t.Errorf("the pod's endpoint was %+v and is %+v", before, now)
	}
}

// TestWindowsServiceGoesWhileAgentIsDown: a service and its pods that are removed while the agent does not run leave no load balancer, even if
// HNS keeps load balancers whose endpoints have been removed.
func TestWindowsServiceGoesWhileAgentIsDown(t *testing.T) {
	c := newWindowsCluster(t, "nooverlay")
	r := c.windowsNode(1)
	r.host.KeepBalancers()
	a, _ := r.add("a")
	svc := kubeapi.Service("web", []netip.Addr{netip.MustParseAddr("10.96.0.80")}, kubeapi.Port(corev1.ProtocolTCP, 80))
	slice := kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, 8080, kubeapi.Endpoint(r.name, a))
	c.must(c.api.Put(svc, slice))
	c.eventually("cluster IP", func() error { _, _, err := r.balancer("10.96.0.80", 80); return err })
	r.stop()
	c.must(c.api.Delete(slice))
	c.must(c.api.Delete(svc))
	r.host.Vanish(r.endpointOf(a).ID)
	r.start()
	c.eventually("no load balancer of the service", func() error {
		if lb, _, err := r.balancer("10.96.0.80", 80); err == nil {
			return fmt.Errorf("%+v", lb)
		}
		return nil
	})
}

// TestWindowsRestartWithinAWrite: an agent that stops while HNS rejects a pod's new rules writes them when it starts again.
func TestWindowsRestartWithinAWrite(t *testing.T) {
	c := newWindowsCluster(t, "vxlan")
	r := c.windowsNode(1)
	a, _ := r.add("a")
	id := r.endpointOf(a).ID
	p := hnsmem.Packet{Protocol: 6, Local: a, Remote: netip.MustParseAddr("10.1.9.5"), LocalPort: 80, RemotePort: 40000}
	allowed := func(want bool) func() error {
		return func() error {
			if got, err := r.host.Allowed(id, hns.In, p); err != nil || got != want {
				return fmt.Errorf("allowed: %v, %v", got, err)
			}
			return nil
		}
	}
	c.eventually("without a policy", allowed(true))
	tried := make(chan struct{}, 1000)
	r.host.Hook(func(call hnsmem.Call) error {
		if call.Op != "ApplyACLs" {
			return nil
		}
		select {
		case tried <- struct{}{}:
		default:
		}
		return errors.New("no luck")
	})
	c.must(c.api.Put(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "isolate"},
		Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}))
	<-tried
	r.stop()
	r.host.Hook(nil)
	r.start()
	c.eventually("isolated", allowed(false))
	if now := r.endpointOf(a).ID; now != id {
		t.Errorf("the endpoint was %s and is %s", id, now)
	}
}
