package conn_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/cnat"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
)

// watched is a Conn with its recorded states.
type watched struct {
	*conn.Conn
	t      testing.TB
	states chan conn.State
}

func startConn(t testing.TB, cfg conn.Config) *watched {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c := &watched{Conn: conn.New(cfg, log), t: t, states: make(chan conn.State, 1000)}
	jobs := lifecycle.NewGroup(context.Background(), log)
	c.OnChange(func(s conn.State) { c.states <- s })
	c.Start(jobs)
	t.Cleanup(func() {
		c.Close()
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	c.expect(conn.Connected)
	return c
}

func (c *watched) expect(status conn.Status) conn.State {
	c.t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case s := <-c.states:
			if s.Status == status {
				return s
			}
		case <-timeout:
			c.t.Fatalf("not %v; now %+v", status, c.State())
		}
	}
}

func few() vpptest.Options { return vpptest.Options{FewPlugins: []string{"cnat", "af_packet"}} }

func TestRealConnect(t *testing.T) {
	v := vpptest.Start(t, few())
	c := startConn(t, conn.Config{Socket: v.Socket(), Require: []api.Message{
		new(ip.IPRouteAddDelV2), new(ip.IPRouteV2Dump), new(interfaces.SwInterfaceDump), new(cnat.CnatTranslationUpdate),
	}})
	s := c.State()
	if !s.NewBoot || !strings.HasPrefix(s.Version, "25.10") || s.PID != uint32(v.PID()) {
		t.Errorf("%+v", s)
	}
	if c.Writes() != 0 {
		t.Error("connecting must not write")
	}
	var reply vlib.CliInbandReply
	if err := c.Invoke(t.Context(), &vlib.CliInband{Cmd: "show version"}, &reply); err != nil || !strings.Contains(reply.Reply, "25.10") {
		t.Error(reply, err)
	}
	out, err := v.CLI("show version")
	if err != nil || !strings.Contains(out, "25.10") {
		t.Error(out, err)
	}
	// another connection to the same VPP finds the same boot
	if other := startConn(t, conn.Config{Socket: v.Socket()}); other.State().BootID != s.BootID {
		t.Errorf("%+v", other.State())
	}
}

func TestRealIncompatible(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{FewPlugins: []string{}})
	log := slog.New(slog.DiscardHandler)
	c := conn.New(conn.Config{Socket: v.Socket(), Require: []api.Message{new(cnat.CnatTranslationUpdate), new(vpe.ShowVersion)}}, log)
	jobs := lifecycle.NewGroup(context.Background(), log)
	defer jobs.Stop(time.Second)
	defer c.Close()
	states := make(chan conn.State, 10)
	c.OnChange(func(s conn.State) { states <- s })
	c.Start(jobs)
	s := <-states
	var e *conn.IncompatibleError
	if !errors.As(s.Err, &e) || len(e.Missing) != 2 || !strings.HasPrefix(e.Version, "25.10") {
		t.Errorf("%+v", s)
	}
}

