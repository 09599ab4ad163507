package contiv

import (
	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivAffinity is the longest time, in seconds, for which the plugin stores a client's backend.
const contivAffinity = 86400

// contivFrontendDescriptor returns the descriptor of frontends. A frontend changes in place. Its services and ranges need
// not exist.
func (k *descriptors) contivFrontendDescriptor() scheduler.Descriptor[*vpp_contiv.Frontend] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.Frontend, add bool) {
		k.Do(op, kit.Named(what+" frontend", nb.ContivFrontendKey(v.Ip, v.Protocol, v.Port)[len(nb.ContivFrontendPrefix):]),
			frontendRequest(v, add), fineToDelete(add)...)
	}
	return scheduler.Descriptor[*vpp_contiv.Frontend]{
		Name: "vpp-contiv-frontend", Prefix: nb.ContivFrontendPrefix, Rank: rankContivFrontend, DeleteLast: true,
		Validate: func(_ string, v *vpp_contiv.Frontend) error { return validateFrontend(v) },
		Equal: func(_ string, desired, applied *vpp_contiv.Frontend) bool {
			return desired == applied || *frontendRequest(desired, true) == *frontendRequest(applied, true)
		},
		Refs:   frontendRefs,
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.Frontend) { set(op, "add", v, true) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_contiv.Frontend) { set(op, "change", v, true) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.Frontend) { set(op, "delete", v, false) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.Frontend)) {
			dumpContiv(k, op, "frontends", &contiv.ContivFrontendDump{}, func(d *contiv.ContivFrontendDetails) {
				v := frontendOf(d)
				emit(nb.ContivFrontendKey(v.Ip, v.Protocol, v.Port), v)
			})
		},
	}
}

// frontendRefs adds the keys of the services and of the source ranges.
func frontendRefs(_ string, v *vpp_contiv.Frontend, add func(ref string)) {
	for _, t := range []*vpp_contiv.Frontend_Target{v.InCluster, v.Outside} {
		if id := t.GetService(); id != 0 {
			add(nb.ContivServiceKey(id))
		}
	}
	if v.Ranges != 0 {
		add(nb.ContivRangeSetKey(v.Ranges))
	}
}

func validateFrontend(v *vpp_contiv.Frontend) error {
	var f kit.Faults
	switch a := kit.Addr(v.Ip); {
	case !a.IsValid() || a.IsUnspecified() || a.IsMulticast():
		f.Add("ip", "%q is not an address of a host", v.Ip)
	case a.String() != v.Ip:
		f.Add("ip", "%q should be written %s", v.Ip, a)
	}
	_, known := vpp_contiv.Frontend_Protocol_name[int32(v.Protocol)]
	switch {
	case !known:
		f.Add("protocol", "%d is not known", v.Protocol)
	case v.Port > 65535, v.Port == 0 && v.Protocol != vpp_contiv.Frontend_ANY:
		f.Add("port", "%d is not a port", v.Port)
	case v.Port != 0 && v.Protocol == vpp_contiv.Frontend_ANY:
		f.Add("protocol", "ANY is for port 0 alone")
	}
	targetFaults(&f, "in_cluster", v.InCluster)
	targetFaults(&f, "outside", v.Outside)
	balances := v.GetInCluster().GetAction() == vpp_contiv.Frontend_Target_BALANCE ||
		v.GetOutside().GetAction() == vpp_contiv.Frontend_Target_BALANCE
	switch {
	case v.Port != 0:
	case balances:
		f.Add("port", "is 0, and BALANCE needs one")
	case v.GetInCluster().GetService() != 0 || v.GetOutside().GetService() != 0:
		f.Add("port", "is 0, and a service needs one")
	}
	if v.AffinityTimeout > contivAffinity {
		f.Add("affinity_timeout", "%d is more than %d", v.AffinityTimeout, contivAffinity)
	}
	if (v.AffinityGroup == 0) != (v.AffinityTimeout == 0) {
		f.Add("affinity_timeout", "is %d, with the group %d: set both or none", v.AffinityTimeout, v.AffinityGroup)
	}
	return f.Err()
}

func targetFaults(f *kit.Faults, field string, t *vpp_contiv.Frontend_Target) {
	switch t.GetAction() {
	case vpp_contiv.Frontend_Target_BALANCE:
		if t.GetService() == 0 {
			f.Add(field+".service", "is 0, which stands for none")
		}
	case vpp_contiv.Frontend_Target_REJECT, vpp_contiv.Frontend_Target_DROP:
		if t.GetMasquerade() {
			f.Add(field+".masquerade", "is set, but only BALANCE has it")
		}
	default:
		f.Add(field+".action", "%d is not known", t.GetAction())
	}
}

func frontendRequest(v *vpp_contiv.Frontend, add bool) *contiv.ContivFrontendAddDel {
	return &contiv.ContivFrontendAddDel{
		IsAdd: add, Address: kit.ToAddress(kit.Addr(v.Ip)), Port: uint16(v.Port), Protocol: uint8(v.Protocol), Name: contivName(v.Name),
		InCluster: targetRequest(v.InCluster), Outside: targetRequest(v.Outside), Ranges: v.Ranges,
		AffinityGroup: v.AffinityGroup, AffinityTimeout: v.AffinityTimeout,
	}
}

func targetRequest(t *vpp_contiv.Frontend_Target) contiv.ContivTarget {
	req := contiv.ContivTarget{Action: contiv.ContivAction(t.GetAction()), ServiceID: t.GetService()}
	if t.GetMasquerade() {
		req.Flags = contiv.CONTIV_TARGET_API_MASQ
	}
	return req
}

func frontendOf(d *contiv.ContivFrontendDetails) *vpp_contiv.Frontend {
	target := func(t contiv.ContivTarget) *vpp_contiv.Frontend_Target {
		return &vpp_contiv.Frontend_Target{
			Action: vpp_contiv.Frontend_Target_Action(t.Action), Service: t.ServiceID,
			Masquerade: t.Flags&contiv.CONTIV_TARGET_API_MASQ != 0,
		}
	}
	return &vpp_contiv.Frontend{
		Ip: kit.FromAddress(d.Address).String(), Port: uint32(d.Port), Protocol: vpp_contiv.Frontend_Protocol(d.Protocol), Name: d.Name,
		InCluster: target(d.InCluster), Outside: target(d.Outside), Ranges: d.Ranges, AffinityGroup: d.AffinityGroup,
		AffinityTimeout: d.AffinityTimeout,
	}
}
