package contivconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// nodeConfig validates all sections and returns the configuration of the node called name.
func nodeConfig(file File, nets networks, name string, bad *faults) NodeConfig {
	global := NodeConfig{
		NodeName:           name,
		MainVPPInterface:   VPPInterface{UseDHCP: nets.config.NodeInterconnectDHCP},
		Gateways:           nets.config.DefaultGateway,
		NatExternalTraffic: or(file.NatExternalTraffic, true),
		EnablePacketTrace:  or(file.EnablePacketTrace, false),
	}
	mine := global
	staticNets := []netip.Prefix{}
	seen := map[string]int{}
	owners := map[netip.Addr]int{} // of the addresses at which nodes reach each other
	for i, section := range file.NodeConfig {
		field := fmt.Sprintf("nodeConfig[%d]", i)
		nodeName := or(section.NodeName, "")
		if nodeName == "" {
			bad.add(field+".nodeName", "is missing; write the name of the node that the section is for")
		} else if first, dup := seen[nodeName]; dup {
			bad.add(field+".nodeName", "%q has a section already, nodeConfig[%d]; merge the two", nodeName, first)
		} else {
			seen[nodeName] = i
		}
		r := nodeReader{field: field, section: section, nets: nets, bad: bad}
		node := r.read(global)
		for _, p := range node.MainVPPInterface.IPs {
			staticNets = append(staticNets, p.Masked())
			if first, dup := owners[p.Addr()]; dup {
				bad.add(field+".mainVPPInterface.ip", "%s is also the address of nodeConfig[%d]; give each node its own", p.Addr(), first)
			}
			owners[p.Addr()] = i
		}
		checkDisjoint(field, node, nets, bad)
		if nodeName == name && nodeName != "" {
			mine = node
		}
	}
	checkDefaultGateway(nets, staticNets, bad)
	if _, ok := seen[name]; !ok && name != "" && len(bad.errs) == 0 {
		checkGatewayWithoutSection(nets, mine, bad)
	}
	return mine
}

// checkDisjoint rejects interfaces in overlapping networks, which VPP does not accept. A main interface without addresses in the file has
// those that follow from the node ID.
func checkDisjoint(field string, node NodeConfig, nets networks, bad *faults) {
	seen := slices.Clone(node.MainVPPInterface.IPs)
	if len(seen) == 0 && !node.MainVPPInterface.UseDHCP {
		seen = slices.Clone(nets.config.NodeInterconnectCIDR)
	}
	for i, other := range node.OtherVPPInterfaces {
		for _, p := range other.IPs {
			if at := slices.IndexFunc(seen, p.Masked().Overlaps); at >= 0 {
				bad.add(fmt.Sprintf("%s.otherVPPInterfaces[%d].ip", field, i), "%s is in the network of another interface of this node, "+
					"%s; give each interface a network of its own", p, seen[at])
			}
			seen = append(seen, p)
		}
	}
}

// checkGatewayWithoutSection rejects a gateway that only nodes with addresses of their own can reach, if this node has no section.
func checkGatewayWithoutSection(nets networks, node NodeConfig, bad *faults) {
	for _, gw := range node.Gateways {
		network := prefixOf(nets.config.NodeInterconnectCIDR, VersionOf(gw))
		if network.IsValid() && !usable(gw, network) {
			bad.add("ipamConfig.defaultGateway", "%s is not reachable from node %s, whose network is nodeInterconnectCIDR %s; give the "+
				"node a section in nodeConfig with a gateway", gw, node.NodeName, network)
		}
	}
}

// checkDefaultGateway checks that at least one node can reach the cluster-wide gateway: it must be inside the interconnect network or
// inside the network of a node with its own address.
func checkDefaultGateway(nets networks, staticNets []netip.Prefix, bad *faults) {
	if !nets.known || nets.config.NodeInterconnectDHCP {
		return
	}
	for _, gw := range nets.config.DefaultGateway {
		f, _ := nets.config.Family(VersionOf(gw))
		within := append([]netip.Prefix{f.NodeInterconnectCIDR}, staticNets...)
		if !slices.ContainsFunc(within, func(p netip.Prefix) bool { return p.Contains(gw) && usable(gw, p) }) {
			bad.add("ipamConfig.defaultGateway", "%s is not an address that a host of nodeInterconnectCIDR %s can have, so no node "+
				"could reach it; use one from that network", gw, f.NodeInterconnectCIDR)
		}
	}
}

// nodeReader reads one node's section.
type nodeReader struct {
	field   string
	section NodeSection
	nets    networks
	bad     *faults
}

