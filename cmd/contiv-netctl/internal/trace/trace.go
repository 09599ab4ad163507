package trace

import (
	"net/netip"
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// Flow identifies the packet to look for.
type Flow struct {
	Source netip.Addr `json:"source"`
	Dest   netip.Addr `json:"dest"`
	Proto  string     `json:"proto"`
	Port   uint16     `json:"port,omitempty"`
}

// answer returns the flow of the answers to a packet. Their source may differ from the destination of the packet, if that is a service's
// address.
func (f Flow) answer(there Path) Flow {
	return Flow{Source: f.Dest, Dest: f.Source, Proto: f.Proto, Port: there.Came.Source.Port()}
}

// Outcome is what happened to a packet on a node.
type Outcome string

// The outcomes.
const (
	NotSeen Outcome = "not seen"
	Sent    Outcome = "sent"    // it left by an interface
	Local   Outcome = "local"   // the node itself received it
	Dropped Outcome = "dropped" // Reason has the cause
	Unknown Outcome = "unknown" // it was seen, but its end was not
)

// Hop is one stage of a packet's path.
type Hop struct {
	Stage string `json:"stage"` // node of VPP's graph, or table and chain
	What  string `json:"what"`
	// Minor hops are our own rules that only lead to others.
	Minor bool `json:"minor,omitempty"`
}

// Path is the path of one packet on one node.
type Path struct {
	Hops    []Hop   `json:"hops"`
	Outcome Outcome `json:"outcome"`
	Out     string  `json:"out,omitempty"`    // the pod, or the interface, to which it was sent
	Reason  string  `json:"reason,omitempty"` // why it was dropped
	// Came and Left are the packet's ends when it arrived at the node and when it left. Translation makes them differ.
	Came Ends `json:"came,omitzero"`
	Left Ends `json:"left,omitzero"`
}

// Side is what one node has recorded.
type Side struct {
	Node    string        `json:"node"`
	There   Path          `json:"there"` // the packet
	Back    Path          `json:"back"`  // its answer
	Capture *diag.Capture `json:"-"`
	Facts   []diag.Fact   `json:"facts,omitempty"`
	Notes   []string      `json:"notes,omitempty"`
	// Drops are counters that rose during the trace, whether for this packet or for others.
	Drops []diag.ErrorCount `json:"drops,omitempty"`
}

// Read finds the packet and its answer in what a node has recorded.
func Read(node string, c *diag.Capture, f Flow) Side {
	s := Side{Node: node, Capture: c, Facts: c.Facts, Notes: c.Notes, Drops: c.Errors}
	read := readVPP
	if c.Dataplane == "linux" {
		read = readNft
	}
	s.There = read(c, f, false)
	s.Back = read(c, f.answer(s.There), true)
	return s
}

// names maps interfaces to readable names.
type names struct {
	byIndex map[uint32]diag.Interface
	byName  map[string]diag.Interface
}

func newNames(list []diag.Interface) names {
	n := names{map[uint32]diag.Interface{}, map[string]diag.Interface{}}
	for _, i := range list {
		n.byIndex[i.Index] = i
		if i.Name != "" {
			n.byName[i.Name] = i
		}
	}
	return n
}

// describe returns "pod default/a (tap1)", "vxlanBVI (loop3)" or the bare name.
func describe(i diag.Interface) string {
	switch {
	case i.Pod != "":
		return "pod " + i.Pod + " (" + i.Name + ")"
	case i.Logical != "" && i.Logical != i.Name:
		return i.Logical + " (" + i.Name + ")"
	}
	return i.Name
}

func (n names) known(name string) bool {
	_, ok := n.byName[name]
	return ok
}

func (n names) of(name string) string {
	if i, ok := n.byName[name]; ok {
		return describe(i)
	}
	return name
}

func firstLine(lines []string) string {
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}
