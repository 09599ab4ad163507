package ipam

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func TestPoolHandsOutNextFit(t *testing.T) {
	p := newPool(prefix("10.1.7.0/24"))
	if p.size != 252 {
		t.Fatalf("a /24 has room for %d pods, want 252", p.size)
	}
	first, _ := p.allocate()
	second, _ := p.allocate()
	if first != addr("10.1.7.2") || second != addr("10.1.7.3") {
		t.Fatalf("got %s, %s", first, second)
	}
	p.release(first)
	if third, _ := p.allocate(); third != addr("10.1.7.4") {
		t.Errorf("got %s right after releasing %s, want 10.1.7.4", third, first)
	}
	var last netip.Addr
	for range 249 {
		last, _ = p.allocate()
	}
	if last != addr("10.1.7.253") {
		t.Errorf("the highest pod address is %s, want 10.1.7.253", last)
	}
	if again, err := p.allocate(); err != nil || again != first {
		t.Errorf("after the wrap: %s, %v, want %s", again, err, first)
	}
	if a, err := p.allocate(); !errors.Is(err, ErrExhausted) {
		t.Errorf("full pool gave %s, %v", a, err)
	}
	p.release(addr("10.1.7.100"))
	if a, err := p.allocate(); err != nil || a != addr("10.1.7.100") {
		t.Errorf("the only free address: %s, %v", a, err)
	}
}

// TestPoolNeverGivesReserved checks for a bug of contiv, whose pool allocated .254 and .255 when it was full.
func TestPoolNeverGivesReserved(t *testing.T) {
	for _, subnet := range []string{"10.1.7.0/29", "10.1.7.0/24", "10.1.7.128/25", "fd10::/120", "fd10::/64", "10.0.0.0/15"} {
		p := newPool(prefix(subnet))
		n := min(p.size+10, 300_000)
		for range n {
			a, err := p.allocate()
			if err != nil {
				break
			}
			if !p.subnet.Contains(a) || a.Less(p.first) || !p.subnet.Contains(a.Next().Next()) {
				t.Fatalf("%s gave %s", subnet, a)
			}
		}
		if p.used > p.size {
			t.Fatalf("%s: %d used of %d", subnet, p.used, p.size)
		}
	}
}

func TestPoolIgnoresForeignAddresses(t *testing.T) {
	p := newPool(prefix("10.1.7.0/24"))
	for _, a := range []string{"10.1.7.0", "10.1.7.1", "10.1.7.254", "10.1.7.255", "10.1.8.2", "10.1.6.2", "fd10::2"} {
		p.release(addr(a))
		if p.take(addr(a)) {
			t.Errorf("took %s", a)
		}
		p.goOnAfter(addr(a))
	}
	if p.used != 0 || p.next != 0 {
		t.Errorf("used %d, next %d", p.used, p.next)
	}
	if !p.take(addr("10.1.7.9")) || p.take(addr("10.1.7.9")) {
		t.Error("an address can be taken once")
	}
	p.release(addr("10.1.7.9"))
	p.release(addr("10.1.7.9"))
	if p.used != 0 {
		t.Errorf("used %d after releasing twice", p.used)
	}
}

// naivePool is the oracle: it iterates over the addresses one by one.
type naivePool struct {
	addrs []netip.Addr
	used  map[netip.Addr]bool
	next  int
}

func newNaivePool(subnet netip.Prefix) *naivePool {
	n := &naivePool{used: map[netip.Addr]bool{}}
	var all []netip.Addr
	for a := subnet.Addr(); subnet.Contains(a); a = a.Next() {
		all = append(all, a)
	}
	n.addrs = all[2 : len(all)-2]
	return n
}

func (n *naivePool) allocate() (netip.Addr, bool) {
	for i := range n.addrs {
		j := (n.next + i) % len(n.addrs)
		if a := n.addrs[j]; !n.used[a] {
			n.used[a], n.next = true, (j+1)%len(n.addrs)
			return a, true
		}
	}
	return netip.Addr{}, false
}

// TestPoolAgainstOracle checks that random operations give the same results as the naive pool, with sizes around the word size of the
// bitmap.
func TestPoolAgainstOracle(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		subnet := []netip.Prefix{prefix("10.1.7.0/29"), prefix("10.1.7.64/26"), prefix("10.1.7.0/25"), prefix("fd10::/119")}[seed%4]
		p, oracle := newPool(subnet), newNaivePool(subnet)
		if p.size != len(oracle.addrs) {
			t.Fatalf("%s: size %d, want %d", subnet, p.size, len(oracle.addrs))
		}
		fill := rnd.IntN(4) // how likely the pool becomes full in this run
		for range 3000 {
			a := oracle.addrs[rnd.IntN(len(oracle.addrs))]
			switch {
			case rnd.IntN(4) <= fill:
				got, err := p.allocate()
				want, ok := oracle.allocate()
				if (err == nil) != ok || got != want {
					t.Fatalf("%s seed %d: got %s, %v, want %s, %v", subnet, seed, got, err, want, ok)
				}
			case rnd.IntN(5) == 0:
				if got, want := p.take(a), !oracle.used[a]; got != want {
					t.Fatalf("take(%s) = %v", a, got)
				}
				oracle.used[a] = true
			default:
				p.release(a)
				delete(oracle.used, a)
			}
			if p.used != len(oracle.used) {
				t.Fatalf("used %d, want %d", p.used, len(oracle.used))
			}
		}
	}
}

// BenchmarkAllocate measures one allocation from a slice of 65 k addresses: from an empty pool, and in the worst case of one free address
// that is the farthest from the start of the search.
func BenchmarkAllocate(b *testing.B) {
	b.Run("churn", func(b *testing.B) {
		p := newPool(prefix("10.1.0.0/16"))
		for b.Loop() {
			a, err := p.allocate()
			if err != nil {
				b.Fatal(err)
			}
			p.release(a)
		}
	})
	b.Run("nearlyFull", func(b *testing.B) {
		p := newPool(prefix("10.1.0.0/16"))
		for range p.size {
			if _, err := p.allocate(); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			p.release(addr("10.1.128.0"))
			if _, err := p.allocate(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("newIPv6Slash64", func(b *testing.B) {
		for b.Loop() {
			newPool(prefix("fd10:1::/64"))
		}
	})
}
