package conn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
)

func TestConnectsWhenVPPAppears(t *testing.T) {
	s := newServer(t)
	s.stop()
	c := newClient(t, Config{Socket: s.path, Reconnect: 5 * time.Millisecond})
	if state := c.expect(Disconnected); !errors.Is(state.Err, ErrDisconnected) || !strings.Contains(state.Err.Error(), "socket") {
		t.Error(state.Err)
	}
	err := c.Invoke(t.Context(), new(vpe.ShowVersion), nil)
	if !errors.Is(err, ErrDisconnected) || OutcomeUnknown(err) || !retriable(err) {
		t.Error(err)
	}
	s.start()
	state := c.expect(Connected)
	if !state.NewBoot || state.Session != 1 || state.PID != 42 || state.Version != "25.10-test" || state.BootID == "" || state.Err != nil {
		t.Errorf("%+v", state)
	}
}

// A lost connection and a restarted VPP are distinguished, even if the process number is the same, as in a
// container.
func TestRestartIsNotLostConnection(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	boot := c.State().BootID
	s.drop()
	if state := c.expect(Connected); state.NewBoot || state.BootID != boot || state.Session != 2 {
		t.Errorf("lost connection: %+v", state)
	}
	s.stop()
	s.start()
	if state := c.expect(Connected); !state.NewBoot || state.BootID == boot || state.Session != 3 {
		t.Errorf("restart: %+v", state)
	}
}

func TestFrozen(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{HealthInterval: 40 * time.Millisecond, HealthTimeout: soon})
	l := c.Lane()
	var o outcome
	s.freeze(true)
	start := time.Now()
	l.Request(up(1), o.done)
	flush(l)
	if took := time.Since(start); took > longTimeout {
		t.Errorf("noticed after %v", took)
	}
	if len(o.errs) != 1 || !errors.Is(o.errs[0], ErrNotResponding) || !OutcomeUnknown(o.errs[0]) {
		t.Fatal(o.errs)
	}
	if state := c.expect(NotResponding); state.NewBoot || !errors.Is(state.Err, ErrNotResponding) {
		t.Errorf("%+v", state)
	}
	l.Request(up(2), o.done)
	flush(l)
	if len(o.errs) != 2 || !errors.Is(o.errs[1], ErrDisconnected) || OutcomeUnknown(o.errs[1]) {
		t.Fatal(o.errs)
	}
	s.freeze(false)
	if state := c.expect(Connected); state.NewBoot || state.Session != 2 {
		t.Errorf("%+v", state)
	}
	if n := s.count(setFlags); n != 1 {
		t.Errorf("%d requests", n)
	}
	l.Request(up(3), o.done)
	flush(l)
	if o.answered != 1 {
		t.Errorf("%+v", o)
	}
}

func TestFrozenThenGone(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{HealthInterval: 40 * time.Millisecond, HealthTimeout: soon})
	s.freeze(true)
	c.expect(NotResponding)
	s.drop()
	c.expect(Disconnected)
	s.freeze(false)
	if state := c.expect(Connected); state.Session != 2 {
		t.Errorf("%+v", state)
	}
}

// A VPP that is frozen from the start accepts connections (in fact the kernel does) but never answers.
func TestFrozenWhileConnecting(t *testing.T) {
	s := newServer(t)
	s.reply(func(req api.Message) ([]api.Message, bool) { return nil, true })
	c := newClient(t, Config{Socket: s.path, Reconnect: 5 * time.Millisecond, RequestTimeout: soon, HealthTimeout: soon})
	if state := c.expect(Disconnected); !errors.Is(state.Err, ErrTimeout) {
		t.Errorf("%+v", state)
	}
	s.reply(nil)
	c.expect(Connected)
}

