package pathwatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Reporter reports the state of this node to Kubernetes.
type Reporter interface {
	// Condition sets the condition ContivDataPath of the node.
	Condition(ctx context.Context, ok bool, reason, message string) error
	// Event writes an Event about the node.
	Event(ctx context.Context, warning bool, reason, message string) error
}

// The reasons of a healthy state.
const (
	reasonWorks    = "DataPathWorks"
	reasonRepaired = "DataPathRepaired"
)

const (
	reportFirst   = 5 * time.Second // the delay of the first report after a start, and between two attempts
	reportMax     = time.Minute
	reportTimeout = 5 * time.Second
	keptEvents    = 8
)

// reportQueue holds the reports for Kubernetes. A report that fails is retried; only the last few Events are kept.
type reportQueue struct {
	node string
	wake chan struct{}

	mu       sync.Mutex
	first    time.Time // guarded by mu, as the following fields; the time of the first round
	kinds    map[Kind]bool
	want     condition
	reported condition
	events   []event
}

type condition struct {
	known           bool
	ok              bool
	reason, message string
	about           string // the object of the report: while it is the same, the condition is not reported again
}

type event struct {
	warning         bool
	reason, message string
}

func newReportQueue(node string) *reportQueue {
	return &reportQueue{node: node, wake: make(chan struct{}, 1), kinds: map[Kind]bool{}}
}

// see processes the current state.
func (t *reportQueue) see(at time.Time, s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first.IsZero() {
		t.first = at
	}
	want := condition{known: true, ok: s.Ready() == nil, reason: reasonWorks, message: "packets get through"}
	var texts []string
	now := map[Kind]bool{}
	for _, c := range s.Causes {
		if c.Quiet {
			continue
		}
		now[c.Kind] = true
		if len(texts) == 0 {
			want.reason = string(c.Kind)
		}
		texts = append(texts, c.String())
		want.about += string(c.Kind) + " " + c.Object + "; "
		if !t.kinds[c.Kind] {
			t.add(event{warning: true, reason: string(c.Kind), message: c.Text})
		}
	}
	if len(now) == 0 && len(t.kinds) > 0 {
		t.add(event{reason: reasonWorks, message: "packets get through again"})
	}
	t.kinds = now
	if len(texts) > 0 {
		want.message = strings.Join(texts, "; ")
	}
	if at.Sub(t.first) < reportFirst && want.ok { // a report of recovery may wait
		return
	}
	if want.about != t.want.about || want.ok != t.want.ok || !t.want.known {
		t.want = want
		t.signal()
	}
}

// repaired reports a repair attempt.
func (t *reportQueue) repaired(a action, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := "compared with what is desired"
	if a.Recreate != "" {
		done = "the link " + a.Why.Object + " was made again"
	}
	ev := event{reason: reasonRepaired, message: fmt.Sprintf("%s: %s", done, a.Why)}
	if err != nil {
		ev = event{warning: true, reason: "DataPathRepairFailed", message: fmt.Sprintf("%v; it was for %s", err, a.Why)}
	}
	t.add(ev)
}

func (t *reportQueue) add(ev event) {
	t.events = append(t.events, ev)
	if len(t.events) > keptEvents {
		t.events = t.events[1:]
	}
	t.signal()
}

func (t *reportQueue) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// due returns the reports to send and removes the Events.
func (t *reportQueue) due() (want condition, change bool, events []event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events, t.events = t.events, nil
	return t.want, t.want != t.reported, events
}

// Report sends reports to Kubernetes until ctx ends, in its own goroutine: an API server that does not respond must not delay the watch.
func (p *Plugin) Report(ctx context.Context) error {
	if p.Reporter == nil {
		return nil
	}
	pause := reportFirst
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.reports.wake:
		}
		if err := p.report(ctx); err != nil {
			p.log.Debug("the state of the data path is not in Kubernetes yet", "error", err)
			pause = min(2*pause, reportMax)
			p.reports.signal()
		} else {
			pause = reportFirst
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// report sends the reports that are due.
func (p *Plugin) report(ctx context.Context) error {
	t := p.reports
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	want, change, events := t.due()
	var errs []error
	for i, ev := range events {
		if err := p.Reporter.Event(ctx, ev.warning, ev.reason, ev.message); err != nil {
			errs = append(errs, err)
			t.mu.Lock()
			t.events = append(events[i:len(events):len(events)], t.events...)
			t.events = t.events[max(0, len(t.events)-keptEvents):]
			t.mu.Unlock()
			break
		}
	}
	if change {
		err := p.Reporter.Condition(ctx, want.ok, want.reason, want.message)
		if err != nil { // the API server may have written it although its answer was lost
			want = condition{}
		}
		t.mu.Lock()
		t.reported = want
		t.mu.Unlock()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
