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

// Times are the timeout of the watch.
type Times struct {
	Link         time.Duration // frames wait on a link while none moves
	LinkFrames   uint64        // and this many, at least
	LinkDown     int           // rounds without device or carrier
	Gateway      int           // rounds in which the gateway is silent while VPP answers
	PeerMisses   int           // questions in a row that a peer does not answer
	PeerHits     int           // and that it answers, until it counts as back
	PeerJoins    time.Duration // a peer that has never answered may be about to join
	AllPeers     time.Duration // nothing answers
	TableRefused uint64        // sessions that found no room
	TableCalm    time.Duration // without another one, until the table counts as having room again
	Ended        int           // rounds without a cause until it has ended
	Unproven     int           // rounds after which this holds also for a link on which nothing moves
	HealFirst    time.Duration // the pause after the first attempt to heal, doubled for each further one …
	HealMax      time.Duration // … up to this
	HealCalm     time.Duration // without an attempt, beyond the longest pause, until attempts are counted from one again
}

// defaultTimes are those of the agent.
func defaultTimes() Times {
	return Times{
		Link: 3 * time.Second, LinkFrames: 3, LinkDown: 2, Gateway: 4, PeerMisses: 3, PeerHits: 2, PeerJoins: 30 * time.Second,
		AllPeers: 4 * time.Second, TableRefused: 10, TableCalm: 10 * time.Second, Ended: 2, Unproven: 10, HealFirst: 15 * time.Second, HealMax: 10 * time.Minute, HealCalm: 5 * time.Minute,
	}
}

// core is the state of the data path: rounds in, causes and actions out. It has no clock and does nothing by itself.
type core struct {
	times    Times
	picker   picker
	peers    peers
	uplink   link
	host     link
	table    table
	limits   limits
	gateway  int    // rounds in which it has been silent
	heard    uint64 // frames that VPP had taken from the uplink when a peer answered last
	causes   []*lasting
	tries    map[Fix]*attempts
	sessions Sessions
}

// lasting is a cause, for how many rounds it has not been seen, and for how many of them its end was.
type lasting struct {
	Cause
	unseen, ended int
}

// newCore is a core without any data yet.
func newCore(times Times) *core {
	return &core{times: times, peers: newPeers(), limits: limits{}, tries: map[Fix]*attempts{}}
}

// SetPeers reports which other nodes there are, and the ID of this one.
func (c *core) SetPeers(self uint32, list []Peer) { c.peers.set(c.picker.set(self, list)) }

// Ask reports which addresses of which peers to ask in the next round.
func (c *core) Ask() []askedPeer {
	var out []askedPeer
	for _, p := range c.picker.pick(c.peers.suspect) {
		for _, a := range p.Addrs {
			out = append(out, askedPeer{Node: p.Name, Addr: a})
		}
	}
	return out
}

// Pause forgets everything that is wrong: the dataplane is away, or is being programmed, and others tell that.
func (c *core) Pause() {
	c.uplink.forget()
	c.host.forget()
	c.peers.pause()
	c.gateway, c.causes = 0, nil
}

// Step takes in a round. It returns what is to be done, at most one thing at a time; Causes are then what is wrong.
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
	case !r.Alive: // whether it stands still or works, is reported by others
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

// silentGateway: the host does not reach VPP, which answers otherwise.
func (c *core) silentGateway(r Round) (Cause, bool) {
	if c.gateway++; c.gateway < c.times.Gateway {
		return Cause{}, false
	}
	cause := Cause{Kind: GatewayUnreachable, Object: "VPP", Unready: true, heal: Fix{Resync: true},
		Text: "VPP's gateway does not answer the host, although VPP runs"}
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
	case c.host.doubtful(): // the next rounds will show
		cause.heal = Fix{}
	}
	return cause, true
}

func (c *core) brokenUplink(r Round) (Cause, bool) {
	cause, ok := c.uplink.broken(r.At, &c.times)
	// A node alone does its work without an uplink.
	cause.Unready = cause.Kind != UplinkDown || len(c.picker.list) > 0
	return cause, ok
}

// silentPeers: others do not answer. Whether that is this node's fault shows in what its uplink receives.
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
			// It may be the fault of this node, also in a cluster of two and when other nodes have just joined.
			cause.heal = Fix{Resync: true}
		}
		return cause, ok
	}
	cause := Cause{Kind: NoPeerAnswers, Object: "peers", heal: Fix{Resync: true}, Text: fmt.Sprintf("none of %d nodes that were "+
		"asked for %s answers through the overlay", len(c.peers.silent), r.At.Sub(c.peers.answer).Round(time.Second))}
	if r.Uplink == nil {
		return cause, true
	}
	cause.Object = r.Uplink.Device
	if taken == c.heard {
		cause.Kind, cause.Unready = UplinkSilent, true
		cause.Text += ", and nothing at all comes from " + r.Uplink.Device
		return cause, true
	}
	cause.Text += ", although frames come from " + r.Uplink.Device + ": look for a filter of the overlay's packets between nodes"
	return cause, true
}

// works reports whether the round shows that a cause has ended, and not only that nothing is seen of it.
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

// merge makes what was seen in this round the causes. One that is not seen any more lasts a little longer: a link that was just made
// again has to prove that it works, if there is any traffic on it.
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

// Recreated says that a link has been made again: what was seen of it before does not count any more.
func (c *core) Recreated() {
	c.uplink.forget()
	c.host.forget()
	c.peers.pause()
	c.gateway = 0
}

// State is the data path as it is known.
type State struct {
	Causes []Cause `json:"causes"`
	// Peers are the addresses of other nodes by what is known of them.
	Peers    PeerCount `json:"peers"`
	Sessions Sessions  `json:"natSessions"`
	Uplink   *Link     `json:"uplink,omitempty"`
	Host     *Link     `json:"hostLink,omitempty"`
}

// PeerCount counts addresses of other nodes.
type PeerCount struct {
	Answering int `json:"answering"`
	Silent    int `json:"silent"`
	Unknown   int `json:"unknown"` // not asked yet, or about to join
}

// State is a copy.
func (c *core) State() State {
	s := State{Causes: []Cause{}, Sessions: c.sessions, Uplink: c.uplink.before, Host: c.host.before}
	for _, cause := range c.causes {
		s.Causes = append(s.Causes, cause.Cause)
	}
	s.Peers.Answering, s.Peers.Silent, s.Peers.Unknown = c.peers.count()
	return s
}

// Ready reports why the node cannot serve pods.
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

// String is the cause in one line.
func (c Cause) String() string { return string(c.Kind) + ": " + c.Text }

// addressesOf are addresses to ask.
func addressesOf(asked []askedPeer) []netip.Addr {
	out := make([]netip.Addr, len(asked))
	for i, a := range asked {
		out[i] = a.Addr
	}
	return out
}
