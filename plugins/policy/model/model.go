package model

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
)

// SetID is the name of a set: the hash of its meaning in 22 characters of [0-9a-zA-Z_-] behind "n-" (Networks), "a-"
// (Addresses) or "p-" (Ports). The empty ID in a Rule means that the rule has no such condition.
type SetID string

// SetKind is the kind of a set's members.
type SetKind uint8

const (
	// Networks: the members have Net only, of any length. They do not overlap.
	Networks SetKind = iota
	// Addresses is like Networks, but each Net is one address.
	Addresses
	// Ports: the members have an address (Net is one address), a protocol and a port.
	Ports
)

// Set is a set without its members.
type Set struct {
	ID   SetID
	Kind SetKind
	// Meaning describes the content of the set in words, for users.
	Meaning string
}

// MaxMembers is the maximum number of members of a set in every dataplane.
const MaxMembers = 1 << 20

// Member is a member of a set. It is comparable, and is its own key.
type Member struct {
	Net      netip.Prefix // masked, of either family; IPv4 is never mapped into IPv6
	Protocol Protocol     // kind Ports only
	Port     uint16       // kind Ports only
}

// Compare orders members.
func (m Member) Compare(o Member) int {
	return cmp.Or(m.Net.Addr().Compare(o.Net.Addr()), cmp.Compare(m.Net.Bits(), o.Net.Bits()),
		cmp.Compare(m.Protocol, o.Protocol), cmp.Compare(m.Port, o.Port))
}

// Protocol is an IP protocol number. AnyProtocol in a rule matches all of them.
type Protocol uint8

// The protocols that policies can name.
const (
	AnyProtocol Protocol = 0
	TCP         Protocol = 6
	UDP         Protocol = 17
	SCTP        Protocol = 132
)

func (p Protocol) String() string {
	switch p {
	case AnyProtocol:
		return "any"
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return strconv.Itoa(int(p))
}

// Action is the action of a rule or a default. The zero value denies.
type Action uint8

const (
	// Deny drops the packet.
	Deny Action = iota
	// Allow lets the packet through; no later tier is evaluated.
	Allow
	// Pass leaves the decision to the next tier.
	Pass
)

func (a Action) String() string {
	switch a {
	case Deny:
		return "deny"
	case Allow:
		return "allow"
	case Pass:
		return "pass"
	}
	return "unknown"
}

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last uint16 }

// Rule matches a packet that meets all of its conditions. Every packet meets an empty condition.
type Rule struct {
	Action   Action
	Protocol Protocol
	// Ports are ranges of destination ports; one of them must contain the packet's destination port. They are set only if Protocol is TCP,
	// UDP or SCTP.
	Ports []PortRange
	// Source and Dest are sets of kind Networks or Addresses that contain the packet's source and destination address.
	Source, Dest SetID
	// DestPort is a set of kind Ports that contains the packet's destination address, protocol and destination port. Protocol is
	// set as well; Ports is empty.
	DestPort SetID
	// Origin is the place of the rule in the object, for users: "ingress[0]", followed by the rule's name if it has one, and by "address of several
	// pods" if it denies what the object's rule does not pass because of such an address.
	Origin string
}

// Sets calls yield for the sets to which the rule refers.
func (r *Rule) Sets(yield func(SetID) bool) {
	for _, id := range []SetID{r.Source, r.Dest, r.DestPort} {
		if id != "" && !yield(id) {
			return
		}
	}
}

// PolicyID identifies a policy. Two policies with the same ID never exist at the same time.
type PolicyID struct {
	Kind      string // of the Kubernetes object: one of the kinds below
	Namespace string // empty for objects without a namespace
	Name      string
}

// Kinds of policies. A ClusterNetworkPolicy has the kind of its tier: an object that changes its tier becomes another policy.
const (
	KindNetworkPolicy  = "NetworkPolicy"
	KindAdminPolicy    = "ClusterNetworkPolicy(Admin)"
	KindBaselinePolicy = "ClusterNetworkPolicy(Baseline)"
)

