package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/test/testbed/poll"
)

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
