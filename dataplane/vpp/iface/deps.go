package iface

import "net"

// Deps holds what the descriptors of interfaces need from other packages. All functions are called on the scheduler's goroutine.
type Deps struct {
	// LinuxDevice returns the device, in VPP's network namespace, of a logical Linux interface.
	LinuxDevice func(logical string) (dev string, ok bool)
	// LinuxTap returns the current location of the Linux end of a TAP, so that a new VPP can attach to it: the path of the network
	// namespace (empty for VPP's own) and the device.
	LinuxTap func(vppIfName string) (netnsPath, dev string, ok bool)
	// LinuxTapMAC returns the hardware address of that end. VPP sets an address when it attaches: without LinuxTapMAC a random one,
	// so that static neighbour entries for the pod are wrong from then on. Needed for ends in other network namespaces.
	LinuxTapMAC func(vppIfName string) (net.HardwareAddr, bool)
	// MakeTap makes the Linux end of a TAP ahead, in the network namespace where it belongs (a path, or a name below /run/netns), for
	// VPP to attach to; made is false if VPP should make it. DropTap removes it if VPP did not attach to it. Optional, both or none:
	// without them VPP makes the device, which may take VPP 20 ms.
	MakeTap func(netns, dev string, tun bool) (made bool, err error)
	DropTap func(netns, dev string) error
	// Isolate keeps the host's network stack off a device of ours which an af_packet interface is on. It is called when VPP has
	// everything it needs, since VPP changes the hardware address of the device to its own. Needed for VETH pods.
	Isolate func(dev string) error
	// Share prepares a NIC of the host which an af_packet interface is on, so that both VPP and the host may use it. Optional.
	Share func(dev string) error
	// AfPacket sizes the rings of af_packet interfaces; DefaultAfPacketRings when zero.
	AfPacket AfPacketRings
	// Pool has af_packet interfaces that were made ahead. Optional.
	Pool Pool
	// Segments reports whether VPP segments packets that stand for several (GSO), as our plugin does. Optional: without it no TAP
	// accepts such packets.
	Segments func() bool
	// DeletionQueue deletes interfaces whose deletion would keep VPP busy. Optional: without it they are deleted immediately.
	DeletionQueue *DeletionQueue
}

// Pool hands out af_packet interfaces that were made ahead.
type Pool interface {
	// ClaimAfPacket hands out the interface that is attached to a device. It then belongs to the caller; only tag and addresses remain to be set.
	ClaimAfPacket(hostDev string) (swIfIndex uint32, ok bool)
}
