package iface

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// AfPacketRings is the size of the rings that an af_packet interface shares with the kernel. VPP's own default costs 79 MB for each interface and
// stops VPP for 0.4 s while the interface is made.
type AfPacketRings struct {
	RxFrames uint32 // frames to VPP, each with room for a packet of the MTU
	TxFrames uint32 // frames from VPP, of txFrame bytes
}

// DefaultAfPacketRings returns rings that cost 19 MB per interface. VPP hands over up to 256 packets at once, and drops packets for which the ring
// to the kernel has no room.
func DefaultAfPacketRings() AfPacketRings { return AfPacketRings{RxFrames: 1024, TxFrames: 256} }

const (
	// rxRoom is the space in a frame for what the kernel puts before a packet, and for an Ethernet header with two VLAN tags.
	rxRoom = 2048 - nb.MaxVethMTU
	// txFrame has room for the largest packet that VPP may have: 64 kB of IP, and the headers of a tunnel. VPP copies a packet into its frame
	// without checking whether it fits (docs/adr/0013): with less room, a packet that is longer than the length in its IP header overwrites the
	// next frames; then the interface stops sending, or VPP crashes.
	txFrame = 33 * 2048
	// afPacketMTU is the MTU of an interface whose value has none. VPP's default is 9000, whatever the MTU of the device is.
	afPacketMTU = 1500
	// nicMTU is the minimum MTU that the frames of a NIC that VPP shares with the host have room for: jumbo frames. So another MTU of the NIC does
	// not need a new interface, for which everything that depends on the interface would have to be made again.
	nicMTU = 9216
)

// mtuOf returns the MTU that an af_packet interface gets.
func mtuOf(v *vpp_interfaces.Interface) uint32 {
	if v.Mtu == 0 {
		return afPacketMTU
	}
	return v.Mtu
}

// rxFrame returns the size of the frames to VPP: the kernel truncates packets that do not fit, and VPP then drops them.
func rxFrame(mtu uint32) uint32 {
	size := uint32(2048)
	for size < mtu+rxRoom {
		size *= 2
	}
	return size
}

// isNIC reports whether an interface is a NIC that VPP shares with the host.
func isNIC(v *vpp_interfaces.Interface) bool { return v.GetAfpacket().GetLinuxInterface() == "" }

// ringMTU returns the MTU that the frames of an interface have room for.
func ringMTU(nic bool, mtu uint32) uint32 {
	if nic {
		return max(mtu, nicMTU)
	}
	return mtu
}

func afPacketType() *ifType {
	return &ifType{
		mtu:      afPacketMTU,
		rxMode:   interface_types.RX_MODE_API_INTERRUPT,
		validate: validateAfPacket,
		deps: func(v *vpp_interfaces.Interface, add func(string)) {
			if name := v.GetAfpacket().GetLinuxInterface(); name != "" {
				add(nb.LinuxInterfaceKey(name))
			}
		},
		create: createAfPacket,
		equal:  equalAfPacket,
		read: func(_ *Descriptors, s *ifState, v *vpp_interfaces.Interface) bool {
			v.Mtu, v.RxPlacements = s.Details.Mtu[0], s.placements()
			v.Link = &vpp_interfaces.Interface_Afpacket{Afpacket: &vpp_interfaces.AfpacketLink{HostIfName: s.hostDev}}
			return s.hostDev != ""
		},
		remove: func(k *Descriptors, e *ifEntry, _ *vpp_interfaces.Interface, done func(error)) {
			k.deleteAfPacket(e.hostDev, done)
		},
	}
}

func validateAfPacket(v *vpp_interfaces.Interface, f *kit.Faults) {
	link := v.GetAfpacket()
	if link.GetHostIfName() == "" && link.GetLinuxInterface() == "" {
		f.Add("afpacket.host_if_name", "is empty, and so is afpacket.linux_interface")
	}
	f.Device("afpacket.host_if_name", link.GetHostIfName())
	if link.GetLinuxInterface() != "" && v.Mtu > nb.MaxVethMTU {
		f.Add("mtu", "%d: VPP takes at most %d from a VETH (docs/adr/0013)", v.Mtu, nb.MaxVethMTU)
	}
}

