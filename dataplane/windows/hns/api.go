package hns

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// API is version 1 of HNS. A call may take seconds, and hcsshim has no way to cancel one: a caller that must continue needs its own timeout.
// All methods may be called from any goroutine.
type API interface {
	// SupportedFeatures returns the features of this Windows; none if they cannot be queried.
	SupportedFeatures() Features
	// ListEndpoints returns all endpoints of the machine, also those of other programs.
	ListEndpoints() ([]Endpoint, error)
	// ApplyACLs replaces the access control list of an endpoint; its other policies stay. It returns ErrNotFound if the endpoint does not exist any
	// more.
	ApplyACLs(endpointID string, acls []ACL) error
}

// ErrNotFound means that the object of a call does not exist (any more).
var ErrNotFound = errors.New("HNS does not have the object")

// ErrNotWindows is what Open returns on other systems.
var ErrNotWindows = errors.New("this system has no Host Network Service: it is a part of Windows")

// Features lists the features of access control lists that Windows Server 2016 lacks. Version 1803 and later have all of them.
type Features struct {
	// AddressLists: a rule may have more than one address on each side.
	AddressLists bool
	// PortRanges: a rule may have lists and ranges of ports; else one port on each side.
	PortRanges bool
	// RuleIDs: a rule may have an ID.
	RuleIDs bool
	// NoHostRulePriority: rules of type Host have priority 0; else they need one.
	NoHostRulePriority bool
}

// Limits of one rule and of one endpoint.
const (
	// MaxAddresses is the largest number of prefixes on one side of a rule (Felix's figure).
	MaxAddresses = 4000
	// MaxPorts is the largest number of ports or ranges on one side of a rule. HNS documents no limit; this one is conservative.
	MaxPorts = 100
	// MaxRules is the largest number of rules of an endpoint. HNS documents no limit.
	MaxRules = 4096
	// MaxPriority is the last priority that a rule may have.
	MaxPriority = 65000
)

// State is the state of an endpoint's life cycle.
type State uint16

// An endpoint is created, attached to a container (AttachedSharing: to several), detached, and destroyed.
const (
	Uninitialized State = iota
	Created
	Attached
	AttachedSharing
	Detached
	Degraded
	Destroyed
)

func (s State) String() string {
	names := [...]string{"Uninitialized", "Created", "Attached", "AttachedSharing", "Detached", "Degraded", "Destroyed"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint16(s))
}

// Endpoint is an endpoint in the form of version 1.
type Endpoint struct {
	ID   string // GUID
	Name string
	// Network and NetworkName are its network's GUID and name.
	Network, NetworkName string
	// MAC is in Windows' form: "0A-00-00-00-00-01".
	MAC string
	// IPv4 and IPv6 are its addresses; invalid: it has none.
	IPv4, IPv6 netip.Addr
	// Remote: the endpoint is on another node.
	Remote bool
	State  State
	// Containers lists the IDs of the containers that share the endpoint.
	Containers []string
	// Namespace is the ID of the endpoint's namespace: a CNI plugin sets it before any container of the pod runs.
	Namespace string
	// ACLs is its access control list in HNS.
	ACLs []ACL
	// Unreadable is the number of rules in its list that Decode cannot decode. They are not in ACLs.
	Unreadable int
}

// InUse reports whether a container uses the endpoint, or will use it once it runs.
func (e Endpoint) InUse() bool {
	return e.State == Attached || e.State == AttachedSharing || len(e.Containers) > 0 || e.Namespace != ""
}

// Addresses returns the addresses of the endpoint.
func (e Endpoint) Addresses() []netip.Addr {
	return slices.DeleteFunc([]netip.Addr{e.IPv4, e.IPv6}, func(a netip.Addr) bool { return !a.IsValid() })
}

// Action is the action of a rule.
type Action string

// Actions of a rule.
const (
	Allow Action = "Allow"
	Block Action = "Block"
)

// Direction is the direction of packets from the endpoint's point of view.
type Direction string

// Directions of a rule.
const (
	In  Direction = "In"
	Out Direction = "Out"
)

// RuleType is where a rule is applied: in the virtual switch (VFP) or in the host's firewall (WFP).
type RuleType string

// Types of a rule.
const (
	Switch RuleType = "Switch"
	Host   RuleType = "Host"
)

// AnyProtocol is the number that means all protocols.
const AnyProtocol = 256

// ACL is one rule. Local is the endpoint's side, whatever the direction. An empty list matches everything, so a rule whose set of addresses is
// empty must not be sent at all. Of the rules that match the first packet of a connection, the one with the lowest Priority decides; answers
// follow. If an endpoint has any rule, packets that no rule matches are blocked.
type ACL struct {
	ID        string
	Protocol  uint16 // IANA's number, or AnyProtocol
	Action    Action
	Direction Direction
	// Addresses of one rule must be of one family.
	LocalAddresses, RemoteAddresses []netip.Prefix
	LocalPorts, RemotePorts         []PortRange
	RuleType                        RuleType
	Priority                        uint16
}

// Equal compares all fields except the ID, which Windows may not keep.
func (a ACL) Equal(b ACL) bool {
	return a.Protocol == b.Protocol && a.Action == b.Action && a.Direction == b.Direction && a.RuleType == b.RuleType &&
		a.Priority == b.Priority && slices.Equal(a.LocalAddresses, b.LocalAddresses) &&
		slices.Equal(a.RemoteAddresses, b.RemoteAddresses) && slices.Equal(a.LocalPorts, b.LocalPorts) &&
		slices.Equal(a.RemotePorts, b.RemotePorts)
}

// PortRange is a range of ports, both ends inclusive.
type PortRange struct{ First, Last uint16 }
