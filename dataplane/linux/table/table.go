package table

import (
	"context"
	"net/netip"
	"time"
)

// Family is an address family.
type Family uint8

// The families. Each has its own chains, sets and hooks.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// Layer is one of iptables' tables. In nftables, where all layers share a table, it is a group of base chains with the
// priority that iptables gives it.
type Layer uint8

// The layers, in the order in which a packet meets them.
const (
	Raw Layer = iota
	Mangle
	NAT
	Filter
)

// Hook is where the kernel calls a layer.
type Hook uint8

// The hooks.
const (
	Prerouting Hook = iota
	Input
	Forward
	Output
	Postrouting
)

// Chain is a list of rules under a name that is unique within its family and layer. Names are at most 28 characters.
type Chain struct {
	Name  string
	Rules []Rule
}

// Rule is what happens to packets that match. Actions are carried out in order; only the last one may end the walk through
// the chain. A rule without actions counts packets only.
type Rule struct {
	Match   Match
	Actions []Action
	Comment string // for people; at most 100 characters
	Counted bool   // ReadCounters has how many packets matched, by Comment
}

// Match reports which packets a rule is for: all of its conditions must hold; the zero Match holds for every packet. A list holds when any
// of its entries does (Src/Dst nets, ports), negated ("Not…") when none does. Nets of the other family never hold: a list that has only
// such entries holds for no packet (negated: for all).
type Match struct {
	// InIface and OutIface name an interface, or with a trailing '+' all interfaces that begin so.
	InIface, OutIface string

	Protocol, NotProtocol uint8 // 0: any. Ports need a Protocol that has them.

	SrcNets, DstNets, NotSrcNets, NotDstNets []netip.Prefix

	// Sets of type SetNet or SetIP, by ID. Every one of them must match (negated: none may).
	SrcSets, DstSets, NotSrcSets, NotDstSets []string

	// Ports and the sets of type SetIPAndPort that hold (address, protocol, port) of the packet's side: the condition holds
	// when one of the ranges or one of the sets does (negated: when none does).
	SrcPorts, DstPorts, NotSrcPorts, NotDstPorts             []PortRange
	SrcPortSets, DstPortSets, NotSrcPortSets, NotDstPortSets []string

	// MidStream holds for TCP segments that do not begin a connection. With Protocol TCP (6).
	MidStream bool

	ICMP, NotICMP *ICMP // with Protocol ICMP (1) or ICMPv6 (58)

	CT CTState // any of these connection states; 0: do not care

	// The packet's mark, under MarkMask (0: do not care), is Mark, or with MarkNot is not.
	Mark, MarkMask uint32
	MarkNot        bool

	Src, Dst AddrType // what the node is to the address
	// SrcNotOnOut holds when the source address is not one of the outgoing interface itself (masquerading on tunnels).
	SrcNotOnOut bool

	// NoReversePath holds for packets whose source is not routed back through the interface that they came by.
	NoReversePath bool

	// DNATed holds for connections whose destination was translated.
	DNATed bool
	// CTOrigDst matches the destination that the connection's first packet asked for, before translation.
	CTOrigDst []netip.Prefix
	// CTOrigSrc and CTReplSrc match the sources of the connection's two directions: where its first packet came from, and where its answers
	// come from, each before translation. Of an ICMP error, that is the connection which it is about.
	CTOrigSrc, CTReplSrc []netip.Prefix

	// OneIn holds for one in so many packets, at random; 0: do not care. Client is below. Only the iptables backend has these
	// two, for services, which nf_tables has another way for.
	OneIn  uint32
	Client *Client
}

// Client is a list of clients by source address, in the kernel. The condition holds for those that were noted in the last
// Seconds; or with Note, for all, who are noted.
type Client struct {
	List    string // at most 100 characters
	Seconds uint32
	Note    bool
}

// PortRange is First..Last, both included.
type PortRange struct{ First, Last uint16 }

// ICMP is a type, and unless AnyCode a code.
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

// AddrType restricts an address by what it is to this node.
type AddrType uint8

// The types.
const (
	AddrAny      AddrType = iota
	AddrLocal             // an address of this node
	AddrNotLocal          // anything else
)

// Verb is what an action does.
type Verb uint8

// ReportGroup is the group of the kernel's NFLOG by which reports come.
const ReportGroup = 2410

// ReportBytes is how much of a packet a report has.
const ReportBytes = 128

// Reports of one rule are limited: so many in a second, and so many at once.
const (
	ReportRate  = 5
	ReportBurst = 10
)

