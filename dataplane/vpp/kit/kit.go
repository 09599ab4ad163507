package kit

import (
	"errors"
	"fmt"
	"log/slog"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// Kit holds the state that the descriptors of one scheduler share. Only the scheduler's goroutine uses it.
type Kit struct {
	Lane  *conn.Lane
	Names LongNames
	Log   *slog.Logger

	onWrite, onBoot []func()
}

// New returns the kit of the descriptors that send their requests on lane.
func New(lane *conn.Lane, log *slog.Logger) *Kit {
	k := &Kit{Lane: lane, Names: LongNames{}, Log: log}
	lane.OnBoot(func() { call(k.onBoot) })
	return k
}

// OnWrite adds a function that is called before anything is written.
func (k *Kit) OnWrite(f func()) { k.onWrite = append(k.onWrite, f) }

// OnBoot adds a function that is called before the first request to another VPP process: cached data about the last process
// that no dump refreshes is invalid from then on.
func (k *Kit) OnBoot(f func()) { k.onBoot = append(k.onBoot, f) }

func call(list []func()) {
	for _, f := range list {
		f()
	}
}

// Object is the object of a request, for errors: "route 10.0.0.0/8 in table 1".
type Object struct {
	what string // "add route"
	name string
}

// Named returns an object from the action on it and its name.
func Named(what, name string) Object { return Object{what: what, name: name} }

func (o Object) Wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("vpp: %s %s: %w%s", o.what, o.name, err, hint(err))
}

// Invalidate is called before anything is written: the dumped data is invalid from then on.
func (k *Kit) Invalidate() { call(k.onWrite) }

// Do starts a request that ends op. VPP's refusals listed in fine mean that the object is already in the desired state.
func (k *Kit) Do(op *scheduler.Op, o Object, req api.Message, fine ...api.VPPApiError) {
	k.Send(o, req, op.Done, fine...)
}

// Send starts a request and passes its error, wrapped, to done.
func (k *Kit) Send(o Object, req api.Message, done func(error), fine ...api.VPPApiError) {
	k.Invalidate()
	k.Lane.Request(req, func(_ api.Message, err error) {
		if err != nil && IsFine(err, fine) {
			err = nil
		}
		done(o.Wrap(err))
	})
}

// IsFine reports whether err is VPP's refusal with one of the codes in fine. Unlike in conn.IsRetval, an empty list matches no
// code.
func IsFine(err error, fine []api.VPPApiError) bool {
	return len(fine) > 0 && conn.IsRetval(err, fine...)
}

// Join returns a function for n parts to call when they end; the last call calls done, once, with all errors.
func Join(n int, done func(error)) func(error) {
	var errs []error
	return func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
		if n--; n == 0 {
			done(errors.Join(errs...))
		}
	}
}

// hint returns what an operator can do about a refusal whose text does not explain it.
func hint(err error) string {
	switch {
	case conn.IsRetval(err, api.NO_SUCH_FIB):
		return " (the table does not exist in VPP)"
	case conn.IsRetval(err, api.ADDRESS_IN_USE):
		return " (the address, or one that overlaps with it, is on another interface of the same table)"
	case conn.IsRetval(err, api.UNEXPECTED_INTF_STATE):
		return " (both interfaces must be in the same tables)"
	}
	return ""
}

// Gone ends an operation on an object whose interface or bridge domain is not in VPP any more: nothing is left to do.
func Gone(op *scheduler.Op) { op.Done(nil) }

// Missing ends an operation that needs an interface which VPP does not have. The scheduler's dependencies prevent this unless
// another program has changed VPP.
func (k *Kit) Missing(op *scheduler.Op, o Object, ifName string) {
	op.Done(o.Wrap(MissingInterface(ifName)))
}

// MissingInterface returns the error of a value that needs an interface which VPP does not have.
func MissingInterface(name string) error { return &missingError{name} }

type missingError struct{ name string }

func (e *missingError) Error() string { return "interface " + e.name + " is not in VPP" }

// Retriable returns true: a resync, or the interface's own retry, restores the interface.
func (e *missingError) Retriable() bool { return true }

// SendSteps sends the requests of each step together, after VPP has completed all previous steps.
func (k *Kit) SendSteps(o Object, steps [][]api.Message, done func(error), fine ...api.VPPApiError) {
	for len(steps) > 0 && len(steps[0]) == 0 {
		steps = steps[1:]
	}
	if len(steps) == 0 {
		done(nil)
		return
	}
	each := Join(len(steps[0]), func(err error) {
		if err != nil {
			done(err)
			return
		}
		k.SendSteps(o, steps[1:], done, fine...)
	})
	for _, req := range steps[0] {
		k.Send(o, req, each, fine...)
	}
}

// SendAll starts requests that end op together. If one of them fails the others may have been carried out.
func (k *Kit) SendAll(op *scheduler.Op, o Object, reqs []api.Message, fine ...api.VPPApiError) {
	done := Join(len(reqs), func(err error) {
		if len(reqs) > 1 {
			err = scheduler.OutcomeUnknown(err)
		}
		op.Done(err)
	})
	for _, req := range reqs {
		k.Send(o, req, done, fine...)
	}
}

// IfGone lists VPP's return values for an interface that it does not have.
var IfGone = []api.VPPApiError{api.INVALID_SW_IF_INDEX, api.INVALID_SW_IF_INDEX_2, api.NO_SUCH_ENTRY}
