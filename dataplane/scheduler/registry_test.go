package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

func TestKindOf(t *testing.T) {
	r := registry{byName: map[string]*kind{}}
	for i, p := range []string{
		"config/vpp/v2/interfaces/", "config/vpp/v2/route/", "config/vpp/v2/", "config/vpp/v2/route/if/", "config/vpp/v2/proxyarp-global",
		"config/vpp/l2/v2/fib/", "", "config/vpp/v2/r",
	} {
		if err := r.add(&kind{name: fmt.Sprint("k", i), prefix: p}); err != nil {
			t.Fatal(err)
		}
	}
	r.freeze()
	for key, want := range map[string]string{
		"config/vpp/v2/interfaces/tap0":        "config/vpp/v2/interfaces/",
		"config/vpp/v2/interface":              "config/vpp/v2/",
		"config/vpp/v2/route/vrf/0":            "config/vpp/v2/route/",
		"config/vpp/v2/route/if/tap0/vrf":      "config/vpp/v2/route/if/",
		"config/vpp/v2/route/zz":               "config/vpp/v2/route/",
		"config/vpp/v2/rx":                     "config/vpp/v2/r",
		"config/vpp/v2/proxyarp-global":        "config/vpp/v2/proxyarp-global",
		"config/vpp/v2/zzz":                    "config/vpp/v2/",
		"config/vpp/l2/v2/fib/bd/mac/1":        "config/vpp/l2/v2/fib/",
		"config/vpp/l2/v2/bridge-domain/bd":    "",
		"config":                               "",
		"":                                     "",
		"zzz":                                  "",
		"config/vpp/v2/interfaces\xff/strange": "config/vpp/v2/",
	} {
		var got string
		if k := r.kindOf(key); k != nil {
			got = k.prefix
		}
		if got != want {
			t.Errorf("%s is of %q, want %q", key, got, want)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	m := newMock(t)
	s := New(Config{}, quiet())
	good := m.nbDescriptor("a", "a/", 1)
	if err := Register(s, good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(k *Descriptor[*obj]){
		"needs a name":   func(k *Descriptor[*obj]) { k.Name = "" },
		"are required":   func(k *Descriptor[*obj]) { k.Equal = nil },
		"twice":          func(k *Descriptor[*obj]) {},
		"same prefix":    func(k *Descriptor[*obj]) { k.Name = "b" },
		"without Update": func(k *Descriptor[*obj]) { k.Update = nil },
		"without Derive": func(k *Descriptor[*obj]) { k.Derive, k.DeriveDiff = nil, diffItems },
		"only derived":   func(k *Descriptor[*obj]) { k.ImpliedByParent = true },
	} {
		k := good
		change(&k)
		if err := Register(s, k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := s.Start(); err == nil {
		t.Error("started without jobs")
	}
	startRig(t, s, m)
	if err := s.Start(); err == nil {
		t.Error("started twice")
	}
	if err := Register(s, m.nbDescriptor("z", "z/", 1)); err == nil || !strings.Contains(err.Error(), "after start") {
		t.Errorf("error: %v", err)
	}
}

func TestErrors(t *testing.T) {
	plain := errors.New("plain")
	for _, c := range []struct {
		err            error
		retry, unknown bool
	}{
		{plain, false, false},
		{Retry(plain), true, false},
		{fmt.Errorf("x: %w", Retry(plain)), true, false},
		{fmt.Errorf("x: %w", errRetriable), true, false},
		{OutcomeUnknown(plain), true, true},
		{context.DeadlineExceeded, true, false},
		{os.ErrDeadlineExceeded, true, false},
		{os.NewSyscallError("x", syscall.EBUSY), true, false},
		{syscall.EAGAIN, true, false},
		{syscall.EINVAL, false, false},
		{errBackendBug, true, true},
		{&blockedError{user: "x", cause: OutcomeUnknown(plain), retry: true}, true, false},
	} {
		if IsRetriable(c.err) != c.retry || isOutcomeUnknown(c.err) != c.unknown {
			t.Errorf("%v: retriable %t, unknown %t", c.err, IsRetriable(c.err), isOutcomeUnknown(c.err))
		}
	}
	if Retry(nil) != nil || OutcomeUnknown(nil) != nil {
		t.Error("nil is wrapped")
	}
	if err := Retry(plain); !errors.Is(err, plain) || !errors.Is(err, errRetriable) {
		t.Error("not wrapped")
	}
}

func TestNewOp(t *testing.T) {
	var got error
	NewOp(func(err error) { got = err }).Done(errRetriable)
	if got == nil {
		t.Error("not called")
	}
	d := NewDumpOp(t.Context(), nil, func(err error) { got = err })
	d.EachDesired(func(string, any) { t.Error("nothing is desired") })
	d.Done(nil)
	if got != nil || d.Context() != t.Context() {
		t.Error("not passed on")
	}
}

func TestState(t *testing.T) {
	for s := Nonexistent; s <= Retrying; s++ {
		text, err := s.MarshalText()
		var back State
		if err != nil || back.UnmarshalText(text) != nil || back != s {
			t.Errorf("%s", s)
		}
	}
	var s State
	if s.UnmarshalText([]byte("?")) == nil || State(99).String() != "State(99)" {
		t.Error("unknown states")
	}
}

func TestHistory(t *testing.T) {
	h := newHistory(HistoryLimits{Records: 4, Ops: 10, Age: time.Hour})
	start := time.Unix(1000, 0)
	add := func(minutes, ops int) {
		h.add(&txn.Record{Start: start.Add(time.Duration(minutes) * time.Minute), Executed: make([]txn.Op, ops)})
	}
	expect := func(f HistoryFilter, want string) {
		t.Helper()
		var got []string
		for _, r := range h.list(f) {
			got = append(got, fmt.Sprint(r.SeqNum))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("history has %v, want %s", got, want)
		}
	}
	for i := range 6 {
		add(i, 1)
	}
	expect(HistoryFilter{}, "3 4 5 6")
	expect(HistoryFilter{SeqNum: 5}, "5")
	expect(HistoryFilter{Since: start.Add(3 * time.Minute), Until: start.Add(4 * time.Minute)}, "4 5")
	add(6, 8)
	expect(HistoryFilter{}, "5 6 7")
	add(7, 1000)
	expect(HistoryFilter{}, "8")
	add(66, 0)
	expect(HistoryFilter{}, "9")
	add(126, 0)
	add(127, 0)
	expect(HistoryFilter{}, "10 11")
}
