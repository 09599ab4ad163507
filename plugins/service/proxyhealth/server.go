package proxyhealth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/rest"
)

const (
	minRetry    = 100 * time.Millisecond
	maxRetry    = 30 * time.Second
	readTimeout = 5 * time.Second
	maxHeader   = 4 << 10
)

// DefaultAddress is the default address of kube-proxy, for both families.
const DefaultAddress = ":10256"

// Config is the configuration of a Server.
type Config struct {
	// Address is host:port; empty: nothing is served.
	Address string
	// Alive returns the reason why the dataplane serves nothing, Programmed the reason why changes of services do not get into it. They are
	// called often.
	Alive, Programmed func() error
	// Families holds the families ("IPv4", "IPv6") for which services are served.
	Families []string
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	// Flag is the name of the flag that Address comes from, for error messages.
	Flag string
}

// Server answers health checks. Its methods may be called from any goroutine.
type Server struct {
	cfg     Config
	health  health
	metrics map[string]*prometheus.CounterVec // by path
}

// New checks the configuration and registers the metrics. The Server starts to listen in Run.
func New(cfg Config) (*Server, error) {
	if err := checkAddress(cfg.Address); err != nil {
		return nil, fmt.Errorf("%s %q: %w; use host:port, or nothing at all to serve no health port", cfg.Flag, cfg.Address, err)
	}
	s := &Server{cfg: cfg, health: health{timeout: DefaultTimeout, families: cfg.Families}, metrics: map[string]*prometheus.CounterVec{}}
	for path, name := range map[string]string{"/healthz": "proxy_healthz_total", "/livez": "proxy_livez_total"} {
		s.metrics[path] = prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "kubeproxy", Name: name, Help: "Replies of the health port's " + path + " by status.",
		}, []string{"code"})
		if err := cfg.Metrics.Register(s.metrics[path]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func checkAddress(address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	if host == "" {
		return nil
	}
	_, err = netip.ParseAddr(host)
	return err
}

// SetNodeLeaving sets whether this node is being deleted, or will be deleted soon.
func (s *Server) SetNodeLeaving(leaving bool) { s.health.setLeaving(leaving) }

// Run serves until ctx ends. A port that is in use, for example by kube-proxy while it is being replaced, may become free, so Run retries.
func (s *Server) Run(ctx context.Context) error {
	if s.cfg.Address == "" {
		return nil
	}
	reported := false
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
		err := s.serve(ctx, func() { reported, retry = false, minRetry })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !reported {
			s.complain(err)
			reported = true
		}
		if err := pause(ctx, retry); err != nil {
			return err
		}
	}
}

// complain logs the reason why the port is not served, once.
func (s *Server) complain(err error) {
	if errors.Is(err, syscall.EADDRINUSE) {
		s.cfg.Log.Error("the port for the health checks of cloud load balancers is in use by another process, which replies to them; "+
			"kube-proxy may run on this node: remove it, because contiv serves services, or set "+s.cfg.Flag+" to another address or to "+
			"an empty value; the agent retries", "address", s.cfg.Address, "error", err)
		return
	}
	s.cfg.Log.Error("the port for the health checks of cloud load balancers cannot be served; check "+s.cfg.Flag+"; the agent retries",
		"address", s.cfg.Address, "error", err)
}

func (s *Server) serve(ctx context.Context, listening func()) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return err
	}
	listening()
	srv := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout,
		IdleTimeout: readTimeout, MaxHeaderBytes: maxHeader, // any host can connect
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	s.cfg.Log.Debug("the health port for load balancers is served", "address", s.cfg.Address)
	return srv.Serve(l)
}

// Watch checks the dataplane until ctx ends, so that a request can report how long changes have been waiting.
func (s *Server) Watch(ctx context.Context) error {
	if s.cfg.Address == "" {
		return nil
	}
	for {
		s.check()
		if err := pause(ctx, look); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (s *Server) check() { s.health.note(time.Now(), s.cfg.Alive(), s.cfg.Programmed()) }

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, metric := range s.metrics {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			s.check()
			body, ok := s.health.answer(time.Now(), path == "/healthz")
			status := http.StatusOK
			if !ok {
				status = http.StatusServiceUnavailable
			}
			metric.WithLabelValues(strconv.Itoa(status)).Inc()
			w.Header().Set("X-Content-Type-Options", "nosniff")
			rest.WriteJSON(w, status, body)
		})
	}
	return mux
}
