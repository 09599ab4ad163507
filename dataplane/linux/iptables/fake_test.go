package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// fakeSystem has iptables programs that keep tables in memory. The input of iptables-restore is parsed strictly: a line that the real
// program would reject fails the test. Faults are injected by its hooks.
type fakeSystem struct {
	t       *testing.T
	version string
	tables  map[string]*fakeTable // by "iptables filter", "ip6tables nat", …

	saves, restores int
	inputs          []string
	lastArgs        []string

	beforeRestore func() // called once, then cleared
	afterSave     func()
	failSaves     int // how many of the next saves fail
	cutSaves      int // how many of the next saves end in the middle
	failRestores  int
	restoreError  error                  // the error of failRestores
	poison        func(line string) bool // a rule that the kernel rejects
	hint          bool                   // whether the error names the line
	missing       map[string]bool        // programs that are not installed
	fresh         bool                   // nf_tables has only the tables that were used
}

type fakeTable struct {
	base   []string
	chains map[string][]string
}

func newFakeSystem(t *testing.T) *fakeSystem {
	return &fakeSystem{t: t, version: "iptables v1.8.9 (nf_tables)", tables: map[string]*fakeTable{}, hint: true,
		missing: map[string]bool{"iptables-legacy": true}}
}

func (f *fakeSystem) has(program string) bool {
	for name := range f.missing {
		if strings.HasPrefix(program, name) {
			return false
		}
	}
	return true
}

func (f *fakeSystem) procNet(string) ([]byte, error) {
	return []byte("raw\nmangle\nnat\nfilter\n"), nil
}