func TestRealRestart(t *testing.T) {
	v := vpptest.Start(t, few())
	c := startConn(t, conn.Config{Socket: v.Socket()})
	l := c.Lane()
	lost, unknown, done := 0, 0, make(chan struct{})
	go func() { // VPP dies under full load
		defer close(done)
		for i := range 20000 {
			l.Request(routeReq(i, true), func(_ api.Message, err error) {
				if errors.Is(err, conn.ErrDisconnected) {
					lost++
				}
				if conn.OutcomeUnknown(err) {
					unknown++
				}
			})
		}
		l.Flush(context.Background())
	}()
	for c.Writes() < 1000 {
		time.Sleep(100 * time.Microsecond) // polls
	}
	killed := time.Now()
	v.Kill()
	c.expect(conn.Disconnected)
	noticed := time.Since(killed)
	<-done
	if lost == 0 || unknown == 0 || unknown > 128 {
		t.Errorf("%d lost, %d of them unknown", lost, unknown)
	}
	if err := v.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	if s := c.expect(conn.Connected); !s.NewBoot || s.PID != uint32(v.PID()) {
		t.Errorf("%+v", s)
	}
	t.Logf("death noticed after %v (kill included), new VPP %v after its API answered", noticed, time.Since(up))
	n := 0
	conn.Dump(l, &ip.IPRouteV2Dump{Table: ip.IPTable{}}, func(*ip.IPRouteV2Details) { n++ }, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	l.Flush(t.Context())
	if n == 0 || n > 100 {
		t.Errorf("%d routes in a new VPP", n)
	}
}

func TestRealFrozen(t *testing.T) {
	v := vpptest.Start(t, few())
	c := startConn(t, conn.Config{Socket: v.Socket(), HealthInterval: 100 * time.Millisecond, HealthTimeout: time.Second})
	if err := v.Freeze(); err != nil {
		t.Fatal(err)
	}
	l := c.Lane()
	var failed error
	l.Request(routeReq(1, true), func(_ api.Message, err error) { failed = err })
	l.Flush(t.Context())
	if !errors.Is(failed, conn.ErrNotResponding) || !conn.OutcomeUnknown(failed) {
		t.Error(failed)
	}
	c.expect(conn.NotResponding)
	if err := v.Thaw(); err != nil {
		t.Fatal(err)
	}
	if s := c.expect(conn.Connected); s.NewBoot {
		t.Errorf("%+v", s)
	}
	// requests that VPP had not read when it froze have been carried out before the new session
	found := false
	conn.Dump(l, &ip.IPRouteV2Dump{}, func(d *ip.IPRouteV2Details) {
		found = found || d.Route.Prefix == routeReq(1, true).Route.Prefix
	}, func(error) {})
	l.Flush(t.Context())
	if !found {
		t.Error("the new session began before the old one's requests were done")
	}
}

func TestRealEvents(t *testing.T) {
	v := vpptest.Start(t, few())
	c := startConn(t, conn.Config{Socket: v.Socket()})
	for range 2 { // the second client of the same events also receives them
		sub, err := c.Subscribe(t.Context(), new(interfaces.SwInterfaceEvent), &interfaces.WantInterfaceEvents{EnableDisable: 1, PID: 1}, 10)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		if _, err := v.CLI("create loopback interface"); err != nil {
			t.Fatal(err)
		}
		if _, err := v.CLI("set interface state loop0 up"); err != nil {
			t.Fatal(err)
		}
		if _, err := v.CLI("set interface state loop0 down"); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-sub.C:
			if _, ok := m.(*interfaces.SwInterfaceEvent); !ok {
				t.Errorf("%+v", m)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no event")
		}
	}
}

func TestRealChannel(t *testing.T) {
	v := vpptest.Start(t, few())
	c := startConn(t, conn.Config{Socket: v.Socket()})
	ch, err := c.NewAPIChannel()
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	if err := ch.SendRequest(new(memclnt.ControlPing)).ReceiveReply(new(memclnt.ControlPingReply)); err != nil {
		t.Error(err)
	}
	multi := ch.SendMultiRequest(new(interfaces.SwInterfaceDump))
	n := 0
	for {
		last, err := multi.ReceiveReply(new(interfaces.SwInterfaceDetails))
		if err != nil {
			t.Fatal(err)
		}
		if last {
			break
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d interfaces", n)
	}
}

// TAPs need /dev/vhost-net or its replacement.
func TestRealNetnsAndShim(t *testing.T) {
	if _, ok := vpptest.Find(); !ok {
		t.Skip(vpptest.ErrNoVPP)
	}
	ns := "vpptest-" + strings.ToLower(strings.ReplaceAll(time.Now().Format("150405.000"), ".", ""))
	if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
		t.Skipf("no network namespace: %v %s", err, out)
	}
	defer exec.Command("ip", "netns", "del", ns).Run()
	v := vpptest.Start(t, vpptest.Options{Netns: ns, Vhostshim: true, PerNodeCounters: true, Workers: 1, FewPlugins: []string{"af_packet"}})
	startConn(t, conn.Config{Socket: v.Socket()})
	if _, err := v.CLI("create tap id 7 host-if-name vtap7"); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ip", "-n", ns, "link", "show", "vtap7").CombinedOutput()
	if err != nil {
		t.Errorf("no TAP in VPP's namespace: %v %s", err, out)
	}
	if _, err := net.InterfaceByName("vtap7"); err == nil {
		t.Error("the TAP is in the wrong namespace")
	}
}

// A failing request among many does not affect the others.
func TestRealRefusal(t *testing.T) {
	v := vpptest.Start(t, few())
	c := startConn(t, conn.Config{Socket: v.Socket()})
	l := c.Lane()
	ok, refused := 0, 0
	for i := range 100 {
		conn.Call(l, routeReq(i, true), func(_ *ip.IPRouteAddDelV2Reply, err error) {
			if err == nil {
				ok++
			}
		})
		conn.Call(l, &af_packet.AfPacketDelete{HostIfName: "none"}, func(_ *af_packet.AfPacketDeleteReply, err error) {
			if conn.IsRetval(err, api.SYSCALL_ERROR_1) && !conn.OutcomeUnknown(err) {
				refused++
			}
		})
	}
	l.Flush(t.Context())
	if ok != 100 || refused != 100 {
		t.Errorf("%d done, %d refused", ok, refused)
	}
}
