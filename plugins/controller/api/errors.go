package api

import "errors"

// Errors of PushEvent and PushFollowUp.
var (
	// ErrClosed is returned after the controller has been requested to stop.
	ErrClosed = errors.New("event loop is closed")
	// ErrQueueFull means that the queue is full; the caller should try again later.
	ErrQueueFull = errors.New("event queue is full")
	// ErrNotHandled is returned by PushFollowUp when cause is not the event that is being handled.
	ErrNotHandled = errors.New("follow-up pushed for an event that is not being handled")
)

// FatalError is an error after which the agent cannot continue. The agent then reports that it is unhealthy. A FatalError never stops VPP.
type FatalError struct{ Err error }

// NewFatalError wraps err.
func NewFatalError(err error) error { return &FatalError{Err: err} }

// Error implements error.
func (e *FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *FatalError) Unwrap() error { return e.Err }

// AbortEventError stops the processing of the event: no further handler receives the event, and its transaction is not committed.
type AbortEventError struct{ Err error }

// NewAbortEventError wraps err.
func NewAbortEventError(err error) error { return &AbortEventError{Err: err} }

// Error implements error.
func (e *AbortEventError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *AbortEventError) Unwrap() error { return e.Err }