func (f *fakeSystem) nftTables(family table.Family) ([]string, error) {
	if !f.fresh {
		return []string{"raw", "mangle", "nat", "filter"}, nil
	}
	var names []string
	for key := range f.tables {
		program, name, _ := strings.Cut(key, " ")
		if strings.HasPrefix(program, "ip6") == (family == table.IPv6) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (f *fakeSystem) table(family, name string) *fakeTable {
	key := family + " " + name
	t := f.tables[key]
	if t == nil {
		t = &fakeTable{chains: map[string][]string{}, base: map[string][]string{
			"raw": {"PREROUTING", "OUTPUT"}, "mangle": {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"},
			"nat": {"PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"}, "filter": {"INPUT", "FORWARD", "OUTPUT"},
		}[name]}
		for _, b := range t.base {
			t.chains[b] = nil
		}
		f.tables[key] = t
	}
	return t
}

func (f *fakeSystem) run(ctx context.Context, c command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	family, _, _ := strings.Cut(c.program, "-")
	switch {
	case slices.Equal(c.args, []string{"--version"}):
		c.line([]byte(f.version))
		return nil
	case strings.HasSuffix(c.program, "-save"):
		return f.save(family, c)
	case strings.HasSuffix(c.program, "-restore"):
		f.lastArgs = c.args
		return f.restore(family, string(c.input))
	}
	f.t.Fatalf("unknown program %s %v", c.program, c.args)
	return nil
}

func (f *fakeSystem) save(family string, c command) error {
	f.saves++
	if f.failSaves > 0 {
		f.failSaves--
		return &exitError{program: c.program, code: 1, stderr: "injected"}
	}
	var out bytes.Buffer
	names := []string{"raw", "mangle", "nat", "filter"}
	if len(c.args) == 2 && c.args[0] == "-t" {
		names = c.args[1:]
	} else if len(c.args) > 0 {
		f.t.Fatalf("arguments %v", c.args)
	}
	for _, name := range names {
		f.table(family, name).print(&out, name)
	}
	lines := strings.Split(out.String(), "\n")
	if f.cutSaves > 0 {
		f.cutSaves--
		lines = lines[:len(lines)/2]
	}
	for _, l := range lines {
		c.line([]byte(l))
	}
	if f.afterSave != nil {
		hook := f.afterSave
		f.afterSave = nil
		hook()
	}
	return nil
}

func (t *fakeTable) print(out *bytes.Buffer, name string) {
	fmt.Fprintf(out, "# Generated\n*%s\n", name)
	for _, name := range sortedKeys(t.chains) {
		policy := "-"
		if slices.Contains(t.base, name) {
			policy = "ACCEPT"
		}
		fmt.Fprintf(out, ":%s %s [0:0]\n", name, policy)
	}
	for _, name := range sortedKeys(t.chains) {
		for _, r := range t.chains[name] {
			fmt.Fprintf(out, "-A %s %s\n", name, r)
		}
	}
	fmt.Fprint(out, "COMMIT\n# Completed\n")
}

func (f *fakeSystem) restore(family, input string) error {
	f.restores++
	if f.beforeRestore != nil {
		hook := f.beforeRestore
		f.beforeRestore = nil
		hook()
	}
	if f.failRestores > 0 {
		f.failRestores--
		return f.restoreError
	}
	lines := strings.Split(strings.TrimSuffix(input, "\n"), "\n")
	if len(lines) < 2 || lines[0][0] != '*' || lines[len(lines)-1] != "COMMIT" {
		f.t.Fatalf("bad input %q", input)
	}
	f.inputs = append(f.inputs, input)
	real := f.table(family, lines[0][1:])
	work := &fakeTable{base: real.base, chains: map[string][]string{}}
	for name, rules := range real.chains {
		work.chains[name] = slices.Clone(rules)
	}
	for i, l := range lines[1 : len(lines)-1] {
		if err := f.line(work, l); err != nil {
			if !f.hint {
				return &exitError{program: "iptables-restore", code: 1, stderr: fmt.Sprintf("line %d failed", len(lines))}
			}
			return &exitError{program: "iptables-restore", code: 4, stderr: fmt.Sprintf("line %d: %v", i+2, err)}
		}
	}
	if err := work.check(); err != nil {
		return &exitError{program: "iptables-restore", code: 1, stderr: fmt.Sprintf("line %d failed: %v", len(lines), err)}
	}
	*real = *work
	return nil
}

var errNoSuch = errors.New("No chain/target/match by that name")

func (f *fakeSystem) line(t *fakeTable, l string) error {
	if name, ok := strings.CutPrefix(l, ":"); ok {
		name, rest, _ := strings.Cut(name, " ")
		if rest != "- [0:0]" || slices.Contains(t.base, name) || len(name) > maxChainName {
			f.t.Fatalf("bad line %q", l)
		}
		t.chains[name] = nil
		return nil
	}
	cmd, rest, _ := strings.Cut(l, " ")
	chain, rest, _ := strings.Cut(rest, " ")
	rules, ok := t.chains[chain]
	if !ok {
		return errNoSuch
	}
	if f.poison != nil && f.poison(rest) {
		return errors.New("RULE_APPEND failed (Invalid argument)")
	}
	position := func() (int, string) {
		n, rule, _ := strings.Cut(rest, " ")
		i, err := strconv.Atoi(n)
		if err != nil {
			f.t.Fatalf("bad line %q", l)
		}
		return i - 1, rule
	}
	switch cmd {
	case "-A":
		t.chains[chain] = append(rules, rest)
	case "-I":
		t.chains[chain] = slices.Insert(rules, 0, rest)
	case "-R":
		i, rule := position()
		if i >= len(rules) {
			return errors.New("Index of replacement too big")
		}
		rules[i] = rule
	case "-D":
		i := slices.Index(rules, rest)
		if len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
			i, _ = position()
		}
		if i < 0 || i >= len(rules) {
			return errors.New("Bad rule (does a matching rule exist in that chain?)")
		}
		t.chains[chain] = slices.Delete(rules, i, i+1)
	case "-X":
		if len(rules) > 0 {
			return errors.New("Directory not empty")
		}
		for _, others := range t.chains {
			for _, r := range others {
				if target(r) == chain {
					return errors.New("CHAIN_DEL failed (Device or resource busy)")
				}
			}
		}
		delete(t.chains, chain)
	default:
		f.t.Fatalf("bad line %q", l)
	}
	return nil
}

func target(rule string) string {
	for _, flag := range []string{"-j ", "-g "} {
		if i := strings.LastIndex(rule, flag); i >= 0 {
			name, _, _ := strings.Cut(rule[i+3:], " ")
			return name
		}
	}
	return ""
}

// check does the checks that the kernel does at the end.
func (t *fakeTable) check() error {
	for _, rules := range t.chains {
		for _, r := range rules {
			to := target(r)
			if _, ok := t.chains[to]; !ok && to != "" && strings.ToUpper(to) != to {
				return fmt.Errorf("%s is not there: %w", to, errNoSuch)
			}
		}
	}
	return nil
}

// fakeClock only advances by pauses.
type fakeClock struct {
	now    time.Time
	pauses []time.Duration
}

func (c *fakeClock) Now() time.Time { return c.now }

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	c.pauses = append(c.pauses, d)
	return ctx.Err()
}

func (c *fakeClock) slept() (sum time.Duration) {
	for _, d := range c.pauses {
		sum += d
	}
	return sum
}
