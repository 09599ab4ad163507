package processor

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// candidate is an endpoint of one port of a service.
type candidate struct {
	addr  netip.Addr
	port  uint16
	local bool
	ep    model.Endpoint
}

// rank orders endpoints with the same address. There are two of them while an endpoint is moved from one slice to another, or when the
// address of a terminating pod has been assigned to a new pod: then the new pod has precedence.
func (c *candidate) rank() int {
	rank := 0
	if c.ep.Conditions&model.CondTerminating == 0 {
		rank += 8
	}
	if c.ep.Ready() {
		rank += 4
	}
	if c.ep.ServingTerminating() {
		rank += 2
	}
	if c.local {
		rank++
	}
	return rank
}

// candidates collects the endpoints of a port in one family: sorted by address and port, without duplicates. Each slice maps the name of
// the port to its own port number.
func candidates(buf []candidate, ports slicePorts, node string) []candidate {
	out := buf[:0]
	sorted := true
	for _, p := range ports {
		for i := range p.slice.Len() {
			ep := p.slice.At(i)
			if special(ep.Addr) {
				continue
			}
			c := candidate{addr: ep.Addr, port: uint16(p.port.GetPort()), local: ep.Place.GetNode() == node, ep: ep}
			if n := len(out); n > 0 && compare(&out[n-1], &c) >= 0 {
				sorted = false
			}
			out = append(out, c)
		}
	}
	if sorted {
		return out
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		if c := compare(&a, &b); c != 0 {
			return c
		}
		return b.rank() - a.rank() // the best of equal ones comes first and is kept
	})
	return slices.CompactFunc(out, func(a, b candidate) bool { return compare(&a, &b) == 0 })
}

func compare(a, b *candidate) int {
	if c := a.addr.Compare(b.addr); c != 0 {
		return c
	}
	return int(a.port) - int(b.port)
}

// uses holds the policies for which a port needs endpoints. Even with externalTrafficPolicy Local, clients inside the cluster are served
// cluster-wide.
type uses struct {
	cluster, local bool
}

// topology is the location of this node.
type topology struct {
	node, zone string
}

// choice holds the endpoints that serve a port.
type choice struct {
	cluster, local []bool // by index of candidates
	reachable      bool   // at least one endpoint in the cluster serves the port
}

// choose selects the endpoints that serve, by kube-proxy's rules: the ready ones, of which hints may prefer some; if the cluster has no
// ready endpoint, those that still serve while they terminate. For local traffic the same rules apply to the local endpoints.
func choose(all []candidate, u uses, t topology, ch *choice) {
	ch.reset(len(all))
	var ready, localReady bool
	for i := range all {
		c := &all[i]
		ready = ready || c.ep.Ready()
		localReady = localReady || (c.local && c.ep.Ready())
		ch.reachable = ch.reachable || c.ep.Ready() || c.ep.ServingTerminating()
	}
	prefer := preference(all, t)
	for i := range all {
		c := &all[i]
		switch {
		case ready:
			ch.cluster[i] = c.ep.Ready() && prefer.allows(c, t)
		default:
			ch.cluster[i] = c.ep.ServingTerminating()
		}
		switch {
		case !c.local:
		case localReady:
			ch.local[i] = c.ep.Ready()
		default:
			ch.local[i] = c.ep.ServingTerminating()
		}
		ch.cluster[i] = ch.cluster[i] && u.cluster
		ch.local[i] = ch.local[i] && u.local
	}
}

// has reports whether an endpoint is chosen under any policy.
func (ch *choice) has(i int) bool { return ch.cluster[i] || ch.local[i] }

func (ch *choice) reset(n int) {
	ch.cluster = slices.Grow(ch.cluster[:0], n)[:n]
	ch.local = slices.Grow(ch.local[:0], n)[:n]
	clear(ch.cluster)
	clear(ch.local)
	ch.reachable = false
}

// hintMode is the kind of hints that are applied.
type hintMode int

const (
	noHints hintMode = iota
	nodeHints
	zoneHints
)

// preference applies hints only if all ready endpoints have them and some are for this location. Otherwise hints would leave fewer
// endpoints than the component that wrote the hints has assumed.
func preference(all []candidate, t topology) hintMode {
	allNode, allZone, forNode, forZone := true, true, false, false
	for i := range all {
		c := &all[i]
		if !c.ep.Ready() {
			continue
		}
		place := c.ep.Place
		allNode = allNode && len(place.GetForNodes()) > 0
		allZone = allZone && len(place.GetForZones()) > 0
		if !allNode && !allZone {
			return noHints
		}
		forNode = forNode || place.HintsNode(t.node)
		forZone = forZone || place.HintsZone(t.zone)
	}
	switch {
	case allNode && forNode:
		return nodeHints
	case allZone && forZone:
		return zoneHints
	}
	return noHints
}

func (m hintMode) allows(c *candidate, t topology) bool {
	switch m {
	case nodeHints:
		return c.ep.Place.HintsNode(t.node)
	case zoneHints:
		return c.ep.Place.HintsZone(t.zone)
	}
	return true
}

// portBackends holds the backends of a port: those for Backends, those for LocalPolicyBackends, and those for KeptBackends.
type portBackends struct{ all, local, kept []*renderer.ServiceBackend }

// add makes the backends of the chosen endpoints, and with keep also those of other endpoints that serve. It makes as few allocations as
// possible: a cluster has hundreds of thousands of backends.
func (p *portBackends) add(all []candidate, ch *choice, u uses, keep bool, isNode func(netip.Addr) bool) {
	chosen, kept := 0, 0
	for i := range all {
		switch {
		case ch.has(i):
			chosen++
		case keep && all[i].ep.Serving():
			kept++
		}
	}
	n := chosen + kept
	if n == 0 {
		return
	}
	slab := make([]renderer.ServiceBackend, 0, n)
	bytes := make([]byte, 0, n*all[0].addr.BitLen()/8)
	p.all, p.kept = slices.Grow(p.all, chosen), slices.Grow(p.kept, kept)
	for i := range all {
		c := &all[i]
		if !ch.has(i) && !(keep && c.ep.Serving()) {
			continue
		}
		start := len(bytes)
		bytes = appendAddr(bytes, c.addr)
		slab = append(slab, renderer.ServiceBackend{
			IP: bytes[start:len(bytes):len(bytes)], Port: c.port, Local: c.local, HostNetwork: isNode(c.addr),
		})
		to := &p.all
		switch {
		case !ch.has(i):
			to = &p.kept
		case u.cluster && !ch.cluster[i]:
			to = &p.local
		}
		*to = append(*to, &slab[len(slab)-1])
	}
}

func appendAddr(b []byte, addr netip.Addr) []byte {
	if addr.Is4() {
		a := addr.As4()
		return append(b, a[:]...)
	}
	a := addr.As16()
	return append(b, a[:]...)
}
