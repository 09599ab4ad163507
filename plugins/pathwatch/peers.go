package pathwatch

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Peer is another node.
type Peer struct {
	Name string
	ID   uint32
	// Addrs answer in the pod network of the node, one per family.
	Addrs []netip.Addr
	// Near: this node is one of the two that watch it all the time.
	Near bool
}

// peerAddr is the state of one address of a peer.
type peerAddr struct {
	node       string
	near       bool
	knownFrom  time.Time // asked for the first time
	answered   bool      // ever
	missed     int       // in a row
	hits       int       // in a row
	down       bool
	lastMissed time.Time
}

// peers is the state of all peers that were asked.
type peers struct {
	byAddr map[netip.Addr]*peerAddr
	came   map[string]struct{} // nodes that have ever answered, by whatever family
	answer time.Time           // the last one, of any peer
	silent map[string]struct{} // nodes that have answered before and did not since
}

func newPeers() peers {
	return peers{byAddr: map[netip.Addr]*peerAddr{}, came: map[string]struct{}{}, silent: map[string]struct{}{}}
}

// set forgets what is not a peer any more.
func (p *peers) set(list []Peer) {
	now := make(map[netip.Addr]*peerAddr, len(p.byAddr))
	there := make(map[string]bool, len(list))
	for i := range list {
		there[list[i].Name] = true
		for _, a := range list[i].Addrs {
			s := p.byAddr[a]
			if s == nil || s.node != list[i].Name {
				s = &peerAddr{node: list[i].Name}
			}
			s.near = list[i].Near
			now[a] = s
		}
	}
	p.byAddr = now
	for _, names := range []map[string]struct{}{p.came, p.silent} {
		maps.DeleteFunc(names, func(name string, _ struct{}) bool { return !there[name] })
	}
}

// pause forgets the misses that have not counted yet: something else explains them.
func (p *peers) pause() {
	for _, s := range p.byAddr {
		s.missed = 0
	}
	p.answer = time.Time{}
	clear(p.silent)
}

// step notes the answers of a round; when it is excused, silence does not count.
func (p *peers) step(at time.Time, asked []askedPeer, excused bool, t *Times) {
	heard := false
	for _, a := range asked {
		s := p.byAddr[a.Addr]
		switch {
		case s == nil: // has left meanwhile
		case a.OK:
			s.answered, s.missed = true, 0
			if s.hits++; s.hits >= t.PeerHits {
				s.down = false
			}
			p.came[s.node] = struct{}{}
			heard = true
		case !excused:
			p.miss(at, s, t)
		}
	}
	if heard {
		p.answer = at
		clear(p.silent)
	}
}

func (p *peers) miss(at time.Time, s *peerAddr, t *Times) {
	if s.knownFrom.IsZero() {
		s.knownFrom = at
	}
	s.hits, s.lastMissed = 0, at
	s.missed++
	if s.answered {
		p.silent[s.node] = struct{}{}
		if p.answer.IsZero() {
			p.answer = at
		}
	}
	if s.missed >= t.PeerMisses && (s.answered || at.Sub(s.knownFrom) >= t.PeerJoins && !p.otherAnswers(s)) {
		s.down = true
	}
}

// otherAnswers reports whether another address of the node has ever answered: two nodes need not have both families in common.
func (p *peers) otherAnswers(s *peerAddr) bool {
	_, came := p.came[s.node]
	return came && !s.answered
}

// suspect reports whether a peer missed its last question, or is down.
func (p *peers) suspect(l *Peer) bool {
	return slices.ContainsFunc(l.Addrs, func(a netip.Addr) bool {
		s := p.byAddr[a]
		return s != nil && (s.missed > 0 || s.down) && !p.otherAnswers(s)
	})
}

// allSilent says that nothing answers who did before, and that these are several.
func (p *peers) allSilent(at time.Time, t *Times) bool {
	return len(p.silent) >= 2 && p.noneFor(at, t.AllPeers)
}

// noneFor says that no node has answered for a time; answer is zero while none ever has.
func (p *peers) noneFor(at time.Time, d time.Duration) bool {
	return !p.answer.IsZero() && at.Sub(p.answer) >= d
}

// count counts the addresses that answer, that are silent, and of which nothing is known.
func (p *peers) count() (up, down, unknown int) {
	for _, s := range p.byAddr {
		switch {
		case s.down:
			down++
		case s.answered:
			up++
		default:
			unknown++
		}
	}
	return up, down, unknown
}

// namedPeers is how many are named; a message must stay readable.
const namedPeers = 5

// unreachable is the cause for the peers that are down.
func (p *peers) unreachable() (Cause, bool) {
	var list []string
	quiet := true
	for a, s := range p.byAddr {
		if s.down {
			list = append(list, s.node+" ("+a.String()+")")
			quiet = quiet && !s.near
		}
	}
	if len(list) == 0 {
		return Cause{}, false
	}
	slices.Sort(list)
	text := strings.Join(list[:min(len(list), namedPeers)], ", ")
	if more := len(list) - namedPeers; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	node, _, _ := strings.Cut(list[0], " ")
	return Cause{Kind: PeerUnreachable, Object: node, Quiet: quiet, Text: "no answer through the overlay from " + text}, true
}
