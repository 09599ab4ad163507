package intdataplane

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
)

// TestKernelTunnelPacketsByLayer: each of the layers raw and filter blocks a workload's tunnel packets, and packets with another workload's
// address, without the other layer. So a rule of another program that accepts packets early in one of them does not open the node. Without
// both layers the packets arrive.
func TestKernelTunnelPacketsByLayer(t *testing.T) {
	onBothBackends(t, toHost, func(t *testing.T, n *node) {
		peer := &proto.HostMetadataUpdate{Hostname: "node2", Ipv4Addr: n.Outside.Addr(4).String(), Ipv6Addr: n.Outside.Addr(6).String()}
		fill := func() {
			n.apply(append(n.open(), peer)...)
			n.up("pod1", "pod2", "pod3")
			n.stop() // the driver would repair what is removed below
			n.set("net/ipv4/conf/"+n.Pods[0].Iface+"/rp_filter", "0")
		}
		expect := func(want tabletest.Verdict, why string) {
			t.Helper()
			bothFamilies(func(f table.Family) {
				n.Expect(t,
					tabletest.Case{Want: want, Probe: n.Pods[0].UDP(n.Host.Addr(f), 4789), Why: why + ", to its own node"},
					tabletest.Case{Want: want, Probe: n.Pods[0].UDP(n.Outside.Addr(f), 4789), Why: why + ", to another node"})
				if want == tabletest.Drop { // a reply would not come back
					for _, port := range []uint16{4789, 80} {
						n.Expect(t, tabletest.Case{Want: want, Probe: n.Pods[0].UDP(n.Host.Addr(f), port).FromAddr(n.Outside.Addr(f)),
							Why: why + ", as another node, to its own"})
					}
				}
			})
		}
		fill()
		n.empty("filter")
		expect(tabletest.Drop, "layer raw alone")
		n.start()
		fill()
		n.empty("raw")
		expect(tabletest.Drop, "layer filter alone")
		n.empty("filter")
		expect(tabletest.Pass, "neither layer")
	})
}

// empty removes all rules from a layer's base chains.
func (n *node) empty(layer string) {
	n.t.Helper()
	if n.config.RulesConfig.Backend == rules.BackendIptables {
		n.run("iptables", "-t", layer, "-F")
		n.run("ip6tables", "-t", layer, "-F")
		return
	}
	where, chain, emptied := "", "", 0
	for line := range strings.Lines(n.run("nft", "list", "chains")) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 2 && fields[0] == "table":
			where = fields[1] + " " + fields[2]
		case len(fields) > 1 && fields[0] == "chain":
			chain = fields[1]
		case strings.Contains(line, "priority "+layer):
			n.run("nft", "flush chain "+where+" "+chain)
			emptied++
		}
	}
	if emptied < 4 { // two hooks, two families
		n.t.Fatalf("layer %s has %d base chains", layer, emptied)
	}
}
