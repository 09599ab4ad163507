package vppsup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
)

// State is the state of VPP.
type State string

// The states.
const (
	Starting State = "starting" // the process runs, its API does not respond yet
	Up       State = "up"
	Silent   State = "silent"  // it was up, and does not respond any more
	Waiting  State = "waiting" // between a crash and the next start
	Stopped  State = "stopped"
)

// Status is the answer of the health socket.
type Status struct {
	State    State     `json:"state"`
	PID      int       `json:"pid,omitempty"`
	Starts   int       `json:"starts"`
	Since    time.Time `json:"since"`
	LastExit string    `json:"lastExit,omitempty"` // why the previous process ended
	// LastOutage is the time from the end of the previous process until the API of the next one answered.
	LastOutage time.Duration `json:"lastOutageNanoseconds,omitempty"`
}

// board holds the status: the loop writes, the health socket reads.
type board struct {
	mu sync.Mutex
	s  Status // guarded by mu
}

func (b *board) get() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s
}

func (b *board) change(f func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.s)
}

// serveHealth answers GET /health on the socket: 200 while VPP is up, else 503, with the status as JSON either way.
func serveHealth(jobs *lifecycle.Group, socket string, status func() Status) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("health socket: remove the stale one: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("health socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		s, code := status(), http.StatusOK
		if s.State != Up {
			code = http.StatusServiceUnavailable
		}
		rest.WriteJSON(w, code, s)
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	jobs.Go("health socket", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

// Health queries the health socket, for the kubelet's probes. It returns an error unless VPP is up.
func Health(ctx context.Context, socket string) (Status, error) {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://supervisor/health", nil)
	if err != nil {
		return Status{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return Status{}, fmt.Errorf("supervisor: %w", err)
	}
	defer resp.Body.Close()
	var s Status
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&s); err != nil {
		return Status{}, fmt.Errorf("supervisor's answer: %w", err)
	}
	if s.State != Up {
		return s, fmt.Errorf("VPP is %s", s.State)
	}
	return s, nil
}
