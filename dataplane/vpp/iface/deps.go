package iface

import "net"

// Deps is what the kinds of interfaces need of others. All functions are called on the scheduler's goroutine.
type Deps struct {
	// LinuxDevice is the device, in VPP's network namespace, of a logical Linux interface.
	LinuxDevice func(logical string) (dev string, ok bool)
	// LinuxTap says where the Linux end of a TAP is now, so that a new VPP can attach to it: the path of the network
	// namespace (empty for VPP's own) and the device.
	LinuxTap func(vppIfName string) (netnsPath, dev string, ok bool)
	// LinuxTapMAC is the hardware address of that end. VPP sets one when it attaches: if it is not known, a random one, and
	// static neighbour entries for the pod are wrong from then on. Needed for ends in other network namespaces.
	LinuxTapMAC func(vppIfName string) (net.HardwareAddr, bool)
	// MakeTap makes the Linux end of a TAP ahead, in the network namespace where it is to be (a path, or a name below
	// /run/netns), for VPP to attach to; made is false when VPP had better make it. DropTap removes it when VPP did not take it.
	// Optional, both or none: without them VPP makes the device, which may take it 20 ms.
	MakeTap func(netns, dev string, tun bool) (made bool, err error)
	DropTap func(netns, dev string) error
	// Isolate keeps the host's network stack off a device of ours which an af_packet interface is on. It is called when VPP has
	// everything it needs, since VPP gives the device its own hardware address. Needed for VETH pods.
	Isolate func(dev string) error
	// Share prepares a NIC of the host which an af_packet interface is on, so that both may use it. Optional.
	Share func(dev string) error
	// AfPacket sizes the rings of af_packet interfaces; DefaultAfPacketRings when zero.
	AfPacket AfPacketRings
	// Pool has interfaces that are ready. Optional.
	Pool Pool
	// Segments reports whether VPP splits packets that stand for several, as our plugin does. Optional: without it no TAP takes such.
	Segments func() bool
	// DeletionQueue takes interfaces whose deletion would keep VPP busy. Optional: without it they are deleted at once.
	DeletionQueue *DeletionQueue
}

// Pool has interfaces that were made ahead. What it hands out is the caller's; only tag and addresses remain to be set.
type Pool interface {
	// ClaimTap hands out a TAP made as spec says; hostDev is its device in VPP's network namespace.
	ClaimTap(spec TapSpec) (swIfIndex uint32, hostDev string, ok bool)
	// ClaimAfPacket hands out the interface that is attached to a device.
	ClaimAfPacket(hostDev string) (swIfIndex uint32, ok bool)
}
