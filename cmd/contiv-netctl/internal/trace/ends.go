package trace

import (
	"net/netip"
	"strconv"
	"strings"
)

// Ends holds a packet's addresses and ports (0 where the protocol has none).
type Ends struct {
	Source netip.AddrPort `json:"source"`
	Dest   netip.AddrPort `json:"dest"`
}

func (e Ends) valid() bool { return e.Source.IsValid() && e.Dest.IsValid() }

// Onward returns the flow as it leaves the node: with another source, if the node has translated the source to its own address.
func (s *Side) Onward(f Flow) Flow {
	if source := s.There.Left.Source.Addr(); source.IsValid() {
		f.Source = source
	}
	return f
}

// ends returns the ends with which the packet arrived at VPP, and those with which it left, before it was encapsulated in a tunnel.
func (p vppPacket) ends(proto string) (came, left Ends) {
	for _, h := range p {
		if strings.HasPrefix(h.node, "vxlan") || strings.HasPrefix(h.node, "ipip") {
			if left.valid() && strings.HasSuffix(h.node, "-encap") {
				return came, left
			}
			came, left = Ends{}, Ends{} // the inner packet of the tunnel is the one that counts
			continue
		}
		if strings.HasPrefix(h.node, pluginNodes) {
			if came, left, ok := deniedEnds(h); ok {
				return came, left
			}
		}
		e, ok := vppHeader(h.lines, proto)
		if !ok {
			continue
		}
		if !came.valid() {
			came = e
		}
		left = e
	}
	return came, left
}

// vppHeader parses "TCP: 10.1.1.2 -> 10.1.1.3", and "TCP: 4711 -> 80" after it.
func vppHeader(lines []string, proto string) (e Ends, ok bool) {
	for _, line := range lines {
		rest, is := strings.CutPrefix(strings.TrimSpace(line), proto+": ")
		if !is {
			continue
		}
		f := strings.Fields(rest)
		if len(f) < 3 || f[1] != "->" {
			continue
		}
		src, errSrc := netip.ParseAddr(f[0])
		dst, errDst := netip.ParseAddr(f[2])
		if errSrc == nil && errDst == nil {
			e, ok = Ends{netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)}, true
			continue
		}
		sport, errSrc := strconv.ParseUint(f[0], 10, 16)
		dport, errDst := strconv.ParseUint(f[2], 10, 16)
		if ok && errSrc == nil && errDst == nil {
			return Ends{netip.AddrPortFrom(e.Source.Addr(), uint16(sport)), netip.AddrPortFrom(e.Dest.Addr(), uint16(dport))}, true
		}
	}
	return e, ok
}

// nftEnds parses "… ip saddr 10.1.1.2 ip daddr 10.1.1.3 … tcp sport 4711 tcp dport 80 …" in a packet's line.
func nftEnds(text string) (e Ends, ok bool) {
	var src, dst netip.Addr
	var sport, dport uint64
	f := strings.Fields(text)
	for i := 0; i+2 < len(f); i++ {
		switch {
		case f[i] != "ip" && f[i] != "ip6" && f[i] != "tcp" && f[i] != "udp":
		case f[i+1] == "saddr":
			src, _ = netip.ParseAddr(f[i+2]) // ok is false for an invalid address
		case f[i+1] == "daddr":
			dst, _ = netip.ParseAddr(f[i+2])
		case f[i+1] == "sport":
			sport = port(f[i+2])
		case f[i+1] == "dport":
			dport = port(f[i+2])
		}
	}
	e = Ends{netip.AddrPortFrom(src, uint16(sport)), netip.AddrPortFrom(dst, uint16(dport))}
	return e, e.valid()
}

// port parses a port number; nft prints names for some ports only if an option selects it.
func port(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return n
}
