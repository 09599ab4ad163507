package driver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/health"
)

// loop is the state of the driver's goroutine; only this goroutine uses it once it runs.
type loop struct {
	d       *Driver
	metrics *metrics
	begun   time.Time

	cases  []reflect.SelectCase
	timer  Timer
	armed  time.Time // the time that timer is set to; zero: not set
	alarms alarms

	retry, again, throttle, gatePoll, redelivery *alarm

	bucket    bucket
	dirty     bool // an apply is wanted
	failed    bool // the last apply failed
	inSync    bool
	gatesOpen bool
	applied   bool // there was a successful apply
	throttled bool // and that delay was logged
	panicked  bool // a panic occurred since the last successful apply
	hung      bool
	flushes   []chan<- error
	defects   []string // reasons why the driver is not ready until it is restarted
	lastErr   error    // of the last apply
	reported  time.Time
}

func (l *loop) init(d *Driver) {
	now := d.clock.Now()
	l.d, l.begun, l.bucket = d, now, newBucket(now)
	want := func(time.Time) { l.dirty = true }
	l.retry, l.again = l.alarms.add(want), l.alarms.add(want)
	idle := func(time.Time) {} // a wake-up is sufficient: each pass checks whether an apply is possible
	l.throttle, l.gatePoll = l.alarms.add(idle), l.alarms.add(idle)
	l.redelivery = l.alarms.add(l.redeliver)
	l.every(now, d.cfg.HealthInterval, func() time.Duration { return d.cfg.HealthInterval }, func(time.Time) { l.report() })
	if every := d.cfg.StatusReportingInterval; every > 0 {
		l.every(now, firstStatus, func() time.Duration { return every }, l.heartbeat)
	}
	for _, r := range d.cfg.Refresh {
		if r.Interval > 0 {
			jittered := func() time.Duration { return r.Interval + time.Duration(rand.Float64()*float64(r.Interval)/10) }
			l.every(now, jittered(), jittered, func(time.Time) { l.refresh(r) })
		}
	}
	if d.cfg.HangAfter > 0 {
		l.alarms.add(func(time.Time) { l.hung = true }).set(now.Add(d.cfg.HangAfter))
	}
	l.timer = d.clock.NewTimer(time.Hour)
	l.listen()
	l.report()
}

// every adds an alarm that fires first after the duration first and then after each period.
func (l *loop) every(now time.Time, first time.Duration, period func() time.Duration, fire func(time.Time)) {
	var a *alarm
	a = l.alarms.add(func(now time.Time) {
		a.set(now.Add(period()))
		fire(now)
	})
	a.set(now.Add(first))
}

// run is the main loop. It ends when quit is closed.
func (l *loop) run(ctx context.Context) {
	defer l.finish()
	for l.wait() {
		l.alarms.run(l.d.clock.Now())
		if l.hung {
			l.hang()
			return
		}
		if l.mayApply() {
			l.apply(ctx)
		}
	}
}

func (l *loop) hang() {
	l.d.log.Warn("simulating a hang, because HangAfter is set: liveness becomes false, and Kubernetes restarts the agent",
		"hangAfter", l.d.cfg.HangAfter)
	<-l.d.quit
}

// finish ends the loop and answers or reports everything that was sent.
func (l *loop) finish() {
	l.timer.Stop()
	l.rejectFlushes()
	l.d.health.Report(health.HealthReport{Live: true, Detail: "stopped"})
}

// rejectFlushes answers the Flushes that will not be applied, including those still in the input.
func (l *loop) rejectFlushes() {
	for {
		select {
		case msg := <-l.d.input:
			l.takeFlush(msg)
			continue
		default:
		}
		break
	}
	l.answer(ErrStopped)
}

// wait waits for an input or an alarm and processes it; false: the loop must end.
func (l *loop) wait() bool {
	select {
	case <-l.d.quit: // checked before all other inputs
		return false
	default:
	}
	l.arm()
	switch chosen, value, ok := reflect.Select(l.cases); chosen {
	case caseQuit:
		return false
	case caseInspect:
		l.runInspection(value.Interface().(inspection))
	case caseTimer:
		l.armed = time.Time{}
	case caseInput:
		l.takeInput(value.Interface())
	default:
		l.takeSource(l.d.sources[chosen-caseSources], value, ok)
	}
	return true
}

// The loop's inputs; indices from caseSources on are the further sources.
const (
	caseQuit = iota
	caseInspect
	caseTimer
	caseInput
	caseSources
)

// listen rebuilds the list of inputs.
func (l *loop) listen() {
	l.cases = []reflect.SelectCase{
		caseQuit:    receive(l.d.quit),
		caseInspect: receive(l.d.inspect),
		caseTimer:   receive(l.timer.C()),
		caseInput:   receive(l.d.input),
	}
	for _, s := range l.d.sources {
		l.cases = append(l.cases, receive(s.ch))
	}
}

func receive[T any](ch <-chan T) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
}

// arm sets the timer to the first alarm.
func (l *loop) arm() {
	next := l.alarms.next()
	if next.IsZero() || next.Equal(l.armed) {
		return
	}
	l.armed = next
	l.timer.Reset(max(0, next.Sub(l.d.clock.Now())))
}

