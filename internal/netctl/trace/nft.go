package trace

import (
	"regexp"
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// nftLine is a line of "nft monitor trace": trace id 1234 ip contiv hook-filter-forward rule … (verdict drop).
type nftLine struct {
	id, family, table, chain string
	kind                     string // packet:, rule, verdict, policy
	text                     string
}

// own is the table that only marks packets.
const ownTable = "contiv-trace"

func parseNft(text string) []nftLine {
	var out []nftLine
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 7 || f[0] != "trace" || f[1] != "id" {
			continue
		}
		out = append(out, nftLine{id: f[2], family: f[3], table: f[4], chain: f[5], kind: f[6], text: strings.Join(f[7:], " ")})
	}
	return out
}

// readNft picks the packet of the flow that came farthest; the kernel gives all lines of a packet one number.
func readNft(c *diag.Capture, f Flow, answer bool) Path {
	lines := map[string][]nftLine{}
	var order []string
	for _, l := range parseNft(c.Text) {
		if lines[l.id] == nil {
			order = append(order, l.id)
		}
		lines[l.id] = append(lines[l.id], l)
	}
	n := newNames(c.Interfaces)
	best := Path{Outcome: NotSeen, Hops: []Hop{}}
	for _, id := range order {
		if !nftCarries(lines[id], f, answer) {
			continue
		}
		if path := nftPath(lines[id], n); len(path.Hops) > len(best.Hops) {
			best = path
		}
	}
	return best
}

func nftCarries(lines []nftLine, f Flow, answer bool) bool {
	family := "ip"
	if f.Dest.Is6() {
		family = "ip6"
	}
	for _, l := range lines {
		if l.kind != "packet:" {
			continue
		}
		text := " " + l.text + " "
		if strings.Contains(text, " "+family+" daddr "+f.Dest.String()+" ") &&
			(answer || strings.Contains(text, " "+family+" saddr "+f.Source.String()+" ")) {
			return true
		}
	}
	return false
}

// nftPath tells where the packet came in, which rules it met, and how that ended.
func nftPath(lines []nftLine, n names) Path {
	device := regexp.MustCompile(`(iif|oif) "([^"]+)"`)
	verdict := regexp.MustCompile(`\(verdict ([^)]*)\)\s*$`)
	path := Path{Outcome: Unknown, Hops: []Hop{}}
	in := ""
	for _, l := range lines {
		stage := l.family + " " + l.table + " " + l.chain
		if l.kind == "packet:" {
			for _, m := range device.FindAllStringSubmatch(l.text, -1) {
				switch {
				case m[1] == "iif" && in == "":
					in = m[2]
					path.Hops = append(path.Hops, Hop{"received", "received from " + n.of(in)})
				case m[1] == "oif" && path.Out != n.of(m[2]):
					path.Out = n.of(m[2])
					path.Hops = append(path.Hops, Hop{"routed", "leaves by " + path.Out})
				}
			}
			continue
		}
		if l.table == ownTable {
			continue
		}
		switch {
		case l.kind == "rule":
			path.Hops = append(path.Hops, Hop{stage, l.text})
			if m := verdict.FindStringSubmatch(l.text); m != nil && m[1] == "drop" {
				path.Outcome, path.Reason = Dropped, "rule in "+stage+": "+l.text
			}
		case l.kind == "policy" && l.text == "drop":
			path.Hops = append(path.Hops, Hop{stage, "policy drop"})
			path.Outcome, path.Reason = Dropped, "the policy of "+stage
		}
	}
	if path.Outcome == Unknown && path.Out != "" {
		path.Outcome = Sent
	}
	return path
}
