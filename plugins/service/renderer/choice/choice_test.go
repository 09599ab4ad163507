package choice

import (
	"testing"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// TestReplaced checks that the renderers follow the VPP that is running at the last resync.
func TestReplaced(t *testing.T) {
	plugin := false
	with, without := rendertest.New(t), rendertest.New(t)
	r := New(Deps{
		HasPlugin: func() bool { return plugin }, With: []renderer.ServiceRendererAPI{with},
		Without: []renderer.ServiceRendererAPI{without},
	})
	add := func(name string) {
		s := renderer.NewContivService()
		s.ID = svcmodel.ID{Name: name}
		if err := r.AddService(s); err != nil {
			t.Fatal(err)
		}
	}
	resync := func() {
		if err := r.Resync(renderer.NewResyncEventData()); err != nil {
			t.Fatal(err)
		}
	}
	add("too early")
	resync()
	add("a")
	plugin = true
	add("b")
	resync()
	add("c")
	resync()
	if n := len(without.Services); n != 2 {
		t.Errorf("%d services without the plugin, want 2", n)
	}
	if n := len(with.Services); n != 0 { // the last resync had no services
		t.Errorf("%d services with the plugin, want 0", n)
	}
}
