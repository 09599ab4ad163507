package ifacemonitor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

const up = unix.IFF_UP | unix.IFF_RUNNING

func lnk(index int, name string, flags uint32) netlink.Link {
	return netlink.Link{Index: index, Name: name, Flags: flags}
}

func addrOf(index int, prefix string) netlink.Address {
	p := netip.MustParsePrefix(prefix)
	return netlink.Address{Index: index, Prefix: p, Peer: p.Addr()}
}

func text(news []any) string {
	var out []string
	for _, n := range news {
		switch u := n.(type) {
		case *IfaceStateUpdate:
			out = append(out, fmt.Sprintf("%s/%d %s", u.Name, u.Index, u.State))
		case *IfaceMTUUpdate:
			out = append(out, fmt.Sprintf("%s MTU %d", u.Name, u.MTU))
		case *IfaceAddrsUpdate:
			if u.Addrs == nil {
				out = append(out, u.Name+" no more addresses")
			} else {
				out = append(out, fmt.Sprintf("%s %v", u.Name, u.Addrs))
			}
		}
	}
	return strings.Join(out, ", ")
}

func expect(t *testing.T, what string, got []any, want string) {
	t.Helper()
	if text(got) != want {
		t.Errorf("%s:\n got %s\nwant %s", what, text(got), want)
	}
}

// TestViewMTU: a link's MTU is reported when it changes, by a notification or in a listing, but not when the link appears.
func TestViewMTU(t *testing.T) {
	v := newView(nil)
	eth := func(index, mtu int) netlink.Link {
		l := lnk(index, "eth0", up)
		l.MTU = mtu
		return l
	}
	expect(t, "appears", v.linkChanged(eth(2, 1500)), "eth0/2 up, eth0 []")
	expect(t, "the same", v.linkChanged(eth(2, 1500)), "")
	expect(t, "larger", v.linkChanged(eth(2, 9000)), "eth0 MTU 9000")
	expect(t, "listed", v.listed([]netlink.Link{eth(2, 1400)}, nil, false), "eth0 MTU 1400")
	expect(t, "another link of the name", v.linkChanged(eth(3, 1600)), "eth0/2 absent, eth0 no more addresses, eth0/3 up, eth0 []")
}

func TestView(t *testing.T) {
	v := newView([]*regexp.Regexp{regexp.MustCompile("^kube-ipvs0$")})
	expect(t, "listing", v.listed([]netlink.Link{lnk(1, "lo", up), lnk(2, "eth0", unix.IFF_UP), lnk(3, "kube-ipvs0", 0)},
		[]netlink.Address{addrOf(1, "127.0.0.1/8"), addrOf(3, "10.96.0.1/32")}, false),
		"lo/1 up, lo [127.0.0.1], eth0/2 down, eth0 [], kube-ipvs0/3 down")
	expect(t, "carrier", v.linkChanged(lnk(2, "eth0", up)), "eth0/2 up")
	expect(t, "again", v.linkChanged(lnk(2, "eth0", up|unix.IFF_PROMISC)), "")
	expect(t, "address", v.addrChanged(addrOf(2, "10.0.0.2/24"), true), "eth0 [10.0.0.2]")
	expect(t, "the same one, other length", v.addrChanged(addrOf(2, "10.0.0.2/32"), true), "")
	expect(t, "another one", v.addrChanged(addrOf(2, "10.0.0.1/32"), true), "eth0 [10.0.0.1 10.0.0.2]")
	expect(t, "one of two", v.addrChanged(addrOf(2, "10.0.0.2/24"), false), "")
	expect(t, "both of two", v.addrChanged(addrOf(2, "10.0.0.2/32"), false), "eth0 [10.0.0.1]")
	expect(t, "excluded", v.addrChanged(addrOf(3, "10.96.0.2/32"), true), "")
	expect(t, "excluded up", v.linkChanged(lnk(3, "kube-ipvs0", up)), "kube-ipvs0/3 up")
	expect(t, "renamed", v.linkChanged(lnk(2, "eth1", up)), "eth0/2 absent, eth0 no more addresses, eth1/2 up, eth1 [10.0.0.1]")
	expect(t, "address before its link", v.addrChanged(addrOf(7, "10.0.0.7/32"), true), "")
	expect(t, "its link", v.linkChanged(lnk(7, "cali7", 0)), "cali7/7 down, cali7 [10.0.0.7]")
	expect(t, "name taken over", v.linkChanged(lnk(8, "cali7", up)),
		"cali7/7 absent, cali7 no more addresses, cali7/8 up, cali7 []")
	expect(t, "gone", v.linkGone(7), "")
	expect(t, "gone too", v.linkGone(8), "cali7/8 absent, cali7 no more addresses")
	expect(t, "address of what is gone", v.addrChanged(addrOf(8, "10.0.0.8/32"), false), "")
	expect(t, "excluded gone", v.linkGone(3), "kube-ipvs0/3 absent")
	expect(t, "listing, same", v.listed([]netlink.Link{lnk(1, "lo", up), lnk(2, "eth1", up)},
		[]netlink.Address{addrOf(1, "127.0.0.1/8"), addrOf(2, "10.0.0.1/32")}, false), "")
	expect(t, "listing after loss", v.listed([]netlink.Link{lnk(1, "lo", up), lnk(2, "eth1", up), lnk(4, "new", up)},
		[]netlink.Address{addrOf(1, "127.0.0.1/8")}, true), "lo/1 up, eth1/2 up, eth1 [], new/4 up, new []")
	expect(t, "names swapped", v.listed([]netlink.Link{lnk(1, "lo", up), lnk(2, "new", up), lnk(4, "eth1", up)},
		[]netlink.Address{addrOf(1, "127.0.0.1/8")}, false),
		"new/4 absent, new no more addresses, eth1/2 absent, eth1 no more addresses, new/2 up, new [], eth1/4 up, eth1 []")
}

