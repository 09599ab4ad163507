package links

import (
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
)

// requestedNames returns the interfaces of the values that a partial dump requests; nil for a dump of everything.
func requestedNames(op *scheduler.DumpOp) map[string]bool {
	if !op.Partial() {
		return nil
	}
	requested := map[string]bool{}
	op.EachDesired(func(_ string, v any) {
		switch v := v.(type) {
		case *linkUp:
			requested[v.logical] = true
		case *address:
			requested[v.logical] = true
		case *linux_l3.Route:
			requested[v.GetOutgoingInterface()] = true
		case *linux_l3.ARPEntry:
			requested[v.GetInterface()] = true
		}
	})
	return requested
}

// lookAtLinks emits those of the desired links that are at their indexed location. Unlike a full dump it does not change the index. A
// namespace may have very many links: only the requested ones are read.
func (b *Backend) lookAtLinks(s *snapshot, desired map[string]*iface, emit func(key string, v *iface)) error {
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if err := b.lookAtLink(s, desired[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		d, v := b.device(name), desired[name]
		if d == nil {
			continue
		}
		sp := s.byPath[d.path]
		if sp == nil || sp.h.ID() != d.id {
			continue
		}
		for _, l := range sp.links {
			if l.index != d.index || d.tagged() && l.alias != tagOf(name) {
				continue
			}
			typ := d.typ
			if d.tagged() {
				if typ = typeOf(l); typ == linux_interfaces.Interface_UNDEFINED {
					continue // the pod has removed the device, and used its index and its alias for a link of another type
				}
			}
			found, err := b.linkValue(name, foundLink{l, sp, typ}, v, s)
			if err != nil {
				return err
			}
			emit(nb.LinuxInterfaceKey(name), found)
		}
	}
	return nil
}

// lookAtLink reads one link into the snapshot.
func (b *Backend) lookAtLink(s *snapshot, v *iface) error {
	d := b.device(v.GetName())
	if d == nil {
		return nil
	}
	sp, err := s.enter(d.path, v.GetNamespace())
	if sp == nil || err != nil {
		return unlessGone(err)
	}
	sp.read[listed{what: "links"}] = nil // the others are not needed
	return sp.look(d.name)
}
