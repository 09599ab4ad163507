package logs

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"contiv.dev/vswitch/internal/rest"
)

// Path is the path at which programs serve their newest lines.
const Path = "/contiv/v1/logs"

// DefaultLines is the default capacity of a ring.
const DefaultLines = 2000

// Ring keeps the newest lines. It is an io.Writer to which each line is written with one call.
type Ring struct {
	mu    sync.Mutex
	lines []string // guarded by mu
	next  int      // guarded by mu: index of the next line
	full  bool     // guarded by mu
}

// NewRing returns a ring that keeps size lines.
func NewRing(size int) *Ring { return &Ring{lines: make([]string, max(size, 1))} }

// Write implements io.Writer.
func (r *Ring) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[r.next] = string(line)
	if r.next++; r.next == len(r.lines) {
		r.next, r.full = 0, true
	}
	return len(line), nil
}

// Last returns the newest n lines, the oldest of them first; n of 0 or less: all.
func (r *Ring) Last(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	if r.full {
		all = append(all, r.lines[r.next:]...)
	}
	all = append(all, r.lines[:r.next]...)
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	return all
}

// Register publishes the lines at Path.
func (r *Ring) Register(h rest.HTTPHandlers) { h.RegisterHTTPHandler(Path, r.ServeHTTP) }

// ServeHTTP answers GET Path?last=N as text.
func (r *Ring) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := 0
	if text := req.URL.Query().Get("last"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			rest.WriteError(w, http.StatusBadRequest, fmt.Errorf("parameter last: %q is not a number of at least 1", text))
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(strings.Join(r.Last(n), ""))) // the client may have disconnected
}
