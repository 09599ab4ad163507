package nat44

import (
	"maps"
	"net/netip"

	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/gate"
)

// external is what a client sends to. VPP has one mapping for each, and one service has each (plugins/service/owners).
type external struct {
	addr  netip.Addr
	port  uint16
	proto renderer.ProtocolType
}

// take notes a service in its new form.
func (r *Renderer) take(value *renderer.ContivService) {
	now := r.render(value)
	old := r.services[value.ID]
	r.services[value.ID] = now
	wants := make(map[external]bool, len(now.mappings))
	for i := range now.mappings {
		wants[now.mappings[i].external] = true
	}
	var outside []netip.Addr
	if old != nil {
		outside, now.dnat = old.outside, old.dnat
		for i := range old.mappings {
			if m := &old.mappings[i]; !wants[m.external] {
				r.leave(value.ID, m)
			}
		}
	}
	for e := range wants {
		r.places[e] = value.ID
	}
	r.outside.Move(value.ID, outside, now.outside)
	r.refence(old, now)
	r.warn(old, now)
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

// release forgets a service that has gone.
func (r *Renderer) release(id svcmodel.ID, old *service) {
	for i := range old.mappings {
		r.leave(id, &old.mappings[i])
	}
	r.outside.Move(id, old.outside, nil)
	r.refence(old, nil)
}

// leave forgets a mapping of a service.
func (r *Renderer) leave(id svcmodel.ID, m *mapping) {
	if r.places[m.external] == id { // no other service has it by now
		delete(r.places, m.external)
		r.gate(&mapping{external: m.external})
	}
}

// dnat is the value of a service; nil: there is none.
func (r *Renderer) dnat(s *service) *vpp_nat.DNat44 {
	var out *vpp_nat.DNat44
	for i := range s.mappings {
		m := &s.mappings[i]
		r.gate(m)
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
