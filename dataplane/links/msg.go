package links

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// Marks in the kernel. No other known program uses these numbers.
const (
	// protocol is the routing protocol number of our routes, neighbours and addresses.
	protocol = 201
	// groupNew is the group of a link that we have created but not yet tagged.
	groupNew = 0x636e7600
	// groupPooled is the group of the host end of a pooled VETH pair: the end keeps its name from the pool.
	groupPooled = 0x636e7601
	// groupDoomed is the group of links that will be removed together.
	groupDoomed = 0x636e7602
)

const (
	attrAddrProto    = 11 // IFA_PROTO, Linux 5.18
	attrVethPeer     = 1  // VETH_INFO_PEER
	loopbackIndex    = 1
	maxName          = unix.IFNAMSIZ - 1
	kernelIPv6Metric = 1024 // the metric of a route without a requested metric
)

// linkSpec is the content of a link message; zero fields are omitted.
type linkSpec struct {
	index int32
	name  string
	nsFD  int // -1: none
	mac   net.HardwareAddr
	mtu   uint32
	alias *string
	group *uint32
	up    bool
	down  bool
	noARP bool
	// promisc makes the device accept frames for all addresses.
	promisc bool
}

// setLink returns a change of an existing link. With an index and a name the link is renamed; with nsFD it moves first.
func setLink(s linkSpec) *netlink.Batch {
	b := &netlink.Batch{}
	b.Begin(unix.RTM_SETLINK, 0, s.header())
	s.addTo(b)
	return b
}

// header returns struct ifinfomsg.
func (s linkSpec) header() []byte {
	var flags, change uint32
	for _, f := range []struct {
		set bool
		bit uint32
	}{{s.up, unix.IFF_UP}, {s.noARP, unix.IFF_NOARP}, {s.promisc, unix.IFF_PROMISC}} {
		if f.set {
			flags, change = flags|f.bit, change|f.bit
		}
	}
	if s.down {
		change |= unix.IFF_UP
	}
	h := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(h[4:], uint32(s.index))
	binary.NativeEndian.PutUint32(h[8:], flags)
	binary.NativeEndian.PutUint32(h[12:], change)
	return h
}

// addTo adds the attributes of s.
func (s linkSpec) addTo(b *netlink.Batch) {
	if s.nsFD >= 0 {
		b.Uint32(unix.IFLA_NET_NS_FD, uint32(s.nsFD))
	}
	if s.name != "" {
		b.Text(unix.IFLA_IFNAME, s.name)
	}
	if len(s.mac) > 0 {
		b.Attr(unix.IFLA_ADDRESS, s.mac)
	}
	if s.mtu > 0 {
		b.Uint32(unix.IFLA_MTU, s.mtu)
	}
	if s.alias != nil {
		b.Attr(unix.IFLA_IFALIAS, []byte(*s.alias))
	}
	if s.group != nil {
		b.Uint32(unix.IFLA_GROUP, *s.group)
	}
}

// newLink returns the creation of a link of the given kind; peer, for a VETH, may be in another namespace.
func newLink(kind string, s linkSpec, peer *linkSpec) *netlink.Batch {
	b := &netlink.Batch{}
	b.Begin(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, s.header())
	s.addTo(b)
	b.Nest(unix.IFLA_LINKINFO, func() {
		b.Attr(unix.IFLA_INFO_KIND, []byte(kind))
		if peer == nil {
			return
		}
		b.Nest(unix.IFLA_INFO_DATA, func() {
			at := b.OpenNest(attrVethPeer)
			b.B = append(b.B, peer.header()...)
			peer.addTo(b)
			b.CloseNest(at)
		})
	})
	return b
}

func delLink(index int32) *netlink.Batch {
	b := &netlink.Batch{}
	b.DelLink(int(index))
	return b
}

// delGroup returns the removal of all links of a group in the namespace.
func delGroup(group uint32) *netlink.Batch {
	b := &netlink.Batch{}
	b.DelLink(0)
	b.Uint32(unix.IFLA_GROUP, group)
	return b
}

