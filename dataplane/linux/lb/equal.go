package lb

import (
	"bytes"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Equal reports whether two groups handle packets in the same way.
func (g *Group) Equal(o *Group) bool {
	return g == o || g.sameName(o) && g.size == o.size && bytes.Equal(g.addrs, o.addrs) && slices.Equal(g.ports, o.ports) &&
		slices.Equal(g.own, o.own)
}

// sameName reports whether both are the same group, which may have other backends now.
func (g *Group) sameName(o *Group) bool { return g.ID == o.ID && g.Verdict == o.Verdict }

// SameFrontends reports whether two services have the same frontends in a family, each with the same groups. The groups may have other
// backends.
func (s *Service) SameFrontends(o *Service, f table.Family) bool {
	return s.equalFrontends(o, f, (*Group).sameName)
}

// SameBackends is like SameFrontends, but the groups also have the same backends.
func (s *Service) SameBackends(o *Service, f table.Family) bool {
	return s.Affinity == o.Affinity && s.equalFrontends(o, f, (*Group).Equal)
}

func (s *Service) equalFrontends(o *Service, f table.Family, group func(a, b *Group) bool) bool {
	front := func(a, b Frontend) bool {
		return a.Key == b.Key && a.Cluster == b.Cluster && a.Masquerade == b.Masquerade && a.Restricted == b.Restricted &&
			slices.Equal(a.Sources, b.Sources) && group(a.Inside, b.Inside) && group(a.Outside, b.Outside)
	}
	return slices.EqualFunc(s.ofFamily(f), o.ofFamily(f), func(a, b *Port) bool {
		return a.Name == b.Name && a.Proto == b.Proto && slices.EqualFunc(a.Frontends, b.Frontends, front)
	})
}

func (s *Service) ofFamily(f table.Family) []*Port {
	var out []*Port
	for i := range s.Ports {
		if s.Ports[i].Family == f {
			out = append(out, &s.Ports[i])
		}
	}
	return out
}
