package documented

import (
	"errors"
	"testing"
	"time"

	intdataplane "contiv.dev/vswitch/dataplane/linux"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	windataplane "contiv.dev/vswitch/dataplane/windows"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// manager is a Manager of both drivers.
type manager struct{}

func (manager) OnUpdate(protoBufMsg interface{}) {}
func (manager) CompleteDeferredWork() error      { return nil }

// documentedManager is the documented interface; both directions of the assignment compile only if it has the same methods.
type documentedManager interface {
	OnUpdate(protoBufMsg interface{})
	CompleteDeferredWork() error
}

// driver has the methods of both drivers, except for those with the types of their managers.
type driver interface {
	Start()
	SendMessage(msg interface{}) error
	RecvMessage() (interface{}, error)
}

var (
	_ driver = (*intdataplane.InternalDataplane)(nil)
	_ driver = (*windataplane.WindowsDataplane)(nil)
)

// TestLinuxDriver uses package intdataplane.
func TestLinuxDriver(t *testing.T) {
	const name string = intdataplane.KubeIPVSInterface
	if name != "kube-ipvs0" {
		t.Errorf("KubeIPVSInterface is %q", name)
	}
	var render rules.RuleRenderer
	var aggregator *intdataplane.HealthAggregator = intdataplane.NewHealthAggregator()
	var config intdataplane.Config
	config.IPv6Enabled, config.RuleRendererOverride, config.IPIPMTU, config.IgnoreLooseRPF, config.MaxIPSetSize = true, render, 1440, true, 1
	for _, d := range []*time.Duration{&config.IPSetsRefreshInterval, &config.RouteRefreshInterval, &config.IptablesRefreshInterval,
		&config.IptablesPostWriteCheckInterval, &config.IptablesLockTimeout, &config.IptablesLockProbeInterval, &config.NetlinkTimeout,
		&config.StatusReportingInterval, &config.DebugSimulateDataplaneHangAfter} {
		*d = time.Second
	}
	config.IptablesInsertMode, config.IptablesLockFilePath = "insert", "/run/xtables.lock"
	config.RulesConfig, config.IfaceMonitorConfig = rules.Config{}, ifacemonitor.Config{}
	config.ConfigChangedRestartCallback, config.PostInSyncCallback = func() {}, func() {}
	config.HealthAggregator, config.ExternalNodesCidrs = aggregator, []string{"192.0.2.0/24"}

	var m intdataplane.Manager = manager{}
	var same documentedManager = m
	m = same
	var construct func(config intdataplane.Config) *intdataplane.InternalDataplane = intdataplane.NewIntDataplaneDriver
	config.RulesConfig.Backend = "nonsense" // so that it needs nothing from this machine
	d := construct(config)
	d.RegisterManager(m)
	if err := d.SendMessage(struct{}{}); err == nil {
		t.Error("the configuration makes no sense, and the driver takes messages")
	}
}

// TestWindowsDriver uses package windataplane.
func TestWindowsDriver(t *testing.T) {
	var known error = windataplane.ErrorUnknownEndpoint
	for err, text := range map[error]string{
		known: "Endpoint could not be found", windataplane.ErrorUpdateFailed: "Endpoint update failed",
		windataplane.ErrUpdatesFailed: "some VXLAN route updates failed",
	} {
		if !errors.Is(err, err) || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
	var m windataplane.Manager = manager{}
	var same documentedManager = m
	m = same
	var construct func(hns hns.API, config windataplane.Config) *windataplane.WindowsDataplane = windataplane.NewWinDataplaneDriver
	d := construct(hnsmem.New().V1(), windataplane.Config{VXLANID: -1}) // VXLANID -1 is invalid
	d.RegisterManager(m)
	if err := d.SendMessage(struct{}{}); err == nil {
		t.Error("the configuration makes no sense, and the driver takes messages")
	}
}