func TestIncompatible(t *testing.T) {
	s := newServer(t)
	flags, dump, details := up(0), new(interfaces.SwInterfaceDump), new(interfaces.SwInterfaceDetails)
	s.mu.Lock()
	delete(s.ids, messageKey(flags))
	delete(s.ids, messageKey(details))
	s.ids["sw_interface_details_00000000"] = 9999
	s.mu.Unlock()
	c := newClient(t, Config{Socket: s.path, Require: []api.Message{flags, dump, new(vpe.ShowVersion)}, Reconnect: 5 * time.Millisecond, ReconnectMax: time.Hour})
	state := c.expect(Disconnected)
	var e *IncompatibleError
	if !errors.As(state.Err, &e) || len(e.Missing) != 1 || len(e.Differ) != 1 {
		t.Fatalf("%+v", state.Err)
	}
	for _, want := range []string{"25.10-test", messageKey(flags), messageKey(details), "packagecloud.io/fdio/release", "2 of 6"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q does not say %q", e, want)
		}
	}
	// a restart with the right VPP is detected at once, however long the pause
	s.stop()
	s.mu.Lock()
	s.ids[messageKey(flags)], s.ids[messageKey(details)] = 9998, 9997
	s.byID[9998] = newMsgType(flags)
	s.mu.Unlock()
	s.start()
	c.expect(Connected)
}

func TestInvoke(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{RequestTimeout: soon})
	var version vpe.ShowVersionReply
	if err := c.Invoke(t.Context(), new(vpe.ShowVersion), &version); err != nil || version.Version != "25.10-test" {
		t.Error(version, err)
	}
	if err := c.Invoke(t.Context(), new(vpe.ShowVersion), new(memclnt.ControlPingReply)); err == nil {
		t.Error("the wrong type of reply was accepted")
	}
	s.reply(func(req api.Message) ([]api.Message, bool) {
		switch req.(type) {
		case *interfaces.SwInterfaceSetFlags:
			return nil, true
		case *vpe.ShowVersion:
			return []api.Message{&vpe.ShowVersionReply{Retval: -1}}, true
		}
		return nil, false
	})
	if err := c.Invoke(t.Context(), new(vpe.ShowVersion), nil); !IsRetval(err, api.UNSPECIFIED) {
		t.Error(err)
	}
	if err := c.Invoke(t.Context(), up(1), nil); !errors.Is(err, ErrTimeout) || !OutcomeUnknown(err) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Invoke(ctx, up(1), nil); !errors.Is(err, ErrCanceled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.reply(nil)
	s.drop()
	c.expect(Connected)
	if len(c.calls.waiting) != 0 {
		t.Errorf("left behind: %v", c.calls.waiting)
	}
}

func TestEvents(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	want := &interfaces.WantInterfaceEvents{EnableDisable: 1}
	sub, err := c.Subscribe(t.Context(), new(interfaces.SwInterfaceEvent), want, 1)
	if err != nil {
		t.Fatal(err)
	}
	receive := func() {
		t.Helper()
		select {
		case m := <-sub.C:
			if e, ok := m.(*interfaces.SwInterfaceEvent); !ok || e.SwIfIndex != 3 {
				t.Errorf("%+v", m)
			}
		case <-time.After(longTimeout):
			t.Fatal("no event")
		}
	}
	event := &interfaces.SwInterfaceEvent{SwIfIndex: 3}
	s.event(event)
	receive()
	s.drop()
	c.expect(Connected) // the subscription is renewed before this state
	if n := s.count("want_interface_events"); n != 2 {
		t.Errorf("subscribed %d times", n)
	}
	s.event(event)
	s.event(event)
	for sub.Dropped() == 0 {
		time.Sleep(time.Millisecond) // polls for the overflow
	}
	receive()
	sub.Close()
	s.event(event)
	if err := c.Invoke(t.Context(), new(vpe.ShowVersion), nil); err != nil { // the answer comes after the event
		t.Fatal(err)
	}
	if len(sub.C) != 0 || c.Stats().Dropped != 1 {
		t.Error("delivered after Close", c.Stats())
	}
	s.reply(func(req api.Message) ([]api.Message, bool) {
		return []api.Message{&interfaces.WantInterfaceEventsReply{Retval: -9}}, true
	})
	if _, err := c.Subscribe(t.Context(), event, want, 1); !IsRetval(err, api.UNIMPLEMENTED) {
		t.Error(err)
	}
	s.reply(nil)
}