// takeInput processes msg and up to drainLimit messages that are queued behind it.
func (l *loop) takeInput(msg any) {
	n := 1
	l.takeMessage(msg)
	for ; n <= drainLimit; n++ {
		select {
		case msg = <-l.d.input:
			l.takeMessage(msg)
			continue
		default:
		}
		break
	}
	l.metrics.batch.Observe(float64(n))
	if len(l.flushes) > 0 && !l.dirty && l.applied && !l.failed {
		l.answer(nil) // all earlier messages are applied
	} else if len(l.flushes) > 0 {
		l.dirty = true
	}
}

func (l *loop) takeMessage(msg any) {
	if together, are := msg.(several); are {
		for _, one := range together {
			l.takeMessage(one)
		}
		return
	}
	if l.takeFlush(msg) {
		return
	}
	if _, ok := msg.(*proto.InSync); ok && !l.inSync {
		l.inSync = true
		l.d.log.Info("datastore is in sync", "took", l.d.clock.Now().Sub(l.begun))
		l.report()
	}
	l.metrics.message(msg)
	l.fanOut(msg)
}

// takeFlush records msg if it is a Flush, and reports whether it is one.
func (l *loop) takeFlush(msg any) bool {
	switch f := msg.(type) {
	case Flush:
		l.flushes = append(l.flushes, f.Done)
	case *Flush:
		l.flushes = append(l.flushes, f.Done)
	default:
		return false
	}
	return true
}

// answer sends the result to all waiting Flushes.
func (l *loop) answer(err error) {
	for _, done := range l.flushes {
		select {
		case done <- err:
		default:
			l.d.log.Warn("a caller of Flush does not receive the result; create its channel with capacity 1")
		}
	}
	l.flushes = nil
}

func (l *loop) takeSource(s *source, value reflect.Value, ok bool) {
	if !ok {
		l.d.log.Info("a source of updates has ended", "source", s.name)
		s.ch = nil // a nil channel is never ready
		l.listen()
		return
	}
	n := 1
	l.fanOut(value.Interface())
	for ; n <= drainLimit; n++ {
		select {
		case msg, ok := <-s.ch:
			if ok {
				l.fanOut(msg)
				continue
			}
		default:
		}
		break
	}
	s.size.Observe(float64(n))
}

// fanOut passes one message to all managers (phase one).
func (l *loop) fanOut(msg any) {
	l.dirty = true
	for _, s := range l.d.managers {
		if err := s.deliver(msg); err != nil {
			l.notePanic(err)
			l.redelivery.set(l.d.clock.Now().Add(l.d.cfg.RetryInterval))
		}
	}
}

// redeliver delivers the messages that managers panicked over again.
func (l *loop) redeliver(now time.Time) {
	for _, s := range l.d.managers {
		if len(s.held) == 0 {
			continue
		}
		for _, err := range s.redeliver() {
			l.notePanic(err)
			l.defect(err)
		}
		if len(s.held) > 0 {
			l.notePanic(s.err)
			l.redelivery.set(now.Add(l.d.cfg.RetryInterval))
		}
	}
	l.dirty = true
}

// defect makes the driver permanently not ready.
func (l *loop) defect(err error) {
	l.d.log.Error("the dataplane is incomplete until the agent is restarted", "error", err)
	const enough = 10
	if len(l.defects) < enough {
		l.defects = append(l.defects, err.Error())
	}
	l.report()
}

// refresh fires r. A panic in r is reported like that of a failed apply.
func (l *loop) refresh(r Refresh) {
	l.dirty = true
	if r.Fire == nil {
		return
	}
	if err := guard(named("refresh "+r.Name), func() error { r.Fire(); return nil }); err != nil {
		l.notePanic(err)
	}
}

func (l *loop) runInspection(in inspection) {
	in.done <- guard(named("inspection"), func() error { in.f(); return nil })
}

// heartbeat queues the process's status. The reader receives only the latest one.
func (l *loop) heartbeat(now time.Time) {
	type heartbeatKey struct{}
	l.d.QueueStatus(heartbeatKey{}, &proto.ProcessStatusUpdate{
		IsoTimestamp: now.UTC().Format(time.RFC3339),
		Uptime:       now.Sub(l.begun).Seconds(),
	})
}

// notePanic logs a panic with its stack and makes the driver not ready until an apply has succeeded.
func (l *loop) notePanic(err error) {
	logPanic(l.d.log, err)
	l.panicked = true
	l.lastErr = err
	l.report()
}

// report reports the driver's health. It is called from this goroutine only, so that missing reports show that the goroutine hangs.
func (l *loop) report() {
	l.reported = l.d.clock.Now()
	l.d.health.Report(health.HealthReport{
		Live:   true,
		Ready:  l.applied && !l.panicked && len(l.defects) == 0,
		Detail: l.detail(),
	})
}

// reportProgress reports while a pass takes long; it may be called often.
func (l *loop) reportProgress() {
	const often = time.Second
	if l.d != nil && l.d.clock.Now().Sub(l.reported) >= often {
		l.report()
	}
}

func (l *loop) detail() string {
	var parts []string
	switch {
	case l.applied:
	case !l.inSync:
		parts = append(parts, "waiting for the datastore to be in sync")
	case !l.gatesOpen:
		parts = append(parts, "waiting for the first listing of the dataplane")
	default:
		parts = append(parts, "nothing has been applied yet")
	}
	if l.lastErr != nil {
		parts = append(parts, fmt.Sprintf("last error: %v", l.lastErr))
	}
	return strings.Join(append(parts, l.defects...), "; ")
}
