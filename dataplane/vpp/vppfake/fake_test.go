package vppfake_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/core"
	"go.uber.org/goleak"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns a fake with a connected client.
func client(t testing.TB, cfg vppfake.Config) (*vppfake.Fake, *core.Connection) {
	t.Helper()
	f := startFake(t, cfg)
	return f, dial(t, f.Socket())
}

// invoke sends a request and returns its reply, nil if no reply arrived.
func invoke[R api.Message](t testing.TB, conn api.Connection, req api.Message, reply R) (R, error) {
	t.Helper()
	return within(20*time.Second, conn, req, reply)
}

// within is like invoke with a deadline, for requests that get no reply.
func within[R api.Message](limit time.Duration, conn api.Connection, req api.Message, reply R) (R, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return reply, conn.Invoke(ctx, req, reply)
}

// inVain is the time for which a test waits for a reply that must not arrive.
const inVain = 300 * time.Millisecond

func loopback(t testing.TB, conn api.Connection, tag string) interface_types.InterfaceIndex {
	t.Helper()
	r, err := invoke(t, conn, &interfaces.CreateLoopback{}, &interfaces.CreateLoopbackReply{})
	if err != nil || r.Retval != 0 {
		t.Fatal(err, r.Retval)
	}
	if tag != "" {
		must(t, conn, &interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: r.SwIfIndex, Tag: tag})
	}
	return r.SwIfIndex
}

// must sends a request whose reply must be a success.
func must(t testing.TB, conn api.Connection, req api.Message) {
	t.Helper()
	s := &script{conn: conn}
	if tt, ok := t.(*testing.T); ok {
		s.t = tt
	}
	if reply := text(s.do(req)); strings.Contains(reply, "Retval") {
		t.Fatalf("%s: %s", text(req), reply)
	}
}

