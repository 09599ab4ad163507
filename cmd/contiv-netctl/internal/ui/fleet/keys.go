package fleet

import (
	"strings"

	"contiv.dev/vswitch/dataplane/nb"
)

// kinds maps key prefixes to words. If one prefix begins with another, the longer one comes first.
var kinds = []struct{ prefix, word string }{
	{nb.VppInterfacePrefix, "interface"},
	{nb.ARPPrefix, "neighbour"},
	{nb.RoutePrefix, "route"},
	{nb.VrfTablePrefix, "table"},
	{nb.BridgeDomainPrefix, "bridge domain"},
	{nb.FIBPrefix, "forwarding entry"},
	{nb.XConnectPrefix, "cross-connect"},
	{nb.DNat44Prefix, "DNAT"},
	{nb.Nat44InterfacePrefix, "NAT interface"},
	{nb.Nat44AddressPoolPrefix, "NAT pool"},
	{nb.ACLPrefix, "ACL"},
	{nb.ContivEndpointPolicyPrefix, "endpoint's policy"},
	{nb.ContivEndpointPrefix, "endpoint"},
	{nb.ContivNetworkPrefix, "network"},
	{nb.ContivSourceNATPrefix, "source NAT"},
	{nb.ContivServicePrefix, "service"},
	{nb.ContivFrontendPrefix, "frontend"},
	{nb.ContivRangeSetPrefix, "source ranges"},
	{nb.ContivIPSetMemberPrefix, "set member"},
	{nb.ContivIPSetPrefix, "set"},
	{nb.ContivPolicyPrefix, "policy"},
	{nb.ContivConfigKey, "plugin settings"},
	{nb.DriverIPSetPrefix, "set"},
	{nb.DriverSetMemberPrefix, "set member"},
	{nb.DriverProfilePrefix, "profile"},
	{nb.DriverPolicyPrefix, "policy"},
	{nb.DriverWorkloadPolicyPrefix, "endpoint's policy"},
	{nb.DriverWorkloadPrefix, "endpoint"},
	{nb.DriverHostPrefix, "host"},
	{nb.DriverPoolPrefix, "address pool"},
	{nb.DriverRoutePrefix, "route"},
	{nb.DriverVTEPPrefix, "tunnel endpoint"},
	{nb.DriverServicePrefix, "service"},
	{nb.DriverInSyncKey, "all is programmed"},
	{nb.LinuxInterfacePrefix, "Linux interface"},
	{nb.LinuxARPPrefix, "Linux neighbour"},
	{nb.LinuxRoutePrefix, "Linux route"},
	{nb.NodePortsPrefix, "node ports of the host"},
	{nb.ForwardedPrefix, "forwarding of the host"},
}

// readable describes a key in words. An unknown key stays as it is.
func readable(key string) (kind, name string) {
	for _, k := range kinds {
		if rest, ok := strings.CutPrefix(key, k.prefix); ok {
			return k.word, nameOf(k.prefix, rest)
		}
	}
	return "", key
}

// nameOf makes the part of a key after the prefix readable.
func nameOf(prefix, rest string) string {
	switch prefix {
	case nb.RoutePrefix:
		return routeName(rest)
	case nb.FIBPrefix:
		return strings.Replace(rest, "/mac/", " ", 1)
	case nb.ARPPrefix, nb.LinuxARPPrefix:
		if i := strings.LastIndex(rest, "/"); i > 0 {
			return rest[i+1:] + " on " + rest[:i]
		}
	case nb.LinuxRoutePrefix:
		if i := strings.LastIndex(rest, "/"); strings.Count(rest, "/") > 1 {
			return rest[:i] + " by " + rest[i+1:]
		}
	case nb.VrfTablePrefix:
		return strings.NewReplacer("id/", "", "/protocol/", " ").Replace(rest)
	}
	return rest
}

// routeName returns "10.1.2.0/24 via 192.168.30.2 by vxlanBVI, table 1" for if/vxlanBVI/vrf/1/dst/10.1.2.0/24/gw/192.168.30.2.
func routeName(rest string) string {
	head, dst, ok := strings.Cut(rest, "/dst/")
	if !ok {
		return rest
	}
	dst, via, hasVia := strings.Cut(dst, "/gw/")
	table := head
	if i := strings.LastIndex(head, "vrf/"); i >= 0 {
		table = head[i+len("vrf/"):]
		head = strings.TrimSuffix(head[:i], "/")
	}
	if hasVia {
		dst += " via " + via
	}
	if device, ok := strings.CutPrefix(head, "if/"); ok {
		dst += " by " + device
	}
	return dst + ", table " + table
}
