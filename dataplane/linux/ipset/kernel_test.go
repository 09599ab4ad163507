package ipset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

func TestAllTypesBothFamilies(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "ip", Type: table.SetIP}, []table.Member{addr("10.0.0.1"), addr("10.0.0.2")})
	s.Replace(6, table.Set{ID: "ip", Type: table.SetIP}, []table.Member{addr("fd00::1")})
	s.Replace(4, table.Set{ID: "port", Type: table.SetIPAndPort},
		[]table.Member{port("10.0.0.1", 6, 80), port("10.0.0.1", 17, 80), port("10.0.0.1", 132, 0)})
	s.Replace(6, table.Set{ID: "port", Type: table.SetIPAndPort}, []table.Member{port("fd00::1", 6, 65535)})
	s.Replace(4, table.Set{ID: "net", Type: table.SetNet},
		[]table.Member{pfx("10.0.0.0/8"), pfx("10.1.0.0/16"), pfx("1.2.3.4/32")})
	s.Replace(6, table.Set{ID: "net", Type: table.SetNet}, []table.Member{pfx("fd00::/8"), pfx("fd00::5/128")})
	s.Replace(4, table.Set{ID: "empty", Type: table.SetNet}, nil)
	if r := apply(t, s); r.Writes != 7+12 {
		t.Errorf("%d writes, want 19", r.Writes)
	}
	n.expect(map[string][]string{
		"cv40ip": {"10.0.0.1", "10.0.0.2"}, "cv60ip": {"fd00::1"},
		"cv40port": {"10.0.0.1,sctp:0", "10.0.0.1,tcp:80", "10.0.0.1,udp:80"}, "cv60port": {"fd00::1,tcp:65535"},
		"cv40net": {"1.2.3.4", "10.0.0.0/8", "10.1.0.0/16"}, "cv60net": {"fd00::/8", "fd00::5"}, "cv40empty": {},
	})

	s.Change(4, "ip", []table.Member{addr("10.0.0.3"), addr("10.0.0.1")}, []table.Member{addr("10.0.0.2"), addr("10.9.9.9")})
	s.Change(4, "port", nil, []table.Member{port("10.0.0.1", 17, 80)})
	s.Delete(6, "net")
	if r := apply(t, s); r.Writes != 4 {
		t.Errorf("%d writes, want 4", r.Writes)
	}
	got := n.kernelSets()
	if !slices.Equal(got["cv40ip"], []string{"10.0.0.1", "10.0.0.3"}) || len(got["cv40port"]) != 2 || got["cv60net"] != nil {
		t.Errorf("kernel has %v", got)
	}
	if s.Pending() {
		t.Error("still pending")
	}
}

// A set can contain 0.0.0.0/0 together with its halves, and loses exactly the removed members.
func TestAllAddresses(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "a", Type: table.SetNet}, []table.Member{pfx("0.0.0.0/0")})
	s.Replace(6, table.Set{ID: "a", Type: table.SetNet}, []table.Member{pfx("::/0"), pfx("8000::/1")})
	apply(t, s)
	n.expect(map[string][]string{"cv40a": {"0.0.0.0/1", "128.0.0.0/1"}, "cv60a": {"8000::/1", "::/1"}})
	s.Change(4, "a", []table.Member{pfx("128.0.0.0/1")}, nil)
	if r := apply(t, s); r.Writes != 0 {
		t.Errorf("adding a half wrote %d", r.Writes)
	}
	s.Change(4, "a", nil, []table.Member{pfx("0.0.0.0/0")})
	s.Change(6, "a", nil, []table.Member{pfx("8000::/1")})
	apply(t, s)
	n.expect(map[string][]string{"cv40a": {"128.0.0.0/1"}, "cv60a": {"8000::/1", "::/1"}})
}

