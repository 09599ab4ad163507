package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/cmd/contiv-init/internal/cniinstall"
)

// newCNI installs into a directory of the test.
func newCNI(t *testing.T, c *common, agent http.Handler) *cniOptions {
	t.Helper()
	dir := t.TempDir()
	source, bin := filepath.Join(dir, "source"), filepath.Join(dir, "bin")
	for _, d := range []string{source, bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(source, "contiv-cni"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "rest.sock"))
	if err != nil {
		t.Fatal(err)
	}
	rest := &http.Server{Handler: agent}
	served := make(chan struct{})
	go func() { defer close(served); _ = rest.Serve(l) }()
	t.Cleanup(func() { _ = rest.Close(); <-served })
	return &cniOptions{
		common: c, rest: l.Addr().String(), condition: true, interval: 10 * time.Second,
		install: cniinstall.Install{
			Source: source, Binaries: []string{"contiv-cni"}, BinDir: bin, ConfDir: filepath.Join(dir, "conf"),
			Conflist: "10-contiv.conflist", List: cniinstall.List{Version: "1.0.0", AgentSocket: "/run/contiv/cni.sock"},
		},
	}
}

// TestPaceOfCNI: the agent is queried often until it is ready. Operations that take long, or that affect more than this node, are not repeated
// as often: otherwise every node of the cluster would query an API server that does not respond ten times a second, and read all plugins each
// time.
func TestPaceOfCNI(t *testing.T) {
	var queried, agent atomic.Int32
	s := newStarter(t, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		queried.Add(1)
		http.Error(w, "away", http.StatusInternalServerError)
	}))
	t.Cleanup(srv.Close)
	s.server, s.node = srv.URL, "n1"
	const early = 10 // number of answers before it is ready
	o := newCNI(t, s.common, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if agent.Add(1) <= early {
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx) }()
	for end := time.Now().Add(20 * time.Second); queried.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the API server is not asked")
		}
	}
	if _, err := os.Stat(filepath.Join(o.install.ConfDir, o.install.Conflist)); err != nil {
		t.Errorf("the API server is not needed for the configuration: %v", err)
	}
	begin, before := time.Now(), queried.Load()
	time.Sleep(3 * time.Second) // there is nothing to wait for: the test is about requests that are not sent
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	took := time.Since(begin)
	if n := queried.Load() - before; n > 7 || agent.Load() != early+1 {
		t.Errorf("the API server was asked %d times within %s, the agent %d times", n, took, agent.Load())
	}
}

// TestNodeConditionIsReadSeldom: the plugins are checked on this node only, but all nodes query the condition at one API server.
func TestNodeConditionIsReadSeldom(t *testing.T) {
	var reads, writes atomic.Int32
	s := newStarter(t, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			writes.Add(1)
		} else {
			reads.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}`)
	}))
	t.Cleanup(srv.Close)
	s.server, s.node = srv.URL, "n1"
	o := newCNI(t, s.common, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	client, err := o.client()
	if err != nil {
		t.Fatal(err)
	}
	ready := false
	for range 10 {
		if err := o.step(t.Context(), client, &ready); err != nil {
			t.Fatal(err)
		}
	}
	if reads.Load() != 1 || writes.Load() != 1 {
		t.Errorf("%d reads and %d writes for 10 looks", reads.Load(), writes.Load())
	}
	o.conditionAt = o.conditionAt.Add(-conditionInterval)
	if err := o.step(t.Context(), client, &ready); err != nil || reads.Load() != 2 {
		t.Errorf("%d reads a minute later, %v", reads.Load(), err)
	}
}
