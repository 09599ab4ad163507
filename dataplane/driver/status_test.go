package driver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
)

// received reads the driver's status messages into a list until the driver is stopped.
func received(r *rig) *[]any {
	var all []any
	go func() {
		for {
			msg, err := r.d.RecvMessage()
			if err != nil {
				return
			}
			all = append(all, msg)
		}
	}()
	return &all
}

func TestProcessStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(_ *rig, cfg *Config) { cfg.StatusReportingInterval = 30 * time.Second })
		all := received(r)
		r.d.Start() // without InSync: the process is alive nevertheless
		r.pass(10*time.Second - 1)
		if len(*all) != 0 {
			t.Errorf("status before 10 s: %v", *all)
		}
		r.pass(65 * time.Second)
		r.stop()
		synctest.Wait()
		var uptimes []float64
		for _, msg := range *all {
			s := msg.(*proto.ProcessStatusUpdate)
			uptimes = append(uptimes, s.Uptime)
			at, err := time.Parse(time.RFC3339, s.IsoTimestamp)
			want := r.start.Add(time.Duration(s.Uptime * float64(time.Second)))
			if err != nil || !at.Equal(want) || !strings.HasSuffix(s.IsoTimestamp, "Z") {
				t.Errorf("timestamp %s (%v), want %s", s.IsoTimestamp, err, want)
			}
		}
		if !slices.Equal(uptimes, []float64{10, 40, 70}) {
			t.Errorf("uptimes %v, want 10, 40, 70", uptimes)
		}
	})
}

func TestProcessStatusOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		all := received(r)
		r.begin()
		r.pass(time.Hour)
		r.stop()
		synctest.Wait()
		if len(*all) != 0 {
			t.Errorf("status %v though it is off", *all)
		}
	})
}

// TestStalledStatusReader tests that applies continue without a reader, and that a later reader receives only the latest status of each
// endpoint.
func TestStalledStatusReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(_ *rig, cfg *Config) { cfg.StatusReportingInterval = time.Second })
		r.begin()
		round := 0
		r.apply = func(context.Context) ApplyResult {
			round++
			for ep := range 300 {
				r.d.QueueStatus(ep, fmt.Sprintf("ep%d %d", ep, round))
			}
			r.d.QueueStatus(7, nil)
			return ApplyResult{}
		}
		for i := range 50 {
			r.send(host(i))
			r.pass(time.Second)
		}
		r.stop()
		if len(r.applies) != 50 {
			t.Fatalf("%d applies while the reader stalled, want 50", len(r.applies))
		}
		all := received(r) // pending messages can still be read after Stop
		synctest.Wait()
		endpoints, heartbeats := 0, 0
		for _, msg := range *all {
			switch m := msg.(type) {
			case *proto.ProcessStatusUpdate:
				heartbeats++
				if m.Uptime < 49 {
					t.Errorf("heartbeat of %v s, want the latest", m.Uptime)
				}
			case string:
				var ep, n int
				if _, err := fmt.Sscanf(m, "ep%d %d", &ep, &n); err != nil || n != 50 || ep == 7 {
					t.Errorf("status %q", m)
				}
				endpoints++
			}
		}
		if endpoints != 299 || heartbeats != 1 {
			t.Errorf("%d endpoints and %d heartbeats, want 299 and 1", endpoints, heartbeats)
		}
	})
}

// TestStatusQueueOrder tests that keys are read in the order in which they first got a message; a withdrawn key starts again.
func TestStatusQueueOrder(t *testing.T) {
	q := newStatusQueue()
	q.put("a", 1)
	q.put("b", 2)
	q.put("c", 3)
	q.put("a", 4)
	q.put("b", nil)
	q.put("b", 5)
	q.put("d", nil)
	var got []any
	for msg, ok := q.take(); ok; msg, ok = q.take() {
		got = append(got, msg)
	}
	if !slices.Equal(got, []any{4, 3, 5}) {
		t.Errorf("got %v", got)
	}
	for range 1000 { // withdrawn messages leave no entries behind
		q.put("x", 1)
		q.put("x", nil)
	}
	if q.order.Len() != 0 || len(q.byKey) != 0 {
		t.Errorf("%d messages, %d keys are left", q.order.Len(), len(q.byKey))
	}
}

// TestSeveralStatusReaders tests that each message goes to exactly one reader, and that no reader sleeps while a message is pending.
func TestSeveralStatusReaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		a, b, c := received(r), received(r), received(r)
		synctest.Wait()
		for i := range 1000 {
			r.d.QueueStatus(i, i)
		}
		synctest.Wait()
		r.stop()
		synctest.Wait()
		all := slices.Concat(*a, *b, *c)
		slices.SortFunc(all, func(x, y any) int { return x.(int) - y.(int) })
		if len(all) != 1000 || all[999].(int) != 999 || len(slices.Compact(all)) != 1000 {
			t.Errorf("%d messages were received, want each of 1000 once", len(all))
		}
	})
}

// TestNoStatusReaderSleeps: two messages arrive while two readers are about to wait. The first reader that wakes takes only one message, so it
// must leave a wake-up for the second.
func TestNoStatusReaderSleeps(t *testing.T) {
	q := newStatusQueue()
	q.put("a", 1)
	q.put("b", 2)
	for reader := range 2 {
		select {
		case <-q.wake:
		default:
			t.Fatalf("reader %d would sleep", reader)
		}
		if _, ok := q.take(); !ok {
			t.Fatalf("reader %d was woken for nothing", reader)
		}
	}
}

func TestUnhashableStatusKeyIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		r.apply = func(context.Context) ApplyResult { r.d.QueueStatus([]int{1}, "x"); return ApplyResult{} }
		r.send(host(1))
		if err := <-r.flush(); err == nil {
			t.Error("an unhashable key was accepted")
		}
		r.apply = nil
		r.pass(time.Duration(math.MaxInt32))
		r.d.QueueStatus(1, "fine") // the queue's lock is free
	})
}
