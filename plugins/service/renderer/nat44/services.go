package nat44

import (
	"maps"
	"net/netip"

	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/sourceranges"
)

// external is an address, port and protocol that clients use. VPP has one mapping for each, and each belongs to one service
// (plugins/service/owners).
type external struct {
	addr  netip.Addr
	port  uint16
	proto renderer.ProtocolType
}

// renderService stores a new or changed service.
func (r *Renderer) renderService(value *renderer.ContivService) {
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
	r.updateRejects(old, now)
	r.warn(old, now)
}

// warn logs once which ports of a service are not served.
func (r *Renderer) warn(old, now *service) {
	if old == nil {
		old = r.before[now.value.ID]
	}
	if now.sctp && (old == nil || !old.sctp) {
		r.Log.Warn("SCTP is not served: VPP's NAT does not balance it", "service", now.value.ID.String())
	}
}

// release removes the state of a deleted service.
func (r *Renderer) release(id renderer.ServiceID, old *service) {
	for i := range old.mappings {
		r.leave(id, &old.mappings[i])
	}
	r.outside.Move(id, old.outside, nil)
	r.updateRejects(old, nil)
}

// leave removes the state of a mapping.
func (r *Renderer) leave(id renderer.ServiceID, m *mapping) {
	if r.places[m.external] == id { // no other service has it by now
		delete(r.places, m.external)
		r.restrict(&mapping{external: m.external})
	}
}

// dnat returns the value of a service; nil if the service has no backends.
func (r *Renderer) dnat(s *service) *vpp_nat.DNat44 {
	var out *vpp_nat.DNat44
	for i := range s.mappings {
		m := &s.mappings[i]
		r.restrict(m)
		if len(m.backends) == 0 {
			continue
		}
		if out == nil {
			out = &vpp_nat.DNat44{Label: s.value.ID.String()}
		}
		out.StMappings = append(out.StMappings, m.value(r.acl.Name()))
	}
	return out
}

// restrict stores which clients may use the address and port of a mapping.
func (r *Renderer) restrict(m *mapping) {
	p := sourceranges.Frontend{Addr: m.external.addr, Port: m.external.port, Proto: m.external.proto}
	if m.restricted {
		r.acl.Set(p, m.from)
	} else {
		r.acl.Clear(p)
	}
}

// emitACL puts the ACL of restricted frontends.
func (r *Renderer) emitACL() {
	clients := renderer.NewInterfaces()
	maps.Copy(clients, r.frontends)
	if r.node.Uplink != "" {
		clients[r.node.Uplink] = struct{}{}
	}
	r.acl.Emit(sourceranges.Node{Interfaces: clients, Host: r.node.HostOwn, Own: r.local}, r.out.Put, r.out.Remove)
}
