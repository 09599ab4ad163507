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

// Config is what NewWinDataplaneDriver takes. The first six fields are Felix's.
type Config struct {
	// IPv6Enabled makes the driver render rules for both families; else IPv4 nets and addresses only.
	IPv6Enabled bool
	// HealthAggregator is reported by the reporter "win_dataplane" whether the loop is live, and once the first apply is done, ready.
	HealthAggregator *health.HealthAggregator
	// Hostname is this node's name; "": the machine's.
	Hostname string
	// VXLANEnabled makes the driver keep the remote subnets of the overlay network.
	VXLANEnabled bool
	// VXLANID is the overlay's VNI, 4096..65535 (Windows takes no lower one, and its API has 16 bits for it); 0: 4096.
	VXLANID int
	// VXLANPort is the overlay's UDP port; 0: 4789.
	VXLANPort int

	// MaxIPSetSize is the most members that a set may have; 0: 1048576. Rules that need a larger set block.
	MaxIPSetSize int
	// NodeExempt lets pass what a workload sends to its own node, whatever policies say, as Kubernetes' NetworkPolicy demands. The other
	// way passes in any case.
	NodeExempt bool
	// TiersForNode are the names of tiers whose policies are asked first about that, too (ClusterNetworkPolicy).
	TiersForNode []string
	// Networks matches the names of HNS networks whose endpoints are workloads'; nil: the environment's KUBE_NETWORK, or
	// defaultNetworks.
	Networks *regexp.Regexp
	// RefreshInterval is how often HNS is compared in full with what is desired, and repaired; ≤ 0: never. The list of
	// endpoints is asked for after ten minutes in any case.
	RefreshInterval time.Duration
	// StatusReportingInterval is the period of ProcessStatusUpdate messages; ≤ 0: none.
	StatusReportingInterval time.Duration
	// PostInSyncCallback is called once, by the loop, after the first apply.
	PostInSyncCallback func()
	// DebugSimulateDataplaneHangAfter makes the loop hang, to test what watches it; 0: never.
	DebugSimulateDataplaneHangAfter time.Duration
}

// defaultNetworks matches the networks of this project, and Felix's.
const defaultNetworks = "(?i)calico.*|contiv.*"

// Options are what New takes besides: the driver's surroundings.
type Options struct {
	Log     *slog.Logger          // nil: quiet
	Metrics prometheus.Registerer // nil: none
	// MetricPrefix begins the metrics' names; "": they have Felix's names (felix_win_dataplane_failures).
	MetricPrefix string
	Clock        driver.Clock // nil: real time
	// HCN is version 2 of the service, for VXLANEnabled; nil: this machine's.
	HCN RemoteSubnets
	// HostAddresses returns the node's own addresses; nil: those of the machine's interfaces.
	HostAddresses func() ([]netip.Addr, error)
	// HostInterval is how often it is called; 0: 10 s.
	HostInterval time.Duration
	// RetryInterval is how soon what has failed is tried again; 0: 5 s.
	RetryInterval time.Duration
	// CallTimeout is how long the loop waits for a call of HNS; 0: 30 s. HNS takes seconds where it has many endpoints.
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
			errs = append(errs, fmt.Errorf("Hostname is not set, and the machine does not tell its own: %w", err))
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

// validate returns all that is wrong, each error naming its field.
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
