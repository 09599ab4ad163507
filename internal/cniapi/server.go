package cniapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// Handler answers a request. ctx ends when the caller does not wait any longer or the server is stopped; the handler has
// to return soon after. An error that is not an *Error is reported as an internal error.
type Handler func(ctx context.Context, req *Request) (*Result, error)

// ServerConfig configures a Server; every field except Socket has a default.
type ServerConfig struct {
	// Socket is the path to listen on.
	Socket string
	Log    *slog.Logger
	// MaxRequests bounds the requests that are served at the same time (default 256); others wait in the kernel's queue.
	MaxRequests int
	// DefaultTimeout is the timeout for requests that have none (default 30 s).
	DefaultTimeout time.Duration
	// IOTimeout bounds the reading of a request and the writing of a reply (default 5 s).
	IOTimeout time.Duration
	// Grace is how long running requests may continue after the stop of the server began (default 5 s).
	Grace time.Duration
	// TakeOver is how long to wait for another agent to release the socket (default 10 s).
	TakeOver time.Duration
	// OnListening is called with true when callers can connect, and with false when they no longer can. May be nil.
	OnListening func(bool)
}

// Server answers requests of contiv-cni.
type Server struct{ cfg ServerConfig }

// NewServer returns a server that does not listen yet.
func NewServer(cfg ServerConfig) *Server {
	orDefault := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	orDefault(&cfg.DefaultTimeout, 30*time.Second)
	orDefault(&cfg.IOTimeout, 5*time.Second)
	orDefault(&cfg.Grace, 5*time.Second)
	orDefault(&cfg.TakeOver, 10*time.Second)
	if cfg.MaxRequests <= 0 {
		cfg.MaxRequests = 256
	}
	if cfg.OnListening == nil {
		cfg.OnListening = func(bool) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg}
}

// Serve listens and answers requests with handle until ctx ends. Then it accepts no more connections, gives running
// requests the grace period, and returns when the last one is done: no goroutine of it outlives Serve.
func (s *Server) Serve(ctx context.Context, handle Handler) error {
	ln, err := listen(ctx, s.cfg.Socket, s.cfg.TakeOver)
	if err != nil {
		return err
	}
	defer ln.release()
	unhook := context.AfterFunc(ctx, ln.close)
	defer unhook()
	s.cfg.OnListening(true)
	defer s.cfg.OnListening(false)

	running, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	var wg sync.WaitGroup
	slots := make(chan struct{}, s.cfg.MaxRequests)
	for {
		conn, err := s.accept(ctx, ln, slots)
		if err != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			s.serveConn(ctx, running, conn, handle)
		})
	}
	ln.close()
	grace := time.AfterFunc(s.cfg.Grace, abort)
	defer grace.Stop()
	wg.Wait()
	return nil
}

// accept waits for a free slot and a connection; an error means that the server has to stop.
func (s *Server) accept(ctx context.Context, ln *listener, slots chan struct{}) (*net.UnixConn, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		conn, err := ln.AcceptUnix()
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		s.cfg.Log.Warn("CNI connection not accepted, trying again", "socket", s.cfg.Socket, "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond): // retries errors such as too many open files
		}
	}
}

// serveConn reads one request and writes one reply. ctx ends when the server is to stop; running ends when the server must
// no longer wait for running requests.
func (s *Server) serveConn(ctx, running context.Context, conn *net.UnixConn, handle Handler) {
	defer conn.Close()
	reply := wireReply{Version: Version}
	res, err := s.answer(ctx, running, conn, handle)
	if err != nil {
		reply.Error = asError(err)
	} else if reply.Result = res; res == nil {
		reply.Result = &Result{}
	}
	line, err := marshalLine(&reply)
	if err != nil {
		line, err = marshalLine(&wireReply{Version: Version, Error: asError(err)})
	}
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(s.cfg.IOTimeout))
		_, err = conn.Write(line)
	}
	if err != nil {
		s.cfg.Log.Debug("CNI reply not delivered", "error", err)
	}
}

func (s *Server) answer(ctx, running context.Context, conn *net.UnixConn, handle Handler) (*Result, error) {
	if err := checkPeer(conn); err != nil {
		s.cfg.Log.Warn("CNI connection rejected", "error", err)
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(s.cfg.IOTimeout))
	unhook := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	line, err := readLine(conn)
	unhook()
	if err != nil {
		e := Errorf(CodeIO, "read request: %s", err.Error())
		e.Retry = ctx.Err() != nil
		return nil, e
	}
	req, invalid := decodeRequest(line)
	if invalid != nil {
		return nil, invalid
	}
	reqCtx, cancel := context.WithTimeout(running, req.Timeout(s.cfg.DefaultTimeout))
	defer cancel()
	return s.guard(reqCtx, req, handle)
}

// guard converts a panic of the handler into an error of this one request.
func (s *Server) guard(ctx context.Context, req *Request, handle Handler) (res *Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.Error("CNI request panicked", "request", req.String(), "panic", r, "stack", string(debug.Stack()))
			res, err = nil, Errorf(CodeInternal, "%s: contiv-agent panicked: %v", req, r)
		}
	}()
	return handle(ctx, req)
}

func asError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Error{Code: CodeTryAgain, Msg: err.Error(), Retry: errors.Is(err, context.Canceled)}
	}
	return &Error{Code: CodeInternal, Msg: err.Error()}
}

// checkPeer checks which user runs the process at the other end.
func checkPeer(conn *net.UnixConn) error {
	uid, known, err := peerUID(conn)
	if err != nil {
		return fmt.Errorf("read the credentials of the caller: %w", err)
	}
	return allowUID(uid, known, os.Geteuid())
}

func allowUID(uid int, known bool, own int) error {
	if known && uid != 0 && uid != own {
		return Errorf(CodeForbidden, "user %d may not use contiv-agent's CNI socket: call as root", uid)
	}
	return nil
}
