package processor

import "contiv.dev/vswitch/plugins/service/renderer"

// This file has the lists of services that renderers receive. The cost of a change does not depend on the number of services.

// append adds a service that renderers do not have yet.
func (p *Processor) append(s *service, value *renderer.ContivService) {
	s.value, s.index = value, len(p.all)
	p.rendered, p.all = append(p.rendered, s), append(p.all, value)
	p.withNodePorts.set(s, value)
}

// replace sets the new value of a service that renderers already have.
func (p *Processor) replace(s *service, value *renderer.ContivService) {
	s.value, p.all[s.index] = value, value
	p.withNodePorts.set(s, value)
}

// others returns all rendered services except s, in constant time: s is moved to the end.
func (p *Processor) others(s *service) []*renderer.ContivService {
	last := len(p.all) - 1
	moved := p.rendered[last]
	p.rendered[s.index], p.rendered[last] = moved, s
	p.all[s.index], p.all[last] = p.all[last], p.all[s.index]
	moved.index, s.index = s.index, last
	return p.all[:last:last]
}

// nodePortServices holds the services that have node ports, in no order.
type nodePortServices struct {
	services []*service
	values   []*renderer.ContivService
}

// list returns the services; the caller must not change them.
func (l *nodePortServices) list() []*renderer.ContivService {
	return l.values[:len(l.values):len(l.values)]
}

// set updates the value of a service; nil means that renderers no longer have it.
func (l *nodePortServices) set(s *service, value *renderer.ContivService) {
	was, is := l.has(s), value != nil && value.HasNodePort()
	switch {
	case was && is:
		l.values[s.nodePort] = value
	case is:
		s.nodePort = len(l.values)
		l.services, l.values = append(l.services, s), append(l.values, value)
	case was:
		last := len(l.values) - 1
		moved := l.services[last]
		l.services[s.nodePort], l.values[s.nodePort], moved.nodePort = moved, l.values[last], s.nodePort
		l.services[last], l.values[last] = nil, nil
		l.services, l.values = l.services[:last], l.values[:last]
	}
}

func (l *nodePortServices) has(s *service) bool {
	return s.nodePort < len(l.services) && l.services[s.nodePort] == s
}

// noteOutside updates the outside addresses of a service; a nil value has none.
func (p *Processor) noteOutside(s *service, value *renderer.ContivService) {
	now := p.outsideOf(value)
	p.outside.Move(s.id, s.outside, now)
	s.outside = now
}
