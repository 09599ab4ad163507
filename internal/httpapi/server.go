package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
)

// Config describes where the server listens, and for which clients.
type Config struct {
	// Address is host:port; beyond loopback it needs CertFile, KeyFile and a token. Empty: no TCP.
	Address string
	// CertFile and KeyFile are the server's TLS certificate and key.
	CertFile, KeyFile string
	// TokenFile has the bearer token of callers on TCP that may send every request, ReadTokenFile that of callers that may only read,
	// such as Prometheus.
	TokenFile, ReadTokenFile string
	// Socket is the path of a unix socket that only the agent's user may open. Empty: none.
	Socket string
}

// Server serves the handlers that plugins register. It implements rest.HTTPHandlers.
type Server struct {
	cfg Config
	log *slog.Logger
	mux *http.ServeMux
	// token and readToken are nil if not configured; without both, no token is required.
	token, readToken *tokenFile
	bodyTimeout      time.Duration // for the caller to send the body
	tcp              net.Listener  // nil before Listen
	limits           limits

	mu    sync.Mutex
	paths map[string][]string // guarded by mu; methods by path
}

var _ rest.HTTPHandlers = (*Server)(nil)

// New checks the configuration; the server does not listen before Listen or Start.
func New(cfg Config, log *slog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log.With("component", "rest"), mux: http.NewServeMux(), paths: map[string][]string{},
		bodyTimeout: 30 * time.Second, limits: defaultLimits()}
	if err := s.validate(); err != nil {
		return nil, err
	}
	s.mux.HandleFunc("/", s.index)
	return s, nil
}

// validate fails closed: an address that is not certainly loopback needs TLS and a token.
func (s *Server) validate() error {
	if (s.cfg.CertFile == "") != (s.cfg.KeyFile == "") {
		return fmt.Errorf("%s: give both or none", flagTLS)
	}
	if err := s.openTokens(); err != nil {
		return err
	}
	if s.cfg.Address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(s.cfg.Address)
	if err != nil {
		return fmt.Errorf("%s %q: %w; use host:port", flagAddress, s.cfg.Address, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s %q: port %q is not a number from 0 to 65535; use host:port", flagAddress, s.cfg.Address, port)
	}
	if isLoopback(host) {
		return nil
	}
	if s.cfg.CertFile == "" || s.token == nil && s.readToken == nil {
		return fmt.Errorf("%s %s is not a loopback address: set %s, and %s or %s, or bind to 127.0.0.1",
			flagAddress, s.cfg.Address, flagTLS, flagToken, flagReadToken)
	}
	return nil
}

func (s *Server) openTokens() error {
	for _, t := range []struct {
		flag, path string
		into       **tokenFile
	}{{flagToken, s.cfg.TokenFile, &s.token}, {flagReadToken, s.cfg.ReadTokenFile, &s.readToken}} {
		if t.path == "" {
			continue
		}
		token, err := openToken(t.path, s.log)
		if err != nil {
			return fmt.Errorf("%s: %w", t.flag, err)
		}
		*t.into = token
	}
	if s.token != nil && s.readToken.is(s.token.current()) {
		return fmt.Errorf("%s and %s have the same token: make a different token for read-only users", flagToken, flagReadToken)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// RegisterHTTPHandler implements rest.HTTPHandlers. Registering a path twice is a programming error and panics, as in
// net/http.
func (s *Server) RegisterHTTPHandler(path string, handler http.HandlerFunc, methods ...string) {
	if len(methods) == 0 {
		methods = []string{http.MethodGet}
	}
	s.mu.Lock()
	s.paths[path] = methods
	s.mu.Unlock()
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		allowed := slices.Contains(methods, r.Method) || r.Method == http.MethodHead && slices.Contains(methods, http.MethodGet)
		if !allowed {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			rest.WriteError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s does not support %s; use %s", path, r.Method, strings.Join(methods, " or ")))
			return
		}
		if !looks(r) && !trusted(r) {
			rest.WriteError(w, http.StatusForbidden, fmt.Errorf("%s %s is only for root, on the unix socket %s, or with the token of %s "+
				"(that of %s only reads)", r.Method, path, s.cfg.Socket, flagToken, flagReadToken))
			return
		}
		handler(w, r)
	})
}

// index lists the paths, and answers 404 for every other path.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		rest.WriteError(w, http.StatusNotFound, fmt.Errorf("there is no %s; GET / lists all paths", r.URL.Path))
		return
	}
	s.mu.Lock()
	lines := make([]string, 0, len(s.paths))
	for path, methods := range s.paths {
		lines = append(lines, fmt.Sprintf("%-8s %s", strings.Join(methods, ","), path))
	}
	s.mu.Unlock()
	slices.Sort(lines)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// Listen opens the TCP address, and reads the certificate, before Start: an address that another program uses, or a certificate that
