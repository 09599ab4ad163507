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

// Interface name used by kube-proxy to bind service ips.
const KubeIPVSInterface = "kube-ipvs0"

// Config is what NewIntDataplaneDriver takes. Its fields are Felix's.
type Config struct {
	// IPv6Enabled makes the driver work on both families; else on IPv4 only.
	IPv6Enabled bool
	// RuleRendererOverride replaces the rules that RulesConfig gives; nil: it does not.
	RuleRendererOverride rules.RuleRenderer
	// IPIPMTU is put on tunl0; 0: 1440.
	IPIPMTU int
	// IgnoreLooseRPF lets the driver start although net.ipv4.conf.all.rp_filter is 2, with which the kernel does not check
	// that a packet's source is routed back to where it came from.
	IgnoreLooseRPF bool

	// MaxIPSetSize is the most members that a set may have; 0: 1048576. Rules that need a larger set block.
	MaxIPSetSize int

	// How often the kernel is compared in full with what is desired; ≤ 0: never.
	IPSetsRefreshInterval   time.Duration
	RouteRefreshInterval    time.Duration
	IptablesRefreshInterval time.Duration
	// IptablesPostWriteCheckInterval is the time from a write to the first look at what has become of it; each further look
	// comes after twice the time. 0: 1 s. Only iptables needs it.
	IptablesPostWriteCheckInterval time.Duration
	// IptablesInsertMode is "insert" (default) or "append". With iptables our jumps come first or last in the kernel's chains. With
	// nftables, where each program has base chains of its own, "append" calls ours after those that have the usual priorities, "insert"
	// before those that were there.
	IptablesInsertMode string
	// The lock that writers of legacy iptables share: its file (default /run/xtables.lock), how long to wait for it and how
	// often to try (default 50 ms).
	IptablesLockFilePath      string
	IptablesLockTimeout       time.Duration
	IptablesLockProbeInterval time.Duration

	// NetlinkTimeout is how long to wait for an answer of the kernel about routes; 0: 10 s.
	NetlinkTimeout time.Duration

	RulesConfig rules.Config

	// IfaceMonitorConfig: InterfaceExcludes nil stands for kube-ipvs0, ResyncInterval 0 for 10 s.
	IfaceMonitorConfig ifacemonitor.Config

	// StatusReportingInterval is the period of ProcessStatusUpdate messages; ≤ 0: none.
	StatusReportingInterval time.Duration

	// ConfigChangedRestartCallback is called when something has changed that only a new start can take in: kube-ipvs has appeared or
	// disappeared. It is called by the loop and must not wait for it.
	ConfigChangedRestartCallback func()

	// PostInSyncCallback is called once, by the loop, after the first apply.
	PostInSyncCallback func()
	// HealthAggregator is reported by the reporter "int_dataplane" whether the loop is live, and once the first apply is done, ready.
	HealthAggregator *health.HealthAggregator
	// DebugSimulateDataplaneHangAfter makes the loop hang, to test what watches it; 0: never.
	DebugSimulateDataplaneHangAfter time.Duration

	// ExternalNodesCidrs are the nets of nodes outside of the cluster that may send tunnelled packets.
	ExternalNodesCidrs []string
}

// Options are what New takes besides: the driver's surroundings.
type Options struct {
	Log     *slog.Logger          // nil: quiet
	NS      *nsdo.Namespace       // whose rules and routes; nil: the process's own
	Metrics prometheus.Registerer // nil: none
	// MetricPrefix begins the metrics' names; "": they have Felix's names (felix_int_dataplane_failures).
	MetricPrefix string
	Clock        driver.Clock // nil: real time
	// Backend replaces the one that RulesConfig.Backend names.
	Backend table.Backend
	// RetryInterval is how soon what has failed is tried again; 0: 10 s.
	RetryInterval time.Duration
	// RouteGrace is how long a route of an unknown workload is left after its interface was seen; 0: 10 s.
	RouteGrace time.Duration
}

const defaultRetry = 10 * time.Second

func (c Config) withDefaults() (Config, error) {
	c.RulesConfig = c.RulesConfig.WithDefaults()
	if c.RulesConfig.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("RulesConfig.Hostname is not set, and the machine does not tell its own: %w", err)
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

// validate returns all that is wrong, each error naming its field.
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
