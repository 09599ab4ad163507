package driver

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
)

func TestHealth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.expectHealth(false, false) // not started
		r.d.Start()
		synctest.Wait()
		r.expectHealth(true, false)
		if d := r.health.Summary().Detail; !strings.Contains(d, "waiting for the datastore") {
			t.Errorf("detail %q", d)
		}
		for range 30 { // alive all the time, without any message
			pass(7 * time.Second)
			r.expectHealth(true, false)
		}
		r.send(&proto.InSync{})
		synctest.Wait()
		r.expectHealth(true, true)
		pass(time.Hour)
		r.expectHealth(true, true)
	})
}

// TestHangSimulation tests that 20 s after the hang liveness is false, and that Stop still works.
func TestHangSimulation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(_ *rig, cfg *Config) {
			cfg.HangAfter = 65 * time.Second
			cfg.StatusReportingInterval = 30 * time.Second
		})
		all := received(r)
		r.begin()
		pass(65 * time.Second)
		r.expectHealth(true, true)
		pass(15*time.Second - time.Millisecond) // the last report was at 60 s
		r.expectHealth(true, true)
		pass(2 * time.Millisecond)
		r.expectHealth(false, false)
		n := len(*all)
		r.send(host(1))
		pass(time.Hour)
		if len(*all) != n || len(r.applies) != 0 {
			t.Error("the hanging loop still works")
		}
		done := r.flush()
		r.stop()
		if got := pending(done); got != ErrStopped.Error() {
			t.Errorf("Flush: %s", got)
		}
	})
}

// TestLongApplyWithProgress tests that an apply that takes longer than the health timeout stays live if it reports progress.
func TestLongApplyWithProgress(t *testing.T) {
	for _, progress := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, nil)
			defer r.stop()
			r.begin()
			r.apply = func(context.Context) ApplyResult {
				for range 100 {
					time.Sleep(time.Second)
					if progress {
						r.d.Progress()
					}
				}
				return ApplyResult{}
			}
			r.send(host(1))
			pass(50 * time.Second)
			r.expectHealth(progress, progress)
			pass(51 * time.Second)
			r.expectHealth(true, true)
		})
	}
}
