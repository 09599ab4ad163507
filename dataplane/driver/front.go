package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/internal/health"
	"contiv.dev/vswitch/internal/lifecycle"
)

// Front is the part that the drivers of all systems have in common for their users: the access to the loop, and the errors when there is no
// driver.
type Front struct {
	// What describes the driver in errors: "Linux dataplane". Name is the name of its health reporter.
	What, Name string
	Log        *slog.Logger
	Health     *health.HealthAggregator
	Jobs       *lifecycle.Group // of the driver, in addition to its loop
	Loop       *Driver          // nil: there is no driver

	failure atomic.Pointer[error]
	started atomic.Bool
}

// stopTimeout is the time in which background jobs must end.
const stopTimeout = 5 * time.Second

// NewFront returns a Front that has no loop yet.
func NewFront(what, name string, log *slog.Logger, health *health.HealthAggregator) *Front {
	return &Front{What: what, Name: name, Log: log, Health: health, Jobs: lifecycle.NewGroup(context.Background(), log)}
}

// Fail marks the driver as failed: its health is neither live nor ready, and SendMessage returns the reason.
func (f *Front) Fail(err error) {
	f.failure.Store(&err)
	f.Log.Error("the "+f.What+" does not work", "error", err)
	reporter := f.Health.Register(f.Name, health.HealthReport{Live: true, Ready: true}, 0)
	reporter.Report(health.HealthReport{Detail: err.Error()})
}

// Failed returns the reason why the driver does not work, nil if it works.
func (f *Front) Failed() error {
	if err := f.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Starting reports whether this is the first start of a driver that works.
func (f *Front) Starting() bool {
	if err := f.Failed(); err != nil {
		f.Log.Error("the "+f.What+" is not started", "error", err)
		return false
	}
	return !f.started.Swap(true)
}

// Started reports whether the driver was started.
func (f *Front) Started() bool { return f.started.Load() }

// RegisterManager adds a manager after the driver's own.
func (f *Front) RegisterManager(m Manager) {
	if f.Loop != nil {
		f.Loop.RegisterManager(m)
	}
}

// SendMessage passes a message to the loop.
func (f *Front) SendMessage(msg any) error {
	if err := f.Failed(); err != nil {
		return err
	}
	return f.Loop.SendMessage(msg)
}

// SendMessages passes messages that are applied together to the loop.
func (f *Front) SendMessages(msgs ...any) error {
	if err := f.Failed(); err != nil {
		return err
	}
	return f.Loop.SendMessages(msgs...)
}

// RecvMessage waits for the next status message.
func (f *Front) RecvMessage() (any, error) {
	if err := f.Failed(); err != nil {
		return nil, err
	}
	return f.Loop.RecvMessage()
}

// Flush returns when all messages that were sent before are applied, or with the error of the apply that should have done it.
func (f *Front) Flush(ctx context.Context) error {
	done := make(chan error, 1)
	if err := f.SendMessage(Flush{Done: done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("flush of the %s: %w", f.What, ctx.Err())
	}
}

// Refresh fires all refreshes.
func (f *Front) Refresh() error {
	if f.Loop == nil {
		return nil
	}
	return f.Loop.Refresh()
}

// Expedite suspends the throttle until release is called.
func (f *Front) Expedite() (release func()) {
	if f.Loop == nil {
		return func() {}
	}
	return f.Loop.Expedite()
}

// Halt ends the loop and the jobs; a running apply is completed.
func (f *Front) Halt(ctx context.Context) error {
	if f.Loop == nil {
		return nil
	}
	return errors.Join(f.Loop.Stop(ctx), f.Jobs.Stop(stopTimeout))
}
