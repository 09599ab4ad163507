package trace

import (
	"fmt"
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// Verdict is what became of the packet as a whole.
type Verdict struct {
	Delivered bool   `json:"delivered"` // it came to the receiver
	Answered  bool   `json:"answered"`
	Lost      string `json:"lost,omitempty"` // the node where it, or the answer, was lost
	Text      string `json:"text"`
}

// Explain follows the packet from the node of the sender (from) to that of the receiver (to, which may be the same), and the
// answer back. probe is what the sender noticed.
func Explain(from, to Side, probe *diag.ProbeResult) Verdict {
	if probe != nil && probe.Received > 0 {
		return Verdict{Delivered: true, Answered: true, Text: fmt.Sprintf("delivered and answered in %.2f ms", probe.RTTMs[0])}
	}
	told := ""
	if probe != nil && len(probe.Errors) > 0 {
		told = "; the sender noticed: " + strings.Join(probe.Errors, ", ")
	}
	if v, lost := lostOn(from, from.There, "the packet"); lost {
		v.Text += told
		return v
	}
	if to.Node != from.Node {
		if v, lost := lostOn(to, to.There, "the packet"); lost {
			if to.There.Outcome == NotSeen {
				v.Text = fmt.Sprintf("lost between the nodes: %s sent the packet to %s, and %s never got it", from.Node,
					orElse(from.There.Out, "the network"), to.Node)
				v.Lost = from.Node + " – " + to.Node
			}
			v.Text += told
			return v
		}
	}
	v := Verdict{Delivered: true, Lost: to.Node}
	switch {
	case to.Back.Outcome == NotSeen && !strings.HasPrefix(to.There.Out, "pod "):
		v.Delivered = false
		v.Text = fmt.Sprintf("left %s by %s, and no answer came back", to.Node, orElse(to.There.Out, "an interface"))
	case to.Back.Outcome == NotSeen:
		v.Text = fmt.Sprintf("delivered to %s on %s, which has sent no answer: does anything listen there?", orElse(to.There.Out,
			"its receiver"),
			to.Node)
	case to.Back.Outcome == Dropped:
		v.Text = fmt.Sprintf("delivered, but the answer was dropped on %s: %s", to.Node, to.Back.Reason)
	case to.Node != from.Node && from.Back.Outcome == NotSeen:
		v.Lost = to.Node + " – " + from.Node
		v.Text = fmt.Sprintf("delivered, but the answer was lost between the nodes: %s sent it to %s, and %s never got it", to.Node,
			orElse(to.Back.Out, "the network"), from.Node)
	case from.Back.Outcome == Dropped:
		v.Lost = from.Node
		v.Text = fmt.Sprintf("delivered, but the answer was dropped on %s: %s", from.Node, from.Back.Reason)
	default:
		v.Lost = from.Node
		v.Text = "delivered, and an answer was sent back, but the sender did not take it"
	}
	v.Text += told
	return v
}

// lostOn says whether and why a packet ends on a node.
func lostOn(s Side, p Path, what string) (Verdict, bool) {
	switch p.Outcome {
	case Dropped:
		return Verdict{Lost: s.Node, Text: fmt.Sprintf("%s was dropped on %s: %s", what, s.Node, p.Reason)}, true
	case NotSeen:
		text := fmt.Sprintf("%s never came to the dataplane of %s", what, s.Node)
		if problem := firstProblem(s.Facts); problem != "" {
			text += ": " + problem
		}
		return Verdict{Lost: s.Node, Text: text}, true
	case Unknown: // seen by rules, then no more: the kernel's routing
		if problem := firstProblem(s.Facts); problem != "" {
			return Verdict{Lost: s.Node, Text: fmt.Sprintf("%s was lost on %s: %s", what, s.Node, problem)}, true
		}
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
