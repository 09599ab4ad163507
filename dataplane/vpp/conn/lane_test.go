package conn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/lcp"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
)

func up(i int) *interfaces.SwInterfaceSetFlags {
	return &interfaces.SwInterfaceSetFlags{SwIfIndex: interface_types.InterfaceIndex(i)}
}

const setFlags = "sw_interface_set_flags"

func TestLaneAnswersInOrder(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{Window: 16})
	l := c.Lane()
	var got []int
	for i := range 3000 {
		Call(l, up(i), func(r *interfaces.SwInterfaceSetFlagsReply, err error) {
			if r == nil || err != nil {
				t.Error(r, err)
			}
			got = append(got, i)
		})
	}
	flush(l)
	if len(got) != 3000 || !slices.IsSorted(got) {
		t.Errorf("%d answers, sorted %v", len(got), slices.IsSorted(got))
	}
	if stats := c.Stats(); stats.Writes != 3000 || stats.Sent[setFlags] != 3000 || c.Writes() != 3000 {
		t.Errorf("%+v", stats)
	}
}

func TestLaneWindow(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{Window: 8, RequestTimeout: soon})
	s.reply(func(req api.Message) ([]api.Message, bool) { return nil, req.GetMessageName() == setFlags })
	l := c.Lane()
	var o outcome
	atFirst := 0
	done := func(m api.Message, err error) {
		if len(o.errs) == 0 {
			atFirst = s.count(setFlags)
		}
		o.done(m, err)
	}
	start := time.Now()
	for i := range 8 {
		l.Request(up(i), done)
	}
	if len(o.errs) != 0 {
		t.Error("the window was not used")
	}
	l.Request(up(9), done) // must wait for room, which comes when the first of the 8 expires
	if waited := time.Since(start); waited < soon || len(o.errs) == 0 || len(o.errs) > 8 || atFirst != 8 {
		t.Errorf("waited %v, %d ended, %d sent", waited, len(o.errs), atFirst)
	}
	flush(l)
	if sent := s.count(setFlags); len(o.errs) != 9 || sent != 9 {
		t.Errorf("%d ended, %d sent", len(o.errs), sent)
	}
}

func TestLaneCallbacksStartRequests(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{Window: 4})
	l := c.Lane()
	count := 0
	var more func(depth int)
	more = func(depth int) {
		l.Request(up(depth), func(_ api.Message, err error) {
			if err != nil {
				t.Error(err)
			}
			count++
			if depth > 0 {
				more(depth - 1)
				more(depth - 1)
			}
		})
	}
	more(10)
	flush(l)
	if count != 2047 {
		t.Errorf("%d callbacks", count)
	}
}

func TestLaneLostReply(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{RequestTimeout: soon})
	s.reply(func(req api.Message) ([]api.Message, bool) {
		m, ok := req.(*interfaces.SwInterfaceSetFlags)
		return nil, ok && m.SwIfIndex == 5
	})
	l := c.Lane()
	var o outcome
	for i := range 20 {
		l.Request(up(i), o.done)
	}
	flush(l)
	if o.answered != 19 || len(o.errs) != 1 {
		t.Fatalf("%+v", o)
	}
	err := o.errs[0]
	if !errors.Is(err, ErrTimeout) || !OutcomeUnknown(err) || !retriable(err) {
		t.Error(err)
	}
	if !c.State().Connected() || c.Stats().Timeouts != 1 {
		t.Error("a lost reply must not end the session")
	}
}

// A VPP that is slow with each of many requests is not late: the deadline runs from the last answer.
func TestLaneSlowVPP(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{RequestTimeout: soon, HealthInterval: soon / 10, HealthTimeout: soon})
	s.reply(func(api.Message) ([]api.Message, bool) {
		time.Sleep(soon / 10) // the slow VPP under test
		return nil, false
	})
	l := c.Lane()
	var o outcome
	for i := range 15 { // takes longer than the timeout
		l.Request(up(i), o.done)
	}
	flush(l)
	if o.answered != 15 {
		t.Errorf("%+v", o)
	}
	if c.State().Session != 1 {
		t.Error("declared dead while it answered")
	}
}

