package windataplane_test

import (
	"log/slog"
	"testing"

	windataplane "contiv.dev/vswitch/dataplane/windows"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/internal/health"
)

// TestAPI uses every documented identifier: it fails to compile if one is missing or has another type.
func TestAPI(t *testing.T) {
	for err, text := range map[error]string{
		windataplane.ErrorUnknownEndpoint: "Endpoint could not be found",
		windataplane.ErrorUpdateFailed:    "Endpoint update failed",
		windataplane.ErrUpdatesFailed:     "some VXLAN route updates failed",
	} {
		if err.Error() != text {
			t.Errorf("%q, documented as %q", err, text)
		}
	}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	var construct func(hns hns.API, config windataplane.Config) *windataplane.WindowsDataplane = windataplane.NewWinDataplaneDriver
	config := windataplane.Config{IPv6Enabled: true, HealthAggregator: health.NewHealthAggregator(), Hostname: "node1",
		VXLANEnabled: false, VXLANID: 5, VXLANPort: 4789}
	d := construct(hnsmem.New().V1(), config) // VNI 5 is invalid on Windows
	var manager windataplane.Manager = noManager{}
	var register func(windataplane.Manager) = d.RegisterManager
	register(manager)
	var start func() = d.Start
	start()
	var send func(interface{}) error = d.SendMessage
	var receive func() (interface{}, error) = d.RecvMessage
	if err := send(struct{}{}); err == nil {
		t.Error("SendMessage of a driver that does not work: no error")
	}
	if _, err := receive(); err == nil {
		t.Error("RecvMessage of a driver that does not work: no error")
	}
	if s := config.HealthAggregator.Summary(); s.Live || s.Ready {
		t.Errorf("health of a driver that does not work: %+v", s)
	}
}

type noManager struct{}

func (noManager) OnUpdate(protoBufMsg interface{}) {}
func (noManager) CompleteDeferredWork() error      { return nil }
