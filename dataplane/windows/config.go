package windataplane

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
	"contiv.dev/vswitch/internal/health"
)

// Config is the configuration of NewWinDataplaneDriver. The first six fields are those of Felix.
type Config struct {
	// IPv6Enabled makes the driver render rules for both families; otherwise for IPv4 nets and addresses only.
	IPv6Enabled bool
	// HealthAggregator receives the reports of the reporter "win_dataplane": whether the loop is live and, after the first apply, ready.
	HealthAggregator *health.HealthAggregator
	// Hostname is this node's name; "": the machine's.
	Hostname string
	// VXLANEnabled makes the driver keep the remote subnets of the overlay network.
	VXLANEnabled bool
	// VXLANID is the overlay's VNI, 4096..65535 (Windows rejects lower ones, and its API has 16 bits for it); 0: 4096.
	VXLANID int
	// VXLANPort is the overlay's UDP port; 0: 4789.
	VXLANPort int

	// MaxIPSetSize is the largest number of members of a set; 0: 1048576. Rules that need a larger set block.
	MaxIPSetSize int
	// NodeExempt allows packets from a workload to its own node, whatever policies say, as Kubernetes' NetworkPolicy requires. Packets from the node
	// to the workload are allowed in any case.
	NodeExempt bool
	// TiersForNode are the names of tiers whose policies apply to these packets, too, before the exemption (ClusterNetworkPolicy).
	TiersForNode []string
	// Networks matches the names of the HNS networks whose endpoints are workloads; nil: the environment variable KUBE_NETWORK, or defaultNetworks.
	Networks *regexp.Regexp
	// RefreshInterval is the interval of full comparisons of HNS with the desired state, and of repairs; ≤ 0: never. The list of endpoints is
	// requested again after ten minutes in any case.
	RefreshInterval time.Duration
	// StatusReportingInterval is the period of ProcessStatusUpdate messages; ≤ 0: none.
	StatusReportingInterval time.Duration
	// PostInSyncCallback is called once, by the loop, after the first apply.
	PostInSyncCallback func()
	// DebugSimulateDataplaneHangAfter makes the loop hang, to test the health checks; 0: never.
	DebugSimulateDataplaneHangAfter time.Duration
}

// defaultNetworks matches the networks of this project and of Felix.
const defaultNetworks = "(?i)calico.*|contiv.*"

// Options are the additional parameters of New.
type Options struct {
	Log     *slog.Logger          // nil: no log
	Metrics prometheus.Registerer // nil: no metrics
	// MetricPrefix is the prefix of the metrics' names; "": they have Felix's names (felix_win_dataplane_failures).
	MetricPrefix string
	Clock        driver.Clock // nil: real time
	// HCN is version 2 of the service, for VXLANEnabled; nil: this machine's.
	HCN RemoteSubnets
	// HostAddresses returns the node's own addresses; nil: those of the machine's interfaces.
	HostAddresses func() ([]netip.Addr, error)
	// HostInterval is the interval of calls of HostAddresses; 0: 10 s.
	HostInterval time.Duration
	// RetryInterval is the delay until a failed operation is retried; 0: 5 s.
	RetryInterval time.Duration
	// CallTimeout is how long the loop waits for a call of HNS; 0: 30 s. HNS takes seconds if it has many endpoints.
	CallTimeout time.Duration
}

const (
	defaultMaxSet  = 1048576
	minVNI, maxVNI = 4096, 65535
)

func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			errs = append(errs, fmt.Errorf("Hostname is not set, and the name of the machine cannot be read: %w", err))
		}
		c.Hostname = name
	}
	orElse(&c.VXLANID, minVNI)
	orElse(&c.VXLANPort, defaultVXLANPort)
	orElse(&c.MaxIPSetSize, defaultMaxSet)
	if c.Networks == nil {
		text := os.Getenv("KUBE_NETWORK")
		orElse(&text, defaultNetworks)
		var err error
		if c.Networks, err = regexp.Compile(text); err != nil {
			errs = append(errs, fmt.Errorf("KUBE_NETWORK in the environment: %w", err))
		}
	}
	return c, errors.Join(append(errs, c.validate())...)
}

// validate returns all errors in the configuration; each names its field.
func (c Config) validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if c.VXLANID < minVNI || c.VXLANID > maxVNI {
		wrong("VXLANID", "%d is not in %d..%d, which Windows takes", c.VXLANID, minVNI, maxVNI)
	}
	if c.VXLANPort < 1 || c.VXLANPort > 65535 {
		wrong("VXLANPort", "%d is not in 1..65535", c.VXLANPort)
	}
	if c.MaxIPSetSize < 1 {
		wrong("MaxIPSetSize", "%d is not positive", c.MaxIPSetSize)
	}
	return errors.Join(errs...)
}

func (c Config) families() []family {
	if c.IPv6Enabled {
		return []family{4, 6}
	}
	return []family{4}
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = driver.RealClock()
	}
	if o.HostAddresses == nil {
		o.HostAddresses = machineAddresses
	}
	orElse(&o.HostInterval, 10*time.Second)
	orElse(&o.RetryInterval, 5*time.Second)
	orElse(&o.CallTimeout, 30*time.Second)
	return o
}

func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
