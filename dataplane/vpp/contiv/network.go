package contiv

import (
	"cmp"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivSNATs is the plugin's maximum number of source NATs.
const contivSNATs = 1024

// contivNetworkDescriptor returns the descriptor of networks with their address class.
func (k *descriptors) contivNetworkDescriptor() scheduler.Descriptor[*vpp_contiv.Network] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.Network, add bool) {
		k.Do(op, kit.Named(what+" network", v.Prefix), &contiv.ContivNetworkAddDel{
			IsAdd: add, Prefix: kit.ToPrefix(network(v.Prefix)), AddressClass: contiv.ContivClass(v.Class),
		}, fineToDelete(add)...)
	}
	return scheduler.Descriptor[*vpp_contiv.Network]{
		Name: "vpp-contiv-network", Prefix: nb.ContivNetworkPrefix, Rank: rankContiv,
		Validate: func(_ string, v *vpp_contiv.Network) error {
			var f kit.Faults
			networkFaults(&f, "prefix", v.Prefix)
			if _, known := vpp_contiv.Network_Class_name[int32(v.Class)]; !known || v.Class == vpp_contiv.Network_UNKNOWN {
				f.Add("class", "%d is not known", v.Class)
			}
			return f.Err()
		},
		Equal:  func(_ string, desired, applied *vpp_contiv.Network) bool { return desired.Class == applied.Class },
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.Network) { set(op, "add", v, true) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_contiv.Network) { set(op, "change", v, true) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.Network) { set(op, "delete", v, false) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.Network)) {
			dumpContiv(k, op, "networks", &contiv.ContivNetworkDump{}, func(d *contiv.ContivNetworkDetails) {
				prefix := kit.FromPrefix(d.Prefix).String()
				emit(nb.ContivNetworkKey(prefix), &vpp_contiv.Network{Prefix: prefix, Class: vpp_contiv.Network_Class(d.AddressClass)})
			})
		},
	}
}

// network returns the network of a prefix that has been validated.
func network(s string) netip.Prefix {
	p, _ := netip.ParsePrefix(s)
	return p.Masked()
}

// networkFaults checks a prefix. Host bits must be zero, because their meaning would be unclear.
func networkFaults(f *kit.Faults, field, prefix string) {
	switch p, err := netip.ParsePrefix(prefix); {
	case err != nil || p.Addr().Is4In6():
		f.Add(field, "%q is not a network", prefix)
	case p != p.Masked():
		f.Add(field, "%s should be written %s", prefix, p.Masked())
	}
}

// fineToDelete returns the plugin's errors for a deletion that mean that the object does not exist.
func fineToDelete(add bool) []api.VPPApiError {
	if add {
		return nil
	}
	return []api.VPPApiError{api.NO_SUCH_ENTRY}
}

// contivSourceNATDescriptor returns the descriptor of addresses for source NAT.
func (k *descriptors) contivSourceNATDescriptor() scheduler.Descriptor[*vpp_contiv.SourceNAT] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.SourceNAT, add bool) {
		k.Do(op, kit.Named(what+" source NAT", v.Name), sourceNATRequest(v, add), fineToDelete(add)...)
	}
	return scheduler.Descriptor[*vpp_contiv.SourceNAT]{
		Name: "vpp-contiv-source-nat", Prefix: nb.ContivSourceNATPrefix, Rank: rankContiv,
		Validate: func(_ string, v *vpp_contiv.SourceNAT) error { return validateSourceNAT(v) },
		Equal: func(_ string, desired, applied *vpp_contiv.SourceNAT) bool {
			return *sourceNATRequest(desired, true) == *sourceNATRequest(applied, true)
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.SourceNAT) { set(op, "add", v, true) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_contiv.SourceNAT) { set(op, "change", v, true) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.SourceNAT) { set(op, "delete", v, false) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.SourceNAT)) {
			dumpContiv(k, op, "source NAT", &contiv.ContivSnatDump{}, func(d *contiv.ContivSnatDetails) {
				emit(nb.ContivSourceNATKey(d.ID), &vpp_contiv.SourceNAT{
					Id: d.ID, Name: d.Name, Ipv4Address: kit.Specified(netip.AddrFrom4(d.IP4)),
					Ipv6Address: kit.Specified(netip.AddrFrom16(d.IP6)), PortLow: uint32(d.PortLow), PortHigh: uint32(d.PortHigh),
				})
			})
		},
	}
}

func validateSourceNAT(v *vpp_contiv.SourceNAT) error {
	var f kit.Faults
	if v.Id >= contivSNATs {
		f.Add("id", "%d is not below %d", v.Id, contivSNATs)
	}
	if v.Ipv4Address == "" && v.Ipv6Address == "" {
		f.Add("ipv6_address", "is empty, and so is ipv4_address")
	}
	if a := kit.Addr(v.Ipv4Address); v.Ipv4Address != "" && (!a.Is4() || a.IsUnspecified()) {
		f.Add("ipv4_address", "%q is not an IPv4 address", v.Ipv4Address)
	}
	if a := kit.Addr(v.Ipv6Address); v.Ipv6Address != "" && (!a.Is6() || a.IsUnspecified()) {
		f.Add("ipv6_address", "%q is not an IPv6 address", v.Ipv6Address)
	}
	low, high := sourceNATPorts(v)
	if low > high || high > 65535 {
		f.Add("port_high", "%d to %d is not a range of ports", low, high)
	}
	return f.Err()
}

// sourceNATPorts returns the port range, with the defaults in place of zeros.
func sourceNATPorts(v *vpp_contiv.SourceNAT) (low, high uint32) {
	return cmp.Or(v.PortLow, 32768), cmp.Or(v.PortHigh, 65535)
}

func sourceNATRequest(v *vpp_contiv.SourceNAT, add bool) *contiv.ContivSnatAddDel {
	req := &contiv.ContivSnatAddDel{IsAdd: add, ID: v.Id, Name: contivName(v.Name)}
	low, high := sourceNATPorts(v)
	req.PortLow, req.PortHigh = uint16(low), uint16(high)
	if a := kit.Addr(v.Ipv4Address); a.Is4() {
		req.IP4 = ip_types.IP4Address(a.As4())
	}
	if a := kit.Addr(v.Ipv6Address); a.Is6() {
		req.IP6 = ip_types.IP6Address(a.As16())
	}
	return req
}
