package forward

import (
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

// firewall is a network whose host has a chain FORWARD in the form of iptables-nft, and a passage for workloads.
type firewall struct {
	*tabletest.Net
	t *testing.T
	p *Passage
}

func newFirewall(t *testing.T, opts Options) *firewall {
	t.Helper()
	w := &firewall{Net: tabletest.NewNet(t, tabletest.Options{Pods: 1}), t: t}
	for _, f := range []string{"ip", "ip6"} {
		w.nft("add table " + f + " filter; add chain " + f + " filter FORWARD { type filter hook forward priority 0; policy drop; }; " +
			"add rule " + f + " filter FORWARD iifname docker0 counter drop")
	}
	opts.NS = w.Host.NS
	w.p = w.open(opts)
	w.p.SetLinks("cali+", "contiv-vxlan")
	return w
}

func (w *firewall) open(opts Options) *Passage {
	w.t.Helper()
	p, err := Open(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.Close() })
	return p
}

func (w *firewall) run(name string, args ...string) string {
	w.t.Helper()
	var out []byte
	err := w.Host.NS.Do(func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		return err
	})
	if err != nil {
		w.t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

func (w *firewall) nft(args ...string) string { w.t.Helper(); return w.run("nft", args...) }

// apply must write this number of rules.
func (w *firewall) apply(p *Passage, why string, writes int) {
	w.t.Helper()
	res := p.Apply(w.t.Context())
	if res.Err != nil || len(res.Broken) > 0 || res.Writes != writes {
		w.t.Fatalf("%s: %+v, want %d writes", why, res, writes)
	}
}

// rules returns the chain's rules without counters.
func (w *firewall) rules(family string) (list []string) {
	w.t.Helper()
	for line := range strings.Lines(w.nft("list chain " + family + " filter FORWARD")) {
		if strings.Contains(line, "counter") {
			before, _, _ := strings.Cut(strings.TrimSpace(line), " counter")
			list = append(list, before)
		}
	}
	return list
}

func (w *firewall) expect(why string, want ...string) {
	w.t.Helper()
	for _, f := range []string{"ip", "ip6"} {
		if got := strings.Join(w.rules(f), "; "); got != strings.Join(want, "; ") {
			w.t.Errorf("%s: %s has the rules %q, want %q", why, f, got, want)
		}
	}
}

const theirs = `iifname "docker0"`

func ours() []string {
	return []string{`oifname "contiv-vxlan"`, `iifname "contiv-vxlan"`, `oifname "cali*"`, `iifname "cali*"`}
}

// TestPassage tests that the rules are there exactly while the chain drops by its policy, and that other programs' rules stay.
func TestPassage(t *testing.T) {
	w := newFirewall(t, Options{})
	w.apply(w.p, "first", 8)
	w.expect("first", append(ours(), theirs)...)
	w.apply(w.p, "again", 0)
	next := w.open(Options{NS: w.Host.NS})
	next.SetLinks("cali+", "contiv-vxlan")
	w.apply(next, "another process", 0)
	for _, f := range []string{"ip", "ip6"} {
		w.nft("flush chain " + f + " filter FORWARD; add rule " + f + " filter FORWARD iifname docker0 counter drop")
	}
	w.apply(w.p, "flushed", 8)
	w.expect("flushed", append(ours(), theirs)...)
	for _, f := range []string{"ip", "ip6"} {
		w.nft("chain " + f + " filter FORWARD { policy accept; }")
	}
	w.apply(w.p, "policy accept", 8)
	w.expect("policy accept", theirs)
	for _, f := range []string{"ip", "ip6"} {
		w.nft("chain " + f + " filter FORWARD { policy drop; }")
	}
	w.apply(w.p, "policy drop", 8)
	w.apply(w.open(Options{NS: w.Host.NS}), "no links", 8)
	w.expect("no links", theirs)
	w.nft("flush ruleset")
	w.apply(w.p, "no chain", 0)
}

// TestPassageOfIPv4 tests that packets of a family that our tables do not filter do not pass.
func TestPassageOfIPv4(t *testing.T) {
	w := newFirewall(t, Options{OnlyIPv4: true})
	w.apply(w.p, "first", 4)
	if got := w.rules("ip6"); len(got) != 1 {
		t.Errorf("IPv6 has the rules %q", got)
	}
	both := w.open(Options{NS: w.Host.NS})
	both.SetLinks("cali+")
	w.apply(both, "both families", 2+2)
	w.apply(w.p, "IPv4 only again", 2+2)
	if got := w.rules("ip6"); len(got) != 1 {
		t.Errorf("IPv6 still has the rules %q", got)
	}
}

// TestPassageAppends tests that the rules come last if the driver appends.
func TestPassageAppends(t *testing.T) {
	w := newFirewall(t, Options{Append: true})
	w.apply(w.p, "first", 8)
	w.expect("first", theirs, `iifname "cali*"`, `oifname "cali*"`, `iifname "contiv-vxlan"`, `oifname "contiv-vxlan"`)
}

// TestIptablesShowsRules tests that iptables can list the chain with the rules, and change it.
func TestIptablesShowsRules(t *testing.T) {
	w := newFirewall(t, Options{})
	if out, err := exec.Command("iptables", "--version").Output(); err != nil || !strings.Contains(string(out), "nf_tables") {
		t.Skip("SKIPPED: iptables-nft is not installed")
	}
	w.nft("flush ruleset")
	w.run("iptables", "-P", "FORWARD", "DROP")
	w.apply(w.p, "first", 4)
	text := w.run("iptables", "-S", "FORWARD")
	for _, want := range []string{"-A FORWARD -i cali+", "-A FORWARD -o cali+", "-A FORWARD -i contiv-vxlan", "-A FORWARD -o contiv-vxlan"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	w.run("iptables", "-I", "FORWARD", "-s", "192.0.2.1", "-j", "DROP")
	w.apply(w.p, "iptables has added a rule", 0)
}

// TestOtherFirewalls tests that a chain that other programs' administrators have to change is reported once, with the command.
func TestOtherFirewalls(t *testing.T) {
	var log strings.Builder
	w := newFirewall(t, Options{Log: textLog(&log)})
	w.nft("flush ruleset; add table inet mine; add chain inet mine ahead { type filter hook forward priority 0; policy drop; }; " +
		"add chain inet mine inside { type filter hook input priority 0; policy drop; }")
	w.apply(w.p, "first", 0)
	w.p.Resync()
	w.apply(w.p, "second", 0)
	if n := strings.Count(log.String(), `insert rule inet mine ahead iifname \"cali*\" accept`); n != 1 {
		t.Errorf("reported %d times:\n%s", n, log.String())
	}
	if strings.Contains(log.String(), "mine inside") {
		t.Errorf("a chain that does not forward is reported:\n%s", log.String())
	}
}

func textLog(to io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(to, nil)) }
