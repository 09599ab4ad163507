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

// external is what a client sends to. VPP has one mapping for each, so of several services that want it the one with the
// smallest name has it.
type external struct {
	addr  netip.Addr
	port  uint16
	proto renderer.ProtocolType
}

// claim takes a new or changed service. The result are other services that must be rendered anew.
func (r *Renderer) claim(value *renderer.ContivService) (others []svcmodel.ID) {
	now := r.render(value)
	old := r.services[value.ID]
	r.services[value.ID] = now
	wants := make(map[external]bool, len(now.mappings))
	for _, m := range now.mappings {
		wants[m.external] = true
	}
	if old != nil {
		now.dnat = old.dnat
		for _, m := range old.mappings {
			if !wants[m.external] {
				others = append(others, r.unclaim(value.ID, m.external)...)
			}
		}
	}
	for _, m := range now.mappings {
		list := r.claims[m.external]
		i, found := slices.BinarySearchFunc(list, value.ID, svcmodel.ID.Compare)
		if found {
			continue
		}
		if i == 0 && len(list) > 0 {
			others = append(others, list[0])
		}
		r.claims[m.external] = slices.Insert(list, i, value.ID)
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

// release is a service that has gone.
func (r *Renderer) release(id svcmodel.ID, old *service) (heirs []svcmodel.ID) {
	for _, m := range old.mappings {
		heirs = append(heirs, r.unclaim(id, m.external)...)
	}
	r.refence(old, nil)
	r.countPorts(old, nil)
	return heirs
}

func (r *Renderer) unclaim(id svcmodel.ID, e external) (heirs []svcmodel.ID) {
	list := r.claims[e]
	i, found := slices.BinarySearchFunc(list, id, svcmodel.ID.Compare)
	if !found {
		return nil
	}
	list = slices.Delete(list, i, i+1)
	if len(list) == 0 {
		delete(r.claims, e)
		r.gate(&mapping{external: e})
		r.alias(nil, &mapping{external: e})
		return nil
	}
	r.claims[e] = list
	if i == 0 {
		return list[:1:1]
	}
	return nil
}

// dnat is the value of a service, of the mappings that are its own; nil: there is none.
func (r *Renderer) dnat(s *service) *vpp_nat.DNat44 {
	var out *vpp_nat.DNat44
	for i := range s.mappings {
		m := &s.mappings[i]
		if r.claims[m.external][0] == s.value.ID {
			r.gate(m)
			r.alias(s, m)
		} else {
			r.Log.Debug("another service has this address and port", "service", s.value.ID.String(),
				"address", m.external.addr, "port", m.external.port, "owner", r.claims[m.external][0].String())
			continue
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
