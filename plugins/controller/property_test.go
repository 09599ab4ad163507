package controller

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/plugins/controller/api"
)

// TestUpdatesEqualResync checks the guarantee of the controller: after any events in any order, with any failures, and after all healing,
// the dataplane has the result of one resync of the final state. Every sequence runs with the verification mode on, which must not report
// false errors. CONTIV_SEED repeats one sequence, CONTIV_RUNS sets the number of sequences.
func TestUpdatesEqualResync(t *testing.T) {
	runs, first := 3000, uint64(0)
	if testing.Short() {
		runs = 300
	}
	if n, err := strconv.Atoi(os.Getenv("CONTIV_RUNS")); err == nil {
		runs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("CONTIV_SEED"), 10, 64); err == nil {
		runs, first = 1, n
	}
	seen := coverage{}
	for seed := first; seed < first+uint64(runs); seed++ {
		newWalk(t, seed, seen).run()
		if t.Failed() {
			t.Fatalf("repeat with CONTIV_SEED=%d", seed)
		}
	}
	if runs >= 300 {
		seen.check(t)
	}
}

// coverage counts the cases that the sequences have reached, to make sure that all required cases are tested.
type coverage map[string]int

func (c coverage) check(t *testing.T) {
	t.Logf("coverage: %v", c)
	for _, what := range []string{
		"Add Pod ok", "Add Pod reverted", "Delete Pod ok", "Pod Count ok", "Healing Resync ok", "Healing Resync error",
		"Verification Resync ok", "Kubernetes State Change error", "Kubernetes State Change aborted",
		"Kubernetes State Change fatal", "Database Resync error", "Dataplane Reconnect ok", "External Config Change ok",
		"External Config Resync ok", "Resync Request ok",
	} {
		if c[what] == 0 {
			t.Errorf("no sequence had: %s", what)
		}
	}
}

// walk is one random sequence.
type walk struct {
	*sim
	rng   *rand.Rand
	seen  coverage
	kube  map[string]string
	ext   map[string]map[string]string
	rate  float64 // of faults
	quiet bool    // no faults
}

func newWalk(t *testing.T, seed uint64, seen coverage) *walk {
	w := &walk{
		sim:  newSim(t, func(c *Config) { c.EnablePeriodicHealing = seed%5 == 0 }, "alpha", "beta", "gamma"),
		rng:  rand.New(rand.NewPCG(seed, 2026)),
		seen: seen,
		kube: map[string]string{},
		ext:  map[string]map[string]string{},
		rate: []float64{0, 0.02, 0.1, 0.3}[seed%4],
	}
	w.fault = w.handlerFault
	w.applier.fault = w.commitFault
	return w
}

func (w *walk) run() {
	w.t.Helper()
	if w.rng.IntN(4) > 0 {
		w.push(dbResync(w.kube))
	}
	for range 5 + w.rng.IntN(40) {
		w.event()
		if len(w.verErrs) > 0 {
			w.t.Errorf("verification: %v", errors.Join(w.verErrs...))
			return
		}
	}
	w.settle()
	for _, r := range w.records() {
		result := resultOK
		switch {
		case r.Error == "":
		case len(r.Handlers) > 0 && r.Handlers[len(r.Handlers)-1].Revert:
			result = resultReverted
		case len(r.Handlers) == 0:
			result = "refused"
		case r.Handlers[len(r.Handlers)-1].Error == "injected abort":
			result = resultAborted
		case r.Handlers[len(r.Handlers)-1].Error == "injected fatal":
			result = resultFatal
		default:
			result = resultError
		}
		w.seen[r.Name+" "+result]++
	}
	if got, want := w.applier.dump(), w.oracle(); got != want {
		w.t.Errorf("the dataplane has\n%sone resync gives\n%s", got, want)
		for _, r := range w.records() {
			w.t.Log(r)
		}
	}
}

// event pushes one random event.
func (w *walk) event() {
	w.t.Helper()
	key, value := string(rune('a'+w.rng.IntN(4))), strconv.Itoa(w.rng.IntN(3))
	switch w.rng.IntN(16) {
	case 0, 1, 2, 3:
		w.kube[key] = value
		w.push(kubeChange(key, value))
	case 4, 5:
		delete(w.kube, key)
		w.push(kubeChange(key, ""))
	case 6, 7, 8:
		w.push(addPod(w.sim, key, value))
	case 9:
		w.push(deletePod(w.sim, key))
	case 10:
		w.push(dbResync(w.kube))
	case 11:
		w.push(&ResyncRequest{waiter: newWaiter(), method: api.EventMethodType(w.rng.IntN(3))})
	case 12:
		if err := w.c.DataplaneReconnected("test"); err != nil {
			w.t.Fatal(err)
		}
		w.sim.run()
	case 13:
		w.external(key, value)
	default:
		w.applier.retryAll()
		w.advance(time.Duration(w.rng.IntN(30)) * time.Second)
	}
}

