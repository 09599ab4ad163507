package vpp

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// contivAddresses is how many addresses an endpoint may have.
const contivAddresses = 32

// contivEndpointKind: an endpoint changes in place, and goes with its interface. What must not be without one waits for it by
// Interface.up_after.
func (k *kinds) contivEndpointKind() scheduler.Kind[*vpp_contiv.Endpoint] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.Endpoint) {
		o := object{what + " endpoint of", "interface " + v.Interface}
		index, ok := k.idx.IfIndex(v.Interface)
		if !ok {
			k.missing(op, o, v.Interface)
			return
		}
		k.do(op, o, endpointRequest(index, v))
	}
	return scheduler.Kind[*vpp_contiv.Endpoint]{
		Name: "vpp-contiv-endpoint", Prefix: nb.ContivEndpointPrefix, Rank: rankContiv,
		Validate: func(_ string, v *vpp_contiv.Endpoint) error { return validateEndpoint(v) },
		Equal:    func(_ string, desired, applied *vpp_contiv.Endpoint) bool { return sameEndpoint(desired, applied) },
		Deps:     func(_ string, v *vpp_contiv.Endpoint, add func(string)) { add(nb.VppInterfaceKey(v.Interface)) },
		Create:   func(op *scheduler.Op, _ string, v *vpp_contiv.Endpoint) { set(op, "create", v) },
		Update:   func(op *scheduler.Op, _ string, _, v *vpp_contiv.Endpoint) { set(op, "change", v) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.Endpoint) {
			index, ok := k.idx.IfIndex(v.Interface)
			if !ok {
				gone(op)
				return
			}
			k.do(op, object{"delete endpoint of", "interface " + v.Interface},
				&contiv.ContivEndpointDel{SwIfIndex: interface_types.InterfaceIndex(index)}, ifGone...)
		},
		Dump: k.dumpEndpoints,
	}
}

func validateEndpoint(v *vpp_contiv.Endpoint) error {
	var f faults
	f.name("interface", v.Interface)
	if _, known := vpp_contiv.Endpoint_Role_name[int32(v.Role)]; !known || v.Role == vpp_contiv.Endpoint_UNKNOWN {
		f.add("role", "%d is not known", v.Role)
	}
	if len(v.Addresses) > contivAddresses {
		f.add("addresses", "has %d, and there is room for %d", len(v.Addresses), contivAddresses)
	}
	for _, a := range v.Addresses {
		if !addr(a).IsValid() || addr(a).IsUnspecified() {
			f.add("addresses", "%q is not an address", a)
		}
	}
	if v.Egress >= contivSNATs {
		f.add("egress", "%d is not below %d", v.Egress, contivSNATs)
	}
	return f.err()
}

func sameEndpoint(desired, applied *vpp_contiv.Endpoint) bool {
	return desired.Role == applied.Role && contivName(desired.Name) == contivName(applied.Name) && desired.Egress == applied.Egress &&
		desired.MaxConnections == applied.MaxConnections &&
		sameSet(desired.Addresses, applied.Addresses, func(s string) string { return addr(s).String() })
}

func endpointRequest(index uint32, v *vpp_contiv.Endpoint) *contiv.ContivEndpointSet {
	req := &contiv.ContivEndpointSet{
		SwIfIndex: interface_types.InterfaceIndex(index), Role: contiv.ContivRole(v.Role), Name: contivName(v.Name),
		Egress: v.Egress, MaxConnections: v.MaxConnections,
	}
	addrs := make([]netip.Addr, len(v.Addresses))
	for i, a := range v.Addresses {
		addrs[i] = addr(a)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, a := range slices.Compact(addrs) {
		req.Addresses = append(req.Addresses, toAddress(a))
	}
	return req
}

// dumpEndpoints emits those of our interfaces.
func (k *kinds) dumpEndpoints(op *scheduler.DumpOp, emit func(string, *vpp_contiv.Endpoint)) {
	k.snapshot(op, func(s *ifSnapshot, err error) {
		if err != nil {
			endContivDump(op, "endpoints", err)
			return
		}
		conn.Dump(k.lane, &contiv.ContivEndpointDump{}, func(d *contiv.ContivEndpointDetails) {
			if st := s.byIndex[uint32(d.SwIfIndex)]; st != nil {
				emit(nb.ContivEndpointKey(st.name), endpointOf(st.name, d))
			}
		}, func(err error) { endContivDump(op, "endpoints", err) })
	})
}

func endpointOf(name string, d *contiv.ContivEndpointDetails) *vpp_contiv.Endpoint {
	v := &vpp_contiv.Endpoint{
		Interface: name, Role: vpp_contiv.Endpoint_Role(d.Role), Name: d.Name, Egress: d.Egress, MaxConnections: d.MaxConnections,
	}
	for _, a := range d.Addresses {
		v.Addresses = append(v.Addresses, fromAddress(a).String())
	}
	return v
}
