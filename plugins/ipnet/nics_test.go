package ipnet

import (
	"maps"
	"net"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
)

// fakeNICs holds VPP's NICs, and the leases that are watched.
type fakeNICs struct {
	names   []string
	leasing []string
}

func (n *fakeNICs) Names() ([]string, error) { return n.names, nil }
func (n *fakeNICs) Watch(func())             {}

func (n *fakeNICs) WatchDHCPLeases(ifName string, _ func(net.IP, *net.IPNet, net.IP)) error {
	n.leasing = append(n.leasing, ifName)
	return nil
}

// TestFirstNIC checks that, without a configured main interface, VPP's first NIC that has no other role is used; without a NIC, a loopback.
func TestFirstNIC(t *testing.T) {
	w := newNode(t, `{"nodeConfig":[{"nodeName":"n1","mainVPPInterface":{"useDHCP":true},
		"otherVPPInterfaces":[{"interfaceName":"Gig0"}]}]}`)
	wanted := func(name string) *vpp_interfaces.Interface {
		key, err := nb.Key(&vpp_interfaces.Interface{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		ifc, _ := w.want[key].(*vpp_interfaces.Interface)
		return ifc
	}
	if wanted(loopbackNICName) == nil {
		t.Fatalf("no loopback in place of a NIC: %v", slices.Sorted(maps.Keys(w.want)))
	}
	nics := &fakeNICs{names: []string{"Gig0", "Gig1", "Gig2"}}
	w.n.VPPNICs, w.n.VPPIfPlugin = nics, nics
	for range 2 {
		w.resync()
	}
	main := wanted("Gig1")
	if main == nil || main.Type != vpp_interfaces.Interface_DPDK || !main.SetDhcpClient || wanted(loopbackNICName) != nil {
		t.Errorf("main interface %v", main)
	}
	if len(nics.leasing) != 1 || nics.leasing[0] != "Gig1" {
		t.Errorf("leases are watched of %v", nics.leasing)
	}
}
