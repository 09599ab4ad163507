package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/plugins/ipnet"
)

// TestSourcesCondition: the condition is set when the result is known, and again when it changes or could not be set, but not otherwise.
func TestSourcesCondition(t *testing.T) {
	var checked, fails error
	var set []kube.NodeCondition
	known := false
	reporter := sourcesCondition(func() error { return checked })
	reporter.good.Status, reporter.log = true, slog.New(slog.DiscardHandler)
	reporter.known = func() bool { return known }
	reporter.set = func(_ context.Context, c kube.NodeCondition) error {
		if fails == nil {
			set = append(set, c)
		}
		return fails
	}
	step := func(want int) {
		t.Helper()
		if err := reporter.step(t.Context()); !errors.Is(err, fails) {
			t.Errorf("step: %v", err)
		}
		if len(set) != want {
			t.Fatalf("set %d times, want %d: %+v", len(set), want, set)
		}
	}
	step(0)
	known = true
	step(1)
	step(1)
	if c := set[0]; c.Type != conditionSources || !c.Status {
		t.Errorf("sources are checked: %+v", c)
	}
	checked, fails = ipnet.ErrNoSourceCheck, errors.New("the API server is away")
	step(1)
	fails = nil
	step(2)
	if c := set[1]; c.Status || c.Message != ipnet.ErrNoSourceCheck.Error() {
		t.Errorf("a VPP without the plugin: %+v", c)
	}
	checked = nil
	step(3)
	checked, fails = ipnet.ErrNoSourceCheck, errors.New("the answer is lost")
	step(3)
	checked, fails = nil, nil // as before; the API server may have the other one
	step(4)
}
