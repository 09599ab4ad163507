package ipnet

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
)

// TestHostByIPTables checks that, without nft, VPP uses another address than that of the link for the host's own processes, and that the
// host gives this address only to traffic of its own processes. In VPP the address is a neighbour on the link to the host.
func TestHostByIPTables(t *testing.T) {
	for _, byIPTables := range []bool{false, true} {
		w := newNode(t, dualTAP+uplink)
		w.n.HostForwards, w.n.HostByIPTables = true, byIPTables
		w.withPlugin()
		own, self := "172.30.1.2", "172.30.1.5"
		recognised, other := own, self
		if byIPTables {
			recognised, other = self, own
		}
		inVPP, _ := w.n.settings.hostLinkNames()
		host := w.want[nb.ContivEndpointKey(inVPP)].(*vpp_contiv.Endpoint)
		if !slices.Contains(host.Addresses, recognised) || slices.Contains(host.Addresses, other) {
			t.Errorf("by iptables %t: the host's addresses are %v", byIPTables, host.Addresses)
		}
		f := w.want[nb.ForwardedKey(linux_nodeports.Family_IPV4)].(*linux_nodeports.Forwarded)
		if f.Own != own || (f.Self == self) != byIPTables || (f.Masqueraded == "") != byIPTables || slices.Contains(f.Others, self) {
			t.Errorf("by iptables %t: %v", byIPTables, f)
		}
		key, err := nb.Key(&vpp_l3.ARPEntry{Interface: inVPP, IpAddress: self})
		if err != nil {
			t.Fatal(err)
		}
		if w.want[key] == nil {
			t.Errorf("VPP has no neighbour %s", self)
		}
	}
}
