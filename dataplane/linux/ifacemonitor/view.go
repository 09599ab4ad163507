package ifacemonitor

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"

	"contiv.dev/vswitch/dataplane/netlink"
)

// view holds what has been reported so far. Its methods process the kernel's messages and return the updates to report. It does no I/O.
type view struct {
	excludes []*regexp.Regexp
	links    map[int]*link
	names    map[string]int
	addrs    map[int]map[address]bool // also of unknown links: notifications may arrive in any order
}

type link struct {
	index    int
	name     string
	state    State
	mtu      int
	excluded bool
	reported []netip.Addr // addresses in the last report; nil: not reported yet
}

// address holds the properties by which the kernel distinguishes the addresses of a link.
type address struct {
	prefix netip.Prefix
	peer   netip.Addr
}

func newView(excludes []*regexp.Regexp) *view {
	return &view{excludes: excludes, links: map[int]*link{}, names: map[string]int{}, addrs: map[int]map[address]bool{}}
}

// linkChanged processes a new or changed link.
func (v *view) linkChanged(l netlink.Link) (out []any) {
	state := StateDown
	if l.Up() {
		state = StateUp
	}
	if owner, taken := v.names[l.Name]; taken && owner != l.Index {
		out = v.removeLink(owner) // the notification of its removal or renaming was lost, or follows later in this listing
	}
	known := v.links[l.Index]
	if known != nil && known.name != l.Name {
		out = append(out, v.removeLink(l.Index)...)
		known = nil
	}
	if known == nil {
		known = &link{index: l.Index, name: l.Name, mtu: l.MTU, excluded: v.isExcluded(l.Name)}
		v.links[l.Index], v.names[l.Name] = known, l.Index
	}
	if known.state != state {
		known.state = state
		out = append(out, known.stateUpdate())
	}
	if known.mtu != l.MTU {
		known.mtu = l.MTU
		out = append(out, &IfaceMTUUpdate{Name: l.Name, MTU: l.MTU})
	}
	return append(out, v.reportAddrs(known)...)
}

// linkGone processes the removal of a link.
func (v *view) linkGone(index int) []any {
	delete(v.addrs, index)
	return v.removeLink(index)
}

// removeLink returns the updates that report a link as removed.
func (v *view) removeLink(index int) []any {
	l := v.links[index]
	if l == nil {
		return nil
	}
	delete(v.links, index)
	delete(v.names, l.name)
	out := []any{&IfaceStateUpdate{Name: l.name, State: StateAbsent, Index: index}}
	if !l.excluded {
		out = append(out, &IfaceAddrsUpdate{Name: l.name})
	}
	return out
}

// addrChanged processes an address that was added to a link or removed from it.
func (v *view) addrChanged(a netlink.Address, there bool) []any {
	key := address{a.Prefix, a.Peer}
	switch {
	case !there:
		delete(v.addrs[a.Index], key)
	case v.addrs[a.Index] == nil:
		v.addrs[a.Index] = map[address]bool{key: true}
	default:
		v.addrs[a.Index][key] = true
	}
	if l := v.links[a.Index]; l != nil {
		return v.reportAddrs(l)
	}
	return nil
}

// reportAddrs returns an update with the addresses of a link if they differ from the last report.
func (v *view) reportAddrs(l *link) []any {
	if l.excluded {
		return nil
	}
	now := make([]netip.Addr, 0, len(v.addrs[l.index]))
	for a := range v.addrs[l.index] {
		now = append(now, a.prefix.Addr())
	}
	slices.SortFunc(now, netip.Addr.Compare)
	now = slices.Compact(now) // an address may occur with several prefix lengths
	if l.reported != nil && slices.Equal(now, l.reported) {
		return nil
	}
	l.reported = now
	return []any{&IfaceAddrsUpdate{Name: l.name, Addrs: slices.Clone(now)}}
}

// listed processes a full listing. lost means that notifications were lost before it: links that are up are then reported again.
func (v *view) listed(links []netlink.Link, addrs []netlink.Address, lost bool) (out []any) {
	there := map[int]bool{}
	for _, l := range links {
		there[l.Index] = true
	}
	for _, index := range slices.Sorted(maps.Keys(v.links)) {
		if !there[index] {
			out = append(out, v.removeLink(index)...)
		}
	}
	v.addrs = map[int]map[address]bool{}
	for _, a := range addrs {
		if v.addrs[a.Index] == nil {
			v.addrs[a.Index] = map[address]bool{}
		}
		v.addrs[a.Index][address{a.Prefix, a.Peer}] = true
	}
	for _, l := range links {
		before := v.links[l.Index]
		wasUp := before != nil && before.name == l.Name && before.state == StateUp
		if lost && wasUp && l.Up() {
			out = append(out, before.stateUpdate())
		}
		out = append(out, v.linkChanged(l)...)
	}
	return out
}

func (v *view) isExcluded(name string) bool {
	return slices.ContainsFunc(v.excludes, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

func (l *link) stateUpdate() *IfaceStateUpdate {
	return &IfaceStateUpdate{Name: l.name, State: l.state, Index: l.index}
}
