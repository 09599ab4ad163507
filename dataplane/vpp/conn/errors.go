package conn

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.fd.io/govpp/api"
)

// Errors of requests that end without an answer from VPP. Compare with errors.Is; the errors returned also implement
// OutcomeUnknown (VPP may or may not have carried the request out) and Retriable (the same request may succeed
// later).
var (
	// ErrDisconnected: there is no connection to VPP, or it was lost before the answer came.
	ErrDisconnected = errors.New("not connected to VPP")
	// ErrNotResponding: VPP is frozen. It is an ErrDisconnected.
	ErrNotResponding = fmt.Errorf("VPP is not responding: %w", ErrDisconnected)
	// ErrTimeout: VPP did not respond in time.
	ErrTimeout = errors.New("no reply from VPP in time")
	// ErrCanceled: the caller gave up waiting.
	ErrCanceled = errors.New("request cancelled by the caller")
	// ErrClosed: the Conn was closed.
	ErrClosed = fmt.Errorf("connection closed: %w", ErrDisconnected)
	// ErrRejected is wrapped by the errors of Accept for a VPP that cannot be used as long as it runs.
	ErrRejected = errors.New("VPP is rejected")
	// errNeverSend: the request would abort VPP (see guard.go) and was not sent.
	errNeverSend = errors.New("request not sent, because it would abort VPP")
	// ErrUnknownMessage: the connected VPP does not have the message, or has another version of it.
	ErrUnknownMessage = errors.New("message unknown to this VPP")
)

// RetvalError is VPP's refusal of a request.
type RetvalError struct {
	Message string // name of the request
	Retval  int32
}

func (e *RetvalError) Error() string {
	return fmt.Sprintf("%s: %v", e.Message, api.RetvalToVPPApiError(e.Retval))
}

// Unwrap returns govpp's error of the return value.
func (e *RetvalError) Unwrap() error { return api.RetvalToVPPApiError(e.Retval) }

// OutcomeUnknown returns false: VPP has answered.
func (e *RetvalError) OutcomeUnknown() bool { return false }

// Retriable returns true for the return values that mean that VPP could not carry out the request at this time: VPP
// was busy, or the host refused a system call (an interface that is still being moved into VPP's namespace, no
// memory, no device).
func (e *RetvalError) Retriable() bool {
	switch code := api.VPPApiError(e.Retval); code {
	case api.EAGAIN, api.BUSY, api.BFD_EAGAIN, api.QUEUE_FULL:
		return true
	default:
		return code <= api.SYSCALL_ERROR_1 && code >= api.SYSCALL_ERROR_10
	}
}

// IsRetval reports whether err is VPP's refusal with one of codes, or with any code if none is given.
func IsRetval(err error, codes ...api.VPPApiError) bool {
	var refused *RetvalError
	if !errors.As(err, &refused) {
		return false
	}
	return len(codes) == 0 || slices.Contains(codes, api.VPPApiError(refused.Retval))
}

// OutcomeUnknown reports whether it is unknown if VPP has carried out the request that ended with err.
func OutcomeUnknown(err error) bool {
	var e interface{ OutcomeUnknown() bool }
	return errors.As(err, &e) && e.OutcomeUnknown()
}

// retriable reports whether the request that ended with err may succeed later, unchanged.
func retriable(err error) bool {
	var e interface{ Retriable() bool }
	return errors.As(err, &e) && e.Retriable()
}

// requestError is the error of a request that ended without an answer from VPP.
type requestError struct {
	Message string        // name of the request
	Sent    bool          // whether it was sent, so VPP may have carried it out
	After   time.Duration // since it was sent
	Err     error         // one of the sentinels, or wraps it
}

func (e *requestError) Error() string {
	switch {
	case e.Sent:
		return fmt.Sprintf("%s: %v (sent %s before, outcome unknown)", e.Message, e.Err, e.After.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Err)
}

func (e *requestError) Unwrap() error { return e.Err }

// OutcomeUnknown returns true for a request that was sent.
func (e *requestError) OutcomeUnknown() bool { return e.Sent }

// Retriable returns true unless the request itself is at fault.
func (e *requestError) Retriable() bool {
	return !errors.Is(e.Err, errNeverSend) && !errors.Is(e.Err, ErrUnknownMessage) && !errors.Is(e.Err, errEncode)
}

var (
	errEncode = errors.New("cannot encode")
	errDecode = errors.New("cannot decode VPP's reply")
)
