package diag

import (
	"encoding/hex"
	"net/netip"
	"slices"
)

// The packet tracer of VPP records the first packets that reach an input node. On a node with traffic these are other packets. VPP's classifier
// selects those that are recorded: it compares bytes at fixed offsets, so there is one table for each encapsulation and kind of packet.

// maxFilters bounds the kinds of packets. VPP aborts when the memory of a classifier table is full, which is with some hundred entries.
const maxFilters = 128

// classifyVector is the unit of VPP's classifier tables in bytes.
const classifyVector = 16

// networkHeaders returns the offsets at which the network header of a pod's packet starts: after Ethernet, or after VXLAN over IPv4 and IPv6.
func networkHeaders() []int {
	const ethernet, udp, vxlan = 14, 8, 8
	return []int{ethernet, ethernet + 20 + udp + vxlan + ethernet, ethernet + 40 + udp + vxlan + ethernet}
}

// field is a value at an offset from the start of the network header. The EtherType is at -2.
type field struct {
	at    int
	value []byte
}

// headers are the offsets in a packet of one family, without options or extension headers.
type headers struct {
	etherType                []byte
	proto, source, dest, end int
	icmp                     byte   // protocol number
	icmpErrors               []byte // types of ICMP messages that answer other packets
}

func headersOf(dest netip.Addr) headers {
	if dest.Is6() {
		return headers{etherType: []byte{0x86, 0xdd}, proto: 6, source: 8, dest: 24, end: 40, icmp: 58, icmpErrors: []byte{1, 2, 3, 4}}
	}
	return headers{etherType: []byte{8, 0}, proto: 9, source: 12, dest: 16, end: 20, icmp: 1, icmpErrors: []byte{3, 11, 12}}
}

// filterCommands returns the commands that make VPP's packet tracer record only the packets of the probe, its answers, and packets whose port a
// node on the way may have replaced.
func filterCommands(req TraceRequest) []string {
	var out []string
	for _, start := range networkHeaders() {
		kinds := packetKinds(req) // the probe and its answers come first
		for _, fields := range kinds[:min(len(kinds), maxFilters)] {
			mask, match := classifierBytes(start, append(fields, field{-2, headersOf(req.Dest).etherType}))
			out = append(out, "classify filter trace mask hex "+hex.EncodeToString(mask)+" match hex "+hex.EncodeToString(match))
		}
	}
	return out
}

// packetKinds returns the fields by which the packets are selected.
func packetKinds(req TraceRequest) [][]field {
	h := headersOf(req.Dest)
	number := func(n uint16) []byte { return []byte{byte(n >> 8), byte(n)} }
	if req.Proto == protoICMP {
		proto := field{h.proto, []byte{h.icmp}}
		kinds := [][]field{{proto, {h.end + 4, number(req.SourcePort)}}}
		for _, icmpError := range h.icmpErrors {
			kinds = append(kinds, []field{proto, {h.dest, req.Source.AsSlice()}, {h.end, []byte{icmpError}}})
		}
		for _, a := range req.OtherSources {
			kinds = append(kinds, []field{proto, {h.source, a.AsSlice()}, {h.dest, req.Dest.AsSlice()}},
				[]field{proto, {h.source, req.Dest.AsSlice()}, {h.dest, a.AsSlice()}})
		}
		return kinds
	}
	proto := field{h.proto, []byte{map[string]byte{protoTCP: 6, protoUDP: 17}[req.Proto]}}
	kinds := [][]field{{proto, {h.end, number(req.SourcePort)}}, {proto, {h.end + 2, number(req.SourcePort)}}}
	ports := []uint16{req.Port}
	for _, b := range req.Backends {
		if !slices.Contains(ports, b.Port()) {
			ports = append(ports, b.Port())
		}
	}
	for _, p := range ports {
		for _, a := range req.OtherSources {
			kinds = append(kinds, []field{proto, {h.source, a.AsSlice()}, {h.end + 2, number(p)}},
				[]field{proto, {h.dest, a.AsSlice()}, {h.end, number(p)}})
		}
	}
	return kinds
}

// classifierBytes returns mask and value for a packet whose network header starts at an offset.
func classifierBytes(start int, fields []field) (mask, match []byte) {
	size := 0
	for _, f := range fields {
		size = max(size, start+f.at+len(f.value))
	}
	size = (size + classifyVector - 1) / classifyVector * classifyVector
	mask, match = make([]byte, size), make([]byte, size)
	for _, f := range fields {
		copy(match[start+f.at:], f.value)
		for i := range f.value {
			mask[start+f.at+i] = 0xff
		}
	}
	return mask, match
}
