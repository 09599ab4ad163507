package contivconf

import (
	"fmt"
	"net/netip"
)

// How contivCIDR is split, in host bits, so that the constants are valid for both families. The example is 10.128.0.0/14.
const (
	splitMinBits     = 18 // the minimum size of contivCIDR
	splitPodBits     = 16 // pods: block 0 of this size, 10.128.0.0/16; VPP–host links: block 1, 10.129.0.0/16
	splitOneNodeBits = 7  // a node's slice of either, /25
	splitSharedBits  = 9  // node interconnect: block 256 of this size, 10.130.0.0/23; VXLAN: block 257, 10.130.2.0/23
	splitSharedBlock = 256
)

func splitContivCIDR(cidr netip.Prefix, f *FamilyIPAM) error {
	size := cidr.Addr().BitLen()
	if size-cidr.Bits() < splitMinBits {
		return fmt.Errorf("%s is too small to be split; its prefix length must be %d or less", cidr, size-splitMinBits)
	}
	f.PodSubnetCIDR = block(cidr, splitPodBits, 0)
	f.PodSubnetOneNodePrefixLen = size - splitOneNodeBits
	f.VPPHostSubnetCIDR = block(cidr, splitPodBits, 1)
	f.VPPHostSubnetOneNodePrefixLen = size - splitOneNodeBits
	f.NodeInterconnectCIDR = block(cidr, splitSharedBits, splitSharedBlock)
	f.VxlanCIDR = block(cidr, splitSharedBits, splitSharedBlock+1)
	return nil
}

// block returns block number n, with 2^hostBits addresses, of cidr. The caller has checked that n<<hostBits fits into 32 bits and into
// cidr.
func block(cidr netip.Prefix, hostBits int, n uint32) netip.Prefix {
	bytes := cidr.Addr().AsSlice()
	offset := n << hostBits
	for i := range 4 {
		bytes[len(bytes)-1-i] |= byte(offset >> (8 * i))
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(addr, len(bytes)*8-hostBits)
}
