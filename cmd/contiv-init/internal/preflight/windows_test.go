package preflight

import (
	"errors"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// TestCheckWindows: each thing that a Windows node lacks is found, and nothing else.
func TestCheckWindows(t *testing.T) {
	good := func() WindowsFacts {
		return WindowsFacts{Build: 20348, Features: hcn.Features{RemoteSubnet: true, IPv6DualStack: true}, Uplink: "Ethernet",
			Conflists: []string{"10-contiv.conflist", "99-other.conf"}, Conflist: "10-contiv.conflist", Overlay: true, VNI: 4096, IPv6: true}
	}
	for name, tc := range map[string]struct {
		change   func(*WindowsFacts)
		subjects []string
		failed   bool
	}{
		"good":            {func(*WindowsFacts) {}, nil, false},
		"old":             {func(f *WindowsFacts) { f.Build = 14393 }, []string{"kernel"}, true},
		"no HNS":          {func(f *WindowsFacts) { f.HNS, f.Features = errors.New("no"), hcn.Features{} }, []string{"HNS"}, true},
		"no overlay":      {func(f *WindowsFacts) { f.Features.RemoteSubnet = false }, []string{"HNS"}, true},
		"bridge":          {func(f *WindowsFacts) { f.Features.RemoteSubnet, f.Overlay, f.VNI = false, false, 10 }, nil, false},
		"no dual stack":   {func(f *WindowsFacts) { f.Features.IPv6DualStack = false }, []string{"HNS"}, true},
		"no route":        {func(f *WindowsFacts) { f.Uplink = "" }, []string{"NIC"}, true},
		"VNI too low":     {func(f *WindowsFacts) { f.VNI = 10 }, []string{"contiv.conf"}, true},
		"VNI too high":    {func(f *WindowsFacts) { f.VNI = 65536 }, []string{"contiv.conf"}, true},
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
