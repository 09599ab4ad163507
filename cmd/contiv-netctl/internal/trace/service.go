package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/service"
)

// Service is the destination service of the packet, in the state that the sender's node has.
type Service struct {
	service.Resolution
	// Chosen is the backend that the sender's node has chosen; not valid if it is not known.
	Chosen netip.AddrPort `json:"chosen"`
	// Node and Pod are the location of the backend, as far as it is known.
	Node string `json:"node,omitempty"`
	Pod  string `json:"pod,omitempty"`
	// Missing is why nothing was recorded on the backend's node.
	Missing string `json:"missing,omitempty"`
}

// ChosenBy returns the backend to which a packet to vip was sent, according to the records of the sender's node.
func ChosenBy(from Side, vip netip.AddrPort) (backend netip.AddrPort, ok bool) {
	backend = from.There.Left.Dest
	return backend, backend.IsValid() && backend != vip
}

// Backend reduces facts to those about the chosen backend, and those that are not about a backend.
func (s *Side) Backend(chosen netip.AddrPort) {
	s.Facts = slices.DeleteFunc(slices.Clone(s.Facts), func(f diag.Fact) bool {
		return f.Backend != "" && f.Backend != chosen.Addr().String()
	})
}

// where returns "pod default/c (10.1.2.2:8080 on node n2)".
func (s *Service) where() string {
	text := s.Chosen.String()
	if s.Node != "" {
		text += " on " + s.Node
	}
	if s.Pod != "" {
		return "pod " + s.Pod + " (" + text + ")"
	}
	return text
}

// ExplainService follows a packet to a service. to is the node of the chosen backend; nil if the backend is not known or nothing was recorded
// on its node.
func ExplainService(s *Service, from Side, to *Side, probe *diag.ProbeResult) Verdict {
	if probe != nil && probe.Received > 0 {
		text := "delivered, reply received" + after(probe)
		if s.Chosen.IsValid() {
			text = "delivered to " + s.where() + ", reply received" + after(probe)
		}
		return Verdict{Delivered: true, Answered: true, Text: text}
	}
	v, known := s.notServed(from, probe)
	if known {
		return v
	}
	if to == nil && s.Chosen.IsValid() {
		return s.withBackend(ExplainHalf(from, "it", probe, s.Missing), from)
	}
	if to == nil {
		to = &from
	}
	return s.withBackend(Explain(from, *to, probe), from)
}

// withBackend adds which backend was chosen, and whether it is an endpoint of the service.
func (s *Service) withBackend(v Verdict, from Side) Verdict {
	if !s.Chosen.IsValid() {
		return v
	}
	v.Text = fmt.Sprintf("%s chose the backend %s of %s: %s", from.Node, s.where(), s.Service, v.Text)
	if !slices.ContainsFunc(s.Backends, func(b service.ResolutionBackend) bool { return b.Address == s.Chosen }) {
		v.Text += "; this address is not an endpoint of the service, or not any more"
	}
	return v
}

// notServed explains packets that the sender's node sends to no backend.
func (s *Service) notServed(from Side, probe *diag.ProbeResult) (Verdict, bool) {
	if s.Chosen.IsValid() {
		return Verdict{}, false
	}
	reported := noticed(probe)
	seen := ""
	if from.There.Outcome == Dropped {
		seen = " (" + from.There.Reason + ")"
	}
	switch {
	case s.As == service.AsNodePort && s.Verdict == "balance" && from.There.Outcome == Sent:
		return Verdict{}, false // another node may choose the backend
	case s.Verdict != "balance":
		return Verdict{Lost: from.Node, Text: fmt.Sprintf("service %s has no endpoint for the packet on %s: %s%s%s", s.Service, from.Node,
			s.Why, seen, reported)}, true
	case from.There.Outcome == NotSeen:
		return Verdict{}, false // it never arrived at the node's dataplane
	}
	why := "; contiv-netctl check and dump show what is programmed"
	if len(s.SourceRanges) > 0 {
		why = "; it has loadBalancerSourceRanges, which may not contain the source of the packet: a packet from the host has the host's " +
			"address on its link to VPP"
	}
	return Verdict{Lost: from.Node, Text: fmt.Sprintf("%s did not translate the packet, though service %s has %d endpoints for "+
		"it%s%s%s", from.Node, s.Service, len(s.Backends), seen, why, reported)}, true
}

// noticed returns what the sender got instead of an answer.
func noticed(probe *diag.ProbeResult) string {
	if probe == nil || len(probe.Errors) == 0 {
		return ""
	}
	return "; the sender noticed: " + strings.Join(probe.Errors, ", ")
}
