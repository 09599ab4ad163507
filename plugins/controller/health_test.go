package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/plugins/controller/api"
)

// TestStuckLoopIsNotHealthy checks that an event that does not end makes the node not ready and the agent unhealthy, so that the agent is
// restarted. If the event ends later, both recover.
func TestStuckLoopIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		h := &hook{name: "h", update: func(api.Event, api.UpdateOperations) error { <-end; return nil }}
		r := newRig(t, func(c *Config, _ *Deps) { c.EventDeadline = Duration(time.Minute) })
		r.run(t, h)
		ev := newPing("endless", false)
		push(t, r.c, ev)

		time.Sleep(59 * time.Second)
		healthy, why := r.c.Healthy()
		ready, _ := r.c.Ready()
		if !healthy || !ready {
			t.Errorf("within the deadline: healthy %t, ready %t: %s", healthy, ready, why)
		}
		time.Sleep(2 * time.Second)
		healthy, why = r.c.Healthy()
		ready, _ = r.c.Ready()
		if healthy || ready || !strings.Contains(why, "ping") {
			t.Errorf("after the deadline: healthy %t, ready %t: %q", healthy, ready, why)
		}
		close(end)
		if err := <-ev.done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if healthy, why = r.c.Healthy(); !healthy {
			t.Errorf("after it ended: %s", why)
		}
		r.close(t)
	})
}