func TestLaneDisconnect(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	answered := 0
	s.reply(func(req api.Message) ([]api.Message, bool) {
		if req.GetMessageName() != setFlags {
			return nil, false
		}
		if answered++; answered == 30 {
			s.drop()
		}
		return nil, answered >= 10
	})
	l := c.Lane()
	var o outcome
	for i := range 30 {
		l.Request(up(i), o.done)
	}
	flush(l)
	if o.answered != 9 || len(o.errs) != 21 {
		t.Fatalf("%d answered, %d failed", o.answered, len(o.errs))
	}
	for _, err := range o.errs {
		if !errors.Is(err, ErrDisconnected) || !OutcomeUnknown(err) || !retriable(err) {
			t.Fatal(err)
		}
	}
	state := c.expect(Connected)
	if state.NewBoot || state.Session != 2 {
		t.Errorf("the same VPP: %+v", state)
	}
	s.reply(nil)
	o = outcome{}
	l.Request(up(1), o.done)
	flush(l)
	if o.answered != 1 {
		t.Errorf("%+v", o)
	}
}

func TestLaneAway(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	s.stop()
	c.expect(Disconnected)
	l := c.Lane()
	var o outcome
	for i := range 500 {
		l.Request(up(i), o.done)
	}
	flush(l)
	if len(o.errs) != 500 {
		t.Fatalf("%+v", o)
	}
	if err := o.errs[0]; !errors.Is(err, ErrDisconnected) || OutcomeUnknown(err) || !retriable(err) {
		t.Error(err)
	}
	s.start()
}

// The rest of a batch must not reach the VPP process after the one for which it was computed.
func TestLaneBatchKeepsItsSession(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	for _, pin := range []bool{false, true} {
		l := c.Lane()
		if pin {
			l.Pin()
		}
		var o outcome
		l.Request(up(1), o.done)
		if pin {
			flush(l) // does not unbind
		}
		s.drop()
		c.expect(Connected)
		l.Request(up(2), o.done)
		flush(l)
		if len(o.errs) == 0 || !errors.Is(o.errs[len(o.errs)-1], ErrDisconnected) {
			t.Errorf("pin %v: %+v", pin, o)
		}
		o = outcome{}
		if pin {
			l.Pin()
		}
		l.Request(up(3), o.done)
		flush(l)
		if o.answered != 1 {
			t.Errorf("pin %v: %+v", pin, o)
		}
	}
}

func TestLaneFlushCancelled(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{Window: 4})
	s.freeze(true)
	l := c.Lane()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var o outcome
	l.Request(up(1), func(m api.Message, err error) {
		o.done(m, err)
		l.Request(up(2), o.done) // refused
	})
	start := time.Now()
	l.Flush(ctx)
	if time.Since(start) > longTimeout {
		t.Error("Flush did not heed its context")
	}
	if len(o.errs) != 2 || !errors.Is(o.errs[0], ErrCanceled) || !OutcomeUnknown(o.errs[0]) ||
		!errors.Is(o.errs[1], context.DeadlineExceeded) || OutcomeUnknown(o.errs[1]) {
		t.Error(o.errs)
	}
	s.freeze(false) // the late answer belongs to no request
	o = outcome{}
	l.Request(up(3), o.done)
	flush(l)
	if o.answered != 1 {
		t.Errorf("%+v", o)
	}
}

