package model

import (
	"net/netip"
	"slices"
	"strings"
)

// The bits of EndpointSlice.conditions.
const (
	CondReady byte = 1 << iota
	CondServing
	CondTerminating
)

// Endpoint is one endpoint of a slice. It shares memory with the slice.
type Endpoint struct {
	Addr       netip.Addr
	Conditions byte
	Place      *Place // may be nil; its getters and methods accept nil
}

// Ready reports whether the endpoint takes new connections.
func (e Endpoint) Ready() bool { return e.Conditions&CondReady != 0 }

// Serving reports whether the endpoint processes packets, including an endpoint that takes no new connections.
func (e Endpoint) Serving() bool { return e.Conditions&CondServing != 0 }

// ServingTerminating reports whether the endpoint is terminating but still takes connections; it is used only if no
// endpoint is ready.
func (e Endpoint) ServingTerminating() bool {
	return e.Conditions&(CondReady|CondServing|CondTerminating) == CondServing|CondTerminating
}

// HintsZone reports whether the endpoint is meant for clients in the zone.
func (p *Place) HintsZone(zone string) bool { return slices.Contains(p.GetForZones(), zone) }

// HintsNode reports whether the endpoint is meant for clients on the node.
func (p *Place) HintsNode(node string) bool { return slices.Contains(p.GetForNodes(), node) }

// Len returns the number of endpoints. If columns differ in length, as in a damaged file, the shortest column counts.
func (s *EndpointSlice) Len() int {
	return min(len(s.GetAddresses())/s.addrSize(), len(s.GetConditions()), len(s.GetPlace()))
}

func (s *EndpointSlice) addrSize() int {
	if s.GetIpv6() {
		return 16
	}
	return 4
}

// At returns endpoint number i, 0 <= i < Len().
func (s *EndpointSlice) At(i int) Endpoint {
	e := Endpoint{Addr: s.AddrAt(i), Conditions: s.Conditions[i]}
	if p := int(s.Place[i]); p < len(s.Places) {
		e.Place = s.Places[p]
	}
	return e
}

// AddrAt returns the address of endpoint number i.
func (s *EndpointSlice) AddrAt(i int) netip.Addr {
	if s.Ipv6 {
		return netip.AddrFrom16([16]byte(s.Addresses[16*i:]))
	}
	return netip.AddrFrom4([4]byte(s.Addresses[4*i:]))
}

// SliceBuilder builds a slice endpoint by endpoint.
type SliceBuilder struct {
	slice  *EndpointSlice
	places map[string]uint32
}

// NewSliceBuilder returns a builder that fills s, which has no endpoints yet. n is the expected number of endpoints.
func NewSliceBuilder(s *EndpointSlice, n int) *SliceBuilder {
	s.Addresses = make([]byte, 0, n*s.addrSize())
	s.Conditions = make([]byte, 0, n)
	s.Place = make([]uint32, 0, n)
	return &SliceBuilder{slice: s, places: map[string]uint32{}}
}

// Add appends an endpoint. It returns false, and adds nothing, when the address is of the wrong family.
func (b *SliceBuilder) Add(addr netip.Addr, conditions byte, place *Place) bool {
	if addr.Unmap().Is6() != b.slice.Ipv6 || !addr.IsValid() {
		return false
	}
	b.slice.Addresses = append(b.slice.Addresses, addr.Unmap().AsSlice()...)
	b.slice.Conditions = append(b.slice.Conditions, conditions)
	b.slice.Place = append(b.slice.Place, b.place(place))
	return true
}

// place returns the index of the place, which is added if it is new.
func (b *SliceBuilder) place(p *Place) uint32 {
	key := p.Key()
	i, ok := b.places[key]
	if !ok {
		i = uint32(len(b.slice.Places))
		b.slice.Places = append(b.slice.Places, p)
		b.places[key] = i
	}
	return i
}

// Key returns a text that is the same only for equal places: names in Kubernetes have no zero bytes.
func (p *Place) Key() string {
	var b strings.Builder
	b.WriteString(p.GetNode())
	b.WriteByte(0)
	b.WriteString(p.GetZone())
	for _, zone := range p.GetForZones() {
		b.WriteString("\x00z")
		b.WriteString(zone)
	}
	for _, node := range p.GetForNodes() {
		b.WriteString("\x00n")
		b.WriteString(node)
	}
	return b.String()
}
