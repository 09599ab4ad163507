package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/dataplane/windows/wiring"
	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// dualPods is a configuration with two families of pods and services.
const dualPods = "ipamConfig:\n  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48\n  podSubnetOneNodePrefixLen: 24,64\n" +
	"  serviceCIDR: 10.96.0.0/12,fd10:96::/108\n  nodeInterconnectCIDR: 192.0.2.0/24,fd00:2::/64\n"

// TestWindowsDualStack: on an L2 bridge a pod that is connected by CNI has both families: addresses, gateways, the node's routes, services and
// policy.
func TestWindowsDualStack(t *testing.T) {
	c := newWindowsCluster(t, "nooverlay\n"+dualPods)
	c.ipv6 = "fd00:2::"
	c.linuxNode(9, "192.0.2.9/24", "fd00:2::9/64")
	r := c.windowsNode(1)
	pod, _ := r.addAll("a")
	if len(pod) != 2 || !pod[0].Is4() || !pod[1].Is6() {
		t.Fatalf("ADD gives %v", pod)
	}
	e := r.endpointOf(pod[0])
	if len(e.IPConfigurations) != 2 || e.IPConfigurations[1].IPAddress != pod[1].String() || len(e.Routes) != 2 ||
		e.Routes[1].DestinationPrefix != "::/0" {
		t.Errorf("endpoint %+v", e)
	}
	nat, err := hcn.SettingsOf[hcn.OutboundNATSettings](e.Policies, hcn.TypeOutBoundNAT)
	c.must(err)
	if len(nat) != 1 || !slices.Contains(nat[0].Exceptions, "fd10:1::/48") {
		t.Errorf("outbound NAT %+v", nat)
	}
	c.eventually("routes to the Linux node, of both families", func() error {
		list, _ := r.routes.List()
		for dst, via := range map[string]string{"10.1.9.0/24": "192.0.2.9", "fd10:1:0:9::/64": "fd00:2::9"} {
			if want := (wiring.HostRoute{Destination: netip.MustParsePrefix(dst), NextHop: netip.MustParseAddr(via)}); !slices.Contains(list, want) {
				return fmt.Errorf("%v lacks %v", list, want)
			}
		}
		return nil
	})

	svc := kubeapi.Service("six", []netip.Addr{netip.MustParseAddr("fd10:96::80")}, kubeapi.Port(corev1.ProtocolTCP, 80))
	other := netip.MustParseAddr("fd10:1:0:9::5")
	c.must(c.api.Put(svc, kubeapi.Slice(svc, discoveryv1.AddressTypeIPv6, 8080, kubeapi.Endpoint("win-1", pod[1]), kubeapi.Endpoint("linux", other))))
	c.eventually("IPv6 service", func() error {
		lb, to, err := r.balancer("fd10:96::80", 80)
		if want := []string{pod[0].String(), other.String()}; err == nil && (!slices.Equal(to, want) || lb.Flags&hcn.LBFlagIPv6 == 0) {
			err = fmt.Errorf("%+v leads to %v, want %v (endpoints by their first address)", lb, to, want)
		}
		return err
	})

	// A policy with an IPv6 block.
	from := func(text string) hnsmem.Packet {
		return hnsmem.Packet{Protocol: 6, Local: pod[1], Remote: netip.MustParseAddr(text), LocalPort: 8080, RemotePort: 40000}
	}
	c.must(c.api.Put(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "six"},
		Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{
				{IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8::/32", Except: []string{"2001:db8:1::/48"}}}}}}}}))
	c.eventually("policy", func() error {
		for source, want := range map[string]bool{"2001:db8::1": true, "2001:db8:1::1": false, "2001:db9::1": false} {
			if got, err := r.host.Allowed(e.ID, hns.In, from(source)); err != nil || got != want {
				return fmt.Errorf("from %s: %v, %v", source, got, err)
			}
		}
		return nil
	})
}

// TestWindowsIPv6Refused: configurations with IPv6 that Windows does not support are rejected by name, with the fix.
func TestWindowsIPv6Refused(t *testing.T) {
	six := strings.NewReplacer("10.1.0.0/16,", "", "24,64", "64", "10.96.0.0/12,", "", "192.0.2.0/24,", "").Replace(dualPods)
	for config, want := range map[string]string{
		"nodeToNodeTransport: vxlan\nvxlanVNI: 4096\n" + dualPods: "fd10:1::/48: Windows has no IPv6 in overlay networks",
		"nodeToNodeTransport: nooverlay\n" + six:                  "fd10:1::/48: Windows has no networks with IPv6 alone",
	} {
		c := newWindowsAPI(t, config)
		r := &windowsRig{c: c, name: "win-1", host: hnsmem.New(), routes: &memoryRoutes{}, nics: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}}
		c.etcd = "http://127.0.0.1:1"
		if err := r.launch(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the contiv.conf of all nodes") {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	// A Windows without IPv6: the pod is not connected, and the reason contains the fix.
	c := newWindowsCluster(t, "nooverlay\n"+dualPods)
	c.ipv6 = "fd00:2::"
	r := c.windowsNode(1)
	r.stop()
	r.host = hnsmem.New()
	r.host.SetFeatures(hns.Features{AddressLists: true, PortRanges: true}, hcn.Features{RemoteSubnet: true, HostRoute: true})
	c.must(r.launch())
	c.eventually("the fault", func() error {
		for _, s := range r.agent.dataplane.scheduler.Status(scheduler.Filter{KeyPrefix: nb.HNSNetworkPrefix}) {
			if strings.Contains(s.Error, "use Windows Server 2022 or later") {
				return nil
			}
		}
		return errors.New("not reported yet")
	})
}
