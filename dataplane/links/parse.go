package links

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// linkInfo is what we read of a link.
type linkInfo struct {
	index  int32
	parent int32 // of a VETH: the peer's index, in the peer's namespace
	flags  uint32
	name   string
	alias  string
	kind   string
	mac    net.HardwareAddr
	mtu    uint32
	group  uint32
	master uint32 // the index of the bridge or bond that it is part of; 0: none

	// Of a TUN or TAP that can have several queues, how many are held open by processes.
	multiQueue bool
	queues     uint32
}

type addrInfo struct {
	index  int32
	prefix netip.Prefix
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

// listTries is how often is listed what changes all the time.
const listTries = 20

// listing collects what a dump answers. The kernel gives a long one in parts, between which it may change.
func listing[T any](s *sock, req *nl.NetlinkRequest, parse func(payload []byte) (T, bool, error)) ([]T, error) {
	for range listTries {
		var out []T
		err := s.get(req, func(payload []byte) error {
			v, keep, err := parse(payload)
			if err == nil && keep {
				out = append(out, v)
			}
			return err
		})
		if err != nil || !s.torn {
			return out, err
		}
	}
	return nil, fmt.Errorf("%w, %d times in a row", errTorn, listTries)
}

func (s *sock) links() ([]linkInfo, error) { return listing(s, getLink(""), parseLink) }

func (s *sock) addrs() ([]addrInfo, error) { return listing(s, getAddrs(), parseAddr) }

func (s *sock) neighs() ([]neighInfo, error) { return listing(s, getNeighs(), parseNeigh) }

func (s *sock) routes(proto uint8) ([]routeInfo, error) {
	var out []routeInfo
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := listing(s, getRoutes(family, proto), parseRoute)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EAFNOSUPPORT) {
			return nil, err
		}
		out = append(out, routes...)
	}
	return out, nil
}

// link finds a link by its name.
func (s *sock) link(name string) (linkInfo, error) {
	found, err := listing(s, getLink(name), parseLink)
	if errors.Is(err, unix.ENODEV) || err == nil && len(found) == 0 {
		return linkInfo{}, errNoLink
	}
	if err != nil {
		return linkInfo{}, err
	}
	return found[0], nil
}

// attributes splits a message into its fixed header of size bytes and its attributes.
func attributes(payload []byte, size int, each func(typ uint16, value []byte)) error {
	if !netlink.Attributes(payload, size, each) {
		return fmt.Errorf("netlink: message of %d bytes, want %d at least", len(payload), size)
	}
	return nil
}

func parseLink(payload []byte) (linkInfo, bool, error) {
	var l linkInfo
	err := attributes(payload, unix.SizeofIfInfomsg, func(typ uint16, v []byte) {
		switch typ {
		case unix.IFLA_IFNAME:
			l.name = netlink.Text(v)
		case unix.IFLA_IFALIAS:
			l.alias = netlink.Text(v)
		case unix.IFLA_ADDRESS:
			l.mac = append(net.HardwareAddr(nil), v...)
		case unix.IFLA_MTU:
			l.mtu = netlink.Uint32(v)
		case unix.IFLA_LINK:
			l.parent = int32(netlink.Uint32(v))
		case unix.IFLA_GROUP:
			l.group = netlink.Uint32(v)
		case unix.IFLA_MASTER:
			l.master = netlink.Uint32(v)
		case unix.IFLA_LINKINFO:
			netlink.Attributes(v, 0, func(typ uint16, v []byte) {
				switch {
				case typ == nl.IFLA_INFO_KIND: // comes before the data
					l.kind = netlink.Text(v)
				case typ == nl.IFLA_INFO_DATA && l.kind == "tun":
					l.addQueues(v)
				}
			})
		}
	})
	if err == nil {
		l.index = int32(netlink.Uint32(payload[4:]))
		l.flags = netlink.Uint32(payload[8:])
	}
	return l, true, err
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

func parseAddr(payload []byte) (addrInfo, bool, error) {
	var (
		a              addrInfo
		local, address []byte
	)
	err := attributes(payload, unix.SizeofIfAddrmsg, func(typ uint16, v []byte) {
		switch typ {
		case unix.IFA_LOCAL:
			local = v
		case unix.IFA_ADDRESS:
			address = v
		case attrAddrProto:
			a.ours = len(v) > 0 && v[0] == Protocol
		}
	})
	if err != nil {
		return a, false, err
	}
	if local == nil {
		local = address
	}
	ip, ok := netip.AddrFromSlice(local)
	a.index = int32(netlink.Uint32(payload[4:]))
	a.prefix = netip.PrefixFrom(ip, int(payload[1]))
	return a, ok, nil
}

func parseRoute(payload []byte) (routeInfo, bool, error) {
	var (
		r   routeInfo
		dst netip.Addr
	)
	err := attributes(payload, unix.SizeofRtMsg, func(typ uint16, v []byte) {
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
	if err != nil {
		return r, false, err
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
	return r, payload[4] == unix.RT_TABLE_MAIN && payload[7] == unix.RTN_UNICAST, nil
}

func parseNeigh(payload []byte) (neighInfo, bool, error) {
	var n neighInfo
	err := attributes(payload, 12, func(typ uint16, v []byte) {
		switch typ {
		case unix.NDA_DST:
			n.ip, _ = netip.AddrFromSlice(v)
		case unix.NDA_LLADDR:
			n.mac = append(net.HardwareAddr(nil), v...)
		case attrNeighProto:
			n.ours = len(v) > 0 && v[0] == Protocol
		}
	})
	if err != nil {
		return n, false, err
	}
	n.index = int32(netlink.Uint32(payload[4:]))
	permanent := binary.NativeEndian.Uint16(payload[8:])&unix.NUD_PERMANENT != 0
	return n, permanent && n.ip.IsValid(), nil
}
