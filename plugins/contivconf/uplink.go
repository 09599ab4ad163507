package contivconf

import (
	"net/netip"
	"path"
	"slices"
	"strings"
)

// Uplink selects the NIC by which nodes reach each other, for nodes whose section names none. All fields that are set must match; if no
// field is set, the operator has made no choice.
type Uplink struct {
	// NamePatterns are shell patterns of the kernel's names of NICs ("eth1", "enp*s0"); one has to match.
	NamePatterns []string
	// Networks: the NIC has an address in one of these.
	Networks []netip.Prefix
	// DefaultRoute: the NIC is that of the host's default route.
	DefaultRoute bool
	// StandAlone: there are no other nodes, so VPP needs no NIC. Excludes all else.
	StandAlone bool
}

// IsZero reports whether no field is set.
func (u Uplink) IsZero() bool { return !u.Selects() && !u.StandAlone }

// Selects reports whether the node has to search for a NIC.
func (u Uplink) Selects() bool {
	return len(u.NamePatterns) > 0 || len(u.Networks) > 0 || u.DefaultRoute
}

// MatchesName reports whether a name matches NamePatterns.
func (u Uplink) MatchesName(name string) bool {
	return len(u.NamePatterns) == 0 || slices.ContainsFunc(u.NamePatterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name) // the pattern was validated when the file was read
		return ok
	})
}

// String returns the options as in the file, for messages.
func (u Uplink) String() string {
	var parts []string
	if len(u.NamePatterns) > 0 {
		parts = append(parts, "namePattern: "+strings.Join(u.NamePatterns, ","))
	}
	if len(u.Networks) > 0 {
		parts = append(parts, "network: "+joinComma(u.Networks, netip.Prefix.String))
	}
	if u.DefaultRoute {
		parts = append(parts, "defaultRoute: true")
	}
	if u.StandAlone {
		parts = append(parts, "standAlone: true")
	}
	return "mainVPPInterface {" + strings.Join(parts, ", ") + "}"
}

// AFPacketPrefix is the prefix of VPP's name of an interface that shares a NIC with the host. The kernel's name of the NIC follows.
const AFPacketPrefix = "host-"

// uplinkField is the name of the section in the file.
const uplinkField = "mainVPPInterface"

func uplinkConfig(o *UplinkOptions, nets networks, bad *faults) Uplink {
	if o == nil {
		return Uplink{}
	}
	u := Uplink{DefaultRoute: or(o.DefaultRoute, false), StandAlone: or(o.StandAlone, false)}
	for _, part := range elements(or(o.NamePattern, "")) {
		// On Linux and in VPP the name refers to the same NIC.
		pattern := strings.TrimPrefix(part, AFPacketPrefix)
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || strings.ContainsFunc(pattern, notInNames) ||
			len(pattern) > maxInterfaceName {
			bad.add(uplinkField+".namePattern", "%q is not a pattern of names; write the kernel's name of the NIC, with * and ? where "+
				"nodes differ, such as eth1 or enp*s0", part)
			continue
		}
		u.NamePatterns = append(u.NamePatterns, pattern)
	}
	for _, part := range elements(or(o.Network, "")) {
		p, err := parsePrefix(part, false)
		if err != nil {
			bad.add(uplinkField+".network", "%s", err)
			continue
		}
		u.Networks = append(u.Networks, p)
		checkUplinkNetwork(p, nets, bad)
	}
	if u.StandAlone && u.Selects() {
		bad.add(uplinkField+".standAlone", "is true, so that there is no main interface, although %s is set; remove one of the two",
			strings.Join(u.selectors(), " and "))
	}
	return u
}

func (u Uplink) selectors() []string {
	var out []string
	for _, s := range []struct {
		name string
		set  bool
	}{{"namePattern", len(u.NamePatterns) > 0}, {"network", len(u.Networks) > 0}, {"defaultRoute", u.DefaultRoute}} {
		if s.set {
			out = append(out, s.name)
		}
	}
	return out
}

// checkUplinkNetwork rejects a network that overlaps with one of contiv's: no node can be in it.
func checkUplinkNetwork(p netip.Prefix, nets networks, bad *faults) {
	if !nets.known {
		return
	}
	transport := TransportNoOverlay
	if nets.useVxlan {
		transport = TransportVXLAN
	}
	for _, own := range nets.config.routed(transport) {
		if own.p.Overlaps(p) {
			bad.add(uplinkField+".network", "%s overlaps with ipamConfig.%s %s; write the network that connects the nodes", p,
				own.option, own.p)
		}
	}
}

func (u Uplink) options() *UplinkOptions {
	if u.IsZero() {
		return nil
	}
	o := &UplinkOptions{Network: prefixList(u.Networks)}
	if len(u.NamePatterns) > 0 {
		o.NamePattern = new(strings.Join(u.NamePatterns, ","))
	}
	if u.DefaultRoute {
		o.DefaultRoute = new(true)
	}
	if u.StandAlone {
		o.StandAlone = new(true)
	}
	return o
}

func (u Uplink) clone() Uplink {
	u.NamePatterns, u.Networks = slices.Clone(u.NamePatterns), slices.Clone(u.Networks)
	return u
}
