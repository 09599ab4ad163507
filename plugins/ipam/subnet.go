package ipam

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/contivconf"
)

// Host numbers inside a node's slices.
const (
	hostGateway  = 1 // of a pod slice
	hostFirstPod = 2
	hostVPP      = 1 // of a VPP–host link
	hostLinux    = 2
	// From the end of a pod slice: size-1 is the broadcast address, size-2 the NAT loopback, size-3 the last pod.
	endNATLoopback = 2
)

// errNodeID0 is returned for node ID 0, which no node has.
var errNodeID0 = errors.New("node ID 0 is not allocated to any node")

// subnets computes the networks and addresses of one address family; it is pure.
type subnets struct {
	conf contivconf.FamilyIPAM
}

// slice returns the part of cidr that belongs to the node: part number nodeID, with prefix length oneNode. The ID that is one larger than
// the last number gets part 0.
func slice(cidr netip.Prefix, oneNode int, nodeID uint32, option string) (netip.Prefix, error) {
	if nodeID == 0 {
		return netip.Prefix{}, errNodeID0
	}
	number := uint64(nodeID)
	if width := oneNode - cidr.Bits(); width < 32 {
		count := uint64(1) << width
		if number > count {
			return netip.Prefix{}, fmt.Errorf("ipamConfig.%sOneNodePrefixLen: %sCIDR %s has %d slices of length %d, too few for "+
				"node ID %d; use a longer length or a larger network", option, option, cidr, count, oneNode, nodeID)
		}
		number %= count
	}
	addr := add(cidr.Masked().Addr(), shift(u128{lo: number}, cidr.Addr().BitLen()-oneNode))
	return netip.PrefixFrom(addr, oneNode), nil
}

// host returns host number n of a network that all nodes share.
func host(cidr netip.Prefix, n uint64, nodeID uint32, option string) (netip.Prefix, error) {
	if nodeID == 0 {
		return netip.Prefix{}, errNodeID0
	}
	if hostBits := cidr.Addr().BitLen() - cidr.Bits(); hostBits < 64 && n > (uint64(1)<<hostBits)-2 {
		return netip.Prefix{}, fmt.Errorf("ipamConfig.%s: %s is too small for node ID %d; use a shorter prefix", option, cidr, nodeID)
	}
	return netip.PrefixFrom(add(cidr.Masked().Addr(), u128{lo: n}), cidr.Bits()), nil
}

func (s subnets) podSubnet(nodeID uint32) (PodSubnet, error) {
	p, err := slice(s.conf.PodSubnetCIDR, s.conf.PodSubnetOneNodePrefixLen, nodeID, "podSubnet")
	if err != nil {
		return PodSubnet{}, err
	}
	return PodSubnet{
		Subnet:      p,
		Gateway:     add(p.Addr(), u128{lo: hostGateway}),
		NATLoopback: sub(add(p.Addr(), shift(u128{lo: 1}, p.Addr().BitLen()-p.Bits())), endNATLoopback),
	}, nil
}

func (s subnets) hostLink(nodeID uint32) (HostLink, error) {
	p, err := slice(s.conf.VPPHostSubnetCIDR, s.conf.VPPHostSubnetOneNodePrefixLen, nodeID, "vppHostSubnet")
	if err != nil {
		return HostLink{}, err
	}
	return HostLink{
		Subnet: p,
		VPP:    netip.PrefixFrom(add(p.Addr(), u128{lo: hostVPP}), p.Bits()),
		Host:   netip.PrefixFrom(add(p.Addr(), u128{lo: hostLinux}), p.Bits()),
	}, nil
}

func (s subnets) vxlanIP(nodeID uint32) (netip.Prefix, error) {
	return host(s.conf.VxlanCIDR, uint64(nodeID), nodeID, "vxlanCIDR")
}

// nodeIP returns the interconnect address, increased by one for each excluded address that is not above it.
func (s subnets) nodeIP(nodeID uint32, excluded ...netip.Addr) (netip.Prefix, error) {
	cidr := s.conf.NodeInterconnectCIDR
	n := uint64(nodeID)
	var offsets []uint64
	for _, e := range excluded {
		if cidr.Contains(e) {
			if d := diff(e, cidr.Masked().Addr()); d.hi == 0 {
				offsets = append(offsets, d.lo)
			}
		}
	}
	slices.Sort(offsets)
	for _, o := range slices.Compact(offsets) {
		if o <= n {
			n++
		}
	}
	return host(cidr, n, nodeID, "nodeInterconnectCIDR")
}

// nodeIDOf is the inverse of podSubnet.
func (s subnets) nodeIDOf(ip netip.Addr) (uint32, bool) {
	cidr := s.conf.PodSubnetCIDR
	if !cidr.Contains(ip) {
		return 0, false
	}
	number := unshift(diff(ip, cidr.Masked().Addr()), cidr.Addr().BitLen()-s.conf.PodSubnetOneNodePrefixLen)
	if width := s.conf.PodSubnetOneNodePrefixLen - cidr.Bits(); number == (u128{}) && width < 32 {
		return uint32(1) << width, true
	}
	if number.hi != 0 || number.lo == 0 || number.lo>>32 != 0 {
		return 0, false
	}
	return uint32(number.lo), true
}

// u128 is an unsigned number of 128 bits, enough for any address.
type u128 struct{ hi, lo uint64 }

func toU128(a netip.Addr) u128 {
	b := a.As16() // an IPv4 address has the fixed prefix ::ffff:0:0, which cancels out in differences
	return u128{be64(b[:8]), be64(b[8:])}
}

func be64(b []byte) (v uint64) {
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// add returns the address a + n; the caller has checked that it is inside a's network.
func add(a netip.Addr, n u128) netip.Addr {
	base := toU128(a)
	lo, carry := bits.Add64(base.lo, n.lo, 0)
	hi, _ := bits.Add64(base.hi, n.hi, carry)
	return fromU128(u128{hi, lo}, a.Is4())
}

// sub returns the address a - n.
func sub(a netip.Addr, n uint64) netip.Addr {
	base := toU128(a)
	lo, borrow := bits.Sub64(base.lo, n, 0)
	return fromU128(u128{base.hi - borrow, lo}, a.Is4())
}

// diff returns a - b; b must not be above a.
func diff(a, b netip.Addr) u128 {
	x, y := toU128(a), toU128(b)
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	hi, _ := bits.Sub64(x.hi, y.hi, borrow)
	return u128{hi, lo}
}

func fromU128(v u128, v4 bool) netip.Addr {
	if v4 {
		return netip.AddrFrom4([4]byte{byte(v.lo >> 24), byte(v.lo >> 16), byte(v.lo >> 8), byte(v.lo)})
	}
	var b [16]byte
	for i := range 8 {
		b[7-i] = byte(v.hi >> (8 * i))
		b[15-i] = byte(v.lo >> (8 * i))
	}
	return netip.AddrFrom16(b)
}

// shift returns v << n.
func shift(v u128, n int) u128 {
	if n >= 64 {
		return u128{hi: v.lo << (n - 64)}
	}
	return u128{hi: v.hi<<n | v.lo>>(64-n), lo: v.lo << n}
}

// unshift returns v >> n.
func unshift(v u128, n int) u128 {
	if n >= 64 {
		return u128{lo: v.hi >> (n - 64)}
	}
	return u128{hi: v.hi >> n, lo: v.lo>>n | v.hi<<(64-n)}
}
