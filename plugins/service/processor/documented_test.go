package processor

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// TestDocumentedBackends checks that a renderer that uses only the documented field Backends distributes cluster-wide traffic to the ready
// pod of another node, and not to a local one that terminates. The latter is in LocalPolicyBackends.
func TestDocumentedBackends(t *testing.T) {
	p, r, _ := newTest(t, Config{})
	must := must(t)
	s := clusterIP("s")
	s.InternalLocal, s.Ports[0].NodePort = true, 30000
	must(p.UpdateService(s))
	before := slice("a", "s", false, tcp("http", 8080),
		ep{addr: "10.1.0.1", cond: ready, node: "n2"}, ep{addr: "10.1.0.2", cond: terminating, node: thisNode})
	must(p.UpdateSlice(nil, before))
	got := r.Services[id("s")]
	if list := texts(got.Backends["http"]); !slices.Equal(list, []string{"10.1.0.1:8080"}) {
		t.Errorf("Backends %v", list)
	}
	if list := texts(got.LocalPolicyBackends["http"]); !slices.Equal(list, []string{"10.1.0.2:8080 local"}) {
		t.Errorf("LocalPolicyBackends %v", list)
	}
	if list, verdict := got.Select("http", renderer.NodeLocal, false); verdict != renderer.Balance || len(list) != 1 || !list[0].Local {
		t.Errorf("traffic that stays on the node: %v %s", texts(list), verdict)
	}
	// If only the local policy applies, Backends has the local ones: there is no better list.
	s = clusterIP("s")
	s.InternalLocal = true
	must(p.UpdateService(s))
	got = r.Services[id("s")]
	if list := texts(got.Backends["http"]); !slices.Equal(list, []string{"10.1.0.2:8080 local"}) || len(got.LocalPolicyBackends) > 0 {
		t.Errorf("Backends %v, LocalPolicyBackends %v", list, got.LocalPolicyBackends)
	}
}
