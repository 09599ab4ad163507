package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestCauseOfMissingVPP: the readiness of a node without a usable VPP is the cause, once, and not the faults of all operations.
func TestCauseOfMissingVPP(t *testing.T) {
	db, err := clusterdb.Open(t.Context(), clusterdb.Config{Embedded: clusterdb.EmbeddedConfig{DataDir: t.TempDir()}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := poll.Until(t.Context(), 10*time.Millisecond, func() error {
		if db.Connected() {
			return nil
		}
		return errors.New("etcd is not connected")
	}); err != nil {
		t.Fatal(err)
	}
	var vpp error
	a := &agent{opts: &options{dataplane: dataplaneVPP}, db: &clusterDB{DB: db}, dataplane: &dataplane{}}
	a.dataplane.health.alive = func() error { return vpp }
	if err := a.notReady("healing has failed"); err == nil || err.Error() != "healing has failed" {
		t.Errorf("with VPP: %v", err)
	}
	vpp = errors.New("VPP is rejected")
	if err := a.notReady("healing has failed"); !errors.Is(err, vpp) || err.Error() != vpp.Error() {
		t.Errorf("without VPP: %v", err)
	}
}

// TestForeignPlugin: a node whose VPP runs a plugin of another version is not ready, and says what to do.
func TestForeignPlugin(t *testing.T) {
	fake := vppfake.New(vppfake.Config{Plugin: true, PluginVersion: "2.0.0"})
	t.Cleanup(func() { fake.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := fake.Listen(socket); err != nil {
		t.Fatal(err)
	}
	conf, err := conffile.Load(nil, contivconf.Env{NodeName: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	a := &agent{
		opts: &options{dataplane: dataplaneVPP, vppSocket: socket, kubernetes: kubernetesOptions{mode: kubernetesOff}},
		log:  log, jobs: lifecycle.NewGroup(t.Context(), log), conf: conf,
	}
	p := newVPP(a)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
		if err := a.jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}()
	if err := poll.Until(t.Context(), 10*time.Millisecond, func() error {
		err := p.health.alive()
		if err == nil {
			t.Fatal("ready")
		}
		if strings.Contains(err.Error(), "contiv plugin 2.0.0") && strings.Contains(err.Error(), "delete this node's VPP pod") {
			return nil
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