// The verbs. Those up to Log let the walk go on, the others end it.
const (
	SetMark    Verb = iota + 1 // mark = mark &^ Mask | Mark
	NoTrack                    // layer Raw only
	Report                     // with Prefix, to ReportGroup, at most ReportRate times in a second; the rule's only action
	Log                        // with Prefix
	Jump                       // to Chain, and back at its end
	Goto                       // to Chain, and at its end back to where this chain was called from
	Return                     //
	Accept                     //
	Drop                       //
	Reject                     // ICMP port unreachable, or TCP reset for TCP
	DNAT                       // to To, and to Ports if set
	SNAT                       // to To, and to Ports if set
	Masquerade                 // to Ports if set
)

// Action is one step of what happens to a packet. See Verb for which fields count.
type Action struct {
	Verb       Verb
	Chain      string
	Mark, Mask uint32
	Prefix     string
	To         netip.Addr
	Ports      PortRange // zero: as they are
	FullRandom bool      // SNAT, Masquerade: random port selection
}

// Dispatch is a chain that sends each packet to the chain of its interface, at a cost that does not depend on how many
// there are. It is jumped to like any chain of its layer, and shares the names' space with chains.
type Dispatch struct {
	Name    string
	ByOut   bool              // by the outgoing interface, else by the incoming one
	Chains  map[string]string // full interface name → chain, as if by Goto
	Default []Rule            // for all other interfaces
}

// SetType reports what the members of a set are.
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
	Max  int // the most members it may have; 0: DefaultMaxSet
}

// DefaultMaxSet is Felix's MaxIPSetSize.
const DefaultMaxSet = 1048576

// Member is one member of a set: a full-length prefix for addresses; Proto and Port for SetIPAndPort only. It is comparable.
type Member struct {
	Net   netip.Prefix
	Proto uint8 // 6, 17 or 132
	Port  uint16
}

// Backend programs chains and sets into the kernel. The methods that change the desired state only take notes: they do no I/O
// and never fail. Nothing is written before the first Apply. What is desired at the first Apply is all there is: what an
// earlier process left and is not desired is removed, what it left as desired is not touched.
//
// A backend is used by one goroutine.
type Backend interface {
	// Name is "nftables" or "iptables".
	Name() string

	// SetChains adds chains or replaces them whole.
	SetChains(f Family, l Layer, chains ...Chain)
	// SetDispatch adds a dispatch chain or changes it; cost is that of the change where the backend can.
	SetDispatch(f Family, l Layer, d Dispatch)
	// DeleteChains removes chains and dispatch chains; names that are not known are ignored.
	DeleteChains(f Family, l Layer, names ...string)
	// SetHook replaces the rules that packets meet at a hook of a layer: jumps into chains, as a rule.
	SetHook(f Family, l Layer, h Hook, rules ...Rule)

	// ReplaceSet adds a set or replaces all of it. Members of the other family must have been left out.
	ReplaceSet(f Family, s Set, members []Member)
	// ChangeSet adds and removes members of a known set; what is there already, or is not there, is ignored.
	ChangeSet(f Family, id string, add, remove []Member)
	// DeleteSet removes a set.
	DeleteSet(f Family, id string)

	// Resync makes the next Apply compare with the kernel what is noted as programmed.
	Resync(sets, chains bool)
	// Pending is true when Apply would have something to do.
	Pending() bool
	// Apply writes what differs: sets first, then chains and hooks, and deletions of sets last (or all at once).
	Apply(ctx context.Context) Result
	// Close frees handles. It leaves the kernel as it is.
	Close() error
}

// Counters is a Backend that reads how many packets the rules of chains in layer Filter have matched since they were written. Only rules that are
// Counted and have a Comment are reported, once or more often; a chain that is not there has none. It may be called from any goroutine.
type Counters interface {
	ReadCounters(ctx context.Context, families []Family, chains []string, each func(chain, comment string, packets uint64)) error
}

// Result is the outcome of an Apply.
type Result struct {
	// Err is set when not everything could be written. What is desired stays noted: the next Apply tries again.
	Err error
	// Broken are the objects ("set v4 abc", "chain v4 filter cali-x") that cannot be programmed, each with its reason, while
	// all others are. They are tried again at every Apply.
	Broken map[string]error
	// Again asks for another Apply after this time (post-write check, refresh); 0: not needed.
	Again time.Duration
	// Writes is the number of objects (rules, chains, set members, sets) that were written or removed; 0 when the kernel had
	// everything as desired.
	Writes int
}
