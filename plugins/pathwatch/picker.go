package pathwatch

import (
	"cmp"
	"slices"
)

// Numbers of peers that are probed in a round.
const (
	nearPeers    = 2
	turnPeers    = 2
	suspectPeers = 2
)

// picker selects the peers to probe in a round.
type picker struct {
	list    []Peer // sorted by ID
	turn    int    // the index of the peer that was last selected in turn
	suspect int
}

// set replaces the peers of the node with ID self, and marks the near ones: those before it.
func (p *picker) set(self uint32, list []Peer) []Peer {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Peer) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name)) })
	first, _ := slices.BinarySearchFunc(list, self, func(a Peer, id uint32) int { return cmp.Compare(a.ID, id) })
	for i := range min(nearPeers, len(list)) {
		list[(first-1-i+2*len(list))%len(list)].Near = true
	}
	p.list = list
	return list
}

// pick returns the nodes to probe in this round.
func (p *picker) pick(suspect func(*Peer) bool) []*Peer {
	var out []*Peer
	for i := range p.list {
		if p.list[i].Near {
			out = append(out, &p.list[i])
		}
	}
	out = p.some(out, &p.suspect, suspectPeers, suspect)
	return p.some(out, &p.turn, turnPeers, func(*Peer) bool { return true })
}

// some adds up to n peers for which ok returns true and that are not in the list yet. It starts where the last call stopped, and checks
// each peer at most once.
func (p *picker) some(out []*Peer, next *int, n int, ok func(*Peer) bool) []*Peer {
	for range p.list {
		if n == 0 {
			break
		}
		*next = (*next + 1) % len(p.list)
		if l := &p.list[*next]; ok(l) && !slices.Contains(out, l) {
			out = append(out, l)
			n--
		}
	}
	return out
}