func (r nodeReader) read(global NodeConfig) NodeConfig {
	node := global
	node.NodeName = or(r.section.NodeName, "")
	if s := r.section.MainVPPInterface; s != nil {
		node.MainVPPInterface = r.iface(".mainVPPInterface", *s, global.MainVPPInterface.UseDHCP)
		if !node.MainVPPInterface.UseDHCP && len(node.MainVPPInterface.IPs) == 0 && r.nets.config.NodeInterconnectDHCP {
			r.bad.add(r.field+".mainVPPInterface.useDHCP", "is false, but with ipamConfig.nodeInterconnectDHCP there is no "+
				"nodeInterconnectCIDR to take an address from; set ip as well")
		}
	}
	names := map[string]bool{}
	if n := node.MainVPPInterface.InterfaceName; n != "" {
		names[n] = true
	}
	for i, s := range r.section.OtherVPPInterfaces {
		path := fmt.Sprintf(".otherVPPInterfaces[%d]", i)
		other := r.iface(path, s, false)
		switch {
		case other.InterfaceName == "":
			r.bad.add(r.field+path+".interfaceName", "is missing; write VPP's name of the interface")
		case names[other.InterfaceName]:
			r.bad.add(r.field+path+".interfaceName", "%q is listed twice; an interface can have one role only", other.InterfaceName)
		}
		names[other.InterfaceName] = true
		node.OtherVPPInterfaces = append(node.OtherVPPInterfaces, other)
	}
	if or(r.section.StealInterface, "") != "" {
		r.bad.unsupported(r.field+".stealInterface", "stealing the NIC (STN)",
			"give VPP an interface of its own and remove the option")
	}
	node.NatExternalTraffic = or(r.section.NatExternalTraffic, global.NatExternalTraffic)
	node.Gateways = r.gateways(node.MainVPPInterface, global.Gateways)
	return node
}

func (r nodeReader) iface(path string, s InterfaceSection, globalDHCP bool) VPPInterface {
	field := r.field + path
	out := VPPInterface{InterfaceName: or(s.InterfaceName, "")}
	if strings.HasPrefix(out.InterfaceName, "vmxnet3-") {
		r.bad.unsupported(field+".interfaceName", "the vmxnet3 driver", "use an interface of another driver")
	}
	if strings.ContainsFunc(out.InterfaceName, notInNames) || len(out.InterfaceName) > maxInterfaceName {
		r.bad.add(field+".interfaceName", "%q is not the name of an interface; write it as VPP shows it, e.g. GigabitEthernet0/8/0",
			out.InterfaceName)
	}
	out.IPs, _ = parsePrefixes(field+".ip", or(s.IP, ""), true, r.bad)
	slices.SortFunc(out.IPs, func(a, b netip.Prefix) int { return int(VersionOf(a.Addr())) - int(VersionOf(b.Addr())) })
	switch {
	case or(s.UseDHCP, false) && len(out.IPs) > 0:
		r.bad.add(field+".useDHCP", "is true although ip is set; remove one of the two")
	case len(out.IPs) == 0:
		out.UseDHCP = or(s.UseDHCP, globalDHCP)
	}
	for _, p := range out.IPs {
		r.checkAddress(field+".ip", p)
	}
	return out
}

// maxInterfaceName is VPP's limit.
const maxInterfaceName = 63

func notInNames(c rune) bool {
	return unicode.IsSpace(c) || unicode.IsControl(c) || c == unicode.ReplacementChar
}

// checkAddress rejects static addresses of interfaces that are in contiv's own networks.
func (r nodeReader) checkAddress(field string, p netip.Prefix) {
	f, ok := r.nets.config.Family(VersionOf(p.Addr()))
	if !ok {
		return // an interface may have addresses of a family that pods do not have
	}
	for _, n := range []struct {
		name string
		p    netip.Prefix
	}{
		{"podSubnetCIDR", f.PodSubnetCIDR}, {"vppHostSubnetCIDR", f.VPPHostSubnetCIDR}, {"vxlanCIDR", f.VxlanCIDR},
		{"serviceCIDR", f.ServiceCIDR},
	} {
		if n.name == "vxlanCIDR" && !r.nets.useVxlan {
			continue
		}
		if n.p.IsValid() && p.Masked().Overlaps(n.p) {
			r.bad.add(field, "%s overlaps with ipamConfig.%s %s; choose networks that have no address in common", p, n.name, n.p)
		}
	}
}

// gateways returns the node's own gateways, and the cluster-wide ones for families without an own gateway.
func (r nodeReader) gateways(main VPPInterface, global []netip.Addr) []netip.Addr {
	own := parseAddrs(r.field+".gateway", or(r.section.Gateway, ""), r.bad)
	var out []netip.Addr
	for _, v := range []IPVersion{IPv4, IPv6} {
		gw := addrOf(own, v)
		if !gw.IsValid() {
			gw = addrOf(global, v)
		}
		if !gw.IsValid() {
			continue
		}
		out = append(out, gw)
		r.checkGateway(gw, main)
	}
	return out
}

func (r nodeReader) checkGateway(gw netip.Addr, main VPPInterface) {
	field := r.field + ".gateway"
	v := VersionOf(gw)
	network := prefixOf(main.IPs, v)
	if network.IsValid() && network.Addr() == gw {
		r.bad.add(field, "%s is the node's own address; use the router's", gw)
		return
	}
	if !network.IsValid() && !main.UseDHCP {
		network = prefixOf(r.nets.config.NodeInterconnectCIDR, v)
	}
	if network.IsValid() && !usable(gw, network.Masked()) {
		r.bad.add(field, "%s is not an address that a host of the node's network %s can have; use one from that network",
			gw, network.Masked())
	}
}
