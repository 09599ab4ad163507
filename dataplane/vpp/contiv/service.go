package contiv

import (
	"net/netip"
	"strconv"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivBackend is an item of a service: adding a backend is one request.
type contivBackend struct {
	Service    uint64
	End        netip.AddrPort
	Masquerade bool
	Kept       bool
}

const kindContivBackend = "vpp-contiv-backend"

func contivBackendOf(service uint64, b *vpp_contiv.Service_Backend) contivBackend {
	return contivBackend{
		Service: service, End: netip.AddrPortFrom(kit.Addr(b.GetIp()), uint16(b.GetPort())), Masquerade: b.GetMasquerade(),
		Kept: b.GetKept(),
	}
}

func (b contivBackend) key() string {
	return nb.ContivServiceKey(b.Service) + "/backend/" + b.End.String()
}

// contivServiceDescriptor returns the descriptor of services. The value of a service is its name and its balancing
// method; its backends are items.
func (k *descriptors) contivServiceDescriptor() scheduler.Descriptor[*vpp_contiv.Service] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.Service, add bool) {
		req := &contiv.ContivServiceAddDel{IsAdd: add, ID: v.Id, Name: contivName(v.Name)}
		if v.Maglev {
			req.Flags = contiv.CONTIV_SERVICE_API_MAGLEV
		}
		k.Do(op, kit.Named(what+" service", v.Name), req, fineToDelete(add)...)
	}
	return scheduler.Descriptor[*vpp_contiv.Service]{
		Name: "vpp-contiv-service", Prefix: nb.ContivServicePrefix, Rank: rankContiv, DeleteLast: true,
		Validate: func(_ string, v *vpp_contiv.Service) error { return validateService(v) },
		Equal: func(_ string, desired, applied *vpp_contiv.Service) bool {
			return desired.Maglev == applied.Maglev && contivName(desired.Name) == contivName(applied.Name)
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.Service) { set(op, "add", v, true) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_contiv.Service) { set(op, "change", v, true) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.Service) { set(op, "delete", v, false) },
		Derive: func(_ string, v *vpp_contiv.Service, put func(kind, key string, item any)) {
			for _, b := range v.Backends {
				item := contivBackendOf(v.Id, b)
				put(kindContivBackend, item.key(), item)
			}
		},
		DeriveDiff: func(_ string, from, to *vpp_contiv.Service, put func(kind, key string, item any), del func(key string)) {
			kit.DiffList(from.Backends, to.Backends,
				func(b *vpp_contiv.Service_Backend) contivBackend { return contivBackendOf(to.Id, b) }, contivBackend.key,
				func(item contivBackend) { put(kindContivBackend, item.key(), item) }, del)
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.Service)) {
			dumpContiv(k, op, "services", &contiv.ContivServiceDump{}, func(d *contiv.ContivServiceDetails) {
				emit(nb.ContivServiceKey(d.ID), &vpp_contiv.Service{
					Id: d.ID, Name: d.Name, Maglev: d.Flags&contiv.CONTIV_SERVICE_API_MAGLEV != 0,
				})
			})
		},
	}
}

func validateService(v *vpp_contiv.Service) error {
	var f kit.Faults
	if v.Id == 0 {
		f.Add("id", "is 0, which stands for none")
	}
	v6, seen := false, map[netip.AddrPort]bool{}
	for i, b := range v.Backends {
		field, a := "backends["+strconv.Itoa(i)+"].", kit.Addr(b.GetIp())
		if i == 0 {
			v6 = a.Is6()
		}
		end := netip.AddrPortFrom(a, uint16(b.GetPort()))
		switch {
		case !a.IsValid() || a.IsUnspecified():
			f.Add(field+"ip", "%q is not an address", b.GetIp())
		case a.Is6() != v6:
			f.Add(field+"ip", "%s is not of the family of the first backend", b.GetIp())
		case seen[end]:
			f.Add(field+"ip", "%s is there twice", end)
		}
		if b.GetPort() == 0 || b.GetPort() > 65535 {
			f.Add(field+"port", "%d is not a port", b.GetPort())
		}
		seen[end] = true
	}
	return f.Err()
}

func (k *descriptors) contivBackendDescriptor() scheduler.Descriptor[contivBackend] {
	desc := kit.Item[contivBackend](kindContivBackend, rankContiv+1)
	set := func(op *scheduler.Op, what string, v contivBackend, add bool) {
		req := &contiv.ContivBackendAddDel{IsAdd: add, ServiceID: v.Service, Address: kit.ToAddress(v.End.Addr()), Port: v.End.Port()}
		if v.Masquerade {
			req.Flags |= contiv.CONTIV_BACKEND_API_MASQ
		}
		if v.Kept {
			req.Flags |= contiv.CONTIV_BACKEND_API_KEEP
		}
		k.Do(op, kit.Named(what+" backend "+v.End.String()+" of", "service "+strconv.FormatUint(v.Service, 16)), req,
			fineToDelete(add)...)
	}
	desc.DeleteLast = true // a service always has backends while they are replaced
	desc.Parent = func(_ string, v contivBackend) string { return nb.ContivServiceKey(v.Service) }
	desc.Create = func(op *scheduler.Op, _ string, v contivBackend) { set(op, "add", v, true) }
	desc.Update = func(op *scheduler.Op, _ string, _, v contivBackend) { set(op, "change", v, true) }
	desc.Delete = func(op *scheduler.Op, _ string, v contivBackend) { set(op, "delete", v, false) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, contivBackend)) {
		conn.Dump(k.Lane, &contiv.ContivBackendDump{}, func(d *contiv.ContivBackendDetails) {
			if !d.Draining {
				v := contivBackend{
					Service: d.ServiceID, End: netip.AddrPortFrom(kit.FromAddress(d.Address), d.Port),
					Masquerade: d.Flags&contiv.CONTIV_BACKEND_API_MASQ != 0, Kept: d.Flags&contiv.CONTIV_BACKEND_API_KEEP != 0,
				}
				emit(v.key(), v)
			}
		}, func(err error) { endContivDump(op, "backends", err) })
	}
	return desc
}
