package vppfake

import "fmt"

// VPP shares one path list among all routes with the same paths. When an interface is deleted while a path uses it, the path never works again.
// As long as one route keeps the list, every other route that is given the same paths uses that list and does not work either, even if the
// index belongs to a new interface by then. The API returns 0 and the dump looks correct.

// deadLists holds the path lists that used an interface when it was deleted, by their text.
type deadLists map[string]*deadList

type deadList struct {
	paths []path
	users int
}

// pathKey returns a key that is equal for path lists that VPP shares.
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

// share returns the dead list for a route with these paths, if there is one.
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

// release is the opposite of share.
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

// bury marks the path lists that lead out of an interface as dead. There are none if the program that configures VPP deletes routes before
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

// adopt assigns the static neighbours that a deleted interface left behind to the next interface with its index.
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

// orphan records that a deleted interface leaves neighbours behind.
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
