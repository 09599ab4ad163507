package nft

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// spans is a list of intervals of keys that all have the same size, ordered, apart from each other (there is at least one
// key between two of them): what an interval set of the kernel is made of.
type spans struct {
	size int // of a key in bytes: 2 for ports, 4 or 16 for addresses
	list []span
}

const portBytes = 2

// span is first..last, both included, as numbers in network byte order.
type span struct{ first, last [16]byte }

// all is true when every key is in one of the spans.
func (s spans) all() bool {
	if len(s.list) != 1 {
		return false
	}
	for i := range s.size {
		if s.list[0].first[i] != 0 || s.list[0].last[i] != 0xff {
			return false
		}
	}
	return true
}

// addressBytes is the size of a family's addresses.
func addressBytes(f table.Family) int {
	if f == table.IPv4 {
		return 4
	}
	return 16
}

// netSpans are the addresses that a list of nets covers; nets of the other family cover none.
func netSpans(f table.Family, nets []netip.Prefix) spans {
	s := spans{size: addressBytes(f)}
	for _, p := range nets {
		if ofFamily(f, p) {
			s.list = append(s.list, prefixSpan(p))
		}
	}
	return s.tidy()
}

func ofFamily(f table.Family, p netip.Prefix) bool {
	return p.IsValid() && p.Addr().BitLen() == 8*addressBytes(f)
}

// prefixSpan is first and last address of a prefix.
func prefixSpan(p netip.Prefix) (s span) {
	b := p.Masked().Addr().AsSlice()
	copy(s.first[:], b)
	copy(s.last[:], b)
	for i := p.Bits(); i < len(b)*8; i++ {
		s.last[i/8] |= 0x80 >> (i % 8)
	}
	return s
}

// portSpans are the ports that a list of ranges covers.
func portSpans(list []table.PortRange) spans {
	s := spans{size: portBytes}
	for _, r := range list {
		var one span
		binary.BigEndian.PutUint16(one.first[:], r.First)
		binary.BigEndian.PutUint16(one.last[:], r.Last)
		if r.First <= r.Last {
			s.list = append(s.list, one)
		}
	}
	return s.tidy()
}

// tidy sorts and merges what overlaps or touches.
func (s spans) tidy() spans {
	slices.SortFunc(s.list, func(a, b span) int { return slices.Compare(a.first[:], b.first[:]) })
	out := s.list[:0]
	for _, next := range s.list {
		if n := len(out); n > 0 {
			after, more := s.next(out[n-1].last)
			if !more {
				break // it reaches the end
			}
			if slices.Compare(next.first[:], after[:]) <= 0 {
				if slices.Compare(next.last[:], out[n-1].last[:]) > 0 {
					out[n-1].last = next.last
				}
				continue
			}
		}
		out = append(out, next)
	}
	s.list = out
	return s
}

// next is the key after k; more is false if k is the last one.
func (s spans) next(k [16]byte) (after [16]byte, more bool) {
	for i := s.size - 1; i >= 0; i-- {
		k[i]++
		if k[i] != 0 {
			return k, true
		}
	}
	return k, false
}

// prefix is the prefix that a span of addresses is, if it is one.
func (one span) prefix(size int) (netip.Prefix, bool) {
	if size == portBytes {
		return netip.Prefix{}, false
	}
	addr, _ := netip.AddrFromSlice(one.first[:size])
	bits := 0
	for bits < 8*size && one.first[bits/8]&(0x80>>(bits%8)) == one.last[bits/8]&(0x80>>(bits%8)) {
		bits++
	}
	p := netip.PrefixFrom(addr, bits)
	return p, prefixSpan(p) == one
}
