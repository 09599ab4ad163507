package contivconf

import (
	"net/netip"
	"slices"
	"strings"
)

// defaultNetworks returns the default networks: for IPv4 those of contiv. contiv has none for IPv6: here they are unique local addresses
// that resemble those of IPv4. There is no default for the pods' IPv6 network, because setting it switches IPv6 on.
func defaultNetworks(v IPVersion) FamilyIPAM {
	if v == IPv6 {
		return FamilyIPAM{
			Version:                       v,
			ServiceCIDR:                   netip.MustParsePrefix("fd00:10:96::/112"),
			PodSubnetOneNodePrefixLen:     64,
			VPPHostSubnetCIDR:             netip.MustParsePrefix("fd00:172:30::/48"),
			VPPHostSubnetOneNodePrefixLen: 64,
			NodeInterconnectCIDR:          netip.MustParsePrefix("fd00:192:168:16::/112"),
			VxlanCIDR:                     netip.MustParsePrefix("fd00:192:168:30::/112"),
		}
	}
	return FamilyIPAM{
		Version:                       v,
		ServiceCIDR:                   netip.MustParsePrefix("10.96.0.0/12"),
		PodSubnetCIDR:                 netip.MustParsePrefix("10.1.0.0/16"),
		PodSubnetOneNodePrefixLen:     24,
		VPPHostSubnetCIDR:             netip.MustParsePrefix("172.30.0.0/16"),
		VPPHostSubnetOneNodePrefixLen: 24,
		NodeInterconnectCIDR:          netip.MustParsePrefix("192.168.16.0/24"),
		VxlanCIDR:                     netip.MustParsePrefix("192.168.30.0/24"),
	}
}

// The minimum numbers of host bits: of a node's slice of the pod network (gateway, a few pods, NAT loopback), of its VPP–host link (two
// ends), and of the networks in which every node has one address.
const (
	minPodHostBits     = 3
	minVPPHostHostBits = 2
	minSharedHostBits  = 2
)

// networks is the result of reading the section ipamConfig.
type networks struct {
	config IPAMConfig
	// known is false if the families could not be determined, so that the following checks are skipped.
	known bool
	// useVxlan is false if there is no overlay, so that overlaps with vxlanCIDR are allowed.
	useVxlan bool
}

// ipamReader converts the section into values, one family after the other.
type ipamReader struct {
	o   IPAMOptions
	bad *faults
	// The networks as written, in the same order.
	contiv, service, pods, vppHost, interconnect, vxlan []netip.Prefix
	gateways                                            []netip.Addr
	// useVxlan is false if there is no overlay, so that the default of vxlanCIDR does not conflict with other networks.
	useVxlan bool
}

func ipamConfig(o IPAMOptions, transport Transport, bad *faults) networks {
	r := &ipamReader{o: o, bad: bad, useVxlan: transport != TransportNoOverlay}
	contivOK := r.prefixes("contivCIDR", o.ContivCIDR, &r.contiv)
	podsOK := r.prefixes("podSubnetCIDR", o.PodSubnetCIDR, &r.pods)
	r.prefixes("serviceCIDR", o.ServiceCIDR, &r.service)
	r.prefixes("vppHostSubnetCIDR", o.VPPHostSubnetCIDR, &r.vppHost)
	r.prefixes("nodeInterconnectCIDR", o.NodeInterconnectCIDR, &r.interconnect)
	r.prefixes("vxlanCIDR", o.VxlanCIDR, &r.vxlan)
	r.gateways = parseAddrs("ipamConfig.defaultGateway", or(o.DefaultGateway, ""), bad)

	n := networks{known: contivOK && podsOK, useVxlan: r.useVxlan}
	families := r.families()
	if !n.known {
		return n
	}
	r.checkFamilies(families)
	r.checkAgainstContivCIDR()
	podLens := r.lengths("podSubnetOneNodePrefixLen", o.PodSubnetOneNodePrefixLen, r.pods, families)
	hostLens := r.lengths("vppHostSubnetOneNodePrefixLen", o.VPPHostSubnetOneNodePrefixLen, r.vppHost, families)

	n.config = IPAMConfig{NodeInterconnectDHCP: or(o.NodeInterconnectDHCP, false), ContivCIDR: sortFamilies(r.contiv)}
	for _, v := range families {
		f, ok := r.family(v, podLens[v], hostLens[v])
		if !ok {
			n.known = false
			continue
		}
		r.checkSizes(f)
		r.checkOverlaps(f)
		n.config.add(f)
	}
	return n
}

