package ipsetcache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

const (
	ip   = proto.IPSetUpdate_IP
	net  = proto.IPSetUpdate_NET
	port = proto.IPSetUpdate_IP_AND_PORT
)

func update(id string, kind Kind, members ...string) *proto.IPSetUpdate {
	return &proto.IPSetUpdate{Id: id, Type: kind, Members: members}
}

func delta(id string, added, removed []string) *proto.IPSetDeltaUpdate {
	return &proto.IPSetDeltaUpdate{Id: id, AddedMembers: added, RemovedMembers: removed}
}

func list(members ...string) []string { return members }

func take(t *testing.T, c *Cache, msgs ...any) {
	t.Helper()
	for _, m := range msgs {
		if err := c.OnUpdate(m); err != nil {
			t.Error(err)
		}
	}
}

func texts(ms []Member) (out []string) {
	for _, m := range ms {
		s := m.Net.String()
		if m.Proto != 0 {
			s += fmt.Sprintf(",%d:%d", m.Proto, m.Port)
		}
		out = append(out, s)
	}
	return out
}

// say is the change of id in words.
func say(c *Cache, id string) string {
	ch, ok := c.Change(id)
	if !ok {
		return "same"
	}
	var words []string
	for word, is := range map[string]bool{"created": ch.Created, "recreated": ch.Recreated, "gone": ch.Gone} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	for _, m := range texts(ch.Added) {
		words = append(words, "+"+m)
	}
	for _, m := range texts(ch.Removed) {
		words = append(words, "-"+m)
	}
	return strings.Join(words, " ")
}

func expect(t *testing.T, c *Cache, want string) {
	t.Helper()
	if got := say(c, "s"); got != want {
		t.Errorf("change is %q, want %q", got, want)
	}
}

func TestChanges(t *testing.T) {
	c := New()
	take(t, c, update("s", ip, "10.0.0.2", "10.0.0.1"))
	expect(t, c, "created +10.0.0.1/32 +10.0.0.2/32")
	c.Ack("s")
	expect(t, c, "same")
	take(t, c, delta("s", list("10.0.0.3"), list("10.0.0.1")))
	expect(t, c, "+10.0.0.3/32 -10.0.0.1/32")
	take(t, c, delta("s", list("10.0.0.1"), list("10.0.0.3")))
	expect(t, c, "same") // there and back
	take(t, c, update("s", ip, "10.0.0.1", "10.0.0.2", "fd00::1"))
	expect(t, c, "+fd00::1/128")
	c.Ack("s")
	take(t, c, &proto.IPSetRemove{Id: "s"}, update("s", ip, "fd00::1", "10.0.0.2", "10.0.0.1"))
	expect(t, c, "same") // removed and made again, equal
	take(t, c, update("s", net, "10.0.0.0/24"))
	expect(t, c, "recreated +10.0.0.0/24")
	take(t, c, update("s", ip, "10.0.0.1", "10.0.0.2", "fd00::1"))
	expect(t, c, "same")
	take(t, c, &proto.IPSetRemove{Id: "s"})
	expect(t, c, "gone")
	if _, _, ok := c.Lookup("s"); ok || len(slices.Collect(c.Members("s"))) != 0 {
		t.Error("a removed set is still there")
	}
	c.Ack("s")
	expect(t, c, "same")
	take(t, c, update("s", ip, "10.0.0.1"), &proto.IPSetRemove{Id: "s"})
	expect(t, c, "same") // came and went unseen
	if len(c.sets)+len(c.changed) != 0 {
		t.Errorf("left: %v, %v", c.sets, c.changed)
	}
}

// TestSpellings: a member stays until the last of its spellings is taken back.
func TestSpellings(t *testing.T) {
	c := New()
	take(t, c, update("s", net, "10.0.0.7/24", "10.0.0.0/24", "10.0.0.1", "10.0.0.1/32", "::ffff:10.0.0.1"))
	c.Ack("s")
	take(t, c, delta("s", list("10.0.0.0/24", "10.0.0.1"), list("10.0.0.7/24", "10.0.0.1", "10.0.0.1/32")))
	expect(t, c, "same")
	if kind, n, ok := c.Lookup("s"); kind != net || n != 2 || !ok {
		t.Errorf("%v with %d members", kind, n)
	}
	take(t, c, delta("s", nil, list("::ffff:10.0.0.1")))
	expect(t, c, "-10.0.0.1/32")
	take(t, c, delta("s", nil, list("10.0.0.0/24")))
	expect(t, c, "-10.0.0.0/24 -10.0.0.1/32")
}

