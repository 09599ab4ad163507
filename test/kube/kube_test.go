package kube

import (
	"os"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// testcase is something that is tried on a cluster.
type testcase struct {
	name string
	run  func(*world)
	// on says where it makes sense; nil: everywhere.
	on func(setup) bool
}

func ours(s setup) bool      { return !s.reference() }
func asProcess(s setup) bool { return !s.reference() && !s.installed }
func installed(s setup) bool { return s.installed }
func onVPP(s setup) bool     { return s.dataplane == "vpp" }

// cases, in the order in which they run on one cluster.
func cases() []testcase {
	return []testcase{
		{"manifests", testManifests, installed},
		{"pods", testPods, nil},
		{"hostport", testHostPort, nil},
		{"services", testServices, nil},
		{"dns", testDNS, nil},
		{"rolling", testRolling, nil},
		{"agent restart", testAgentRestart, asProcess},
		{"netctl", testNetctl, installed},
		{"upgrade", testUpgrade, installed},
		{"kubelet restart", testKubeletRestart, asProcess},
		{"VPP kill", testVPPKill, onVPP},
		{"API server away", testAPIServerAway, asProcess},
		{"drain", testDrain, asProcess},
		{"scale", testScale, nil},
		{"times", testTimes, asProcess},
		{"logs", testLogs, asProcess},
		{"RBAC", testRBAC, ours},
		{"rights used", testRightsUsed, installed},
	}
}

// TestKube runs all cases on the reference first, whose figures the others are measured against.
func TestKube(t *testing.T) {
	reference := &results{}
	for _, s := range []setup{
		{name: "reference"}, {name: "linux", dataplane: "linux"}, {name: "vpp", dataplane: "vpp"},
		{name: "installed", dataplane: "linux", installed: true},
	} {
		t.Run(s.name, func(t *testing.T) {
			if !wanted(s.name) {
				t.Skipf("CONTIV_KUBE=%s", os.Getenv("CONTIV_KUBE"))
			}
			if _, ok := vpptest.Find(); !ok && onVPP(s) {
				t.Skip(vpptest.ErrNoVPP)
			}
			w := newWorld(t, s)
			w.reference, w.results = reference, &results{}
			if s.reference() {
				w.results = reference
			}
			for _, c := range cases() {
				if c.on != nil && !c.on(s) {
					continue
				}
				t.Run(c.name, func(t *testing.T) { c.run(w.in(t)) })
			}
		})
	}
}

// in is the world as a subtest sees it.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.t = t
	return &sub
}

// results are what was measured on one cluster.
type results struct {
	measured bool
	failed   int // connections during rolling updates
}
