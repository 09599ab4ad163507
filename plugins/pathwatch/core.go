package pathwatch

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Times holds the thresholds and timeouts of the watch.
type Times struct {
	Link         time.Duration // how long frames must wait on a link while none moves
	LinkFrames   uint64        // the minimum number of such frames
	LinkDown     int           // rounds without a device or carrier
	Gateway      int           // rounds in which the gateway is silent while VPP answers
	PeerMisses   int           // consecutive probes that a peer does not respond
	PeerHits     int           // consecutive probes that it answers, until it counts as back
	PeerJoins    time.Duration // for this long, a peer that has never answered may be about to join
	AllPeers     time.Duration // no peer answers
	TableRefused uint64        // sessions for which there was no room
	TableCalm    time.Duration // time without a refused session, until the table counts as having room again
	Ended        int           // rounds without a cause until the cause has ended
	Unproven     int           // the number of rounds after which a cause ends also for a link on which nothing moves
	HealFirst    time.Duration // the pause after the first repair attempt, doubled for each further one …
	HealMax      time.Duration // … up to this limit
	HealCalm     time.Duration // time without an attempt, beyond the longest pause, after which attempts are counted from one again
}

// defaultTimes returns the times that the agent uses.
func defaultTimes() Times {
	return Times{
		Link: 3 * time.Second, LinkFrames: 3, LinkDown: 2, Gateway: 4, PeerMisses: 3, PeerHits: 2, PeerJoins: 30 * time.Second,
		AllPeers: 4 * time.Second, TableRefused: 10, TableCalm: 10 * time.Second, Ended: 2, Unproven: 10, HealFirst: 15 * time.Second, HealMax: 10 * time.Minute, HealCalm: 5 * time.Minute,
	}
}

// core is the state of the data path: it turns rounds into causes and actions. It has no clock and starts no goroutine.
type core struct {
	times    Times
	picker   picker
	peers    peers
	uplink   link
	host     link
	table    table
	limits   limits
	gateway  int    // consecutive rounds in which the gateway was silent
	heard    uint64 // the number of frames that VPP had received from the uplink when a peer last answered
	causes   []*lasting
	tries    map[Fix]*attempts
	sessions Sessions
}

// lasting is a cause, with the number of rounds in which it was not seen, and the number of rounds in which it counted as ended.
type lasting struct {
	Cause
	unseen, ended int
}

// newCore returns a core without any data.
func newCore(times Times) *core {
	return &core{times: times, peers: newPeers(), limits: limits{}, tries: map[Fix]*attempts{}}
}

// SetPeers sets the other nodes and the ID of this node.
func (c *core) SetPeers(self uint32, list []Peer) { c.peers.set(c.picker.set(self, list)) }

// Query returns the addresses of peers to probe in the next round.
func (c *core) Query() []queriedPeer {
	var out []queriedPeer
	for _, p := range c.picker.pick(c.peers.suspect) {
		for _, a := range p.Addrs {
			out = append(out, queriedPeer{Node: p.Name, Addr: a})
		}
	}
	return out
}

// Pause clears all causes: the dataplane is not running or is being programmed, and other parts of the agent report this.
func (c *core) Pause() {
	c.uplink.reset()
	c.host.reset()
	c.peers.pause()
	c.gateway, c.causes = 0, nil
}

// Step processes a round. It returns the repair to run, at most one; after it, Causes are the current faults.
func (c *core) Step(r Round) action {
	var now []Cause
	add := func(cause Cause, ok bool) bool {
		if ok {
			now = append(now, cause)
		}
		return ok
	}
	c.sessions = r.Sessions
	add(c.table.step(r.At, r.Sessions, &c.times))
	now = append(now, c.limits.step(r.At, r.Refusing, &c.times)...)
	switch {
	case !r.Alive: // other parts report whether VPP has stopped or is busy
		c.uplink.pause(r.Uplink)
		c.host.pause(r.Host)
		c.peers.pause()
	case r.Gateway == silent:
		c.host.step(r.At, r.Host)
		c.uplink.pause(r.Uplink)
		c.peers.pause()
		add(c.silentGateway(r))
	default:
		c.gateway = 0
		c.host.pause(r.Host)
		c.uplink.step(r.At, r.Uplink)
		if add(c.brokenUplink(r)) {
			c.peers.pause()
			break
		}
		c.peers.step(r.At, r.Peers, c.uplink.doubtful(), &c.times)
		add(c.silentPeers(r))
	}
	c.merge(r, now)
	return c.next(r.At)
}

// silentGateway returns the cause for a host that does not reach VPP although VPP answers by other means.
func (c *core) silentGateway(r Round) (Cause, bool) {
	if c.gateway++; c.gateway < c.times.Gateway {
		return Cause{}, false
	}
	cause := Cause{Kind: GatewayUnreachable, Object: "VPP", Unready: true, heal: Fix{Resync: true},
		Text: "VPP's gateway does not reply to the host, although VPP runs"}
	if r.Host == nil {
		return cause, true
	}
	cause.Object = r.Host.Device
	switch why, ok := c.host.broken(r.At, &c.times); {
	case ok:
		cause.Text += "; " + why.Text
		if why.heal != (Fix{}) {
			cause.heal = why.heal
		}
	case c.host.doubtful(): // the next rounds decide
		cause.heal = Fix{}
	}
	return cause, true
}

