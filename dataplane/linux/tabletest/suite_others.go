package tabletest

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

func joinErrors(errs ...error) error { return errors.Join(errs...) }

// command runs a command in the node's namespace.
func (n *Node) command(t testing.TB, name string, args ...string) string {
	t.Helper()
	var out []byte
	err := n.NS.Do(func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// dump returns the kernel's state in a form that does not depend on its history.
func (r *rig) dump() string {
	r.t.Helper()
	if d, ok := r.b.(interface{ Dump() (string, error) }); ok {
		s, err := d.Dump()
		if err != nil {
			r.t.Fatalf("dump: %v", err)
		}
		return s
	}
	var all []string
	for _, cmd := range []string{"iptables-save", "ip6tables-save"} {
		lines := strings.Split(r.net.Host.command(r.t, cmd), "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, "#") {
				lines[i] = ""
			} else if head, _, ok := strings.Cut(l, " ["); ok && strings.HasPrefix(l, ":") {
				lines[i] = head
			}
		}
		all = append(all, lines...)
	}
	sets := strings.Split(r.net.Host.command(r.t, "ipset", "save"), "\n")
	slices.Sort(sets)
	return strings.Join(append(all, sets...), "\n")
}

// diff returns the lines that only one of two texts has.
func diff(a, b string) string {
	count := map[string]int{}
	for l := range strings.Lines(a) {
		count[l]--
	}
	for l := range strings.Lines(b) {
		count[l]++
	}
	var out strings.Builder
	for l := range strings.Lines(a + "\n" + b) {
		if count[l] < 0 {
			out.WriteString("- " + l)
		} else if count[l] > 0 {
			out.WriteString("+ " + l)
		}
		count[l] = 0
	}
	return out.String()
}

// testForeign: rules and sets of other programs are kept and work.
func testForeign(t *testing.T, r *rig) {
	h, f := r.net.Host, table.IPv4
	h.command(t, "nft", "add table ip foreign; add chain ip foreign forwarded { type filter hook forward priority 5; };"+
		" add set ip foreign s { type ipv4_addr; }; add element ip foreign s { 203.0.113.7 };"+
		" add rule ip foreign forwarded ip daddr @s drop")
	h.command(t, "iptables", "-N", "FOREIGN")
	h.command(t, "iptables", "-A", "FOREIGN", "-d", "203.0.113.8", "-j", "DROP")
	h.command(t, "iptables", "-A", "FORWARD", "-m", "comment", "--comment", "another program's", "-j", "FOREIGN")
	r.sample()
	both(func(f table.Family) {
		r.b.SetChains(f, table.Filter, chain("pod-2")) // leaves the decision to the other rules
		r.b.SetHook(f, table.Filter, table.Forward, jump(always, "policy"))
	})
	r.apply()
	check := func() {
		t.Helper()
		r.net.Expect(t, Case{Want: Drop, Probe: r.pod(2).UDP(anywhere(f, 0, 7), 1)},
			Case{Want: Drop, Probe: r.pod(2).UDP(anywhere(f, 0, 8), 1)},
			Case{Want: Pass, Probe: r.pod(2).UDP(anywhere(f, 0, 9), 1), SeenAs: h.Addr(f)})
	}
	check()
	r.restart()
	r.sample()
	r.b.SetChains(f, table.Filter, chain("pod-2"))
	r.b.Resync(true, true)
	r.apply()
	check()
	r.restart()
	r.apply() // removes all of our objects
	r.net.Expect(t, Case{Want: Drop, Probe: r.pod(1).UDP(anywhere(f, 0, 7), 1)},
		Case{Want: Drop, Probe: r.pod(1).UDP(anywhere(f, 0, 8), 1)},
		Case{Want: Pass, Probe: r.pod(1).UDP(anywhere(f, 0, 2), 1)})
	if out := h.command(t, "iptables", "-S", "FORWARD"); strings.Count(out, "FOREIGN") != 1 {
		t.Errorf("the foreign jump is not there once:\n%s", out)
	}
}

// testFlushed: another program deletes all rules; the next applies restore them.
func testFlushed(t *testing.T, r *rig) {
	r.sample()
	if res := r.apply(); res.Repaired {
		t.Error("the first apply claims to repair")
	}
	before := r.dump()
	r.net.Expect(t, Case{Want: Drop, Probe: r.pod(3).UDP(anywhere(table.IPv4, 0, 1), 1)})
	r.flushAll()
	r.net.Expect(t, Case{Want: Pass, Probe: r.pod(3).UDP(anywhere(table.IPv4, 0, 1), 1), Why: "flushed"})
	r.b.Resync(true, true)
	if !r.b.Pending() {
		t.Error("nothing pending after Resync")
	}
	if res := r.apply(); res.Writes == 0 {
		t.Error("nothing was written though all was gone")
	} else if !res.Repaired {
		t.Error("the apply that repairs does not say so")
	}
	if after := r.dump(); after != before {
		t.Errorf("not as before:\n%s", diff(before, after))
	}
	r.expectSample()
	r.b.SetChains(table.IPv4, table.Filter, chain("pod-2", drop(always), drop(always)))
	r.b.Resync(true, true)
	if res := r.apply(); res.Writes == 0 || res.Repaired {
		t.Errorf("a change of ours: %+v, want a write that is no repair", res)
	}
	// A change while everything is missing, without a resync.
	r.flushAll()
	f := table.IPv4
	r.b.SetChains(f, table.Filter, chain("pod-2", drop(always)))
	r.tryApply()
	r.b.Resync(true, true)
	r.applyLoop()
	r.apply()
	r.net.Expect(t, Case{Want: Drop, Probe: r.pod(2).UDP(anywhere(f, 0, 1), 1)},
		Case{Want: Pass, Probe: r.pod(1).UDP(anywhere(f, 0, 1), 1)},
		Case{Want: Drop, Probe: r.pod(1).UDP(anywhere(f, 0, 2), 1)})
}

// flushAll removes all rules of nf_tables, and of iptables' old tables where they are in use.
func (r *rig) flushAll() {
	r.t.Helper()
	h := r.net.Host
	h.command(r.t, "nft", "flush", "ruleset")
	for file, cmd := range map[string]string{"ip_tables_names": "iptables-legacy", "ip6_tables_names": "ip6tables-legacy"} {
		var names []byte
		if err := h.NS.Do(func() error {
			names, _ = os.ReadFile("/proc/thread-self/net/" + file) // absent if they were never used
			return nil
		}); err != nil {
			r.t.Fatal(err)
		}
		for name := range strings.FieldsSeq(string(names)) {
			h.command(r.t, cmd, "-t", name, "-F")
			h.command(r.t, cmd, "-t", name, "-X")
		}
	}
}
