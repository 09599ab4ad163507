package intdataplane_test

import (
	"log/slog"
	"testing"
	"time"

	intdataplane "contiv.dev/vswitch/dataplane/linux"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/internal/health"
)

// TestAPI names all documented identifiers: it does not compile if one is missing or has another type.
func TestAPI(t *testing.T) {
	const name string = intdataplane.KubeIPVSInterface
	if name != "kube-ipvs0" {
		t.Errorf("KubeIPVSInterface is %q", name)
	}
	var (
		ipv6, looseRPF                     bool
		override                           rules.RuleRenderer
		mtu, setSize                       int
		sets, routes, refresh, postWrite   time.Duration
		lock, probe, netlink, status, hang time.Duration
		insert, lockFile                   string
		restart, inSync                    func()
		aggregator                         *health.HealthAggregator
		external                           []string
		_                                  ifacemonitor.Config
	)
	var construct func(intdataplane.Config) *intdataplane.InternalDataplane = intdataplane.NewIntDataplaneDriver
	// Unkeyed, so that order, number and types of the fields are checked.
	config := intdataplane.Config{ipv6, override, mtu, looseRPF, setSize, sets, routes, refresh, postWrite, insert, lockFile, lock,
		probe, netlink, rules.Config{}, ifacemonitor.Config{}, status, restart, inSync, aggregator, hang, external}
	_ = intdataplane.Config{IPv6Enabled: ipv6, RuleRendererOverride: override, IPIPMTU: mtu, IgnoreLooseRPF: looseRPF}
	_ = intdataplane.Config{MaxIPSetSize: setSize, IPSetsRefreshInterval: sets, RouteRefreshInterval: routes}
	_ = intdataplane.Config{IptablesRefreshInterval: refresh, IptablesPostWriteCheckInterval: postWrite}
	_ = intdataplane.Config{IptablesInsertMode: insert, IptablesLockFilePath: lockFile, IptablesLockTimeout: lock}
	_ = intdataplane.Config{IptablesLockProbeInterval: probe, NetlinkTimeout: netlink, RulesConfig: rules.Config{}}
	_ = intdataplane.Config{IfaceMonitorConfig: ifacemonitor.Config{}, StatusReportingInterval: status}
	_ = intdataplane.Config{ConfigChangedRestartCallback: restart, PostInSyncCallback: inSync, HealthAggregator: aggregator}
	_ = intdataplane.Config{DebugSimulateDataplaneHangAfter: hang, ExternalNodesCidrs: external}

	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	config.RulesConfig.Backend = "nonsense" // fails before any access to the kernel
	var d *intdataplane.InternalDataplane = construct(config)
	var manager intdataplane.Manager = noManager{}
	d.RegisterManager(manager)
	d.Start()
	var send func(interface{}) error = d.SendMessage
	var receive func() (interface{}, error) = d.RecvMessage
	if err := send(struct{}{}); err == nil {
		t.Error("SendMessage of a driver that does not work: no error")
	}
	if _, err := receive(); err == nil {
		t.Error("RecvMessage of a driver that does not work: no error")
	}
}

type noManager struct{}

func (noManager) OnUpdate(protoBufMsg interface{}) {}
func (noManager) CompleteDeferredWork() error      { return nil }
