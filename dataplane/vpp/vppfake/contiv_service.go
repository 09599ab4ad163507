package vppfake

import (
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

func registerContivServices(t *table) {
	on(t, writes, contivServiceAddDel)
	dump(t, contivServiceDump)
	on(t, writes, contivBackendAddDel)
	dump(t, contivBackendDump)
	on(t, writes, contivFrontendAddDel)
	dump(t, contivFrontendDump)
	on(t, writes, contivRangeAddDel)
	dump(t, func(c *call, _ *contiv.ContivRangeDump, send func(*contiv.ContivRangeDetails)) {
		for r := range c.contiv.ranges {
			send(&contiv.ContivRangeDetails{ID: r.set, Prefix: apiPrefix(r.prefix)})
		}
	})
}

func contivServiceAddDel(c *call, q *contiv.ContivServiceAddDel) *contiv.ContivServiceAddDelReply {
	s, rv := c.contiv.services[q.ID], int32(0)
	switch {
	case q.IsAdd && (q.ID == 0 || q.Flags&^contiv.CONTIV_SERVICE_API_MAGLEV != 0):
		rv = rvInvalidValue
	case q.IsAdd && s == nil:
		c.contiv.services[q.ID] = &contivService{name: q.Name, flags: q.Flags}
	case q.IsAdd:
		s.name, s.flags = q.Name, q.Flags
	case s == nil:
		rv = rvNoSuchEntry
	default:
		delete(c.contiv.services, q.ID)
		for _, b := range s.backends {
			c.contiv.leave(b)
		}
	}
	return &contiv.ContivServiceAddDelReply{Retval: rv}
}

func contivServiceDump(c *call, _ *contiv.ContivServiceDump, send func(*contiv.ContivServiceDetails)) {
	c.contiv.sweep(c.now())
	for id, s := range c.contiv.services {
		n := len(s.backends)
		if !s.emptying.IsZero() {
			n = 0
		}
		send(&contiv.ContivServiceDetails{ID: id, Name: s.name, Flags: s.flags, NBackends: uint32(n)})
	}
}

// contivStay is the time for which the last backend of a service stays after its removal, since another one may replace it.
const contivStay = 250 * time.Millisecond

// empty removes the last backend of a service.
func (c *contivState) empty(s *contivService) {
	c.leave(s.backends[0])
	s.backends, s.emptying = nil, time.Time{}
}

// leave marks a backend as removed; if it has open connections it stays as draining.
func (c *contivState) leave(b *contivBackend) {
	b.gone = true
	if b.conns > 0 {
		c.conns.draining = append(c.conns.draining, b)
	}
}

func contivBackendAddDel(c *call, q *contiv.ContivBackendAddDel) *contiv.ContivBackendAddDelReply {
	refuse := func(rv int32) *contiv.ContivBackendAddDelReply { return &contiv.ContivBackendAddDelReply{Retval: rv} }
	a, ok := contivAddr(q.Address)
	if !ok || q.Port == 0 || q.Flags&^(contiv.CONTIV_BACKEND_API_MASQ|contiv.CONTIV_BACKEND_API_KEEP) != 0 {
		return refuse(rvInvalidValue)
	}
	s := c.contiv.services[q.ServiceID]
	if s == nil {
		return refuse(rvNoSuchEntry)
	}
	end := netip.AddrPortFrom(a, q.Port)
	masq, kept := q.Flags&contiv.CONTIV_BACKEND_API_MASQ != 0, q.Flags&contiv.CONTIV_BACKEND_API_KEEP != 0
	at, found := slices.BinarySearchFunc(s.backends, end, func(b *contivBackend, end netip.AddrPort) int { return b.end.Compare(end) })
	now := c.now()
	c.contiv.sweep(now)
	switch {
	case q.IsAdd && found:
		s.backends[at].masq, s.backends[at].kept, s.emptying = masq, kept, time.Time{}
	case q.IsAdd:
		if !s.emptying.IsZero() { // the backend to be removed has waited for its replacement
			c.contiv.empty(s)
			at = 0
		}
		s.backends = slices.Insert(s.backends, at, &contivBackend{service: q.ServiceID, end: end, masq: masq, kept: kept})
	case !found, !s.emptying.IsZero():
		return refuse(rvNoSuchEntry)
	case len(s.backends) == 1:
		s.emptying = now
	default:
		c.contiv.leave(s.backends[at])
		s.backends = slices.Delete(s.backends, at, at+1)
	}
	return refuse(0)
}

func contivBackendDump(c *call, q *contiv.ContivBackendDump, send func(*contiv.ContivBackendDetails)) {
	c.contiv.sweep(c.now())
	report := func(b *contivBackend, leaving bool) {
		if q.ServiceID != 0 && q.ServiceID != b.service {
			return
		}
		d := &contiv.ContivBackendDetails{
			ServiceID: b.service, Address: apiAddress(b.end.Addr()), Port: b.end.Port(), Draining: b.gone || leaving, Connections: uint32(b.conns),
		}
		if b.masq {
			d.Flags |= contiv.CONTIV_BACKEND_API_MASQ
		}
		if b.kept {
			d.Flags |= contiv.CONTIV_BACKEND_API_KEEP
		}
		send(d)
	}
	for _, s := range c.contiv.services {
		for _, b := range s.backends {
			report(b, !s.emptying.IsZero())
		}
	}
	for _, b := range c.contiv.conns.draining {
		report(b, true)
	}
}

func contivFrontendAddDel(c *call, q *contiv.ContivFrontendAddDel) *contiv.ContivFrontendAddDelReply {
	a, ok := contivAddr(q.Address)
	at := contivPlace{netip.AddrPortFrom(a, q.Port), q.Protocol}
	f, rv := c.contiv.frontends[at], int32(0)
	switch {
	case !ok, q.IsAdd && !contivValidFrontend(q):
		rv = rvInvalidValue
	case q.IsAdd && f == nil:
		c.contiv.frontends[at] = &contivFrontend{set: q}
	case q.IsAdd:
		f.set = q
	case f == nil:
		rv = rvNoSuchEntry
	default:
		delete(c.contiv.frontends, at)
	}
	return &contiv.ContivFrontendAddDelReply{Retval: rv}
}

func contivValidFrontend(q *contiv.ContivFrontendAddDel) bool {
	whole := q.Port == 0
	for _, t := range []contiv.ContivTarget{q.InCluster, q.Outside} {
		balance := t.Action == contiv.CONTIV_ACTION_API_BALANCE
		if t.Action < contiv.CONTIV_ACTION_API_BALANCE || t.Action > contiv.CONTIV_ACTION_API_DROP ||
			t.Flags&^contiv.CONTIV_TARGET_API_MASQ != 0 || balance && t.ServiceID == 0 || whole && t.ServiceID != 0 {
			return false
		}
	}
	switch {
	case (q.AffinityGroup != 0) != (q.AffinityTimeout != 0), q.AffinityTimeout > contivMaxAffinity:
		return false
	case whole:
		return q.Protocol == 0
	}
	return q.Protocol == ProtoTCP || q.Protocol == ProtoUDP || q.Protocol == ProtoSCTP
}

func contivFrontendDump(c *call, _ *contiv.ContivFrontendDump, send func(*contiv.ContivFrontendDetails)) {
	for _, f := range c.contiv.frontends {
		q := f.set
		send(&contiv.ContivFrontendDetails{
			Address: q.Address, Port: q.Port, Protocol: q.Protocol, Name: q.Name, InCluster: q.InCluster, Outside: q.Outside,
			Ranges: q.Ranges, AffinityGroup: q.AffinityGroup, AffinityTimeout: q.AffinityTimeout, NewConnections: f.new,
		})
	}
}

func contivRangeAddDel(c *call, q *contiv.ContivRangeAddDel) *contiv.ContivRangeAddDelReply {
	p, ok := contivPrefix(q.Prefix)
	r, rv := contivRange{q.ID, p}, int32(0)
	switch {
	case !ok || q.ID == 0:
		rv = rvInvalidValue
	case q.IsAdd:
		c.contiv.ranges[r] = true
	case !c.contiv.ranges[r]:
		rv = rvNoSuchEntry
	default:
		delete(c.contiv.ranges, r)
	}
	return &contiv.ContivRangeAddDelReply{Retval: rv}
}

// inRanges reports whether a set contains the address.
func (c *contivState) inRanges(set uint64, a netip.Addr) bool {
	for r := range c.ranges {
		if r.set == set && r.prefix.Contains(a) {
			return true
		}
	}
	return false
}
