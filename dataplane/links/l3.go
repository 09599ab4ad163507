package links

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
)

const (
	kindRoute = "linux-route"
	kindNeigh = "linux-neighbour"
)

func (b *Backend) routeDescriptor() scheduler.Descriptor[*linux_l3.Route] {
	return scheduler.Descriptor[*linux_l3.Route]{
		Name:     kindRoute,
		Prefix:   nb.LinuxRoutePrefix,
		Rank:     scheduler.RankPodRoute,
		Validate: func(_ string, v *linux_l3.Route) error { _, err := routeOf(v); return err },
		Equal:    func(_ string, desired, applied *linux_l3.Route) bool { return routeEqual(desired, applied) },
		Deps: func(_ string, v *linux_l3.Route, add func(string)) {
			add(nb.LinuxInterfaceStateKey(v.GetOutgoingInterface(), true)) // routes are lost when the link goes down
		},
		Create: func(op *scheduler.Op, key string, v *linux_l3.Route) {
			b.queueRoute(op, key, v, unix.NLM_F_EXCL)
		},
		Update: func(op *scheduler.Op, key string, _, desired *linux_l3.Route) {
			b.queueRoute(op, key, desired, unix.NLM_F_REPLACE)
		},
		CanUpdate: func(_ string, applied, desired *linux_l3.Route) bool {
			return applied.GetMetric() == desired.GetMetric()
		},
		Delete: func(op *scheduler.Op, key string, v *linux_l3.Route) {
			b.queue(deletes, op.Done, func() error { return b.removeRoute(key, v) })
		},
		Dump:      b.dumpRoutes,
		Retriable: retriable,
	}
}

// routeOf parses a route; the error names the invalid field.
func routeOf(v *linux_l3.Route) (routeSpec, error) {
	var r routeSpec
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	if err != nil || dst.Addr().Is4In6() {
		return r, fmt.Errorf("dst_network %q is not a network", v.GetDstNetwork())
	}
	r.dst = dst.Masked()
	if gw := v.GetGwAddr(); gw != "" {
		if r.gw, err = netip.ParseAddr(gw); err != nil || r.gw.Zone() != "" {
			return r, fmt.Errorf("gw_addr %q is not an address", gw)
		}
		if r.gw.Is4() != dst.Addr().Is4() {
			return r, fmt.Errorf("gw_addr %s is not of the family of dst_network %s", gw, dst)
		}
	}
	if v.GetOutgoingInterface() == "" {
		return r, errors.New("outgoing_interface is empty")
	}
	r.metric = v.GetMetric()
	switch v.GetScope() {
	case linux_l3.Route_UNDEFINED:
		if !r.gw.IsValid() {
			r.scope = unix.RT_SCOPE_LINK
		}
	case linux_l3.Route_SITE:
		r.scope = unix.RT_SCOPE_SITE
	case linux_l3.Route_LINK:
		r.scope = unix.RT_SCOPE_LINK
	case linux_l3.Route_HOST:
		r.scope = unix.RT_SCOPE_HOST
	}
	if r.gw.IsValid() && r.scope >= unix.RT_SCOPE_LINK {
		return r, fmt.Errorf("scope %s does not go with gw_addr %s: use GLOBAL", v.GetScope(), r.gw)
	}
	if dst.Addr().Is6() {
		r.scope = unix.RT_SCOPE_UNIVERSE // IPv6 has no scopes
		if r.metric == 0 {
			r.metric = kernelIPv6Metric
		}
	}
	return r, nil
}

func routeEqual(desired, applied *linux_l3.Route) bool {
	d, err1 := routeOf(desired)
	a, err2 := routeOf(applied)
	return err1 == nil && err2 == nil && d == a && desired.GetOutgoingInterface() == applied.GetOutgoingInterface()
}

func (b *Backend) queueRoute(op *scheduler.Op, key string, v *linux_l3.Route, flags int) {
	r, err := routeOf(v)
	if err != nil {
		op.Done(err)
		return
	}
	c := creates
	if r.gw.IsValid() {
		c = dependentCreates
	}
	b.queue(c, op.Done, func() error {
		err := b.onDevice(v.GetOutgoingInterface(), func(h *nsHandle, d *device) error {
			if err := putRoute(h, d.index, r, flags); err != nil {
				return err
			}
			if d.routes == nil {
				d.routes = map[string]routeSpec{}
			}
			d.routes[key] = r
			return nil
		})
		if err != nil {
			return fmt.Errorf("route to %s: %w", r.dst, err)
		}
		return nil
	})
}

// putRoute adds a route, or replaces one to the same destination on the same device.
func putRoute(h *nsHandle, index int32, r routeSpec, flags int) error {
	err := requestRoute(h, index, &r, flags)
	if flags == unix.NLM_F_EXCL && errors.Is(err, unix.EEXIST) {
		return replaceRoute(h, index, r)
	}
	return err
}

