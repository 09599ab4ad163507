package table

import (
	"context"
	"net/netip"
	"time"
)

// Family is an address family.
type Family uint8

// The families. Each has separate chains, sets and hooks.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// Layer is one of iptables' tables. In nftables, where all layers share a table, it is a group of base chains with the priority that
// iptables gives the table.
type Layer uint8

// The layers, in the order in which a packet passes them.
const (
	Raw Layer = iota
	Mangle
	NAT
	Filter
)

// Hook is the point in the packet path at which the kernel calls a layer.
type Hook uint8

// The hooks.
const (
	Prerouting Hook = iota
	Input
	Forward
	Output
	Postrouting
)

// Chain is a named list of rules. Names are unique within family and layer, and have at most 28 characters.
type Chain struct {
	Name  string
	Rules []Rule
}

// Rule holds actions for the packets that match. Actions run in order; only the last one may end the processing of the chain. A rule
// without actions only counts packets.
type Rule struct {
	Match   Match
	Actions []Action
	Comment string // shown to administrators; at most 100 characters
	Counted bool   // ReadCounters reports the number of matching packets, by Comment
}

// Match describes the packets that a rule applies to: all of its conditions must hold, and the zero Match holds for every packet. A list
// (Src/Dst nets, ports) holds if one of its entries does; a negated list ("Not…") holds if none does. Prefixes of the other family never
// match: a list with only such entries holds for no packet (negated: for every packet).
type Match struct {
	// InIface and OutIface name an interface, or with a trailing '+' all interfaces whose names begin with the text before it.
	InIface, OutIface string

	Protocol, NotProtocol uint8 // 0: any. Port conditions need a Protocol that has ports.

	SrcNets, DstNets, NotSrcNets, NotDstNets []netip.Prefix

	// Sets of type SetNet or SetIP, by ID. All of them must match (negated: none may match).
	SrcSets, DstSets, NotSrcSets, NotDstSets []string

	// Port ranges, and sets of type SetIPAndPort, which match the (address, protocol, port) of the packet's source or destination. The
	// condition holds if one of the ranges or sets matches (negated: if none matches).
	SrcPorts, DstPorts, NotSrcPorts, NotDstPorts             []PortRange
	SrcPortSets, DstPortSets, NotSrcPortSets, NotDstPortSets []string

	// MidStream holds for TCP segments that do not open a connection. It needs Protocol TCP (6).
	MidStream bool

	ICMP, NotICMP *ICMP // with Protocol ICMP (1) or ICMPv6 (58)

	CT CTState // any of these connection states; 0: no condition

	// The packet's mark, masked by MarkMask (0: no condition), is equal to Mark; with MarkNot it is not.
	Mark, MarkMask uint32
	MarkNot        bool

	Src, Dst AddrType // relation of the address to this node
	// SrcNotOnOut holds if the source is not an address of the outgoing interface (masquerading on tunnels).
	SrcNotOnOut bool

	// NoReversePath holds if the route to the packet's source does not lead to the interface on which the packet arrived.
	NoReversePath bool

	// DNATed holds for packets of connections with a translated destination.
	DNATed bool
	// CTOrigDst matches the original destination of the connection's first packet, before translation.
	CTOrigDst []netip.Prefix
	// CTOrigSrc and CTReplSrc match the sources of the connection's two directions: the source of its first packet and the source of its
	// replies, each before translation. For an ICMP error they match the connection that the error refers to.
	CTOrigSrc, CTReplSrc []netip.Prefix

	// OneIn holds for one in OneIn packets, at random; 0: no condition. OneIn and Client are supported only by the iptables backend, for
	// services; nf_tables programs services in another way.
	OneIn  uint32
	Client *Client
}

// Client is a list of clients in the kernel, by source address. The condition holds for clients that were recorded in the last Seconds.
// With Note it holds for all clients, and records them.
type Client struct {
	List    string // at most 100 characters
	Seconds uint32
	Note    bool
}

// PortRange is First..Last, both included.
type PortRange struct{ First, Last uint16 }

// ICMP is an ICMP type and, unless AnyCode is set, a code.
type ICMP struct {
	Type, Code uint8
	AnyCode    bool
}

// CTState is a set of connection tracking states.
type CTState uint8

// The states.
const (
	CTNew CTState = 1 << iota
	CTEstablished
	CTRelated
	CTInvalid
	CTUntracked
)

// AddrType restricts an address by its relation to this node.
type AddrType uint8

// The types.
const (
	AddrAny      AddrType = iota
	AddrLocal             // an address of this node
	AddrNotLocal          // any other address
)

// Verb is the kind of an action.
type Verb uint8

// ReportGroup is the NFLOG group of the kernel that receives reports.
const ReportGroup = 2410

// ReportBytes is the number of bytes of a packet in a report.
const ReportBytes = 128

// Limits of the reports of one rule: reports per second, and burst.
const (
	ReportRate  = 5
	ReportBurst = 10
)

