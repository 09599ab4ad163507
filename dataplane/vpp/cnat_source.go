package vpp

import (
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// cnatSourceKind: VPP does not tell the policy. It is set before the addresses, and reset after them: with an address and
// no policy VPP would translate all sources. What did not end well is remembered, and done again.
func (k *kinds) cnatSourceKind() scheduler.Kind[*vpp_cnat.SourceNAT] {
	o := func(what string) object { return object{what, "cnat source NAT"} }
	set := func(op *scheduler.Op, v *vpp_cnat.SourceNAT) {
		k.sendInTurn(op, o("set"), &cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_K8S}, cnatSources(v))
	}
	return scheduler.Kind[*vpp_cnat.SourceNAT]{
		Name: "vpp-cnat-source", Prefix: nb.CnatSourceNATKey, Rank: scheduler.RankFeature,
		Validate: func(_ string, v *vpp_cnat.SourceNAT) error {
			var f faults
			if v.Ipv4Address == "" && v.Ipv6Address == "" {
				f.add("ipv6_address", "is empty, and so is ipv4_address")
			}
			if v.Ipv4Address != "" && (!addr(v.Ipv4Address).Is4() || addr(v.Ipv4Address).IsUnspecified()) {
				f.add("ipv4_address", "%q is not an IPv4 address", v.Ipv4Address)
			}
			if v.Ipv6Address != "" && (!addr(v.Ipv6Address).Is6() || addr(v.Ipv6Address).IsUnspecified()) {
				f.add("ipv6_address", "%q is not an IPv6 address", v.Ipv6Address)
			}
			return f.err()
		},
		Equal: func(_ string, desired, applied *vpp_cnat.SourceNAT) bool {
			return addr(desired.Ipv4Address) == addr(applied.Ipv4Address) && addr(desired.Ipv6Address) == addr(applied.Ipv6Address)
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_cnat.SourceNAT) { set(op, v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_cnat.SourceNAT) { set(op, v) },
		Delete: func(op *scheduler.Op, _ string, _ *vpp_cnat.SourceNAT) {
			k.sendInTurn(op, o("reset"), cnatSources(&vpp_cnat.SourceNAT{}),
				&cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_NONE})
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_cnat.SourceNAT)) {
			conn.Call(k.lane, &cnat.CnatGetSnatAddresses{}, func(r *cnat.CnatGetSnatAddressesReply, err error) {
				if err == nil {
					v := &vpp_cnat.SourceNAT{
						Ipv4Address: specified(netip.AddrFrom4(r.SnatIP4)), Ipv6Address: specified(netip.AddrFrom16(r.SnatIP6)),
					}
					if v.Ipv4Address != "" || v.Ipv6Address != "" || k.cnat.unsurePolicy {
						emit(nb.CnatSourceNATKey, v)
					}
				}
				op.Done(o("dump").wrap(err))
			})
		},
	}
}

// sendInTurn sends the second request only when VPP has done the first.
func (k *kinds) sendInTurn(op *scheduler.Op, o object, first, second api.Message) {
	k.cnat.unsurePolicy = true
	k.sendSteps(o, [][]api.Message{{first}, {second}}, func(err error) {
		k.cnat.unsurePolicy = err != nil
		op.Done(scheduler.OutcomeUnknown(err))
	})
}

func specified(a netip.Addr) string {
	if a.IsUnspecified() {
		return ""
	}
	return a.String()
}

func cnatSources(v *vpp_cnat.SourceNAT) *cnat.CnatSetSnatAddresses {
	req := &cnat.CnatSetSnatAddresses{SwIfIndex: interface_types.InterfaceIndex(none)}
	if a := addr(v.Ipv4Address); a.Is4() {
		req.SnatIP4 = ip_types.IP4Address(a.As4())
	}
	if a := addr(v.Ipv6Address); a.Is6() {
		req.SnatIP6 = ip_types.IP6Address(a.As16())
	}
	return req
}
