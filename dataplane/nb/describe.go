package nb

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
)

// Describe is one line about m for a person who reads a transaction's history. It
// says what the object is and does; the key and the whole value are elsewhere.
func Describe(m proto.Message) string {
	switch m := m.(type) {
	case *vpp_interfaces.Interface:
		return describeInterface(m)
	case *vpp_l2.BridgeDomain:
		return fmt.Sprintf("bridge domain %s, %s", m.GetName(), count(len(m.GetInterfaces()), "interface"))
	case *vpp_l2.FIBEntry:
		return describeFIB(m)
	case *vpp_l2.XConnectPair:
		return fmt.Sprintf("cross-connect %s to %s", m.GetReceiveInterface(), m.GetTransmitInterface())
	case *vpp_l3.ARPEntry:
		return fmt.Sprintf("neighbour %s at %s on %s", m.GetIpAddress(), m.GetPhysAddress(), m.GetInterface())
	case *vpp_l3.Route:
		return describeRoute(m)
	case *vpp_l3.VrfTable:
		return fmt.Sprintf("table %d %s%s", m.GetId(), m.GetProtocol(), opt(" ", m.GetLabel()))
	case *vpp_l3.ProxyARP:
		return fmt.Sprintf("proxy ARP for %s on %s", count(len(m.GetRanges()), "range"), count(len(m.GetInterfaces()), "interface"))
	case *vpp_l3.IPScanNeighbor:
		return fmt.Sprintf("neighbour scan %s", m.GetMode())
	case *vpp_nat.Nat44Global:
		return fmt.Sprintf("NAT44, forwarding %s", onOff(m.GetForwarding()))
	case *vpp_nat.DNat44:
		return describeDNat(m)
	case *vpp_nat.Nat44Interface:
		return describeNatInterface(m)
	case *vpp_nat.Nat44AddressPool:
		return describePool(m)
	case *vpp_acl.ACL:
		i := m.GetInterfaces()
		return fmt.Sprintf("ACL %s, %s, %d ingress, %d egress", m.GetName(),
			count(len(m.GetRules()), "rule"), len(i.GetIngress()), len(i.GetEgress()))
	case *linux_interfaces.Interface:
		return describeLinuxInterface(m)
	case *linux_nodeports.NodePorts:
		return describeNodePorts(m)
	case *linux_nodeports.Forwarded:
		return describeForwarded(m)
	case *linux_l3.ARPEntry:
		return fmt.Sprintf("Linux neighbour %s at %s on %s", m.GetIpAddress(), m.GetHwAddress(), m.GetInterface())
	case *linux_l3.Route:
		return fmt.Sprintf("Linux route %s%s dev %s", m.GetDstNetwork(), opt(" via ", m.GetGwAddr()), m.GetOutgoingInterface())
	}
	if s := describeContiv(m); s != "" {
		return s
	}
	return kindOf(m)
}

func describeInterface(m *vpp_interfaces.Interface) string {
	var b strings.Builder
	fmt.Fprintf(&b, "interface %s %s", m.GetName(), m.GetType())
	switch l := m.GetLink().(type) {
	case *vpp_interfaces.Interface_Sub:
		fmt.Fprintf(&b, " %d of %s", l.Sub.GetSubId(), l.Sub.GetParentName())
	case *vpp_interfaces.Interface_Memif:
		fmt.Fprintf(&b, " id %d%s", l.Memif.GetId(), opt(" on ", l.Memif.GetSocketFilename()))
	case *vpp_interfaces.Interface_Afpacket:
		host := l.Afpacket.GetLinuxInterface()
		if host == "" {
			host = l.Afpacket.GetHostIfName()
		}
		b.WriteString(opt(" on ", host))
	case *vpp_interfaces.Interface_Tap:
		b.WriteString(opt(" to ", l.Tap.GetHostIfName()))
	case *vpp_interfaces.Interface_Vxlan:
		fmt.Fprintf(&b, " vni %d %s to %s", l.Vxlan.GetVni(), l.Vxlan.GetSrcAddress(), l.Vxlan.GetDstAddress())
	case *vpp_interfaces.Interface_Pipe:
		b.WriteString(opt(" other end of ", l.Pipe.GetFirstEnd()))
	}
	describeAddresses(&b, m.GetIpAddresses())
	b.WriteString(opt(", addresses of ", m.GetUnnumbered().GetInterfaceWithIp()))
	if m.GetSetDhcpClient() {
		b.WriteString(", DHCP")
	}
	if vrf := m.GetVrf(); vrf != 0 {
		fmt.Fprintf(&b, ", table %d", vrf)
	}
	if !m.GetEnabled() {
		b.WriteString(", disabled")
	}
	return b.String()
}