// The verbs. Up to Log, processing continues with the next action; the others end it.
const (
	SetMark    Verb = iota + 1 // mark = mark &^ Mask | Mark
	NoTrack                    // layer Raw only
	Report                     // with Prefix, to ReportGroup, at most ReportRate times per second; the rule's only action
	Log                        // with Prefix
	Jump                       // to Chain; continues here after its end
	Goto                       // to Chain; at its end, continues after the jump that called this chain
	Return                     //
	Accept                     //
	Drop                       //
	Reject                     // ICMP port unreachable, or TCP reset for TCP
	DNAT                       // to To, and to Ports if set
	SNAT                       // to To, and to Ports if set
	Masquerade                 // to Ports if set
)

// Action is one step of processing a packet. Verb determines which fields are used.
type Action struct {
	Verb       Verb
	Chain      string
	Mark, Mask uint32
	Prefix     string
	To         netip.Addr
	Ports      PortRange // zero: unchanged
	FullRandom bool      // SNAT, Masquerade: random port selection
}

// Dispatch is a chain that sends each packet to the chain of its interface. Its cost does not depend on the number of interfaces. Rules
// jump to it as to any chain of its layer, and its name must differ from the names of chains.
type Dispatch struct {
	Name    string
	ByOut   bool              // by the outgoing interface; otherwise by the incoming one
	Chains  map[string]string // full interface name → chain, with the effect of Goto
	Default []Rule            // for all other interfaces
}

// SetType is the kind of a set's members.
type SetType uint8

// The types, numbered as in dataplane/proto.
const (
	SetIP        SetType = 0 // addresses
	SetIPAndPort SetType = 1 // address, protocol and port
	SetNet       SetType = 2 // prefixes of any length, 0 included; they may overlap
)

// Set describes a set. IDs are unique within a family.
type Set struct {
	ID   string
	Type SetType
	Max  int // maximum number of members; 0: DefaultMaxSet
}

// DefaultMaxSet is Felix's MaxIPSetSize.
const DefaultMaxSet = 1048576

// Member is one member of a set. An address is a prefix of full length; Proto and Port are for SetIPAndPort only. Members are comparable.
type Member struct {
	Net   netip.Prefix
	Proto uint8 // 6, 17 or 132
	Port  uint16
}

// Backend programs chains and sets into the kernel. The methods that change the desired state only record the change: they do no I/O and
// never fail. Nothing is written before the first Apply. The state desired at the first Apply is complete: Apply removes objects of an
// earlier process that are not desired, and leaves those that are as desired unchanged.
//
// A backend is used by one goroutine.
type Backend interface {
	// Name returns "nftables" or "iptables".
	Name() string

	// SetChains adds chains or replaces them completely.
	SetChains(f Family, l Layer, chains ...Chain)
	// SetDispatch adds a dispatch chain or changes it; the cost depends only on the change if the backend supports it.
	SetDispatch(f Family, l Layer, d Dispatch)
	// DeleteChains removes chains and dispatch chains; unknown names are ignored.
	DeleteChains(f Family, l Layer, names ...string)
	// SetHook replaces the rules at a hook of a layer; they are usually jumps into chains.
	SetHook(f Family, l Layer, h Hook, rules ...Rule)

	// ReplaceSet adds a set or replaces all of its members. The caller leaves out members of the other family.
	ReplaceSet(f Family, s Set, members []Member)
	// ChangeSet adds and removes members of a known set. Adding a member that exists, or removing one that does not, has no effect.
	ChangeSet(f Family, id string, add, remove []Member)
	// DeleteSet removes a set.
	DeleteSet(f Family, id string)

	// Resync makes the next Apply compare the recorded state with the kernel.
	Resync(sets, chains bool)
	// Pending reports whether Apply would have something to do.
	Pending() bool
	// Apply writes the differences: first sets, then chains and hooks, then deletions of sets (or all at once).
	Apply(ctx context.Context) Result
	// Close frees handles. It leaves the kernel's state unchanged.
	Close() error
}

// Counters is implemented by backends that can read how many packets the rules of chains in layer Filter have matched since they were
// written. Only rules that are Counted and have a Comment are reported, each once or several times; a chain that does not exist reports
// nothing. ReadCounters may be called from any goroutine.
type Counters interface {
	ReadCounters(ctx context.Context, families []Family, chains []string, each func(chain, comment string, packets uint64)) error
}

// Result is the outcome of an Apply.
type Result struct {
	// Err is set if not everything could be written. The desired state is kept: the next Apply retries.
	Err error
	// Broken holds the objects ("set v4 abc", "chain v4 filter cali-x") that cannot be programmed, each with its reason, while all others
	// are. Every Apply retries them.
	Broken map[string]error
	// Again is the delay after which Apply should be called again (post-write check, refresh); 0: not needed.
	Again time.Duration
	// Writes is the number of objects (rules, chains, set members, sets) that were written or removed; 0 if the kernel had everything as
	// desired.
	Writes int
	// Repaired is set if Apply has repaired what another program had changed or removed: packets may have passed that the rules do not allow.
	Repaired bool
}
