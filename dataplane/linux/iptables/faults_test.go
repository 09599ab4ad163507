package iptables

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/filelock"
)

// testRig is a backend on a fake system.
type testRig struct {
	*Backend
	t     *testing.T
	sys   *fakeSystem
	clock *fakeClock
}

func newRig(t *testing.T, cfg Config, prepare ...func(*fakeSystem)) *testRig {
	t.Helper()
	r := &testRig{t: t, sys: newFakeSystem(t), clock: &fakeClock{now: time.Unix(1e9, 0)}}
	for _, p := range prepare {
		p(r.sys)
	}
	r.open(cfg)
	return r
}

// open opens a backend, as a new process would.
func (r *testRig) open(cfg Config) {
	r.t.Helper()
	cfg.NS, cfg.Clock = newNS(r.t).ns, r.clock // the sets' socket is real
	if cfg.ScratchMarks == [2]uint32{} {
		cfg.ScratchMarks = testMarks
	}
	b, err := newBackend(context.Background(), cfg, r.sys)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { b.Close() })
	r.Backend = b
}

func (r *testRig) filter() *fakeTable { return r.sys.table("iptables", "filter") }

// numberedRule returns a rule that is identified by its port.
func numberedRule(n int, actions ...table.Action) table.Rule {
	p := uint16(n)
	return table.Rule{Match: table.Match{Protocol: 6, DstPorts: []table.PortRange{{First: p, Last: p}}}, Actions: actions}
}

func numberedChain(name string, ports ...int) table.Chain {
	c := table.Chain{Name: name}
	for _, p := range ports {
		c.Rules = append(c.Rules, numberedRule(p, act(table.Drop)...))
	}
	return c
}

// ports returns the numbers of a chain's rules in the fake kernel.
func (r *testRig) ports(chain string) string {
	rules, ok := r.filter().chains[chain]
	if !ok {
		return "none"
	}
	var out []string
	for _, rule := range rules {
		if _, port, ok := strings.Cut(rule, "--dports "); ok {
			port, _, _ = strings.Cut(port, " ")
			out = append(out, port)
		} else if to := target(rule); to != "RETURN" {
			out = append(out, to)
		}
	}
	return strings.Join(out, " ")
}

