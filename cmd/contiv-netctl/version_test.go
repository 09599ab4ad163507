package main

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/internal/diag"
)

// TestSkew: components with different versions are listed with the nodes; nodes without VPP do not count for VPP.
func TestSkew(t *testing.T) {
	vpp := func(version, plugin string) *diag.VPPInfo { return &diag.VPPInfo{Version: version, Plugin: plugin} }
	same := versionReport{Nodes: []versionRow{
		{Node: "a", Agent: "0.1.0", Commit: "c", VPP: vpp("25.10", "1.0.0")}, {Node: "b", Agent: "0.1.0", Commit: "c"},
		{Node: "c", Agent: "0.1.0", Commit: "c", VPP: vpp("25.10", "1.0.0")},
	}}
	if got := skew(same); len(got) != 0 {
		t.Errorf("no versions differ, and skew says %v", got)
	}
	same.Nodes[1].Agent = "0.2.0"
	same.Nodes[2].VPP = vpp("25.10", "")
	want := []string{"contiv-agent: 0.1.0 (c) on a,c; 0.2.0 (c) on b", "VPP's contiv plugin: 1.0.0 on a; none on c"}
	if got := skew(same); !slices.Equal(got, want) {
		t.Errorf("skew says\n%q, want\n%q", got, want)
	}
}