func TestBadMessages(t *testing.T) {
	c := New()
	err := c.OnUpdate(update("s", ip, "10.0.0.1", "10.0.0.0/8", "nonsense"))
	if err == nil || !strings.Contains(err.Error(), "IP set s") || !strings.Contains(err.Error(), `"nonsense"`) ||
		!strings.Contains(err.Error(), `"10.0.0.0/8"`) || strings.Contains(err.Error(), `"10.0.0.1"`) {
		t.Errorf("error %v", err)
	}
	expect(t, c, "created +10.0.0.1/32") // what is understood is taken
	c.Ack("s")
	take(t, c, delta("s", nil, list("nonsense", "10.9.9.9")))
	expect(t, c, "same")
	for _, msg := range []any{
		delta("x", list("10.0.0.1"), nil), &proto.IPSetRemove{Id: "x"}, delta("s", list(""), nil),
		update("y", 77, "10.0.0.1"), (*proto.IPSetDeltaUpdate)(nil),
	} {
		if err := c.OnUpdate(msg); err == nil {
			t.Errorf("%v was accepted", msg)
		}
	}
	take(t, c, &proto.InSync{}, "anything", nil)
	if _, _, ok := c.Lookup("x"); ok {
		t.Error("a change of members made a set")
	}
}

func TestParseMember(t *testing.T) {
	for _, tt := range []struct {
		kind Kind
		text string
		want string // "" is an error
	}{
		{ip, "10.0.0.1", "10.0.0.1/32"}, {ip, "::ffff:10.0.0.1", "10.0.0.1/32"}, {ip, "fd00:0::1", "fd00::1/128"},
		{ip, "10.0.0.1/32", "10.0.0.1/32"}, {ip, "10.0.0.0/31", ""}, {ip, "fe80::1%eth0", ""}, {ip, "", ""},
		{ip, "10.0.0.1,tcp:80", ""},
		{net, "10.1.2.3/8", "10.0.0.0/8"}, {net, "0.0.0.0/0", "0.0.0.0/0"}, {net, "fd00::1/64", "fd00::/64"},
		{net, "10.0.0.1/33", ""},
		{net, "::ffff:10.1.0.0/112", "10.1.0.0/16"}, {net, "::ffff:0:0/95", ""}, {net, "::/0", "::/0"},
		{port, "10.0.0.1,tcp:80", "10.0.0.1/32,6:80"}, {port, "fd00::1,UDP:53", "fd00::1/128,17:53"},
		{port, "10.0.0.1,sctp:65535", "10.0.0.1/32,132:65535"}, {port, "10.0.0.1,tcp:0", ""}, {port, "10.0.0.1,tcp:65536", ""},
		{port, "10.0.0.1,icmp:1", ""}, {port, "10.0.0.1", ""}, {port, "10.0.0.0/24,tcp:80", ""}, {port, "10.0.0.1,tcp", ""},
		{port, ",tcp:80", ""}, {9, "10.0.0.1", ""},
	} {
		m, err := ParseMember(tt.kind, tt.text)
		if got := texts([]Member{m})[0]; (err != nil) != (tt.want == "") || err == nil && got != tt.want {
			t.Errorf("%v %q: %s, %v; want %q", tt.kind, tt.text, got, err, tt.want)
		}
	}
}

// TestMembersDoNotShareFamilies: the default routes of both families are different members.
func TestMembersDoNotShareFamilies(t *testing.T) {
	c := New()
	take(t, c, update("s", net, "0.0.0.0/0", "::/0"))
	if _, n, _ := c.Lookup("s"); n != 2 {
		t.Errorf("%d members", n)
	}
}

// model is the naive cache: spellings per set, and what the user has.
type model struct {
	sets, user map[string]modelSet
}

type modelSet struct {
	kind  Kind
	texts map[string]bool
}

func (s modelSet) members() map[Member]bool {
	out := map[Member]bool{}
	for text := range s.texts {
		m, _ := ParseMember(s.kind, text)
		out[m] = true
	}
	return out
}

