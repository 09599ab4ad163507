package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// TestWindowsCheckAndGC: CHECK finds an endpoint that HNS has lost, GC removes endpoints that no runtime has any more, and an HNS that fails
// while a pod is being connected leaves nothing behind and lets the next ADD succeed.
func TestWindowsCheckAndGC(t *testing.T) {
	c := newWindowsCluster(t, "vxlan")
	r := c.windowsNode(1)
	a, nsA := r.add("a")
	b, _ := r.add("b")
	if _, err := r.cni(cniapi.Check, "a", nsA); err != nil {
		t.Errorf("CHECK of a pod that is as it should be: %v", err)
	}
	r.host.Vanish(r.endpointOf(a).ID)
	if _, err := r.cni(cniapi.Check, "a", nsA); err == nil {
		t.Error("HNS has lost the endpoint, and CHECK finds nothing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client := &cniapi.Client{Socket: r.agent.opts.cniSocket}
	_, err := client.Do(ctx, &cniapi.Request{Command: cniapi.GC, Network: cniapi.Network{Name: "contiv"},
		ValidAttachments: []cniapi.AttachmentRef{{ContainerID: "a", IfName: "eth0"}}})
	c.must(err)
	list, err := r.host.V2().ListEndpoints()
	if err != nil || slices.ContainsFunc(list, func(e hcn.Endpoint) bool { return e.IPConfigurations[0].IPAddress == b.String() }) {
		t.Errorf("GC has left b: %+v, %v", list, err)
	}
	r.host.Hook(func(call hnsmem.Call) error {
		if call.Op == "AttachEndpoint" {
			return errors.New("no luck")
		}
		return nil
	})
	ns, err := r.host.V2().CreateNamespace(hcn.Namespace{Type: hcn.NamespaceGuest})
	c.must(err)
	c.must(c.api.Put(kubeapi.Pod(r.name, "c", nil)))
	before := len(r.podEndpoints())
	if _, err := r.cni(cniapi.Add, "c", ns.ID); err == nil {
		t.Error("HNS does not attach an endpoint, and ADD succeeds")
	}
	if n := len(r.podEndpoints()); n > before {
		t.Errorf("an ADD that failed has left an endpoint: %+v", r.podEndpoints())
	}
	r.host.Hook(nil)
	if _, err := r.cni(cniapi.Add, "c", ns.ID); err != nil {
		t.Errorf("the next ADD: %v", err)
	}
}

// podEndpoints returns the endpoints in namespaces that a runtime has made.
func (r *windowsRig) podEndpoints() []hcn.Endpoint {
	list, err := r.host.V2().ListEndpoints()
	r.c.must(err)
	return slices.DeleteFunc(list, func(e hcn.Endpoint) bool { return e.Flags&hcn.FlagRemote != 0 })
}

// TestWindowsServices: UDP, external addresses and both traffic policies, from Kubernetes' objects to HNS. A pod is closed while HNS rejects
// its rules.
func TestWindowsServices(t *testing.T) {
	c := newWindowsCluster(t, "vxlan")
	r := c.windowsNode(1)
	a, _ := r.add("a")
	other := netip.MustParseAddr("10.1.9.5")
	local := corev1.ServiceInternalTrafficPolicyLocal
	svc := kubeapi.Service("dns", []netip.Addr{netip.MustParseAddr("10.96.0.53")}, kubeapi.Port(corev1.ProtocolUDP, 53))
	svc.Spec.InternalTrafficPolicy, svc.Spec.ExternalIPs = &local, []string{"203.0.113.7"}
	c.must(c.api.Put(svc, kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, 5353, kubeapi.Endpoint("win-1", a), kubeapi.Endpoint("linux", other))))
	expect := func(vip string, want ...string) {
		t.Helper()
		c.eventually(vip, func() error {
			lb, to, err := r.balancer(vip, 53)
			if err == nil && (!slices.Equal(to, want) || lb.PortMappings[0].Protocol != 17 || lb.PortMappings[0].InternalPort != 5353) {
				err = fmt.Errorf("%+v leads to %v, want %v", lb, to, want)
			}
			return err
		})
	}
	both := []string{a.String(), other.String()}
	slices.Sort(both)
	expect("10.96.0.53", a.String())
	expect("203.0.113.7", both...)
	// HNS rejects the rules: the endpoint stays as it was created.
	r.host.Hook(func(call hnsmem.Call) error {
		if call.Op == "ApplyACLs" {
			return errors.New("no luck")
		}
		return nil
	})
	ns, err := r.host.V2().CreateNamespace(hcn.Namespace{Type: hcn.NamespaceGuest})
	c.must(err)
	c.must(c.api.Put(kubeapi.Pod(r.name, "closed", nil)))
	var work = make(chan error, 1)
	r.agent.jobs.Go("test: ADD", func(context.Context) error {
		_, err := r.cni(cniapi.Add, "closed", ns.ID)
		work <- err
		return nil
	})
	c.eventually("an endpoint", func() error {
		for _, e := range r.podEndpoints() {
			if e.HostComputeNamespace == ns.ID {
				p := hnsmem.Packet{Protocol: 6, Local: netip.MustParseAddr(e.IPConfigurations[0].IPAddress), Remote: a, LocalPort: 80, RemotePort: 40000}
				if allowed, err := r.host.Allowed(e.ID, hns.In, p); err != nil || allowed {
					t.Errorf("before its rules are written a packet is allowed: %v, %v", allowed, err)
				}
				return nil
			}
		}
		return errors.New("none yet")
	})
	r.host.Hook(nil)
	if err := <-work; err != nil {
		t.Logf("ADD: %v", err) // ADD may have failed before HNS accepted the rules
	}
}