func TestCrashAndReconnect(t *testing.T) {
	f := startFake(t, vppfake.Config{})
	conn, events, err := core.AsyncConnect(socketclient.NewVppClient(f.Socket()), 50, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Disconnect()
	await := func(want core.ConnectionState) {
		t.Helper()
		for {
			select {
			case e := <-events:
				if e.State == want {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("no %s", want)
			}
		}
	}
	await(core.Connected)
	loopback(t, conn, "one")
	pid, _ := invoke(t, conn, &memclnt.ControlPing{}, &memclnt.ControlPingReply{})
	f.Crash()
	await(core.Disconnected)
	await(core.Connected)
	after, err := invoke(t, conn, &memclnt.ControlPing{}, &memclnt.ControlPingReply{})
	if err != nil || after.VpePID == pid.VpePID {
		t.Errorf("pid %d after %d, %v", after.VpePID, pid.VpePID, err)
	}
	if f.Boots() != 2 || strings.Contains(f.Dump(), "one") || len(f.Crashes()) != 1 {
		t.Errorf("boots %d crashes %v state %s", f.Boots(), f.Crashes(), f.Dump())
	}
}

func TestKillAndBoot(t *testing.T) {
	f := startFake(t, vppfake.Config{})
	f.Kill()
	if _, err := core.Connect(socketclient.NewVppClient(f.Socket())); err == nil {
		t.Error("connected to a dead VPP")
	}
	if f.Dump() != "down\n" {
		t.Error(f.Dump())
	}
	if err := f.Boot(); err != nil {
		t.Fatal(err)
	}
	loopback(t, dial(t, f.Socket()), "")
}

func TestRestartAfter(t *testing.T) {
	f, conn := client(t, vppfake.Config{RestartAfter: -1})
	f.Crash()
	if _, err := within(inVain, conn, &memclnt.ControlPing{}, &memclnt.ControlPingReply{}); err == nil || f.Boots() != 1 {
		t.Errorf("%v, %d boots", err, f.Boots())
	}
	f2 := startFake(t, vppfake.Config{RestartAfter: 5 * time.Millisecond})
	f2.Crash()
	for f2.Boots() < 2 {
		time.Sleep(time.Millisecond) // the restart sends no notification
	}
	loopback(t, dial(t, f2.Socket()), "")
}

func TestFreeze(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	f.Freeze()
	_, err := within(inVain, conn, &memclnt.ControlPing{}, &memclnt.ControlPingReply{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen VPP: %v", err)
	}
	f.Unfreeze()
	loopback(t, conn, "")
}

func TestServe(t *testing.T) {
	f := vppfake.New(vppfake.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	socket := filepath.Join(t.TempDir(), "api.sock")
	go func() { done <- f.Serve(ctx, socket) }()
	for f.Socket() == "" {
		time.Sleep(time.Millisecond) // Serve sends no notification
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("unix", socket); err == nil {
		t.Error("still there")
	}
}

func TestCounts(t *testing.T) {
	f, conn := client(t, vppfake.Config{})
	loopback(t, conn, "x")
	must(t, conn, &memclnt.ControlPing{})
	if n := f.Requests(); n["create_loopback"] != 1 || n["control_ping"] != 1 || f.Writes() != 2 {
		t.Errorf("%v, %d writes", n, f.Writes())
	}
	f.ResetCounts()
	f.Crash()
	if f.Writes() != 0 || len(f.Requests()) != 0 {
		t.Errorf("%v, %d writes", f.Requests(), f.Writes())
	}
}

func TestUnknownMessage(t *testing.T) {
	_, conn := client(t, vppfake.Config{})
	_, err := invoke(t, conn, &ip.IPMrouteAddDel{}, &ip.IPMrouteAddDelReply{})
	if err == nil || !strings.Contains(err.Error(), "unknown message") {
		t.Errorf("a message the fake does not know: %v", err)
	}
}

func TestAbortingRequest(t *testing.T) {
	f := startFake(t, vppfake.Config{})
	s := &script{t: t, socket: f.Socket()}
	for _, sc := range miscScenarios() {
		if strings.HasPrefix(sc.name, "fatal") {
			sc.run(s)
		}
	}
	if len(f.Crashes()) != 4 || f.Boots() != 5 {
		t.Errorf("crashes %v, boots %d", f.Crashes(), f.Boots())
	}
}

func TestManyRequestsBeforeTheFirstRead(t *testing.T) {
	f := startFake(t, vppfake.Config{})
	c := dialRaw(t, f.Socket())
	const n = 20000
	frames := c.encode(t, &interfaces.SwInterfaceDump{SwIfIndex: 0xffffffff}, 7)
	for range n {
		if _, err := c.conn.Write(frames); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		c.read(t)
	}
}

func TestConcurrentClients(t *testing.T) {
	f := startFake(t, vppfake.Config{})
	var wg sync.WaitGroup
	for range 4 {
		conn := dial(t, f.Socket())
		wg.Go(func() {
			for range 50 {
				i := loopback(t, conn, "")
				must(t, conn, &interfaces.SwInterfaceSetFlags{SwIfIndex: i, Flags: 1})
				must(t, conn, &interfaces.DeleteLoopback{SwIfIndex: i})
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			f.Dump()
			f.Requests()
			f.Send("local0", udp(1, 0, "10.0.0.1", "10.0.0.2")) //nolint:errcheck // anything goes
		}
	})
	wg.Wait()
	if got := f.Dump(); strings.Contains(got, "loop") {
		t.Error(got)
	}
}

// TestDumpOrder tests that the same configuration in any order of requests has the same dump, and a different one has another.
func TestDumpOrder(t *testing.T) {
	configure := func(rng *rand.Rand, pods []string) string {
		f, conn := client(t, vppfake.Config{Seed: rng.Uint64()})
		for range rng.IntN(4) { // interfaces that are created and deleted
			must(t, conn, &interfaces.DeleteLoopback{SwIfIndex: loopback(t, conn, "gone")})
		}
		for _, n := range rng.Perm(len(pods)) {
			i := loopback(t, conn, pods[n])
			steps := []api.Message{
				&interfaces.SwInterfaceSetFlags{SwIfIndex: i, Flags: 1},
				&interfaces.SwInterfaceAddDelAddress{SwIfIndex: i, IsAdd: true, Prefix: prefixWithAddr("10.0." + pods[n][4:] + ".1/24")},
				(&script{}).routeMsg(true, false, 0, "10.9."+pods[n][4:]+".0/24", []fibPath{via("", uint32(i))}),
			}
			for _, s := range rng.Perm(len(steps)) {
				must(t, conn, steps[s])
			}
		}
		return f.Dump()
	}
	pods := []string{"pod-1", "pod-2", "pod-3", "pod-4"}
	rng := rand.New(rand.NewPCG(1, 2))
	want := configure(rng, pods)
	for range 10 {
		if got := configure(rng, pods); got != want {
			t.Fatalf("dumps differ:\n%s", diff(want, got))
		}
	}
	if configure(rng, pods[1:]) == want {
		t.Error("dump does not see a missing pod")
	}
}

// recordingHost records its input.
type recordingHost struct {
	mu    sync.Mutex
	calls []string
	fail  bool
}

func (h *recordingHost) note(call string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
	if h.fail {
		return errors.New("no")
	}
	return nil
}

func (h *recordingHost) CreateTap(r vppfake.TapRequest) error { return h.note("create tap " + r.Name) }
func (h *recordingHost) DeleteTap(r vppfake.TapRequest) error { return h.note("delete tap " + r.Name) }
func (h *recordingHost) OpenAfPacket(name string) error       { return h.note("open " + name) }
func (h *recordingHost) CloseAfPacket(name string) error      { return h.note("close " + name) }

func TestHost(t *testing.T) {
	h := &recordingHost{}
	_, conn := client(t, vppfake.Config{Host: h})
	tap := &tapv2.TapCreateV3{ID: none, HostIfNameSet: true, HostIfName: "eth7"}
	r, err := invoke(t, conn, tap, &tapv2.TapCreateV3Reply{})
	if err != nil || r.Retval != 0 {
		t.Fatal(err, r.Retval)
	}
	must(t, conn, &tapv2.TapDeleteV2{SwIfIndex: r.SwIfIndex})
	if got := strings.Join(h.calls, ", "); got != "create tap eth7, delete tap eth7" {
		t.Error(got)
	}
	h.fail = true
	if r, _ := invoke(t, conn, tap, &tapv2.TapCreateV3Reply{}); r.Retval != -12 {
		t.Errorf("failing host: %d", r.Retval)
	}
}

func TestNoVhost(t *testing.T) {
	_, conn := client(t, vppfake.Config{NoVhost: true})
	if r, _ := invoke(t, conn, &tapv2.TapCreateV3{ID: none}, &tapv2.TapCreateV3Reply{}); r.Retval != -11 {
		t.Errorf("retval %d", r.Retval)
	}
}