func TestRestart(t *testing.T) {
	n := newNS(t)
	desire := func(s *Sets) {
		s.Replace(4, table.Set{ID: "same", Type: table.SetIP}, []table.Member{addr("10.0.0.1"), addr("10.0.0.2")})
		s.Replace(6, table.Set{ID: "same", Type: table.SetNet}, []table.Member{pfx("::/0"), pfx("fd00::/64")})
		s.Replace(4, table.Set{ID: "ports", Type: table.SetIPAndPort}, []table.Member{port("10.0.0.1", 6, 80)})
	}
	first := n.open(t)
	desire(first)
	apply(t, first)
	n.sh("ipset create cv40orphan hash:ip; ipset create cv4t7 hash:ip; ipset create foreign hash:ip; ipset add foreign 1.1.1.1")
	before := n.kernelSets()

	second := n.open(t)
	desire(second)
	if r := second.ApplyUpdates(); r.Writes != 0 || r.Err != nil {
		t.Fatalf("a restart with the same sets wrote %d, %v", r.Writes, r.Err)
	}
	if r := second.ApplyDestroys(); r.Writes != 2 || r.Err != nil {
		t.Fatalf("%d leftovers destroyed, want 2 (%v)", r.Writes, r.Err)
	}
	delete(before, "cv40orphan")
	delete(before, "cv4t7")
	n.expect(before)

	n.sh("ipset add cv40same 9.9.9.9; ipset del cv40same 10.0.0.1; ipset destroy cv60same")
	if r := second.ApplyUpdates(); r.Writes != 0 {
		t.Fatalf("wrote %d without being asked to compare", r.Writes)
	}
	second.Resync()
	if r := apply(t, second); r.Writes != 2+4 {
		t.Errorf("repaired with %d writes, want 6", r.Writes)
	}
	n.expect(before)
}

// TestRepaired checks that an apply that repairs the members that another program has added or removed reports it, and that own changes and the
// first apply do not.
func TestRepaired(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	n.sh("ipset create cv40a hash:ip; ipset add cv40a 10.9.9.9")
	s.Replace(4, table.Set{ID: "a", Type: table.SetIP}, []table.Member{addr("10.0.0.1"), addr("10.0.0.2")})
	s.Replace(6, table.Set{ID: "a", Type: table.SetIP}, []table.Member{addr("fd00::1")})
	for _, step := range []struct {
		name     string
		change   func()
		writes   bool
		repaired bool
	}{
		{"the first apply", func() {}, true, false},
		{"nothing has changed", func() {}, false, false},
		{"own changes", func() { s.Change(4, "a", []table.Member{addr("10.0.0.3")}, []table.Member{addr("10.0.0.1")}) }, true, false},
		{"flushed", func() { n.sh("ipset flush") }, true, true},
		{"repaired before", func() {}, false, false},
		{"one more member", func() { n.sh("ipset add cv40a 10.0.0.9") }, true, true},
		{"flushed, and an own change", func() {
			n.sh("ipset flush")
			s.Change(6, "a", []table.Member{addr("fd00::2")}, nil)
		}, true, true},
		{"destroyed", func() { n.sh("ipset destroy cv40a") }, true, true},
	} {
		step.change()
		s.Resync()
		if r := apply(t, s); r.Writes > 0 != step.writes || r.Repaired != step.repaired {
			t.Errorf("%s: %+v, want writes %t, repaired %t", step.name, r, step.writes, step.repaired)
		}
	}
	n.expect(map[string][]string{"cv40a": {"10.0.0.2", "10.0.0.3"}, "cv60a": {"fd00::1", "fd00::2"}})
}

// A set that another program destroyed or created meanwhile causes another attempt, not a failure.
func TestConcurrentChanges(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "a", Type: table.SetIP}, []table.Member{addr("10.0.0.1")})
	apply(t, s)
	n.sh("ipset destroy cv40a; ipset create cv40b hash:ip; ipset add cv40b 7.7.7.7")
	s.Change(4, "a", []table.Member{addr("10.0.0.2")}, nil)
	s.Replace(4, table.Set{ID: "b", Type: table.SetIP}, []table.Member{addr("10.0.0.3")})
	apply(t, s)
	n.expect(map[string][]string{"cv40a": {"10.0.0.1", "10.0.0.2"}, "cv40b": {"10.0.0.3"}})
}

func numbered(from, to int) []table.Member {
	out := make([]table.Member, 0, to-from)
	for i := from; i < to; i++ {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		out = append(out, table.Member{Net: netip.PrefixFrom(a, 32)})
	}
	return out
}

// A set over its limit keeps its content, a new one is created empty, and the others are written.
func TestOversizedSetIsIsolated(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "grows", Type: table.SetIP, Max: 3}, numbered(1, 4))
	apply(t, s)
	s.Change(4, "grows", numbered(10, 11), nil)
	s.Replace(4, table.Set{ID: "new", Type: table.SetIP, Max: 3}, numbered(0, 4))
	s.Replace(4, table.Set{ID: "fine", Type: table.SetIP, Max: 3}, numbered(5, 6))
	for range 2 {
		r := s.ApplyUpdates()
		if r.Err != nil || len(r.Broken) != 2 || r.Broken["set v4 grows"] == nil || r.Broken["set v4 new"] == nil {
			t.Fatalf("result %+v", r)
		}
		if !strings.Contains(r.Broken["set v4 grows"].Error(), "MaxIPSetSize") {
			t.Errorf("the reason does not help: %v", r.Broken)
		}
		n.expect(map[string][]string{
			"cv40grows": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}, "cv40new": {}, "cv40fine": {"10.0.0.5"},
		})
		for _, id := range []string{"grows", "new", "fine"} {
			if !s.Usable(4, id) {
				t.Errorf("%s is not usable", id)
			}
		}
	}
	// Full, and one member replaces another: there is no room to add first.
	s.Change(4, "grows", nil, numbered(1, 2))
	s.Replace(4, table.Set{ID: "new", Type: table.SetIP, Max: 10}, numbered(20, 24))
	apply(t, s)
	n.expect(map[string][]string{
		"cv40grows": {"10.0.0.10", "10.0.0.2", "10.0.0.3"},
		"cv40new":   {"10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23"}, "cv40fine": {"10.0.0.5"},
	})
}

