package ipnet

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// peer is another node as it was last rendered.
type peer struct {
	node   *transport.Node
	values []value
}

// value returns the peer's value under the key, or nil.
func (p *peer) value(key string) proto.Message {
	for _, v := range p.values {
		if v.key == key {
			return v.msg
		}
	}
	return nil
}

// peers holds all other nodes. Two of them may have a value under the same key: nodes that share a management address, which is a
// configuration error, or the old and the new owner of a node ID, until the event that the old one left is handled. The value of the ID's
// owner has precedence, else the value of the node with the greatest name, independent of the order of arrival.
type peers struct {
	byName   map[string]*peer
	claims   map[uint32][]string // the peers that have, or had, an ID, by ID; the last one joined last and owns it
	rendered map[string]int      // the number of peers with a value under a key, by key
}

func newPeers(n int) peers {
	return peers{byName: make(map[string]*peer, n), claims: make(map[uint32][]string, n), rendered: make(map[string]int, 4*n)}
}

// owner returns p if p still has its ID, else nil: another node has taken over the ID and all values that follow from it.
func (ps *peers) owner(p *peer) *peer {
	if p == nil {
		return nil
	}
	names := ps.claims[p.node.ID]
	if len(names) == 0 || ps.byName[names[len(names)-1]] != p {
		return nil
	}
	return p
}

// rivals returns the other peers that have p's ID.
func (ps *peers) rivals(p *peer) []*peer {
	if p == nil {
		return nil
	}
	var out []*peer
	for _, name := range ps.claims[p.node.ID] {
		if other := ps.byName[name]; other != p {
			out = append(out, other)
		}
	}
	return out
}

// claim records whether the peer with the given name has the ID.
func (ps *peers) claim(name string, id uint32, has bool) {
	names := slices.DeleteFunc(ps.claims[id], func(n string) bool { return n == name })
	if has {
		names = append(names, name)
	}
	if ps.claims[id] = names; len(names) == 0 {
		delete(ps.claims, id)
	}
}

// set replaces a peer; nil removes it. It returns the new values of the affected keys; a nil value means that the key must be deleted.
func (ps *peers) set(name string, now *peer) map[string]proto.Message {
	before := ps.byName[name]
	changes := map[string]proto.Message{}
	if before != nil {
		ps.changeReferences(before, -1, changes)
		ps.claim(name, before.node.ID, false)
		delete(ps.byName, name)
	}
	if now != nil {
		ps.changeReferences(now, +1, changes)
		ps.byName[name] = now
		ps.claim(name, now.node.ID, true)
	}
	for key := range changes {
		changes[key] = ps.winner(key, now)
	}
	return changes
}

func (ps *peers) changeReferences(p *peer, n int, changes map[string]proto.Message) {
	for _, v := range p.values {
		if ps.rendered[v.key] += n; ps.rendered[v.key] == 0 {
			delete(ps.rendered, v.key)
		}
		changes[v.key] = nil
	}
}

// winner returns the value that a key must have. It searches all peers only in the rare case that several have it.
func (ps *peers) winner(key string, now *peer) (v proto.Message) {
	switch {
	case ps.rendered[key] == 0:
		return nil
	case ps.rendered[key] == 1 && now != nil && now.value(key) != nil:
		return now.value(key)
	}
	best, owns := "", false
	for name, p := range ps.byName {
		rendered := p.value(key)
		o := ps.owner(p) != nil
		if rendered == nil || v != nil && (owns && !o || owns == o && name < best) {
			continue
		}
		v, best, owns = rendered, name, o
	}
	return v
}

// values returns the desired values of the peers, by key.
func (ps *peers) values() map[string]proto.Message {
	all := make(map[string]proto.Message, len(ps.rendered))
	for _, p := range ps.byName {
		for _, v := range p.values {
			if ps.rendered[v.key] == 1 {
				all[v.key] = v.msg
			} else if all[v.key] == nil {
				all[v.key] = ps.winner(v.key, nil)
			}
		}
	}
	return all
}
