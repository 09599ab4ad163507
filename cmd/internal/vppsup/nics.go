package vppsup

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
)

// Driver is how VPP uses a NIC.
type Driver string

// The drivers.
const (
	DPDK     Driver = "dpdk"      // a PCI device taken from the kernel
	AFPacket Driver = "af_packet" // a NIC that stays with the kernel
)

// afPacketPrefix is VPP's prefix to the name of the kernel's NIC.
const afPacketPrefix = "host-"

// NIC is a network interface that contiv.conf gives to VPP.
type NIC struct {
	Name   string // VPP's name, as in contiv.conf
	Driver Driver
	PCI    string // of DPDK, e.g. 0000:00:08.0
	Linux  string // of AF_PACKET, the kernel's name
}

// NICsOf lists the NICs that contiv.conf names for this node, the main one first. A name of neither a PCI device nor a kernel NIC is an
// interface that VPP creates itself (such as a memif): the agent waits for it, and VPP needs no configuration for it.
func NICsOf(node contivconf.NodeConfig) []NIC {
	var nics []NIC
	for _, i := range append([]contivconf.VPPInterface{node.MainVPPInterface}, node.OtherVPPInterfaces...) {
		if linux, ok := strings.CutPrefix(i.InterfaceName, afPacketPrefix); ok {
			nics = append(nics, NIC{Name: i.InterfaceName, Driver: AFPacket, Linux: linux})
		} else if pci, ok := pciOf(i.InterfaceName); ok {
			nics = append(nics, NIC{Name: i.InterfaceName, Driver: DPDK, PCI: pci})
		}
	}
	return nics
}

// pciName matches VPP's names of PCI devices: speed (missing if it is unknown to VPP), then bus/slot/function, in hexadecimal. It also accepts
// a domain before the bus, which VPP's own names do not contain.
var pciName = regexp.MustCompile(`^[A-Za-z]*Ethernet(?:([0-9a-f]{1,4})/)?([0-9a-f]{1,2})/([0-9a-f]{1,2})/([0-7])$`)

// pciOf returns the PCI address in VPP's name.
func pciOf(name string) (string, bool) {
	m := pciName.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	var part [4]uint64
	for i, text := range m[1:] {
		if text == "" { // no domain: it is 0
			continue
		}
		n, err := strconv.ParseUint(text, 16, 16)
		if err != nil {
			return "", false
		}
		part[i] = n
	}
	if part[2] > 0x1f { // a slot has five bits
		return "", false
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", part[0], part[1], part[2], part[3]), true
}
