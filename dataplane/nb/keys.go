package nb

import (
	"net/netip"
	"path"
	"strconv"
	"strings"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
)

// keyBuf has room for nearly every key, so that a key is built without an
// allocation before the conversion to a string.
type keyBuf [160]byte

// VppInterfaceKey returns the key of a VPP interface.
func VppInterfaceKey(name string) string {
	return clean(VppInterfacePrefix + name)
}

// BridgeDomainKey returns the key of a bridge domain.
func BridgeDomainKey(name string) string {
	return clean(BridgeDomainPrefix + name)
}

// FIBKey returns the key of an L2 FIB entry.
func FIBKey(bd, mac string) string {
	return clean(FIBPrefix + bd + "/mac/" + mac)
}

// XConnectKey returns the key of a cross-connect, named by its receiving interface.
func XConnectKey(rx string) string {
	return clean(XConnectPrefix + rx)
}

// ARPKey returns the key of a neighbour of a VPP interface.
func ARPKey(ifName, ip string) string {
	return clean(ARPPrefix + ifName + "/" + ip)
}

// RouteKey returns the key of a VPP route. Host bits of the destination are
// cleared; a destination that cannot be parsed is used unchanged. The gateway
// is never changed.
func RouteKey(r *vpp_l3.Route) string {
	var buf keyBuf
	b := appendRouteHead(buf[:0], r.GetOutgoingInterface(), r.GetVrfId())
	b = appendNetwork(b, r.GetDstNetwork())
	if gw := r.GetNextHopAddr(); gw != "" {
		b = append(b, "/gw/"...)
		b = append(b, gw...)
	}
	return cleanBytes(b)
}

// RouteKeyFor returns the key of a VPP route given by its parts. dst must be
// valid; outIf may be empty and gw invalid if the route has none.
func RouteKeyFor(outIf string, vrf uint32, dst netip.Prefix, gw netip.Addr) string {
	var buf keyBuf
	b := appendRouteHead(buf[:0], outIf, vrf)
	b = dst.Masked().AppendTo(b)
	if gw.IsValid() {
		b = append(b, "/gw/"...)
		b = gw.AppendTo(b)
	}
	return cleanBytes(b)
}

// RouteVrfPrefix returns the common prefix of the keys of the routes of one
// table that have no outgoing interface.
func RouteVrfPrefix(vrf uint32) string {
	var buf keyBuf
	b := append(buf[:0], RoutePrefix+"vrf/"...)
	b = strconv.AppendUint(b, uint64(vrf), 10)
	return string(append(b, '/'))
}

func appendRouteHead(b []byte, outIf string, vrf uint32) []byte {
	b = append(b, RoutePrefix...)
	if outIf != "" {
		b = append(b, "if/"...)
		b = append(b, outIf...)
		b = append(b, '/')
	}
	b = append(b, "vrf/"...)
	b = strconv.AppendUint(b, uint64(vrf), 10)
	return append(b, "/dst/"...)
}

// VrfTableKeyFor returns the key of a VPP table for callers that have an address family and not the model's enumeration.
func VrfTableKeyFor(id uint32, ipv6 bool) string {
	if ipv6 {
		return VrfTableKey(id, vpp_l3.VrfTable_IPV6)
	}
	return VrfTableKey(id, vpp_l3.VrfTable_IPV4)
}

// VrfTableKey returns the key of a VPP table.
func VrfTableKey(id uint32, proto vpp_l3.VrfTable_Protocol) string {
	var buf keyBuf
	b := append(buf[:0], VrfTablePrefix+"id/"...)
	b = strconv.AppendUint(b, uint64(id), 10)
	b = append(b, "/protocol/"...)
	switch proto {
	case vpp_l3.VrfTable_IPV4:
		b = append(b, "IPV4"...)
	case vpp_l3.VrfTable_IPV6:
		b = append(b, "IPV6"...)
	default:
		b = strconv.AppendInt(b, int64(proto), 10)
	}
	return string(b)
}

// DNat44Key returns the key of a group of destination-NAT mappings.
func DNat44Key(label string) string {
	return clean(DNat44Prefix + label)
}

// Nat44InterfaceKey returns the key of an interface's NAT44 role.
func Nat44InterfaceKey(name string) string {
	return clean(Nat44InterfacePrefix + name)
}

// Nat44AddressPoolKey returns the key of a NAT44 pool: its name or, if it has
// none, its table and addresses.
func Nat44AddressPoolKey(p *vpp_nat.Nat44AddressPool) string {
	if name := p.GetName(); name != "" {
		return clean(Nat44AddressPoolPrefix + name)
	}
	var buf keyBuf
	b := append(buf[:0], Nat44AddressPoolPrefix+"vrf/"...)
	b = strconv.AppendUint(b, uint64(p.GetVrfId()), 10)
	b = append(b, "/address/"...)
	b = append(b, p.GetFirstIp()...)
	if last := p.GetLastIp(); last != "" && last != p.GetFirstIp() {
		b = append(b, '-')
		b = append(b, last...)
	}
	return cleanBytes(b)
}

// ACLKey returns the key of an ACL.
func ACLKey(name string) string {
	return clean(ACLPrefix + name)
}

// LinuxInterfaceKey returns the key of a Linux interface.
func LinuxInterfaceKey(name string) string {
	return clean(LinuxInterfacePrefix + name)
}

// LinuxARPKey returns the key of a neighbour of a Linux interface.
func LinuxARPKey(ifName, ip string) string {
	return clean(LinuxARPPrefix + ifName + "/" + ip)
}

// LinuxRouteKey returns the key of a Linux route. The destination is normalised
// as in RouteKey.
func LinuxRouteKey(dst, outIf string) string {
	var buf keyBuf
	b := append(buf[:0], LinuxRoutePrefix...)
	b = appendNetwork(b, dst)
	b = append(b, '/')
	b = append(b, outIf...)
	return cleanBytes(b)
}

// appendNetwork appends the network of dst as "ip/masklen", or dst itself if it
// is not an address with a mask.
func appendNetwork(b []byte, dst string) []byte {
	p, err := netip.ParsePrefix(dst)
	if err != nil {
		return append(b, dst...)
	}
	return p.Masked().AppendTo(b)
}

// clean does the same to a key as path.Join does to the parts of a path.
func clean(key string) string {
	if isClean(key) {
		return key
	}
	return path.Clean(key)
}

func cleanBytes(b []byte) string {
	if isClean(b) {
		return string(b)
	}
	return path.Clean(string(b))
}

// isClean reports whether path.Clean would certainly leave a key unchanged.
// Keys start with a letter, so only a slash that is followed by nothing, a
// slash or a dot needs to be found.
func isClean[T string | []byte](key T) bool {
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}
		if i+1 == len(key) || key[i+1] == '/' || key[i+1] == '.' {
			return false
		}
	}
	return true
}

// orInvalid replaces an empty name, so that a key with an empty part does not
// look like another key.
func orInvalid(name string) string {
	if name == "" {
		return invalidPart
	}
	return name
}

// isUnder reports whether key is prefix followed by a non-empty name.
func isUnder(key, prefix string) bool {
	return len(key) > len(prefix) && strings.HasPrefix(key, prefix)
}
