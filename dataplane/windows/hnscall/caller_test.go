package hnscall

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/internal/lifecycle"
)

// popped is a clock whose timers fire when the test triggers them, or at once.
type popped struct{ pop chan time.Time }

func (p popped) Now() time.Time                      { return time.Time{} }
func (p popped) NewTimer(time.Duration) driver.Timer { return timer(p) }

type timer popped

func (t timer) C() <-chan time.Time    { return t.pop }
func (timer) Stop() bool               { return true }
func (timer) Reset(time.Duration) bool { return true }

type rig struct {
	*Caller
	pop   chan time.Time
	ended chan struct{}
}

func newRig(t *testing.T, limit int) rig {
	jobs := lifecycle.NewGroup(context.Background(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := jobs.Stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
	r := rig{pop: make(chan time.Time, 10), ended: make(chan struct{}, 10)}
	r.Caller = New(Config{Jobs: jobs, Clock: popped{r.pop}, Timeout: time.Minute, MaxGivenUp: limit,
		Ended: func(context.Context) { r.ended <- struct{}{} }})
	return r
}

func value(v int, err error) func() (int, error) { return func() (int, error) { return v, err } }

func TestAnswers(t *testing.T) {
	r := newRig(t, 1)
	if v, err := Do(r.Caller, "a", value(7, nil)); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	no := errors.New("no")
	if _, err := Do(r.Caller, "a", value(0, no)); !errors.Is(err, no) || errors.Is(err, ErrNoAnswer) {
		t.Errorf("%v", err)
	}
	if _, err := Do(r.Caller, "a", func() (int, error) { panic("boo") }); err == nil || !strings.Contains(err.Error(), "boo") {
		t.Errorf("a panic: %v", err)
	}
	if v, err := Do(r.Caller, "a", value(8, nil)); v != 8 || err != nil {
		t.Errorf("after a panic: %d, %v", v, err)
	}
}

// TestHangs: a call that hangs times out, and there is no other call for its key before it has ended; calls for other keys continue up to the
// limit.
func TestHangs(t *testing.T) {
	r := newRig(t, 2)
	release := make(chan struct{})
	hang := func() (int, error) { <-release; return 1, nil }
	for _, key := range []string{"a", "b"} {
		r.pop <- time.Time{}
		if _, err := Do(r.Caller, key, hang); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := Do(r.Caller, "c", value(1, nil)); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("a third call in the pass: %v", err)
	}
	r.Pass()
	if _, err := Do(r.Caller, "c", value(1, nil)); err != nil {
		t.Errorf("the next pass: %v", err)
	}
	if _, err := Do(r.Caller, "a", value(1, nil)); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("a second call beside the one that hangs: %v", err)
	}
	if n := r.Hanging(); n != 2 {
		t.Errorf("%d hang", n)
	}
	close(release)
	<-r.ended
	<-r.ended
	if v, err := Do(r.Caller, "a", value(5, nil)); v != 5 || err != nil || r.Hanging() != 0 {
		t.Errorf("after it has ended: %d, %v, %d hang", v, err, r.Hanging())
	}
}
