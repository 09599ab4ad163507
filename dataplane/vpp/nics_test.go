package vpp

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
)

// Interfaces that the agent makes are not NICs, whatever their kind.
func TestNoNICs(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(loop("a", "", withIP("10.1.0.1/24")), &vpp_interfaces.Interface{
			Name: "v", Type: vpp_interfaces.Interface_VXLAN_TUNNEL, Enabled: true,
			Link: &vpp_interfaces.Interface_Vxlan{Vxlan: &vpp_interfaces.VxlanLink{
				SrcAddress: "10.1.0.1", DstAddress: "10.1.0.2", Vni: 10,
			}},
		})
		if names, err := NewNICs(a.conn).Names(); err != nil || len(names) > 0 {
			t.Errorf("NICs %v, %v", names, err)
		}
	})
}

// Callers that got the names of another VPP, or none, are informed.
func TestNICs(t *testing.T) {
	f := vppfake.New(vppfake.Config{NICs: []string{"GigabitEthernet0/8/0", "GigabitEthernet0/9/0"}})
	t.Cleanup(func() { f.Close() })
	g := &target{name: "fake", socket: filepath.Join(t.TempDir(), "api.sock"), fake: f}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, g, Deps{})
	n := NewNICs(a.conn)
	for range 2 {
		if names, err := n.Names(); err != nil || !slices.Equal(names, []string{"GigabitEthernet0/8/0", "GigabitEthernet0/9/0"}) {
			t.Errorf("NICs %v, %v", names, err)
		}
	}
	for range 4200 { // more often than a connection can have lanes
		if _, err := n.dump(); err != nil {
			t.Fatal(err)
		}
	}
	called := make(chan struct{}, 1)
	n.Watch(func() { called <- struct{}{} })
	if calls := n.changed(); len(calls) > 0 {
		t.Error("told of a change that there was not")
	}
	n.mu.Lock()
	n.boot, n.reported, n.names = "", nil, nil // as if VPP had been disconnected
	n.mu.Unlock()
	for _, call := range n.changed() {
		call()
	}
	select {
	case <-called:
	case <-time.After(time.Second):
		t.Error("not told that VPP has other NICs than was said")
	}
}

// TestNICsOfARestartedVPP: a VPP that starts again in its container has the PID of the previous one. Its NICs are read all the same.
func TestNICsOfARestartedVPP(t *testing.T) {
	g := &target{name: "fake", socket: filepath.Join(t.TempDir(), "api.sock")}
	start := func(nic string) *vppfake.Fake {
		f := vppfake.New(vppfake.Config{NICs: []string{nic}})
		t.Cleanup(func() { f.Close() })
		if err := f.Listen(g.socket); err != nil {
			t.Fatal(err)
		}
		return f
	}
	g.fake = start("GigabitEthernet0/8/0")
	a := newAgent(t, g, Deps{})
	n := NewNICs(a.conn)
	if names, err := n.Names(); err != nil || !slices.Equal(names, []string{"GigabitEthernet0/8/0"}) {
		t.Fatalf("NICs %v, %v", names, err)
	}
	before := a.conn.State()
	changed := make(chan struct{}, 8)
	a.conn.OnChange(func(conn.State) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err := g.fake.Close(); err != nil {
		t.Fatal(err)
	}
	start("GigabitEthernet0/9/0")
	for now := a.conn.State(); !now.Connected() || now.BootID == before.BootID; now = a.conn.State() {
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("not connected to the new VPP: %+v", now)
		}
	}
	if now := a.conn.State(); now.PID != before.PID {
		t.Fatalf("the PID of the new VPP is %d, want %d", now.PID, before.PID)
	}
	if names, err := n.Names(); err != nil || !slices.Equal(names, []string{"GigabitEthernet0/9/0"}) {
		t.Errorf("NICs %v, %v", names, err)
	}
}

// nicStore is a NICStore in memory.
type nicStore map[string][]byte

func (s nicStore) LoadOwn(key string) ([]byte, error) { return s[key], nil }

func (s nicStore) SaveOwn(key string, value []byte) error {
	s[key] = value
	return nil
}

// TestNICsAreRemembered checks that an agent that starts while VPP is disconnected has the NICs that the previous agent found, and
// reports a change of them.
func TestNICsAreRemembered(t *testing.T) {
	store := nicStore{}
	agentOf := func(nics ...string) (*NICs, *agent) {
		f := vppfake.New(vppfake.Config{NICs: nics})
		t.Cleanup(func() { f.Close() })
		g := &target{name: "fake", socket: filepath.Join(t.TempDir(), "api.sock"), fake: f}
		if err := f.Listen(g.socket); err != nil {
			t.Fatal(err)
		}
		a := newAgent(t, g, Deps{})
		n := NewNICs(a.conn)
		n.UseStore(store, slog.New(slog.DiscardHandler))
		return n, a
	}
	names := func(n *NICs, want ...string) {
		t.Helper()
		if got, err := n.Names(); err != nil || !slices.Equal(got, want) {
			t.Errorf("NICs %v, %v, want %v", got, err, want)
		}
	}
	first, _ := agentOf("Gig0", "Gig1")
	names(first, "Gig0", "Gig1")

	away := NewNICs(conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, slog.New(slog.DiscardHandler)))
	away.UseStore(store, slog.New(slog.DiscardHandler))
	names(away, "Gig0", "Gig1")

	second, a := agentOf("Gig2")
	connected := second.conn
	second.conn = away.conn
	names(second, "Gig0", "Gig1")
	second.conn = connected
	reported := 0
	second.Watch(func() { reported++ })
	for _, call := range second.changed() {
		call()
	}
	if names(second, "Gig2"); reported != 1 {
		t.Errorf("told %d times of other NICs", reported)
	}
	a.stop()
	away.UseStore(store, slog.New(slog.DiscardHandler))
	names(away, "Gig2")
	store[nicsKey] = []byte("{")
	names(func() *NICs { n := NewNICs(away.conn); n.UseStore(store, slog.New(slog.DiscardHandler)); return n }())
}
