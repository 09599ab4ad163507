package pathwatch

import (
	"cmp"
	"slices"
)

// How many peers are asked in a round.
const (
	nearPeers    = 2
	turnPeers    = 2
	suspectPeers = 2
)

// picker decides who is asked.
type picker struct {
	list    []Peer // by ID
	turn    int    // whose turn it is
	suspect int
}

// set takes over the peers of the node with an ID, and finds out which are near: those before it.
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

// pick returns the nodes to ask in this round.
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

// some adds up to n peers that are not in the list yet, beginning where it stopped the last time. It looks at everybody once at most.
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