// AfPacketRequest returns the request that attaches VPP to a Linux device, for packets of up to mtu bytes, with one queue in each direction. Only
// version 3 of the request with an explicit mode works. The kernel's packet interface is its version 2: version 3 hands packets to VPP in blocks,
// and a block that is not full waits for a millisecond. VPP's offloads are off: with them VPP receives packets of 64 kB, which it cannot segment
// (docs/adr/0013).
func AfPacketRequest(dev string, mtu uint32, rings AfPacketRings) *af_packet.AfPacketCreateV3 {
	return &af_packet.AfPacketCreateV3{
		Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, UseRandomHwAddr: true, HostIfName: dev,
		RxFrameSize: rxFrame(mtu), RxFramesPerBlock: rings.RxFrames, TxFrameSize: txFrame, TxFramesPerBlock: rings.TxFrames,
		Flags:       af_packet.AF_PACKET_API_FLAG_QDISC_BYPASS | af_packet.AF_PACKET_API_FLAG_VERSION_2,
		NumRxQueues: 1, NumTxQueues: 1,
	}
}

func createAfPacket(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	dev, err := k.afPacketDevice(v)
	if err != nil {
		done(made{}, err)
		return
	}
	if k.deps.Pool != nil {
		if index, ok := k.deps.Pool.ClaimAfPacket(dev); ok { // only pairs of pods, which have one queue
			done(made{index: index, hostDev: dev}, nil)
			return
		}
	}
	req := AfPacketRequest(dev, ringMTU(isNIC(v), mtuOf(v)), k.deps.AfPacket)
	// The kernel distributes received packets over the queues by flow, and each thread of VPP sends on the queue of its number, if that queue
	// exists.
	req.NumRxQueues = uint16(rxQueues(v))
	req.NumTxQueues = req.NumRxQueues
	if v.PhysAddress != "" {
		req.UseRandomHwAddr, req.HwAddr = false, kit.MAC(v.PhysAddress)
	}
	k.clearDevice(v.Name, dev)
	k.tryAfPacket(v.Name, req, true, func(index uint32, err error) {
		done(made{index: index, hostDev: dev, hasMAC: v.PhysAddress != ""}, err)
	})
}

// tryAfPacket makes the interface. An interface that VPP already has on the device is a leftover: its peer may have been removed with its
// namespace, and then it would never work again. The leftover is deleted first.
func (k *Descriptors) tryAfPacket(name string, req *af_packet.AfPacketCreateV3, again bool, done func(uint32, error)) {
	conn.Call(k.Lane, req, func(r *af_packet.AfPacketCreateV3Reply, err error) {
		switch {
		case err == nil:
			done(uint32(r.SwIfIndex), nil)
		case again && conn.IsRetval(err, api.IF_ALREADY_EXISTS):
			k.replaceAfPacket(name, req, done)
		case conn.IsRetval(err, api.INVALID_INTERFACE):
			done(kit.None, &absentError{fmt.Errorf("%w: there is no device %s in VPP's network namespace", err, req.HostIfName)})
		case req.NumRxQueues > 1 && conn.IsRetval(err, api.SYSCALL_ERROR_1):
			// VPP computes the group's number from the device's name and its own number of the interface (docs/adr/0018).
			done(kit.None, fmt.Errorf("%w: the kernel rejected %d queues on %s: another program in VPP's network namespace may use the same packet fanout group; "+
				"VPP's log has the number; stop that program or give it another group, or run VPP without workers", err, req.NumRxQueues, req.HostIfName))
		default:
			done(kit.None, err)
		}
	})
}