func describeLinuxInterface(m *linux_interfaces.Interface) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Linux interface %s %s", m.GetName(), m.GetType())
	b.WriteString(opt(" ", m.GetHostIfName()))
	switch l := m.GetLink().(type) {
	case *linux_interfaces.Interface_Veth:
		b.WriteString(opt(" to ", l.Veth.GetPeerIfName()))
	case *linux_interfaces.Interface_Tap:
		b.WriteString(opt(" to ", l.Tap.GetVppTapIfName()))
	case *linux_interfaces.Interface_VrfDev:
		fmt.Fprintf(&b, " table %d", l.VrfDev.GetRoutingTable())
	}
	b.WriteString(opt(" in ", m.GetNamespace().GetReference()))
	describeAddresses(&b, m.GetIpAddresses())
	if !m.GetEnabled() {
		b.WriteString(", disabled")
	}
	return b.String()
}

func describeAddresses(b *strings.Builder, addrs []string) {
	if len(addrs) > 0 {
		b.WriteString(", ")
		b.WriteString(strings.Join(addrs, " "))
	}
}

func describeFIB(m *vpp_l2.FIBEntry) string {
	if m.GetAction() == vpp_l2.FIBEntry_DROP {
		return fmt.Sprintf("L2 FIB %s dropped in %s", m.GetPhysAddress(), m.GetBridgeDomain())
	}
	return fmt.Sprintf("L2 FIB %s by %s in %s", m.GetPhysAddress(), m.GetOutgoingInterface(), m.GetBridgeDomain())
}

func describeRoute(m *vpp_l3.Route) string {
	var b strings.Builder
	fmt.Fprintf(&b, "route %s", m.GetDstNetwork())
	switch m.GetType() {
	case vpp_l3.Route_DROP:
		b.WriteString(" drop")
	case vpp_l3.Route_REJECT:
		b.WriteString(" reject")
	case vpp_l3.Route_INTER_VRF:
		fmt.Fprintf(&b, " by table %d", m.GetViaVrfId())
	}
	b.WriteString(opt(" via ", m.GetNextHopAddr()))
	b.WriteString(opt(" dev ", m.GetOutgoingInterface()))
	if vrf := m.GetVrfId(); vrf != 0 {
		fmt.Fprintf(&b, ", table %d", vrf)
	}
	return b.String()
}

func describeDNat(m *vpp_nat.DNat44) string {
	s := fmt.Sprintf("DNAT %s, %s", m.GetLabel(), count(len(m.GetStMappings()), "mapping"))
	if n := len(m.GetIdMappings()); n > 0 {
		s += fmt.Sprintf(", %d identity", n)
	}
	return s
}

func describeNatInterface(m *vpp_nat.Nat44Interface) string {
	var roles []string
	if m.GetNatInside() {
		roles = append(roles, "inside")
	}
	if m.GetNatOutside() {
		roles = append(roles, "outside")
	}
	if m.GetOutputFeature() {
		roles = append(roles, "output")
	}
	return strings.Join(append([]string{"NAT44 interface", m.GetName()}, roles...), " ")
}

func describePool(m *vpp_nat.Nat44AddressPool) string {
	s := "NAT44 pool" + opt(" ", m.GetName()) + " " + m.GetFirstIp() + opt("-", m.GetLastIp())
	if m.GetTwiceNat() {
		s += ", twice-NAT"
	}
	if vrf := m.GetVrfId(); vrf != 0 {
		s += ", table " + strconv.FormatUint(uint64(vrf), 10)
	}
	return s
}

// opt is lead and s, or nothing if s is empty.
func opt(lead, s string) string {
	if s == "" {
		return ""
	}
	return lead + s
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "x") {
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
