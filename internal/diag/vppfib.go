package diag

import (
	"context"
	"fmt"
	"strings"
)

// fibEntry is VPP's FIB entry for an address.
type fibEntry struct {
	prefix  string
	source  string // origin of the entry: API is the agent, CLI the command line
	forward string // the first path
}

// parseFIB parses "show ip fib table 1 10.1.2.2": the entry, its sources (the first counts), and the paths under
// "forwarding:".
func parseFIB(text string) (e fibEntry, ok bool) {
	forwarding := false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case e.prefix == "" && strings.HasPrefix(f[1], "fib:"):
			e.prefix = f[0]
		case e.prefix != "" && e.source == "" && strings.HasPrefix(f[1], "refs:"):
			e.source = f[0]
		case f[0] == "forwarding:":
			forwarding = true
		case forwarding && e.forward == "" && f[0] == "[0]" && len(f) > 2:
			e.forward = strings.Join(f[2:], " ")
		}
	}
	return e, e.prefix != "" && e.source != ""
}

// fibFacts returns VPP's routes to the receivers, in the table of pods.
func (t *vppTrace) fibFacts(ctx context.Context) (facts []Fact) {
	for _, to := range receivers(t.req) {
		ip := "ip"
		if to.Is6() {
			ip = "ip6"
		}
		text, err := t.s.CLI(ctx, fmt.Sprintf("show %s fib table %d %s", ip, t.s.PodTable, to))
		e, ok := parseFIB(text)
		if err != nil || !ok {
			continue // the trace of the packet shows the cause
		}
		f := Fact{Where: "pods in VPP", What: "route", Text: fmt.Sprintf("to %s: %s, programmed by %s: %s", to, e.prefix, e.source,
			e.forward)}
		if e.source == "CLI" {
			f.Problem = true
			f.Text += "; it was added at VPP's command line and takes precedence over the agent's route"
		}
		if t.req.Service {
			f.Backend = to.String()
		}
		facts = append(facts, f)
	}
	return facts
}
