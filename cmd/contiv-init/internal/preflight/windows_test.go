package preflight

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/internal/lifecycle"
)

// TestCheckWindows: each thing that a Windows node lacks is found, and nothing else.
func TestCheckWindows(t *testing.T) {
	good := func() WindowsFacts {
		return WindowsFacts{Build: 20348, Features: hcn.Features{RemoteSubnet: true, IPv6DualStack: true}, Uplink: "Ethernet",
			Conflists: []string{"10-contiv.conflist", "99-other.conf"}, Conflist: "10-contiv.conflist", VNI: 10, IPv4: true, IPv6: true}
	}
	overlay := func(f *WindowsFacts) { f.Overlay, f.VNI, f.IPv6 = true, 4096, false }
	for name, tc := range map[string]struct {
		change   func(*WindowsFacts)
		subjects []string
		failed   bool
	}{
		"good":            {func(*WindowsFacts) {}, nil, false},
		"old":             {func(f *WindowsFacts) { f.Build = 14393 }, []string{"kernel"}, true},
		"no HNS":          {func(f *WindowsFacts) { f.HNS, f.Features = errors.New("no"), hcn.Features{} }, []string{"HNS"}, true},
		"overlay":         {overlay, nil, false},
		"no overlay":      {func(f *WindowsFacts) { overlay(f); f.Features.RemoteSubnet = false }, []string{"HNS"}, true},
		"bridge":          {func(f *WindowsFacts) { f.Features.RemoteSubnet = false }, nil, false},
		"IPv4 only":       {func(f *WindowsFacts) { f.Features.IPv6DualStack, f.IPv6 = false, false }, nil, false},
		"overlay of both": {func(f *WindowsFacts) { overlay(f); f.IPv6 = true }, []string{"contiv.conf"}, true},
		"IPv6 only":       {func(f *WindowsFacts) { f.IPv4 = false }, []string{"contiv.conf"}, true},
		"no dual stack":   {func(f *WindowsFacts) { f.Features.IPv6DualStack = false }, []string{"HNS"}, true},
		"no route":        {func(f *WindowsFacts) { f.Uplink = "" }, []string{"NIC"}, true},
		"VNI too low":     {func(f *WindowsFacts) { overlay(f); f.VNI = 10 }, []string{"contiv.conf"}, true},
		"VNI too high":    {func(f *WindowsFacts) { overlay(f); f.VNI = 65536 }, []string{"contiv.conf"}, true},
		"another network": {func(f *WindowsFacts) { f.Conflists = append(f.Conflists, "05-flannel.conf") }, []string{"CNI"}, false},
	} {
		f := good()
		tc.change(&f)
		var subjects []string
		found := CheckWindows(f)
		for _, one := range found {
			subjects = append(subjects, one.Subject)
		}
		if !slices.Equal(subjects, tc.subjects) || Failed(found) != tc.failed {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// TestQueryHNS: an HNS that answers reports its features; one that fails or hangs is a finding, and pre-flight ends.
func TestQueryHNS(t *testing.T) {
	for _, op := range []string{"Features", "ListNetworks", "open"} {
		host := hnsmem.New()
		jobs := lifecycle.NewGroup(t.Context(), slog.New(slog.DiscardHandler))
		gate := make(chan struct{})
		hang := false
		open := func() (HNS, error) {
			if hang && op == "open" {
				<-gate
			}
			return host.V2(), nil
		}
		if features, err := QueryHNS(jobs, time.Minute, open); err != nil || !features.IPv6DualStack {
			t.Errorf("%s: %+v, %v", op, features, err)
		}
		hang = true
		host.Hook(func(c hnsmem.Call) error {
			if c.Op == op {
				<-gate
			}
			return nil
		})
		_, err := QueryHNS(jobs, time.Millisecond, open)
		if !errors.Is(err, hnscall.ErrNoAnswer) {
			t.Errorf("%s hangs: %v", op, err)
		}
		found := CheckWindows(WindowsFacts{Build: 20348, Uplink: "Ethernet", IPv4: true, HNS: err})
		if len(found) != 1 || !Failed(found) || !strings.Contains(found[0].Fix, "restart it") {
			t.Errorf("%s hangs: findings %+v", op, found)
		}
		close(gate)
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		host.Hook(func(hnsmem.Call) error { return errors.New("no luck") })
		again := lifecycle.NewGroup(t.Context(), slog.New(slog.DiscardHandler))
		hang = false
		if _, err := QueryHNS(again, time.Minute, open); err == nil || errors.Is(err, hnscall.ErrNoAnswer) {
			t.Errorf("HNS fails: %v", err)
		}
		if err := again.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
}
