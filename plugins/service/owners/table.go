package owners

import (
	"cmp"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Name is a frontend that a service names, and the kind of this name. For a node port the frontend is renderer.NodePort.
type Name struct {
	renderer.Frontend
	Kind renderer.FrontendKind
}

// Service holds the properties of a service that determine ownership. It is immutable.
type Service struct {
	ID      svcmodel.ID
	UID     string
	Created int64 // in seconds since 1970; 0: not known, which counts as the youngest
	Names   []Name
}

// precedes orders services by age.
func (s *Service) precedes(o *Service) int {
	return cmp.Or(cmp.Compare(uint64(s.Created)-1, uint64(o.Created)-1), // 0 becomes the greatest
		cmp.Compare(s.UID, o.UID), s.ID.Compare(o.ID))
}

func (s *Service) sameAge(o *Service) bool { return s.Created == o.Created && s.UID == o.UID }

// Rules are the inputs of the table besides services. When a result of these functions changes, the caller rechecks the services that
// AtAddresses and WithNodePorts return.
type Rules struct {
	// IsNode reports whether an address belongs to a node.
	IsNode func(netip.Addr) bool
	// NodePortsAt returns the addresses of this node at which node ports are served.
	NodePortsAt func() []netip.Addr
	// Reserved returns the reason why no service may have a frontend as an external address; it returns an empty string if a service may
	// have it.
	Reserved func(renderer.Frontend) string
}

// Loss is a frontend that a service names and does not own.
type Loss struct {
	Name
	Owner svcmodel.ID // the owner of the frontend; zero if no service may have it
	Why   string      // the reason, for users
}

// Table holds all services. Its methods are not safe for concurrent use.
type Table struct {
	rules    Rules
	services map[svcmodel.ID]*Service
	names    map[Name][]*Service // the services that name it, the owner first
	addrs    map[netip.Addr]*address
	// external holds the services with an external address and this port, keyed by the node port of the same number.
	external  map[renderer.Frontend]map[*Service]int
	nodePorts map[*Service]struct{} // services that have node ports
}

// address holds the services that name an address, each once.
type address struct {
	cluster  []*Service // as a cluster IP, the owner first
	external []*Service // as an external address
}

// New returns a table without services.
func New(rules Rules) *Table {
	return &Table{
		rules: rules, services: map[svcmodel.ID]*Service{}, names: map[Name][]*Service{}, addrs: map[netip.Addr]*address{},
		external: map[renderer.Frontend]map[*Service]int{}, nodePorts: map[*Service]struct{}{},
	}
}

// Put adds or changes a service. affected are the other services, in order, for which Lost may return a different result now.
func (t *Table) Put(s *Service) (affected []svcmodel.ID) {
	old := t.services[s.ID]
	if old != nil && old.sameAge(s) && slices.Equal(old.Names, s.Names) {
		return nil
	}
	return t.replace(old, s, s.ID)
}

// Delete removes a service; affected is as for Put.
func (t *Table) Delete(id svcmodel.ID) (affected []svcmodel.ID) {
	old := t.services[id]
	if old == nil {
		return nil
	}
	return t.replace(old, nil, id)
}

// replace replaces old by now; each may be nil.
func (t *Table) replace(old, now *Service, self svcmodel.ID) []svcmodel.ID {
	ch := &change{table: t, owner: map[Name]*Service{}, cluster: map[netip.Addr]*Service{}}
	ch.note(old)
	ch.note(now)
	if old != nil {
		t.take(old)
		delete(t.services, self)
	}
	if now != nil {
		t.services[self] = now
		t.give(now)
	}
	return ch.affected(self)
}

// change holds the owners of the frontends that a service names, before and after it changes.
type change struct {
	table   *Table
	owner   map[Name]*Service
	cluster map[netip.Addr]*Service
	out     map[svcmodel.ID]struct{}
}

func (ch *change) note(s *Service) {
	if s == nil {
		return
	}
	for _, n := range s.Names {
		ch.owner[n] = first(ch.table.names[n])
		if n.Kind == renderer.AtClusterIP {
			ch.cluster[n.Addr] = ch.table.clusterOwner(n.Addr)
		}
	}
}

func (ch *change) affected(self svcmodel.ID) []svcmodel.ID {
	ch.out = map[svcmodel.ID]struct{}{}
	for n, before := range ch.owner {
		after := first(ch.table.names[n])
		if sameService(before, after) {
			continue
		}
		ch.add(before, after)
		if n.Kind == renderer.AtNodePort {
			for s := range ch.table.external[n.Frontend] {
				ch.add(s)
			}
		}
	}
	for addr, before := range ch.cluster {
		if sameService(before, ch.table.clusterOwner(addr)) {
			continue
		}
		ch.add(ch.table.at(addr).cluster...)
		ch.add(ch.table.at(addr).external...)
		if slices.Contains(ch.table.rules.NodePortsAt(), addr) {
			for s := range ch.table.nodePorts {
				ch.add(s)
			}
		}
	}
	delete(ch.out, self)
	return sorted(ch.out)
}

func (ch *change) add(list ...*Service) {
	for _, s := range list {
		if s != nil && ch.table.services[s.ID] != nil {
			ch.out[s.ID] = struct{}{}
		}
	}
}

// sameService reports whether a and b are two states of one service.
func sameService(a, b *Service) bool { return a == b || a != nil && b != nil && a.ID == b.ID }

func first(list []*Service) *Service {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func (t *Table) at(addr netip.Addr) *address {
	if a := t.addrs[addr]; a != nil {
		return a
	}
	return &address{}
}

func (t *Table) clusterOwner(addr netip.Addr) *Service { return first(t.at(addr).cluster) }

// give adds all names of a service to the indexes.
func (t *Table) give(s *Service) {
	for _, n := range s.Names {
		t.names[n] = insert(t.names[n], s)
		switch n.Kind {
		case renderer.AtNodePort:
			t.nodePorts[s] = struct{}{}
		case renderer.AtClusterIP, renderer.AtExternalIP:
			a := t.addrs[n.Addr]
			if a == nil {
				a = &address{}
				t.addrs[n.Addr] = a
			}
			if n.Kind == renderer.AtClusterIP {
				a.cluster = insert(a.cluster, s)
				continue
			}
			a.external = insert(a.external, s)
			np := asNodePort(n.Frontend)
			if t.external[np] == nil {
				t.external[np] = map[*Service]int{}
			}
			t.external[np][s]++
		}
	}
}

// take removes all names of a service from the indexes.
func (t *Table) take(s *Service) {
	delete(t.nodePorts, s)
	for _, n := range s.Names {
		if t.names[n] = remove(t.names[n], s); len(t.names[n]) == 0 {
			delete(t.names, n)
		}
		if n.Kind == renderer.AtNodePort {
			continue
		}
		if a := t.addrs[n.Addr]; a != nil {
			if n.Kind == renderer.AtClusterIP {
				a.cluster = remove(a.cluster, s)
			} else {
				a.external = remove(a.external, s)
			}
			if len(a.cluster)+len(a.external) == 0 {
				delete(t.addrs, n.Addr)
			}
		}
		if n.Kind == renderer.AtExternalIP {
			np := asNodePort(n.Frontend)
			if t.external[np][s]--; t.external[np][s] <= 0 {
				delete(t.external[np], s)
			}
			if len(t.external[np]) == 0 {
				delete(t.external, np)
			}
		}
	}
}

// asNodePort returns the node port with the port and protocol of a frontend at a node's address.
func asNodePort(f renderer.Frontend) renderer.Frontend {
	return renderer.NodePort(f.Port, f.Protocol, f.Addr.Is6())
}

// insert adds a service at its position in the order, once.
func insert(list []*Service, s *Service) []*Service {
	i, found := slices.BinarySearchFunc(list, s, (*Service).precedes)
	if found {
		return list
	}
	return slices.Insert(list, i, s)
}

func remove(list []*Service, s *Service) []*Service {
	if i, found := slices.BinarySearchFunc(list, s, (*Service).precedes); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func sorted(ids map[svcmodel.ID]struct{}) []svcmodel.ID {
	out := make([]svcmodel.ID, 0, len(ids))
	for id := range ids {
		out = append(out, id)
	}
	slices.SortFunc(out, svcmodel.ID.Compare)
	return out
}