func (r *testRig) expect(want map[string]string) {
	r.t.Helper()
	for chain, ports := range want {
		if got := r.ports(chain); got != ports {
			r.t.Errorf("%s has %q, want %q", chain, got, ports)
		}
	}
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// basics adds two chains: the hook jumps to one, and that one jumps to the other.
func (r *testRig) basics() {
	a := numberedChain("cali-a", 1, 2, 3)
	a.Rules = append(a.Rules, jump("cali-b"))
	r.SetChains(4, table.Filter, a, numberedChain("cali-b", 4, 5))
	r.SetHook(4, table.Filter, table.Forward, jump("cali-a"))
}

func TestOneSaveAndOneRestorePerChangedTable(t *testing.T) {
	r := newRig(t, Config{})
	r.basics()
	apply(t, r.Backend)
	if r.sys.restores != 1 || r.sys.saves != 2 {
		t.Errorf("%d restores and %d saves, want 1 and one for each family", r.sys.restores, r.sys.saves)
	}
	r.expect(map[string]string{"cali-a": "1 2 3 cali-b", "cali-b": "4 5", "FORWARD": "cali-a"})
	r.SetChains(4, table.Filter, numberedChain("cali-b", 4, 6))
	if res := apply(t, r.Backend); res.Writes == 0 || r.sys.restores != 2 || r.sys.saves != 2 {
		t.Errorf("%d restores and %d saves, want one more restore only", r.sys.restores, r.sys.saves)
	}
	r.expect(map[string]string{"cali-b": "4 6"})
	want := []string{"--noflush", "--wait", "10", "--wait-interval", "50000"}
	if !slices.Equal(r.sys.lastArgs, want) {
		t.Errorf("arguments %v, want %v", r.sys.lastArgs, want)
	}
	// The same chains again are no change.
	r.basics()
	r.SetChains(4, table.Filter, numberedChain("cali-b", 4, 6))
	if res := apply(t, r.Backend); res.Writes != 0 || r.sys.restores != 2 {
		t.Errorf("wrote %d for no change", res.Writes)
	}
}

// With a fresh copy of the kernel's state, only the part of a chain after the first difference is written.
func TestPositionDiff(t *testing.T) {
	r := newRig(t, Config{})
	r.basics()
	apply(t, r.Backend)
	for _, c := range []struct {
		ports []int
		lines int
	}{{[]int{4, 5, 6}, 1}, {[]int{4, 7, 6, 8}, 3}, {[]int{4, 7}, 2}, {[]int{9}, 2}, {nil, 1}} {
		r.SetChains(4, table.Filter, numberedChain("cali-b", c.ports...))
		r.Resync(false, true)
		if res := apply(t, r.Backend); res.Writes != c.lines {
			t.Errorf("%v took %d writes, want %d: %s", c.ports, res.Writes, c.lines, r.sys.inputs[len(r.sys.inputs)-1])
		}
		r.expect(map[string]string{"cali-b": strings.Trim(fmt.Sprint(c.ports), "[]")})
	}
}

func TestOnlyWhatHooksLeadToIsProgrammed(t *testing.T) {
	r := newRig(t, Config{})
	r.basics()
	r.SetChains(4, table.Filter, numberedChain("cali-c", 6), table.Chain{Name: "cali-d", Rules: []table.Rule{jump("cali-c")}})
	apply(t, r.Backend)
	r.expect(map[string]string{"cali-b": "4 5", "cali-c": "none", "cali-d": "none"})
	r.SetChains(4, table.Filter, table.Chain{Name: "cali-a", Rules: []table.Rule{jump("cali-d")}})
	apply(t, r.Backend)
	r.expect(map[string]string{"cali-b": "none", "cali-c": "6", "cali-d": "cali-c"})
	r.SetHook(4, table.Filter, table.Forward)
	apply(t, r.Backend)
	r.expect(map[string]string{"cali-a": "none", "cali-c": "none", "cali-d": "none", "FORWARD": ""})
}

// For any concurrent change, one apply results in the desired state.
func TestConcurrentChanges(t *testing.T) {
	interfere := map[string]func(tb *fakeTable){
		"chain flushed": func(tb *fakeTable) { tb.chains["cali-b"] = nil },
		"chain gone": func(tb *fakeTable) {
			tb.chains["cali-a"] = slices.DeleteFunc(tb.chains["cali-a"], func(r string) bool { return target(r) == "cali-b" })
			delete(tb.chains, "cali-b")
		},
		"all gone": func(tb *fakeTable) {
			for name := range tb.chains {
				if strings.HasPrefix(name, "cali-") {
					delete(tb.chains, name)
				}
			}
			tb.chains["FORWARD"] = nil
		},
		"hook gone":     func(tb *fakeTable) { tb.chains["FORWARD"] = nil },
		"foreign above": func(tb *fakeTable) { tb.chains["FORWARD"] = slices.Insert(tb.chains["FORWARD"], 0, "-j ACCEPT") },
		"rule inserted": func(tb *fakeTable) { tb.chains["cali-a"] = slices.Insert(tb.chains["cali-a"], 1, "-j ACCEPT") },
	}
	for _, when := range []string{"before restore", "after save"} {
		for what, f := range interfere {
			t.Run(what+" "+when, func(t *testing.T) {
				r := newRig(t, Config{})
				r.basics()
				apply(t, r.Backend)
				r.Resync(false, true)
				r.SetChains(4, table.Filter, numberedChain("cali-b", 4, 5, 6), numberedChain("cali-n", 9),
					table.Chain{Name: "cali-a", Rules: []table.Rule{numberedRule(1), jump("cali-b"), jump("cali-n")}})
				r.SetHook(4, table.Filter, table.Forward, jump("cali-a"), jump("cali-n"))
				hook := func() { f(r.filter()) }
				if when == "before restore" {
					r.sys.beforeRestore = hook
				} else {
					// Layers are read one after the other; filter is the last.
					r.layers[3].have = nil
					for _, l := range r.layers[:3] {
						l.have = newKernelState()
					}
					r.sys.afterSave = hook
				}
				apply(t, r.Backend)
				// Changes that were not detected at once are detected at the first check.
				r.clock.now = r.clock.now.Add(time.Second)
				apply(t, r.Backend)
				hooks := r.ports("FORWARD")
				if hooks != "cali-a cali-n" && hooks != "cali-a cali-n ACCEPT" {
					t.Errorf("FORWARD has %s", hooks)
				}
				r.expect(map[string]string{"cali-a": "1 cali-b cali-n", "cali-b": "4 5 6", "cali-n": "9"})
			})
		}
	}
}

// After a write the kernel is checked 1, 2, 4, … seconds later, up to an hour; at each refresh interval in any case.
func TestChecks(t *testing.T) {
	r := newRig(t, Config{PostWriteCheckInterval: time.Second, RefreshInterval: -1})
	r.basics()
	res := apply(t, r.Backend)
	want := time.Second
	looks := 0
	for ; res.Again > 0; looks++ {
		if res.Again != want {
			t.Fatalf("look %d: again %v, want %v", looks, res.Again, want)
		}
		if r.clock.now = r.clock.now.Add(res.Again - 1); r.Pending() {
			t.Fatal("pending before it is time")
		}
		r.clock.now = r.clock.now.Add(1)
		saves := r.sys.saves
		if !r.Pending() {
			t.Fatal("not pending when it is time")
		}
		res = apply(t, r.Backend)
		if r.sys.saves != saves+1 || res.Writes != 0 {
			t.Fatalf("%d saves and %d writes for a look", r.sys.saves-saves, res.Writes)
		}
		want *= 2
	}
	if looks != 12 {
		t.Errorf("%d looks, want 12 (the last after 2048 s)", looks)
	}

	r = newRig(t, Config{PostWriteCheckInterval: -1, RefreshInterval: time.Minute})
	r.basics()
	if res := apply(t, r.Backend); res.Again != time.Minute {
		t.Fatalf("again %v, want a minute", res.Again)
	}
	r.filter().chains["cali-b"] = nil
	r.clock.now = r.clock.now.Add(time.Minute)
	if res := apply(t, r.Backend); res.Writes == 0 {
		t.Error("the refresh has not repaired the chain")
	}
	r.expect(map[string]string{"cali-b": "4 5"})
	r = newRig(t, Config{PostWriteCheckInterval: time.Nanosecond})
	r.basics()
	if res := apply(t, r.Backend); res.Again != 50*time.Millisecond {
		t.Errorf("again %v, want the least, 50 ms", res.Again)
	}
}

// slowSystem has programs that take 30 ms each.
type slowSystem struct {
	*fakeSystem
	clock *fakeClock
}

func (s slowSystem) run(ctx context.Context, c command) error {
	s.clock.now = s.clock.now.Add(30 * time.Millisecond)
	return s.fakeSystem.run(ctx, c)
}

// The checks of tables that were written in the same apply are due at the same time, so that each needs one listing of a family's tables.
func TestChecksOfOneApplyAreDueTogether(t *testing.T) {
	r := newRig(t, Config{PostWriteCheckInterval: time.Second, RefreshInterval: -1})
	slow := slowSystem{r.sys, r.clock}
	for _, l := range r.layers {
		l.runner = slow
	}
	for _, f := range []table.Family{4, 6} {
		for _, l := range []table.Layer{table.Raw, table.Mangle, table.NAT, table.Filter} {
			r.SetChains(f, l, table.Chain{Name: "cali-a", Rules: []table.Rule{numberedRule(1, act(table.Accept)...)}})
			r.SetHook(f, l, table.Output, jump("cali-a"))
		}
	}
	res := apply(t, r.Backend)
	if r.sys.restores != 8 {
		t.Fatalf("%d restores, want one for each table", r.sys.restores)
	}
	for look := range 5 {
		r.clock.now = r.clock.now.Add(res.Again - 1)
		if r.Pending() {
			t.Errorf("look %d: pending before it is time", look)
		}
		r.clock.now = r.clock.now.Add(1)
		saves := r.sys.saves
		res = apply(t, r.Backend)
		if n := r.sys.saves - saves; n != 2 {
			t.Errorf("look %d: %d listings, want one for each family", look, n)
		}
	}
	// A table that is written later has checks of its own.
	r.SetChains(4, table.Filter, numberedChain("cali-a", 2))
	if res = apply(t, r.Backend); res.Again != time.Second {
		t.Errorf("again %v, want a second", res.Again)
	}
}

// On a node that has no tables of iptables, the first apply reads nothing, and later ones read what there is.
func TestTablesThatDoNotExistAreNotRead(t *testing.T) {
	fresh := func(s *fakeSystem) { s.fresh = true }
	r := newRig(t, Config{PostWriteCheckInterval: -1, RefreshInterval: -1}, fresh)
	r.basics()
	if apply(t, r.Backend); r.sys.restores != 1 || r.sys.saves != 0 {
		t.Errorf("%d restores and %d saves, want 1 and none", r.sys.restores, r.sys.saves)
	}
	r.expect(map[string]string{"cali-a": "1 2 3 cali-b", "cali-b": "4 5", "FORWARD": "cali-a"})
	r.Resync(false, true)
	if res := apply(t, r.Backend); res.Writes != 0 || r.sys.saves != 1 {
		t.Errorf("%d writes and %d saves for a look, want none and one of the table that exists", res.Writes, r.sys.saves)
	}
	r.filter().chains["cali-b"] = nil
	r.open(Config{}) // the next process
	r.basics()
	if res := apply(t, r.Backend); res.Writes == 0 {
		t.Error("the next process has not read the table")
	}
	r.expect(map[string]string{"cali-a": "1 2 3 cali-b", "cali-b": "4 5", "FORWARD": "cali-a"})
	clear(r.sys.tables) // another program deletes the tables
	r.Resync(false, true)
	apply(t, r.Backend)
	r.expect(map[string]string{"cali-a": "1 2 3 cali-b", "cali-b": "4 5", "FORWARD": "cali-a"})
}

// A program that undoes our changes immediately each time does not cause endless work.
func TestChangesUndoneByAnotherProgram(t *testing.T) {
	r := newRig(t, Config{})
	r.basics()
	res := apply(t, r.Backend)
	restores := 0
	for start := r.clock.now; r.clock.now.Sub(start) < time.Hour; {
		r.filter().chains["FORWARD"] = slices.Insert(r.filter().chains["FORWARD"], 0, "-j ACCEPT")
		r.clock.now = r.clock.now.Add(res.Again)
		before := r.sys.restores
		res = apply(t, r.Backend)
		restores += r.sys.restores - before
		if r.sys.restores > before && r.ports("FORWARD")[:6] != "cali-a" {
			t.Fatalf("not repaired: %s", r.ports("FORWARD"))
		}
	}
	if restores > 60 || restores < 40 { // every 90 s
		t.Errorf("%d repairs in an hour", restores)
	}
}

func TestInsertModes(t *testing.T) {
	for mode, want := range map[InsertMode][2]string{
		Insert: {"cali-a cali-b X Y", "cali-a cali-b N X Y"}, Append: {"X Y cali-a cali-b", "N X Y cali-a cali-b"},
	} {
		r := newRig(t, Config{InsertMode: mode}, func(s *fakeSystem) {
			s.table("iptables", "filter").chains["FORWARD"] = []string{"-j X", "-j cali-OLD", "-j Y"}
			s.table("iptables", "filter").chains["cali-OLD"] = nil
		})
		r.basics()
		r.SetHook(4, table.Filter, table.Forward, jump("cali-a"), jump("cali-b"))
		apply(t, r.Backend)
		r.expect(map[string]string{"FORWARD": want[0], "cali-OLD": "none"})
		forward := r.filter().chains["FORWARD"]
		r.filter().chains["FORWARD"] = slices.Insert(forward, 0, "-j N")
		r.clock.now = r.clock.now.Add(time.Minute)
		res := apply(t, r.Backend)
		if (res.Writes > 0) != (mode == Insert) {
			t.Errorf("%s: %d writes after a foreign rule was put at the top", mode, res.Writes)
		}
		r.expect(map[string]string{"FORWARD": want[1]})
		// The wrong order and a duplicate of ours.
		forward = r.filter().chains["FORWARD"]
		i := slices.IndexFunc(forward, func(s string) bool { return target(s) == "cali-a" })
		forward[i], forward[i+1] = forward[i+1], forward[i]
		r.filter().chains["FORWARD"] = append(forward, forward[i])
		r.Resync(false, true)
		apply(t, r.Backend)
		r.expect(map[string]string{"FORWARD": want[1]})
	}
}

func TestFailingPrograms(t *testing.T) {
	busy := &exitError{program: "iptables-restore", code: 4, stderr: "line 5 failed: Resource temporarily unavailable"}
	t.Run("restore fails a few times", func(t *testing.T) {
		r := newRig(t, Config{})
		r.basics()
		r.sys.failRestores, r.sys.restoreError = 5, busy
		apply(t, r.Backend)
		want := []time.Duration{1e6, 2e6, 4e6, 8e6, 16e6}
		if !slices.Equal(r.clock.pauses, want) || r.sys.saves != 2+5 {
			t.Errorf("pauses %v and %d saves, want %v and a save before each new attempt", r.clock.pauses, r.sys.saves, want)
		}
		r.expect(map[string]string{"cali-a": "1 2 3 cali-b"})
	})
	for name, err := range map[string]error{
		"busy for ever": busy, "cannot be started": errors.New("fork/exec: no such file"),
		"nothing can be written": &exitError{code: 1, stderr: "can't initialize iptables table"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			r.basics()
			r.SetChains(6, table.Filter, numberedChain("cali-six", 6))
			r.SetHook(6, table.Filter, table.Input, jump("cali-six"))
			r.sys.failRestores, r.sys.restoreError = 1000, err
			res := r.Apply(context.Background())
			if !errors.Is(res.Err, err) || len(res.Broken) > 0 || !r.Pending() {
				t.Errorf("result %+v, pending %v", res, r.Pending())
			}
			if r.clock.slept() > 2200*time.Millisecond {
				t.Errorf("slept %v for two tables", r.clock.slept())
			}
			r.sys.failRestores = 0
			apply(t, r.Backend)
			r.expect(map[string]string{"cali-a": "1 2 3 cali-b"})
		})
	}
	t.Run("save", func(t *testing.T) {
		r := newRig(t, Config{})
		r.basics()
		apply(t, r.Backend)
		before := r.sys.restores
		for i, fault := range []*int{&r.sys.failSaves, &r.sys.cutSaves} {
			r.Resync(false, true)
			*fault = 3
			apply(t, r.Backend)
			r.Resync(false, true)
			*fault = 1000
			if res := r.Apply(context.Background()); !errors.Is(res.Err, errRead) || res.Writes != 0 {
				t.Errorf("fault %d: %+v", i, res)
			}
			*fault = 0
		}
		if r.sys.restores != before {
			t.Error("something was written on the ground of a failed save")
		}
	})
	t.Run("context ends", func(t *testing.T) {
		r := newRig(t, Config{})
		r.basics()
		ctx, cancel := context.WithCancel(context.Background())
		r.sys.beforeRestore = cancel
		r.sys.failRestores, r.sys.restoreError = 1, busy
		if res := r.Apply(ctx); !errors.Is(res.Err, context.Canceled) {
			t.Errorf("result %+v", res)
		}
	})
}

