package services

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestWorkers checks that services work in the same way with two workers in VPP as with none. CONTIV_SERVICES_WORKERS=2
// runs all tests with two workers.
func TestWorkers(t *testing.T) {
	if !slices.Contains(modes(), vppPlugin) {
		t.Skip("vpp-plugin: skipped: not among the modes")
	}
	vppPlugin.needs(t)
	matrix.Only(t)
	w := newRealWorld(t, vppPlugin, fabric{workers: 2})
	for i, part := range []struct {
		name string
		run  func(w *world, number int)
	}{
		{"Spread", (*world).spread},
		{"BackendRemoved", (*world).backendRemoved},
		{"PortUsedAgain", (*world).portUsedAgain},
		{"KillUnderLoad", (*world).killUnderLoad},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(w.in(t), 100+i) })
	}
}
