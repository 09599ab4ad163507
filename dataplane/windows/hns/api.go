package hns

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// API is version 1 of HNS. A call may take seconds, and hcsshim has no way to end one: a caller that must go on puts a limit
// around it. All methods may be called from any goroutine.
type API interface {
	// SupportedFeatures reports what this Windows can do; nothing at all if it cannot be asked.
	SupportedFeatures() Features
	// ListEndpoints returns all endpoints of the machine, also those of other programs.
	ListEndpoints() ([]Endpoint, error)
	// ApplyACLs replaces the access control list of an endpoint; its other policies stay. An endpoint that is gone gives
	// ErrNotFound.
	ApplyACLs(endpointID string, acls []ACL) error
}

// ErrNotFound says that the object of a call is not there (any more).
var ErrNotFound = errors.New("HNS does not have the object")

// ErrNotWindows is what Open returns on other systems.
var ErrNotWindows = errors.New("this system has no Host Network Service: it is a part of Windows")

// Features are those of an access control list that Windows Server 2016 lacks. All are there from version 1803 on.
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
	// MaxAddresses is how many prefixes one side of a rule takes (Felix's figure).
	MaxAddresses = 4000
	// MaxPorts is how many ports or ranges one side of a rule takes. HNS documents no figure; this one is careful.
	MaxPorts = 100
	// MaxRules is how many rules an endpoint takes. HNS documents no figure.
	MaxRules = 4096
	// MaxPriority is the last priority that a rule may have.
	MaxPriority = 65000
)

// State is where an endpoint is in its life.
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

// Endpoint is an endpoint as version 1 lists it.
type Endpoint struct {
	ID   string // GUID
	Name string
	// Network and NetworkName are its network's GUID and name.
	Network, NetworkName string
	// MAC is in Windows' form: "0A-00-00-00-00-01".
	MAC string
	// IPv4 and IPv6 are its addresses; invalid: none.
	IPv4, IPv6 netip.Addr
	// Remote is an endpoint of another node.
	Remote bool
	State  State
	// Containers are the IDs of those that share it.
	Containers []string
	// Namespace is the ID of the namespace that it is in: a CNI plugin puts it there before any container of the pod runs.
	Namespace string
	// ACLs is its access control list, as HNS holds it.
	ACLs []ACL
	// Unreadable is how many rules of its list Decode does not understand. They are not in ACLs.
	Unreadable int
}

// InUse reports whether a container has the endpoint, or will have it once it runs.
func (e Endpoint) InUse() bool {
	return e.State == Attached || e.State == AttachedSharing || len(e.Containers) > 0 || e.Namespace != ""
}

// Addresses are the endpoint's.
func (e Endpoint) Addresses() []netip.Addr {
	return slices.DeleteFunc([]netip.Addr{e.IPv4, e.IPv6}, func(a netip.Addr) bool { return !a.IsValid() })
}

// Action is what a rule does.
type Action string

// Actions of a rule.
const (
	Allow Action = "Allow"
	Block Action = "Block"
)

// Direction is the way of the packets, as the endpoint sees it.
type Direction string

// Directions of a rule.
const (
	In  Direction = "In"
	Out Direction = "Out"
)

// RuleType is where a rule works: in the virtual switch (VFP) or in the host's firewall (WFP).
type RuleType string

// Types of a rule.
const (
	Switch RuleType = "Switch"
	Host   RuleType = "Host"
)

// AnyProtocol is the number that stands for all protocols.
const AnyProtocol = 256

// ACL is one rule. Local is the endpoint's side, whatever the direction. A list that is empty matches everything: so a rule
// whose set of addresses is empty must not be sent at all. Of the rules that match a packet's first packet, the one with the lowest
// Priority decides; answers follow. Once an endpoint has any rule, what no rule matches is blocked.
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

// Equal compares all except the IDs, which Windows may not keep.
func (a ACL) Equal(b ACL) bool {
	return a.Protocol == b.Protocol && a.Action == b.Action && a.Direction == b.Direction && a.RuleType == b.RuleType &&
		a.Priority == b.Priority && slices.Equal(a.LocalAddresses, b.LocalAddresses) &&
		slices.Equal(a.RemoteAddresses, b.RemoteAddresses) && slices.Equal(a.LocalPorts, b.LocalPorts) &&
		slices.Equal(a.RemotePorts, b.RemotePorts)
}

// PortRange is first to last, both inclusive.
type PortRange struct{ First, Last uint16 }
