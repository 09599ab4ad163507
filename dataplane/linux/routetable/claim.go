package routetable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// claim is a target of one class. It is comparable.
type claim struct {
	class  string
	dst    netip.Prefix
	iface  string
	gw     netip.Addr
	onLink bool
	typ    uint8
	src    netip.Addr
	mtu    uint32
	mac    mac
	hasMAC bool
}

// claimOf converts and validates a target.
func claimOf(class string, f table.Family, t *Target) (claim, error) {
	c := claim{class: class, dst: t.CIDR.Masked(), gw: t.GW, onLink: t.OnLink, src: t.Src, mtu: uint32(max(t.MTU, 0))}
	is := func(a netip.Addr) bool { return a.Is4() == (f == table.IPv4) && !a.Is4In6() }
	switch {
	case !t.CIDR.IsValid() || !is(t.CIDR.Addr()):
		return c, fmt.Errorf("%s is not an IPv%d prefix", t.CIDR, f)
	case t.GW.IsValid() && !is(t.GW), t.Src.IsValid() && !is(t.Src):
		return c, fmt.Errorf("next hop %s and source %s must be IPv%d as the route is", t.GW, t.Src, f)
	}
	switch t.Type {
	case Blackhole, Throw:
		c.typ = unix.RTN_BLACKHOLE
		if t.Type == Throw {
			c.typ = unix.RTN_THROW
		}
		c.gw, c.onLink, c.src, c.mtu = netip.Addr{}, false, netip.Addr{}, 0
		return c, nil
	case Unicast:
		c.typ, c.iface = unix.RTN_UNICAST, t.Iface
	default:
		return c, fmt.Errorf("route type %d is not known", t.Type)
	}
	c.onLink = c.onLink && c.gw.IsValid()
	if c.iface == "" {
		return c, errors.New("no link is given")
	}
	if len(t.MAC) == 0 {
		return c, nil
	}
	if len(t.MAC) != len(c.mac) || !c.gw.IsValid() && !c.dst.IsSingleIP() {
		return c, fmt.Errorf("a neighbour with MAC %s needs 6 bytes and a single address", t.MAC)
	}
	c.mac, c.hasMAC = mac(t.MAC), true
	return c, nil
}

// neighbour returns the address that the claim's MAC belongs to.
func (c *claim) neighbour() netip.Addr {
	if c.gw.IsValid() {
		return c.gw
	}
	return c.dst.Addr()
}

// entry is the state of a destination.
type entry struct {
	dst    netip.Prefix
	claims []claim  // in order of precedence
	room   [1]claim // memory for claims, as there is mostly one

	goal    route  // the route that the kernel must have, if wanted
	goalVia string // the link's name
	wanted  bool
	waitFor []int    // if not wanted: the links that claims wait for; the kernel's routes over them are kept
	neigh   neighKey // neighbour that the goal uses; zero: none

	actual route // our route in the kernel, if there
	there  bool
	known  bool // there was a claim: the route may be removed at once. Unknown routes have a time of grace.

	// servedBy is the link whose owner has had the address, if served: another owner must not continue its connections.
	served   bool
	servedBy servingLink

	changed, todo, resting bool // the entry is in the table's list of this name
}

type servingLink struct {
	iface string
	index int
}

// servingLink returns the link that the goal is for.
func (e *entry) servingLink() servingLink { return servingLink{e.goalVia, e.goal.index} }

// differs reports whether the kernel must be changed, or connections removed.
func (e *entry) differs() bool {
	if e.wanted {
		return !e.there || e.actual != e.goal
	}
	if e.there {
		return !slices.Contains(e.waitFor, e.actual.index)
	}
	return len(e.claims) == 0 && e.served
}

// idle reports whether the entry can be dropped.
func (e *entry) idle() bool {
	return len(e.claims) == 0 && !e.there && !e.changed && !e.todo && !e.resting
}

// addClaim adds a claim unless it exists.
func (e *entry) addClaim(c claim) (added bool) {
	at, found := slices.BinarySearchFunc(e.claims, c, compareClaims)
	if !found {
		e.claims = slices.Insert(e.claims, at, c)
	}
	return !found
}

// dropClaim removes a claim if it exists.
func (e *entry) dropClaim(c claim) (dropped bool) {
	at := slices.Index(e.claims, c)
	if at >= 0 {
		e.claims = slices.Delete(e.claims, at, at+1)
	}
	return at >= 0
}

// claimsLink reports whether any class claims the destination over a link.
func (e *entry) claimsLink(iface string) bool {
	return slices.ContainsFunc(e.claims, func(c claim) bool { return c.iface == iface })
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	default:
		return -1
	}
}

// compareClaims orders claims by precedence; only identical claims compare equal.
func compareClaims(x, y claim) int {
	return cmp.Or(strings.Compare(x.class, y.class), strings.Compare(x.iface, y.iface), x.gw.Compare(y.gw),
		cmp.Compare(x.typ, y.typ), cmp.Compare(x.mtu, y.mtu), x.src.Compare(y.src), bytes.Compare(x.mac[:], y.mac[:]),
		compareBool(x.hasMAC, y.hasMAC), compareBool(x.onLink, y.onLink))
}
