package ui

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/ui/fleet"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
)

//go:embed web
var embedded embed.FS

const (
	apiPrefix = "/api/"
	tracePath = "/api/trace"
	// maxBody bounds the size of a request.
	maxBody = 16 << 10
	// maxRequests is how many requests for data are answered at the same time; further ones are rejected.
	maxRequests = 16
	// stopTimeout is the time for answers in progress when the command ends.
	stopTimeout = 2 * time.Second
)

// Config holds the settings of the server.
type Config struct {
	// Listen is host:port on a loopback address; port 0: a random one.
	Listen string
	// Open connects to the cluster for reading.
	Open func(context.Context) (*client.Cluster, error)
	// Trace sends and follows a packet; its answer is that of contiv-netctl trace -o json. Nil: the page may not trace.
	Trace func(context.Context, TraceRequest) (any, error)
	// Version is shown on the page.
	Version string
}

// TraceRequest selects the packet to follow, with the parameters of contiv-netctl trace.
type TraceRequest struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Proto string `json:"proto,omitempty"` // icmp, tcp, udp; empty: the destination decides
	Port  uint16 `json:"port,omitempty"`
	IPv6  bool   `json:"ipv6,omitempty"`
}

// Server serves the page.
type Server struct {
	cfg      Config
	listener net.Listener
	secret   string
	fleet    *fleet.Fleet
	slots    chan struct{}
	handler  http.Handler
}

// New starts listening; Serve answers.
func New(cfg Config) (*Server, error) {
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: %w; use an address such as 127.0.0.1:8080", cfg.Listen, err)
	}
	if addr, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return nil, fmt.Errorf("--listen %s: only a loopback address, since the page has no TLS; from another machine use "+
			"ssh -L 8080:127.0.0.1:PORT", cfg.Listen)
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w; choose another port, or 0 for a random one", cfg.Listen, err)
	}
	s := &Server{cfg: cfg, listener: l, secret: newSecret(), fleet: fleet.New(cfg.Open), slots: make(chan struct{}, maxRequests)}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s.handler = &guard{
		secret: s.secret, cookie: "contiv-ui-" + port, posts: map[string]bool{tracePath: cfg.Trace != nil}, next: s.routes(),
	}
	return s, nil
}

// URL returns the address of the page with the secret.
func (s *Server) URL() string {
	return "http://" + s.listener.Addr().String() + "/?" + keyParameter + "=" + s.secret
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	jobs := lifecycle.NewGroup(ctx, slog.New(slog.DiscardHandler))
	jobs.Go("page", func(context.Context) error {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("page: %w", err)
		}
		return nil
	})
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-jobs.Failed():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	_ = server.Shutdown(stop) // open connections are closed below
	return errors.Join(failed, server.Close(), jobs.Stop(stopTimeout))
}

// routes returns all routes of the server; every other path does not exist.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for name, handler := range s.files() {
		mux.HandleFunc(name, handler)
	}
	for name, answer := range map[string]func(*http.Request) (any, error){
		"session":   s.session,
		"overview":  func(r *http.Request) (any, error) { return s.fleet.Overview(r.Context()) },
		"workloads": func(r *http.Request) (any, error) { return s.fleet.Workloads(r.Context()) },
		"drops":     func(r *http.Request) (any, error) { return s.fleet.Drops(r.Context()) },
		"events":    func(r *http.Request) (any, error) { return s.fleet.Events(r.Context(), r.URL.Query().Get("node")) },
		"event": func(r *http.Request) (any, error) {
			return s.fleet.Event(r.Context(), r.URL.Query().Get("node"), r.URL.Query().Get("number"))
		},
		"value": func(r *http.Request) (any, error) {
			return s.fleet.Value(r.Context(), r.URL.Query().Get("node"), r.URL.Query().Get("value"))
		},
	} {
		mux.HandleFunc("GET "+apiPrefix+name, s.api(answer))
	}
	if s.cfg.Trace != nil {
		mux.HandleFunc("POST "+tracePath, s.api(s.trace))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		rest.WriteError(w, http.StatusNotFound, fmt.Errorf("there is no %s", path.Clean(r.URL.Path)))
	})
	return mux
}

// files maps paths to the embedded files. No path leads to a file of the machine.
func (s *Server) files() map[string]http.HandlerFunc {
	out := map[string]http.HandlerFunc{}
	_ = fs.WalkDir(embedded, "web", func(name string, d fs.DirEntry, err error) error { // embedded: never fails
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		kind := mime.TypeByExtension(path.Ext(name))
		if path.Ext(name) == ".js" {
			kind = "text/javascript; charset=utf-8" // modules need this type, whatever the machine's table contains
		}
		route := "GET /" + strings.TrimPrefix(name, "web/")
		if name == "web/index.html" {
			route = "GET /{$}"
		}
		out[route] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(text) // fails only if the client has disconnected
		}
		return nil
	})
	return out
}

// session returns what the page needs about the server.
func (s *Server) session(*http.Request) (any, error) {
	return map[string]any{"version": s.cfg.Version, "trace": s.cfg.Trace != nil}, nil
}

func (s *Server) trace(r *http.Request) (any, error) {
	var req TraceRequest
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return nil, &fleet.BadRequest{Err: fmt.Errorf("body: %w", err)}
	}
	if req.From == "" || req.To == "" {
		return nil, &fleet.BadRequest{Err: errors.New("give a pod in from, and a pod, node, service or address in to")}
	}
	return s.cfg.Trace(r.Context(), req)
}

// api answers with JSON. It does not send an answer again that the page already has.
func (s *Server) api(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			w.Header().Set("Retry-After", "2")
			rest.WriteError(w, http.StatusServiceUnavailable, errors.New("too many requests at once; close some of the pages"))
			return
		}
		v, err := answer(r)
		var bad *fleet.BadRequest
		switch {
		case errors.As(err, &bad):
			rest.WriteError(w, http.StatusBadRequest, err)
			return
		case err != nil:
			rest.WriteError(w, http.StatusBadGateway, err)
			return
		}
		text, err := json.Marshal(v)
		if err != nil {
			rest.WriteError(w, http.StatusInternalServerError, err)
			return
		}
		sum := sha256.Sum256(text)
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(text) // fails only if the client has disconnected
	}
}
