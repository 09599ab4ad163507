package links

import (
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// linkInfo holds the fields of a link that we use.
type linkInfo struct {
	index  int32
	parent int32 // of a VETH: index of the peer, in the peer's namespace
	flags  uint32
	name   string
	alias  string
	kind   string
	mac    net.HardwareAddr
	mtu    uint32
	group  uint32
	master uint32 // index of its bridge or bond; 0: none

	// For a TUN or TAP that can have several queues, queues is the number that processes hold open.
	multiQueue bool
	queues     uint32
}

type addrInfo struct {
	index  int32
	prefix netip.Prefix
	flags  uint32 // IFA_F_…
	ours   bool
}

type routeInfo struct {
	index int32 // 0: it has several next hops
	hop   int32 // the device of the first of them
	proto uint8
	spec  routeSpec
}

type neighInfo struct {
	index int32
	ip    netip.Addr
	mac   net.HardwareAddr
	ours  bool
}

func (s *sock) links() ([]linkInfo, error) {
	var b netlink.Batch
	b.GetLinks()
	return listing(s, &b, parseLink)
}

// addrs returns the addresses of a device, or of all devices if index is 0.
func (s *sock) addrs(index int32) ([]addrInfo, error) {
	var b netlink.Batch
	b.GetAddresses(int(index))
	list, err := listing(s, &b, parseAddr)
	if errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	return list, err
}

// neighs returns the neighbours at a device, or at all devices if index is 0.
func (s *sock) neighs(index int32) ([]neighInfo, error) {
	var b netlink.Batch
	b.GetNeighbours(unix.AF_UNSPEC, int(index))
	return listing(s, &b, parseNeigh)
}

// routes returns the routes of one protocol through a device. With proto 0 it returns those of all protocols, with index 0 those through all
// devices.
func (s *sock) routes(index int32, proto uint8) ([]routeInfo, error) {
	var out []routeInfo
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		routes, err := listing(s, getRoutes(family, index, proto), parseRoute)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.ENODEV) {
			return nil, err
		}
		out = append(out, routes...)
	}
	return out, nil
}

// link looks up a link by its name.
func (s *sock) link(name string) (linkInfo, error) {
	var b netlink.Batch
	b.GetLink(name)
	l, found, err := one(s, &b, parseLink)
	if errors.Is(err, unix.ENODEV) || err == nil && !found {
		return linkInfo{}, errNoLink
	}
	return l, err
}

func parseLink(payload []byte) (linkInfo, bool) {
	l, ok := netlink.ParseLink(payload)
	return infoOf(l), ok
}

func infoOf(l netlink.Link) linkInfo {
	out := linkInfo{
		index: int32(l.Index), parent: l.Parent, flags: l.Flags, name: l.Name, alias: l.Alias, kind: l.Kind, mac: l.MAC, mtu: uint32(l.MTU),
		group: l.Group, master: l.Master,
	}
	if l.Kind == "tun" {
		out.addQueues(l.Data)
	}
	return out
}

// addQueues counts the queues of a TUN or TAP.
func (l *linkInfo) addQueues(data []byte) {
	netlink.Attributes(data, 0, func(typ uint16, v []byte) {
		if typ == unix.IFLA_TUN_NUM_QUEUES || typ == unix.IFLA_TUN_NUM_DISABLED_QUEUES {
			l.multiQueue = true
			l.queues += netlink.Uint32(v)
		}
	})
}

func parseAddr(payload []byte) (addrInfo, bool) {
	a, ok := netlink.ParseAddress(payload)
	return addrInfoOf(a), ok
}

func addrInfoOf(a netlink.Address) addrInfo {
	return addrInfo{index: int32(a.Index), prefix: a.Prefix, flags: a.Flags, ours: a.Protocol == protocol}
}

func parseRoute(payload []byte) (routeInfo, bool) {
	var (
		r   routeInfo
		dst netip.Addr
	)
	ok := netlink.Attributes(payload, unix.SizeofRtMsg, func(typ uint16, v []byte) {
		switch typ {
		case unix.RTA_DST:
			dst, _ = netip.AddrFromSlice(v)
		case unix.RTA_GATEWAY:
			r.spec.gw, _ = netip.AddrFromSlice(v)
		case unix.RTA_OIF:
			r.index = int32(netlink.Uint32(v))
		case unix.RTA_MULTIPATH: // of struct rtnexthop
			if len(v) >= unix.SizeofRtNexthop {
				r.hop = int32(netlink.Uint32(v[4:]))
			}
		case unix.RTA_PRIORITY:
			r.spec.metric = netlink.Uint32(v)
		}
	})
	if !ok {
		return r, false
	}
	if !dst.IsValid() {
		dst = netip.IPv4Unspecified()
		if payload[0] == unix.AF_INET6 {
			dst = netip.IPv6Unspecified()
		}
	}
	r.spec.dst = netip.PrefixFrom(dst, int(payload[1]))
	r.proto = payload[5]
	r.spec.scope = payload[6]
	r.spec.onlink = netlink.Uint32(payload[8:])&unix.RTNH_F_ONLINK != 0
	return r, payload[4] == unix.RT_TABLE_MAIN && payload[7] == unix.RTN_UNICAST
}

func parseNeigh(payload []byte) (neighInfo, bool) {
	n, ok := netlink.ParseNeighbour(payload)
	return neighInfo{index: int32(n.Index), ip: n.Addr, mac: n.MAC, ours: n.Protocol == protocol},
		ok && n.State&unix.NUD_PERMANENT != 0 && n.Addr.IsValid()
}
