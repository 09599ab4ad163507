package windataplane

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"

	"contiv.dev/vswitch/dataplane/windows/hns"
)

// family is an IP version: 4 or 6.
type family int

func familyOf(p netip.Prefix) family {
	if p.Addr().Is4() {
		return 4
	}
	return 6
}

// everything returns the net of all addresses of a family.
func (f family) everything() netip.Prefix {
	if f == 4 {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// netList is a sorted list of nets that do not overlap, all of one family.
type netList []netip.Prefix

// netsOf sorts nets and omits those that are within another one.
func netsOf(nets []netip.Prefix) netList {
	list := slices.Clone(nets)
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	out := list[:0]
	for _, p := range list {
		if n := len(out); n == 0 || !out[n-1].Overlaps(p) {
			out = append(out, p)
		}
	}
	return netList(out)
}

// intersect returns the intersection of both lists.
func (a netList) intersect(b netList) netList {
	var out netList
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch p, q := a[i], b[j]; {
		case p.Overlaps(q) && p.Bits() >= q.Bits(): // p is within q, and more nets of a may be in q
			out = append(out, p)
			i++
		case p.Overlaps(q):
			out = append(out, q)
			j++
		case p.Addr().Less(q.Addr()):
			i++
		default:
			j++
		}
	}
	return out
}

// subtract returns a without b. It may stop early when the result has more nets than the limit.
func (a netList) subtract(b netList, limit int) netList {
	s := subtraction{limit: limit}
	return s.subtract(a, b)
}

// subtraction is the state of one netList.subtract.
type subtraction struct {
	limit int
	left  netList
	looks int // number of comparisons with nets of the subtracted list
}

func (s *subtraction) subtract(a, b netList) netList {
	for _, p := range a {
		s.from(p, b)
	}
	return s.left
}

// from appends the rest of p without b, in order.
func (s *subtraction) from(p netip.Prefix, b netList) {
	if len(s.left) > s.limit {
		return
	}
	inside := s.overlapping(b, p)
	switch {
	case len(inside) == 0:
		s.left = append(s.left, p)
		return
	case inside[0].Bits() <= p.Bits():
		return
	}
	low, high := halves(p)
	s.from(low, inside)
	s.from(high, inside)
}

// overlapping returns the part of the list that overlaps a net: the net that contains it, or the nets within it.
func (s *subtraction) overlapping(list netList, p netip.Prefix) netList {
	search := func(list netList, found func(netip.Prefix) bool) int {
		return sort.Search(len(list), func(i int) bool { s.looks++; return found(list[i]) })
	}
	first := search(list, func(q netip.Prefix) bool { return !q.Addr().Less(p.Addr()) })
	if first > 0 && list[first-1].Overlaps(p) {
		return list[first-1 : first]
	}
	list = list[first:]
	return list[:search(list, func(q netip.Prefix) bool { return !q.Overlaps(p) })]
}

// halves splits a net that is not a single address.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	bits := p.Bits() + 1
	raw := p.Addr().AsSlice()
	raw[(bits-1)/8] |= 0x80 >> ((bits - 1) % 8)
	upper, _ := netip.AddrFromSlice(raw) // raw has the length of an address
	return netip.PrefixFrom(p.Addr(), bits), netip.PrefixFrom(upper, bits)
}

// portList is a sorted list of ranges that neither overlap nor touch.
type portList []hns.PortRange

var allPorts = portList{{First: 0, Last: 65535}}

// portsOf sorts ranges and joins those that overlap or touch.
func portsOf(ranges []hns.PortRange) portList {
	list := slices.Clone(ranges)
	slices.SortFunc(list, func(a, b hns.PortRange) int { return cmp.Compare(a.First, b.First) })
	out := list[:0]
	for _, r := range list {
		if n := len(out); n > 0 && int(r.First) <= int(out[n-1].Last)+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return portList(out)
}

func (a portList) intersect(b portList) portList {
	var out portList
	for _, x := range a {
		for _, y := range b {
			if first, last := max(x.First, y.First), min(x.Last, y.Last); first <= last {
				out = append(out, hns.PortRange{First: first, Last: last})
			}
		}
	}
	return out
}

func (a portList) subtract(b portList) portList {
	var out portList
	for _, x := range a {
		first := int(x.First)
		for _, y := range b {
			if int(y.Last) < first || y.First > x.Last {
				continue
			}
			if int(y.First) > first {
				out = append(out, hns.PortRange{First: uint16(first), Last: y.First - 1})
			}
			first = int(y.Last) + 1
		}
		if first <= int(x.Last) {
			out = append(out, hns.PortRange{First: uint16(first), Last: x.Last})
		}
	}
	return out
}