func TestChannel(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{RequestTimeout: soon})
	ch, err := c.NewAPIChannel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.SendRequest(new(vpe.ShowVersion)).ReceiveReply(new(vpe.ShowVersionReply)); err != nil {
		t.Error(err)
	}
	if err := ch.SendRequest(new(cnat.CnatTranslationUpdate)).ReceiveReply(new(cnat.CnatTranslationUpdateReply)); !errors.Is(err, errNeverSend) {
		t.Error(err)
	}
	ch.Close()
	s.drop()
	c.expect(Connected)
	for { // the second connection detects the loss itself
		ch, err = c.NewAPIChannelBuffered(10, 10)
		if err != nil {
			t.Fatal(err)
		}
		err = ch.SendRequest(new(vpe.ShowVersion)).ReceiveReply(new(vpe.ShowVersionReply))
		ch.Close()
		if err == nil {
			return
		}
	}
}

func TestCloseEndsRequests(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	s.freeze(true)
	l := c.Lane()
	var o outcome
	l.Request(up(1), o.done)
	for s.count(setFlags) == 0 {
		time.Sleep(time.Millisecond) // polls
	}
	c.Close()
	flush(l)
	if len(o.errs) != 1 || !errors.Is(o.errs[0], ErrClosed) || !OutcomeUnknown(o.errs[0]) {
		t.Error(o.errs)
	}
	if _, err := c.NewAPIChannel(); err == nil {
		t.Error("a channel after Close")
	}
	s.freeze(false)
}

func TestGarbage(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	s.mu.Lock()
	for conn := range s.conns {
		s.raw(conn, []byte{0, 100}) // a reply without content
		s.raw(conn, []byte{0xff, 0xff, 1, 2, 3})
	}
	s.mu.Unlock()
	if err := c.Invoke(t.Context(), new(vpe.ShowVersion), nil); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	for conn := range s.conns {
		s.raw(conn, nil) // impossible length: the stream is out of step
	}
	s.mu.Unlock()
	if state := c.expect(Disconnected); !strings.Contains(state.Err.Error(), "message of 0 bytes") {
		t.Error(state.Err)
	}
	c.expect(Connected)
}

func TestMutating(t *testing.T) {
	for name, want := range map[string]bool{
		"ip_route_v2_dump": false, "control_ping": false, "show_version": false, "want_interface_events": false,
		"lcp_itf_pair_get_v2": false, "sw_interface_get_table": false, "nat44_show_running_config": false,
		"ip_route_lookup_v2": false, "classify_table_ids": false,
		"ip_route_add_del_v2": true, "sw_interface_set_flags": true, "acl_add_replace": true, "cli_inband": true,
		"acl_plugin_use_hash_lookup_set": true, "punt_socket_register": true,
	} {
		if mutating(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestBigMessages(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	long := strings.Repeat("x", 3*readBuffer)
	s.reply(func(req api.Message) ([]api.Message, bool) {
		return []api.Message{&memclnt.GetAPIJSONReply{JSON: long}, &memclnt.GetAPIJSONReply{JSON: "after"}}, true
	})
	var reply memclnt.GetAPIJSONReply
	for range 3 {
		if err := c.Invoke(t.Context(), new(memclnt.GetAPIJSON), &reply); err != nil || reply.JSON != long {
			t.Fatal(len(reply.JSON), err)
		}
	}
}

// A CLI command counts as a write unless it only shows something.
func TestCommandLinesAreWritesUnlessTheyShow(t *testing.T) {
	var c counters
	c.countInvoked("cli_inband", &vlib.CliInband{Cmd: "show buffers"})
	if n := c.writes.Load(); n != 0 {
		t.Errorf("show buffers counts as %d writes", n)
	}
	c.countInvoked("cli_inband", &vlib.CliInband{Cmd: "set interface state tap0 down"})
	if n := c.writes.Load(); n != 1 {
		t.Errorf("a command that changes VPP counts as %d writes, want 1", n)
	}
}