// A chain that the kernel rejects is reported and drops everything; the rest is written, whether or not the kernel reports the faulty line.
// When the chain is changed, or the kernel accepts it later, the error ends.
func TestRefusedChains(t *testing.T) {
	for _, hint := range []bool{true, false} {
		for _, bad := range [][]int{{3}, {0, 7, 8}, {11}} {
			t.Run(fmt.Sprintf("hint %v bad %v", hint, bad), func(t *testing.T) {
				r := newRig(t, Config{})
				r.sys.hint = hint
				r.sys.poison = func(rule string) bool { return strings.Contains(rule, "--dports 666") }
				var hooks []table.Rule
				var chains []table.Chain
				for i := range 12 {
					c := numberedChain(fmt.Sprintf("cali-%02d", i), 1000+i)
					if i > 0 && i%3 == 0 {
						c.Rules = append(c.Rules, jump(fmt.Sprintf("cali-%02d", i-1)))
					}
					chains = append(chains, c)
					hooks = append(hooks, jump(c.Name))
				}
				r.SetChains(4, table.Filter, chains...)
				r.SetHook(4, table.Filter, table.Forward, hooks...)
				apply(t, r.Backend)
				for i := range chains {
					chains[i].Rules = append(slices.Clone(chains[i].Rules), numberedRule(5, act(table.Accept)...))
				}
				for _, i := range bad {
					chains[i].Rules = append(chains[i].Rules, numberedRule(666, act(table.Accept)...))
				}
				r.SetChains(4, table.Filter, chains...)
				r.SetChains(4, table.Filter, numberedChain("cali-new", 7))
				r.SetHook(4, table.Filter, table.Input, jump("cali-new"))
				for range 2 {
					r.expectRefused(t, bad, len(chains))
				}
				r.expect(map[string]string{"INPUT": "cali-new"})

				// One is changed; then the kernel accepts the others.
				i := bad[0]
				chains[i].Rules = chains[i].Rules[:len(chains[i].Rules)-1]
				r.SetChains(4, table.Filter, chains[i])
				r.expectRefused(t, bad[1:], len(chains))
				r.sys.poison = nil
				apply(t, r.Backend)
				for i := range chains {
					if got := r.ports(chains[i].Name); strings.Contains(got, "DROP") {
						t.Errorf("%s has %s", chains[i].Name, got)
					}
				}
				before := r.sys.restores
				if apply(t, r.Backend); r.sys.restores != before {
					t.Error("not done yet")
				}
			})
		}
	}
}

