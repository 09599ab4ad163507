package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"contiv.dev/vswitch/internal/rest"
)

// limits bound the resources that callers can occupy. Memory is determined by running answers, each of which holds one piece of
// its list, and by the buffers of the connections.
type limits struct {
	connections int           // at once; the one that has been inactive longest is closed for a new one
	busy        int           // read requests at once, other than public ones
	wait        time.Duration // for a read request to wait for a slot
	piece       time.Duration // for the caller to receive pieceSize bytes of an answer
	answer      time.Duration // for the caller to receive the whole answer to a read request
	public      time.Duration // for a caller without a token to receive a whole answer
}

const pieceSize = 32 << 10

func defaultLimits() limits {
	return limits{connections: 128, busy: 8, wait: 10 * time.Second, piece: 10 * time.Second, answer: 2 * time.Minute,
		public: 10 * time.Second}
}

// errBusy is the answer to a request that has waited too long for a slot.
var errBusy = errors.New("too many concurrent requests; try again in a moment")

// bound limits the read requests that run at once to the number of slots. Requests that change something are not limited: only
// trusted callers send them, they take long, and they hold little memory.
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
			limitAnswer(w, l.answer)
			next.ServeHTTP(w, r)
		case <-ctx.Done():
			w.Header().Set("Retry-After", "10")
			rest.WriteError(w, http.StatusServiceUnavailable, errBusy)
		}
	})
}

// pace gives callers limited time to receive the answer.
func (l limits) pace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &paced{ResponseWriter: w, conn: http.NewResponseController(w), piece: l.piece}
		if isPublic(r) {
			p.limit = l.public
		}
		defer p.expect() // the rest is still in the server's buffer
		next.ServeHTTP(p, r)
	})
}

// paced is an answer whose pieces have to be received in time.
type paced struct {
	http.ResponseWriter
	conn  *http.ResponseController
	piece time.Duration
	limit time.Duration // for the whole answer, from its first byte on; 0: none
	end   time.Time     // of limit; zero: the answer has not begun, or has no limit
}

// expect sets the deadline for the next piece.
func (p *paced) expect() {
	at := time.Now().Add(p.piece)
	if !p.end.IsZero() && p.end.Before(at) {
		at = p.end
	}
	_ = p.conn.SetWriteDeadline(at) // the recorder in tests does not support it
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (n int, err error) {
	if p.limit > 0 && p.end.IsZero() {
		p.end = time.Now().Add(p.limit) // not before: on a busy node the agent may need long until it answers
	}
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

// FlushError implements flushing for http.ResponseController.
func (p *paced) FlushError() error {
	p.expect()
	return p.conn.Flush()
}

// Unwrap returns the underlying writer for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// limitAnswer sets the time in which the caller must receive the answer.
func limitAnswer(w http.ResponseWriter, limit time.Duration) {
	if p, ok := w.(*paced); ok {
		p.limit = limit
	}
}
