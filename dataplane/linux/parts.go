package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/iptables"
	"contiv.dev/vswitch/dataplane/linux/nft"
	"contiv.dev/vswitch/dataplane/linux/nft/forward"
	nftpolicy "contiv.dev/vswitch/dataplane/linux/nft/policy"
	"contiv.dev/vswitch/dataplane/linux/nft/services"
	"contiv.dev/vswitch/dataplane/linux/routetable"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tunnel"
	"contiv.dev/vswitch/dataplane/netlink/sysctl"
)

// parts holds the interfaces through which the driver reads and writes the kernel. Tests replace them.
type parts struct {
	backend table.Backend
	// services programs services; nil: chains of the backend are used.
	services serviceProgrammer
	// passage lets packets of workloads pass other programs' firewalls; nil: not needed.
	passage passage
	// flows removes stale connections; nil: they are not removed.
	flows removeFlows
	// others opens the backends that are not in use, to remove the objects that they have left.
	others []func(ctx context.Context) (leftover, error)
	// routes returns a new route table. With ownsIface nil the table removes routes that are not wanted at once.
	routes  func(f table.Family, ownsIface func(string) bool) routeTable
	vxlan   func(underlay table.Family) vxlanDevice
	ipip    func(ctx context.Context) error // maintains tunl0 until ctx ends; nil: IPIP is disabled
	sysctls kernelParameters
	// advertised returns the links with routes from router advertisements; nil: there are none.
	advertised func() ([]string, error)
	monitor    interfaceMonitor
	// removed watches the removal of routes; nil: only the periodic comparison detects it.
	removed *routeWatch
}

// leftover is a backend that is not in use but may have written objects earlier.
type leftover interface {
	Name() string
	Apply(ctx context.Context) table.Result
	Close() error
}

// passage is implemented by forward.Passage.
type passage interface {
	leftover
	SetLinks(links ...string)
	Resync()
}

// routeTable is implemented by routetable.Table.
type routeTable interface {
	routeSink
	OnIfaceStateChanged(name string, index int, up bool)
	OnRouteRemoved(dst netip.Prefix)
	Resync()
	Apply(ctx context.Context) error
	Again() time.Duration
	Close() error
}

// kernelParameters is implemented by sysctl.Writer.
type kernelParameters interface {
	sysctlSink
	Get(path string) (string, error)
}

// interfaceMonitor is implemented by ifacemonitor.Monitor.
type interfaceMonitor interface {
	Run(ctx context.Context) error
	Updates() <-chan any
	Listed() bool
}

// realParts returns the parts that access the kernel. It writes nothing.
func realParts(ctx context.Context, c Config, o Options) (parts, error) {
	backend, err := newBackend(ctx, c, o)
	if err != nil {
		return parts{}, err
	}
	p := parts{
		backend: backend,
		routes: func(f table.Family, owns func(string) bool) routeTable {
			return routetable.New(routeConfig(f, owns, c, o))
		},
		vxlan: func(underlay table.Family) vxlanDevice {
			return tunnel.NewVXLAN(vxlanConfig(underlay, c, o))
		},
		flows: func(ctx context.Context, which conntrack.Which, stale func(conntrack.Flow) bool) (int, error) {
			return conntrack.DeleteFlows(ctx, o.NS, which, stale)
		},
		sysctls:    sysctl.Writer{NS: o.NS},
		advertised: func() ([]string, error) { return advertisedLinks(o.NS) },
		monitor:    ifacemonitor.New(c.IfaceMonitorConfig, o.NS, o.Log),
		removed:    newRouteWatch(o.NS, c.RulesConfig.RouteProtocol, o.Log),
	}
	quiet := o
	quiet.Metrics = nil // the metrics belong to the backend in use
	opens := map[string]func(context.Context) (leftover, error){
		"nftables": func(ctx context.Context) (leftover, error) { return newNFT(ctx, c, quiet) },
		"iptables": func(ctx context.Context) (leftover, error) {
			return iptables.OpenLeftovers(ctx, iptablesConfig(c, quiet))
		},
	}
	for name, open := range opens {
		if o.Backend == nil && name != backend.Name() {
			p.others = append(p.others, open)
		}
	}
	if err := errors.Join(p.withServices(o), p.withPassage(c, o)); err != nil {
		return parts{}, errors.Join(err, backend.Close())
	}
	if c.RulesConfig.IPIPEnabled {
		p.ipip = tunnel.NewIPIP(ipipConfig(c, o)).Run
	}
	return p, nil
}

// withServices adds the programmer of services: with nftables a table of its own, with iptables chains of the backend.
func (p *parts) withServices(o Options) error {
	opts := services.Options{NS: o.NS, Log: o.Log}
	if policy, is := p.backend.(*nftpolicy.Backend); is {
		opts.Beside = policy.View() // so that neither is notified by the kernel of the other's changes
	}
	open := func() (*services.Services, error) { return services.Open(opts) }
	if p.backend.Name() != "nftables" {
		p.others = append(p.others, func(context.Context) (leftover, error) { return open() })
		return nil
	}
	services, err := open()
	if err != nil {
		return fmt.Errorf("services: %w", err)
	}
	p.services = nftServices{services}
	return nil
}

