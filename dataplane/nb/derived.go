package nb

import (
	"strconv"
	"strings"
)

// InterfaceStateKey returns the key under which the state of a VPP interface is published.
func InterfaceStateKey(ifName string) string {
	return InterfaceStatePrefix + orInvalid(ifName)
}

// InterfaceErrorKey returns the key under which the errors of a VPP interface are published.
func InterfaceErrorKey(ifName string) string {
	return InterfaceErrorPrefix + orInvalid(ifName)
}

// InterfaceAddressKey returns the key that stands for one address (with mask) on a VPP interface. source is
// one of the Address constants; for a reference to an allocated address the key always has AddressAllocRef.
func InterfaceAddressKey(ifName, source, addr string) string {
	return InterfacePrefix + orInvalid(ifName) + "/address/" + addressSource(source, addr) + "/" + addr
}

// InterfaceAddressKeyPrefix returns the prefix of the keys of all addresses of a VPP
// interface.
func InterfaceAddressKeyPrefix(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/address/"
}

// InterfaceVrfKey returns the key of the state "VPP interface is in table vrf"; ipVersion is IPv4, IPv6 or
// IPBoth.
func InterfaceVrfKey(ifName string, vrf uint32, ipVersion string) string {
	var buf keyBuf
	b := append(buf[:0], InterfacePrefix...)
	b = append(b, orInvalid(ifName)...)
	b = append(b, "/vrf/"...)
	b = strconv.AppendUint(b, uint64(vrf), 10)
	b = append(b, "/ip-version/"...)
	return string(append(b, orInvalid(ipVersion)...))
}

// InterfaceVrfKeyPrefix returns the common prefix of InterfaceVrfKey and InterfaceInheritedVrfKey of a VPP
// interface.
func InterfaceVrfKeyPrefix(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/vrf/"
}

// InterfaceInheritedVrfKey returns the key of the state "unnumbered VPP interface is in the table of the
// interface whose addresses it borrows".
func InterfaceInheritedVrfKey(ifName, from string) string {
	return InterfacePrefix + orInvalid(ifName) + "/vrf/from-interface/" + orInvalid(from)
}

// UnnumberedKey returns the key of the state "VPP interface borrows the addresses of another one".
func UnnumberedKey(ifName string) string {
	return UnnumberedPrefix + orInvalid(ifName)
}

// LinkStateKey returns the key of the state "the link of the VPP interface is up", or down.
func LinkStateKey(ifName string, up bool) string {
	return InterfacePrefix + orInvalid(ifName) + "/link-state/" + upDown(up)
}

// LinkStateKeyPrefix returns the prefix of both link-state keys of a VPP interface.
func LinkStateKeyPrefix(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/link-state/"
}

// HasIPAddressKey returns the key of the state "VPP interface has at least one address".
func HasIPAddressKey(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/has-IP-address"
}

// RxModesKey returns the key that stands for the receive modes of all queues of a VPP interface.
func RxModesKey(ifName string) string {
	return InterfacePrefix + orInvalid(ifName) + "/rx-modes"
}

// RxPlacementKey returns the key that stands for the thread of one receive queue of a VPP interface.
func RxPlacementKey(ifName string, queue uint32) string {
	var buf keyBuf
	b := append(buf[:0], InterfacePrefix...)
	b = append(b, orInvalid(ifName)...)
	b = append(b, "/rx-placement/queue/"...)
	return string(strconv.AppendUint(b, uint64(queue), 10))
}

// BDInterfaceKey returns the key of the state "VPP interface is a member of bridge domain bd".
func BDInterfaceKey(bd, ifName string) string {
	return BDPrefix + orInvalid(bd) + "/interface/" + orInvalid(ifName)
}

// BDInterfaceKeyPrefix returns the prefix of the keys of all members of a bridge domain.
func BDInterfaceKeyPrefix(bd string) string {
	return BDPrefix + orInvalid(bd) + "/interface/"
}

// ACLInterfaceKey returns the key of the state "ACL is bound to a VPP interface"; direction is Ingress or
// Egress.
func ACLInterfaceKey(acl, direction, ifName string) string {
	return ACLDerivedPrefix + orInvalid(acl) + "/interface/" + orInvalid(direction) + "/" + orInvalid(ifName)
}

// ProxyARPInterfaceKey returns the key of the state "proxy ARP is enabled on a VPP interface".
func ProxyARPInterfaceKey(ifName string) string {
	return ProxyARPInterfacePrefix + ifName
}

// LinuxInterfaceStateKey returns the key of the state "Linux interface is up", or down.
func LinuxInterfaceStateKey(ifName string, up bool) string {
	return LinuxInterfaceStatePrefix + ifName + "/" + upDown(up)
}

// LinuxInterfaceAddressKey returns the key that stands for one address (with mask) on a Linux interface;
// source is as in InterfaceAddressKey.
func LinuxInterfaceAddressKey(ifName, source, addr string) string {
	return LinuxDerivedInterfacePrefix + orInvalid(ifName) + "/address/" + addressSource(source, addr) + "/" + addr
}

// LinuxInterfaceAddressKeyPrefix returns the prefix of the keys of all addresses of a
// Linux interface.
func LinuxInterfaceAddressKeyPrefix(ifName string) string {
	return LinuxDerivedInterfacePrefix + orInvalid(ifName) + "/address/"
}

// LinuxHostNameKey returns the key of the state "an interface named hostName is in the agent's own network
// namespace".
func LinuxHostNameKey(hostName string) string {
	return LinuxHostNamePrefix + hostName
}

// LinuxMicroserviceKey returns the key that stands for a microservice whose namespace is known.
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
