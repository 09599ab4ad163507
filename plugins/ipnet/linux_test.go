package ipnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
)

// newLinuxNode returns node 1 of a cluster without VPP.
func newLinuxNode(t *testing.T, config string) *node {
	t.Helper()
	w := newNode(t, config)
	w.n.Dataplane, w.n.LinuxNsPlugin = DataplaneLinux, fakeHost{1500}
	w.resync()
	return w
}

// TestLinuxUpdatesEqualResync checks that adding and removing pods and nodes gives the same result as a resync, and finally the initial
// state.
func TestLinuxUpdatesEqualResync(t *testing.T) {
	for _, transport := range []string{"vxlan", "nooverlay"} {
		t.Run(transport, func(t *testing.T) {
			w := newLinuxNode(t, dualTAP+"nodeToNodeTransport: "+transport+"\n")
			before := texts(w.want)
			w.add("a")
			w.node("n2", fakePeer(2, "192.0.2.2/24", "fd00:16::2/64"))
			w.add("b")
			w.node("n3", fakePeer(3))
			w.node("n2", fakePeer(2, "192.0.2.9/24"))
			updated := texts(w.want)
			w.resync()
			if got := texts(w.want); !slices.Equal(got, updated) {
				t.Errorf("a resync gives\n%s\nupdates gave\n%s", strings.Join(got, "\n"), strings.Join(updated, "\n"))
			}
			for _, name := range []string{"n2", "n3"} {
				w.node(name, nil)
			}
			for _, a := range slices.Clone(w.pods.list) {
				ev := podmanager.NewDeletePod(a)
				for _, h := range []api.EventHandler{w.n, w.ipam} {
					if _, err := h.Update(ev, w.want); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := texts(w.want); !slices.Equal(got, before) {
				t.Errorf("after all is gone\n%s\nremains, want\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
			}
		})
	}
}

// TestLinuxPod checks that a pod has its addresses and its gateway, and that the driver has it as an endpoint on the host's end of its
// link, whose name has the prefix of all workloads.
func TestLinuxPod(t *testing.T) {
	w := newLinuxNode(t, dualTAP)
	ev := w.add("a")
	if len(ev.IPs) != 2 || !ev.IPs[0].Gateway.IsValid() {
		t.Errorf("addresses %+v", ev.IPs)
	}
	p := w.n.pods[ev.Attachment.ID]
	id := EndpointID(ev.Attachment)
	ep, ok := w.want[nb.DriverWorkloadKey(id)].(*proto.WorkloadEndpointUpdate)
	if !ok {
		t.Fatalf("the driver is not told of the pod: %s", strings.Join(texts(w.want), "\n"))
	}
	if got, want := ep.Endpoint.Ipv4Nets, []string{ev.IPs[0].Address.String()}; !slices.Equal(got, want) {
		t.Errorf("addresses of the endpoint %q, want %q", got, want)
	}
	host, ok := w.want[nb.LinuxInterfaceKey(p.names.linuxPeer)].(*linux_interfaces.Interface)
	if !ok || host.HostIfName != ep.Endpoint.Name || !strings.HasPrefix(ep.Endpoint.Name, WorkloadIfPrefix) || len(ep.Endpoint.Name) > 15 {
		t.Errorf("endpoint on %q, the host's end of the link is %+v", ep.Endpoint.Name, host)
	}
	if got, want := EndpointLinkKey(id), nb.LinuxInterfaceStateKey(p.names.linux, true); got != want {
		t.Errorf("the endpoint waits for %s, want %s", got, want)
	}
	if _, ok := w.want[nb.DriverInSyncKey]; !ok {
		t.Error("the driver is never told that it knows everything")
	}
	if _, name, ok := w.n.GetPodByIf(p.names.linuxPeer); !ok || name != "a" {
		t.Errorf("the pod of %s is %q", p.names.linuxPeer, name)
	}
}

// TestLinuxHostNames checks that no two attachments share a device.
func TestLinuxHostNames(t *testing.T) {
	w := newLinuxNode(t, "")
	seen := map[string]podmanager.AttachmentID{}
	for i := range 2000 {
		id := podmanager.AttachmentID{ContainerID: fmt.Sprintf("%064x", i), IfName: []string{"eth0", "net1"}[i%2]}
		p := &podLink{attachment: &podmanager.Attachment{ID: id}}
		dev := linuxWiring{}.names(w.n.settings, p).hostDev
		if other, taken := seen[dev]; taken {
			t.Fatalf("%s is the device of %s and %s", dev, id, other)
		}
		seen[dev] = id
	}
}

// TestLinuxNodeAddressOfVIP tests that a node that has lost its address uses a virtual IP only until its address returns, also if the agent has
// started meanwhile.
func TestLinuxNodeAddressOfVIP(t *testing.T) {
	for _, starts := range []bool{false, true} {
		w := newLinuxNode(t, dualTAP)
		nic := &nicWith{}
		w.n.LinuxNsPlugin = nic
		want := func(addrs, lesser, want string) {
			t.Helper()
			nic.addrs, nic.lesser = strings.Fields(addrs), lesser
			if starts {
				w.n.settings = nil
			}
			w.nodes.published = nil
			w.resync()
			w.nodes.all["n1"] = &nodesync.Node{ID: 1, Name: "n1", VppIPAddresses: w.nodes.published}
			if got := w.ownEndpoint().GetParentDeviceIp(); got != want {
				t.Errorf("NIC with %s, starts %t: the address is %q, want %s", addrs, starts, got, want)
			}
		}
		want("192.0.2.9/24 192.0.2.1/32", "192.0.2.1", "192.0.2.9")
		want("192.0.2.1/32", "", "192.0.2.1")
		want("192.0.2.9/24 192.0.2.1/32", "192.0.2.1", "192.0.2.9")
		want("192.0.2.8/24 192.0.2.9/24 192.0.2.1/32", "192.0.2.1", "192.0.2.9")
	}
}

// TestLinuxNodeAddressAfterStart tests that an agent that starts keeps the address that the node has published, as long as the NIC has it.
func TestLinuxNodeAddressAfterStart(t *testing.T) {
	for _, test := range []struct {
		published    []string
		want4, want6 string
	}{
		{nil, "192.0.2.9", "2001:db8::9"},
		{[]string{"192.0.2.5/24", "192.0.2.9/24", "2001:db8::5/64", "2001:db8::9/64"}, "192.0.2.5", "2001:db8::5"},
		{[]string{"192.0.2.7/24", "2001:db8::5/64"}, "192.0.2.9", "2001:db8::5"},
	} {
		w := newNode(t, dualTAP)
		w.n.settings = nil // of an agent that has just started
		w.n.Dataplane, w.n.LinuxNsPlugin = DataplaneLinux, &nicWith{addrs: strings.Fields("192.0.2.9/24 192.0.2.5/24 2001:db8::9/64 2001:db8::5/64")}
		if test.published != nil {
			w.nodes.all["n1"] = fakePeer(1, test.published...)
		}
		w.resync()
		if own := w.ownEndpoint(); own.GetParentDeviceIp() != test.want4 || own.GetParentDeviceIpv6() != test.want6 {
			t.Errorf("published %q: tunnel endpoint %v, want %s and %s", test.published, own, test.want4, test.want6)
		}
	}
}

// ownEndpoint returns the tunnel endpoint of this node.
func (w *node) ownEndpoint() *proto.VXLANTunnelEndpointUpdate {
	for _, v := range w.want {
		if u, is := v.(*proto.VXLANTunnelEndpointUpdate); is {
			return u
		}
	}
	return nil
}

// nicWith is a host whose NIC has the given addresses.
type nicWith struct {
	fakeHost
	addrs  []string
	lesser string // one of them
}

func (h *nicWith) NIC(name string) (NIC, error) {
	nic := NIC{Name: name, MTU: 1500}
	if h.lesser != "" {
		nic.Lesser = []netip.Addr{netip.MustParseAddr(h.lesser)}
	}
	for _, a := range h.addrs {
		nic.Addresses = append(nic.Addresses, netip.MustParsePrefix(a))
	}
	return nic, nil
}

// TestLinuxNodeAddress tests that the node's tunnels keep their address as long as the NIC has it.
func TestLinuxNodeAddress(t *testing.T) {
	w := newLinuxNode(t, dualTAP)
	nic := &nicWith{}
	w.n.LinuxNsPlugin = nic
	for _, step := range []struct{ addrs, v4, v6 string }{
		{"192.0.2.9/24 192.0.2.2/32 2001:db8::9/64", "192.0.2.9", "2001:db8::9"},
		{"192.0.2.1/24 192.0.2.9/24 192.0.2.2/24 2001:db8::1/64 2001:db8::9/64", "192.0.2.9", "2001:db8::9"},
		{"192.0.2.9/25 2001:db8::1/64", "192.0.2.9", "2001:db8::1"},
		{"192.0.2.1/24 192.0.2.2/24 2001:db8::9/64 2001:db8::1/64", "192.0.2.1", "2001:db8::1"},
		{"2001:db8::9/64", "", "2001:db8::9"},
	} {
		nic.addrs = strings.Fields(step.addrs)
		w.nodes.published = nil
		w.resync()
		own := w.ownEndpoint()
		if own.GetParentDeviceIp() != step.v4 || own.GetParentDeviceIpv6() != step.v6 {
			t.Errorf("NIC with %s: tunnel endpoint %v, want %q and %q", step.addrs, own, step.v4, step.v6)
		}
		if got := len(w.nodes.published); got != len(nic.addrs) {
			t.Errorf("NIC with %s: %d addresses published", step.addrs, got)
		}
		if first := w.nodes.published[0].Address.String(); first != step.v4 && first != step.v6 {
			t.Errorf("NIC with %s: %s is published first", step.addrs, first)
		}
	}
}
