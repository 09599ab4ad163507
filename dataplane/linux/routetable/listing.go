package routetable

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// maxVerify is the maximum number of links that are listed one by one; with more of them everything is listed once.
const maxVerify = 8

// readKernel reads the kernel's state: all of it, or that of the links that have come up again.
func (t *Table) readKernel() error {
	if t.resync || len(t.verify) > maxVerify {
		if err := t.lookAt(0); err != nil {
			return err
		}
		t.resync = false
		clear(t.verify)
		return nil
	}
	for index := range t.verify {
		if !t.usable(index) {
			continue
		}
		if err := t.lookAt(index); err != nil {
			return err
		}
		delete(t.verify, index)
	}
	return nil
}

// lookAt lists the routes and neighbours of a link, or with index 0 of all links.
func (t *Table) lookAt(index int) error {
	began := t.now()
	protocol := t.protocol
	if t.cfg.RemoveExternal {
		protocol = 0
	}
	routes, err := t.kernel.Routes(protocol, index)
	if err != nil {
		return fmt.Errorf("IPv%d: %w", t.cfg.Family, err)
	}
	neighs, err := t.kernel.Neighbours(t.protocol, index)
	if err != nil {
		return fmt.Errorf("IPv%d: %w", t.cfg.Family, err)
	}
	t.takeRoutes(index, routes)
	t.takeNeighbours(index, neighs)
	t.log.Debug("routes are listed", "family", t.cfg.Family, "link", index, "routes", len(routes), "neighbours", len(neighs),
		"took", t.now().Sub(began))
	return nil
}

func (t *Table) takeRoutes(index int, routes []route) {
	var were []*entry
	for _, e := range t.entries {
		if e.there && (index == 0 || e.actual.index == index) {
			e.there = false
		}
		were = append(were, e)
	}
	strays := t.strays[:0]
	for _, r := range t.strays {
		if index != 0 && r.index != index {
			strays = append(strays, r)
		}
	}
	t.strays = strays
	for _, r := range routes {
		if t.isOurs(r) {
			t.takeRoute(r)
		}
	}
	for _, e := range were {
		if e.differs() {
			t.markTodo(e)
		}
	}
}

// takeRoute records a route of the kernel. An entry has one route; further ones are strays.
func (t *Table) takeRoute(r route) {
	if t.seen[r.index].IsZero() {
		t.seen[r.index] = t.now()
	}
	usual := r.metric == t.metric() && r.tos == 0 && !r.odd &&
		(r.typ == unix.RTN_UNICAST || r.typ == unix.RTN_BLACKHOLE || r.typ == unix.RTN_THROW)
	if !usual {
		t.strays = append(t.strays, r)
		return
	}
	e := t.entryOf(r.dst)
	switch {
	case !e.there:
		e.actual, e.there = r, true
	case e.wanted && r == e.goal:
		t.strays = append(t.strays, e.actual)
		e.actual = r
	default:
		t.strays = append(t.strays, r)
	}
	if e.wanted && e.actual == e.goal && e.goal.host() {
		e.served, e.servedBy = true, e.servingLink()
	}
	if e.differs() {
		t.markTodo(e)
	}
}

// isOurs reports whether we may remove a route.
func (t *Table) isOurs(r route) bool {
	if r.protocol == t.protocol {
		return true
	}
	switch {
	case !t.cfg.RemoveExternal || t.cfg.OwnsIface == nil || r.index == 0:
		return false
	case r.protocol == unix.RTPROT_KERNEL, r.protocol == unix.RTPROT_REDIRECT, r.protocol == unix.RTPROT_RA:
		return false
	case r.dst.Addr().IsLinkLocalUnicast(), r.dst.Addr().IsMulticast():
		return false
	}
	name, reported := t.names[r.index]
	return reported && t.cfg.OwnsIface(name)
}

// graceEnd returns the end of the time for which an unwanted route is kept; zero: it is not kept.
func (t *Table) graceEnd(r route) time.Time {
	if t.cfg.OwnsIface == nil || r.index == 0 {
		return time.Time{}
	}
	if name, reported := t.names[r.index]; reported && !t.cfg.OwnsIface(name) {
		return time.Time{}
	}
	return t.seen[r.index].Add(t.cfg.Grace)
}

// ownsNeighbours reports whether we may remove the neighbours of a link. Tunnel devices, too, have neighbours with our protocol.
func (t *Table) ownsNeighbours(index int) bool {
	return t.cfg.OwnsIface == nil || t.cfg.OwnsIface(t.names[index])
}

func (t *Table) takeNeighbours(index int, found map[neighKey]mac) {
	for key, n := range t.neighs {
		if index == 0 || key.index == index {
			n.there = false
		}
	}
	for key, m := range found {
		if t.neighs[key] == nil && !t.ownsNeighbours(key.index) {
			continue
		}
		n := t.neighbourOf(key)
		n.there, n.actual = true, m
	}
	for key, n := range t.neighs {
		if n.differs() {
			t.neighDo[key] = n
		} else {
			t.neighDone(n)
		}
	}
}
