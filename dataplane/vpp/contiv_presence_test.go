package vpp

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
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

// TestForeignPlugin checks that a VPP with a plugin for which the agent is not made is neither used nor taken for a VPP without the plugin:
// there is no session, the error says what to do, and the next VPP is used.
func TestForeignPlugin(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  vppfake.Config
		says []string
	}{
		"newer":           {vppfake.Config{PluginVersion: "2.0.0"}, []string{"contiv plugin 2.0.0"}},
		"lacks a message": {vppfake.Config{PluginVersion: "1.0.9", Without: []string{"contiv_range_add_del"}}, []string{"contiv plugin 1.0.9", "contiv_range_add_del"}},
		"lacks versions": {vppfake.Config{Without: []string{"contiv_plugin_get_version", "contiv_plugin_get_version_reply"}},
			[]string{"of unknown version", "contiv_plugin_get_version"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Plugin = true
			socket := filepath.Join(t.TempDir(), "api.sock")
			foreign := listen(t, c.cfg, socket)
			log := slog.New(slog.DiscardHandler)
			states := make(chan conn.State, 100)
			link := conn.New(conn.Config{Socket: socket, Require: Messages(), Accept: contiv.Accept, RequestTimeout: 20 * time.Second}, log)
			link.OnChange(func(s conn.State) { states <- s })
			jobs := lifecycle.NewGroup(t.Context(), log)
			link.Start(jobs)
			t.Cleanup(func() {
				link.Close()
				if err := jobs.Stop(time.Minute); err != nil {
					t.Error(err)
				}
			})
			plugin := contiv.NewPlugin(link, log)
			rejected := &contiv.ForeignPluginError{}
			if s := next(t, states); s.Connected() || !errors.As(s.Err, &rejected) {
				t.Fatalf("the agent uses it: %+v", s)
			}
			for _, want := range append(c.says, "needs "+contiv.Version, "delete this node's VPP pod", "docs/upgrade.md") {
				if !strings.Contains(rejected.Error(), want) {
					t.Errorf("%q does not say %q", rejected, want)
				}
			}
			if !plugin.Present() || link.Writes() > 0 {
				t.Errorf("taken for a VPP without the plugin: %t; %d writes", !plugin.Present(), link.Writes())
			}
			if err := foreign.Close(); err != nil {
				t.Fatal(err)
			}
			listen(t, vppfake.Config{Plugin: true, PluginVersion: "1.7.0"}, socket)
			s := next(t, states)
			for !s.Connected() {
				s = next(t, states)
			}
			if !plugin.Present() {
				t.Error("the plugin of the next VPP is not found")
			}
		})
	}
}

// listen starts a fake at the socket.
func listen(t *testing.T, cfg vppfake.Config, socket string) *vppfake.Fake {
	t.Helper()
	f := vppfake.New(cfg)
	t.Cleanup(func() { f.Close() })
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	return f
}

func next(t *testing.T, states <-chan conn.State) conn.State {
	t.Helper()
	select {
	case s := <-states:
		return s
	case <-time.After(20 * time.Second):
		t.Fatal("no other state of the connection")
		return conn.State{}
	}
}
