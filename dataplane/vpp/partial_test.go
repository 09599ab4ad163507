package vpp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// somePods returns n pods as contiv connects them, on loopbacks.
func somePods(n int) (node values, pods []values) {
	node = all(tables(1, "pod"), values{loop("gw", "02:00:00:00:01:01", inTable(1), withIP("10.1.0.1/32", "fd00:1::1/128"))})
	for i := range n {
		name, addr := fmt.Sprintf("pod-%d", i), fmt.Sprintf("10.1.1.%d", i+1)
		pods = append(pods, values{
			loop(name, fmt.Sprintf("02:00:00:00:02:%02x", i), inTable(1), unnumberedTo("gw"),
				func(v *vpp_interfaces.Interface) { v.Mtu = 1450 }),
			&vpp_l3.ARPEntry{Interface: name, IpAddress: addr, PhysAddress: fmt.Sprintf("02:fe:00:00:02:%02x", i), Static: true},
			&vpp_l3.Route{VrfId: 1, DstNetwork: addr + "/32", NextHopAddr: addr, OutgoingInterface: name},
		})
	}
	return node, pods
}

// due returns the operations that a check of the values finds necessary.
func due(t *testing.T, a *agent, v values) string {
	t.Helper()
	var keys []string
	for _, kv := range kvs(t, v) {
		keys = append(keys, kv.Key)
	}
	ops, err := a.s.Check(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, op := range ops {
		all = append(all, string(op.Action)+" "+op.Key)
	}
	return strings.Join(all, "\n")
}

// A check of one pod finds the changes that another program has made to it, and nothing else, and sends requests about
// nothing else.
func TestCheckOfOnePod(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		node, pods := somePods(20)
		desired := node
		for _, p := range pods {
			desired = append(desired, p...)
		}
		a.resync(desired...)
		if g.fake != nil {
			g.fake.ResetCounts()
		}
		if d := due(t, a, pods[3]); d != "" {
			t.Errorf("all is well, and due is\n%s", d)
		}
		if g.fake != nil {
			for name, n := range g.fake.Requests() {
				if n > 15 && name != "control_ping" { // one per item of an interface
					t.Errorf("%d × %s to look at one pod of 20", n, name)
				}
			}
		}
		index, _ := a.idx.IfIndex("pod-3")
		for _, req := range []api.Message{
			&interfaces.SwInterfaceSetFlags{SwIfIndex: interface_types.InterfaceIndex(index)},
			&interfaces.SwInterfaceSetUnnumbered{UnnumberedSwIfIndex: interface_types.InterfaceIndex(index)},
		} {
			a.lane.Request(req, func(_ api.Message, err error) {
				if err != nil {
					t.Errorf("%s: %v", req.GetMessageName(), err)
				}
			})
		}
		a.lane.Flush(t.Context())
		want := []string{
			"create " + nb.LinkStateKey("pod-3", true), "create " + nb.UnnumberedKey("pod-3"),
		}
		got := due(t, a, pods[3])
		for _, w := range want {
			if !slices.Contains(strings.Split(got, "\n"), w) {
				t.Errorf("due is\n%s\nwithout %s", got, w)
			}
		}
		if d := due(t, a, pods[4]); d != "" {
			t.Errorf("due for another pod:\n%s", d)
		}
		a.resync(desired...)
		if d := due(t, a, pods[3]); d != "" {
			t.Errorf("after a resync due is\n%s", d)
		}
		a.mustNotWrite("checked", desired)
	})
}
