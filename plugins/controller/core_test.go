package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
)

// simOf returns a sim with the given handlers instead of fakes, and without verification.
func simOf(t *testing.T, handlers ...api.EventHandler) *sim {
	t.Helper()
	s := newSim(t, func(c *Config) { c.EnableVerification = false })
	s.c.core.handlers = handlers
	return s
}

func TestTransactionsSayWhatTheyAre(t *testing.T) {
	h := &hook{name: "h", update: func(_ api.Event, tx api.UpdateOperations) error {
		tx.Put("k", str("1"))
		tx.Delete("k")
		tx.Put("k", str("2")) // the last one counts
		return nil
	}}
	s := simOf(t, h)
	s.push(dbResync(nil))
	for _, test := range []struct {
		typ             api.UpdateTransactionType
		revert, noRetry bool
	}{{api.BestEffort, false, false}, {api.BestEffortIgnoreErrors, false, false}, {api.RevertOnFailure, true, true}} {
		ev := newPing(test.typ.String(), false)
		ev.txnType = test.typ
		s.push(ev)
		tx := s.applier.txns[len(s.applier.txns)-1]
		if tx.Kind != txn.Update || tx.Revert != test.revert || tx.NoRetry != test.noRetry ||
			tx.Description != ev.String() || tx.SeqNum != s.lastRecord().SeqNum || len(tx.Values) != 1 {
			t.Errorf("%s: %+v", test.typ, tx)
		}
	}
	if got := text(s.c.GetConfig("k")); got != "2" {
		t.Errorf("GetConfig: %q", got)
	}
	s.c.core.cfg.EnableRetry = false
	s.push(newPing("no retry", false))
	if tx := s.applier.txns[len(s.applier.txns)-1]; !tx.NoRetry {
		t.Error("enableRetry: false must switch retries off")
	}
}

func TestUpdateWithoutOperationsCommitsNothing(t *testing.T) {
	s := simOf(t, &hook{name: "h"})
	s.push(dbResync(nil))
	s.push(newPing("nothing", false))
	if n := len(s.applier.txns); n != 1 {
		t.Errorf("%d transactions, want only the start-up resync", n)
	}
	if r := s.lastRecord(); r.Txn != nil || r.Error != "" {
		t.Errorf("record %+v", r)
	}
}

func TestGetLooksAtPendingThenApplied(t *testing.T) {
	var got []string
	h := &hook{name: "h"}
	h.resync = func(_ api.Event, _ api.KubeStateData, _ int, tx api.ResyncOperations) error {
		got = append(got, text(tx.Get("k")))
		tx.Put("k", str("1"))
		got = append(got, text(tx.Get("k")))
		return nil
	}
	s := simOf(t, h)
	h.update = func(_ api.Event, tx api.UpdateOperations) error {
		got = append(got, text(tx.Get("k")))
		tx.Put("k", str("2"))
		got = append(got, text(tx.Get("k")), text(s.c.GetConfig("k")))
		tx.Delete("k")
		got = append(got, text(tx.Get("k")), text(s.c.GetConfig("k")))
		return nil
	}
	s.push(dbResync(nil))
	s.push(newPing("x", false))
	if want := " 1 1 2 1  1"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
	if s.c.GetConfig("k") != nil {
		t.Error("deleted value is still there")
	}
}