// A change that the kernel rejects half-way is reverted; the error names the member.
func TestRefusedMember(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "a", Type: table.SetIP}, numbered(1, 3))
	apply(t, s)
	s.Change(4, "a", append(numbered(100, 900), addr("0.0.0.0")), numbered(1, 2))
	s.Replace(4, table.Set{ID: "b", Type: table.SetIP}, []table.Member{addr("10.0.0.1"), addr("0.0.0.0")})
	s.Replace(4, table.Set{ID: "c", Type: table.SetIP}, []table.Member{pfx("10.0.0.0/24")})
	s.Replace(4, table.Set{ID: "d", Type: table.SetIP}, numbered(4, 5))
	for range 2 {
		r := s.ApplyUpdates()
		if r.Err != nil || len(r.Broken) != 3 || !errors.Is(r.Broken["set v4 a"], errHashElem) {
			t.Fatalf("result %+v", r)
		}
		if msg := r.Broken["set v4 a"].Error(); !strings.Contains(msg, "0.0.0.0") {
			t.Errorf("reason %q does not name the member", msg)
		}
		n.expect(map[string][]string{"cv40a": {"10.0.0.1", "10.0.0.2"}, "cv40b": {}, "cv40c": {}, "cv40d": {"10.0.0.4"}})
	}
	s.Change(4, "a", nil, append(numbered(100, 900), addr("0.0.0.0")))
	s.Change(4, "b", nil, []table.Member{addr("0.0.0.0")})
	s.Change(4, "c", []table.Member{addr("10.0.0.9")}, []table.Member{pfx("10.0.0.0/24")})
	apply(t, s)
	n.expect(map[string][]string{"cv40a": {"10.0.0.2"}, "cv40b": {"10.0.0.1"}, "cv40c": {"10.0.0.9"}, "cv40d": {"10.0.0.4"}})
}

// A set whose type changes while rules use it gets another name until they do not, also if the next process takes over.
func TestTypeChange(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "a", Type: table.SetIP}, numbered(1, 3))
	apply(t, s)
	n.sh("iptables-legacy -A INPUT -m set --match-set cv40a src")
	before := s.Names()
	s.Replace(4, table.Set{ID: "a", Type: table.SetNet}, []table.Member{pfx("10.0.0.0/8")})
	apply(t, s)
	other := s.Name(4, "a")
	if other == "cv40a" || !s.Usable(4, "a") || s.Names() == before {
		t.Fatalf("called %s, usable %v", other, s.Usable(4, "a"))
	}
	n.expect(map[string][]string{"cv40a": {"10.0.0.1", "10.0.0.2"}, other: {"10.0.0.0/8"}})

	s = n.open(t)
	s.Replace(4, table.Set{ID: "a", Type: table.SetNet}, []table.Member{pfx("10.0.0.0/8")})
	if r := s.ApplyUpdates(); r.Writes != 0 || r.Err != nil || s.Name(4, "a") != other {
		t.Fatalf("restart: %+v, called %s", r, s.Name(4, "a"))
	}
	n.sh("iptables-legacy -F INPUT")
	apply(t, s)
	n.expect(map[string][]string{other: {"10.0.0.0/8"}})
	s.Replace(4, table.Set{ID: "a", Type: table.SetIP}, numbered(1, 2))
	apply(t, s)
	n.expect(map[string][]string{"cv40a": {"10.0.0.1"}})
}

