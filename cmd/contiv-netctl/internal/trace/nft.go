package trace

import (
	"regexp"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// nftLine is a line of "nft monitor trace": trace id 1234 ip contiv hook-filter-forward rule … (verdict drop).
type nftLine struct {
	id, family, table, chain string
	kind                     string // packet:, rule, verdict, policy
	text                     string
}

const (
	// ownTable is the table that only marks packets, before all other tables.
	ownTable = "contiv-trace"
	// ourTable has the driver's rules, servicesTable the rules of services.
	ourTable, servicesTable = "contiv", "contiv-services"
	// ourChains and felixChains are the prefixes of chains that the driver makes by iptables: --linux-names selects one.
	ourChains, felixChains = "contiv-", "cali-"
)

// minor reports whether a rule of ours only leads to other rules.
func minor(l nftLine, verdict string) bool {
	switch {
	case l.table == ourTable || strings.HasPrefix(l.chain, ourChains) || strings.HasPrefix(l.chain, felixChains): // by nftables, or by iptables
		return verdict != "accept" && verdict != "drop"
	case l.table == servicesTable:
		return verdict == "return" || verdict == "continue"
	}
	return strings.HasPrefix(verdict, "jump "+ourChains) || strings.HasPrefix(verdict, "jump "+felixChains)
}

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

// nftPackets groups lines by packet. The kernel gives all lines of a packet one number, and reuses the number for later packets; each packet
// begins in the table that marks it.
func nftPackets(lines []nftLine) [][]nftLine {
	var out [][]nftLine
	at := map[string]int{} // number → place of the packet that currently has the number
	for _, l := range lines {
		i, known := at[l.id]
		if !known || l.table == ownTable && l.kind == "packet:" && (l.chain == "prerouting" || l.chain == "output") {
			i = len(out)
			at[l.id] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], l)
	}
	return out
}

// readNft returns the packet of the flow that passed the most stages.
func readNft(c *diag.Capture, f Flow, answer bool) Path {
	n := newNames(c.Interfaces)
	best := Path{Outcome: NotSeen, Hops: []Hop{}}
	for _, lines := range nftPackets(parseNft(c.Text)) {
		if !nftCarries(lines, f, answer) {
			continue
		}
		if path := nftPath(lines, n); len(path.Hops) > len(best.Hops) {
			best = path
		}
	}
	return best
}

func nftCarries(lines []nftLine, f Flow, answer bool) bool {
	for _, l := range lines {
		if l.kind != "packet:" {
			continue
		}
		e, ok := nftEnds(l.text)
		if ok && e.Dest.Addr() == f.Dest && (answer || e.Source.Addr() == f.Source) && (f.Port == 0 || e.Dest.Port() == f.Port) {
			return true
		}
	}
	return false
}

// nftPath returns where the packet arrived, which rules it met, and how it ended.
func nftPath(lines []nftLine, n names) Path {
	device := regexp.MustCompile(`(iif|oif) "([^"]+)"`)
	verdict := regexp.MustCompile(`\(verdict ([^)]*)\)\s*$`)
	path := Path{Outcome: Unknown, Hops: []Hop{}}
	in := ""
	for _, l := range lines {
		stage := l.family + " " + l.table + " " + l.chain
		if l.kind == "packet:" {
			if e, ok := nftEnds(l.text); ok {
				if path.Left = e; !path.Came.valid() {
					path.Came = e
				}
			}
			for _, m := range device.FindAllStringSubmatch(l.text, -1) {
				switch {
				case m[1] == "iif" && in == "":
					in = m[2]
					path.Hops = append(path.Hops, Hop{Stage: "received", What: "received from " + n.of(in)})
				case m[1] == "oif" && path.Out != n.of(m[2]):
					path.Out = n.of(m[2])
					path.Hops = append(path.Hops, Hop{Stage: "routed", What: "leaves by " + path.Out})
				}
			}
			continue
		}
		if l.table == ownTable {
			continue
		}
		switch {
		case l.kind == "rule":
			m := verdict.FindStringSubmatch(l.text)
			path.Hops = append(path.Hops, Hop{Stage: stage, What: l.text, Minor: m != nil && minor(l, m[1])})
			if m != nil && m[1] == "drop" {
				path.Outcome, path.Reason = Dropped, "rule in "+stage+": "+l.text
			}
		case l.kind == "policy" && l.text == "drop":
			path.Hops = append(path.Hops, Hop{Stage: stage, What: "policy drop"})
			path.Outcome, path.Reason = Dropped, "the policy of "+stage
		}
	}
	switch {
	case path.Outcome != Unknown:
	case path.Out != "":
		path.Outcome = Sent
	case slices.ContainsFunc(lines, func(l nftLine) bool { return l.table == ownTable && l.chain == "input" }):
		path.Outcome = Local
	}
	return path
}
