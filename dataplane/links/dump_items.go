package links

import (
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/nb"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
)

func (b *Backend) dumpUp(op *scheduler.DumpOp, emit func(key string, v *linkUp)) {
	requested := requestedNames(op)
	desired := map[string]bool{}
	op.EachDesired(func(_ string, v any) {
		if u, ok := v.(*linkUp); ok {
			desired[u.logical] = true
		}
	})
	b.queueDump(op, false, func(s *snapshot) error {
		return b.eachDevice(requested, func(d *device) error {
			sp, err := s.of(d, "states", func(*space, int32) error { return nil })
			if sp == nil || err != nil {
				return err
			}
			for _, l := range sp.links {
				if l.index == d.index && enabledUp(l) && (d.tagged() || desired[d.logical]) {
					emit(nb.LinuxInterfaceStateKey(d.logical, true), &linkUp{d.logical})
				}
			}
			return nil
		})
	})
}

func (b *Backend) dumpAddrs(op *scheduler.DumpOp, emit func(key string, v *address)) {
	requested := requestedNames(op)
	type id struct {
		logical string
		prefix  netip.Prefix
	}
	type want struct {
		key  string
		item *address
	}
	desired := map[id]want{}
	op.EachDesired(func(key string, v any) {
		if a, ok := v.(*address); ok {
			desired[id{a.logical, a.prefix}] = want{key, a}
		}
	})
	b.queueDump(op, false, func(s *snapshot) error {
		return b.eachDevice(requested, func(d *device) error {
			sp, err := s.of(d, "addresses", func(sp *space, index int32) error {
				list, err := sp.h.sock.addrs(index)
				sp.addrs = append(sp.addrs, list...)
				return err
			})
			if sp == nil || err != nil {
				return err
			}
			up := slices.ContainsFunc(sp.links, func(l linkInfo) bool { return l.index == d.index && enabledUp(l) })
			for _, a := range sp.addrs {
				if a.index != d.index {
					continue
				}
				item := &address{logical: d.logical, prefix: a.prefix, afterUp: up && a.prefix.Addr().Is6()}
				if w, ok := desired[id{d.logical, a.prefix}]; ok {
					// An address that is still present after its link went down and up is equivalent.
					item.afterUp = w.item.afterUp
					emit(w.key, item)
				} else if a.ours {
					emit(nb.LinuxInterfaceAddressKey(d.logical, nb.AddressStatic, a.prefix.String()), item)
				}
			}
			return nil
		})
	})
}

func (b *Backend) dumpRoutes(op *scheduler.DumpOp, emit func(key string, v *linux_l3.Route)) {
	requested := requestedNames(op)
	b.queueDump(op, false, func(s *snapshot) error {
		return b.eachDevice(requested, func(d *device) error {
			sp, err := s.of(d, "routes", func(sp *space, index int32) error {
				list, err := sp.h.sock.routes(index, protocol)
				sp.routes = append(sp.routes, list...)
				return err
			})
			if sp == nil || err != nil {
				return err
			}
			d.routes = map[string]routeSpec{}
			for _, r := range sp.routes {
				if r.index != d.index || r.proto != protocol {
					continue
				}
				v := routeValue(d.logical, r.spec)
				key := nb.LinuxRouteKey(v.GetDstNetwork(), d.logical)
				r.spec.onlink = false
				d.routes[key] = r.spec
				emit(key, v)
			}
			return nil
		})
	})
}

func routeValue(logical string, r routeSpec) *linux_l3.Route {
	v := &linux_l3.Route{
		OutgoingInterface: logical, DstNetwork: r.dst.String(), Metric: r.metric, Scope: linux_l3.Route_GLOBAL,
	}
	if r.gw.IsValid() {
		v.GwAddr = r.gw.String()
	}
	switch {
	case r.dst.Addr().Is6() && !r.gw.IsValid():
		v.Scope = linux_l3.Route_LINK
	case r.scope == unix.RT_SCOPE_LINK:
		v.Scope = linux_l3.Route_LINK
	case r.scope == unix.RT_SCOPE_SITE:
		v.Scope = linux_l3.Route_SITE
	case r.scope == unix.RT_SCOPE_HOST:
		v.Scope = linux_l3.Route_HOST
	}
	return v
}

func (b *Backend) dumpNeighs(op *scheduler.DumpOp, emit func(key string, v *linux_l3.ARPEntry)) {
	requested := requestedNames(op)
	type id struct {
		logical string
		ip      netip.Addr
	}
	desired := map[id]string{}
	op.EachDesired(func(key string, v any) {
		e, ok := v.(*linux_l3.ARPEntry)
		if !ok {
			return
		}
		if ip, _, err := neighOf(e); err == nil {
			desired[id{e.GetInterface(), ip}] = key
		}
	})
	b.queueDump(op, false, func(s *snapshot) error {
		return b.eachDevice(requested, func(d *device) error {
			sp, err := s.of(d, "neighbours", func(sp *space, index int32) error {
				list, err := sp.h.sock.neighs(index)
				sp.neighs = append(sp.neighs, list...)
				return err
			})
			if sp == nil || err != nil {
				return err
			}
			d.neighs = map[netip.Addr]net.HardwareAddr{}
			for _, n := range sp.neighs {
				key, wanted := desired[id{d.logical, n.ip}]
				if n.index != d.index || !wanted && !n.ours {
					continue
				}
				if !wanted {
					key = nb.LinuxARPKey(d.logical, n.ip.String())
				}
				d.neighs[n.ip] = n.mac
				emit(key, &linux_l3.ARPEntry{Interface: d.logical, IpAddress: n.ip.String(), HwAddress: n.mac.String()})
			}
			return nil
		})
	})
}
