package vppfake

import "fmt"

// VPP shares one path list among all routes with the same paths. When an interface is deleted under a path, the path is
// dead for good, and as long as one route keeps the list, every other route that is given the same paths finds that list
// and is dead as well, though the index belongs to a new interface by then, the API says 0 and the dump looks right.

// deadLists are the path lists that an interface has been deleted under, by their text.
type deadLists map[string]*deadList

type deadList struct {
	paths []path
	users int
}

// pathKey is what makes two path lists the same one.
func pathKey(paths []path) string {
	var key []byte
	for n := range paths {
		p := &paths[n]
		table := none
		if p.table != nil {
			table = p.table.id
		}
		key = fmt.Appendf(key, "%d %d %d %s %d %d %d %d %v;", p.kind, p.proto, p.flags, p.nh, p.ifx, table, p.weight, p.pref, p.labels)
	}
	return string(key)
}

// share gives a route with these paths the dead list, if there is one.
func (d deadLists) share(paths []path) []path {
	if len(d) == 0 {
		return paths
	}
	list := d[pathKey(paths)]
	if list == nil {
		return paths
	}
	list.users++
	return append([]path(nil), list.paths...)
}

// release is share's opposite.
func (d deadLists) release(paths []path) {
	if len(d) == 0 {
		return
	}
	key := pathKey(paths)
	if list := d[key]; list != nil {
		if list.users--; list.users == 0 {
			delete(d, key)
		}
	}
}

// bury makes the path lists that lead out of an interface dead; there are none if the program that configures VPP deletes routes before
// interfaces.
func (st *state) bury(i *iface) {
	if i.paths == 0 {
		return
	}
	for _, tables := range st.ip.tables {
		for _, t := range tables {
			for _, e := range t.entries {
				for _, s := range e.sources {
					st.buryList(i, s)
				}
			}
		}
	}
}

func (st *state) buryList(i *iface, s entrySource) {
	for n := range s.paths {
		if s.paths[n].ifc != i || s.source == srcAdjacency {
			continue
		}
		key := pathKey(s.paths)
		if st.ip.dead[key] == nil {
			st.ip.dead[key] = &deadList{paths: s.paths}
		}
		st.ip.dead[key].users++
		return
	}
}

// adopt gives the static neighbours that a deleted interface has left behind to the next one with its index.
func (st *state) adopt(i *iface) {
	if !st.ip.orphans[i.index] {
		return
	}
	delete(st.ip.orphans, i.index)
	for _, db := range st.ip.neighbors {
		for key, n := range db {
			if key.ifx != i.index || n.table == nil {
				continue
			}
			s := n.table.entry(hostPrefix(key.addr)).source(srcAdjacency)
			for p := range s.paths {
				if s.paths[p].ifx == i.index {
					s.paths[p].ifc = i
					i.paths++
				}
			}
		}
	}
}

// orphan notes that a deleted interface leaves neighbours behind.
func (st *state) orphan(i *iface) {
	for _, db := range st.ip.neighbors {
		for key := range db {
			if key.ifx == i.index {
				st.ip.orphans[i.index] = true
				return
			}
		}
	}
}
