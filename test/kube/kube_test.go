package kube

import (
	"os"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// testcase is a test on a cluster.
type testcase struct {
	name string
	run  func(*world)
	// on reports whether the case applies to a cluster; nil: it applies to all.
	on func(setup) bool
}

func ours(s setup) bool    { return !s.reference() }
func byChart(s setup) bool { return s.installed }
func hasVPP(s setup) bool  { return s.dataplane == "vpp" || mixed(s) }
func mixed(s setup) bool   { return s.dataplane == "auto" }
func relayed(s setup) bool { return s.relay }

// full reports whether a cluster runs all cases. Agents as processes are for quick tests of a change on a cluster; the relay
// differs in how the agents receive the state of Kubernetes, and two dataplanes in one cluster differ in the path between
// the nodes.
func full(s setup) bool     { return s.installed && !s.relay && !mixed(s) }
func fullVPP(s setup) bool  { return full(s) && hasVPP(s) }
func vppPods(s setup) bool  { return s.installed && hasVPP(s) }
func compared(s setup) bool { return full(s) || s.reference() }
func restarts(s setup) bool { return ours(s) && !s.relay && !mixed(s) }

// cases returns the cases, in the order in which they run on one cluster.
func cases() []testcase {
	return []testcase{
		{"manifests", testManifests, full},
		{"pods", testPods, nil},
		{"hostport", testHostPort, compared},
		{"services", testServices, nil},
		{"dns", testDNS, compared},
		{"rolling", testRolling, nil},
		{"netctl", testNetctl, byChart},
		{"helm test", testHelmTest, byChart},
		{"relay", testRelay, relayed},
		{"large sets", testLargeSets, relayed},
		{"agent restart", testAgentRestart, restarts},
		{"upgrade", testUpgrade, full},
		{"kubelet restart", testKubeletRestart, full},
		{"VPP kill", testVPPKill, hasVPP},
		{"VPP frozen", testVPPFrozen, fullVPP},
		{"VPP out of memory", testVPPOutOfMemory, fullVPP},
		{"VPP container", testVPPContainer, fullVPP},
		{"drain", testDrain, full},
		{"scale", testScale, compared},
		{"times", testTimes, full},
		{"VPP kept", testVPPKept, vppPods},
		{"reboot", testReboot, full},
		// This case is late: after it, scheduler and controllers take up to half a minute to restart their watches.
		{"API server away", testAPIServerAway, full},
		{"logs", testLogs, ours},
		{"RBAC", testRBAC, full},
		{"rights used", testRightsUsed, byChart},
	}
}

// TestKube runs all cases on the reference first, because the results of the others are compared with it.
func TestKube(t *testing.T) {
	reference := &results{}
	for _, s := range []setup{
		{name: "reference"}, {name: "linux", dataplane: "linux"}, {name: "vpp", dataplane: "vpp"},
		{name: "installed", dataplane: "linux", installed: true},
		{name: "installed-vpp", dataplane: "vpp", installed: true},
		{name: "installed-auto", dataplane: "auto", installed: true},
		{name: "installed-relay", dataplane: "linux", installed: true, relay: true},
	} {
		t.Run(s.name, func(t *testing.T) {
			if !wanted(s.name) {
				t.Skipf("CONTIV_KUBE=%s", os.Getenv("CONTIV_KUBE"))
			}
			if _, ok := vpptest.Find(); !ok && hasVPP(s) {
				t.Skip(vpptest.ErrNoVPP)
			}
			w := newWorld(t, s)
			w.reference, w.results = reference, &results{}
			if s.reference() {
				w.results = reference
			}
			for _, c := range withSuites(cases()) {
				if c.on != nil && !c.on(s) {
					continue
				}
				t.Run(c.name, func(t *testing.T) { c.run(w.in(t)) })
			}
		})
	}
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.t = t
	return &sub
}

// results are the measurements on one cluster.
type results struct {
	measured bool
	failed   int // failed connections during rolling updates
}
