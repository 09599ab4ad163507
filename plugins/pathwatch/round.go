package pathwatch

import (
	"net/netip"
	"time"
)

// Round is the result of one check of the data path.
type Round struct {
	At time.Time
	// Alive is true if the dataplane answered, so that it was not just stopped for a moment.
	Alive bool
	// Gateway is the result for VPP's end of the link to the host; notQueried if there is no VPP.
	Gateway  answer
	Peers    []queriedPeer
	Uplink   *Link // nil: there is none, or its state is unknown
	Host     *Link // the link between VPP and the host
	Sessions Sessions
	// Refusing holds the senders that try to have more connections than they may have.
	Refusing []Refusing
}

// Refusing is a sender whose new connections have been refused since the dataplane began to count.
type Refusing struct {
	Name    string // a pod, the host, …
	Open    uint64 // its current connections
	Refused uint64 // its refused new connections
}

// answer is the result of a probe.
type answer uint8

// The answers.
const (
	notQueried answer = iota
	silent
	answered
)

// queriedPeer is an address of a peer that was probed, and whether it answered.
type queriedPeer struct {
	Node string
	Addr netip.Addr
	OK   bool
	Took time.Duration // the round-trip time, if there was an answer
}

// Link is a link with the counters of both of its sides.
type Link struct {
	Device string `json:"device"` // the Linux device, or VPP's interface where there is none
	// Key is the key of the northbound value by which the link can be created again; empty if it cannot.
	Key string `json:"key,omitempty"`
	// Present: the device exists and is up; Carrier: it is connected at its other end.
	Present bool `json:"present"`
	Carrier bool `json:"carrier"`
	// Offered counts the frames that VPP had for the device, Refused those of them that the device did not accept, Taken the frames that
	// VPP received from it.
	Offered uint64 `json:"offered"`
	Refused uint64 `json:"refused"`
	Taken   uint64 `json:"taken"`
	// Counts reports whether the device has counters, too: Sent counts the frames that it has passed on for VPP (and, on a shared NIC, for
	// the host), Brought those that it has received for VPP.
	Counts  bool   `json:"deviceCounts"`
	Sent    uint64 `json:"deviceSent,omitempty"`
	Brought uint64 `json:"deviceBrought,omitempty"`
}

// Sessions is the fill level of a table. Limit is 0 while it is not known.
type Sessions struct {
	Used  uint64 `json:"used"`
	Limit uint64 `json:"limit"`
	// CountsRefused is true if Refused counts the packets for which there was no room for a session.
	CountsRefused bool   `json:"countsRefused,omitempty"`
	Refused       uint64 `json:"refused,omitempty"`
	// Keeps is true if a session lasts until it times out, so that the fill level is meaningful although refusals are reported.
	Keeps bool `json:"keeps,omitempty"`
	// ListCommand is the command that lists the sessions by sender; empty means contiv-netctl nat.
	ListCommand string `json:"-"`
}

// Kind is the name of a cause. It is the label in metrics and the reason in conditions.
type Kind string

// The causes. The first five make the node unready.
const (
	GatewayUnreachable Kind = "GatewayUnreachable"
	UplinkDown         Kind = "UplinkDown"
	UplinkStuck        Kind = "UplinkStuck"
	UplinkDeaf         Kind = "UplinkDeaf"
	UplinkSilent       Kind = "UplinkSilent"
	NATTableFull       Kind = "NATTableFull"
	NATTableFilling    Kind = "NATTableFilling"
	NoPeerAnswers      Kind = "NoPeerAnswers"
	PeerUnreachable    Kind = "PeerUnreachable"
	ConnectionLimit    Kind = "ConnectionLimit"
)

// causeKinds returns all causes, the worst first.
func causeKinds() []Kind {
	return []Kind{
		GatewayUnreachable, UplinkDown, UplinkStuck, UplinkDeaf, UplinkSilent, NATTableFull, NoPeerAnswers, PeerUnreachable,
		NATTableFilling, ConnectionLimit,
	}
}

// Cause is a fault of the data path.
type Cause struct {
	Kind    Kind      `json:"cause"`
	Object  string    `json:"object"` // the affected object: eth1, a node, NAT
	Text    string    `json:"text"`
	Unready bool      `json:"unready"` // pods of this node cannot be served
	Since   time.Time `json:"since"`
	// Quiet is true if other nodes are witnesses of the fault and report it to Kubernetes.
	Quiet bool `json:"-"`

	heal Fix
}

// Fix is the repair of a cause; the zero value means that the node has no repair.
type Fix struct {
	Recreate string // the key of the link to create again
	Resync   bool   // dataplane and desired state must be compared
}

// action is a repair that is due.
type action struct {
	Fix
	Why Cause
}

// None reports whether there is nothing to repair.
func (a action) None() bool { return a.Fix == Fix{} }
