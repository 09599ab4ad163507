package vppfake

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"
)

// Host is called for interfaces that have an end in the Linux host, so that a test may create real ones. The calls happen while the fake
// handles a request: they must not call the fake. An error makes the request fail in the same way as a failed system call in VPP.
type Host interface {
	// CreateTap is called when a TAP is requested; name and namespace are those of the host end.
	CreateTap(TapRequest) error
	// DeleteTap is called when a TAP without the persistent flag is removed.
	DeleteTap(TapRequest) error
	// OpenAfPacket is called when an af_packet interface on the host device name is requested.
	OpenAfPacket(name string) error
	// CloseAfPacket is called when the af_packet interface is removed.
	CloseAfPacket(name string) error
}

// TapRequest describes the host end of a requested TAP.
type TapRequest struct {
	Name      string
	Namespace string
	Bridge    string
	MAC       [6]byte
	MTU       uint32
	Attach    bool // attach to an existing persistent device
	Persist   bool
}

func registerAfPacket(t *table) {
	on(t, writes, createAfPacket)
	on(t, writes, deleteAfPacket)
	dump(t, func(c *call, _ *af_packet.AfPacketDump, send func(*af_packet.AfPacketDetails)) {
		for _, i := range c.live() {
			if device, ok := i.hw.driver.detail.(*afPacket); ok && i.sub == nil {
				send(&af_packet.AfPacketDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), HostIfName: device.name})
			}
		}
	})
}

func createAfPacket(c *call, q *af_packet.AfPacketCreateV3) *af_packet.AfPacketCreateV3Reply {
	if q.Mode != af_packet.AF_PACKET_API_MODE_ETHERNET && q.Mode != af_packet.AF_PACKET_API_MODE_IP {
		return &af_packet.AfPacketCreateV3Reply{Retval: rvInvalidValue, SwIfIndex: interface_types.InterfaceIndex(none)}
	}
	name := q.HostIfName
	if i := c.hosts[name]; i != nil {
		return &af_packet.AfPacketCreateV3Reply{Retval: rvIfExists, SwIfIndex: interface_types.InterfaceIndex(i.index)}
	}
	if h := c.cfg.Host; h != nil && h.OpenAfPacket(name) != nil {
		return &af_packet.AfPacketCreateV3Reply{Retval: rvInvalidInterface}
	}
	hw := &hardware{devType: "af-packet", linkUp: true, queues: c.newQueues(int(q.NumRxQueues), interface_types.RX_MODE_API_INTERRUPT)}
	if q.Mode == af_packet.AF_PACKET_API_MODE_ETHERNET {
		hw.ethernet, hw.mac, hw.macReported = true, q.HwAddr, !q.UseRandomHwAddr
		if q.UseRandomHwAddr {
			hw.mac = c.randomMAC()
		}
	}
	hw.driver = driver{linkFollowsAdmin: true, setMTU: true, detail: newAfPacket(q), remove: func(st *state, _ *iface) {
		delete(st.hosts, name)
		if h := st.cfg.Host; h != nil {
			h.CloseAfPacket(name) //nolint:errcheck // VPP does not look either
		}
	}}
	i := c.create(&iface{name: "host-" + name, hw: hw})
	c.hosts[name] = i
	return &af_packet.AfPacketCreateV3Reply{SwIfIndex: interface_types.InterfaceIndex(i.index)}
}

func deleteAfPacket(c *call, q *af_packet.AfPacketDelete) *af_packet.AfPacketDeleteReply {
	i := c.hosts[q.HostIfName]
	if i == nil {
		return &af_packet.AfPacketDeleteReply{Retval: rvSyscall1}
	}
	c.delete(i)
	return &af_packet.AfPacketDeleteReply{}
}

func registerTap(t *table) {
	on(t, writes, createTap)
	on(t, writes, deleteTap)
	dump(t, dumpTaps)
}

// tap is VPP's record of a TAP.
type tap struct {
	id      uint32
	host    TapRequest
	tx, rx  uint16
	flags   tapv2.TapFlags
	request *tapv2.TapCreateV3
}

// validRing reports whether n is a ring size that virtio allows: a power of two up to 32768; 0 means 256.
func validRing(n uint16) bool { return n&(n-1) == 0 && n <= 32768 }

