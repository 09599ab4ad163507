package wire

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Spans is a list of intervals of keys of the same size. The intervals are ordered and not adjacent (at least one key is between two of
// them), as in an interval set of the kernel.
type Spans struct {
	Size int // of a key in bytes: 2 for ports, 4 or 16 for addresses
	List []Span
}

const PortBytes = 2

// Span is first..last, both included, as numbers in network byte order.
type Span struct{ First, Last [16]byte }

// All reports whether the spans contain every key.
func (s Spans) All() bool {
	if len(s.List) != 1 {
		return false
	}
	for i := range s.Size {
		if s.List[0].First[i] != 0 || s.List[0].Last[i] != 0xff {
			return false
		}
	}
	return true
}

// AddressBytes returns the size of a family's addresses in bytes.
func AddressBytes(f table.Family) int {
	if f == table.IPv4 {
		return 4
	}
	return 16
}

// Nets returns the addresses that a list of prefixes covers; prefixes of the other family are ignored.
func Nets(f table.Family, nets []netip.Prefix) Spans {
	s := Spans{Size: AddressBytes(f)}
	for _, p := range nets {
		if OfFamily(f, p) {
			s.List = append(s.List, SpanOf(p))
		}
	}
	return s.tidy()
}

func OfFamily(f table.Family, p netip.Prefix) bool {
	return p.IsValid() && p.Addr().BitLen() == 8*AddressBytes(f)
}

// SpanOf returns the first and last address of a prefix.
func SpanOf(p netip.Prefix) (s Span) {
	b := p.Masked().Addr().AsSlice()
	copy(s.First[:], b)
	copy(s.Last[:], b)
	for i := p.Bits(); i < len(b)*8; i++ {
		s.Last[i/8] |= 0x80 >> (i % 8)
	}
	return s
}

// Ports returns the ports that a list of ranges covers.
func Ports(list []table.PortRange) Spans {
	s := Spans{Size: PortBytes}
	for _, r := range list {
		var one Span
		binary.BigEndian.PutUint16(one.First[:], r.First)
		binary.BigEndian.PutUint16(one.Last[:], r.Last)
		if r.First <= r.Last {
			s.List = append(s.List, one)
		}
	}
	return s.tidy()
}

// tidy sorts the spans and merges those that overlap or are adjacent.
func (s Spans) tidy() Spans {
	slices.SortFunc(s.List, func(a, b Span) int { return slices.Compare(a.First[:], b.First[:]) })
	out := s.List[:0]
	for _, next := range s.List {
		if n := len(out); n > 0 {
			after, more := s.Next(out[n-1].Last)
			if !more {
				break // it reaches the end
			}
			if slices.Compare(next.First[:], after[:]) <= 0 {
				if slices.Compare(next.Last[:], out[n-1].Last[:]) > 0 {
					out[n-1].Last = next.Last
				}
				continue
			}
		}
		out = append(out, next)
	}
	s.List = out
	return s
}

// Next returns the key after k; more is false if k is the last one.
func (s Spans) Next(k [16]byte) (after [16]byte, more bool) {
	for i := s.Size - 1; i >= 0; i-- {
		k[i]++
		if k[i] != 0 {
			return k, true
		}
	}
	return k, false
}

// Prefix returns the prefix that is equal to a span of addresses, if there is one.
func (one Span) Prefix(size int) (netip.Prefix, bool) {
	if size == PortBytes {
		return netip.Prefix{}, false
	}
	addr, _ := netip.AddrFromSlice(one.First[:size])
	bits := 0
	for bits < 8*size && one.First[bits/8]&(0x80>>(bits%8)) == one.Last[bits/8]&(0x80>>(bits%8)) {
		bits++
	}
	p := netip.PrefixFrom(addr, bits)
	return p, SpanOf(p) == one
}
