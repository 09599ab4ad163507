package vpp

import (
	"net/netip"
	"slices"
	"strconv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// cnatMaxBackends is what one request is sure to have room for.
const cnatMaxBackends = 1000

// A translation in VPP has neither tag nor name, and VPP keeps to itself how it spreads clients. But each path has a byte of
// flags, of which VPP 25.10 uses bits 0, 1 and 7 and keeps the rest as they come: there we leave our mark.
const (
	cnatOurs   = 1 << 6
	cnatSticky = 1 << 5
)

// cnatState is what the kinds of cnat remember of VPP.
type cnatState struct {
	// ids are VPP's numbers of translations, by key. A dump finds them.
	ids map[string]uint32
	// unsure are the interfaces of which nobody knows the role, by name. VPP does not tell it.
	unsure map[string]bool
	// unsurePolicy: nobody knows the policy of source NAT, which VPP does not tell either.
	unsurePolicy bool
}

// cnatTranslationKind: VPP changes the backends of a translation in place. Sessions go on with the backend that they have,
// be it still there or not.
func (k *kinds) cnatTranslationKind() scheduler.Kind[*vpp_cnat.Translation] {
	return scheduler.Kind[*vpp_cnat.Translation]{
		Name: "vpp-cnat-translation", Prefix: nb.CnatTranslationPrefix, Rank: scheduler.RankFeature,
		Validate: func(_ string, v *vpp_cnat.Translation) error { return validateTranslation(v) },
		Equal: func(_ string, desired, applied *vpp_cnat.Translation) bool {
			return desired == applied || desired.Sticky == applied.Sticky && slices.Equal(cnatBackends(desired), cnatBackends(applied))
		},
		Create: func(op *scheduler.Op, key string, v *vpp_cnat.Translation) { k.putTranslation(op, "create", key, v) },
		Update: func(op *scheduler.Op, key string, _, v *vpp_cnat.Translation) { k.putTranslation(op, "update", key, v) },
		// VPP decides how to spread clients when a translation is made.
		CanUpdate: func(_ string, applied, desired *vpp_cnat.Translation) bool { return applied.Sticky == desired.Sticky },
		Delete: func(op *scheduler.Op, key string, v *vpp_cnat.Translation) {
			id, ok := k.cnat.ids[key]
			if !ok {
				gone(op)
				return
			}
			delete(k.cnat.ids, key)
			k.do(op, cnatObject("delete", v), &cnat.CnatTranslationDel{ID: id}, api.NO_SUCH_ENTRY)
		},
		Dump: k.dumpTranslations,
	}
}

func cnatObject(what string, v *vpp_cnat.Translation) object {
	return object{what, v.Protocol.String() + " translation of " + v.Vip + " port " + strconv.Itoa(int(v.Port))}
}

func validateTranslation(v *vpp_cnat.Translation) error {
	var f faults
	vip := addr(v.Vip)
	switch {
	case !vip.IsValid() || vip.IsUnspecified():
		f.add("vip", "%q is not an address", v.Vip)
	case vip.String() != v.Vip:
		f.add("vip", "%q should be written %s: the key has it", v.Vip, vip)
	}
	if v.Port == 0 || v.Port > 65535 {
		f.add("port", "%d is not a port", v.Port)
	}
	switch {
	case cnatProto(v.Protocol) == 0:
		f.add("protocol", "%d is not known", v.Protocol)
	case v.Protocol == vpp_cnat.Translation_SCTP && vip.Is6():
		f.add("protocol", "VPP does not look at SCTP over IPv6")
	}
	switch n := len(v.Backends); {
	case n == 0:
		f.add("backends", "is empty: VPP would crash; leave the translation out and reject the address")
	case n > cnatMaxBackends:
		f.add("backends", "has %d, and %d is all there is room for: give it some of them", n, cnatMaxBackends)
	}
	for i, b := range v.Backends {
		field := "backends[" + strconv.Itoa(i) + "]."
		if a := addr(b.GetIp()); !a.IsValid() || a.IsUnspecified() || a.Is4() != vip.Is4() {
			f.add(field+"ip", "%q is not an address of the family of %s", b.GetIp(), v.Vip)
		}
		if b.GetPort() == 0 || b.GetPort() > 65535 {
			f.add(field+"port", "%d is not a port", b.GetPort())
		}
	}
	return f.err()
}

// cnatProto is the number of a protocol, 0 for none.
func cnatProto(p vpp_cnat.Translation_Protocol) ip_types.IPProto {
	switch p {
	case vpp_cnat.Translation_TCP:
		return ip_types.IP_API_PROTO_TCP
	case vpp_cnat.Translation_UDP:
		return ip_types.IP_API_PROTO_UDP
	case vpp_cnat.Translation_SCTP:
		return ip_types.IP_API_PROTO_SCTP
	}
	return 0
}

func cnatProtoOf(p ip_types.IPProto) (vpp_cnat.Translation_Protocol, bool) {
	for n := range vpp_cnat.Translation_Protocol_name {
		if q := vpp_cnat.Translation_Protocol(n); cnatProto(q) == p {
			return q, true
		}
	}
	return 0, false
}

// cnatBackends are the backends in order: VPP chooses by place, so the order must not depend on who lists them.
func cnatBackends(v *vpp_cnat.Translation) []netip.AddrPort {
	out := make([]netip.AddrPort, 0, len(v.Backends))
	for _, b := range v.Backends {
		out = append(out, netip.AddrPortFrom(addr(b.GetIp()), uint16(b.GetPort())))
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out
}

// cnatEnd is an address and port as cnat has them.
func cnatEnd(a netip.AddrPort) cnat.CnatEndpoint {
	e := cnat.CnatEndpoint{SwIfIndex: interface_types.InterfaceIndex(none), Port: a.Port()}
	if a.IsValid() {
		e.Addr, e.IfAf = toAddress(a.Addr()), family(a.Addr().Is6())
	}
	return e
}

// putTranslation makes a translation or gives it other backends. IsRealIP leaves to the routes what comes for the address and
// is not translated; without it VPP would drop that, or keep it from VPP's own stack.
func (k *kinds) putTranslation(op *scheduler.Op, what, key string, v *vpp_cnat.Translation) {
	vip := netip.AddrPortFrom(addr(v.Vip), uint16(v.Port))
	backends := cnatBackends(v)
	req := &cnat.CnatTranslationUpdate{Translation: cnat.CnatTranslation{
		Vip: cnatEnd(vip), IPProto: cnatProto(v.Protocol), IsRealIP: 1, Paths: make([]cnat.CnatEndpointTuple, len(backends)),
	}}
	t := &req.Translation
	flags := uint8(cnatOurs)
	if v.Sticky {
		flags |= cnatSticky
		t.LbType, t.FlowHashConfig = cnat.CNAT_LB_TYPE_MAGLEV, ip.IP_API_V2_FLOW_HASH_SRC_IP
	}
	anySource := cnatEnd(netip.AddrPort{})
	anySource.Addr.Af = family(vip.Addr().Is6())
	anySource.IfAf = anySource.Addr.Af
	for i, b := range backends {
		t.Paths[i] = cnat.CnatEndpointTuple{DstEp: cnatEnd(b), SrcEp: anySource, Flags: flags}
	}
	k.snap.forget()
	conn.Call(k.lane, req, func(r *cnat.CnatTranslationUpdateReply, err error) {
		if err == nil {
			k.cnat.ids[key] = r.ID
		}
		op.Done(cnatObject(what, v).wrap(err))
	})
}

// dumpTranslations emits the translations with our mark, and those that are wanted: VPP has one for an address and port,
// whoever made it.
func (k *kinds) dumpTranslations(op *scheduler.DumpOp, emit func(string, *vpp_cnat.Translation)) {
	wanted := map[string]bool{}
	if !op.Partial() {
		clear(k.cnat.ids)
	}
	op.EachDesired(func(key string, _ any) {
		wanted[key] = true
		delete(k.cnat.ids, key) // VPP gives numbers again
	})
	conn.Dump(k.lane, &cnat.CnatTranslationDump{}, func(d *cnat.CnatTranslationDetails) {
		v, ours := translationOf(&d.Translation)
		if v == nil {
			return
		}
		key := nb.CnatTranslationKey(v.Vip, v.Protocol, v.Port)
		if ours || wanted[key] {
			k.cnat.ids[key] = d.Translation.ID
			emit(key, v)
		}
	}, func(err error) { op.Done(object{"dump", "cnat translations"}.wrap(err)) })
}

// translationOf reads a translation; nil for one that cannot be ours. One that we have not made is not as good as any that
// is desired, since what it does with clients is not known.
func translationOf(t *cnat.CnatTranslation) (v *vpp_cnat.Translation, ours bool) {
	proto, ok := cnatProtoOf(t.IPProto)
	if !ok || uint32(t.Vip.SwIfIndex) != none {
		return nil, false
	}
	ours = len(t.Paths) > 0
	v = &vpp_cnat.Translation{
		Vip: fromAddress(t.Vip.Addr).String(), Port: uint32(t.Vip.Port), Protocol: proto,
		Backends: make([]*vpp_cnat.Translation_Backend, 0, len(t.Paths)),
	}
	for i := range t.Paths {
		p := &t.Paths[i]
		ours = ours && p.Flags&cnatOurs != 0
		v.Sticky = v.Sticky || p.Flags&cnatSticky != 0
		v.Backends = append(v.Backends, &vpp_cnat.Translation_Backend{
			Ip: fromAddress(p.DstEp.Addr).String(), Port: uint32(p.DstEp.Port),
		})
	}
	if !ours {
		v.Backends = nil
	}
	return v, ours
}
