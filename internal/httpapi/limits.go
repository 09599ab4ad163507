package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// limits bound what callers can make a listener hold. Memory is about busy answers, of which each holds one piece of what it
// lists, and the buffers of the connections.
type limits struct {
	connections int           // at once; the one that has waited longest makes room for a new one
	busy        int           // requests that look at something at once, other than public ones
	wait        time.Duration // for one of these to end
	piece       time.Duration // for the caller to take pieceSize bytes of an answer
	answer      time.Duration // for the caller to take a whole answer that looks at something
	public      time.Duration // for a caller without a token to take a whole answer
}

const pieceSize = 32 << 10

func defaultLimits() limits {
	return limits{connections: 128, busy: 8, wait: 10 * time.Second, piece: 10 * time.Second, answer: 2 * time.Minute,
		public: 10 * time.Second}
}

// errBusy is the answer to who has waited too long for others' answers.
var errBusy = errors.New("too many requests at once; try again in a moment")

// bound lets as many requests look at something at once as there are slots. What changes something is only for trusted callers,
// lasts, and holds little.
func (l limits) bound(next http.Handler) http.Handler {
	slots := make(chan struct{}, l.busy)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPublic(r) || !looks(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), l.wait)
		defer cancel()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			endAnswer(w, time.Now().Add(l.answer))
			next.ServeHTTP(w, r)
		case <-ctx.Done():
			w.Header().Set("Retry-After", "10")
			WriteError(w, http.StatusServiceUnavailable, errBusy)
		}
	})
}

// pace gives callers limited time to take what they have asked for.
func (l limits) pace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &paced{ResponseWriter: w, conn: http.NewResponseController(w), piece: l.piece}
		if isPublic(r) {
			p.end = time.Now().Add(l.public)
		}
		defer p.expect() // what is in the server's buffer still
		next.ServeHTTP(p, r)
	})
}

// paced is an answer whose pieces have to be taken in time.
type paced struct {
	http.ResponseWriter
	conn  *http.ResponseController
	piece time.Duration
	end   time.Time // of the whole answer; zero: none
}

// expect gives the caller the time for one piece.
func (p *paced) expect() {
	at := time.Now().Add(p.piece)
	if !p.end.IsZero() && p.end.Before(at) {
		at = p.end
	}
	_ = p.conn.SetWriteDeadline(at) // a recorder of tests has none
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (n int, err error) {
	for first := true; first || len(b) > 0; first = false {
		size := min(len(b), pieceSize)
		p.expect()
		done, err := p.ResponseWriter.Write(b[:size])
		n += done
		if err != nil {
			return n, err
		}
		b = b[size:]
	}
	return n, nil
}

// FlushError is for http.ResponseController.
func (p *paced) FlushError() error {
	p.expect()
	return p.conn.Flush()
}

// Unwrap is for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// endAnswer reports when the answer must have been taken.
func endAnswer(w http.ResponseWriter, at time.Time) {
	if p, ok := w.(*paced); ok {
		p.end = at
	}
}