func (c *core) brokenUplink(r Round) (Cause, bool) {
	cause, ok := c.uplink.broken(r.At, &c.times)
	// A node that is alone in its cluster works without an uplink.
	cause.Unready = cause.Kind != UplinkDown || len(c.picker.list) > 0
	return cause, ok
}

// silentPeers returns the cause for other nodes that do not respond. The frames that the uplink receives show whether this node is at fault.
func (c *core) silentPeers(r Round) (Cause, bool) {
	taken := uint64(0)
	if r.Uplink != nil {
		taken = r.Uplink.Taken
	}
	if c.peers.answer.Equal(r.At) {
		c.heard = taken
	}
	if !c.peers.allSilent(r.At, &c.times) {
		cause, ok := c.peers.unreachable()
		if ok && c.peers.noneFor(r.At, c.times.AllPeers) {
			// This node may be at fault, also in a cluster of two and when other nodes have just joined.
			cause.heal = Fix{Resync: true}
		}
		return cause, ok
	}
	cause := Cause{Kind: NoPeerAnswers, Object: "peers", heal: Fix{Resync: true}, Text: fmt.Sprintf("none of %d nodes that were "+
		"probed for %s replies through the overlay", len(c.peers.silent), r.At.Sub(c.peers.answer).Round(time.Second))}
	if r.Uplink == nil {
		return cause, true
	}
	cause.Object = r.Uplink.Device
	if taken == c.heard {
		cause.Kind, cause.Unready = UplinkSilent, true
		cause.Text += ", and no frames arrive at " + r.Uplink.Device
		return cause, true
	}
	cause.Text += ", although frames arrive at " + r.Uplink.Device + ": check whether a firewall between the nodes drops the overlay's packets"
	return cause, true
}

// works reports whether the round proves that a cause has ended, and not only that the cause was not seen.
func (c *core) works(k Kind, r *Round) bool {
	switch k {
	case GatewayUnreachable:
		return r.Gateway != silent
	case UplinkStuck:
		return c.uplink.out.moved
	case UplinkDeaf:
		return c.uplink.in.moved
	}
	return true
}

// merge updates the causes from this round. A cause that is no longer seen lasts a little longer: a link that was just created again has to
// prove that it works, if there is any traffic on it.
func (c *core) merge(r Round, now []Cause) {
	for _, old := range c.causes {
		old.unseen++
		if c.works(old.Kind, &r) || old.unseen >= c.times.Unproven {
			old.ended++
		}
	}
	at := r.At
	for _, cause := range now {
		i := slices.IndexFunc(c.causes, func(old *lasting) bool { return old.Kind == cause.Kind })
		if i < 0 {
			cause.Since = at
			c.causes = append(c.causes, &lasting{Cause: cause})
			continue
		}
		cause.Since = c.causes[i].Since
		*c.causes[i] = lasting{Cause: cause}
	}
	c.causes = slices.DeleteFunc(c.causes, func(old *lasting) bool { return old.ended >= c.times.Ended })
	order := causeKinds()
	slices.SortFunc(c.causes, func(a, b *lasting) int {
		return cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind))
	})
}

// Recreated clears the state of the links after a link has been created again.
func (c *core) Recreated() {
	c.uplink.reset()
	c.host.reset()
	c.peers.pause()
	c.gateway = 0
}

// State is the current state of the data path.
type State struct {
	Causes []Cause `json:"causes"`
	// Peers counts the addresses of other nodes by their state.
	Peers    PeerCount `json:"peers"`
	Sessions Sessions  `json:"natSessions"`
	Uplink   *Link     `json:"uplink,omitempty"`
	Host     *Link     `json:"hostLink,omitempty"`
}

// PeerCount counts addresses of other nodes.
type PeerCount struct {
	Answering int `json:"answering"`
	Silent    int `json:"silent"`
	Unknown   int `json:"unknown"` // not probed yet, or about to join
}

// State returns a copy of the state.
func (c *core) State() State {
	s := State{Causes: []Cause{}, Sessions: c.sessions, Uplink: c.uplink.before, Host: c.host.before}
	for _, cause := range c.causes {
		s.Causes = append(s.Causes, cause.Cause)
	}
	s.Peers.Answering, s.Peers.Silent, s.Peers.Unknown = c.peers.count()
	return s
}

// Ready returns the reason why the node cannot serve pods, or nil.
func (s State) Ready() error {
	var list []string
	for _, c := range s.Causes {
		if c.Unready {
			list = append(list, c.String())
		}
	}
	if len(list) == 0 {
		return nil
	}
	return errors.New("data path: " + strings.Join(list, "; "))
}

// String describes the cause in one line.
func (c Cause) String() string { return string(c.Kind) + ": " + c.Text }

// addressesOf returns the addresses to probe.
func addressesOf(queried []queriedPeer) []netip.Addr {
	out := make([]netip.Addr, len(queried))
	for i, a := range queried {
		out[i] = a.Addr
	}
	return out
}
