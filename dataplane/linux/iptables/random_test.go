package iptables

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Random changes, faults and changes by other programs end in the same state as one write of the result.
func TestRandomEdits(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	r := newRig(t, Config{})
	const n = 12
	name := func(i int) string { return fmt.Sprintf("cali-%d", i) }
	desired := map[int]table.Chain{}
	var hook []table.Rule
	for i := range n {
		desired[i] = table.Chain{Name: name(i)}
		r.SetChains(4, table.Filter, desired[i])
	}
	r.sys.restoreError = &exitError{code: 4, stderr: "Resource temporarily unavailable"}
	for range 800 {
		switch k := rnd.IntN(12); {
		case k < 6:
			c := table.Chain{Name: name(rnd.IntN(n))}
			var i int
			fmt.Sscanf(c.Name, "cali-%d", &i)
			for range rnd.IntN(5) {
				if i+1 < n && rnd.IntN(3) == 0 {
					c.Rules = append(c.Rules, jump(name(i+1+rnd.IntN(n-i-1))))
				} else {
					c.Rules = append(c.Rules, numberedRule(rnd.IntN(5), act(table.Drop)...))
				}
			}
			desired[i] = c
			r.SetChains(4, table.Filter, c)
		case k == 6:
			hook = nil
			for range rnd.IntN(3) {
				hook = append(hook, jump(name(rnd.IntN(n))))
			}
			r.SetHook(4, table.Filter, table.Forward, hook...)
		case k == 7:
			r.sys.failRestores = rnd.IntN(3)
		case k == 8:
			tb := r.filter()
			victim := name(rnd.IntN(n))
			if rules := tb.chains[victim]; len(rules) > 0 {
				tb.chains[victim] = rules[1:]
			}
			r.Resync(false, rnd.IntN(2) == 0)
		case k == 9:
			r.clock.now = r.clock.now.Add(time.Duration(rnd.IntN(3)) * time.Second)
		default:
			if res := r.Apply(context.Background()); res.Err != nil || len(res.Broken) > 0 {
				t.Fatalf("apply: %+v", res)
			}
		}
	}
	r.Resync(true, true)
	apply(t, r.Backend)
	got := r.sys.tables["iptables filter"].chains
	other := newRig(t, Config{})
	for _, c := range desired {
		other.SetChains(4, table.Filter, c)
	}
	other.SetHook(4, table.Filter, table.Forward, hook...)
	apply(t, other.Backend)
	want := other.sys.tables["iptables filter"].chains
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after edits:\n%v\nin one go:\n%v", got, want)
	}
}

func TestFindTools(t *testing.T) {
	for name, c := range map[string]struct {
		missing []string
		version string
		want    Variant
		base    string
		fails   bool
	}{
		"modern": {[]string{"iptables-legacy"}, "iptables v1.8.9 (nf_tables)", VariantAuto, "iptables-nft", false},
		"only iptables": {[]string{"iptables-nft", "iptables-legacy"}, "iptables v1.8.9 (nf_tables)", VariantNFT, "iptables",
			false},
		"old":              {[]string{"iptables-nft", "iptables-legacy"}, "iptables v1.6.0", VariantAuto, "iptables", false},
		"old is legacy":    {[]string{"iptables-nft", "iptables-legacy"}, "iptables v1.6", VariantLegacy, "iptables", false},
		"not as asked":     {[]string{"iptables-nft", "iptables-legacy"}, "iptables v1.6.0", VariantNFT, "", true},
		"none":             {[]string{"iptables"}, "", VariantAuto, "", true},
		"speaks in riddle": {[]string{"iptables-nft", "iptables-legacy"}, "hello", VariantAuto, "", true},
	} {
		s := newFakeSystem(t)
		s.missing, s.version = map[string]bool{}, c.version
		for _, m := range c.missing {
			s.missing[m] = true
		}
		got, _, err := findTools(context.Background(), s, c.want)
		if (err != nil) != c.fails || got.base != c.base {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// bothVariants has both variants; the legacy one has tables only if used is true.
type bothVariants struct {
	*fakeSystem
	used bool
	ran  []string
}

func (b *bothVariants) procNet(string) ([]byte, error) {
	if !b.used {
		return nil, nil
	}
	return []byte("filter\n"), nil
}

func (b *bothVariants) run(ctx context.Context, c command) error {
	b.ran = append(b.ran, strings.Join(append([]string{c.program}, c.args...), " "))
	if c.program == "iptables-legacy" {
		c.line([]byte("iptables v1.8.9 (legacy)"))
		return nil
	}
	return b.fakeSystem.run(ctx, c)
}

// TestFindToolsRunsFewPrograms: each program reports its version once, and rules are only counted where the choice depends on them.
func TestFindToolsRunsFewPrograms(t *testing.T) {
	versions := []string{"iptables --version", "iptables-nft --version", "iptables-legacy --version"}
	for name, c := range map[string]struct {
		used  bool // legacy tables
		fresh bool // no tables of nf_tables
		want  Variant
		runs  []string
	}{
		"usual":              {false, false, VariantAuto, nil},
		"nothing":            {false, true, VariantAuto, nil},
		"legacy tables":      {true, false, VariantAuto, []string{"iptables-legacy-save", "ip6tables-legacy-save"}},
		"nft is configured":  {true, false, VariantNFT, nil},
		"legacy, configured": {true, false, VariantLegacy, nil},
	} {
		s := &bothVariants{fakeSystem: newFakeSystem(t), used: c.used}
		s.missing, s.fresh = nil, c.fresh
		used, other, err := findTools(context.Background(), s, c.want)
		wantUsed, wantOther := "iptables-nft", "iptables-legacy"
		if c.want == VariantLegacy {
			wantUsed, wantOther = wantOther, wantUsed
		}
		if err != nil || used.base != wantUsed || other.base != wantOther {
			t.Errorf("%s: %+v, %+v, %v", name, used, other, err)
		}
		if !slices.Equal(s.ran, append(versions[:3:3], c.runs...)) {
			t.Errorf("%s: ran %q", name, s.ran)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{
		{InsertMode: "prepend"}, {Variant: "bpf"}, {ScratchMarks: [2]uint32{1, 1}}, {ScratchMarks: [2]uint32{3, 4}},
		{ScratchMarks: [2]uint32{1, 0}}, {ChainPrefixes: []string{"has space"}}, {ChainPrefixes: []string{""}},
	} {
		if _, err := c.complete(); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