func TestWrongUseOfTheTransactionIsTheHandlersError(t *testing.T) {
	h := &hook{name: "clumsy", update: func(_ api.Event, tx api.UpdateOperations) error {
		tx.Put("", str("x"))
		tx.Put("nil", nil)
		tx.Put("typed nil", (*wrapperspb.StringValue)(nil))
		tx.Delete("")
		return nil
	}}
	s := simOf(t, h)
	s.push(dbResync(nil))
	s.push(newPing("x", false))
	err := s.lastRecord().Error
	for _, want := range []string{"clumsy", "empty key", `"nil"`, `"typed nil"`} {
		if !strings.Contains(err, want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

func TestBestEffortErrorsAreJoined(t *testing.T) {
	e1, e2 := errors.New("first"), errors.New("second")
	s := simOf(t,
		&hook{name: "a", update: func(_ api.Event, tx api.UpdateOperations) error { tx.Put("a", str("1")); return e1 }},
		&hook{name: "b", update: func(_ api.Event, tx api.UpdateOperations) error { tx.Put("b", str("1")); return e2 }})
	s.push(dbResync(nil))
	e3 := errors.New("refused")
	s.applier.fault = func(*txn.Txn) fault { return fault{refuse: e3} }
	ev := newPing("x", true)
	s.push(ev)
	err := <-ev.done
	for _, want := range []error{e1, e2, e3} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not in %v", want, err)
		}
	}
	if got := text(s.c.GetConfig("b")); got != "1" {
		t.Errorf("configuration of the other handler: %q", got)
	}
}

func TestRevertReportsTheFirstError(t *testing.T) {
	first := errors.New("first")
	a := &hook{name: "a", update: func(_ api.Event, tx api.UpdateOperations) error { tx.Put("a", str("1")); return nil }}
	b := &hook{name: "b", update: func(api.Event, api.UpdateOperations) error { return first }}
	never := &hook{name: "never"}
	s := simOf(t, a, b, never)
	s.push(dbResync(nil))
	ev := newPing("x", true)
	ev.txnType = api.RevertOnFailure
	s.push(ev)
	if err := <-ev.done; !errors.Is(err, first) {
		t.Errorf("Done: %v", err)
	}
	if got := strings.Join(b.all(), ","); !strings.HasSuffix(got, "revert ping x") {
		t.Errorf("the handler that failed must be reverted too; it saw %s", got)
	}
	if got := strings.Join(never.all(), ","); strings.Contains(got, "ping") {
		t.Errorf("a handler behind the failure saw %s", got)
	}
	if s.c.GetConfig("a") != nil || len(s.applier.txns) != 1 {
		t.Error("something was committed")
	}
}

func TestVerificationFailsLoudly(t *testing.T) {
	forgetful := &describer{hook: hook{name: "forgetful"}}
	forgetful.resync = func(_ api.Event, _ api.KubeStateData, _ int, tx api.ResyncOperations) error {
		forgetful.data = "resynced"
		tx.Put("kept", str("1"))
		tx.Put("changed", str("1"))
		return nil
	}
	forgetful.update = func(_ api.Event, tx api.UpdateOperations) error {
		forgetful.data = "updated"
		tx.Put("changed", str("2"))
		tx.Put("extra", str("1"))
		tx.Delete("kept")
		return nil
	}
	reg := prometheus.NewRegistry()
	s := newSim(t, nil)
	var err error
	if s.c.metrics, err = newMetrics(reg, s.c.queue.length, s.c.ready); err != nil {
		t.Fatal(err)
	}
	s.c.core.handlers = []api.EventHandler{forgetful}
	s.push(dbResync(nil))
	s.noVerificationErrors()
	before := len(s.applier.txns)
	s.push(newPing("x", false))
	if len(s.verErrs) != 1 {
		t.Fatalf("hook was called %d times", len(s.verErrs))
	}
	record := s.lastRecord()
	for _, want := range []string{"kept is missing", "changed is {", "extra is {", "updated", "resynced"} {
		if !strings.Contains(s.verErrs[0].Error(), want) || !strings.Contains(record.Error, want) {
			t.Errorf("%q is not in the error %v", want, s.verErrs[0])
		}
	}
	if n := len(s.applier.txns) - before; n != 1 {
		t.Errorf("%d transactions, the verification must not commit", n)
	}
	if got := gather(t, reg)["contiv_controller_verification_errors_total"]; got != 1 {
		t.Errorf("counter is %v", got)
	}
	s.advance(5 * time.Second) // heals
	if got := text(s.applier.applied["changed"]); got != "1" {
		t.Errorf("after healing: %q", got)
	}
}

type describer struct {
	hook
	data string
}

func (d *describer) DescribeInternalData() string { return d.data }

func TestExternalValueOfAnotherType(t *testing.T) {
	s := newSim(t, nil, "alpha")
	s.push(dbResync(map[string]string{"a": "1"}))
	ev := NewExternalConfigChange("src", api.KeyValuePairs{"alpha/item/a": wrapperspb.Int32(1)}, true)
	s.push(ev)
	if err := ev.Wait(); err == nil || !strings.Contains(err.Error(), "src") || !strings.Contains(err.Error(), "alpha/item/a") {
		t.Errorf("Wait: %v", err)
	}
	if got := text(s.applier.applied["alpha/item/a"]); got != "1" {
		t.Errorf("dataplane has %q", got)
	}
	if !s.c.core.healer.afterErrorDue().IsZero() {
		t.Error("the mistake of another must not be healed")
	}
	s.noVerificationErrors()
}

func TestBackoff(t *testing.T) {
	h := healer{cfg: DefaultConfig().HealingConfig}
	var got []string
	for range 9 {
		got = append(got, h.delay().String())
		h.failedAgain(errors.New("x"))
	}
	if want := "5s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
	now := time.Unix(0, 0)
	h.need(now, errors.New("first"))
	h.need(now.Add(time.Minute), errors.New("second"))
	if h.cause.Error() != "first" || h.deadline() != now.Add(5*time.Minute) {
		t.Errorf("a second cause must not replace the pending one: %v at %s", h.cause, h.deadline())
	}
	h.healed()
	if h.delay() != 5*time.Second || !h.deadline().IsZero() {
		t.Error("success must clear everything")
	}
}

func TestClassify(t *testing.T) {
	boom := errors.New("boom")
	external := func(key string) bool { return key == "external" }
	for name, test := range map[string]struct {
		err  error
		want commitResult
	}{
		"ok":            {nil, commitResult{}},
		"refused":       {txn.ErrClosed, commitResult{refused: true, undone: true}},
		"panic":         {&panicError{"x"}, commitResult{refused: true}},
		"retriable":     {&txn.Error{Failed: []txn.KeyError{{Key: "k", Retriable: true, Err: boom}}}, commitResult{}},
		"permanent":     {&txn.Error{Failed: []txn.KeyError{{Key: "k", Err: boom}}}, commitResult{escalate: true}},
		"one pod":       {&txn.Error{Failed: []txn.KeyError{{Key: "k", PodOnly: true, Err: boom}}}, commitResult{}},
		"pod and node":  {&txn.Error{Failed: []txn.KeyError{{PodOnly: true, Err: boom}, {Key: "k", Err: boom}}}, commitResult{escalate: true}},
		"external":      {&txn.Error{Failed: []txn.KeyError{{Key: "external", Err: boom}}}, commitResult{}},
		"undone":        {&txn.Error{Reverted: true, Failed: []txn.KeyError{{Key: "external", Err: boom}}}, commitResult{undone: true}},
		"revert failed": {&txn.Error{Reverted: true, RevertErr: boom}, commitResult{escalate: true}},
	} {
		test.want.err = test.err
		if got := classify(test.err, external); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	jobs := lifecycle.NewGroup(t.Context(), discard())
	c, err := New(DefaultConfig(), Deps{Applier: newFakeApplier(), Jobs: jobs, Metrics: reg})
	if err != nil {
		t.Fatal(err)
	}
	push(t, c, newPing("held", false))
	push(t, c, dbResync(nil))
	expect := func(want map[string]float64) {
		t.Helper()
		got := gather(t, reg)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s is %v, want %v", name, got[name], value)
			}
		}
	}
	expect(map[string]float64{"contiv_controller_queue_length": 2, "contiv_controller_ready": 0})
	for c.step(t.Context()) {
	}
	expect(map[string]float64{
		"contiv_controller_queue_length":                           0,
		"contiv_controller_ready":                                  1,
		"contiv_controller_events_total ping ok":                   1,
		"contiv_controller_events_total Database Resync ok":        1,
		"contiv_controller_event_duration_seconds ping":            1,
		"contiv_controller_event_duration_seconds Database Resync": 1,
		"contiv_controller_healings_total ok":                      0,
	})
	if _, err := New(DefaultConfig(), Deps{Applier: newFakeApplier(), Jobs: jobs, Metrics: reg}); err == nil {
		t.Error("metrics were registered twice")
	}
}

