package api

import "errors"

// The errors of PushEvent and PushFollowUp.
var (
	// ErrClosed is returned once the controller has been asked to stop.
	ErrClosed = errors.New("event loop is closed")
	// ErrQueueFull means that the queue is full; the caller should try again later.
	ErrQueueFull = errors.New("event queue is full")
	// ErrNotHandled is returned by PushFollowUp when cause is not the event being handled.
	ErrNotHandled = errors.New("follow-up pushed for an event that is not being handled")
)

// FatalError is an error after which the agent cannot continue: it reports itself unhealthy. It never stops VPP.
type FatalError struct{ Err error }

// NewFatalError wraps err.
func NewFatalError(err error) error { return &FatalError{Err: err} }

// Error implements error.
func (e *FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *FatalError) Unwrap() error { return e.Err }

// AbortEventError stops the processing of the event: no further handler sees it and its transaction is not committed.
type AbortEventError struct{ Err error }

// NewAbortEventError wraps err.
func NewAbortEventError(err error) error { return &AbortEventError{Err: err} }

// Error implements error.
func (e *AbortEventError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *AbortEventError) Unwrap() error { return e.Err }