// families returns the families of podSubnetCIDR and contivCIDR, IPv4 before IPv6; IPv4 if neither is set.
func (r *ipamReader) families() []IPVersion {
	var families []IPVersion
	for _, v := range []IPVersion{IPv4, IPv6} {
		if prefixOf(r.pods, v).IsValid() || prefixOf(r.contiv, v).IsValid() {
			families = append(families, v)
		}
	}
	if len(families) == 0 {
		families = []IPVersion{IPv4}
	}
	return families
}

func (r *ipamReader) prefixes(name string, option *string, into *[]netip.Prefix) bool {
	list, ok := parsePrefixes("ipamConfig."+name, or(option, ""), false, r.bad)
	*into = list
	return ok
}

// checkFamilies rejects networks of a family that pods do not have.
func (r *ipamReader) checkFamilies(families []IPVersion) {
	check := func(name string, v IPVersion, value string) {
		if !slices.Contains(families, v) {
			r.bad.add("ipamConfig."+name, "%s is %s, but pods have no %s addresses; add an %s network to podSubnetCIDR or remove it",
				value, v, v, v)
		}
	}
	for _, o := range []struct {
		name string
		list []netip.Prefix
	}{
		{"serviceCIDR", r.service}, {"vppHostSubnetCIDR", r.vppHost}, {"nodeInterconnectCIDR", r.interconnect},
		{"vxlanCIDR", r.vxlan},
	} {
		for _, p := range o.list {
			check(o.name, VersionOf(p.Addr()), p.String())
		}
	}
	for _, gw := range r.gateways {
		check("defaultGateway", VersionOf(gw), gw.String())
	}
}

// checkAgainstContivCIDR rejects options that contivCIDR already determines.
func (r *ipamReader) checkAgainstContivCIDR() {
	for _, c := range r.contiv {
		v := VersionOf(c.Addr())
		for _, o := range []struct {
			name string
			list []netip.Prefix
		}{{"podSubnetCIDR", r.pods}, {"vppHostSubnetCIDR", r.vppHost}, {"vxlanCIDR", r.vxlan}} {
			if p := prefixOf(o.list, v); p.IsValid() {
				r.bad.add("ipamConfig."+o.name, "%s is set although contivCIDR %s already provides that network; remove one of the two",
					p, c)
			}
		}
	}
}

// lengths assigns the prefix lengths to families: in the order of the corresponding networks, or IPv4 before IPv6 if the networks have
// their defaults.
func (r *ipamReader) lengths(name string, option *Lengths, nets []netip.Prefix, families []IPVersion) map[IPVersion]int {
	if option == nil || len(*option) == 0 {
		return nil
	}
	var order []IPVersion
	for _, p := range nets {
		order = append(order, VersionOf(p.Addr()))
	}
	if len(nets) == 0 {
		for _, v := range families {
			if !prefixOf(r.contiv, v).IsValid() {
				order = append(order, v)
			}
		}
	}
	if len(order) == 0 {
		r.bad.add("ipamConfig."+name, "is set although contivCIDR decides it; remove one of the two")
		return nil
	}
	if len(*option) != len(order) {
		r.bad.add("ipamConfig."+name, "has %d lengths for %d networks (%s); give one per network, in the same order",
			len(*option), len(order), joinComma(order, IPVersion.String))
		return nil
	}
	out := make(map[IPVersion]int, len(order))
	for i, v := range order {
		out[v] = (*option)[i]
	}
	return out
}

// family returns the values of one family.
func (r *ipamReader) family(v IPVersion, podLen, hostLen int) (FamilyIPAM, bool) {
	f := defaultNetworks(v)
	set := func(to *netip.Prefix, list []netip.Prefix) {
		if p := prefixOf(list, v); p.IsValid() {
			*to = p
		}
	}
	if c := prefixOf(r.contiv, v); c.IsValid() {
		if err := splitContivCIDR(c, &f); err != nil {
			r.bad.add("ipamConfig.contivCIDR", "%s", err)
			return f, false
		}
	} else {
		set(&f.PodSubnetCIDR, r.pods)
		set(&f.VPPHostSubnetCIDR, r.vppHost)
		set(&f.VxlanCIDR, r.vxlan)
		f.PodSubnetOneNodePrefixLen = orNonZero(&podLen, f.PodSubnetOneNodePrefixLen)
		f.VPPHostSubnetOneNodePrefixLen = orNonZero(&hostLen, f.VPPHostSubnetOneNodePrefixLen)
	}
	set(&f.NodeInterconnectCIDR, r.interconnect)
	set(&f.ServiceCIDR, r.service)
	f.DefaultGateway = addrOf(r.gateways, v)
	if or(r.o.NodeInterconnectDHCP, false) {
		f.NodeInterconnectCIDR = netip.Prefix{}
	}
	return f, true
}