func TestDoneOfABadEventDoesNotEndTheLoop(t *testing.T) {
	s := newSim(t, nil, "alpha")
	s.push(dbResync(nil))
	ev := addPod(s, "p", "x")
	ev.done = func(error) { panic("caller bug") }
	s.push(ev)
	s.push(kubeChange("a", "1"))
	if text(s.applier.applied["alpha/item/a"]) != "1" {
		t.Error("the loop does not go on")
	}
	// An event made without its constructor has no waiter. It must not block the loop either.
	s.push(&ExternalConfigChange{Source: "s", UpdatedKVs: map[string]proto.Message{"k": str("v")}})
}

// gather returns all metrics, keyed by metric name and label values; for histograms the count.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

func TestAbortDiscardsTheTransaction(t *testing.T) {
	s := simOf(t,
		&hook{name: "a", update: func(_ api.Event, tx api.UpdateOperations) error { tx.Put("k", str("1")); return nil }},
		&hook{name: "b", update: func(api.Event, api.UpdateOperations) error {
			return api.NewAbortEventError(errors.New("injected"))
		}},
		&hook{name: "c"})
	s.push(dbResync(nil))
	s.push(newPing("x", false))
	if s.c.GetConfig("k") != nil || len(s.applier.txns) != 1 {
		t.Error("the transaction of an aborted event must not count")
	}
	if n := len(s.lastRecord().Handlers); n != 2 {
		t.Errorf("%d handlers were called, want 2", n)
	}
	if s.c.core.healer.afterErrorDue().IsZero() {
		t.Error("what the first handler believes and what is configured differ: that must be healed")
	}
}

func TestWithdrawnExternalConfigurationIsNotOursToHeal(t *testing.T) {
	for name, ev := range map[string]api.Event{
		"resync": NewExternalConfigResync("src", nil, false),
		"change": NewExternalConfigChange("src", api.KeyValuePairs{"own": nil}, false),
	} {
		s := newSim(t, nil, "alpha")
		s.push(dbResync(nil))
		s.push(NewExternalConfigChange("src", api.KeyValuePairs{"own": str("x")}, false))
		s.applier.fault = func(*txn.Txn) fault { return fault{key: "own"} }
		s.push(ev)
		if s.lastRecord().TxnError == "" || !s.c.core.healer.afterErrorDue().IsZero() {
			t.Errorf("%s: %+v", name, s.lastRecord())
		}
	}
}
