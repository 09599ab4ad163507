package healthcheck

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
)

const (
	// weightHeader carries the number of endpoints, for load balancers that use it.
	weightHeader = "X-Load-Balancing-Endpoint-Weight"
	minRetry     = 100 * time.Millisecond
	maxRetry     = 30 * time.Second
	stopTimeout  = 2 * time.Second
	readTimeout  = 5 * time.Second
	maxHeader    = 4 << 10
)

// Config is the configuration of a Server.
type Config struct {
	// Healthy reports whether the dataplane can serve at all; nil means that it always can.
	Healthy func() bool
	// Address is the address to listen on; empty: all addresses of the host.
	Address string
	Log     *slog.Logger
}

// Server listens at the health check ports of services. Its methods do not block and may be called from any goroutine.
type Server struct {
	cfg Config

	mu       sync.Mutex
	services map[svcmodel.ID]*endpoint // guarded by mu
	closed   bool                      // guarded by mu
}

// endpoint is the port of one service.
type endpoint struct {
	cfg  *Config
	id   svcmodel.ID
	port uint16
	jobs *lifecycle.Group

	mu    sync.Mutex
	local int   // guarded by mu
	err   error // the reason why the port is not served; guarded by mu
}

// New returns a Server without services.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, services: map[svcmodel.ID]*endpoint{}}
}

// Set starts or updates the health check of a service on a port.
func (s *Server) Set(id svcmodel.ID, port uint16, localEndpoints int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	e := s.services[id]
	if e != nil && e.port != port {
		e.stop()
		e = nil
	}
	if e == nil {
		e = &endpoint{cfg: &s.cfg, id: id, port: port, jobs: lifecycle.NewGroup(context.Background(), s.cfg.Log)}
		s.services[id] = e
		e.jobs.Go("healthcheck-"+strconv.Itoa(int(port)), e.run)
	}
	e.mu.Lock()
	e.local = localEndpoints
	e.mu.Unlock()
}

// Delete ends the health check of a service.
func (s *Server) Delete(id svcmodel.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.services[id]; e != nil {
		e.stop()
		delete(s.services, id)
	}
}

// Close ends all health checks.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for id, e := range s.services {
		errs = append(errs, e.jobs.Stop(stopTimeout))
		delete(s.services, id)
	}
	return errors.Join(errs...)
}

// Failing returns the services whose port cannot be served, with the reason.
func (s *Server) Failing() map[svcmodel.ID]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[svcmodel.ID]error{}
	for id, e := range s.services {
		e.mu.Lock()
		if e.err != nil {
			out[id] = e.err
		}
		e.mu.Unlock()
	}
	return out
}

// stop ends the endpoint. It closes connections at once, so that it takes no time.
func (e *endpoint) stop() {
	if err := e.jobs.Stop(stopTimeout); err != nil {
		e.cfg.Log.Error("the health check port of a service is still served", "service", e.id, "port", e.port, "error", err)
	}
}

// run serves the port until ctx ends. A port that is in use may become free, so run retries with back-off.
func (e *endpoint) run(ctx context.Context) error {
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
		err := e.serve(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e.failed(err)
		timer := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func (e *endpoint) serve(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(e.cfg.Address, strconv.Itoa(int(e.port))))
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: e, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout,
		MaxHeaderBytes: maxHeader, // any client can connect
	}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	e.failed(nil)
	return srv.Serve(l)
}

// failed records the reason why the port is not served; nil means that it is served. It logs only the first failure.
func (e *endpoint) failed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && e.err == nil {
		e.cfg.Log.Error("the health check port of a service cannot be served, so that its load balancer will avoid this node; "+
			"find the program that uses the port", "service", e.id, "port", e.port, "error", err)
	}
	e.err = err
}

// answer is the body of a response, as in kube-proxy.
type answer struct {
	Service             service `json:"service"`
	LocalEndpoints      int     `json:"localEndpoints"`
	ServiceProxyHealthy bool    `json:"serviceProxyHealthy"`
}

type service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	local := e.local
	e.mu.Unlock()
	healthy := e.cfg.Healthy == nil || e.cfg.Healthy()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set(weightHeader, strconv.Itoa(local))
	status := http.StatusOK
	if local == 0 || !healthy {
		status = http.StatusServiceUnavailable
	}
	rest.WriteJSON(w, status, answer{service{e.id.Namespace, e.id.Name}, local, healthy})
}
