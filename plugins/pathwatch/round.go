package pathwatch

import (
	"net/netip"
	"time"
)

// Round is what one look at the data path has brought.
type Round struct {
	At time.Time
	// Alive: what moves packets answered, so that it was not just standing still for a moment.
	Alive bool
	// Gateway is VPP's end of the link to the host; NotAsked where there is no VPP.
	Gateway  answer
	Peers    []askedPeer
	Uplink   *Link // nil: there is none, or nothing is known of it
	Host     *Link // the link between VPP and the host
	Sessions Sessions
	// Refusing are the senders that may not have as many connections as they try to have.
	Refusing []Refusing
}

// Refusing is a sender whose new connections have been refused, since the dataplane counts.
type Refusing struct {
	Name    string // a pod, the host, …
	Open    uint64 // connections that it has
	Refused uint64 // new ones that it did not get
}

// answer is what became of a question.
type answer uint8

// The answers.
const (
	notAsked answer = iota
	silent
	answered
)

// askedPeer is a peer's address that was asked, and whether it answered.
type askedPeer struct {
	Node string
	Addr netip.Addr
	OK   bool
	Took time.Duration // until the answer, if there was one
}

// Link is a link as both of its sides count it.
type Link struct {
	Device string `json:"device"` // the Linux device, or VPP's interface where there is none
	// Key is that of the northbound value by which the link can be made again; empty: it cannot be.
	Key string `json:"key,omitempty"`
	// Present: the device is there and up; Carrier: there is something at its other end.
	Present bool `json:"present"`
	Carrier bool `json:"carrier"`
	// Offered are the frames that VPP had for the device, Refused those of them that it did not take, Taken the frames that VPP
	// got from it.
	Offered uint64 `json:"offered"`
	Refused uint64 `json:"refused"`
	Taken   uint64 `json:"taken"`
	// Counts: the device counts, too: Sent are the frames that it has passed on for VPP (and, on a shared NIC, for the host),
	// Brought those that it has had for VPP.
	Counts  bool   `json:"deviceCounts"`
	Sent    uint64 `json:"deviceSent,omitempty"`
	Brought uint64 `json:"deviceBrought,omitempty"`
}

// Sessions is a table's filling. The limit is 0 while it is not known.
type Sessions struct {
	Used  uint64 `json:"used"`
	Limit uint64 `json:"limit"`
	// TellsRefused: Refused counts the packets for which there was no room for a session.
	TellsRefused bool   `json:"tellsRefused,omitempty"`
	Refused      uint64 `json:"refused,omitempty"`
	// Keeps: a session goes on until its time is over, so that the filling says something although refusals are reported.
	Keeps bool `json:"keeps,omitempty"`
	// ListCommand is the command that lists the sessions by sender; empty: contiv-netctl nat.
	ListCommand string `json:"-"`
}

// Kind names a cause; it is the label in metrics and the reason in conditions.
type Kind string

// The causes. With the first five the node is not ready.
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

// causeKinds are all causes, the worst first.
func causeKinds() []Kind {
	return []Kind{
		GatewayUnreachable, UplinkDown, UplinkStuck, UplinkDeaf, UplinkSilent, NATTableFull, NoPeerAnswers, PeerUnreachable,
		NATTableFilling, ConnectionLimit,
	}
}

// Cause is something that is wrong with the data path.
type Cause struct {
	Kind    Kind      `json:"cause"`
	Object  string    `json:"object"` // what it is about: eth1, a node, NAT
	Text    string    `json:"text"`
	Unready bool      `json:"unready"` // pods of this node cannot be served
	Since   time.Time `json:"since"`
	// Quiet: other nodes are closer to it, and report it to Kubernetes.
	Quiet bool `json:"-"`

	heal Fix
}

// Fix is the repair of a cause; the zero value: the node has no repair.
type Fix struct {
	Recreate string // the key of the link that is to be made again
	Resync   bool   // dataplane and desired state are to be compared
}

// action is a repair that is due.
type action struct {
	Fix
	Why Cause
}

// None says that nothing is to be done.
func (a action) None() bool { return a.Fix == Fix{} }
