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
	StateDown   State = "down"   // there, but not up
	StateAbsent State = "absent" // not in the namespace
)

// IfaceStateUpdate reports the state of a link. It comes when the state or the index has changed, and again for every link that is up after
// notifications were lost: the link may have gone down and up in between, which loses routes and neighbours.
type IfaceStateUpdate struct {
	Name  string
	State State
	Index int // the kernel's number of the link; of the link that went for StateAbsent
}

// IfaceAddrsUpdate reports all addresses of a link, sorted, link-local ones included.
type IfaceAddrsUpdate struct {
	Name  string
	Addrs []netip.Addr // nil: the link is gone; not nil but empty: it has none
}

// IfaceMTUUpdate reports that the MTU of a link has changed.
type IfaceMTUUpdate struct {
	Name string
	MTU  int
}

// Config reports what to watch.
type Config struct {
	// InterfaceExcludes are names of links whose addresses are not reported (kube-ipvs0 has thousands). States are.
	InterfaceExcludes []*regexp.Regexp
	// ResyncInterval is how often all is listed again in case notifications were lost unnoticed; ≤ 0: never.
	ResyncInterval time.Duration
}

// DefaultResyncInterval is Felix's.
const DefaultResyncInterval = 10 * time.Second
