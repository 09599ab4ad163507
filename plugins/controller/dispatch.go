package controller

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/plugins/controller/api"
)

// maxDifferences bounds the text of a failed verification.
const maxDifferences = 20

// runResync calls Resync of the handlers and prepares the transaction.
func (c *core) runResync(t *eventHandling) {
	if c.startup.phase == running || c.resyncCount == 0 {
		// A start-up resync that is repeated because it failed still counts as the first one: handlers that were not called before must
		// receive resyncCount 1.
		c.resyncCount++
	}
	_, verification := t.ev.(*VerificationResync)
	if verification {
		t.before = c.describe()
	}
	for i, h := range c.handlers {
		_, err := c.call(t, i, false, func() (string, error) {
			return "", h.Resync(t.ev, c.kube, c.resyncCount, t.tx)
		})
		if err != nil {
			t.tx.keepOld(i)
		}
		if t.stopped {
			return
		}
	}
	// A start-up resync has no old values to keep for a handler that failed. Committing it would remove the configuration that the
	// dataplane has from before the restart of the agent.
	incomplete := c.startup.phase != running && len(t.handlerErrs) > 0
	if verification || incomplete {
		return
	}
	t.txn = &txn.Txn{Kind: txn.UpstreamResync, NoRetry: !c.cfg.EnableRetry}
	if t.ev.Method() == api.FullResync {
		t.txn.Kind = txn.FullResync
	}
	t.txn.Values, t.externalErr = c.external.values(t.tx, c.external.keys(), func(string) proto.Message { return nil })
	c.recordExternalErr(t)
}

// runUpdate calls Update of the handlers and prepares the transaction, if they have changed anything.
func (c *core) runUpdate(t *eventHandling) {
	order := make([]int, len(c.handlers))
	for i := range order {
		order[i] = i
	}
	if t.update.Direction() == api.Reverse {
		slices.Reverse(order)
	}
	revertible := t.update.TransactionType() == api.RevertOnFailure
	for _, i := range order {
		called, err := c.call(t, i, false, func() (string, error) { return c.handlers[i].Update(t.ev, t.tx) })
		if called {
			t.executed = append(t.executed, i)
		}
		if t.stopped || (err != nil && revertible) {
			t.stopped = true
			return
		}
	}
	extra := sortedKeys(t.external)
	if len(t.tx.order) == 0 && len(extra) == 0 {
		return
	}
	t.txn = &txn.Txn{
		Kind:    txn.Update,
		Revert:  revertible,
		NoRetry: !c.cfg.EnableRetry || revertible,
	}
	t.txn.Values, t.externalErr = c.external.values(t.tx, extra, c.store.get)
	c.recordExternalErr(t)
}

func (c *core) recordExternalErr(t *eventHandling) {
	if t.externalErr != nil {
		t.externalErr = fmt.Errorf("external configuration: %w", t.externalErr)
		t.record.addHandler("external configuration", false, "", t.externalErr)
	}
}

// call passes the event to the i-th handler if it handles it, and records the result and errors. Errors that stop the event set t.stopped.
func (c *core) call(t *eventHandling, i int, revert bool, f func() (string, error)) (called bool, err error) {
	h := c.handlers[i]
	wants := revert
	change := ""
	err = c.guard(h, func() (err error) {
		if wants = wants || h.HandlesEvent(t.ev); !wants {
			return nil
		}
		t.tx.begin(i)
		change, err = f()
		return errors.Join(err, t.tx.end())
	})
	if !wants && err == nil {
		return false, nil
	}
	t.record.addHandler(h.String(), revert, change, err)
	if err != nil {
		err = fmt.Errorf("%s: %w", h, err)
	}
	if err == nil || revert {
		return true, err
	}
	t.fail(err)
	if fatal := (*api.FatalError)(nil); errors.As(err, &fatal) {
		t.stopped, t.fatal = true, err
	}
	if abort := (*api.AbortEventError)(nil); errors.As(err, &abort) {
		t.stopped = true
	}
	return true, err
}

// guard turns a panic of a handler into an error: the unfinished work is healed like after any other error.
func (c *core) guard(h api.EventHandler, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("handler panicked", "handler", h.String(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = &handlerPanic{value: r}
		}
	}()
	return f()
}

// handlerPanic is a panic of a handler.
type handlerPanic struct{ value any }

func (e *handlerPanic) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// revert calls Revert of the handlers that were executed, the last one first.
func (c *core) revert(t *eventHandling) error {
	var errs []error
	for _, i := range slices.Backward(t.executed) {
		_, err := c.call(t, i, true, func() (string, error) { return "", c.handlers[i].Revert(t.ev) })
		if err != nil {
			errs = append(errs, fmt.Errorf("revert of %w", err))
		}
	}
	return errors.Join(errs...)
}

// describe collects the internal data of the handlers that show it.
func (c *core) describe() map[int]string {
	out := map[int]string{}
	for i, h := range c.handlers {
		d, ok := h.(api.DataDescriber)
		if !ok {
			continue
		}
		err := c.guard(h, func() error { out[i] = d.DescribeInternalData(); return nil })
		if err != nil {
			out[i] = err.Error()
		}
	}
	return out
}

// compare ends a verification: the handlers must put the same values as before, and their internal data must be the same.
func (c *core) compare(t *eventHandling) error {
	if len(t.handlerErrs) > 0 {
		c.dirty = true
		return fmt.Errorf("verification: resync failed: %w", errors.Join(t.handlerErrs...))
	}
	var diffs []string
	for _, key := range sortedKeys(t.tx.values) {
		want := t.tx.values[key].value
		switch have := c.store.get(key); {
		case have == nil:
			diffs = append(diffs, fmt.Sprintf("%s is missing, a resync gives {%v}", key, want))
		case !proto.Equal(have, want):
			diffs = append(diffs, fmt.Sprintf("%s is {%v}, a resync gives {%v}", key, have, want))
		}
	}
	for _, key := range c.store.keys() {
		if !t.tx.touched(key) {
			diffs = append(diffs, fmt.Sprintf("%s is {%v}, a resync does not give it", key, c.store.get(key)))
		}
	}
	c.dirty = len(diffs) > 0
	after := c.describe()
	for i, h := range c.handlers {
		if before, ok := t.before[i]; ok && before != after[i] {
			diffs = append(diffs, fmt.Sprintf("internal data of %s is\n%s\na resync gives\n%s", h, before, after[i]))
		}
	}
	if len(diffs) == 0 {
		return nil
	}
	if more := len(diffs) - maxDifferences; more > 0 {
		diffs = append(diffs[:maxDifferences], fmt.Sprintf("and %d more differences", more))
	}
	errs := make([]error, len(diffs))
	for i, d := range diffs {
		errs[i] = errors.New(d)
	}
	return fmt.Errorf("verification: updates and resync differ: %w", errors.Join(errs...))
}
