package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/poll"
)

// idleLoops is a limit between the loops per second of a thread that sleeps until its timers, some hundreds, and those of a thread that
// polls for files continuously in the last millisecond before each timer, some hundred thousands.
const idleLoops = 20_000

// TestIdleThreadsSleep: idle threads wait in the kernel until their next timer. VPP's own loop, without epollshim, does not.
func TestIdleThreadsSleep(t *testing.T) {
	eachWorkers(t, func(r *rig) {
		a, b := r.pod("a", ""), r.pod("b", "")
		for _, p := range []*port{a, b} {
			r.cli("set interface rx-mode %s interrupt", p.device) // same as the agent; VPP's default is polling
		}
		r.reach(a, b.v4)
		least := r.leastLoops(30*time.Second, idleLoops)
		if slices.Max(least) > idleLoops {
			r.Errorf("threads without work loop %.0f times a second", least)
		}
	})
	t.Run("stock", func(t *testing.T) {
		r := newRig(t, vpptest.Options{Vhostshim: true, Stock: true})
		if least := r.leastLoops(6*time.Second, 0); slices.Max(least) < idleLoops {
			t.Logf("this VPP sleeps without epollshim, too: %.0f loops a second", least)
		}
	})
}

// leastLoops returns the minimum of the measured loops per second of each thread. It stops when all are at most enough. Each measurement
// wakes the threads.
func (r *rig) leastLoops(limit time.Duration, enough float64) (least []float64) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	_ = poll.Until(ctx, 2*time.Second, func() error { // the caller checks the result
		now := r.loops()
		if least == nil {
			least = now
		}
		for i := range now {
			least[i] = min(least[i], now[i])
		}
		if slices.Max(least) > enough {
			return errors.New("busy")
		}
		return nil
	})
	return least
}

// loops returns the loops per second of all threads.
func (r *rig) loops() (all []float64) {
	r.Helper()
	for line := range strings.Lines(r.cli("show runtime")) {
		_, after, ok := strings.Cut(line, "loops/sec ")
		if !ok {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(after, &n); err != nil {
			r.Fatalf("show runtime: %q: %v", line, err)
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		r.Fatal("show runtime says no loops/sec")
	}
	return all
}