// cannot be read, is reported before the program has done anything. The server does not respond yet.
func (s *Server) Listen() (err error) {
	if s.cfg.Address != "" && s.tcp == nil {
		s.tcp, err = s.listenTCP()
	}
	return err
}

// Start listens and serves as jobs of the group.
func (s *Server) Start(jobs *lifecycle.Group) error {
	if err := s.Listen(); err != nil {
		return err
	}
	if s.tcp != nil {
		s.serve(jobs, "rest", s.tcp, s.authenticate)
	}
	if s.cfg.Socket != "" {
		l, err := listenUnix(s.cfg.Socket)
		if err != nil {
			return err
		}
		s.serve(jobs, "rest socket", l, trust)
	}
	return nil
}

func (s *Server) listenTCP() (net.Listener, error) {
	l, err := net.Listen("tcp", s.cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; is another agent running?", flagAddress, err)
	}
	if s.cfg.CertFile == "" {
		return l, nil
	}
	certs, err := openCertificate(s.cfg.CertFile, s.cfg.KeyFile, s.log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", flagTLS, err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{GetCertificate: certs.get, MinVersion: tls.VersionTLS12}), nil
}

// listenUnix creates a socket for the agent's user only. A socket that an earlier agent left behind is replaced.
func listenUnix(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("REST socket: %w", err)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("REST socket %s: another agent is serving it", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("REST socket: remove the stale one: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("REST socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("REST socket: %w", err), l.Close())
	}
	return l, nil
}

// serve answers requests on a listener. admit determines the permissions of a caller.
func (s *Server) serve(jobs *lifecycle.Group, name string, l net.Listener, admit func(http.Handler) http.Handler) {
	all := newConnLimiter(s.limits.connections)
	srv := &http.Server{
		Handler:           s.awaitBody(s.limits.pace(admit(s.limits.bound(s.guard(s.mux))))),
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ConnContext: all.enter, ConnState: all.changed,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	jobs.Go(name, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() {
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			if srv.Shutdown(grace) != nil {
				_ = srv.Close()
			}
		})
		defer stop()
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

// awaitBody requires every sender to send the body within bodyTimeout. A read timeout of the server would also end long answers.
func (s *Server) awaitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		if r.ContentLength != 0 && conn.SetReadDeadline(time.Now().Add(s.bodyTimeout)) == nil {
			r.Body = &awaited{r.Body, conn}
		}
		next.ServeHTTP(w, r)
	})
}

// awaited is a request body that has a time limit until it is complete.
type awaited struct {
	io.ReadCloser
	conn *http.ResponseController
}

// Read implements io.Reader.
func (a *awaited) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		_ = a.conn.SetReadDeadline(time.Time{}) // setting a deadline has worked before
	}
	return n, err
}

// guard limits bodies, logs requests and converts a panic of a handler into an answer.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		r.Body = http.MaxBytesReader(w, r.Body, 8<<20)
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("REST handler panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				rest.WriteError(w, http.StatusInternalServerError, errors.New("internal error; the agent's log has the details"))
			}
			s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "took", time.Since(start))
		}()
		next.ServeHTTP(w, r)
	})
}