func TestLaneDump(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	s.reply(func(req api.Message) ([]api.Message, bool) {
		if _, ok := req.(*interfaces.SwInterfaceDump); !ok {
			return nil, false
		}
		return []api.Message{
			&interfaces.SwInterfaceDetails{SwIfIndex: 1}, &interfaces.SwInterfaceDetails{SwIfIndex: 2},
		}, true
	})
	l := c.Lane()
	var order []string
	Dump(l, &interfaces.SwInterfaceDump{}, func(d *interfaces.SwInterfaceDetails) {
		order = append(order, "detail")
	}, func(err error) {
		if err != nil {
			t.Error(err)
		}
		order = append(order, "end")
	})
	l.Request(up(1), func(api.Message, error) { order = append(order, "reply") })
	flush(l)
	if got := strings.Join(order, " "); got != "detail detail end reply" {
		t.Error(got)
	}
	if c.Writes() != 1 {
		t.Errorf("%d writes", c.Writes())
	}
}

func TestLaneDumpWithCursor(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	s.reply(func(req api.Message) ([]api.Message, bool) {
		m, ok := req.(*lcp.LcpItfPairGetV2)
		switch {
		case !ok:
			return nil, false
		case m.Cursor == 0:
			return []api.Message{&lcp.LcpItfPairDetails{}, &lcp.LcpItfPairGetV2Reply{Retval: int32(api.EAGAIN), Cursor: 9}}, true
		default:
			return []api.Message{&lcp.LcpItfPairDetails{}, &lcp.LcpItfPairGetV2Reply{}}, true
		}
	})
	l := c.Lane()
	n, ended := 0, 0
	Dump(l, &lcp.LcpItfPairGetV2{}, func(*lcp.LcpItfPairDetails) { n++ }, func(err error) {
		if err != nil {
			t.Error(err)
		}
		ended++
	})
	flush(l)
	if n != 2 || ended != 1 || s.count("control_ping") != 1 { // 1 ping was sent when connecting
		t.Errorf("%d details, ended %d times, %d pings", n, ended, s.count("control_ping"))
	}
}

func TestLaneRefusal(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	s.reply(func(req api.Message) ([]api.Message, bool) {
		m, ok := req.(*interfaces.SwInterfaceSetFlags)
		if !ok {
			return nil, false
		}
		return []api.Message{&interfaces.SwInterfaceSetFlagsReply{Retval: -int32(m.SwIfIndex)}}, true
	})
	l := c.Lane()
	var o outcome
	l.Request(up(2), o.done)
	l.Request(up(167), o.done)
	flush(l)
	if len(o.errs) != 2 {
		t.Fatalf("%+v", o)
	}
	err := o.errs[0]
	if !IsRetval(err) || !IsRetval(err, api.INVALID_VALUE, api.INVALID_SW_IF_INDEX) || IsRetval(err, api.INVALID_VALUE) ||
		!errors.Is(err, api.INVALID_SW_IF_INDEX) || OutcomeUnknown(err) || retriable(err) {
		t.Error(err)
	}
	if want := "sw_interface_set_flags: VPPApiError: Invalid sw_if_index (-2)"; err.Error() != want {
		t.Error(err)
	}
	if !retriable(o.errs[1]) {
		t.Errorf("busy is worth another try: %v", o.errs[1])
	}
}

