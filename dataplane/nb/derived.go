package nb

import (
	"strconv"
	"strings"
)

// InterfaceStateKey is where the state of a VPP interface is published.
func InterfaceStateKey(ifName string) string {
	return InterfaceStatePrefix + orInvalid(ifName)
}

// InterfaceErrorKey is where the errors of a VPP interface are published.
func InterfaceErrorKey(ifName string) string {
	return InterfaceErrorPrefix + orInvalid(ifName)
}

// InterfaceAddressKey stands for one address (with mask) on a VPP interface.
// source is one of the Address constants; a reference to an allocated address is
// always AddressAllocRef.
func InterfaceAddressKey(ifName, source, addr string) string {
	return InterfacePrefix + orInvalid(ifName) + "/address/" + addressSource(source, addr) + "/" + addr
}

// InterfaceAddressKeyPrefix is the prefix of the keys of all addresses of a VPP
// interface.
func InterfaceAddressKeyPrefix(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/address/"
}

// InterfaceVrfKey stands for a VPP interface being in a table; ipVersion is IPv4,
// IPv6 or IPBoth.
func InterfaceVrfKey(ifName string, vrf uint32, ipVersion string) string {
	var buf keyBuf
	b := append(buf[:0], InterfacePrefix...)
	b = append(b, orInvalid(ifName)...)
	b = append(b, "/vrf/"...)
	b = strconv.AppendUint(b, uint64(vrf), 10)
	b = append(b, "/ip-version/"...)
	return string(append(b, orInvalid(ipVersion)...))
}

// InterfaceVrfKeyPrefix is the prefix of InterfaceVrfKey and
// InterfaceInheritedVrfKey of a VPP interface.
func InterfaceVrfKeyPrefix(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/vrf/"
}

// InterfaceInheritedVrfKey stands for an unnumbered VPP interface being in the
// table of the interface whose addresses it borrows.
func InterfaceInheritedVrfKey(ifName, from string) string {
	return InterfacePrefix + orInvalid(ifName) + "/vrf/from-interface/" + orInvalid(from)
}

// UnnumberedKey stands for a VPP interface borrowing addresses.
func UnnumberedKey(ifName string) string {
	return UnnumberedPrefix + orInvalid(ifName)
}

// LinkStateKey stands for the link of a VPP interface being up, or down.
func LinkStateKey(ifName string, up bool) string {
	return InterfacePrefix + orInvalid(ifName) + "/link-state/" + upDown(up)
}

// LinkStateKeyPrefix is the prefix of both link-state keys of a VPP interface.
func LinkStateKeyPrefix(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/link-state/"
}

// HasIPAddressKey stands for a VPP interface having at least one address.
func HasIPAddressKey(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/has-IP-address"
}

// RxModesKey stands for the receive modes of all queues of a VPP interface.
func RxModesKey(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/rx-modes"
}

// RxPlacementKey stands for the thread of one receive queue of a VPP interface.
func RxPlacementKey(ifName string, queue uint32) string {
	var buf keyBuf
	b := append(buf[:0], InterfacePrefix...)
	b = append(b, orInvalid(ifName)...)
	b = append(b, "/rx-placement/queue/"...)
	return string(strconv.AppendUint(b, uint64(queue), 10))
}

// BDInterfaceKey stands for a VPP interface being a member of a bridge domain.
func BDInterfaceKey(bd, ifName string) string {
	return BDPrefix + orInvalid(bd) + "/interface/" + orInvalid(ifName)
}

// BDInterfaceKeyPrefix is the prefix of the keys of all members of a bridge domain.
func BDInterfaceKeyPrefix(bd string) string {
	return BDPrefix + orInvalid(bd) + "/interface/"
}

// ACLInterfaceKey stands for an ACL being bound to a VPP interface; direction is
// Ingress or Egress.
func ACLInterfaceKey(acl, direction, ifName string) string {
	return ACLDerivedPrefix + orInvalid(acl) + "/interface/" + orInvalid(direction) + "/" + orInvalid(ifName)
}

// ProxyARPInterfaceKey stands for proxy ARP being enabled on a VPP interface.
func ProxyARPInterfaceKey(ifName string) string {
	return ProxyARPInterfacePrefix + ifName
}

// LinuxInterfaceStateKey stands for a Linux interface being up, or down.
func LinuxInterfaceStateKey(ifName string, up bool) string {
	return LinuxInterfaceStatePrefix + ifName + "/" + upDown(up)
}

// LinuxInterfaceAddressKey stands for one address (with mask) on a Linux
// interface; source is as in InterfaceAddressKey.
func LinuxInterfaceAddressKey(ifName, source, addr string) string {
	return LinuxDerivedInterfacePrefix + orInvalid(ifName) + "/address/" + addressSource(source, addr) + "/" + addr
}

// LinuxInterfaceAddressKeyPrefix is the prefix of the keys of all addresses of a
// Linux interface.
func LinuxInterfaceAddressKeyPrefix(ifName string) string {
	return LinuxDerivedInterfacePrefix + orInvalid(ifName) + "/address/"
}

// LinuxHostNameKey stands for an interface of that name being in the agent's own
// network namespace.
func LinuxHostNameKey(hostName string) string {
	return LinuxHostNamePrefix + hostName
}

// LinuxMicroserviceKey stands for a microservice whose namespace is known.
func LinuxMicroserviceKey(label string) string {
	return LinuxMicroservicePrefix + label
}

func addressSource(source, addr string) string {
	if strings.HasPrefix(addr, AllocRefPrefix) {
		return AddressAllocRef
	}
	return orInvalid(source)
}

func upDown(up bool) string {
	if up {
		return "UP"
	}
	return "DOWN"
}
