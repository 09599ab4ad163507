package links

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// tagPool is the prefix of the aliases of both ends of a ready VETH pair; the pair's name follows.
	tagPool    = "contiv-pool:"
	poolPodEnd = "cvq"
	poolHost   = "cvh"
)

// Pair is a ready VETH pair in the agent's namespace.
type Pair struct{ Pod, Host string }

// Pairs creates VETH pairs before they are needed. It may be used from any goroutine.
type Pairs struct {
	timeout time.Duration
	mtu     uint32
}

// NewPairs returns a Pairs that creates pairs with the given MTU, the usual one of pods: changing it later is also cheap.
func NewPairs(mtu uint32) *Pairs { return &Pairs{timeout: 5 * time.Second, mtu: mtu} }

func (p *Pairs) use(f func(s *sock) error) error {
	s, err := newSock(nil, p.timeout, nil)
	if err != nil {
		return err
	}
	defer s.close()
	return f(s)
}

// List returns the pairs that are ready: created and not in use. A pair that Make did not mark on both ends before its agent ended is removed.
func (p *Pairs) List() (pairs []Pair, err error) {
	err = p.use(func(s *sock) error {
		links, err := s.links()
		if err != nil {
			return err
		}
		alias := map[string]string{}
		for _, l := range links {
			alias[l.name] = l.alias
		}
		for _, l := range links {
			id, ok := strings.CutPrefix(l.name, poolHost)
			if !ok || l.kind != "veth" || l.group != groupPooled || l.alias != "" && l.alias != tagPool+id {
				continue // includes a pair that is being taken: its host end gets another alias first
			}
			if pod := poolPodEnd + id; l.alias != "" && alias[pod] == l.alias {
				pairs = append(pairs, Pair{Pod: pod, Host: l.name})
			} else if err := unlessGone(s.exec(delLink(l.index))); err != nil {
				return fmt.Errorf("remove %s, an incomplete VETH pair: %w", l.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list ready VETH pairs: %w", err)
	}
	return pairs, nil
}

// Make creates a pair: its host end is up, and checksum offloads are off on both ends, as VPP's af_packet requires.
func (p *Pairs) Make() (Pair, error) {
	var raw [5]byte
	_, _ = rand.Read(raw[:]) // never fails
	id := hex.EncodeToString(raw[:])
	pair := Pair{Pod: poolPodEnd + id, Host: poolHost + id}
	err := p.use(func(s *sock) error {
		group := uint32(groupPooled)
		peer := linkSpec{nsFD: -1, name: pair.Pod, mtu: p.mtu}
		if err := s.exec(newLink("veth", linkSpec{nsFD: -1, name: pair.Host, mtu: p.mtu, group: &group, up: true}, &peer)); err != nil {
			return err
		}
		alias := tagPool + id
		for _, name := range []string{pair.Host, pair.Pod} {
			if err := s.exec(setLink(linkSpec{nsFD: -1, name: name, alias: &alias})); err != nil {
				return errors.Join(err, removeByName(s, pair.Host))
			}
			if err := s.checksumsOff(name); err != nil {
				return errors.Join(err, removeByName(s, pair.Host))
			}
		}
		return nil
	})
	if err != nil {
		return Pair{}, fmt.Errorf("make a ready VETH pair: %w", err)
	}
	return pair, nil
}

// Delete removes a pair; deleting a pair that does not exist succeeds.
func (p *Pairs) Delete(pair Pair) error {
	err := p.use(func(s *sock) error { return removeByName(s, pair.Host) })
	if err != nil {
		return fmt.Errorf("remove the ready VETH pair %s: %w", pair.Host, err)
	}
	return nil
}

func removeByName(s *sock, name string) error {
	l, err := s.link(name)
	if errors.Is(err, errNoLink) {
		return nil
	}
	if err == nil {
		err = unlessGone(s.exec(delLink(l.index)))
	}
	return err
}
