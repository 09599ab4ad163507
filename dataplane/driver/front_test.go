package driver

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/health"
)

// TestFrontWithoutADriver tests that a driver that could not be created returns the reason to all callers, and blocks none of them.
func TestFrontWithoutADriver(t *testing.T) {
	aggregator := health.NewHealthAggregator()
	f := NewFront("toy dataplane", "toy", slog.New(slog.DiscardHandler), aggregator)
	broken := errors.New("broken")
	f.Fail(broken)
	_, received := f.RecvMessage()
	for what, err := range map[string]error{
		"Failed": f.Failed(), "SendMessage": f.SendMessage(1), "RecvMessage": received, "Flush": f.Flush(t.Context()),
	} {
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.RegisterManager(nil)
	f.Expedite()()
	if err := errors.Join(f.Refresh(), f.Halt(t.Context())); err != nil || f.Starting() || f.Started() {
		t.Errorf("%v, started %v", err, f.Started())
	}
	if s := aggregator.Summary(); s.Live || s.Ready || !strings.Contains(s.Detail, "broken") {
		t.Errorf("health %+v", s)
	}
}

// TestFrontOfADriver tests that calls reach the loop after it has started.
func TestFrontOfADriver(t *testing.T) {
	f := NewFront("toy dataplane", "toy", slog.New(slog.DiscardHandler), nil)
	f.Loop = New(Config{Name: "toy"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Flush(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "toy dataplane") {
		t.Errorf("a flush before the start, given up: %v", err)
	}
	if !f.Starting() || f.Starting() || !f.Started() {
		t.Error("a driver starts once")
	}
	f.Loop.Start()
	if err := f.Refresh(); err != nil {
		t.Error(err)
	}
	f.Expedite()()
	if err := f.Halt(t.Context()); err != nil {
		t.Error(err)
	}
	if err := f.SendMessage(1); !errors.Is(err, ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}