// TestAgainstModel: whatever messages come, a user who applies the changes it is told about has what the model has.
func TestAgainstModel(t *testing.T) {
	spellings := list("10.0.0.1", "10.0.0.1/32", "::ffff:10.0.0.1", "fd00::1", "fd00:0::1", "fd00::1/128",
		"10.0.0.2", "10.0.0.3/32")
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		some := func() (out []string) {
			for range rng.IntN(4) {
				out = append(out, spellings[rng.IntN(len(spellings))])
			}
			return out
		}
		c, m := New(), model{map[string]modelSet{}, map[string]modelSet{}}
		mirror := map[string]map[Member]bool{} // the dataplane of a user
		kinds := map[string]Kind{}
		for range 150 {
			id := fmt.Sprint(rng.IntN(3))
			switch op := rng.IntN(10); {
			case op < 3:
				u := update(id, Kind([]Kind{ip, net}[rng.IntN(2)]), some()...)
				s := modelSet{u.Type, map[string]bool{}}
				for _, text := range u.Members {
					s.texts[text] = true
				}
				m.sets[id] = s
				take(t, c, u)
			case op < 7:
				d := delta(id, some(), some())
				_, known := m.sets[id]
				for _, text := range d.AddedMembers {
					if known {
						m.sets[id].texts[text] = true
					}
				}
				for _, text := range d.RemovedMembers {
					delete(m.sets[id].texts, text)
				}
				if err := c.OnUpdate(d); (err == nil) != known {
					t.Fatal(err)
				}
			case op < 8:
				_, known := m.sets[id]
				delete(m.sets, id)
				if err := c.OnUpdate(&proto.IPSetRemove{Id: id}); (err == nil) != known {
					t.Fatal(err)
				}
			default:
				follow(t, c, id, mirror, kinds)
			}
		}
		for _, id := range c.Changed() {
			follow(t, c, id, mirror, kinds)
		}
		if len(c.Changed()) != 0 || len(mirror) != len(m.sets) {
			t.Fatalf("seed %d: changed %v, user has %d sets, want %d", seed, c.Changed(), len(mirror), len(m.sets))
		}
		for id, s := range m.sets {
			got := map[Member]bool{}
			for member := range c.Members(id) {
				got[member] = true
			}
			if want := s.members(); !maps.Equal(mirror[id], want) || !maps.Equal(got, want) || kinds[id] != s.kind {
				t.Fatalf("seed %d: set %s: user has %v, cache %v, want %v", seed, id, mirror[id], got, want)
			}
		}
	}
}

// follow is a user who applies the change of one set; each change must be one.
func follow(t *testing.T, c *Cache, id string, mirror map[string]map[Member]bool, kinds map[string]Kind) {
	ch, ok := c.Change(id)
	if !ok {
		return
	}
	switch {
	case ch.Gone:
		if mirror[id] == nil {
			t.Errorf("set %s is gone but was never there", id)
		}
		delete(mirror, id)
	case ch.Created != (mirror[id] == nil):
		t.Errorf("set %s: created %v", id, ch.Created)
	case ch.Recreated && kinds[id] == ch.Kind:
		t.Errorf("set %s is recreated with the same type", id)
	case !ch.Created && !ch.Recreated && len(ch.Added)+len(ch.Removed) == 0:
		t.Errorf("set %s is changed but equal", id)
	}
	if !ch.Gone {
		if ch.Created || ch.Recreated {
			mirror[id] = map[Member]bool{}
		}
		kinds[id] = ch.Kind
	}
	for _, m := range ch.Added {
		if mirror[id][m] {
			t.Errorf("set %s: %v is added twice", id, m)
		}
		mirror[id][m] = true
	}
	for _, m := range ch.Removed {
		if !mirror[id][m] {
			t.Errorf("set %s: %v is removed but not there", id, m)
		}
		delete(mirror[id], m)
	}
	c.Ack(id)
}

func FuzzParseMember(f *testing.F) {
	f.Add(int32(0), "10.0.0.1")
	f.Add(int32(1), "10.0.0.1,tcp:80")
	f.Add(int32(2), "fd00::/64")
	f.Fuzz(func(t *testing.T, kind int32, text string) {
		m, err := ParseMember(Kind(kind), text)
		if err != nil {
			return
		}
		if !m.Net.IsValid() || m.Net != m.Net.Masked() || m.Net.Addr().Is4In6() || m.Net.Addr().Zone() != "" {
			t.Errorf("%q: %v is not canonical", text, m)
		}
		if (kind == int32(port)) != (m.Port != 0) || (m.Port != 0) != (m.Proto != 0) {
			t.Errorf("%q: %v has no port where one belongs, or the other way round", text, m)
		}
	})
}

// BenchmarkOneMember is one member more, looked at and acknowledged, and one less, in a set of n.
func BenchmarkOneMember(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := New()
			u := update("s", ip)
			addr := netip.MustParseAddr("10.0.0.0")
			for range n {
				addr = addr.Next()
				u.Members = append(u.Members, addr.String())
			}
			_ = c.OnUpdate(u)
			c.Ack("s")
			more, less := delta("s", list("192.168.0.1"), nil), delta("s", nil, list("192.168.0.1"))
			b.ReportAllocs()
			for b.Loop() {
				for _, msg := range []any{more, less} {
					if err := c.OnUpdate(msg); err != nil {
						b.Fatal(err)
					}
					for _, id := range c.Changed() {
						c.Change(id)
						c.Ack(id)
					}
				}
			}
		})
	}
}

// BenchmarkNewSet is a set of 100,000 members.
func BenchmarkNewSet(b *testing.B) {
	u := update("s", ip)
	addr := netip.MustParseAddr("10.0.0.0")
	for range 100_000 {
		addr = addr.Next()
		u.Members = append(u.Members, addr.String())
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := New().OnUpdate(u); err != nil {
			b.Fatal(err)
		}
	}
}