// push queues an event and usually lets the controller handle all queued events.
func (w *walk) push(ev api.Event) {
	w.t.Helper()
	if err := w.c.PushEvent(ev); err != nil {
		w.t.Fatal(err)
	}
	if w.quiet || w.rng.IntN(3) > 0 {
		w.sim.run()
	}
}

// external pushes external configuration, for keys of plugins and for other keys.
func (w *walk) external(key, value string) {
	w.t.Helper()
	source := []string{"one", "two"}[w.rng.IntN(2)]
	nbKey := []string{"alpha/item/", "beta/pod/", "other/"}[w.rng.IntN(3)] + key
	if w.ext[source] == nil || w.rng.IntN(4) == 0 {
		w.ext[source] = map[string]string{nbKey: source + value}
		w.push(NewExternalConfigResync(source, api.KeyValuePairs{nbKey: str(source + value)}, false))
		return
	}
	if w.rng.IntN(2) == 0 {
		delete(w.ext[source], nbKey)
		w.push(NewExternalConfigChange(source, api.KeyValuePairs{nbKey: nil}, false))
		return
	}
	w.ext[source][nbKey] = source + value
	w.push(NewExternalConfigChange(source, api.KeyValuePairs{nbKey: str(source + value)}, false))
}

func (w *walk) handlerFault(_ *fakePlugin, op string, ev api.Event) error {
	if _, ok := ev.(*VerificationResync); ok || w.quiet || w.rng.Float64() >= w.rate {
		return nil
	}
	if op == "revert" {
		return errors.New("injected")
	}
	switch w.rng.IntN(12) {
	case 0, 1:
		return api.NewAbortEventError(errors.New("injected abort"))
	case 2:
		return api.NewFatalError(errors.New("injected fatal"))
	case 3:
		panic("injected")
	}
	return errors.New("injected")
}

func (w *walk) commitFault(t *txn.Txn) fault {
	if w.quiet || w.rng.Float64() >= 2*w.rate {
		return fault{}
	}
	switch n := w.rng.IntN(8); {
	case n == 0:
		return fault{refuse: errors.New("injected refusal")}
	case n == 1:
		return fault{panics: true}
	case len(t.Values) == 0:
		return fault{}
	default:
		f := fault{key: t.Values[w.rng.IntN(len(t.Values))].Key, retriable: n < 5}
		if n == 6 {
			f.revertErr = errors.New("injected revert failure")
		}
		if !f.retriable && w.externalOnlyKey(f.key) {
			f.retriable = true // it would never be healed
		}
		return f
	}
}

func (w *walk) externalOnlyKey(key string) bool { return w.c.GetConfig(key) == nil }

// settle ends all faults and waits for all healing.
func (w *walk) settle() {
	w.t.Helper()
	w.quiet = true
	w.sim.run()
	if ok, _ := w.c.Healthy(); !ok || w.c.core.startup.phase == waitingForState {
		w.push(dbResync(w.kube))
	}
	for n := 0; !earliest(w.c.core.healer.afterErrorDue(), w.c.core.healer.repair.deadline()).IsZero(); n++ {
		if n > 10 {
			w.t.Fatal("healing does not end")
		}
		w.advance(5 * time.Minute)
	}
	w.applier.retryAll()
	if ok, reason := w.c.Ready(); !ok {
		w.t.Errorf("not ready when all is healed: %s", reason)
	}
	if n := w.c.queue.length(); n != 0 {
		w.t.Errorf("%d events are left in the queue", n)
	}
}

// oracle returns the configuration that new handlers make for the final state.
func (w *walk) oracle() string {
	s := newSim(w.t, nil, "alpha", "beta", "gamma")
	s.pods = w.pods
	tx := newTransaction(s.c.core.store, true)
	for _, h := range s.fakes {
		if err := h.Resync(api.NewDBResync(), dbResync(w.kube).KubeState, 1, tx); err != nil {
			w.t.Fatal(err)
		}
	}
	want := map[string]proto.Message{}
	for key, e := range tx.values {
		want[key] = e.value
	}
	for _, source := range []string{"one", "two"} { // the last source has precedence for single strings
		for key, value := range w.ext[source] {
			want[key] = str(value)
		}
	}
	return dump(want)
}

// TestMergeLeavesInputsAlone makes sure that merging does not change the values that plugins have put.
func TestMergeLeavesInputsAlone(t *testing.T) {
	x := external{"a": {"k": str("external")}}
	internal := str("internal")
	got, err := x.merge("k", internal)
	if err != nil || text(got) != "external" || text(internal) != "internal" {
		t.Errorf("merge: %v, %v; internal is %v", got, err, internal)
	}
	if got, _ := x.merge("other", internal); got != internal {
		t.Error("a value without external configuration must be passed on as it is")
	}
}
