package l3

import (
	"fmt"
	"net/netip"
	"strconv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// routeDescriptor returns the descriptor of routes. A northbound route is one path. VPP keeps the paths of one destination together, so a route is
// always added as a further path and removed as one of the paths; VPP deletes the destination with its last path. Either operation is one
// request.
func (k *descriptors) routeDescriptor() scheduler.Descriptor[*vpp_l3.Route] {
	return scheduler.Descriptor[*vpp_l3.Route]{
		Name: "vpp-route", Prefix: nb.RoutePrefix, Rank: scheduler.RankRoute,
		Validate: func(_ string, v *vpp_l3.Route) error { return validateRoute(v) },
		Equal:    func(_ string, desired, applied *vpp_l3.Route) bool { return sameRoute(desired, applied) },
		Deps:     func(_ string, v *vpp_l3.Route, add func(string)) { routeDeps(v, add) },
		Create:   func(op *scheduler.Op, _ string, v *vpp_l3.Route) { k.putRoute(op, "add", v, true) },
		Update: func(op *scheduler.Op, _ string, applied, desired *vpp_l3.Route) {
			// For VPP a path with another weight is the same path, and adding it changes nothing.
			both := kit.Join(2, op.Done)
			k.putRoute(scheduler.NewOp(both), "replace", applied, false)
			k.putRoute(scheduler.NewOp(both), "replace", desired, true)
		},
		Delete: func(op *scheduler.Op, _ string, v *vpp_l3.Route) { k.putRoute(op, "delete", v, false) },
		Dump:   k.dumpRoutes,
	}
}

func validateRoute(v *vpp_l3.Route) error {
	var f kit.Faults
	dst, err := netip.ParsePrefix(v.DstNetwork)
	if err != nil {
		f.Add("dst_network", "%q is not an address with a mask length", v.DstNetwork)
	} else if dst.Addr().Is4In6() {
		f.Add("dst_network", "%q is an IPv4 network written as IPv6", v.DstNetwork)
	}
	gw := kit.Addr(v.NextHopAddr)
	if v.NextHopAddr != "" {
		switch {
		case !gw.IsValid():
			f.Add("next_hop_addr", "%q is not an address", v.NextHopAddr)
		case err == nil && gw.Is4() != dst.Addr().Is4():
			f.Add("next_hop_addr", "%s is not of the family of dst_network %s", gw, dst)
		}
	}
	hasGW := gw.IsValid() && !gw.IsUnspecified()
	switch v.Type {
	case vpp_l3.Route_INTRA_VRF:
		if !hasGW && v.OutgoingInterface == "" {
			f.Add("next_hop_addr", "is empty, and so is outgoing_interface")
		}
	case vpp_l3.Route_INTER_VRF:
		if v.OutgoingInterface != "" {
			f.Add("outgoing_interface", "not supported for an INTER_VRF route: the table via_vrf_id determines it")
		}
		if v.ViaVrfId == v.VrfId {
			f.Add("via_vrf_id", "%d is vrf_id, too: the route would lead back to its own table", v.ViaVrfId)
		}
	case vpp_l3.Route_DROP:
	case vpp_l3.Route_REJECT:
		if v.VrfId != 0 { // VPP uses local0, of table 0, as the interface of such a route, and crashes in another table
			f.Add("type", "VPP 25.10 can reject in table 0 only: route to an address that table 0 rejects")
		}
	default:
		f.Add("type", "%d is not known", v.Type)
	}
	if v.Weight > 255 {
		f.Add("weight", "%d is more than 255", v.Weight)
	}
	if v.Preference > 255 {
		f.Add("preference", "%d is more than 255", v.Preference)
	}
	return f.Err()
}

func routeDeps(v *vpp_l3.Route, add func(string)) {
	protocol := vpp_l3.VrfTable_IPV6
	if dst, err := netip.ParsePrefix(v.DstNetwork); err == nil && dst.Addr().Is4() {
		protocol = vpp_l3.VrfTable_IPV4
	}
	if v.VrfId != 0 {
		add(nb.VrfTableKey(v.VrfId, protocol))
	}
	if v.Type == vpp_l3.Route_INTER_VRF && v.ViaVrfId != 0 {
		add(nb.VrfTableKey(v.ViaVrfId, protocol))
	}
	if v.OutgoingInterface != "" {
		add(nb.VppInterfaceKey(v.OutgoingInterface))
	}
}

// routeWeight returns the weight of a route: VPP treats 0 as 1.
func routeWeight(v *vpp_l3.Route) uint32 { return max(v.Weight, 1) }

// sameRoute compares two routes with the same key, that is with the same table, destination, interface and gateway.
func sameRoute(a, b *vpp_l3.Route) bool {
	if a == b {
		return true
	}
	if a.Type != b.Type || a.VrfId != b.VrfId || !kit.SameAddr(a.NextHopAddr, b.NextHopAddr) {
		return false
	}
	if a.Type == vpp_l3.Route_DROP || a.Type == vpp_l3.Route_REJECT {
		return true
	}
	return a.OutgoingInterface == b.OutgoingInterface && routeWeight(a) == routeWeight(b) && a.Preference == b.Preference &&
		(a.Type != vpp_l3.Route_INTER_VRF || a.ViaVrfId == b.ViaVrfId)
}

func routeObject(what string, v *vpp_l3.Route) kit.Object {
	name := "route " + v.DstNetwork + " in table " + strconv.FormatUint(uint64(v.VrfId), 10)
	if v.NextHopAddr != "" {
		name += " via " + v.NextHopAddr
	}
	return kit.Named(what, name)
}

func (k *descriptors) putRoute(op *scheduler.Op, what string, v *vpp_l3.Route, add bool) {
	dst, err := netip.ParsePrefix(v.DstNetwork)
	if err != nil {
		op.Done(routeObject(what, v).Wrap(err))
		return
	}
	req := &routeMessage{}
	req.IsAdd, req.IsMultipath = add, true
	req.Route.TableID, req.Route.Prefix = v.VrfId, kit.ToPrefix(dst.Masked())
	req.paths[0] = fib_types.FibPath{
		SwIfIndex: kit.None, TableID: v.VrfId, RpfID: kit.None, Weight: uint8(routeWeight(v)), Preference: uint8(v.Preference),
		Proto: fib_types.FIB_API_PATH_NH_PROTO_IP6,
	}
	p := &req.paths[0]
	if dst.Addr().Is4() {
		p.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP4
	}
	req.Route.Paths = req.paths[:]
	switch v.Type {
	case vpp_l3.Route_DROP:
		p.Type, p.Weight, p.Preference = fib_types.FIB_API_PATH_TYPE_DROP, 1, 0
	case vpp_l3.Route_REJECT: // with the ICMP code that makes connect fail immediately for UDP, too
		p.Type, p.Weight, p.Preference = fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT, 1, 0
	case vpp_l3.Route_INTER_VRF:
		p.TableID = v.ViaVrfId
		p.Nh.Address = nextHop(v.NextHopAddr)
	default:
		p.Nh.Address = nextHop(v.NextHopAddr)
		if v.OutgoingInterface != "" {
			index, ok := k.idx.IfIndex(v.OutgoingInterface)
			switch {
			case !ok && !add:
				kit.Gone(op) // VPP drops the paths of a deleted interface
				return
			case !ok:
				k.Missing(op, routeObject(what, v), v.OutgoingInterface)
				return
			}
			p.SwIfIndex = index
		}
	}
	k.Invalidate()
	k.Lane.Request(&req.IPRouteAddDelV2, func(_ api.Message, err error) {
		if err == nil || (!add && conn.IsRetval(err, api.NO_SUCH_FIB)) {
			op.Done(nil)
			return
		}
		op.Done(routeObject(what, v).Wrap(err))
	})
}

// routeMessage is a request with space for its path, in one allocation.
type routeMessage struct {
	ip.IPRouteAddDelV2
	paths [1]fib_types.FibPath
}

func nextHop(s string) ip_types.AddressUnion {
	a := kit.Addr(s)
	switch {
	case !a.IsValid():
		return ip_types.AddressUnion{}
	case a.Is4():
		return ip_types.AddressUnionIP4(a.As4())
	}
	return ip_types.AddressUnionIP6(a.As16())
}

// dumpRoutes emits the API's routes in table 0 and in the tables that we use, except paths over interfaces that are not ours. VPP reports
// only the preferred source of a destination, so it does not report a route that is hidden by a connected subnet.
func (k *descriptors) dumpRoutes(op *scheduler.DumpOp, emit func(string, *vpp_l3.Route)) {
	fail := func(err error) { op.Done(fmt.Errorf("vpp: dump routes: %w", err)) }
	k.ifs.Snapshot(op, func(_ *iface.Snapshot, err error) {
		if err != nil {
			fail(err)
			return
		}
		r := &routeDump{k: k, keys: desiredRoutes(op), emit: emit}
		requested := tablesOf(op)
		both := kit.Join(2, func(err error) {
			if err != nil {
				fail(err)
				return
			}
			r.dump(func(err error) {
				if err != nil {
					fail(err)
					return
				}
				op.Done(nil)
			})
		})
		conn.Dump(k.Lane, &fib.FibSourceDump{}, func(d *fib.FibSourceDetails) {
			if d.Src.Name == "API" {
				r.source = d.Src.ID
			}
		}, both)
		conn.Dump(k.Lane, &ip.IPTableDump{}, func(d *ip.IPTableDetails) {
			if requested(d.Table) {
				r.tables = append(r.tables, d.Table)
			}
		}, both)
	})
}

// tablesOf returns a function that reports whether a dump must read a table: table 0, our tables, and foreign tables that have routes of
// ours (see holds). A partial dump reads only tables that contain a requested route.
func tablesOf(op *scheduler.DumpOp) func(ip.IPTable) bool {
	var expected map[tableID]bool
	return func(t ip.IPTable) bool {
		if _, ours := kit.NameOfTag(t.Name); !op.Partial() && (ours || t.TableID == 0) {
			return true
		}
		if expected == nil {
			expected = map[tableID]bool{}
			op.EachDesired(func(_ string, v any) {
				r := v.(*vpp_l3.Route)
				if dst, err := netip.ParsePrefix(r.DstNetwork); err == nil {
					expected[tableID{r.VrfId, dst.Addr().Is6()}] = true
				}
			})
		}
		return expected[tableID{t.TableID, t.IsIP6}]
	}
}

// desiredRoutes maps the keys that a dump produces to those under which the values are desired, where they differ: a desired key has the
// gateway as it was written in the value.
func desiredRoutes(op *scheduler.DumpOp) map[string]string {
	var keys map[string]string
	op.EachDesired(func(key string, v any) {
		r := v.(*vpp_l3.Route)
		gw := kit.Addr(r.NextHopAddr)
		if gw.IsValid() == (r.NextHopAddr != "") && (!gw.IsValid() || gw.String() == r.NextHopAddr) {
			return
		}
		if dst, err := netip.ParsePrefix(r.DstNetwork); err == nil {
			if keys == nil {
				keys = map[string]string{}
			}
			keys[nb.RouteKeyFor(r.OutgoingInterface, r.VrfId, dst, gw)] = key
		}
	})
	return keys
}

type routeDump struct {
	k      *descriptors
	source uint8 // ID of the source "API"
	tables []ip.IPTable
	keys   map[string]string
	emit   func(string, *vpp_l3.Route)
}

func (r *routeDump) dump(done func(error)) {
	switch {
	case r.source == 0:
		done(fmt.Errorf("VPP has no route source called API"))
		return
	case len(r.tables) == 0:
		done(nil)
		return
	}
	part := kit.Join(len(r.tables), done)
	for _, t := range r.tables {
		r.of(t, part)
	}
}

// of emits the routes of a table.
func (r *routeDump) of(t ip.IPTable, done func(error)) {
	conn.Dump(r.k.Lane, &ip.IPRouteV2Dump{Src: r.source, Table: t}, func(d *ip.IPRouteV2Details) {
		dst := kit.FromPrefix(d.Route.Prefix)
		for i := range d.Route.Paths {
			if v := r.route(t.TableID, dst, &d.Route.Paths[i]); v != nil {
				key := nb.RouteKeyFor(v.OutgoingInterface, v.VrfId, dst, kit.Addr(v.NextHopAddr))
				if other, ok := r.keys[key]; ok {
					key = other
				}
				r.emit(key, v)
			}
		}
	}, done)
}

// route converts a path to a northbound route; nil if we cannot have made the path.
func (r *routeDump) route(table uint32, dst netip.Prefix, p *fib_types.FibPath) *vpp_l3.Route {
	v := &vpp_l3.Route{VrfId: table, DstNetwork: dst.String(), Weight: uint32(p.Weight), Preference: uint32(p.Preference)}
	switch p.Type {
	case fib_types.FIB_API_PATH_TYPE_DROP:
		v.Type, v.Weight, v.Preference = vpp_l3.Route_DROP, 0, 0
		return v
	case fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
		v.Type, v.Weight, v.Preference = vpp_l3.Route_REJECT, 0, 0
		return v
	case fib_types.FIB_API_PATH_TYPE_NORMAL:
	default:
		return nil
	}
	var gw netip.Addr
	switch p.Proto {
	case fib_types.FIB_API_PATH_NH_PROTO_IP4:
		gw = netip.AddrFrom4(p.Nh.Address.GetIP4())
	case fib_types.FIB_API_PATH_NH_PROTO_IP6:
		gw = netip.AddrFrom16(p.Nh.Address.GetIP6())
	default:
		return nil
	}
	if !gw.IsUnspecified() {
		v.NextHopAddr = gw.String()
	}
	switch {
	case p.SwIfIndex != kit.None:
		name, ours := r.k.idx.NameByIndex(p.SwIfIndex)
		if !ours {
			return nil
		}
		v.OutgoingInterface = name
	case v.NextHopAddr == "" || p.TableID != table:
		v.Type, v.ViaVrfId = vpp_l3.Route_INTER_VRF, p.TableID
	}
	return v
}
