package processor

import "contiv.dev/vswitch/plugins/service/renderer"

// This file has the lists of services that renderers receive. Each change of one costs the same, however many services there are.

// append adds a service that renderers do not have yet.
func (p *Processor) append(s *service, value *renderer.ContivService) {
	s.value, s.index = value, len(p.all)
	p.rendered, p.all = append(p.rendered, s), append(p.all, value)
	p.withNodePorts.set(s, value)
}

// replace gives a service that renderers have its new value.
func (p *Processor) replace(s *service, value *renderer.ContivService) {
	s.value, p.all[s.index] = value, value
	p.withNodePorts.set(s, value)
}

// others lists all rendered services but s, at no cost: s is moved to the end.
func (p *Processor) others(s *service) []*renderer.ContivService {
	last := len(p.all) - 1
	moved := p.rendered[last]
	p.rendered[s.index], p.rendered[last] = moved, s
	p.all[s.index], p.all[last] = p.all[last], p.all[s.index]
	moved.index, s.index = s.index, last
	return p.all[:last:last]
}

// nodePortServices are the services that have node ports, in no order.
type nodePortServices struct {
	services []*service
	values   []*renderer.ContivService
}

// list is not to be changed.
func (l *nodePortServices) list() []*renderer.ContivService {
	return l.values[:len(l.values):len(l.values)]
}

// set takes the value of a service; nil: renderers do not have it any more.
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

// noteOutside takes the value of a service; nil: it has none.
func (p *Processor) noteOutside(s *service, value *renderer.ContivService) {
	now := p.outsideOf(value)
	p.outside.Move(s.id, s.outside, now)
	s.outside = now
}
