package ifacemonitor

import (
	"net/netip"
	"regexp"
	"time"
)

// State is the operational state of a link.
type State string

// The states.
const (
	StateUp     State = "up"     // IFF_UP and IFF_RUNNING
	StateDown   State = "down"   // exists, but is not up
	StateAbsent State = "absent" // not in the namespace
)

// IfaceStateUpdate reports the state of a link. It is sent when the state or the index has changed, and again for every link that is up
// after notifications were lost: the link may have gone down and up in between, which removes its routes and neighbours.
type IfaceStateUpdate struct {
	Name  string
	State State
	Index int // the kernel's number of the link; for StateAbsent that of the removed link
}

// IfaceAddrsUpdate reports all addresses of a link, sorted, link-local ones included.
type IfaceAddrsUpdate struct {
	Name  string
	Addrs []netip.Addr // nil: the link was removed; empty but not nil: it has no addresses
}

// IfaceMTUUpdate reports that the MTU of a link has changed.
type IfaceMTUUpdate struct {
	Name string
	MTU  int
}

// Config configures a Monitor.
type Config struct {
	// InterfaceExcludes match the names of links whose addresses are not reported (kube-ipvs0 has thousands). Their states are.
	InterfaceExcludes []*regexp.Regexp
	// ResyncInterval is the interval of full listings, in case notifications were lost undetected; ≤ 0: never.
	ResyncInterval time.Duration
}

// DefaultResyncInterval is the default of Felix.
const DefaultResyncInterval = 10 * time.Second
