package trace

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// vppHop is one node of VPP's graph in the output of "show trace".
type vppHop struct {
	node  string
	lines []string
}

type vppPacket []vppHop

// parseVPP parses "show trace": packets of several hops, each a line "00:00:02:545793: ethernet-input" with lines below.
func parseVPP(text string) []vppPacket {
	hopLine := regexp.MustCompile(`^\d\d:\d\d:\d\d:\d+: (\S+)`)
	var out []vppPacket
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "Packet ") {
			out = append(out, nil)
			continue
		}
		if len(out) == 0 || strings.HasPrefix(line, "-----") {
			continue
		}
		p := &out[len(out)-1]
		if m := hopLine.FindStringSubmatch(line); m != nil {
			*p = append(*p, vppHop{node: m[1]})
		} else if len(*p) > 0 && strings.TrimSpace(line) != "" {
			last := &(*p)[len(*p)-1]
			last.lines = append(last.lines, line)
		}
	}
	return out
}

// readVPP returns the packet of the flow that passed the most stages. The source of an answer may be any address: at the sender's node it is
// the address of the service, and before that the address of the backend.
func readVPP(c *diag.Capture, f Flow, answer bool) Path {
	best := Path{Outcome: NotSeen, Hops: []Hop{}}
	n := newNames(c.Interfaces)
	for _, p := range parseVPP(c.Text) {
		if !p.carries(f, answer) {
			continue
		}
		if path := p.path(n); len(path.Hops) > len(best.Hops) {
			best = path
			best.Came, best.Left = p.ends(f.vppProto())
		}
	}
	return best
}

// carries reports whether the trace contains "ICMP: 10.1.1.2 -> 10.1.1.3", and with a port for "TCP: 4711 -> 80" after it.
func (p vppPacket) carries(f Flow, answer bool) bool {
	proto := f.vppProto()
	want := []string{proto + ": " + f.Source.String() + " -> " + f.Dest.String()}
	if answer {
		want = []string{proto + ": ", " -> " + f.Dest.String()}
	}
	ports := f.Port == 0
	found := false
	for _, h := range p {
		for _, line := range h.lines {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, want[0]) && (len(want) == 1 && line == want[0] || len(want) == 2 && strings.HasSuffix(line,
				want[1])):
				found = true
			case found && !ports && portLine(line, proto, f.Port):
				ports = true
			}
		}
	}
	return found && ports
}

// vppProto returns VPP's name of the protocol.
func (f Flow) vppProto() string {
	proto := strings.ToUpper(f.Proto)
	if proto == "ICMP" && f.Dest.Is6() {
		return "ICMP6"
	}
	return proto
}

func portLine(line, proto string, port uint16) bool {
	rest, ok := strings.CutPrefix(line, proto+": ")
	if !ok {
		return false
	}
	fields := strings.Fields(rest)
	return len(fields) >= 3 && fields[1] == "->" && fields[2] == strconv.Itoa(int(port))
}

func (p vppPacket) path(n names) Path {
	path := Path{Outcome: Unknown, Hops: []Hop{}}
	for i, h := range p {
		path.Hops = append(path.Hops, Hop{Stage: h.node, What: p.what(i, n)})
	}
	last := p[len(p)-1]
	switch {
	case last.node == "drop" || last.node == "error-drop":
		path.Outcome, path.Reason = Dropped, p.dropReason(n)
	case strings.HasSuffix(last.node, "-tx"):
		path.Outcome, path.Out = Sent, n.of(strings.TrimSuffix(last.node, "-tx"))
	case last.node == uplinkOutput:
		path.Outcome, path.Out = Sent, p.leftBy(n)
	case last.node == "punt" || last.node == "error-punt":
		path.Outcome, path.Reason = Dropped, "punted: "+firstLine(last.lines)
	case strings.HasSuffix(last.node, "-icmp-echo-request"), strings.HasSuffix(last.node, "-local"), strings.HasSuffix(last.node,
		"-punt"):
		path.Outcome = Local
	}
	return path
}