// requestRoute adds a route in the kernel. A gateway to which no route leads is assumed to be on the link. If there is no link, the error says that.
func requestRoute(h *nsHandle, index int32, r *routeSpec, flags int) error {
	err := h.sock.exec(newRoute(index, *r, flags))
	unreachable := errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EINVAL)
	if r.gw.IsValid() && unreachable {
		r.onlink = true
		if again := h.sock.exec(newRoute(index, *r, flags)); again == nil || errors.Is(again, unix.EEXIST) || errors.Is(again, unix.ENODEV) {
			err = again
		}
	}
	return err
}

// replaceRoute replaces a route to the same destination on the same device; a route on another device is not ours.
func replaceRoute(h *nsHandle, index int32, r routeSpec) error {
	routes, err := h.sock.routes(0, 0)
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, other := range routes {
		if other.spec.dst == r.dst && other.spec.metric == r.metric && other.index != index && other.index != 0 {
			return fmt.Errorf("a route with metric %d leads through device %d already: %w; give one of them another metric",
				r.metric, other.index, errForeign)
		}
	}
	return putRoute(h, index, r, unix.NLM_F_REPLACE)
}

func (b *Backend) removeRoute(key string, v *linux_l3.Route) error {
	r, err := routeOf(v)
	if err != nil {
		return nil // it never existed
	}
	err = b.onDevice(v.GetOutgoingInterface(), func(h *nsHandle, d *device) error {
		delete(d.routes, key)
		return h.sock.exec(delRoute(d.index, r))
	})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("remove route to %s: %w", r.dst, err)
	}
	return nil
}

func (b *Backend) neighDescriptor() scheduler.Descriptor[*linux_l3.ARPEntry] {
	put := func(op *scheduler.Op, v *linux_l3.ARPEntry) {
		b.queue(creates, op.Done, func() error { return b.putNeigh(v) })
	}
	return scheduler.Descriptor[*linux_l3.ARPEntry]{
		Name:     kindNeigh,
		Prefix:   nb.LinuxARPPrefix,
		Rank:     scheduler.RankPodRoute,
		Validate: func(_ string, v *linux_l3.ARPEntry) error { _, _, err := neighOf(v); return err },
		Equal:    func(_ string, desired, applied *linux_l3.ARPEntry) bool { return neighEqual(desired, applied) },
		Deps: func(_ string, v *linux_l3.ARPEntry, add func(string)) {
			add(nb.LinuxInterfaceStateKey(v.GetInterface(), true)) // neighbours are lost when the link goes down
		},
		Create: func(op *scheduler.Op, _ string, v *linux_l3.ARPEntry) { put(op, v) },
		Update: func(op *scheduler.Op, _ string, _, desired *linux_l3.ARPEntry) { put(op, desired) },
		Delete: func(op *scheduler.Op, _ string, v *linux_l3.ARPEntry) {
			b.queue(deletes, op.Done, func() error { return b.removeNeigh(v) })
		},
		Dump:      b.dumpNeighs,
		Retriable: retriable,
	}
}

// neighOf parses a neighbour; the error names the invalid field.
func neighOf(v *linux_l3.ARPEntry) (netip.Addr, net.HardwareAddr, error) {
	ip, err := netip.ParseAddr(v.GetIpAddress())
	if err != nil || ip.Is4In6() || ip.Zone() != "" {
		return ip, nil, fmt.Errorf("ip_address %q is not an address", v.GetIpAddress())
	}
	mac, err := net.ParseMAC(v.GetHwAddress())
	if err != nil || len(mac) != 6 {
		return ip, nil, fmt.Errorf("hw_address %q is not a MAC address", v.GetHwAddress())
	}
	if v.GetInterface() == "" {
		return ip, nil, errors.New("interface is empty")
	}
	return ip, mac, nil
}

func neighEqual(desired, applied *linux_l3.ARPEntry) bool {
	ip1, mac1, err1 := neighOf(desired)
	ip2, mac2, err2 := neighOf(applied)
	return err1 == nil && err2 == nil && ip1 == ip2 && slices.Equal(mac1, mac2) &&
		desired.GetInterface() == applied.GetInterface()
}

func (b *Backend) putNeigh(v *linux_l3.ARPEntry) error {
	ip, mac, err := neighOf(v)
	if err != nil {
		return err
	}
	err = b.onDevice(v.GetInterface(), func(h *nsHandle, d *device) error {
		if err := h.sock.exec(newNeigh(d.index, ip, mac)); err != nil {
			return err
		}
		if d.neighs == nil {
			d.neighs = map[netip.Addr]net.HardwareAddr{}
		}
		d.neighs[ip] = mac
		return nil
	})
	if err != nil {
		return fmt.Errorf("neighbour %s: %w", ip, err)
	}
	return nil
}

func (b *Backend) removeNeigh(v *linux_l3.ARPEntry) error {
	ip, _, err := neighOf(v)
	if err != nil {
		return nil // it never existed
	}
	err = b.onDevice(v.GetInterface(), func(h *nsHandle, d *device) error {
		delete(d.neighs, ip)
		return h.sock.exec(delNeigh(d.index, ip))
	})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("remove neighbour %s: %w", ip, err)
	}
	return nil
}
