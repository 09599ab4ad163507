package policy

import (
	"slices"
	"testing"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/servicelabel"
)

// TestStatuses checks that one of all nodes writes conditions, and another one after it was deleted.
func TestStatuses(t *testing.T) {
	writers := func(own string, nodes ...string) (writes bool) {
		b := newBench(t, func(d *Deps) {
			d.ServiceLabel, d.Statuses = servicelabel.Label(own), func(w bool) { writes = w }
		})
		for _, n := range nodes {
			b.set(kube.NodeKeyword, "", n, &kube.Node{Name: n})
		}
		return writes
	}
	all := []string{"n1", "n2", "n3", "n4"}
	first := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !writers(n, all...) })
	if len(first) != 1 {
		t.Fatalf("%v write", first)
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == first[0] })
	if second := slices.DeleteFunc(slices.Clone(rest), func(n string) bool { return !writers(n, rest...) }); len(second) != 1 {
		t.Errorf("%v write without %s", second, first[0])
	}
	reported := 0
	b := newBench(t, func(d *Deps) { d.Statuses = func(bool) { reported++ } })
	before := reported
	b.set(kube.ClusterPolicyKeyword, "", "guard", &kube.ClusterPolicy{Name: "guard"})
	if reported <= before {
		t.Errorf("a policy is there and its condition is not looked at: %d, %d", before, reported)
	}
}
