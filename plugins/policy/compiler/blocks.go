package compiler

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// blocks returns the set of the networks of blocks without their exceptions; nil if there are none. If there are more networks than a set may
// have members, the set is over its limit and has none: an exception makes up to 128 networks of one.
func (c *Compiler) blocks(list []*kube.IPBlock) *set {
	most := min(c.large.limit, model.MaxMembers)
	var nets []netip.Prefix
	for _, b := range list {
		fits := false
		if nets, fits = networksOf(nets, b, len(nets)+most); fits && len(nets) > 2*most {
			nets = disjoint(nets)
			fits = len(nets) <= most
		}
		if !fits {
			return c.tooManyNetworks(list, most)
		}
	}
	switch nets = disjoint(nets); {
	case len(nets) == 0:
		return nil
	case len(nets) > most:
		return c.tooManyNetworks(list, most)
	}
	return c.networks(nets)
}

// tooManyNetworks returns a set that is over its limit. Blocks of different rules may have the same set, since it has no members.
func (c *Compiler) tooManyNetworks(list []*kube.IPBlock, most int) *set {
	exceptions := 0
	for _, b := range list {
		exceptions += len(b.GetExcept())
	}
	meaning := fmt.Sprintf("networks of %d blocks with %d exceptions, of which the first is %s", len(list), exceptions, list[0].GetCidr())
	return c.intern(model.Networks, meaning, func(s *set) { s.unbuilt, s.count = true, most+1 })
}

// networksOf appends the networks of a block without its exceptions; none if it cannot be parsed. fits is false if the list would have more
// than most networks.
func networksOf(out []netip.Prefix, b *kube.IPBlock, most int) (list []netip.Prefix, fits bool) {
	whole, err := netip.ParsePrefix(b.GetCidr())
	if err != nil {
		return out, true
	}
	whole = whole.Masked()
	var exceptions []netip.Prefix
	for _, text := range b.GetExcept() {
		except, err := netip.ParsePrefix(text)
		if err != nil {
			return out, true
		}
		if except.Overlaps(whole) {
			exceptions = append(exceptions, except.Masked())
		}
	}
	return subtract(out, whole, disjoint(exceptions), most)
}

// subtract appends the parts of p that are in none of the exceptions, which are sorted and disjoint, and overlap p. It splits only networks
// that contain exceptions, so its cost is proportional to their number.
func subtract(out []netip.Prefix, p netip.Prefix, exceptions []netip.Prefix, most int) (list []netip.Prefix, fits bool) {
	switch {
	case len(exceptions) == 0:
		return append(out, p), len(out) < most
	case exceptions[0].Bits() <= p.Bits():
		return out, true
	}
	low, high := halves(p)
	i, _ := slices.BinarySearchFunc(exceptions, high.Addr(), func(e netip.Prefix, a netip.Addr) int { return e.Addr().Compare(a) })
	if out, fits = subtract(out, low, exceptions[:i], most); !fits {
		return out, false
	}
	return subtract(out, high, exceptions[i:], most)
}

func halves(p netip.Prefix) (low, high netip.Prefix) {
	at, bit := p.Bits()/8, byte(0x80)>>(p.Bits()%8)
	var upper netip.Addr
	if p.Addr().Is4() {
		b := p.Addr().As4()
		b[at] |= bit
		upper = netip.AddrFrom4(b)
	} else {
		b := p.Addr().As16()
		b[at] |= bit
		upper = netip.AddrFrom16(b)
	}
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(upper, p.Bits()+1)
}

// disjoint sorts networks and removes those that are inside others.
func disjoint(list []netip.Prefix) []netip.Prefix {
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	out := list[:0]
	for _, p := range list {
		if len(out) == 0 || !out[len(out)-1].Overlaps(p) {
			out = append(out, p)
		}
	}
	return out
}
