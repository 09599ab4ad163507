package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
)

// sim runs a controller without its goroutine: the test pushes events, makes steps and moves the clock.
type sim struct {
	t       testing.TB
	c       *Controller
	applier *fakeApplier
	clock   time.Time
	pods    map[string]string // the input of a resync that is not part of the cluster's state
	fakes   []*fakePlugin
	fault   func(h *fakePlugin, op string, ev api.Event) error
	verErrs []error
}

func newSim(t testing.TB, change func(*Config), names ...string) *sim {
	t.Helper()
	s := &sim{t: t, applier: newFakeApplier(), clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), pods: map[string]string{}}
	cfg := DefaultConfig()
	cfg.EnableVerification = true
	if change != nil {
		change(&cfg)
	}
	jobs := lifecycle.NewGroup(t.Context(), discard())
	c, err := New(cfg, Deps{
		Log: discard(), Applier: s.applier, Jobs: jobs, Now: func() time.Time { return s.clock },
		OnVerificationError: func(err error) { s.verErrs = append(s.verErrs, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.c = c
	for _, name := range names {
		h := newFakePlugin(name, s)
		s.fakes = append(s.fakes, h)
		c.core.handlers = append(c.core.handlers, h)
	}
	c.core.start(s.clock)
	c.history.start(s.clock)
	return s
}

// push queues an event and runs the controller until no event is left.
func (s *sim) push(ev api.Event) {
	s.t.Helper()
	if err := s.c.PushEvent(ev); err != nil {
		s.t.Fatalf("push %s: %v", ev, err)
	}
	s.run()
}

func (s *sim) run() {
	s.t.Helper()
	for n := 0; s.c.step(s.t.Context()); n++ {
		if n > 10000 {
			s.t.Fatal("the controller does not come to rest")
		}
	}
}

// advance moves the clock, and stops whenever an event is due.
func (s *sim) advance(d time.Duration) {
	s.t.Helper()
	end := s.clock.Add(d)
	for {
		at := s.c.core.deadline()
		if at.IsZero() || at.After(end) {
			break
		}
		s.clock = at
		s.run()
	}
	s.clock = end
	s.run()
}

func (s *sim) records() []*EventRecord { return s.c.EventHistory() }

func (s *sim) lastRecord() *EventRecord {
	s.t.Helper()
	all := s.records()
	if len(all) == 0 {
		s.t.Fatal("no event was handled")
	}
	return all[len(all)-1]
}

func (s *sim) noVerificationErrors() {
	s.t.Helper()
	if len(s.verErrs) > 0 {
		s.t.Fatalf("verification: %v", errors.Join(s.verErrs...))
	}
}

// fakePlugin is a handler with state. It configures one value per item and per pod, and one value with the totals. The value of a pod contains the
// value that the previous handler has configured for it, so handlers depend on each other.
type fakePlugin struct {
	name     string
	sim      *sim
	items    map[string]string
	pods     map[string]string
	reported int // number of pods in the latest podCount
	undo     func()
}

func newFakePlugin(name string, s *sim) *fakePlugin {
	return &fakePlugin{name: name, sim: s, items: map[string]string{}, pods: map[string]string{}}
}

func (h *fakePlugin) String() string { return h.name }

func (h *fakePlugin) HandlesEvent(ev api.Event) bool {
	switch ev := ev.(type) {
	case *api.KubeStateChange:
		return ev.Resource == "item"
	case *podEvent, *podCount, *Shutdown:
		return true
	}
	return ev.Method().IsResync()
}

func (h *fakePlugin) failing(op string, ev api.Event) error {
	if h.sim.fault == nil {
		return nil
	}
	return h.sim.fault(h, op, ev)
}

func (h *fakePlugin) Resync(ev api.Event, kube api.KubeStateData, _ int, tx api.ResyncOperations) error {
	h.items, h.pods = map[string]string{}, map[string]string{}
	for k, v := range kube["item"] {
		h.items[k] = text(v)
		tx.Put(h.name+"/item/"+k, v)
	}
	if err := h.failing("resync", ev); err != nil {
		return err
	}
	h.pods = maps.Clone(h.sim.pods)
	h.reported = len(h.pods)
	for k := range h.pods {
		h.putPod(k, tx)
	}
	h.putSum(tx)
	return nil
}

func (h *fakePlugin) Update(ev api.Event, tx api.UpdateOperations) (string, error) {
	items, pods := maps.Clone(h.items), maps.Clone(h.pods)
	h.undo = func() { h.items, h.pods = items, pods }
	switch ev := ev.(type) {
	case *api.KubeStateChange:
		if ev.NewValue == nil {
			delete(h.items, ev.Key)
		} else {
			h.items[ev.Key] = text(ev.NewValue)
		}
		if err := h.failing("update", ev); err != nil {
			return "", err
		}
		if ev.NewValue == nil {
			tx.Delete(h.name + "/item/" + ev.Key)
		} else {
			tx.Put(h.name+"/item/"+ev.Key, ev.NewValue)
		}
	case *podEvent:
		if err := h.updatePod(ev, tx); err != nil {
			return "", err
		}
	case *podCount:
		if err := h.failing("update", ev); err != nil {
			return "", err
		}
		h.reported = ev.n
	case *Shutdown:
		return "", h.failing("update", ev)
	}
	h.putSum(tx)
	return fmt.Sprintf("%d items, %d pods", len(h.items), len(h.pods)), nil
}

func (h *fakePlugin) updatePod(ev *podEvent, tx api.UpdateOperations) error {
	if ev.remove {
		delete(h.pods, ev.name)
	} else {
		h.pods[ev.name] = ev.value
	}
	if h == h.sim.fakes[0] && ev.announce {
		if err := h.sim.c.PushFollowUp(ev, &podCount{n: len(h.pods)}); err != nil {
			return err
		}
	}
	if err := h.failing("update", ev); err != nil {
		return err
	}
	if ev.remove {
		tx.Delete(h.name + "/pod/" + ev.name)
	} else {
		h.putPod(ev.name, tx)
	}
	return nil
}

func (h *fakePlugin) Revert(ev api.Event) error {
	if err := h.failing("revert", ev); err != nil {
		return err
	}
	h.undo()
	return nil
}

func (h *fakePlugin) putPod(pod string, tx api.ResyncOperations) {
	value := h.pods[pod]
	if i := slices.Index(h.sim.fakes, h); i > 0 {
		value += "<" + text(tx.Get(h.sim.fakes[i-1].name+"/pod/"+pod))
	}
	tx.Put(h.name+"/pod/"+pod, str(value))
}

func (h *fakePlugin) putSum(tx api.ResyncOperations) {
	sum := slices.Concat(sortedKeys(h.items), sortedKeys(h.pods))
	tx.Put(h.name+"/sum", str(fmt.Sprintf("%s told %d", strings.Join(sum, "+"), h.reported)))
}

func (h *fakePlugin) DescribeInternalData() string {
	var b strings.Builder
	for _, m := range []map[string]string{h.items, h.pods} {
		for _, k := range sortedKeys(m) {
			fmt.Fprintf(&b, "%s=%s ", k, m[k])
		}
		b.WriteString("| ")
	}
	return b.String()
}

// podEvent adds or removes a pod; done receives its result.
type podEvent struct {
	name, value string
	remove      bool
	announce    bool // the first handler pushes a podCount
	txnType     api.UpdateTransactionType
	direction   api.UpdateDirectionType
	blocking    bool
	done        func(error)
}

func addPod(s *sim, name, value string) *podEvent {
	ev := &podEvent{name: name, value: value, txnType: api.RevertOnFailure, announce: true, blocking: true}
	ev.done = func(err error) {
		if err == nil {
			s.pods[name] = value
		}
	}
	return ev
}

func deletePod(s *sim, name string) *podEvent {
	ev := &podEvent{name: name, remove: true, announce: true, blocking: true,
		txnType: api.BestEffortIgnoreErrors, direction: api.Reverse}
	ev.done = func(err error) {
		if fatal := (*api.FatalError)(nil); !errors.As(err, &fatal) {
			delete(s.pods, name)
		}
	}
	return ev
}

func (ev *podEvent) GetName() string {
	if ev.remove {
		return "Delete Pod"
	}
	return "Add Pod"
}
func (ev *podEvent) String() string                             { return ev.GetName() + " " + ev.name }
func (ev *podEvent) Method() api.EventMethodType                { return api.Update }
func (ev *podEvent) IsBlocking() bool                           { return ev.blocking }
func (ev *podEvent) TransactionType() api.UpdateTransactionType { return ev.txnType }
func (ev *podEvent) Direction() api.UpdateDirectionType         { return ev.direction }
func (ev *podEvent) Done(err error) {
	if ev.done != nil {
		ev.done(err)
	}
}

// podCount is a follow-up event.
type podCount struct {
	nonBlocking
	n int
}

func (ev *podCount) GetName() string                            { return "Pod Count" }
func (ev *podCount) String() string                             { return fmt.Sprintf("Pod Count %d", ev.n) }
func (ev *podCount) Method() api.EventMethodType                { return api.Update }
func (ev *podCount) TransactionType() api.UpdateTransactionType { return api.BestEffort }
func (ev *podCount) Direction() api.UpdateDirectionType         { return api.Forward }

func kubeChange(key, value string) *api.KubeStateChange {
	ev := &api.KubeStateChange{Resource: "item", Key: key}
	if value != "" {
		ev.NewValue = str(value)
	}
	return ev
}

func dbResync(kvs map[string]string) *api.DBResync {
	ev := api.NewDBResync()
	ev.KubeState["item"] = api.KeyValuePairs{}
	for k, v := range kvs {
		ev.KubeState["item"][k] = str(v)
	}
	return ev
}

func str(s string) proto.Message { return wrapperspb.String(s) }

func text(m proto.Message) string {
	if s, ok := m.(*wrapperspb.StringValue); ok {
		return s.GetValue()
	}
	return ""
}

// fakeApplier applies values to a map. It behaves like a dataplane that loses no values, with configurable faults.
type fakeApplier struct {
	desired, applied map[string]proto.Message
	retry            map[string]bool // values that it will retry itself
	txns             []*txn.Txn
	// fault returns the fault of a transaction.
	fault func(t *txn.Txn) fault
}

type fault struct {
	refuse    error  // nothing is applied
	key       string // this value fails
	retriable bool
	revertErr error // reverting fails, too
	panics    bool
}

func newFakeApplier() *fakeApplier {
	return &fakeApplier{desired: map[string]proto.Message{}, applied: map[string]proto.Message{}, retry: map[string]bool{}}
}

func (a *fakeApplier) Plan(context.Context, *txn.Txn) ([]txn.Op, error) { return nil, nil }

func (a *fakeApplier) Commit(_ context.Context, t *txn.Txn) (*txn.Record, error) {
	a.txns = append(a.txns, t)
	var f fault
	if a.fault != nil {
		f = a.fault(t)
	}
	if f.panics {
		panic("dataplane bug")
	}
	if f.refuse != nil {
		return nil, f.refuse
	}
	rec := &txn.Record{SeqNum: uint64(len(a.txns)), EventSeqNum: t.SeqNum, Kind: t.Kind, Description: t.Description}
	desired, applied := maps.Clone(a.desired), maps.Clone(a.applied)
	failed := a.apply(t, f, rec)
	if !failed {
		return rec, nil
	}
	err := &txn.Error{Failed: []txn.KeyError{{Key: f.key, Retriable: f.retriable && !t.Revert, Err: errors.New("injected")}}}
	if t.Revert {
		a.desired, err.Reverted, rec.Reverted = desired, true, true
		if err.RevertErr = f.revertErr; f.revertErr == nil {
			a.applied = applied
		}
	} else if f.retriable && !t.NoRetry {
		a.retry[f.key] = true
	}
	rec.Failed = err.Failed
	return rec, err
}

func (a *fakeApplier) apply(t *txn.Txn, f fault, rec *txn.Record) (failed bool) {
	before := a.desired
	switch t.Kind {
	case txn.Update:
	case txn.UpstreamResync:
		a.desired = map[string]proto.Message{}
	case txn.FullResync:
		a.desired, before = map[string]proto.Message{}, a.applied
	case txn.DownstreamResync:
		before = a.applied
	}
	a.desired = maps.Clone(a.desired)
	for _, kv := range t.Values {
		if kv.Value == nil {
			delete(a.desired, kv.Key)
			continue
		}
		a.desired[kv.Key] = kv.Value
	}
	keys := map[string]bool{}
	for _, m := range []map[string]proto.Message{before, a.desired} {
		for key := range m {
			keys[key] = true
		}
	}
	for _, key := range sortedKeys(keys) {
		if proto.Equal(before[key], a.desired[key]) {
			continue
		}
		op := txn.Op{Action: txn.Modify, Key: key}
		rec.Planned = append(rec.Planned, op)
		if key == f.key {
			failed = true
			continue
		}
		rec.Executed = append(rec.Executed, op)
		a.set(key)
	}
	return failed
}

func (a *fakeApplier) set(key string) {
	delete(a.retry, key)
	if v := a.desired[key]; v != nil {
		a.applied[key] = v
	} else {
		delete(a.applied, key)
	}
}

// retryAll runs the background retries of a dataplane.
func (a *fakeApplier) retryAll() {
	for key := range a.retry {
		a.set(key)
	}
}

func (a *fakeApplier) dump() string { return dump(a.applied) }

func dump(kvs map[string]proto.Message) string {
	var b strings.Builder
	for _, key := range sortedKeys(kvs) {
		fmt.Fprintf(&b, "%s = %s\n", key, text(kvs[key]))
	}
	return b.String()
}
