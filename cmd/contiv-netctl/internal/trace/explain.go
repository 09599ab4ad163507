package trace

import (
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// Verdict is the result for the packet as a whole.
type Verdict struct {
	Delivered bool   `json:"delivered"` // it arrived at the receiver
	Answered  bool   `json:"answered"`
	Lost      string `json:"lost,omitempty"` // the node where the packet, or its answer, was lost
	Text      string `json:"text"`
}

// Explain follows the packet from the node of the sender (from) to the node of the receiver (to, which may be the same), and the answer back.
// probe is what the sender observed.
func Explain(from, to Side, probe *diag.ProbeResult) Verdict {
	if probe != nil && probe.Received > 0 {
		return Verdict{Delivered: true, Answered: true, Text: "delivered, reply received" + after(probe)}
	}
	reported := noticed(probe)
	if v, lost := lostOn(from, from.There, "the packet"); lost {
		v.Text += reported
		return v
	}
	if to.Node != from.Node {
		if v, lost := lostOn(to, to.There, "the packet"); lost {
			if to.There.Outcome == NotSeen {
				v.Text = fmt.Sprintf("lost between the nodes: %s sent the packet to %s, and %s did not receive it", from.Node,
					orElse(from.There.Out, "the network"), to.Node)
				v.Lost = from.Node + " – " + to.Node
			}
			v.Text += reported
			return v
		}
	}
	v := Verdict{Delivered: true, Lost: to.Node}
	switch {
	case probe != nil && slices.Contains(probe.Errors, refused) && strings.HasPrefix(to.There.Out, "pod "):
		v.Text = fmt.Sprintf("delivered to %s on %s, which rejected it: nothing listens on that port there", to.There.Out, to.Node)
	case to.Back.Outcome == NotSeen && firstProblem(to.Facts) != "":
		v.Delivered = false
		v.Text = fmt.Sprintf("should reach %s on %s, but: %s", orElse(to.There.Out, "its receiver"), to.Node, firstProblem(to.Facts))
	case to.Back.Outcome == NotSeen && to.There.Outcome == Local:
		v.Text = fmt.Sprintf("delivered to the node %s itself, which sent no reply", to.Node)
	case to.Back.Outcome == NotSeen && !strings.HasPrefix(to.There.Out, "pod "):
		v.Delivered = false
		v.Text = fmt.Sprintf("left %s by %s, and no reply came back", to.Node, orElse(to.There.Out, "an interface"))
	case to.Back.Outcome == NotSeen:
		v.Text = fmt.Sprintf("delivered to %s on %s, which has sent no reply: check that a program listens on the port", orElse(to.There.Out,
			"its receiver"),
			to.Node)
	case to.Back.Outcome == Dropped:
		v.Text = fmt.Sprintf("delivered, but the reply was dropped on %s: %s", to.Node, to.Back.Reason)
	case to.Node != from.Node && from.Back.Outcome == NotSeen:
		v.Lost = to.Node + " – " + from.Node
		v.Text = fmt.Sprintf("delivered, but the reply was lost between the nodes: %s sent it to %s, and %s did not receive it", to.Node,
			orElse(to.Back.Out, "the network"), from.Node)
	case from.Back.Outcome == Dropped:
		v.Lost = from.Node
		v.Text = fmt.Sprintf("delivered, but the reply was dropped on %s: %s", from.Node, from.Back.Reason)
	case from.Back.Outcome == Unknown:
		v.Lost = from.Node
		v.Text = fmt.Sprintf("delivered, but the reply, which came back to %s, was lost there: %s", from.Node, unseenDrop(from, from.Back))
	default:
		v.Lost = from.Node
		v.Text = "delivered, and a reply was sent back, but the sender did not receive it"
	}
	v.Text += reported
	return v
}

// after returns " in 0.12 ms", if a round-trip time was reported.
func after(probe *diag.ProbeResult) string {
	if len(probe.RTTMs) == 0 {
		return ""
	}
	return fmt.Sprintf(" in %.2f ms", probe.RTTMs[0])
}

// LostBefore returns whether, and how, an unanswered packet ends on a node that should only forward it.
func LostBefore(s Side, probe *diag.ProbeResult) (Verdict, bool) {
	if probe != nil && probe.Received > 0 {
		return Verdict{}, false
	}
	v, lost := lostOn(s, s.There, "the packet")
	v.Text += noticed(probe)
	return v, lost
}

// ExplainHalf is Explain for packets of which nothing was recorded on the receiver's node.
func ExplainHalf(from Side, to string, probe *diag.ProbeResult, missing string) Verdict {
	if probe != nil && probe.Received > 0 {
		return Verdict{Delivered: true, Answered: true, Text: "delivered, reply received" + after(probe)}
	}
	v, lost := lostOn(from, from.There, "the packet")
	if !lost {
		v = Verdict{Lost: "beyond " + from.Node, Text: fmt.Sprintf("%s sent the packet to %s by %s, and no reply came back; "+
			"nothing was recorded on the other node: %s", from.Node, to, orElse(from.There.Out, "an interface"), missing)}
	}
	v.Text += noticed(probe)
	return v
}

// unseenDrop explains a loss of which no reason was recorded. On Linux, the packet was lost between two rules. VPP records nothing when the ring of
// an interface is full; then it only counts.
func unseenDrop(s Side, p Path) string {
	if s.Capture == nil || s.Capture.Dataplane != "vpp" || len(p.Hops) == 0 {
		return "no rule of nf_tables dropped it, so the kernel's routing did, its check of the source (rp_filter) or iptables-legacy: does another " +
			"program's route lead elsewhere?"
	}
	end := p.Hops[len(p.Hops)-1].Stage
	for _, d := range s.Drops {
		if name, ok := strings.CutSuffix(end, "-output"); ok && d.Where == name+"-tx" {
			return fmt.Sprintf("%s drops packets: %s (%d during the trace)", d.Where, d.Reason, d.Count)
		}
	}
	return fmt.Sprintf("VPP's record of it ends in %s without a reason; counters that rose are listed above", end)
}

// refused is the error that a sender gets for a TCP reset.
const refused = "connection refused"

// lostOn returns whether and why a packet ends on a node.
func lostOn(s Side, p Path, what string) (Verdict, bool) {
	switch p.Outcome {
	case Dropped:
		text := fmt.Sprintf("%s was dropped on %s: %s", what, s.Node, p.Reason)
		if problem := firstProblem(s.Facts); problem != "" {
			text += "; " + problem
		}
		return Verdict{Lost: s.Node, Text: text}, true
	case NotSeen:
		text := fmt.Sprintf("%s did not reach the dataplane of %s", what, s.Node)
		if problem := firstProblem(s.Facts); problem != "" {
			text += ": " + problem
		}
		return Verdict{Lost: s.Node, Text: text}, true
	case Unknown: // rules have seen it, but it did not leave: see unseenDrop
		return Verdict{Lost: s.Node, Text: fmt.Sprintf("%s was lost on %s: %s", what, s.Node, orElse(firstProblem(s.Facts),
			unseenDrop(s, p)))}, true
	}
	return Verdict{}, false
}

func firstProblem(facts []diag.Fact) string {
	for _, f := range facts {
		if f.Problem {
			return fmt.Sprintf("%s of the %s %s", f.What, f.Where, f.Text)
		}
	}
	return ""
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
