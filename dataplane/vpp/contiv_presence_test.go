package vpp

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestPluginPresence: a VPP tells by its messages whether it has the plugin.
func TestPluginPresence(t *testing.T) {
	for _, with := range []bool{true, false} {
		workers := map[bool]int{true: 1}[with]
		onVPP(t, vpptest.Options{Plugin: with, Workers: workers}, func(t *testing.T, g *target) {
			var log bytes.Buffer
			p := NewPlugin(newAgent(t, g, Deps{}).conn, slog.New(slog.NewTextHandler(&log, nil)))
			if p.Present() != with || log.Len() > 0 {
				t.Errorf("with the plugin %t: found %t; %s", with, !with, log.String())
			}
			if p.Workers() != workers {
				t.Errorf("%d workers found, want %d", p.Workers(), workers)
			}
		})
	}
}

// TestPluginIsRemembered: an agent that starts while VPP is away knows from its predecessor what VPP had; when that has changed, it
// is told. Without a predecessor it takes the plugin to be there: pods rather wait.
func TestPluginIsRemembered(t *testing.T) {
	store, log := nicStore{}, slog.New(slog.DiscardHandler)
	away := func() *Plugin {
		p := NewPlugin(conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, log), log)
		p.Remember(store)
		return p
	}
	if !away().Present() {
		t.Error("nothing is known, and pods would not wait for the source check")
	}
	for _, with := range []bool{false, true, false} {
		f := vppfake.New(vppfake.Config{Plugin: with, Workers: map[bool]int{true: 2}[with]})
		t.Cleanup(func() { f.Close() })
		g := &target{name: "fake", socket: filepath.Join(t.TempDir(), "api.sock"), fake: f}
		if err := f.Listen(g.socket); err != nil {
			t.Fatal(err)
		}
		p := NewPlugin(newAgent(t, g, Deps{}).conn, log)
		p.Remember(store)
		connected := p.conn
		p.conn = conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, log)
		before := p.Present()
		p.conn = connected
		told := 0
		p.Watch(func() { told++ })
		for _, call := range p.changed() {
			call()
		}
		if told != map[bool]int{true: 1}[before != with] || p.Present() != with {
			t.Errorf("VPP with the plugin %t, before %t: told %d times, found %t", with, before, told, p.Present())
		}
		if calls := p.changed(); len(calls) > 0 {
			t.Error("told of a change that there was not")
		}
		if p := away(); p.Present() != with || p.Workers() != map[bool]int{true: 2}[with] {
			t.Errorf("not remembered: %s", store[pluginKey])
		}
	}
}

// TestOtherPlugin: a plugin of another version is not used, and the log says what it lacks.
func TestOtherPlugin(t *testing.T) {
	f := vppfake.New(vppfake.Config{Plugin: true, Without: []string{"contiv_range_add_del"}})
	t.Cleanup(func() { f.Close() })
	g := &target{name: "fake", socket: filepath.Join(t.TempDir(), "api.sock"), fake: f}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	p := NewPlugin(newAgent(t, g, Deps{}).conn, slog.New(slog.NewTextHandler(&log, nil)))
	if p.Present() || !strings.Contains(log.String(), "another version") || !strings.Contains(log.String(), "contiv_range_add_del") {
		t.Errorf("found %t; %s", p.Present(), log.String())
	}
}