func (r *testRig) expectRefused(t *testing.T, bad []int, chains int) {
	t.Helper()
	res := r.Apply(context.Background())
	if res.Err != nil || len(res.Broken) != len(bad) {
		t.Fatalf("result %+v", res)
	}
	for i := range chains {
		name := fmt.Sprintf("cali-%02d", i)
		got := r.ports(name)
		if slices.Contains(bad, i) {
			if res.Broken["chain v4 filter "+name] == nil || got != "DROP" {
				t.Errorf("%s has %q; %v", name, got, res.Broken)
			}
		} else if !strings.HasPrefix(got, fmt.Sprint(1000+i)) || !strings.HasSuffix(got, " 5") {
			t.Errorf("%s has %q", name, got)
		}
	}
	if r.Pending() {
		t.Error("pending though nothing but what is broken is left")
	}
}

// Chains that cannot even be tried: rules that iptables cannot express, loops, missing chains and sets.
func TestBrokenBeforeTheKernel(t *testing.T) {
	r := newRig(t, Config{})
	r.SetChains(4, table.Filter,
		table.Chain{Name: "cali-bad", Rules: []table.Rule{{Match: table.Match{DstPorts: []table.PortRange{{First: 1, Last: 1}}}}}},
		table.Chain{Name: "cali-set", Rules: []table.Rule{{Match: table.Match{SrcSets: []string{"nope"}}}}},
		table.Chain{Name: "cali-dangling", Rules: []table.Rule{jump("cali-nowhere")}},
		table.Chain{Name: "cali-loop1", Rules: []table.Rule{jump("cali-loop2")}},
		table.Chain{Name: "cali-loop2", Rules: []table.Rule{jump("cali-loop1")}},
		table.Chain{Name: "DOCKER", Rules: []table.Rule{jump("cali-good")}},
		numberedChain("cali-good", 1))
	r.SetDispatch(4, table.Filter, table.Dispatch{Name: "cali-disp",
		Chains: map[string]string{"a": "cali-nowhere", "b": "cali-good"}})
	r.filter().chains["DOCKER"] = []string{"-j ACCEPT"}
	r.SetHook(4, table.Filter, table.Forward, jump("cali-bad"), jump("cali-set"), jump("cali-dangling"), jump("cali-loop1"),
		jump("cali-good"), jump("cali-disp"))
	r.SetChains(4, table.Filter, table.Chain{Name: "cali-d", Rules: []table.Rule{jump("DOCKER")}})
	r.SetHook(4, table.Filter, table.Input, jump("cali-d"))
	r.SetHook(4, table.Filter, table.Postrouting, jump("cali-good"))
	res := r.Apply(context.Background())
	want := []string{"chain v4 filter DOCKER", "chain v4 filter cali-bad", "chain v4 filter cali-d",
		"chain v4 filter cali-dangling", "chain v4 filter cali-loop2", "chain v4 filter cali-nowhere",
		"chain v4 filter cali-set", "hook v4 filter POSTROUTING"}
	if got := sortedKeys(res.Broken); !slices.Equal(got, want) || res.Err != nil {
		t.Errorf("broken %q (%v)\nwant   %q", got, res.Err, want)
	}
	r.expect(map[string]string{
		"cali-bad": "DROP", "cali-set": "DROP", "cali-dangling": "DROP", "cali-loop2": "DROP", "cali-d": "DROP",
		"cali-nowhere": "DROP",
		"cali-disp":    "cali-nowhere cali-good", "cali-good": "1", "DOCKER": "ACCEPT", "INPUT": "cali-d"})
	r.ReplaceSet(4, table.Set{ID: "nope", Type: table.SetIP}, nil)
	r.SetChains(4, table.Filter, numberedChain("cali-nowhere", 2))
	res = r.Apply(context.Background())
	if len(res.Broken) != len(want)-3 {
		t.Errorf("broken %v", res.Broken)
	}
	r.expect(map[string]string{"cali-dangling": "cali-nowhere", "cali-nowhere": "2"})
}

