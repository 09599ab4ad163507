package intdataplane

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/health"
	"contiv.dev/vswitch/internal/nsdo"
)

// KubeIPVSInterface is the name of the interface to which kube-proxy binds service IPs.
const KubeIPVSInterface = "kube-ipvs0"

// Config is the configuration of NewIntDataplaneDriver. Its fields are those of Felix.
type Config struct {
	// IPv6Enabled makes the driver program both families; otherwise it programs IPv4 only.
	IPv6Enabled bool
	// RuleRendererOverride replaces the renderer that is built from RulesConfig; nil: no override.
	RuleRendererOverride rules.RuleRenderer
	// IPIPMTU is the MTU of tunl0; 0: 1440.
	IPIPMTU int
	// IgnoreLooseRPF lets the driver start although net.ipv4.conf.all.rp_filter is 2. With this value the kernel does not check that the
	// route to a packet's source leads to the interface on which the packet arrived.
	IgnoreLooseRPF bool

	// MaxIPSetSize is the maximum number of members of a set; 0: 1048576. Rules that need a larger set block.
	MaxIPSetSize int

	// The intervals at which the kernel's state is compared in full with the desired state; ≤ 0: never.
	IPSetsRefreshInterval   time.Duration
	RouteRefreshInterval    time.Duration
	IptablesRefreshInterval time.Duration
	// IptablesPostWriteCheckInterval is the time from a write to the first check of its result; the time doubles with each further check.
	// 0: 1 s. Only iptables needs it.
	IptablesPostWriteCheckInterval time.Duration
	// IptablesInsertMode is "insert" (default) or "append". With iptables, our jumps are the first or the last rules of the kernel's
	// chains. With nftables, where each program has its own base chains, "append" runs our base chains after those that have the usual
	// priorities, "insert" before those that existed earlier.
	IptablesInsertMode string
	// The lock that is shared by programs that write legacy iptables: its file (default /run/xtables.lock), how long to wait for it and how
	// often to try (default 50 ms).
	IptablesLockFilePath      string
	IptablesLockTimeout       time.Duration
	IptablesLockProbeInterval time.Duration

	// NetlinkTimeout is the timeout of netlink requests about routes; 0: 10 s.
	NetlinkTimeout time.Duration

	RulesConfig rules.Config

	// IfaceMonitorConfig configures the interface monitor. InterfaceExcludes nil means kube-ipvs0, ResyncInterval 0 means 10 s.
	IfaceMonitorConfig ifacemonitor.Config

	// StatusReportingInterval is the period of ProcessStatusUpdate messages; ≤ 0: none.
	StatusReportingInterval time.Duration

	// ConfigChangedRestartCallback is called when a change needs a restart of the process: kube-ipvs has appeared or disappeared. The loop
	// calls it, so it must not wait for the loop.
	ConfigChangedRestartCallback func()

	// PostInSyncCallback is called once, by the loop, after the first apply.
	PostInSyncCallback func()
	// HealthAggregator receives the state of the reporter "int_dataplane": live while the loop runs, ready once the first apply is done.
	HealthAggregator *health.HealthAggregator
	// DebugSimulateDataplaneHangAfter makes the loop hang after this time, to test the code that watches the loop; 0: never.
	DebugSimulateDataplaneHangAfter time.Duration

	// ExternalNodesCidrs are the subnets of nodes outside the cluster that may send tunnelled packets.
	ExternalNodesCidrs []string
}

// Options are the parameters of New that come from the driver's environment.
type Options struct {
	Log     *slog.Logger          // nil: no log
	NS      *nsdo.Namespace       // the network namespace to program; nil: that of the process
	Metrics prometheus.Registerer // nil: none
	// MetricPrefix is the prefix of the metrics' names; "": they have Felix's names (felix_int_dataplane_failures).
	MetricPrefix string
	Clock        driver.Clock // nil: real time
	// Backend replaces the backend that RulesConfig.Backend names.
	Backend table.Backend
	// RetryInterval is the delay before a failed operation is retried; 0: 10 s.
	RetryInterval time.Duration
	// NoIPv6Forwarding leaves the kernel's forwarding of IPv6 as it is, for a cluster without IPv6. The rules for IPv6 are written anyway.
	NoIPv6Forwarding bool
	// RouteGrace is how long a route of an unknown workload is kept after its interface was seen; 0: 10 s.
	RouteGrace time.Duration
}

const defaultRetry = 10 * time.Second

func (c Config) withDefaults() (Config, error) {
	c.RulesConfig = c.RulesConfig.WithDefaults()
	if c.RulesConfig.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("RulesConfig.Hostname is not set, and the name of the machine cannot be read: %w", err)
		}
		c.RulesConfig.Hostname = name
	}
	orElse(&c.IPIPMTU, 1440)
	orElse(&c.MaxIPSetSize, table.DefaultMaxSet)
	orElse(&c.IptablesInsertMode, "insert")
	orElse(&c.NetlinkTimeout, 10*time.Second)
	orElse(&c.IfaceMonitorConfig.ResyncInterval, ifacemonitor.DefaultResyncInterval)
	if c.IfaceMonitorConfig.InterfaceExcludes == nil {
		c.IfaceMonitorConfig.InterfaceExcludes = []*regexp.Regexp{regexp.MustCompile("^" + KubeIPVSInterface + "$")}
	}
	return c, nil
}

func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate returns all errors of the configuration; each names its field.
func (c Config) validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if c.IPIPMTU < 68 || c.IPIPMTU > 65515 {
		wrong("IPIPMTU", "%d is not in 68..65515", c.IPIPMTU)
	}
	if c.MaxIPSetSize < 1 {
		wrong("MaxIPSetSize", "%d is not positive", c.MaxIPSetSize)
	}
	if c.IptablesInsertMode != "insert" && c.IptablesInsertMode != "append" {
		wrong("IptablesInsertMode", "%q is neither insert nor append", c.IptablesInsertMode)
	}
	if c.NetlinkTimeout < 0 {
		wrong("NetlinkTimeout", "%s is negative", c.NetlinkTimeout)
	}
	if _, err := c.externalNets(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.RulesConfig.Validate())...)
}

func (c Config) externalNets() ([]netip.Prefix, error) {
	var nets []netip.Prefix
	for i, text := range c.ExternalNodesCidrs {
		p, err := rules.ParseNet(text)
		if err != nil {
			return nil, fmt.Errorf("ExternalNodesCidrs[%d]: %q: %w", i, text, err)
		}
		nets = append(nets, p)
	}
	return nets, nil
}

func (c Config) families() []table.Family {
	if c.IPv6Enabled {
		return []table.Family{table.IPv4, table.IPv6}
	}
	return []table.Family{table.IPv4}
}
