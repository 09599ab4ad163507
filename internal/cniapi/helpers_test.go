package cniapi

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server until the caller calls stop, which returns the error of Serve. serve returns when the socket exists.
func serve(t *testing.T, cfg ServerConfig, handle Handler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- NewServer(cfg).Serve(ctx, handle) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(20 * time.Second):
			t.Error("server does not stop")
			return errors.New("server does not stop")
		}
	}
	t.Cleanup(func() { _ = stop() })
	client := &Client{Socket: cfg.Socket, RetryFor: 10 * time.Second}
	if _, err := client.Do(timeout(t, 10*time.Second), &Request{Command: Status}); err != nil {
		t.Fatalf("server does not respond: %v", err)
	}
	return stop
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "run", "cni.sock") }

func addRequest(container string) *Request {
	return &Request{Command: Add, ContainerID: container, IfName: "eth0", Netns: "/run/netns/" + container}
}

func wantCode(t *testing.T, err error, code uint) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got error %v, want code %d", err, code)
	}
	return e
}
