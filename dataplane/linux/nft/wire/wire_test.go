package wire

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/nft/nfttest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
)

// TestSpans compares intervals with the addresses that prefixes contain.
func TestSpans(t *testing.T) {
	rng := nfttest.Seeded(t)
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		for range 300 {
			var nets []netip.Prefix
			for range rng.IntN(8) {
				nets = append(nets, nfttest.Prefix(rng, AddressBytes(f)))
			}
			other := map[table.Family]netip.Prefix{
				table.IPv4: netip.MustParsePrefix("::/1"), table.IPv6: netip.MustParsePrefix("128.0.0.0/1")}[f]
			s := Nets(f, append([]netip.Prefix{other, {}}, nets...))
			for i := range 50 {
				a := nfttest.Prefix(rng, AddressBytes(f)).Addr()
				if i == 0 {
					a, _ = netip.AddrFromSlice(bytes.Repeat([]byte{0xff}, AddressBytes(f)))
				}
				want := slices.ContainsFunc(nets, func(p netip.Prefix) bool { return p.Contains(a) })
				var key [16]byte
				copy(key[:], a.AsSlice())
				got := slices.ContainsFunc(s.List, func(one Span) bool {
					return bytes.Compare(one.First[:], key[:]) <= 0 && bytes.Compare(key[:], one.Last[:]) <= 0
				})
				if got != want {
					t.Fatalf("%s in %v: %v, want %v", a, nets, got, want)
				}
			}
			for i := 1; i < len(s.List); i++ {
				after, more := s.Next(s.List[i-1].Last)
				if !more || bytes.Compare(s.List[i].First[:], after[:]) <= 0 {
					t.Fatalf("spans touch: %v", s.List)
				}
			}
		}
	}
	if !Ports([]table.PortRange{{First: 100, Last: 65535}, {First: 0, Last: 99}}).All() {
		t.Error("0-99 and 100-65535 are not all ports")
	}
	if s := Ports([]table.PortRange{{First: 9, Last: 3}}); len(s.List) != 0 {
		t.Error("a range that ends before it begins holds ports")
	}
}

// TestGarbage: arbitrary data from the kernel does not cause a panic.
func TestGarbage(t *testing.T) {
	rng := nfttest.Seeded(t)
	e := &events{Conn: &Conn{}, to: &link{}}
	e.to.view("contiv", nil)
	for range 20_000 {
		b := make([]byte, rng.IntN(80))
		for i := range b {
			b[i] = byte(rng.IntN(6) * rng.IntN(40))
		}
		netlink.Messages(b, func(m netlink.Message) {
			m.Type = subsys(rng.IntN(30))
			e.note(m)
		})
		EachAttr(b, func(_ uint16, v []byte) { _ = elementOf(v) })
		_ = HashOf(b)
	}
}

// TestUserData: the hash is found after any comment, even one that is too long.
func TestUserData(t *testing.T) {
	h := Hash{1, 2, 3}
	for _, comment := range []string{"", "x", string(bytes.Repeat([]byte("y"), 500))} {
		u := AppendUserData(nil, comment, h)
		if HashOf(u) != h || len(u) > 256 {
			t.Errorf("%d bytes of user data with comment %.10q: hash %x", len(u), comment, HashOf(u))
		}
	}
}