func (k *Descriptors) replaceAfPacket(name string, req *af_packet.AfPacketCreateV3, done func(uint32, error)) {
	other, ok := k.idx.byDevice(req.HostIfName)
	if ok && other != name && !isLeftover(other) {
		done(kit.None, fmt.Errorf("device %s is in use by interface %s", req.HostIfName, other))
		return
	}
	k.deleteAfPacket(req.HostIfName, func(err error) {
		if err != nil {
			done(kit.None, fmt.Errorf("remove the previous VPP interface of device %s: %w", req.HostIfName, err))
			return
		}
		k.idx.remove(other)
		k.Log.Info("removed the previous VPP interface of a device", "device", req.HostIfName, "interface", name)
		k.tryAfPacket(name, req, false, done)
	})
}

// absentError reports a device that does not exist yet.
type absentError struct{ error }

func (e *absentError) Unwrap() error { return e.error }

// Retriable returns true: the device may appear later.
func (e *absentError) Retriable() bool { return true }

// deleteAfPacket deletes by device name. VPP returns SYSCALL_ERROR_1 if it has no interface on that device, but also for other errors, so a dump
// checks which it is.
func (k *Descriptors) deleteAfPacket(dev string, done func(error)) {
	conn.Call(k.Lane, &af_packet.AfPacketDelete{HostIfName: dev}, func(_ *af_packet.AfPacketDeleteReply, err error) {
		if !conn.IsRetval(err, api.SYSCALL_ERROR_1) {
			done(err)
			return
		}
		there := false
		conn.Dump(k.Lane, &af_packet.AfPacketDump{}, func(d *af_packet.AfPacketDetails) {
			there = there || d.HostIfName == dev
		}, func(dumpErr error) {
			if !there || dumpErr != nil {
				err = dumpErr
			}
			done(err)
		})
	})
}

func (k *Descriptors) afPacketDevice(v *vpp_interfaces.Interface) (string, error) {
	link := v.GetAfpacket()
	if link.GetLinuxInterface() == "" {
		return link.GetHostIfName(), nil
	}
	dev, ok := k.linuxDevice(link.GetLinuxInterface())
	if !ok {
		return "", &absentError{fmt.Errorf("no Linux device for afpacket.linux_interface %s", link.GetLinuxInterface())}
	}
	if len(dev) > 15 {
		return "", fmt.Errorf("%q is not a Linux device name", dev)
	}
	return dev, nil
}

func (k *Descriptors) linuxDevice(name string) (string, bool) {
	if k.deps.LinuxDevice == nil {
		return "", false
	}
	return k.deps.LinuxDevice(name)
}

// equalAfPacket compares devices, and whether the rings, made for the MTU that the interface had, have room for the new MTU. A dump has only the
// device's name; the Linux interface on that device may not be known yet.
func equalAfPacket(k *Descriptors, desired, applied *vpp_interfaces.Interface) bool {
	nic := isNIC(desired)
	if rxFrame(ringMTU(nic, mtuOf(desired))) != rxFrame(ringMTU(nic, mtuOf(applied))) || rxQueues(desired) != rxQueues(applied) {
		return false
	}
	d, a := desired.GetAfpacket(), applied.GetAfpacket()
	if d.GetLinuxInterface() == a.GetLinuxInterface() {
		return d.GetLinuxInterface() != "" || d.GetHostIfName() == a.GetHostIfName()
	}
	if d.GetLinuxInterface() == "" || a.GetLinuxInterface() != "" {
		return false
	}
	dev, known := k.linuxDevice(d.GetLinuxInterface())
	return !known || dev == a.GetHostIfName()
}

// isolate keeps the host's network stack off the device of an af_packet interface, if the device is one of ours; a NIC is shared with the host.
func (k *Descriptors) isolate(v *vpp_interfaces.Interface, dev string) error {
	if v.GetAfpacket().GetHostIfName() != "" && v.GetAfpacket().GetLinuxInterface() == "" && k.deps.Share != nil {
		return Named("share", v.Name).Wrap(k.deps.Share(dev))
	}
	if k.deps.Isolate == nil || v.GetAfpacket().GetLinuxInterface() == "" {
		return nil
	}
	return Named("isolate", v.Name).Wrap(k.deps.Isolate(dev))
}