func TestNeverSend(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{})
	l := c.Lane()
	one := sr.Srv6SidList{NumSids: 1}
	for _, test := range []struct {
		req    api.Message
		refuse bool
	}{
		{&cnat.CnatTranslationUpdate{}, true},
		{&nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true, Locals: make([]nat44_ed.Nat44LbAddrPort, 256)}, true},
		{&nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true, Locals: make([]nat44_ed.Nat44LbAddrPort, 2)}, true},
		{&nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true,
			Locals: []nat44_ed.Nat44LbAddrPort{{Probability: 128}, {Probability: 128}}}, true},
		{&nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true,
			Locals: []nat44_ed.Nat44LbAddrPort{{Probability: 128}, {Probability: 127}}}, false},
		{&cnat.CnatTranslationUpdate{Translation: cnat.CnatTranslation{Paths: []cnat.CnatEndpointTuple{{}}}}, false},
		{&sr.SrPolicyAdd{}, true},
		{&sr.SrPolicyAdd{Sids: one}, false},
		{&sr.SrPolicyAddV2{}, true},
		{&sr.SrPolicyAddV2{Sids: sr.Srv6SidList{NumSids: 17}}, true},
		{&sr.SrPolicyAddV2{Sids: one}, false},
		{&sr.SrPolicyMod{Operation: sr_types.SR_POLICY_OP_API_ADD}, true},
		{&sr.SrPolicyMod{Operation: sr_types.SR_POLICY_OP_API_DEL}, false},
		{&sr.SrPolicyModV2{Operation: sr_types.SR_POLICY_OP_API_ADD}, true},
		{&sr.SrPolicyModV2{Operation: sr_types.SR_POLICY_OP_API_ADD, Sids: one}, false},
	} {
		name := test.req.GetMessageName()
		before := s.count(name)
		var o outcome
		l.Request(test.req, o.done)
		flush(l)
		err := c.Invoke(t.Context(), test.req, nil)
		o.done(nil, err)
		sent := s.count(name) - before
		if test.refuse && (sent != 0 || len(o.errs) != 2 || !errors.Is(o.errs[0], errNeverSend) || retriable(o.errs[0]) ||
			OutcomeUnknown(o.errs[0]) || !errors.Is(o.errs[1], errNeverSend)) {
			t.Errorf("%s: sent %d times, %v", name, sent, o.errs)
		}
		if !test.refuse && (sent != 2 || o.answered != 2) {
			t.Errorf("%s: sent %d times, %v", name, sent, o.errs)
		}
	}
}

func TestLaneUnknownAndBroken(t *testing.T) {
	s := newServer(t)
	delete(s.ids, messageKey(up(0)))
	c := connect(t, s, Config{})
	l := c.Lane()
	var o outcome
	l.Request(up(1), o.done)
	l.Request(&broken{}, o.done)
	flush(l)
	if len(o.errs) != 2 || !errors.Is(o.errs[0], ErrUnknownMessage) || retriable(o.errs[0]) || retriable(o.errs[1]) {
		t.Error(o.errs)
	}
}

// broken panics when it is encoded, as generated code does if a field is longer than its limit.
type broken struct{ memclnt.ControlPing }

func (*broken) GetMessageName() string                 { return "control_ping" }
func (*broken) GetCrcString() string                   { return "51077d14" }
func (*broken) GetMessageType() api.MessageType        { return api.RequestMessage }
func (*broken) Size() int                              { return 0 }
func (*broken) Marshal([]byte) (out []byte, err error) { panic("too long") }
func (*broken) Unmarshal([]byte) error                 { return nil }

func TestLaneTrace(t *testing.T) {
	s := newServer(t)
	var trace []string
	c := connect(t, s, Config{Trace: func(dir Direction, m api.Message, took time.Duration, err error) {
		if strings.HasPrefix(m.GetMessageName(), setFlags) {
			trace = append(trace, m.GetMessageName())
			if (dir == Received) != (took > 0) || err != nil {
				t.Error(dir, took, err)
			}
		}
	}})
	l := c.Lane()
	l.Request(up(1), func(api.Message, error) {})
	flush(l)
	if got := strings.Join(trace, " "); got != setFlags+" "+setFlags+"_reply" {
		t.Error(got)
	}
}

func TestLanes(t *testing.T) {
	s := newServer(t)
	c := connect(t, s, Config{Window: 4})
	a, b := c.Lane(), c.Lane()
	var oa, ob outcome
	for i := range 50 {
		a.Request(up(i), oa.done)
		b.Request(up(i), ob.done)
	}
	flush(b)
	flush(a)
	if oa.answered != 50 || ob.answered != 50 {
		t.Errorf("%+v %+v", oa, ob)
	}
	for range maxReceivers {
		a = c.Lane()
	}
	oa = outcome{}
	a.Request(up(1), oa.done)
	flush(a)
	if len(oa.errs) != 1 {
		t.Error("a lane beyond the last must refuse")
	}
}
