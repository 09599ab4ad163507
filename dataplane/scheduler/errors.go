package scheduler

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// errRetriable marks errors of operations that may succeed later; see Retry.
var errRetriable = errors.New("may succeed later")

// errBackendBug is the error of an operation that its backend did not end; whether the operation was done is unknown.
var errBackendBug = OutcomeUnknown(errors.New("backend bug: the operation did not end by the end of the flush"))

// Retry marks err as an error that may disappear without any change of configuration. Retry(nil) is nil.
func Retry(err error) error {
	if err == nil {
		return nil
	}
	return retryError{err}
}

type retryError struct{ error }

func (e retryError) Unwrap() error        { return e.error }
func (e retryError) Retriable() bool      { return true }
func (e retryError) Is(target error) bool { return target == errRetriable }

// OutcomeUnknown marks err as an error after which it is unknown whether the operation was done: a lost reply, a timeout, a disconnect.
// OutcomeUnknown(nil) is nil.
func OutcomeUnknown(err error) error {
	if err == nil {
		return nil
	}
	return unknownError{err}
}

type unknownError struct{ error }

func (e unknownError) Unwrap() error        { return e.error }
func (e unknownError) Retriable() bool      { return true }
func (e unknownError) OutcomeUnknown() bool { return true }

// PodOnly marks err as an error that affects only one pod, because the pod can cause it: a pod with CAP_NET_ADMIN can rename, move and delete the
// interfaces in its network namespace, all the time. The state of the node is not in doubt, so there is no resync that could repair the value; it is
// retried as long as it fails, whatever the error: the pod can also remove the cause. PodOnly(nil) is nil.
func PodOnly(err error) error {
	if err == nil {
		return nil
	}
	return podOnlyError{err, false}
}

// PodGone is PodOnly for errors of a pod that no longer exists: the value is not retried. PodGone(nil) is nil.
func PodGone(err error) error {
	if err == nil {
		return nil
	}
	return podOnlyError{err, true}
}

type podOnlyError struct {
	error
	gone bool
}

func (e podOnlyError) Unwrap() error { return e.error }
func (e podOnlyError) PodOnly() bool { return true }

// IsPodOnly reports whether err, or an error that it wraps, was marked by PodOnly.
func IsPodOnly(err error) bool {
	var p interface{ PodOnly() bool }
	return errors.As(err, &p) && p.PodOnly()
}

// isGone reports whether err, or an error that it wraps, was marked by PodGone.
func isGone(err error) bool {
	var p podOnlyError
	return errors.As(err, &p) && p.gone
}

// Lost marks err as the error of an operation that failed because values that it needs, given by their keys, are no longer in the dataplane. Their
// state becomes unknown: they are dumped, and created again, before the operation is retried. Lost(nil) is nil.
func Lost(err error, keys ...string) error {
	if err == nil {
		return nil
	}
	return lostError{err, keys}
}

type lostError struct {
	error
	keys []string
}

func (e lostError) Unwrap() error { return e.error }

// isOutcomeUnknown reports whether err, or an error that it wraps, implements OutcomeUnknown() bool and returns true from it.
func isOutcomeUnknown(err error) bool {
	var u interface{ OutcomeUnknown() bool }
	return errors.As(err, &u) && u.OutcomeUnknown()
}

// IsRetriable is the default for Descriptor.Retriable. For errors that implement Retriable() bool it returns their result. Deadlines, lost replies
// and the temporary errors of the operating system are retriable; all other errors are not.
func IsRetriable(err error) bool {
	var r interface{ Retriable() bool }
	if errors.As(err, &r) {
		return r.Retriable()
	}
	if errors.Is(err, errRetriable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Temporary() || errno == syscall.EBUSY || errno == syscall.ENOBUFS || errno == syscall.ENOMEM
	}
	return isOutcomeUnknown(err)
}
