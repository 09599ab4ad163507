package conn

import (
	"context"

	"go.fd.io/govpp/api"
)

// Lane is one pipelined stream of requests to VPP. Requests are sent immediately, within a bounded window; replies are
// matched in order and passed to callbacks, which run on the goroutine that uses the lane: inside Flush, or inside a call
// that has to wait for room in the window. Callbacks may start further requests. A Lane is used by one goroutine (the
// scheduler's).
//
// A Lane outlives connections: while VPP is disconnected every request ends immediately with ErrDisconnected, and requests
// in flight when the connection is lost end with ErrDisconnected (outcome unknown).
type Lane struct {
	lane // see pipeline.go
}

// Request starts a request with a single reply. done gets the reply, or an error: a *RetvalError when VPP refused,
// ErrTimeout or ErrDisconnected when the outcome is unknown.
func (l *Lane) Request(req api.Message, done func(reply api.Message, err error)) {
	l.request(req, done)
}

// Call is Request with the reply's type.
func Call[R api.Message](l *Lane, req api.Message, done func(reply R, err error)) {
	l.request(req, func(reply api.Message, err error) {
		r, _ := reply.(R)
		done(r, err)
	})
}

// Dump starts a multi-part request (…_dump): each is called for every details message, and done once at the end.
func Dump[D api.Message](l *Lane, req api.Message, each func(details D), done func(err error)) {
	l.dump(req, func(m api.Message) {
		if d, ok := m.(D); ok {
			each(d)
		}
	}, done)
}

// DumpPage is Dump for a request with a cursor whose reply has the start of the next page.
func DumpPage[D, R api.Message](l *Lane, req api.Message, each func(details D), done func(reply R, err error)) {
	l.start(pending{req: req, each: func(m api.Message) {
		if d, ok := m.(D); ok {
			each(d)
		}
	}, done: func(m api.Message, err error) {
		r, _ := m.(R)
		done(r, err)
	}})
}

// Flush waits until all requests, including those that callbacks start, have ended. It implements scheduler.Backend. The
// deadline of a request runs from the last answer to any request, since VPP answers in order.
func (l *Lane) Flush(ctx context.Context) { l.flush(ctx) }
