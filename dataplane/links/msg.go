package links

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Marks in the kernel. The numbers are in no other program's use.
const (
	// Protocol is the routing protocol number of our routes, neighbours and addresses.
	Protocol = 201
	// GroupNew is the group of a link that we have made but not yet tagged.
	GroupNew = 0x636e7600
	// GroupPooled is the group of the host end of a pooled VETH pair: it keeps the name the pool gave it.
	GroupPooled = 0x636e7601
	// GroupDoomed is the group of links that are about to be removed at once.
	GroupDoomed = 0x636e7602
)

// Attributes which the libraries do not know.
const (
	attrExtMask      = unix.IFLA_EXT_MASK
	attrAddrProto    = 11 // IFA_PROTO, Linux 5.18
	attrNeighProto   = 12 // NDA_PROTOCOL, Linux 5.0
	filterSkipStats  = 8  // RTEXT_FILTER_SKIP_STATS
	loopbackIndex    = 1
	maxName          = unix.IFNAMSIZ - 1
	kernelIPv6Metric = 1024 // what a route gets that asks for none
)

// linkSpec is what a link message says; zero fields are left out.
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
}

// setLink changes an existing link. With an index and a name the link is renamed; with nsFD it moves first.
func setLink(s linkSpec) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, 0)
	s.addTo(req, req.AddData)
	return req
}

// addTo puts the header and the attributes of s; the header of a nested peer goes with add.
func (s linkSpec) addTo(req *nl.NetlinkRequest, add func(nl.NetlinkRequestData)) {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = s.index
	if s.up || s.down {
		msg.Change |= unix.IFF_UP
	}
	if s.up {
		msg.Flags |= unix.IFF_UP
	}
	if s.noARP {
		msg.Change |= unix.IFF_NOARP
		msg.Flags |= unix.IFF_NOARP
	}
	add(msg)
	if s.nsFD >= 0 {
		add(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(s.nsFD))))
	}
	if s.name != "" {
		add(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(s.name)))
	}
	if len(s.mac) > 0 {
		add(nl.NewRtAttr(unix.IFLA_ADDRESS, s.mac))
	}
	if s.mtu > 0 {
		add(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(s.mtu)))
	}
	if s.alias != nil {
		add(nl.NewRtAttr(unix.IFLA_IFALIAS, []byte(*s.alias)))
	}
	if s.group != nil {
		add(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(*s.group)))
	}
}

// newLink makes a link of the given kind; peer, for a VETH, may be in another namespace.
func newLink(kind string, s linkSpec, peer *linkSpec) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	s.addTo(req, req.AddData)
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated(kind))
	if peer != nil {
		data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
		p := data.AddRtAttr(nl.VETH_INFO_PEER, nil)
		peer.addTo(req, func(d nl.NetlinkRequestData) { p.AddChild(d) })
	}
	req.AddData(info)
	return req
}

func delLink(index int32) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_DELLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = index
	req.AddData(msg)
	return req
}

// delGroup removes all links of a group of the namespace.
func delGroup(group uint32) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_DELLINK, 0)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(group)))
	return req
}

// getLink asks for one link, or for all when name is empty.
func getLink(name string) *nl.NetlinkRequest {
	flags := 0
	if name == "" {
		flags = unix.NLM_F_DUMP
	}
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, flags)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(attrExtMask, nl.Uint32Attr(filterSkipStats)))
	if name != "" {
		req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	}
	return req
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func newAddr(index int32, p netip.Prefix) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	addAddr(req, index, p)
	req.AddData(nl.NewRtAttr(attrAddrProto, []byte{Protocol}))
	return req
}

func delAddr(index int32, p netip.Prefix) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_DELADDR, 0)
	addAddr(req, index, p)
	return req
}