func newAddr(index int32, p netip.Prefix) *netlink.Batch {
	b := addrMsg(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, index, p)
	b.Uint8(attrAddrProto, protocol)
	return b
}

func delAddr(index int32, p netip.Prefix) *netlink.Batch {
	return addrMsg(unix.RTM_DELADDR, 0, index, p)
}

func addrMsg(typ, flags uint16, index int32, p netip.Prefix) *netlink.Batch {
	h := make([]byte, unix.SizeofIfAddrmsg)
	h[0], h[1] = netlink.FamilyOf(p.Addr()), uint8(p.Bits())
	if p.Addr().Is6() {
		h[2] = unix.IFA_F_NODAD // no other host is on the link, and a tentative address cannot be used
	}
	switch {
	case p.Addr().IsLinkLocalUnicast():
		h[3] = unix.RT_SCOPE_LINK
	case p.Addr().IsLoopback():
		h[3] = unix.RT_SCOPE_HOST
	}
	binary.NativeEndian.PutUint32(h[4:], uint32(index))
	b := &netlink.Batch{}
	b.Begin(typ, flags, h)
	b.Addr(unix.IFA_LOCAL, p.Addr())
	b.Addr(unix.IFA_ADDRESS, p.Addr())
	return b
}

// routeSpec is a route on one device.
type routeSpec struct {
	dst    netip.Prefix
	gw     netip.Addr // invalid: none
	metric uint32
	scope  uint8
	onlink bool
}

func newRoute(index int32, r routeSpec, flags int) *netlink.Batch {
	h := r.header()
	h[7] = unix.RTN_UNICAST
	if r.onlink {
		binary.NativeEndian.PutUint32(h[8:], unix.RTNH_F_ONLINK)
	}
	b := &netlink.Batch{}
	b.Begin(unix.RTM_NEWROUTE, uint16(unix.NLM_F_CREATE|flags), h)
	r.addTo(b, index)
	if r.gw.IsValid() {
		b.Addr(unix.RTA_GATEWAY, r.gw)
	}
	return b
}

func delRoute(index int32, r routeSpec) *netlink.Batch {
	r.scope = unix.RT_SCOPE_NOWHERE
	b := &netlink.Batch{}
	b.Begin(unix.RTM_DELROUTE, 0, r.header())
	r.addTo(b, index)
	return b
}

// header returns struct rtmsg.
func (r routeSpec) header() []byte {
	h := make([]byte, unix.SizeofRtMsg)
	h[0], h[1] = netlink.FamilyOf(r.dst.Addr()), uint8(r.dst.Bits())
	h[4], h[5], h[6] = unix.RT_TABLE_MAIN, protocol, r.scope
	return h
}

func (r routeSpec) addTo(b *netlink.Batch, index int32) {
	if r.dst.Bits() > 0 {
		b.Addr(unix.RTA_DST, r.dst.Masked().Addr())
	}
	b.Uint32(unix.RTA_OIF, uint32(index))
	if r.metric > 0 {
		b.Uint32(unix.RTA_PRIORITY, r.metric)
	}
}

// getRoutes requests the routes in the main table of one protocol through a device, where 0 is any protocol or device. Kernels before 4.20
// return all routes.
func getRoutes(family uint8, index int32, proto uint8) *netlink.Batch {
	h := make([]byte, unix.SizeofRtMsg)
	h[0], h[4], h[5] = family, unix.RT_TABLE_MAIN, proto
	b := &netlink.Batch{}
	b.Begin(unix.RTM_GETROUTE, 0, h)
	if index != 0 {
		b.Uint32(unix.RTA_OIF, uint32(index))
	}
	return b
}

func newNeigh(index int32, ip netip.Addr, mac net.HardwareAddr) *netlink.Batch {
	b := &netlink.Batch{}
	b.NewNeighbour(int(index), ip, mac, protocol)
	return b
}

func delNeigh(index int32, ip netip.Addr) *netlink.Batch {
	b := &netlink.Batch{}
	b.DelNeighbour(int(index), ip)
	return b
}