func createTap(c *call, q *tapv2.TapCreateV3) *tapv2.TapCreateV3Reply {
	fail := func(rv int32) *tapv2.TapCreateV3Reply {
		return &tapv2.TapCreateV3Reply{Retval: rv, SwIfIndex: interface_types.InterfaceIndex(none)}
	}
	id, automatic := q.ID, q.ID == none
	if automatic {
		for id = 0; c.taps[id] != nil; id++ {
		}
	}
	t := &tap{id: id, tx: q.TxRingSz, rx: q.RxRingSz, flags: q.TapFlags, request: q}
	switch {
	case c.taps[id] != nil:
		return fail(rvInvalidInterface)
	case q.TapFlags&tapv2.TAP_API_FLAG_ATTACH != 0 && !q.HostIfNameSet:
		return fail(rvSyscall3)
	case c.cfg.NoVhost:
		return fail(rvSyscall1)
	case !validRing(t.tx) || !validRing(t.rx):
		return fail(rvInitFailed)
	}
	t.host = c.tapRequest(q, id)
	if h := c.cfg.Host; h != nil && h.CreateTap(t.host) != nil {
		return fail(rvSyscall2)
	}
	i := c.newTap(t)
	return &tapv2.TapCreateV3Reply{SwIfIndex: interface_types.InterfaceIndex(i.index)}
}

func (st *state) tapRequest(q *tapv2.TapCreateV3, id uint32) TapRequest {
	r := TapRequest{Name: fmt.Sprintf("tap%d", id), MAC: st.randomMAC(),
		Attach: q.TapFlags&tapv2.TAP_API_FLAG_ATTACH != 0, Persist: q.TapFlags&tapv2.TAP_API_FLAG_PERSIST != 0}
	if q.HostIfNameSet {
		r.Name = q.HostIfName
	}
	if q.HostNamespaceSet {
		r.Namespace = q.HostNamespace
	}
	if q.HostBridgeSet {
		r.Bridge = q.HostBridge
	}
	if q.HostMacAddrSet {
		r.MAC = q.HostMacAddr
	}
	if q.HostMtuSet {
		r.MTU = q.HostMtuSize
	}
	return r
}

func (st *state) newTap(t *tap) *iface {
	q := t.request
	hw := &hardware{devType: "virtio", linkUp: true, ethernet: true, mac: q.MacAddress, macReported: !q.UseRandomMac,
		queues: st.newQueues(int(q.NumRxQueues), interface_types.RX_MODE_API_POLLING)}
	name := fmt.Sprintf("tap%d", t.id)
	if q.TapFlags&tapv2.TAP_API_FLAG_TUN != 0 {
		hw.ethernet, hw.macReported, name = false, false, fmt.Sprintf("tun%d", t.id)
	} else if q.UseRandomMac {
		hw.mac = st.randomMAC()
	}
	t.tx, t.rx = ringSize(t.tx), ringSize(t.rx)
	hw.driver = driver{linkFollowsAdmin: true, setMTU: true, flags: true, detail: t, remove: removeTap, describe: func(*iface) []string {
		return []string{fmt.Sprintf("host %s/%s mtu %d rings %d/%d flags %d", t.host.Namespace, t.host.Name, t.host.MTU, t.rx, t.tx, t.flags)}
	}}
	i := st.create(&iface{name: name, tag: tapTag(q.Tag), hw: hw})
	st.taps[t.id] = i
	return i
}

func ringSize(n uint16) uint16 {
	if n == 0 {
		return 256
	}
	return n
}

func removeTap(st *state, i *iface) {
	t := i.hw.driver.detail.(*tap)
	delete(st.taps, t.id)
	if h := st.cfg.Host; h != nil && !t.host.Persist {
		h.DeleteTap(t.host) //nolint:errcheck // VPP does not look either
	}
}

func deleteTap(c *call, q *tapv2.TapDeleteV2) *tapv2.TapDeleteV2Reply {
	i := c.iface(q.SwIfIndex)
	if i == nil || i.hw.devType != "virtio" {
		return &tapv2.TapDeleteV2Reply{Retval: rvInvalidSwIfIndex}
	}
	c.delete(i.hw.owner)
	return &tapv2.TapDeleteV2Reply{}
}

func dumpTaps(c *call, q *tapv2.SwInterfaceTapV2Dump, send func(*tapv2.SwInterfaceTapV2Details)) {
	for _, i := range c.live() {
		t, ok := i.hw.driver.detail.(*tap)
		if !ok || i.sub != nil || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
			continue
		}
		send(&tapv2.SwInterfaceTapV2Details{
			SwIfIndex: i.index, ID: t.id, TxRingSz: t.tx, RxRingSz: t.rx, HostMtuSize: t.host.MTU, HostMacAddr: t.host.MAC,
			HostIP4Prefix: t.request.HostIP4Prefix, HostIP6Prefix: t.request.HostIP6Prefix, TapFlags: t.flags,
			DevName: i.name, HostIfName: t.host.Name, HostNamespace: t.host.Namespace, HostBridge: t.host.Bridge,
		})
	}
}

// tapTag returns the tag that VPP dumps for a TAP that was created with a tag: VPP stores the bytes without a terminator, so that a tag without
// its own zero byte is followed by arbitrary memory contents.
func tapTag(tag string) string {
	if tag == "" {
		return ""
	}
	if name, ok := strings.CutSuffix(tag, "\x00"); ok {
		return name
	}
	return tag + "\x04"
}
