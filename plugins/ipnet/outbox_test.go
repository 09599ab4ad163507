package ipnet

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/plugins/controller/api"
)

// fullLoop is an event loop whose queue is full until room is set.
type fullLoop struct {
	mu       sync.Mutex
	room     bool
	err      error // the result when there is room
	attempts int
	pushed   []string
}

func (l *fullLoop) push(ev api.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	if !l.room {
		return fmt.Errorf("test: %w", api.ErrQueueFull)
	}
	if l.err != nil {
		return l.err
	}
	l.pushed = append(l.pushed, ev.GetName())
	return nil
}

func (l *fullLoop) set(room bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room, l.err = room, err
}

func (l *fullLoop) got() (attempts int, pushed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempts, slices.Clone(l.pushed)
}

// fullOutbox returns an outbox whose event loop has a full queue.
func fullOutbox(t *testing.T) (*outbox, *fullLoop) {
	t.Helper()
	l := &fullLoop{}
	o := newOutbox(l.push, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	})
	return o, l
}

// TestOutboxRetries: events that find the queue full reach the event loop when it has room, one of each kind.
func TestOutboxRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := fullOutbox(t)
		for range 3 {
			o.send(hostIPsChange{}, nil)
			o.send(nicsChange{}, nil)
		}
		time.Sleep(time.Minute)
		if attempts, pushed := l.got(); len(pushed) > 0 || attempts < 20 || attempts > 60 {
			t.Errorf("%d attempts within a minute, pushed %v", attempts, pushed)
		}
		l.set(true, nil)
		time.Sleep(maxOutboxRetry)
		if _, pushed := l.got(); strings.Join(pushed, ", ") != "Host IPs Change, NICs Change" {
			t.Errorf("pushed %q", pushed)
		}
		before, _ := l.got()
		time.Sleep(time.Minute)
		if after, _ := l.got(); after != before {
			t.Errorf("%d attempts although no event waits", after-before)
		}
		// It works a second time.
		l.set(false, nil)
		o.send(pluginChange{}, nil)
		l.set(true, nil)
		time.Sleep(maxOutboxRetry)
		if _, pushed := l.got(); len(pushed) != 3 {
			t.Errorf("pushed %q", pushed)
		}
	})
}

// TestOutboxDropsWhatAResyncHasDone: an event that a resync has made superfluous while it waited is not pushed.
func TestOutboxDropsWhatAResyncHasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := fullOutbox(t)
		var waits atomic.Bool
		waits.Store(true)
		o.send(hostIPsChange{}, waits.Load)
		o.send(nicsChange{}, nil)
		waits.Store(false)
		l.set(true, nil)
		time.Sleep(maxOutboxRetry)
		if _, pushed := l.got(); strings.Join(pushed, ", ") != "NICs Change" {
			t.Errorf("pushed %q", pushed)
		}
	})
}

// TestOutboxOfAClosedLoop: the outbox gives up when the event loop has ended.
func TestOutboxOfAClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := fullOutbox(t)
		o.send(hostIPsChange{}, nil)
		l.set(true, api.ErrClosed)
		time.Sleep(time.Minute)
		if attempts, _ := l.got(); attempts > 3 {
			t.Errorf("%d attempts", attempts)
		}
	})
}

// TestChangeMeetsFullQueue: a change of the host's addresses that finds the queue full is applied later without any other change.
func TestChangeMeetsFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNode(t, dualTAP)
		host, l := &restlessHost{}, &fullLoop{}
		w.n.LinuxNsPlugin = host
		if err := w.n.Init(); err != nil {
			t.Fatal(err)
		}
		w.n.outbox.push = l.push
		host.changed()
		l.set(true, nil)
		time.Sleep(maxOutboxRetry)
		if _, pushed := l.got(); len(pushed) != 1 || pushed[0] != (hostIPsChange{}).GetName() {
			t.Errorf("pushed %q", pushed)
		}
	})
}