// A chain that cannot be removed, since another program's rule refers to it, does not prevent other changes.
func TestChainHeldByOthers(t *testing.T) {
	r := newRig(t, Config{})
	r.basics()
	apply(t, r.Backend)
	r.filter().chains["THEIRS"] = []string{"-j cali-b"}
	r.SetChains(4, table.Filter, numberedChain("cali-a", 1, 9), numberedChain("cali-c", 3))
	for range 2 {
		res := r.Apply(context.Background())
		if res.Err != nil || len(res.Broken) != 1 || res.Broken["chain v4 filter cali-b"] == nil {
			t.Fatalf("result %+v", res)
		}
		r.expect(map[string]string{"cali-a": "1 9", "FORWARD": "cali-a"})
	}
	r.filter().chains["THEIRS"] = nil
	r.Resync(false, true)
	apply(t, r.Backend)
	r.expect(map[string]string{"cali-b": "none"})
}

func TestOldIptablesLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "lock")
	old := func(s *fakeSystem) {
		s.version = "iptables v1.4.21"
		s.missing = map[string]bool{"iptables-nft": true, "iptables-legacy": true}
	}
	r := newRig(t, Config{LockFilePath: path, LockTimeout: time.Second}, old)
	r.basics()
	var held error
	r.sys.beforeRestore = func() { _, held = filelock.Try(path) }
	apply(t, r.Backend)
	if !errors.Is(held, filelock.ErrLocked) {
		t.Errorf("the lock is not held while iptables-restore runs: %v", held)
	}
	if !slices.Equal(r.sys.lastArgs, []string{"--noflush"}) {
		t.Errorf("arguments %v are too new for iptables 1.4", r.sys.lastArgs)
	}
	unlock, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	r.SetChains(4, table.Filter, numberedChain("cali-b", 7))
	restores := r.sys.restores
	res := r.Apply(context.Background())
	slept := r.clock.slept()
	if !errors.Is(res.Err, errLocked) || r.sys.restores != restores || slept < time.Second || slept > 2*time.Second {
		t.Errorf("result %+v after %v", res, slept)
	}
	unlock()
	apply(t, r.Backend)
	r.expect(map[string]string{"cali-b": "7"})
}
