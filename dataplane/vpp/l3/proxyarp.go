package l3

import (
	"fmt"
	"net/netip"
	"strconv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

type (
	proxyIf    struct{ If string }
	proxyRange struct {
		Low, High netip.Addr
		VRF       uint32
	}
)

const (
	kindProxyIf    = "vpp-proxyarp-interface"
	kindProxyRange = "vpp-proxyarp-range"
)

// proxyARPDescriptor returns a descriptor that consists of its items only: VPP has no object for the whole.
func (k *descriptors) proxyARPDescriptor() scheduler.Descriptor[*vpp_l3.ProxyARP] {
	done := func(op *scheduler.Op, _ string, _ *vpp_l3.ProxyARP) { op.Done(nil) }
	return scheduler.Descriptor[*vpp_l3.ProxyARP]{
		Name: "vpp-proxyarp", Prefix: nb.ProxyARPKey, Rank: scheduler.RankNeighbour,
		Validate: func(_ string, v *vpp_l3.ProxyARP) error { return validateProxyARP(v) },
		Equal:    func(string, *vpp_l3.ProxyARP, *vpp_l3.ProxyARP) bool { return true },
		Create:   done,
		Delete:   done,
		Derive: func(_ string, v *vpp_l3.ProxyARP, put func(string, string, any)) {
			for _, i := range v.Interfaces {
				put(kindProxyIf, nb.ProxyARPInterfaceKey(i.GetName()), proxyIf{i.GetName()})
			}
			for _, r := range v.Ranges {
				item := proxyRange{kit.Addr(r.GetFirstIpAddr()), kit.Addr(r.GetLastIpAddr()), r.GetVrfId()}
				put(kindProxyRange, item.key(), item)
			}
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_l3.ProxyARP)) {
			op.EachDesired(func(key string, v any) { emit(key, v.(*vpp_l3.ProxyARP)) })
			op.Done(nil)
		},
	}
}

func validateProxyARP(v *vpp_l3.ProxyARP) error {
	var f kit.Faults
	for i, p := range v.Interfaces {
		f.Name("interfaces["+strconv.Itoa(i)+"].name", p.GetName())
	}
	for i, r := range v.Ranges {
		field := "ranges[" + strconv.Itoa(i) + "]"
		first, last := kit.Addr(r.GetFirstIpAddr()), kit.Addr(r.GetLastIpAddr())
		if !first.Is4() {
			f.Add(field+".first_ip_addr", "%q is not an IPv4 address", r.GetFirstIpAddr())
		}
		if !last.Is4() {
			f.Add(field+".last_ip_addr", "%q is not an IPv4 address", r.GetLastIpAddr())
		}
		if first.Is4() && last.Is4() && last.Less(first) {
			f.Add(field+".last_ip_addr", "%s is before first_ip_addr %s", last, first)
		}
	}
	return f.Err()
}

func (r proxyRange) key() string {
	return "vpp/proxyarp/range/" + r.Low.String() + "-" + r.High.String() + "/vrf/" + strconv.FormatUint(uint64(r.VRF), 10)
}

func (k *descriptors) proxyIfDescriptor() scheduler.Descriptor[proxyIf] {
	set := func(op *scheduler.Op, v proxyIf, on bool) {
		index, ok := k.idx.IfIndex(v.If)
		switch {
		case !ok && on:
			k.Missing(op, iface.Named("enable proxy ARP on", v.If), v.If)
			return
		case !ok:
			kit.Gone(op)
			return
		}
		k.Do(op, iface.Named("set proxy ARP on", v.If), &arp.ProxyArpIntfcEnableDisable{
			SwIfIndex: interface_types.InterfaceIndex(index), Enable: on,
		})
	}
	desc := kit.Item[proxyIf](kindProxyIf, scheduler.RankNeighbour)
	desc.ImpliedByParent = false
	desc.Parent = func(string, proxyIf) string { return nb.ProxyARPKey }
	desc.Deps = func(_ string, v proxyIf, add func(string)) { add(nb.VppInterfaceKey(v.If)) }
	desc.Create = func(op *scheduler.Op, _ string, v proxyIf) { set(op, v, true) }
	desc.Delete = func(op *scheduler.Op, _ string, v proxyIf) { set(op, v, false) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, proxyIf)) {
		k.ifs.Snapshot(op, func(_ *iface.Snapshot, err error) {
			if err != nil {
				op.Done(fmt.Errorf("vpp: dump proxy ARP: %w", err))
				return
			}
			conn.Dump(k.Lane, &arp.ProxyArpIntfcDump{}, func(d *arp.ProxyArpIntfcDetails) {
				if name, ours := k.idx.NameByIndex(d.SwIfIndex); ours {
					emit(nb.ProxyARPInterfaceKey(name), proxyIf{name})
				}
			}, func(err error) { op.Done(kit.Named("dump", "proxy ARP").Wrap(err)) })
		})
	}
	return desc
}

// proxyRangeDescriptor returns the descriptor of ranges. VPP does not tag ranges; all of them are ours, since no other
// part of VPP makes any.
func (k *descriptors) proxyRangeDescriptor() scheduler.Descriptor[proxyRange] {
	set := func(op *scheduler.Op, v proxyRange, add bool) {
		o := kit.Named("set proxy ARP for", v.Low.String()+"-"+v.High.String())
		req := &arp.ProxyArpAddDel{IsAdd: add, Proxy: arp.ProxyArp{TableID: v.VRF, Low: v.Low.As4(), Hi: v.High.As4()}}
		if add {
			k.Do(op, o, req)
			return
		}
		k.Do(op, o, req, api.NO_SUCH_ENTRY, api.NO_SUCH_FIB)
	}
	desc := kit.Item[proxyRange](kindProxyRange, scheduler.RankNeighbour)
	desc.ImpliedByParent = false
	desc.Parent = func(string, proxyRange) string { return nb.ProxyARPKey }
	desc.Deps = func(_ string, v proxyRange, add func(string)) {
		if v.VRF != 0 {
			add(nb.VrfTableKey(v.VRF, vpp_l3.VrfTable_IPV4))
		}
	}
	desc.Create = func(op *scheduler.Op, _ string, v proxyRange) { set(op, v, true) }
	desc.Delete = func(op *scheduler.Op, _ string, v proxyRange) { set(op, v, false) }
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, proxyRange)) {
		conn.Dump(k.Lane, &arp.ProxyArpDump{}, func(d *arp.ProxyArpDetails) {
			v := proxyRange{netip.AddrFrom4(d.Proxy.Low), netip.AddrFrom4(d.Proxy.Hi), d.Proxy.TableID}
			emit(v.key(), v)
		}, func(err error) { op.Done(kit.Named("dump", "proxy ARP").Wrap(err)) })
	}
	return desc
}
