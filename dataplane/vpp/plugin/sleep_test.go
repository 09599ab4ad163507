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
	"contiv.dev/vswitch/test/testbed"
)

// idleLoops is between the loops a second of a thread that sleeps until its timers, some hundreds, and of one that asks for files again and
// again in the last millisecond before each of them, some hundred thousands.
const idleLoops = 20_000

// TestIdleThreadsSleep: threads that have nothing to do wait for the kernel until their next timer. VPP's own loop, as it is without epollshim, does not.
func TestIdleThreadsSleep(t *testing.T) {
	eachWorkers(t, func(r *rig) {
		a, b := r.pod("a", ""), r.pod("b", "")
		for _, p := range []*port{a, b} {
			r.cli("set interface rx-mode %s interrupt", p.device) // as the agent does; VPP polls
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

// leastLoops are the least loops a second that each thread was seen to have, until all are at most enough. Each look at them wakes the threads.
func (r *rig) leastLoops(limit time.Duration, enough float64) (least []float64) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	_ = testbed.Eventually(ctx, 2*time.Second, func() error { // the caller judges
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

// loops are the loops a second of all threads.
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
