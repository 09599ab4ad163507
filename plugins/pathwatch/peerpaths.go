package pathwatch

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Peer states of PeerPath.
const (
	PeerAnswers = "answering"
	PeerSilent  = "silent"
	PeerMissed  = "missed" // the last probe was not answered; this is not confirmed yet
)

// PeerPath is the path to one address of another node: the result of the last probe. An address that has not been probed yet has none. In a
// large cluster a peer whose witness is another node is probed in turn, so that Queried may be minutes ago.
type PeerPath struct {
	Node    string     `json:"node"`
	Address netip.Addr `json:"address"`
	State   string     `json:"state"` // answering, silent, missed
	// RTTMs is the round trip time of the last answer, in milliseconds; 0 without one.
	RTTMs   float64   `json:"rttMs,omitempty"`
	Queried time.Time `json:"asked"`
}

// book holds the paths to peers for REST requests. Each round changes only the paths that it has probed.
type book struct {
	mu    sync.Mutex
	paths map[netip.Addr]PeerPath // guarded by mu
}

// note records the probes of a round.
func (b *book) note(at time.Time, queried []queriedPeer, down func(netip.Addr) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paths == nil {
		b.paths = map[netip.Addr]PeerPath{}
	}
	for _, a := range queried {
		p := PeerPath{Node: a.Node, Address: a.Addr, State: PeerAnswers, Queried: at}
		switch {
		case down(a.Addr):
			p.State = PeerSilent
		case !a.OK:
			p.State = PeerMissed
		}
		if a.OK {
			p.RTTMs = float64(a.Took.Microseconds()) / 1000
		}
		b.paths[a.Addr] = p
	}
}

// keep removes the addresses that no longer belong to a peer.
func (b *book) keep(peers []Peer) {
	owners := map[netip.Addr]string{}
	for i := range peers {
		for _, a := range peers[i].Addrs {
			owners[a] = peers[i].Name
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for a, p := range b.paths {
		if owners[a] != p.Node {
			delete(b.paths, a)
		}
	}
}

// list returns a copy of the paths, sorted by node and address.
func (b *book) list() []PeerPath {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]PeerPath, 0, len(b.paths))
	for _, p := range b.paths {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y PeerPath) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), x.Address.Compare(y.Address))
	})
	return out
}

// Down reports whether an address has been silent for so many probes that it counts as down.
func (c *core) Down(a netip.Addr) bool {
	s := c.peers.byAddr[a]
	return s != nil && s.down
}
