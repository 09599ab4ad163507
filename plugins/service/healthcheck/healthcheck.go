package healthcheck

import (
	"context"
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
	closeTimeout = 500 * time.Millisecond // for all ports together; the agent gives Close a second
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

// Server listens at the health check ports of services. Its methods may be called from any goroutine. Set and Delete do not wait for network
// or log: the event loop calls them. They close ports before they return, so that another service can use them at once.
type Server struct {
	cfg  Config
	jobs *lifecycle.Group

	mu       sync.Mutex
	services map[svcmodel.ID]*endpoint // guarded by mu
	closed   bool                      // guarded by mu
}

// endpoint is the port of one service.
type endpoint struct {
	cfg  *Config
	id   svcmodel.ID
	port uint16
	gone chan struct{} // closed by stop

	mu       sync.Mutex
	local    int          // guarded by mu
	err      error        // the reason why the port is not served; guarded by mu
	stopped  bool         // guarded by mu
	listener net.Listener // nil: the port is not open; guarded by mu
}

// New returns a Server without services.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, services: map[svcmodel.ID]*endpoint{}, jobs: lifecycle.NewGroup(context.Background(), cfg.Log)}
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
		e = &endpoint{cfg: &s.cfg, id: id, port: port, gone: make(chan struct{})}
		s.services[id] = e
		s.jobs.Go("healthcheck-"+strconv.Itoa(int(port)), e.run)
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

// Close ends all health checks, and waits until their connections are closed.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for id, e := range s.services {
		e.stop()
		delete(s.services, id)
	}
	s.mu.Unlock()
	return s.jobs.Stop(closeTimeout)
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

// stop closes the port. The job of the endpoint closes the connections, and ends.
func (e *endpoint) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	close(e.gone)
	if e.listener != nil {
		_ = e.listener.Close() // its only error is that it is closed already
	}
}

// run serves the port until stop is called or ctx ends. A port that is in use may become free, so run retries with back-off.
func (e *endpoint) run(ctx context.Context) error {
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
		e.failed(e.serve(ctx))
		timer := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-e.gone:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// listen opens the port unless the endpoint has been stopped. It holds the lock meanwhile, so that no port is opened after stop.
func (e *endpoint) listen(ctx context.Context) (net.Listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil, net.ErrClosed
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(e.cfg.Address, strconv.Itoa(int(e.port))))
	if err != nil {
		return nil, err
	}
	e.listener, e.err = l, nil
	return l, nil
}

// serve opens the port and serves it until it is closed. Then it closes the connections.
func (e *endpoint) serve(ctx context.Context) error {
	l, err := e.listen(ctx)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: e, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout,
		MaxHeaderBytes: maxHeader, // any client can connect
	}
	defer srv.Close()
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	return srv.Serve(l)
}

// failed records the reason why the port is not served. It logs only the first failure, without the lock: a log may be slow.
func (e *endpoint) failed(err error) {
	e.mu.Lock()
	first := e.err == nil && !e.stopped
	if !e.stopped {
		e.err = err
	}
	e.mu.Unlock()
	if first {
		e.cfg.Log.Error("the health check port of a service cannot be served, so that its load balancer will avoid this node; "+
			"find the program that uses the port", "service", e.id, "port", e.port, "error", err)
	}
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
