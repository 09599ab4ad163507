package contiv

import (
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/lifecycle"
)

// TestPluginIsRemembered checks that an agent that starts while VPP is disconnected has the previous agent's result, and reports a
// change of it. Without a stored result it assumes that the plugin is present: pods rather wait.
func TestPluginIsRemembered(t *testing.T) {
	store, log := memory{}, slog.New(slog.DiscardHandler)
	away := func() *Plugin {
		p := NewPlugin(conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, log), log)
		p.UseStore(store)
		return p
	}
	if !away().Present() {
		t.Error("nothing is known, and pods would not wait for the source check")
	}
	for _, with := range []bool{false, true, false} {
		f := vppfake.New(vppfake.Config{Plugin: with, Workers: map[bool]int{true: 2}[with]})
		t.Cleanup(func() { f.Close() })
		socket := filepath.Join(t.TempDir(), "api.sock")
		if err := f.Listen(socket); err != nil {
			t.Fatal(err)
		}
		p := NewPlugin(connect(t, socket, log), log)
		p.UseStore(store)
		connected := p.conn
		p.conn = conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, log)
		before := p.Present()
		p.conn = connected
		reported := 0
		p.Watch(func() { reported++ })
		for _, call := range p.changed() {
			call()
		}
		if reported != map[bool]int{true: 1}[before != with] || p.Present() != with {
			t.Errorf("VPP with the plugin %t, before %t: told %d times, found %t", with, before, reported, p.Present())
		}
		if calls := p.changed(); len(calls) > 0 {
			t.Error("told of a change that there was not")
		}
		if p := away(); p.Present() != with || p.Workers() != map[bool]int{true: 2}[with] {
			t.Errorf("not remembered: %s", store[pluginKey])
		}
	}
}

// memory is a Store that exists during the test only.
type memory map[string][]byte

func (m memory) LoadOwn(key string) ([]byte, error) { return m[key], nil }

func (m memory) SaveOwn(key string, value []byte) error {
	m[key] = value
	return nil
}

// connect returns a Conn in the state Connected.
func connect(t *testing.T, socket string, log *slog.Logger) *conn.Conn {
	t.Helper()
	jobs := lifecycle.NewGroup(t.Context(), log)
	c := conn.New(conn.Config{Socket: socket}, log)
	up := make(chan struct{})
	var once sync.Once
	c.OnChange(func(s conn.State) {
		if s.Connected() {
			once.Do(func() { close(up) })
		}
	})
	c.Start(jobs)
	t.Cleanup(func() {
		c.Close()
		if err := jobs.Stop(5 * time.Second); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-up:
	case <-time.After(20 * time.Second):
		t.Fatal("the fake did not respond")
	}
	return c
}
