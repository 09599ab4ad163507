package nat44

import (
	"maps"
	"net/netip"
	"slices"

	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/gate"
)

// external is what a client sends to. VPP has one mapping for each. Of those that clients send to, one service has each
// (plugins/service/owners); of aliases (alias.go) two places can have the same.
type external struct {
	addr  netip.Addr
	port  uint16
	proto renderer.ProtocolType
}

// take notes a service in its new form. others are services that must be rendered again.
func (r *Renderer) take(value *renderer.ContivService) (others []svcmodel.ID) {
	now := r.render(value)
	old := r.services[value.ID]
	r.services[value.ID] = now
	wants := make(map[mappingID]bool, len(now.mappings))
	for i := range now.mappings {
		wants[now.mappings[i].id()] = true
	}
	if old != nil {
		now.dnat = old.dnat
		for i := range old.mappings {
			if m := &old.mappings[i]; !wants[m.id()] {
				others = append(others, r.leave(value.ID, m)...)
			}
		}
	}
	for i := range now.mappings {
		m := &now.mappings[i]
		if m.isAlias() {
			others = append(others, r.shareAlias(m)...)
			continue
		}
		r.places[m.external] = value.ID
	}
	r.refence(old, now)
	r.countPorts(old, now)
	r.warn(old, now)
	return others
}

// warn says once what of a service is not served.
func (r *Renderer) warn(old, now *service) {
	if old == nil {
		old = r.before[now.value.ID]
	}
	if now.sctp && (old == nil || !old.sctp) {
		r.Log.Warn("SCTP is not served: VPP's NAT does not balance it", "service", now.value.ID.String())
	}
}

// release forgets a service that has gone. others are services that must be rendered again.
func (r *Renderer) release(id svcmodel.ID, old *service) (others []svcmodel.ID) {
	for i := range old.mappings {
		others = append(others, r.leave(id, &old.mappings[i])...)
	}
	r.refence(old, nil)
	r.countPorts(old, nil)
	return others
}

// leave forgets a mapping of a service.
func (r *Renderer) leave(id svcmodel.ID, m *mapping) (others []svcmodel.ID) {
	if m.isAlias() {
		return r.leaveAlias(m)
	}
	if r.places[m.external] == id { // no other service has it by now
		delete(r.places, m.external)
		r.gate(&mapping{external: m.external})
		r.alias(&mapping{external: m.external})
	}
	return nil
}

// dnat is the value of a service; nil: there is none.
func (r *Renderer) dnat(s *service) *vpp_nat.DNat44 {
	var out *vpp_nat.DNat44
	for i := range s.mappings {
		m := &s.mappings[i]
		if m.isAlias() && !r.hasAlias(m.external, m.of) {
			continue
		}
		r.gate(m)
		if !m.isAlias() {
			r.alias(m)
		}
		if len(m.backends) == 0 {
			continue
		}
		if out == nil {
			out = &vpp_nat.DNat44{Label: s.value.ID.String()}
		}
		out.StMappings = append(out.StMappings, m.value(r.gates.ACL()))
	}
	return out
}

// gate notes who may use an address and port that is served.
func (r *Renderer) gate(m *mapping) {
	p := gate.Place{Addr: m.external.addr, Port: m.external.port, Proto: m.external.proto}
	if m.gated {
		r.gates.Set(p, m.from)
	} else {
		r.gates.Clear(p)
	}
}

// emitGates puts the ACL for them.
func (r *Renderer) emitGates() {
	clients := renderer.NewInterfaces()
	maps.Copy(clients, r.frontends)
	if r.node.Uplink != "" {
		clients[r.node.Uplink] = struct{}{}
	}
	r.gates.Emit(gate.Node{Interfaces: clients, Host: r.node.Host, Own: r.local}, r.put, r.remove)
}

// shareAlias notes that a place has an alias, which it uses unless another place with the same alias comes before it.
func (r *Renderer) shareAlias(m *mapping) (others []svcmodel.ID) {
	list := r.shared[m.external]
	i, found := slices.BinarySearchFunc(list, m.of, external.compare)
	if found {
		return nil
	}
	if i == 0 && len(list) > 0 {
		others = append(others, r.places[list[0]])
	}
	r.shared[m.external] = slices.Insert(list, i, m.of)
	return others
}

func (r *Renderer) leaveAlias(m *mapping) (others []svcmodel.ID) {
	list := r.shared[m.external]
	i, found := slices.BinarySearchFunc(list, m.of, external.compare)
	if !found {
		return nil
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(r.shared, m.external)
		r.gate(&mapping{external: m.external})
		return nil
	}
	r.shared[m.external] = list
	if i == 0 {
		others = append(others, r.places[list[0]])
	}
	return others
}

// hasAlias says whether a place uses its alias.
func (r *Renderer) hasAlias(alias, place external) bool {
	list := r.shared[alias]
	return len(list) > 0 && list[0] == place
}