func (r *ipamReader) checkSizes(f FamilyIPAM) {
	checkSlices(r.bad, "podSubnet", f.PodSubnetCIDR, f.PodSubnetOneNodePrefixLen, minPodHostBits)
	checkSlices(r.bad, "vppHostSubnet", f.VPPHostSubnetCIDR, f.VPPHostSubnetOneNodePrefixLen, minVPPHostHostBits)
	for _, s := range []struct {
		name string
		p    netip.Prefix
	}{{"nodeInterconnectCIDR", f.NodeInterconnectCIDR}, {"vxlanCIDR", f.VxlanCIDR}} {
		if s.p.IsValid() && s.p.Addr().BitLen()-s.p.Bits() < minSharedHostBits {
			r.bad.add("ipamConfig."+s.name, "%s has no room for two nodes; use a shorter prefix", s.p)
		}
	}
}

func checkSlices(bad *faults, name string, cidr netip.Prefix, oneNode, minHost int) {
	field := "ipamConfig." + name + "OneNodePrefixLen"
	longest := cidr.Addr().BitLen() - minHost
	switch {
	case cidr.Bits() > longest:
		bad.add("ipamConfig."+name+"CIDR", "%s is too small; its prefix length must be %d or less", cidr, longest)
	case oneNode < cidr.Bits():
		bad.add(field, "/%d is larger than the whole %sCIDR %s; use %d to %d", oneNode, name, cidr, cidr.Bits(), longest)
	case oneNode > longest:
		bad.add(field, "/%d leaves a node too few addresses of %sCIDR %s; use %d to %d", oneNode, name, cidr, cidr.Bits(), longest)
	}
}

// checkOverlaps rejects networks that have a common address.
func (r *ipamReader) checkOverlaps(f FamilyIPAM) {
	type network struct {
		name  string
		p     netip.Prefix
		given bool
	}
	contiv := prefixOf(r.contiv, f.Version)
	of := func(name string, p netip.Prefix, list []netip.Prefix, split bool) network {
		n := network{name: name, p: p, given: prefixOf(list, f.Version).IsValid()}
		if split && contiv.IsValid() && !n.given {
			n = network{name: "contivCIDR", p: p, given: true}
		}
		return n
	}
	nets := []network{
		of("serviceCIDR", f.ServiceCIDR, r.service, false),
		of("podSubnetCIDR", f.PodSubnetCIDR, r.pods, true),
		of("vppHostSubnetCIDR", f.VPPHostSubnetCIDR, r.vppHost, true),
		of("nodeInterconnectCIDR", f.NodeInterconnectCIDR, r.interconnect, true),
	}
	if vxlan := of("vxlanCIDR", f.VxlanCIDR, r.vxlan, true); r.useVxlan || vxlan.given {
		nets = append(nets, vxlan)
	}
	for i := range nets {
		for j := range i {
			a, b := nets[i], nets[j]
			if !a.p.IsValid() || !b.p.IsValid() || !a.p.Overlaps(b.p) {
				continue
			}
			if !a.given {
				a, b = b, a // name the option that the operator has set
			}
			note := ""
			if !b.given {
				note = " (its default)"
			}
			r.bad.add("ipamConfig."+a.name, "%s overlaps with %s %s%s; choose networks that have no address in common",
				a.p, b.name, b.p, note)
		}
	}
}

// add appends the values of one family.
func (c *IPAMConfig) add(f FamilyIPAM) {
	c.ServiceCIDR = append(c.ServiceCIDR, f.ServiceCIDR)
	c.PodSubnetCIDR = append(c.PodSubnetCIDR, f.PodSubnetCIDR)
	c.PodSubnetOneNodePrefixLen = append(c.PodSubnetOneNodePrefixLen, f.PodSubnetOneNodePrefixLen)
	c.VPPHostSubnetCIDR = append(c.VPPHostSubnetCIDR, f.VPPHostSubnetCIDR)
	c.VPPHostSubnetOneNodePrefixLen = append(c.VPPHostSubnetOneNodePrefixLen, f.VPPHostSubnetOneNodePrefixLen)
	c.VxlanCIDR = append(c.VxlanCIDR, f.VxlanCIDR)
	if f.NodeInterconnectCIDR.IsValid() {
		c.NodeInterconnectCIDR = append(c.NodeInterconnectCIDR, f.NodeInterconnectCIDR)
	}
	if f.DefaultGateway.IsValid() {
		c.DefaultGateway = append(c.DefaultGateway, f.DefaultGateway)
	}
}

func sortFamilies(list []netip.Prefix) []netip.Prefix {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b netip.Prefix) int { return int(VersionOf(a.Addr())) - int(VersionOf(b.Addr())) })
	return out
}

// elements splits a list separated by commas; an empty text has no elements.
func elements(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
