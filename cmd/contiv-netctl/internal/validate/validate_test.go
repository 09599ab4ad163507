package validate

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/kubepods"
)

// views returns the views of two nodes without faults (recorded from real ones).
func views(t *testing.T, dataplane string) []*View {
	t.Helper()
	data, err := os.ReadFile("testdata/" + dataplane + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var v []*View
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// without removes the values whose key contains part.
func without(v *View, part string) {
	v.Values = slices.DeleteFunc(v.Values, func(x Value) bool { return strings.Contains(x.Key, part) })
}

// replace changes the text of the values whose key contains part.
func replace(t *testing.T, v *View, part, from, to string) {
	t.Helper()
	done := false
	for i := range v.Values {
		if old := string(v.Values[i].Applied); strings.Contains(v.Values[i].Key, part) && strings.Contains(old, from) {
			v.Values[i].Applied, done = json.RawMessage(strings.ReplaceAll(old, from, to)), true
		}
	}
	if !done {
		t.Fatalf("no value %s with %s", part, from)
	}
}

func podOf(ips ...string) (out []netip.Prefix) {
	for _, ip := range ips {
		out = append(out, netip.MustParsePrefix(ip))
	}
	return out
}

// fault is made in views without faults; exactly the findings in want must be found.
type fault struct {
	name   string
	linux  bool
	plant  func(t *testing.T, n1, n2 *View)
	about  string
	node   string
	text   string
	others int // number of further findings
}

func faults() []fault {
	return slices.Concat(nodeFaults(), driftFaults(), vppFaults(), linuxFaults(), podFaults())
}

// driftFaults: differences with one cause are one finding, which names the pod and not only a key.
func driftFaults() []fault {
	repairs := func(keys ...string) func(*testing.T, *View, *View) {
		return func(t *testing.T, n1, _ *View) {
			id := n1.Pods[0].ContainerID
			for _, key := range keys {
				n1.Check.Repairs = append(n1.Check.Repairs, diag.Repair{Key: strings.ReplaceAll(key, "ID", id), Action: "create"})
			}
		}
	}
	return []fault{
		{"a pod's interface down", false, repairs("linux/interface/state/linux-tap-ID/UP",
			"config/linux/l3/v2/arp/linux-tap-ID/10.1.1.1", "config/linux/l3/v2/route/0.0.0.0/0/linux-tap-ID"), "drift", "n1",
			"its interface is down: 3 of its values differ from their desired state (ARP entry, interface, route); " +
				"contiv-netctl resync n1 repairs it", 0},
		{"some of a pod's values", false, repairs("config/linux/l3/v2/route/0.0.0.0/0/linux-tap-ID",
			"config/linux/l3/v2/route/10.1.1.1/32/linux-tap-ID"), "drift", "n1", "2 of its values", 0},
		{"one of a pod's values", false, repairs("config/linux/l3/v2/route/0.0.0.0/0/linux-tap-ID"), "drift", "n1", "route of pod " +
			"default/", 0},
		{"VPP's side down", false, repairs("vpp/interface/vpp-tap-ID/link-state/UP"), "drift", "n1", "interface of pod default/", 0},
		{"a route typed in", false, func(_ *testing.T, n1, _ *View) { n1.Check.TypedRoutes = []string{"10.1.2.2/32"} }, "route",
			"n1", "this route was added", 0},
		{"etcd away", false, func(_ *testing.T, n1, _ *View) { n1.Stale = "etcd does not respond" }, "etcd", "n1",
			"etcd does not respond", 0},
		{"not forwarding", true, func(_ *testing.T, n1, _ *View) { n1.Kernel.NotForwarding = []string{"IPv6"} }, "node", "n1",
			"does not forward IPv6 packets", 0},
	}
}

func nodeFaults() []fault {
	return []fault{
		{"agent away", false, func(_ *testing.T, _, n2 *View) { n2.Error = "does not respond" }, "node", "n2", "does not respond", 0},
		{"not ready", false, func(_ *testing.T, n1, _ *View) { n1.Info.Problems = []string{"no etcd"} }, "node", "n1", "no etcd", 0},
		{"few addresses left", false, func(_ *testing.T, n1, _ *View) {
			n1.Allocations.Subnets[0].Used, n1.Allocations.Subnets[0].Free = 228, 25
		}, "address", "n1", "228 of 253 pod addresses are used", 0},
		{"one ID twice", false, func(_ *testing.T, n1, n2 *View) {
			n1.Nodes[1].ID, n2.Nodes[1].ID = 1, 1
		}, "node", "n2", "has the ID 1, which n1 has too", 0},
		{"views differ", false, func(_ *testing.T, n1, _ *View) { n1.Nodes[1].VPPIPs = []string{"192.168.16.2/24"} }, "node", "n2",
			"has different data on other nodes", 0},
		{"a node that one does not know", false, func(_ *testing.T, n1, _ *View) { n1.Nodes = n1.Nodes[:1] }, "node", "n2",
			"1 of 2 nodes do not have it", 1},
		{"no ID", false, func(_ *testing.T, _, n2 *View) { n2.Nodes[1].State = "released" }, "node", "n2",
			"has no ID in its own list", 1},
		{"failed value", false, func(_ *testing.T, n1, _ *View) {
			n1.Values = append(n1.Values, Value{Key: "config/x", State: "FAILED"})
		}, "value", "n1", "is FAILED", 0},
		{"drift", false, func(_ *testing.T, n1, _ *View) {
			n1.Check.Repairs = []diag.Repair{{Key: "config/vpp/v2/arp/vxlanBVI/192.168.30.2", Action: "create"}}
		}, "drift", "n1", "ARP entry is missing in the dataplane", 0},
		{"unreadable", false, func(_ *testing.T, n1, _ *View) {
			n1.Values = append(n1.Values, Value{Key: "config/y", Kind: "vpp-route", State: "CONFIGURED", Applied: json.RawMessage(`[]`)})
		}, "value", "n1", "cannot be read", 0},
	}
}

func vppFaults() []fault {
	const tunnel, arp, fib = "interfaces/vxlan-default-2", "/arp/vxlanBVI/192.168.30.2", "/l2/v2/fib/"
	return []fault{
		{"no tunnel", false, func(_ *testing.T, n1, _ *View) { without(n1, tunnel) }, "tunnel", "n1", "there is no tunnel to n2", 1},
		{"tunnel from elsewhere", false, func(t *testing.T, n1, _ *View) {
			replace(t, n1, tunnel, "192.168.16.1\"",
				"192.168.16.9\"")
		}, "tunnel", "n1",
			"begins at 192.168.16.9, which is not an address of this node", 2},
		{"tunnel to an unknown address", false, func(t *testing.T, n1, _ *View) { replace(t, n1, tunnel, "192.168.16.2", "192.168.16.8") },
			"tunnel", "n1",
			"leads to 192.168.16.8, which is not a node", 2},
		{"other VNI", false, func(t *testing.T, n1, _ *View) { replace(t, n1, tunnel, `"vni":10`, `"vni":11`) }, "tunnel", "n1",
			"has the VNI 11", 1},
		{"no ARP", false, func(_ *testing.T, n1, _ *View) { without(n1, arp) }, "arp", "n1",
			"there is no ARP entry for 192.168.30.2", 0},
		{"other MAC", false, func(t *testing.T, n1, _ *View) { replace(t, n1, arp, "00:02", "00:03") }, "arp", "n1",
			"has the MAC 12:2b:00:00:00:03", 0},
		{"no forwarding entry", false, func(_ *testing.T, n1, _ *View) { without(n1, fib) }, "fib", "n1",
			"there is no forwarding entry", 0},
		{"forwarded elsewhere", false, func(t *testing.T, n1, _ *View) { replace(t, n1, fib, "vxlan-default-2", "tap-vpp2") },
			"fib", "n1",
			"is behind tap-vpp2", 0},
		{"no route", false, func(_ *testing.T, n1, _ *View) { without(n1, "dst/10.1.2.0/24") }, "route", "n1",
			"there is no route to the pods of n2", 0},
		{"route elsewhere", false, func(t *testing.T, n1, _ *View) {
			replace(t, n1, "dst/10.1.2.0/24", "192.168.30.2",
				"192.168.30.7")
		}, "route", "n1",
			"leads to 192.168.30.7", 0},
		{"no IPv6 route", false, func(_ *testing.T, n1, _ *View) { without(n1, "dst/fd10:1:0:2::/64") }, "route", "n1",
			"there is no route", 0},
	}
}

func linuxFaults() []fault {
	return []fault{
		{"no tunnel end", true, func(_ *testing.T, n1, _ *View) { without(n1, "vtep/n2") }, "tunnel", "n1",
			"there is no tunnel to n2", 0},
		{"tunnel elsewhere", true, func(t *testing.T, n1, _ *View) {
			replace(t, n1, "vtep/n2", "192.168.16.102",
				"192.168.16.109")
		}, "tunnel", "n1",
			"leads to 192.168.16.109", 0},
		{"no forwarding entry", true, func(_ *testing.T, n1, _ *View) { n1.Kernel.Forwarding = nil }, "fib", "n1",
			"there is no forwarding entry", 0},
		{"no neighbour", true, func(_ *testing.T, n1, _ *View) {
			n1.Kernel.Neighbours = slices.DeleteFunc(n1.Kernel.Neighbours,
				func(e diag.KernelNeighbour) bool { return e.IP == "192.168.30.2" })
		}, "arp", "n1", "there is no neighbour entry for 192.168.30.2", 0},
		{"no route", true, func(_ *testing.T, n1, _ *View) { unroute(n1, "10.1.2.0/24") }, "route", "n1", "in the kernel", 0},
		{"another program's route", true, func(_ *testing.T, n1, _ *View) {
			n1.Kernel.Routes = append(n1.Kernel.Routes, diag.KernelRoute{Dst: "10.1.2.2/32", Type: "blackhole", Proto: 3})
		}, "route", "n1", "another program's route (blackhole, protocol 3) takes packets for pods of n2", 0},
		{"no route to a pod", true, func(_ *testing.T, n1, _ *View) { unroute(n1, "10.1.1.2/32") }, "route", "n1",
			"there is no route to pod default/a", 0},
		{"device down", true, func(_ *testing.T, _, n2 *View) {
			for i := range n2.Kernel.Links {
				if strings.HasPrefix(n2.Kernel.Links[i].Name, "cali") {
					n2.Kernel.Links[i].Up = false
				}
			}
		}, "pod", "n2", "is not there, or is down", 0},
		{"endpoint missing", true, func(_ *testing.T, n1, _ *View) { without(n1, "/workload/contiv/default/a/") }, "pod", "n1",
			"the Linux driver has no endpoint", 1},
	}
}

func unroute(v *View, dst string) {
	v.Kernel.Routes = slices.DeleteFunc(v.Kernel.Routes, func(r diag.KernelRoute) bool { return r.Dst == dst })
}

func podFaults() []fault {
	kube := func(pods ...kubepods.Pod) kubepods.List {
		return kubepods.List{Known: true, Pods: pods}
	}
	c := kubepods.Pod{Namespace: "default", Name: "c", IPs: []string{"10.1.2.2"}}
	return []fault{
		{"pod's route missing", false, func(_ *testing.T, n1, _ *View) { without(n1, "dst/10.1.1.2/32") }, "pod", "n1",
			"VPP has no route to its address 10.1.1.2", 0},
		{"pod's ARP missing", false, func(_ *testing.T, n1, _ *View) { without(n1, "/10.1.1.2") }, "pod", "n1", "VPP has no route",
			0},
		{"pod gone, VPP kept it", false, func(_ *testing.T, _, n2 *View) { n2.Pods, n2.Allocations.Pods = nil, nil }, "pod", "n2",
			"which no connected pod has", 1},
		{"not allocated", false, func(_ *testing.T, _, n2 *View) { n2.Allocations.Pods = nil }, "address", "n2", "is not allocated",
			1},
		{"leaked address", false, func(_ *testing.T, n1, n2 *View) {
			n2.Allocations.Pods = append(n2.Allocations.Pods, n1.Allocations.Pods[0])
		}, "address", "n2", "which is not connected", 0},
		{"one address twice", false, func(_ *testing.T, n1, _ *View) {
			n1.Pods = append(n1.Pods, Pod{Namespace: "x", Name: "y", ContainerID: n1.Pods[0].ContainerID,
				Addresses: podOf("10.1.1.2/32")})
		}, "address", "n1", "is also that of default/a on n1", 0},
		{"known to Kubernetes only", false, func(_ *testing.T, _, n2 *View) {
			n2.Kube = kube(c, kubepods.Pod{Namespace: "x", Name: "z", IPs: []string{"10.1.2.77"}})
		}, "pod", "n2", "is not connected", 0},
		{"unknown to Kubernetes", false, func(_ *testing.T, _, n2 *View) { n2.Kube = kube() }, "pod", "n2",
			"Kubernetes has no such pod", 0},
		{"another address in Kubernetes", false, func(_ *testing.T, _, n2 *View) {
			other := c
			other.IPs = []string{"10.1.2.9"}
			n2.Kube = kube(other)
		}, "pod", "n2", "has the address 10.1.2.9 in Kubernetes", 0},
	}
}

func TestAClusterInOrderHasNoFindings(t *testing.T) {
	for _, dataplane := range []string{"vpp", "linux"} {
		if found := Cluster(views(t, dataplane)); len(found) > 0 {
			t.Errorf("%s: %+v", dataplane, found)
		}
	}
	// Pods that Kubernetes does not report are not faults: pods of the host's network, pods that end, pods without an address yet.
	v := views(t, "vpp")
	v[1].Kube = kubepods.List{Known: true, Pods: []kubepods.Pod{
		{Namespace: "default", Name: "c", IPs: []string{"10.1.2.2"}}, {Namespace: "k", Name: "proxy", HostNetwork: true,
			IPs: []string{"10.99.0.102"}},
		{Namespace: "k", Name: "new"}, {Namespace: "k", Name: "old", Terminating: true, IPs: []string{"10.1.2.3"}},
	}}
	if found := Cluster(v); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// TestForwardingOfUnusedFamily tests that a node need not forward IPv6 if its pods have no IPv6 addresses.
func TestForwardingOfUnusedFamily(t *testing.T) {
	v := views(t, "linux")
	v[0].Kernel.NotForwarding = []string{"IPv6"}
	v[0].Allocations.Subnets = slices.DeleteFunc(v[0].Allocations.Subnets, func(s struct {
		Subnet     netip.Prefix
		Used, Free int
	}) bool {
		return s.Subnet.Addr().Is6()
	})
	for _, f := range Cluster(v) {
		if strings.Contains(f.Text, "forward") {
			t.Errorf("%+v", f)
		}
	}
}

func TestEachPlantedFaultIsFound(t *testing.T) {
	for _, f := range faults() {
		dataplane := map[bool]string{true: "linux", false: "vpp"}[f.linux]
		v := views(t, dataplane)
		f.plant(t, v[0], v[1])
		found := Cluster(v)
		hit := slices.ContainsFunc(found, func(x Finding) bool {
			return x.About == f.about && x.Node == f.node && strings.Contains(x.Text, f.text)
		})
		if !hit || len(found) != f.others+1 {
			t.Errorf("%s (%s): want %q of %s about a %s and %d more, found %d:\n%+v", f.name, dataplane, f.text, f.node, f.about,
				f.others, len(found), found)
		}
	}
}