// world is the state of a receiver of updates.
type world struct {
	t     *testing.T
	state map[string]string
	addrs map[string]string
}

func (w *world) take(news []any) {
	for _, n := range news {
		switch u := n.(type) {
		case *IfaceStateUpdate:
			if u.State == StateAbsent {
				if old := w.state[u.Name]; !strings.HasSuffix(old, fmt.Sprint("/", u.Index)) {
					w.t.Errorf("%s with index %d is gone, but was %s", u.Name, u.Index, old)
				}
				delete(w.state, u.Name)
			} else {
				w.state[u.Name] = fmt.Sprintf("%s/%d", u.State, u.Index)
			}
		case *IfaceAddrsUpdate:
			if u.Addrs == nil {
				delete(w.addrs, u.Name)
			} else {
				w.addrs[u.Name] = fmt.Sprint(u.Addrs)
			}
		}
	}
}

// TestViewRandom: for any sequence of events, some of them lost before a listing, the receiver has the current state.
func TestViewRandom(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		v, w := newView(nil), &world{t: t, state: map[string]string{}, addrs: map[string]string{}}
		links, addrs := map[int]netlink.Link{}, map[int]map[netlink.Address]bool{}
		list := func(lost bool) {
			var all []netlink.Address
			for _, of := range addrs {
				all = append(all, slices.Collect(maps.Keys(of))...)
			}
			sorted := slices.SortedFunc(maps.Values(links), func(x, y netlink.Link) int { return x.Index - y.Index })
			w.take(v.listed(sorted, all, lost))
		}
		list(false)
		for range 100 {
			lost := rnd.IntN(4) == 0
			index, name := 1+rnd.IntN(5), fmt.Sprintf("link%d", rnd.IntN(5))
			taken := slices.ContainsFunc(slices.Collect(maps.Values(links)), func(l netlink.Link) bool {
				return l.Name == name && l.Index != index
			})
			_, there := links[index]
			a := addrOf(index, fmt.Sprintf("10.0.0.%d/%d", rnd.IntN(3), 31+rnd.IntN(2)))
			var news []any
			switch n := rnd.IntN(5); {
			case n <= 1 && !taken:
				links[index] = lnk(index, name, []uint32{0, unix.IFF_UP, up}[rnd.IntN(3)])
				if !there {
					addrs[index] = map[netlink.Address]bool{}
				}
				if !lost {
					news = v.linkChanged(links[index])
				}
			case n == 2 && there:
				delete(links, index)
				delete(addrs, index)
				if !lost {
					news = v.linkGone(index)
				}
			case n >= 3 && there:
				if n == 3 {
					addrs[index][a] = true
				} else {
					delete(addrs[index], a)
				}
				if !lost {
					news = v.addrChanged(a, n == 3)
				}
			}
			w.take(news)
			if lost {
				list(true)
			}
		}
		wantState, wantAddrs := map[string]string{}, map[string]string{}
		for index, l := range links {
			state := StateDown
			if l.Up() {
				state = StateUp
			}
			wantState[l.Name] = fmt.Sprintf("%s/%d", state, index)
			set := map[netip.Addr]bool{}
			for a := range addrs[index] {
				set[a.Prefix.Addr()] = true
			}
			wantAddrs[l.Name] = fmt.Sprint(slices.SortedFunc(maps.Keys(set), netip.Addr.Compare))
		}
		if !maps.Equal(w.state, wantState) || !maps.Equal(w.addrs, wantAddrs) {
			t.Fatalf("seed %d: told\n%v %v\nthere is\n%v %v", seed, w.state, w.addrs, wantState, wantAddrs)
		}
	}
}
