package vpp

import (
	"errors"
	"fmt"
	"log/slog"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// kinds is what the descriptors share. All of it belongs to the scheduler's goroutine.
type kinds struct {
	lane  *conn.Lane
	deps  Deps
	idx   *Index
	types map[ifKind]*ifType
	snap  snapshots
	long  longNames
	// sockets are the memif sockets whose numbers are being asked for.
	sockets map[string]socketWait
	// held are the tables that this agent has added to this VPP (true) or deleted (false); see tableKind.
	held map[tableID]bool
	// uncertain are the interfaces that VPP may have without their tag, by name; see leftovers.go.
	uncertain map[string]suspect
	log       *slog.Logger
	nat       natState
	acl       aclState
}

// object names what a request is about, for errors: "route 10.0.0.0/8 in table 1".
type object struct {
	what string // "add route"
	name string
}

func (o object) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("vpp: %s %s: %w%s", o.what, o.name, err, hint(err))
}

// do starts a request that ends op. VPP's refusals listed in fine mean that things are already as they should be.
func (k *kinds) do(op *scheduler.Op, o object, req api.Message, fine ...api.VPPApiError) {
	k.send(o, req, op.Done, fine...)
}

// send starts a request and hands its error, wrapped, to done.
func (k *kinds) send(o object, req api.Message, done func(error), fine ...api.VPPApiError) {
	k.snap.forget()
	k.lane.Request(req, func(_ api.Message, err error) {
		if err != nil && isFine(err, fine) {
			err = nil
		}
		done(o.wrap(err))
	})
}

// isFine is conn.IsRetval, for which an empty list means any code.
func isFine(err error, fine []api.VPPApiError) bool {
	return len(fine) > 0 && conn.IsRetval(err, fine...)
}

// join calls done once, when n parts have ended, with all their errors.
func join(n int, done func(error)) func(error) {
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

// hint reports what an operator can do about a refusal whose text does not help.
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

// gone ends an operation on an object whose interface or bridge domain is not in VPP any more: nothing is left to do.
func gone(op *scheduler.Op) { op.Done(nil) }

// missing ends an operation that needs an interface which VPP does not have. The scheduler's dependencies keep this from
// happening unless VPP was changed behind its back.
func (k *kinds) missing(op *scheduler.Op, o object, ifName string) {
	op.Done(o.wrap(&missingError{ifName}))
}

type missingError struct{ name string }

func (e *missingError) Error() string { return "interface " + e.name + " is not in VPP" }

// Retriable is true: a resync, or the interface's own retry, brings it back.
func (e *missingError) Retriable() bool { return true }

// sendSteps makes the requests of each step together, once VPP has done all before.
func (k *kinds) sendSteps(o object, steps [][]api.Message, done func(error), fine ...api.VPPApiError) {
	for len(steps) > 0 && len(steps[0]) == 0 {
		steps = steps[1:]
	}
	if len(steps) == 0 {
		done(nil)
		return
	}
	each := join(len(steps[0]), func(err error) {
		if err != nil {
			done(err)
			return
		}
		k.sendSteps(o, steps[1:], done, fine...)
	})
	for _, req := range steps[0] {
		k.send(o, req, each, fine...)
	}
}

// sendAll starts requests that end op together. When one of them fails the others may have been done.
func (k *kinds) sendAll(op *scheduler.Op, o object, reqs []api.Message, fine ...api.VPPApiError) {
	done := join(len(reqs), func(err error) {
		if len(reqs) > 1 {
			err = scheduler.OutcomeUnknown(err)
		}
		op.Done(err)
	})
	for _, req := range reqs {
		k.send(o, req, done, fine...)
	}
}
