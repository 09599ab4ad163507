package routetable

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// The defaults of Config.
const (
	DefaultProtocol = 202
	defaultGrace    = 10 * time.Second
	defaultTimeout  = 10 * time.Second
)

// Config describes a Table. The zero value of a field means its default.
type Config struct {
	Family table.Family
	// Protocol is the routing protocol number (rtm_protocol, 1–255) that marks routes and neighbours as ours. It must be no other
	// program's.
	Protocol int
	// OwnsIface reports which links are the driver's own (workload links). A route of ours that nothing asked for is left for Grace if its
	// link is one of these and was just seen, because the CNI plugin may have added it; nil: no link. A neighbour that nothing asked for is
	// removed from these links only, as others (the VXLAN device's) are another program's; nil: from any.
	OwnsIface func(name string) bool
	// RemoveExternal makes routes of any protocol but the kernel's ours if they are over a link of OwnsIface. It costs a
	// listing of the whole main table in place of that of our own routes.
	RemoveExternal bool
	Timeout        time.Duration // of netlink answers
	Grace          time.Duration
	// Conntrack forgets the connections from and to addresses; nil: they are left. It is called in the background with the
	// addresses of host routes (/32, /128) that went away, before a route to the same address is added.
	Conntrack func(ctx context.Context, addrs []netip.Addr) error
	NS        *nsdo.Namespace
	Log       *slog.Logger
	Now       func() time.Time // for tests
}

// Type is what a route does.
type Type uint8

// The types.
const (
	Unicast   Type = iota // to Iface, or by GW
	Blackhole             // drops silently
	Throw                 // as if there were no route
)

// Target is a desired route, with a static neighbour if MAC is set: for GW if that is set, else for the address of CIDR,
// which must then have full length.
type Target struct {
	CIDR   netip.Prefix
	Iface  string // Unicast only
	MAC    net.HardwareAddr
	GW     netip.Addr
	OnLink bool // GW is reachable over Iface whatever the other routes say
	Type   Type
	Src    netip.Addr // preferred source address; zero: the kernel chooses
	MTU    int        // 0: the link's
}
