package scheduler

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// While values are retried in the background, other work on the dataplane must wait, and the time without work begins at the end of the retry.
func TestBusyDuringRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMock(t), nil)
		type load struct {
			busy bool
			idle time.Duration
		}
		var loads []load
		retried := make(chan struct{})
		r.m.fault = func(string, string) *fault {
			loads = append(loads, load{r.Busy(), r.Idle()})
			if len(loads) == 1 {
				return &fault{err: Retry(errors.New("not now"))}
			}
			close(retried)
			return nil
		}
		if _, err := r.commit(update(kv("a/1", &obj{}))); err == nil {
			t.Fatal("no error")
		}
		synctest.Wait()
		if r.Busy() {
			t.Error("busy although the retry is not due")
		}
		<-retried
		synctest.Wait()
		for i, l := range loads {
			if l != (load{busy: true}) {
				t.Errorf("attempt %d: %+v", i, l)
			}
		}
		if r.Busy() || r.Idle() != 0 {
			t.Errorf("at the end of the retry: busy %t, idle for %s", r.Busy(), r.Idle())
		}
	})
}
