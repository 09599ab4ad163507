package vppclock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// clock answers like VPP's CLI, in two pieces; for the text "" it does not respond.
func clock(t *testing.T, text func() string) (socket string) {
	return lateClock(t, time.Millisecond, text)
}

// lateClock is like clock, but each answer is delayed by late.
func lateClock(t *testing.T, late time.Duration, text func() string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "cli.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	//lint:allow go: ends with the listener
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := c.Read(make([]byte, 64)); err != nil {
				return
			}
			if all := text(); all != "" {
				_, _ = c.Write([]byte(all[:len(all)/2]))
				time.Sleep(late)
				_, _ = c.Write([]byte(all[len(all)/2:]))
				_ = c.Close()
			}
		}
	}()
	return socket
}

func running(rate float64) func() string {
	began := time.Now()
	return func() string {
		now := strings.TrimPrefix(fmt.Sprintf("%f", time.Since(began).Seconds()*rate), "0") // in VPP's format
		return "\xff\xfdshow clock\r\nTime now " + now + ", Sun, 22 Nov 2026 00:23:15 GMT\r\nTime last barrier release 0.000000000\r\n"
	}
}

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		right bool
	}{{1, true}, {1.01, true}, {0.15, false}, {0.9, false}, {1.3, false}, {25, false}} {
		rate, err := Measure(t.Context(), clock(t, running(c.rate)), 20*time.Millisecond)
		if err != nil || rate.Right() != c.right || rate.Wrong() == c.right || rate.Low > c.rate || rate.High < c.rate {
			t.Errorf("a clock that counts %v: %+v, %v", c.rate, rate, err)
		}
	}
}

// TestUnanswered checks that a query that VPP leaves unanswered is repeated.
func TestUnanswered(t *testing.T) {
	var queried atomic.Int32
	report := running(1)
	rate, err := Measure(t.Context(), clock(t, func() string {
		if queried.Add(1)%2 == 1 {
			return ""
		}
		return report()
	}), 20*time.Millisecond)
	if err != nil || !rate.Right() {
		t.Errorf("%+v, %v", rate, err)
	}
}

// TestSlowAnswer checks the timeouts: a VPP with workers answers the later the slower its clock is.
func TestSlowAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	rate, err := Measure(ctx, lateClock(t, firstTimeout*3/2, running(0.01)), 20*time.Millisecond)
	if err != nil || !rate.Wrong() {
		t.Errorf("%+v, %v", rate, err)
	}
}

func TestNoClock(t *testing.T) {
	if _, err := Measure(t.Context(), filepath.Join(t.TempDir(), "none"), time.Millisecond); err == nil {
		t.Error("no VPP, no error")
	}
	_, err := Measure(t.Context(), clock(t, func() string { return "unknown input `clock'" }), time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "unknown input") {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Measure(ctx, clock(t, func() string { return "" }), time.Millisecond); err == nil {
		t.Error("a VPP that does not respond: no error")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	// Between right and wrong, the measurement continues until ctx ends.
	if _, err := Measure(ctx, clock(t, running(1-tolerance)), time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a clock at the limit: %v", err)
	}
}