// what describes in one line what a stage did.
func (p vppPacket) what(i int, n names) string {
	h := p[i]
	line := firstLine(h.lines)
	switch {
	case h.node == uplinkOutput && i == len(p)-1:
		return "sent to " + p.leftBy(n)
	case strings.HasSuffix(h.node, "-input") && i == 0:
		return "received from " + p.receivedFrom(n)
	case strings.HasPrefix(h.node, pluginNodes):
		return pluginWhat(h.lines)
	case h.node == "ip4-lookup", h.node == "ip6-lookup":
		return "routed: " + fieldAfter(line, "fib", "FIB index")
	case h.node == "ip4-rewrite", h.node == "ip6-rewrite":
		if _, via, ok := strings.Cut(line, " : "); ok {
			via, _, _ = strings.Cut(via, ": mtu:") // IPv6 addresses have colons, too
			return n.renamed("forwarded: " + via)
		}
	case strings.HasSuffix(h.node, "-output") && n.known(strings.TrimSuffix(h.node, "-output")):
		return "leaves by " + n.of(strings.TrimSuffix(h.node, "-output"))
	case strings.HasSuffix(h.node, "-tx"):
		return "sent to " + n.of(strings.TrimSuffix(h.node, "-tx"))
	case h.node == "ip4-input", h.node == "ip6-input", h.node == "ip4-drop", h.node == "ip6-drop":
		for _, l := range h.lines {
			if strings.Contains(l, " -> ") {
				return strings.TrimSpace(l)
			}
		}
	}
	return n.renamed(line)
}

// uplinkOutput is the graph node by which our plugin sends packets to an AF_PACKET uplink. Packets that it does not send continue in another
// node.
const uplinkOutput = "contiv-offload-output"

// leftBy returns the interface of the last output node.
func (p vppPacket) leftBy(n names) string {
	for _, h := range slices.Backward(p) {
		if name, ok := strings.CutSuffix(h.node, "-output"); ok && n.known(name) {
			return n.of(name)
		}
	}
	return "an interface"
}

func fieldAfter(line, word, label string) string {
	fields := strings.Fields(line)
	for i, f := range fields {
		if f == word && i+1 < len(fields) {
			return label + " " + fields[i+1]
		}
	}
	return line
}

// renamed adds our names to VPP's.
func (n names) renamed(line string) string {
	fields := strings.Fields(line)
	for i, f := range fields {
		if known, ok := n.byName[f]; ok && describe(known) != f {
			fields[i] = describe(known)
		}
	}
	return strings.Join(fields, " ")
}

// receivedFrom returns the interface by which the packet arrived, by its index.
func (p vppPacket) receivedFrom(n names) string {
	number := regexp.MustCompile(`(?:sw-if-index|sw_if_index|hw_if_index|hw-if-index) (\d+)`)
	for _, word := range []string{"sw-if-index ", "hw_if_index ", "sw_if_index "} {
		for _, h := range p[:min(2, len(p))] {
			for _, line := range h.lines {
				at := strings.Index(line, word)
				if at < 0 {
					continue
				}
				m := number.FindStringSubmatch(line[at:])
				if m == nil {
					continue
				}
				if index, err := strconv.ParseUint(m[1], 10, 32); err == nil {
					if i, ok := n.byIndex[uint32(index)]; ok {
						return describe(i)
					}
				}
			}
		}
	}
	return "an interface"
}

// dropReason returns the error counter that VPP raised for the packet, and an explanation where the counter's name is not enough.
func (p vppPacket) dropReason(n names) string {
	reason, rx := "", ""
	for _, h := range p {
		switch h.node {
		case "error-drop":
			rx = strings.TrimPrefix(firstLine(h.lines), "rx:")
		case "drop":
			reason = firstLine(h.lines)
		}
	}
	if reason == "" {
		reason = "no reason given"
	}
	out := reason
	for i := len(p) - 1; i > 0; i-- {
		node := p[i].node
		if node != "drop" && node != "error-drop" {
			out += ", in " + node
			if before := p[i-1]; (node == "ip4-drop" || node == "ip6-drop") && strings.HasSuffix(before.node, "-lookup") {
				out += fmt.Sprintf(": no route to the destination, or one that drops, in %s",
					fieldAfter(firstLine(before.lines), "fib", "FIB index"))
			}
			break
		}
	}
	if rx != "" {
		out += ", received from " + n.of(rx)
	}
	return out
}