// A set that rules use is not destroyed, and the attempts end.
func TestDestroyInUse(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "a", Type: table.SetIP}, nil)
	s.Replace(4, table.Set{ID: "b", Type: table.SetIP}, nil)
	apply(t, s)
	n.sh("iptables-legacy -A INPUT -m set --match-set cv40a src")
	s.Delete(4, "a")
	s.Delete(4, "b")
	rounds := 0
	for r := s.ApplyDestroys(); r.Again > 0; r = s.ApplyDestroys() {
		if rounds++; rounds > 100 {
			t.Fatal("does not give up")
		}
	}
	if rounds == 0 || s.Pending() {
		t.Errorf("%d rounds, pending %v", rounds, s.Pending())
	}
	n.expect(map[string][]string{"cv40a": {}})
	n.sh("iptables-legacy -F INPUT")
	s.Resync()
	apply(t, s)
	n.expect(map[string][]string{})
}

func TestHundredThousandMembers(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	s.Replace(4, table.Set{ID: "big", Type: table.SetIP}, numbered(0, 100_000))
	start := time.Now()
	apply(t, s)
	t.Logf("created in %v", time.Since(start))
	again := n.open(t)
	again.Replace(4, table.Set{ID: "big", Type: table.SetIP}, numbered(0, 100_000))
	start = time.Now()
	if r := apply(t, again); r.Writes != 0 {
		t.Errorf("restart wrote %d", r.Writes)
	}
	t.Logf("compared in %v", time.Since(start))
	again.Replace(4, table.Set{ID: "big", Type: table.SetIP}, numbered(60_000, 160_000))
	start = time.Now()
	apply(t, again)
	t.Logf("rebuilt in %v", time.Since(start))
	got := 0
	third := n.open(t)
	if err := third.kernel.members("cv40big", func(member) { got++ }); err != nil || got != 100_000 {
		t.Errorf("%d members, %v", got, err)
	}
	if names := n.sh("ipset list -n"); strings.TrimSpace(names) != "cv40big" {
		t.Errorf("sets left: %s", names)
	}
}

// Random edits end in the same state as one replacement by the result, for any order and any times of apply; none of them is a repair.
func TestRandomEdits(t *testing.T) {
	n := newNS(t)
	s := n.open(t)
	model := map[string]map[table.Member]bool{}
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	random := func() table.Member {
		bits := rnd.IntN(4)
		return table.Member{Net: netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(rnd.IntN(4) << 6)}), bits).Masked()}
	}
	applyOwn := func() {
		t.Helper()
		if r := apply(t, s); r.Repaired {
			t.Fatal("no other program has changed a set, and yet it is repaired")
		}
	}
	for step := range 1500 {
		id := fmt.Sprint(rnd.IntN(4))
		switch k := rnd.IntN(20); {
		case k == 0:
			s.Delete(4, id)
			delete(model, id)
		case k < 3 || model[id] == nil:
			var members []table.Member
			model[id] = map[table.Member]bool{}
			for range rnd.IntN(12) {
				m := random()
				members = append(members, m)
				model[id][m] = true
			}
			s.Replace(4, table.Set{ID: id, Type: table.SetNet, Max: 20 + rnd.IntN(2)}, members)
		case k < 16:
			add, remove := random(), random()
			s.Change(4, id, []table.Member{add}, []table.Member{remove})
			model[id][add] = true
			delete(model[id], remove)
		case k == 16:
			s.Resync()
		default:
			applyOwn()
		}
		if step%50 == 49 {
			applyOwn()
			n.expect(flatten(model))
			if r := apply(t, s); r.Writes != 0 || s.Pending() {
				t.Fatalf("applying again wrote %d", r.Writes)
			}
		}
	}
}

func flatten(model map[string]map[table.Member]bool) map[string][]string {
	out := map[string][]string{}
	for id, members := range model {
		set := map[string]bool{}
		for m := range members {
			if m.Net.Bits() == 0 {
				set["0.0.0.0/1"], set["128.0.0.0/1"] = true, true
			} else {
				set[m.Net.String()] = true
			}
		}
		list := []string{}
		for m := range set {
			list = append(list, m)
		}
		slices.Sort(list)
		out["cv40"+id] = list
	}
	return out
}

func TestName(t *testing.T) {
	for _, c := range []struct{ id, want string }{
		{"all-ipam-pools", "cv40all-ipam-pools"},
		{strings.Repeat("x", 27), "cv40" + strings.Repeat("x", 27)},
	} {
		if got := Name(4, c.id); got != c.want {
			t.Errorf("Name(%q) = %q, want %q", c.id, got, c.want)
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", "a b", "a\nb", "a\"b", "a,b", "é", strings.Repeat("x", 28), strings.Repeat("x", 29)} {
		got := Name(6, id)
		if len(got) > 31 || !strings.HasPrefix(got, "cv60_") || seen[got] {
			t.Errorf("Name(%q) = %q", id, got)
		}
		seen[got] = true
	}
}
