package vpp

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestPluginPresence checks that the messages of a VPP show whether it has the plugin.
func TestPluginPresence(t *testing.T) {
	for _, with := range []bool{true, false} {
		workers := map[bool]int{true: 1}[with]
		onVPP(t, vpptest.Options{Plugin: with, Workers: workers}, func(t *testing.T, g *target) {
			var log bytes.Buffer
			p := contiv.NewPlugin(newAgent(t, g, Deps{}).conn, slog.New(slog.NewTextHandler(&log, nil)))
			if p.Present() != with || log.Len() > 0 {
				t.Errorf("with the plugin %t: found %t; %s", with, !with, log.String())
			}
			if p.Workers() != workers {
				t.Errorf("%d workers found, want %d", p.Workers(), workers)
			}
		})
	}
}

// TestOtherPlugin checks that a plugin of another version is not used, and that the log lists what it lacks.
func TestOtherPlugin(t *testing.T) {
	f := vppfake.New(vppfake.Config{Plugin: true, Without: []string{"contiv_range_add_del"}})
	t.Cleanup(func() { f.Close() })
	g := &target{name: "fake", socket: filepath.Join(t.TempDir(), "api.sock"), fake: f}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	p := contiv.NewPlugin(newAgent(t, g, Deps{}).conn, slog.New(slog.NewTextHandler(&log, nil)))
	if p.Present() || !strings.Contains(log.String(), "another version") || !strings.Contains(log.String(), "contiv_range_add_del") {
		t.Errorf("found %t; %s", p.Present(), log.String())
	}
}
