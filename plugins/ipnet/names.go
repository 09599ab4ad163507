package ipnet

import (
	"hash/fnv"
	"net"
	"slices"

	"contiv.dev/vswitch/plugins/ipnet/transport"
	"contiv.dev/vswitch/plugins/podmanager"
)

const (
	hostVethInLinux    = "veth-vpp1" // VETH mode: logical name of the host's end
	hostVethInVPP      = "veth-vpp2" // VETH mode: logical name of the end that VPP attaches to
	hostVethInVPPName  = "vpp2"      // its device name
	hostAfPacketInVPP  = "afpacket-vpp2"
	podGwLoopName      = "podGwLoop"
	loopbackNICName    = "loopbackNIC"
	egressPipe         = "outside-pipe"
	egressPipeEnd      = "outside-pipe-end"
	vrfMain            = "mainVRF"
	vrfPod             = "podVRF"
	vrfAnswers         = "answersVRF"
	maxContainerIDPart = 40
)

// The constants are prefixes of deterministic MAC addresses; four bytes of node ID (or hash) follow.
var (
	macHostLinkVPP   = [2]byte{0x34, 0x3c}
	macHostLinkLinux = [2]byte{0x34, 0x3e}
	macPod           = [2]byte{0x02, 0xfe}
)

// nodeMAC returns prefix followed by the node ID, big-endian.
func nodeMAC(prefix [2]byte, nodeID uint32) net.HardwareAddr {
	return transport.NodeMAC(prefix, nodeID)
}

// podMAC returns 02:fe and the FNV-1a-32 hash of the container ID (with the interface name, unless it is eth0).
func podMAC(id podmanager.AttachmentID) net.HardwareAddr {
	h := fnv.New32a()
	h.Write([]byte(id.ContainerID))
	if id.IfName != defaultIfName {
		h.Write([]byte("/" + id.IfName))
	}
	return nodeMAC(macPod, h.Sum32())
}

// sharedNICMAC returns the MAC address that VPP uses on a NIC that it shares with the host: 02:fb and a hash of node and NIC.
func sharedNICMAC(node, nic string) net.HardwareAddr {
	h := fnv.New32a()
	h.Write([]byte(node + "/" + nic))
	return nodeMAC([2]byte{0x02, 0xfb}, h.Sum32())
}

// peerMAC returns the MAC address of the other end of a pod link: the complement of the pod's last four bytes.
func peerMAC(pod net.HardwareAddr) net.HardwareAddr {
	mac := append(net.HardwareAddr(nil), pod...)
	for i := 2; i < len(mac); i++ {
		mac[i] = ^mac[i]
	}
	return mac
}

// defaultIfName is the interface name that is left out of logical names.
const defaultIfName = "eth0"

// podIfSuffix distinguishes the interfaces of attachments: the container ID, and the interface name unless it is eth0. A long container ID
// is shortened with a hash (container IDs are random, except those of tests and manual requests).
func podIfSuffix(id podmanager.AttachmentID) string {
	cid := id.ContainerID
	if len(cid) > maxContainerIDPart {
		h := fnv.New64a()
		h.Write([]byte(cid))
		cid = cid[:maxContainerIDPart-12] + "-" + hex12(h.Sum64())[:11]
	}
	if id.IfName != defaultIfName {
		cid += "-" + id.IfName
	}
	return cid
}

// hostDevName returns a device name (15 characters at most) that is unique for the attachment.
func hostDevName(id podmanager.AttachmentID) string {
	h := fnv.New64a()
	h.Write([]byte(id.String()))
	return "vpp" + hex12(h.Sum64())
}

func hex12(v uint64) string {
	const digits = "0123456789abcdef"
	var b [12]byte
	for i := range b {
		b[i] = digits[v&0xf]
		v >>= 4
	}
	return string(b[:])
}

// podIfNames are the logical names of the interfaces that connect one attachment.
type podIfNames struct {
	vpp       string // in VPP
	linux     string // in the pod
	linuxPeer string // VETH mode: the veth end that VPP attaches to
	hostDev   string // VETH mode: its device name, unless the dataplane takes a pair from its pool
	loop      string // the pod's own loopback
}

// all returns the names by which the pod can be looked up.
func (n podIfNames) all() []string {
	return slices.DeleteFunc([]string{n.vpp, n.linux, n.linuxPeer, n.loop}, func(name string) bool { return name == "" })
}

func podNames(id podmanager.AttachmentID, tap bool) podIfNames {
	s := podIfSuffix(id)
	if tap {
		return podIfNames{vpp: "vpp-tap-" + s, linux: "linux-tap-" + s, loop: "loop-" + s}
	}
	return podIfNames{vpp: "afpacket-" + s, linux: "veth1-" + s, linuxPeer: "veth2-" + s, hostDev: hostDevName(id), loop: "loop-" + s}
}
