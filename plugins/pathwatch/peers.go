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
	// Addrs are the addresses of the node that answer in the pod network, one per family.
	Addrs []netip.Addr
	// Near is true if this node is one of the two witnesses of the peer, which probe it in every round.
	Near bool
}

// peerAddr is the state of one address of a peer.
type peerAddr struct {
	node       string
	near       bool
	knownFrom  time.Time // the first probe
	answered   bool      // the address has answered at least once
	missed     int       // consecutive probes without an answer
	hits       int       // consecutive probes with an answer
	down       bool
	lastMissed time.Time
}

// peers is the state of all peers that were probed.
type peers struct {
	byAddr map[netip.Addr]*peerAddr
	came   map[string]struct{} // nodes that have ever answered, on any of their addresses
	answer time.Time           // the time of the last answer of any peer
	silent map[string]struct{} // nodes that have answered before that time and not since
}

func newPeers() peers {
	return peers{byAddr: map[netip.Addr]*peerAddr{}, came: map[string]struct{}{}, silent: map[string]struct{}{}}
}

// set removes the addresses that no longer belong to a peer.
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

// pause clears the misses that have not counted yet: they have another reason.
func (p *peers) pause() {
	for _, s := range p.byAddr {
		s.missed = 0
	}
	p.answer = time.Time{}
	clear(p.silent)
}

// step records the answers of a round; if excused is true, missing answers do not count.
func (p *peers) step(at time.Time, queried []queriedPeer, excused bool, t *Times) {
	heard := false
	for _, a := range queried {
		s := p.byAddr[a.Addr]
		switch {
		case s == nil: // the node has left meanwhile
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

// otherAnswers reports whether only another address of the node has ever answered: two nodes need not have both families in common.
func (p *peers) otherAnswers(s *peerAddr) bool {
	_, came := p.came[s.node]
	return came && !s.answered
}

// suspect reports whether a peer did not reply to its last probe, or is down.
func (p *peers) suspect(l *Peer) bool {
	return slices.ContainsFunc(l.Addrs, func(a netip.Addr) bool {
		s := p.byAddr[a]
		return s != nil && (s.missed > 0 || s.down) && !p.otherAnswers(s)
	})
}

// allSilent reports whether none of the nodes that answered before answers, and there are at least two of them.
func (p *peers) allSilent(at time.Time, t *Times) bool {
	return len(p.silent) >= 2 && p.noneFor(at, t.AllPeers)
}

// noneFor reports whether no node has answered for the time d; answer is zero while no node has ever answered.
func (p *peers) noneFor(at time.Time, d time.Duration) bool {
	return !p.answer.IsZero() && at.Sub(p.answer) >= d
}

// count returns the numbers of addresses that answer, that are silent, and whose state is unknown.
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

// namedPeers is the number of peers that a message names, so that it stays readable.
const namedPeers = 5

// unreachable returns the cause for the peers that are down.
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
	return Cause{Kind: PeerUnreachable, Object: node, Quiet: quiet, Text: "no reply through the overlay from " + text}, true
}