// TierOf returns the tier to which all policies of a kind belong.
func TierOf(kind string) string {
	switch kind {
	case KindNetworkPolicy:
		return TierNetworkPolicy
	case KindAdminPolicy:
		return TierAdmin
	case KindBaselinePolicy:
		return TierBaseline
	}
	return kind
}

func (id PolicyID) String() string { return id.Kind + " " + id.Path() }

// Path returns the name of the object, with its namespace if it has one.
func (id PolicyID) Path() string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// Compare orders policy IDs.
func (id PolicyID) Compare(o PolicyID) int {
	return cmp.Or(strings.Compare(id.Kind, o.Kind), strings.Compare(id.Namespace, o.Namespace), strings.Compare(id.Name, o.Name))
}

// Policy holds the rules for the endpoints that it selects. A direction without rules decides nothing by itself: the tier's default
// decides.
type Policy struct {
	ID              PolicyID
	Ingress, Egress []Rule
}

// Tier is a list of policies that are evaluated together.
type Tier struct {
	Name     string
	Policies []PolicyID
	Default  Action
	// AllowsNode means that the tier allows traffic of the pod to its own node, independent of its policies.
	AllowsNode bool
}

// Names of tiers, in the order in which they are evaluated.
const (
	// TierAdmin holds ClusterNetworkPolicy objects of tier Admin. Its default is Pass.
	TierAdmin = "admin"
	// TierNetworkPolicy holds NetworkPolicy objects. Its default is Deny, and it allows the node.
	TierNetworkPolicy = "networkpolicy"
	// TierBaseline holds ClusterNetworkPolicy objects of tier Baseline. Its default is Pass.
	TierBaseline = "baseline"
)

// Tiers returns all tiers in the order in which they are evaluated, without policies. A decision of NetworkPolicies is final, so tier
// baseline is evaluated only for pods that no NetworkPolicy isolates.
func Tiers() []Tier {
	return []Tier{
		{Name: TierAdmin, Default: Pass},
		{Name: TierNetworkPolicy, Default: Deny, AllowsNode: true},
		{Name: TierBaseline, Default: Pass},
	}
}

// Direction holds the tiers that apply to the packets of an endpoint in one direction. Tiers without policies are left out.
type Direction struct {
	Tiers   []Tier
	Default Action
}

// EndpointID identifies a pod of this node.
type EndpointID struct{ Namespace, Name string }

// String returns namespace/name; it is empty for the zero value.
func (id EndpointID) String() string {
	if id == (EndpointID{}) {
		return ""
	}
	return id.Namespace + "/" + id.Name
}

// Compare orders endpoint IDs.
func (id EndpointID) Compare(o EndpointID) int {
	return cmp.Or(strings.Compare(id.Namespace, o.Namespace), strings.Compare(id.Name, o.Name))
}

// Endpoint is a pod of this node with the policies that apply to it. A pod that no policy selects has no tiers and defaults of Allow. A pod
// whose object, or the labels of whose namespace, are not known has no tiers and defaults of Deny.
type Endpoint struct {
	ID              EndpointID
	Ingress, Egress Direction
}

// Closed returns the endpoint of a pod whose object, or the labels of whose namespace, are not known: only its own node reaches it.
func Closed(id EndpointID) Endpoint { return Endpoint{ID: id} }

// Members is a change of a set's members. A member is in at most one of the lists.
type Members struct {
	Set            SetID
	Added, Removed []Member
}

// Change lists the differences to the previous state. The lists are sorted by ID; each object occurs at most once. All members of a new set
// are in Members, as added; those of a deleted set are there as removed.
type Change struct {
	Sets          []Set     // new
	Members       []Members // of new sets and of others
	Policies      []Policy  // new or different
	Endpoints     []Endpoint
	EndpointsGone []EndpointID
	PoliciesGone  []PolicyID
	SetsGone      []SetID
}

// Empty reports whether there are no differences.
func (c *Change) Empty() bool {
	return len(c.Sets)+len(c.Members)+len(c.Policies)+len(c.Endpoints)+len(c.EndpointsGone)+len(c.PoliciesGone)+len(c.SetsGone) == 0
}
