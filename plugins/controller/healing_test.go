package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/plugins/controller/api"
)

// TestFailedDeleteIsHealed: a handler that fails or panics while it handles the removal of a pod leaves values that no retry of the dataplane
// removes. A full resync has to remove them.
func TestFailedDeleteIsHealed(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("injected") },
		"abort": func() error { return api.NewAbortEventError(errors.New("injected")) },
		"panic": func() error { panic("injected") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, func(c *Config) { c.EnableVerification = false }, "alpha", "beta")
			s.push(dbResync(nil))
			s.push(addPod(s, "p", "x"))
			s.fault = func(h *fakePlugin, op string, ev api.Event) error {
				if _, del := ev.(*podEvent); del && h.name == "beta" && op == "update" {
					return fail()
				}
				return nil
			}
			s.push(deletePod(s, "p"))
			s.fault = nil
			if !strings.Contains(s.applier.dump(), "beta/pod/p") {
				t.Fatal("the failure has no consequence, so the test shows nothing")
			}
			s.advance(5 * time.Second)
			last := s.lastRecord()
			if last.Method != "Full Resync" || !strings.Contains(last.Description, "injected") || last.Error != "" {
				t.Errorf("the last event is\n%s", last)
			}
			if strings.Contains(s.applier.dump(), "/pod/p") {
				t.Errorf("the dataplane still has values of the pod:\n%s", s.applier.dump())
			}
		})
	}
}

// TestPanicIsHealed: a handler that panics while it handles an ADD is reverted like one that fails, and then healed: its Revert may not undo
// everything.
func TestPanicIsHealed(t *testing.T) {
	for panics, want := range map[bool]string{true: "Full Resync", false: "Update"} {
		s := newSim(t, func(c *Config) { c.EnableVerification = false }, "alpha", "beta")
		s.push(dbResync(nil))
		s.fault = func(h *fakePlugin, op string, ev api.Event) error {
			if _, add := ev.(*podEvent); !add || h.name != "beta" || op != "update" {
				return nil
			}
			if panics {
				panic("injected")
			}
			return errors.New("injected")
		}
		s.push(addPod(s, "p", "x"))
		s.fault = nil
		if added := s.lastRecord(); added.Name != "Add Pod" || !added.Handlers[len(added.Handlers)-1].Revert {
			t.Errorf("not reverted: %s", added)
		}
		s.advance(5 * time.Second)
		if last := s.lastRecord(); last.Method != want || (panics && !strings.Contains(last.Description, "injected")) {
			t.Errorf("panics: %t; the last event is\n%s", panics, last)
		}
	}
}
