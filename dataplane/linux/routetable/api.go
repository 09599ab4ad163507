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
	// Protocol is the routing protocol number (rtm_protocol, 1–255) that marks routes and neighbours as ours. No other program may use it.
	Protocol int
	// OwnsIface reports whether a link is the driver's own (a workload's link). An unwanted route of ours over such a link is kept for
	// Grace if the link was just seen, because the CNI plugin may have added it; nil: no link. Unwanted neighbours are removed only from
	// these links, as the others (those of the VXLAN device) belong to another program; nil: from all links.
	OwnsIface func(name string) bool
	// RemoveExternal treats routes over a link of OwnsIface as ours regardless of their protocol, except the kernel's. This needs a listing
	// of the whole main table instead of our own routes only.
	RemoveExternal bool
	Timeout        time.Duration // of netlink answers
	Grace          time.Duration
	// Conntrack removes the connections from and to addresses; nil: they are kept. It is called in the background with the addresses of
	// removed host routes (/32, /128), before a route to the same address is added.
	Conntrack func(ctx context.Context, addrs []netip.Addr) error
	NS        *nsdo.Namespace
	Log       *slog.Logger
	Now       func() time.Time // for tests
}

// Type is the effect of a route.
type Type uint8

// The types.
const (
	Unicast   Type = iota // to Iface, or with next hop GW
	Blackhole             // drops silently
	Throw                 // the lookup continues as if the table had no route
)

// Target is a desired route, with a static neighbour if MAC is set: for GW if that is set, otherwise for the address of CIDR, which must
// then have full length.
type Target struct {
	CIDR   netip.Prefix
	Iface  string // Unicast only
	MAC    net.HardwareAddr
	GW     netip.Addr
	OnLink bool // GW is reachable over Iface regardless of the other routes
	Type   Type
	Src    netip.Addr // preferred source address; zero: the kernel chooses
	MTU    int        // 0: the link's
}