func addAddr(req *nl.NetlinkRequest, index int32, p netip.Prefix) {
	msg := nl.NewIfAddrmsg(familyOf(p.Addr()))
	msg.Index = uint32(index)
	msg.Prefixlen = uint8(p.Bits())
	if p.Addr().Is6() {
		msg.IfAddrmsg.Flags = unix.IFA_F_NODAD // there is nothing else on the link, and a tentative address cannot be used
	}
	if p.Addr().IsLoopback() {
		msg.Scope = unix.RT_SCOPE_HOST
	}
	if p.Addr().IsLinkLocalUnicast() {
		msg.Scope = unix.RT_SCOPE_LINK
	}
	req.AddData(msg)
	raw := p.Addr().AsSlice()
	req.AddData(nl.NewRtAttr(unix.IFA_LOCAL, raw))
	req.AddData(nl.NewRtAttr(unix.IFA_ADDRESS, raw))
}

func getAddrs() *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
	req.AddData(nl.NewIfAddrmsg(unix.AF_UNSPEC))
	return req
}

// routeSpec is a route on one device.
type routeSpec struct {
	dst    netip.Prefix
	gw     netip.Addr // invalid: none
	metric uint32
	scope  uint8
	onlink bool
}

func newRoute(index int32, r routeSpec, flags int) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|flags)
	msg := routeMsg(r)
	msg.Protocol = Protocol
	msg.Type = unix.RTN_UNICAST
	if r.onlink {
		msg.Flags = unix.RTNH_F_ONLINK
	}
	req.AddData(msg)
	addRoute(req, index, r)
	if r.gw.IsValid() {
		req.AddData(nl.NewRtAttr(unix.RTA_GATEWAY, r.gw.AsSlice()))
	}
	return req
}

func delRoute(index int32, r routeSpec) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_DELROUTE, 0)
	msg := routeMsg(r)
	msg.Scope = unix.RT_SCOPE_NOWHERE
	msg.Protocol = Protocol
	req.AddData(msg)
	addRoute(req, index, r)
	return req
}

func routeMsg(r routeSpec) *nl.RtMsg {
	msg := &nl.RtMsg{}
	msg.Family = uint8(familyOf(r.dst.Addr()))
	msg.Dst_len = uint8(r.dst.Bits())
	msg.Table = unix.RT_TABLE_MAIN
	msg.Scope = r.scope
	return msg
}

func addRoute(req *nl.NetlinkRequest, index int32, r routeSpec) {
	if r.dst.Bits() > 0 {
		req.AddData(nl.NewRtAttr(unix.RTA_DST, r.dst.Masked().Addr().AsSlice()))
	}
	req.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(index))))
	if r.metric > 0 {
		req.AddData(nl.NewRtAttr(unix.RTA_PRIORITY, nl.Uint32Attr(r.metric)))
	}
}

// getRoutes asks for the routes of one protocol, or of all when proto is 0. Kernels before 4.20 answer with all.
func getRoutes(family int, proto uint8) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
	msg := &nl.RtMsg{}
	msg.Family = uint8(family)
	msg.Protocol = proto
	req.AddData(msg)
	return req
}

// neighMsg is struct ndmsg.
type neighMsg struct {
	family uint8
	index  int32
	state  uint16
	flags  uint8
	typ    uint8
}

func (m *neighMsg) Len() int { return 12 }

func (m *neighMsg) Serialize() []byte {
	b := make([]byte, 12)
	b[0] = m.family
	nl.NativeEndian().PutUint32(b[4:], uint32(m.index))
	nl.NativeEndian().PutUint16(b[8:], m.state)
	b[10], b[11] = m.flags, m.typ
	return b
}

func newNeigh(index int32, ip netip.Addr, mac net.HardwareAddr) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	req.AddData(&neighMsg{family: uint8(familyOf(ip)), index: index, state: unix.NUD_PERMANENT})
	req.AddData(nl.NewRtAttr(unix.NDA_DST, ip.AsSlice()))
	req.AddData(nl.NewRtAttr(unix.NDA_LLADDR, mac))
	req.AddData(nl.NewRtAttr(attrNeighProto, []byte{Protocol}))
	return req
}

func delNeigh(index int32, ip netip.Addr) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_DELNEIGH, 0)
	req.AddData(&neighMsg{family: uint8(familyOf(ip)), index: index})
	req.AddData(nl.NewRtAttr(unix.NDA_DST, ip.AsSlice()))
	return req
}

func getNeighs() *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
	req.AddData(&neighMsg{family: unix.AF_UNSPEC})
	return req
}