// withPassage adds the passage through firewalls. It is needed with nftables only: the rules of the backend iptables are in the chains of the
// firewalls themselves.
func (p *parts) withPassage(c Config, o Options) error {
	opts := forward.Options{NS: o.NS, Log: o.Log, OnlyIPv4: !c.IPv6Enabled, Append: c.IptablesInsertMode == "append"}
	policy, is := p.backend.(*nftpolicy.Backend)
	if !is {
		if o.Backend == nil {
			p.others = append(p.others, func(context.Context) (leftover, error) { return forward.Open(opts) })
		}
		return nil
	}
	opts.Beside = policy.View()
	to, err := forward.Open(opts)
	if err != nil {
		return fmt.Errorf("passage through firewalls: %w", err)
	}
	var links []string
	for _, prefix := range c.RulesConfig.WorkloadIfacePrefixes {
		links = append(links, prefix+"+")
	}
	if c.RulesConfig.VXLANEnabled {
		links = append(links, c.RulesConfig.VXLANDevice)
	}
	if c.RulesConfig.IPIPEnabled {
		links = append(links, rules.IPIPDevice)
	}
	to.SetLinks(links...)
	p.passage = to
	return nil
}

func routeConfig(f table.Family, owns func(string) bool, c Config, o Options) routetable.Config {
	return routetable.Config{Family: f, Protocol: c.RulesConfig.RouteProtocol, OwnsIface: owns,
		Timeout: c.NetlinkTimeout, Grace: o.RouteGrace, NS: o.NS, Log: o.Log,
		Conntrack: func(ctx context.Context, addrs []netip.Addr) error { return conntrack.Delete(ctx, o.NS, addrs...) }}
}

func vxlanConfig(underlay table.Family, c Config, o Options) tunnel.VXLANConfig {
	return tunnel.VXLANConfig{Device: c.RulesConfig.VXLANDevice, VNI: uint32(c.RulesConfig.VXLANVNI),
		Port: uint16(c.RulesConfig.VXLANPort), MTU: c.RulesConfig.VXLANMTU, Family: underlay,
		Protocol: c.RulesConfig.RouteProtocol, Timeout: c.NetlinkTimeout, NS: o.NS, Log: o.Log}
}

func ipipConfig(c Config, o Options) tunnel.IPIPConfig {
	return tunnel.IPIPConfig{Device: rules.IPIPDevice, MTU: c.IPIPMTU, Address: c.RulesConfig.IPIPTunnelAddress,
		Timeout: c.NetlinkTimeout, NS: o.NS, Log: o.Log}
}

func iptablesConfig(c Config, o Options) iptables.Config {
	return iptables.Config{
		NS: o.NS, Log: o.Log, Metrics: o.Metrics, MetricPrefix: o.MetricPrefix,
		InsertMode:             iptables.InsertMode(c.IptablesInsertMode),
		ScratchMarks:           [2]uint32{c.RulesConfig.IptablesMarkScratch0, c.RulesConfig.IptablesMarkScratch1},
		ChainPrefixes:          []string{c.RulesConfig.ChainPrefix},
		RefreshInterval:        -1, // the driver's own timer triggers it, for any backend
		PostWriteCheckInterval: c.IptablesPostWriteCheckInterval,
		LockFilePath:           c.IptablesLockFilePath,
		LockTimeout:            c.IptablesLockTimeout,
		LockProbeInterval:      c.IptablesLockProbeInterval,
	}
}

// newBackend returns the backend that the configuration names.
func newBackend(ctx context.Context, c Config, o Options) (table.Backend, error) {
	if o.Backend != nil {
		return o.Backend, nil
	}
	switch c.RulesConfig.Backend {
	case rules.BackendNFT:
		return newNFT(ctx, c, o)
	case rules.BackendIptables:
		return newIptables(ctx, c, o)
	}
	backend, errNFT := newNFT(ctx, c, o)
	if errNFT == nil {
		return backend, nil
	}
	o.Log.Info("nftables cannot be used; using iptables", "reason", errNFT)
	backend, errIptables := newIptables(ctx, c, o)
	if errIptables != nil {
		return nil, fmt.Errorf("no packet filter can be used: %w", errors.Join(errNFT, errIptables))
	}
	return backend, nil
}

func nftOptions(c Config, o Options) nftpolicy.Options {
	return nftpolicy.Options{NS: o.NS, Log: o.Log, Append: c.IptablesInsertMode == "append"}
}

func newNFT(_ context.Context, c Config, o Options) (table.Backend, error) {
	if err := nft.Supported(o.NS); err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	backend, err := nftpolicy.Open(nftOptions(c, o))
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return backend, nil
}

func newIptables(ctx context.Context, c Config, o Options) (table.Backend, error) {
	backend, err := iptables.New(ctx, iptablesConfig(c, o))
	if err != nil {
		return nil, fmt.Errorf("iptables: %w", err)
	}
	return backend, nil
}
