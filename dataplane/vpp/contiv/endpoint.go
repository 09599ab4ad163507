package contiv

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivAddresses is the maximum number of addresses of an endpoint.
const contivAddresses = 32

// contivEndpointDescriptor returns the descriptor of endpoints. An endpoint changes in place, and the plugin deletes it with its
// interface. An interface that must not be up without an endpoint waits for it by Interface.up_after.
func (k *descriptors) contivEndpointDescriptor() scheduler.Descriptor[*vpp_contiv.Endpoint] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.Endpoint) {
		o := kit.Named(what+" endpoint of", "interface "+v.Interface)
		index, ok := k.idx.IfIndex(v.Interface)
		if !ok {
			k.Missing(op, o, v.Interface)
			return
		}
		k.Do(op, o, endpointRequest(index, v))
	}
	return scheduler.Descriptor[*vpp_contiv.Endpoint]{
		Name: "vpp-contiv-endpoint", Prefix: nb.ContivEndpointPrefix, Rank: rankContiv,
		Validate: func(_ string, v *vpp_contiv.Endpoint) error { return validateEndpoint(v) },
		Equal:    func(_ string, desired, applied *vpp_contiv.Endpoint) bool { return sameEndpoint(desired, applied) },
		Deps:     endpointDeps,
		Create:   func(op *scheduler.Op, _ string, v *vpp_contiv.Endpoint) { set(op, "create", v) },
		Update:   func(op *scheduler.Op, _ string, _, v *vpp_contiv.Endpoint) { set(op, "change", v) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.Endpoint) {
			index, ok := k.idx.IfIndex(v.Interface)
			if !ok {
				kit.Gone(op)
				return
			}
			k.Do(op, kit.Named("delete endpoint of", "interface "+v.Interface),
				&contiv.ContivEndpointDel{SwIfIndex: interface_types.InterfaceIndex(index)}, kit.IfGone...)
		},
		Dump: k.dumpEndpoints,
	}
}

// endpointDeps adds the dependencies of an endpoint: the plugin rejects an endpoint whose table does not exist in both
// families.
func endpointDeps(_ string, v *vpp_contiv.Endpoint, add func(string)) {
	add(nb.VppInterfaceKey(v.Interface))
	if v.AnswerVrf != 0 {
		add(nb.VrfTableKeyFor(v.AnswerVrf, false))
		add(nb.VrfTableKeyFor(v.AnswerVrf, true))
	}
}

func validateEndpoint(v *vpp_contiv.Endpoint) error {
	var f kit.Faults
	f.Name("interface", v.Interface)
	if _, known := vpp_contiv.Endpoint_Role_name[int32(v.Role)]; !known || v.Role == vpp_contiv.Endpoint_UNKNOWN {
		f.Add("role", "%d is not known", v.Role)
	}
	if len(v.Addresses) > contivAddresses {
		f.Add("addresses", "has %d, and there is room for %d", len(v.Addresses), contivAddresses)
	}
	for _, a := range v.Addresses {
		if !kit.Addr(a).IsValid() || kit.Addr(a).IsUnspecified() {
			f.Add("addresses", "%q is not an address", a)
		}
	}
	if v.Egress >= contivSNATs {
		f.Add("egress", "%d is not below %d", v.Egress, contivSNATs)
	}
	if v.AnswerVrf != 0 && v.Role != vpp_contiv.Endpoint_HOST {
		f.Add("answer_vrf", "is for endpoints of role HOST")
	}
	return f.Err()
}

func sameEndpoint(desired, applied *vpp_contiv.Endpoint) bool {
	return desired.Role == applied.Role && contivName(desired.Name) == contivName(applied.Name) && desired.Egress == applied.Egress &&
		desired.MaxConnections == applied.MaxConnections && desired.AnswerVrf == applied.AnswerVrf &&
		sameSet(desired.Addresses, applied.Addresses, func(s string) string { return kit.Addr(s).String() })
}

func endpointRequest(index uint32, v *vpp_contiv.Endpoint) *contiv.ContivEndpointSet {
	req := &contiv.ContivEndpointSet{
		SwIfIndex: interface_types.InterfaceIndex(index), Role: contiv.ContivRole(v.Role), Name: contivName(v.Name),
		Egress: v.Egress, MaxConnections: v.MaxConnections, Table: v.AnswerVrf,
	}
	addrs := make([]netip.Addr, len(v.Addresses))
	for i, a := range v.Addresses {
		addrs[i] = kit.Addr(a)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, a := range slices.Compact(addrs) {
		req.Addresses = append(req.Addresses, kit.ToAddress(a))
	}
	return req
}

// dumpEndpoints emits the endpoints of our interfaces.
func (k *descriptors) dumpEndpoints(op *scheduler.DumpOp, emit func(string, *vpp_contiv.Endpoint)) {
	k.ifs.Snapshot(op, func(s *iface.Snapshot, err error) {
		if err != nil {
			endContivDump(op, "endpoints", err)
			return
		}
		conn.Dump(k.Lane, &contiv.ContivEndpointDump{}, func(d *contiv.ContivEndpointDetails) {
			if st := s.ByIndex[uint32(d.SwIfIndex)]; st != nil {
				emit(nb.ContivEndpointKey(st.Name), endpointOf(st.Name, d))
			}
		}, func(err error) { endContivDump(op, "endpoints", err) })
	})
}

func endpointOf(name string, d *contiv.ContivEndpointDetails) *vpp_contiv.Endpoint {
	v := &vpp_contiv.Endpoint{
		Interface: name, Role: vpp_contiv.Endpoint_Role(d.Role), Name: d.Name, Egress: d.Egress, MaxConnections: d.MaxConnections,
		AnswerVrf: d.Table,
	}
	for _, a := range d.Addresses {
		v.Addresses = append(v.Addresses, kit.FromAddress(a).String())
	}
	return v
}
