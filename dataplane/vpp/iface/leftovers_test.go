package iface

import (
	"strconv"
	"testing"

	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
)

// Without a tag, only objects that no other program would make count as ours.
func TestOwnObjectsWithoutTag(t *testing.T) {
	for dev, want := range map[string]bool{
		"vpp0123456789ab": true, "vpp1": false, "vpp0123456789aB": false, "vpp0123456789abc": false, "eth0": false, "": false,
	} {
		if got := isPodDevice(dev); got != want {
			t.Errorf("device %q: %t", dev, got)
		}
	}
	mac := ethernet_types.MacAddress{2, 0xfe, 1, 2, 3, 4}
	for name, want := range map[string]bool{
		loopName(loopbackInstance(mac, 0)): true, loopName(loopbackInstance(mac, loopbackTries-1)): true,
		loopName(loopbackInstance(mac, loopbackTries)): false, "loop0": false, "loop8191": false, "loop": false, "bvi9000": false,
	} {
		if got := isOurLoopback(&interfaces.SwInterfaceDetails{InterfaceName: name, L2Address: mac}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func loopName(instance uint32) string { return "loop" + strconv.FormatUint(uint64(instance), 10) }
