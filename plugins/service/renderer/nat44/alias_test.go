package nat44

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// aliases are those of an interface as text: "TCP 203.0.113.1:80".
func (w *world) aliases(name string) (out []string) {
	v, _ := w.out.state[nb.PnatInterfaceKey(name)].(*vpp_pnat.Interface)
	for _, a := range v.GetAliases() {
		if want := aliasOf(netip.MustParseAddr(a.Ip)).String(); a.Alias != want {
			w.t.Errorf("%s has the alias %s, want %s", a.Ip, a.Alias, want)
		}
		out = append(out, fmt.Sprintf("%s %s:%d", a.Protocol, a.Ip, a.Port))
	}
	return out
}

func (w *world) wantAliases(names string, want ...string) {
	w.t.Helper()
	for _, name := range []string{"nic", "bvi", "vppend", "pod1", "pod2"} {
		var wanted []string
		if slices.Contains(strings.Fields(names), name) {
			wanted = want
		}
		if got := w.aliases(name); !slices.Equal(got, wanted) {
			w.t.Errorf("%s has aliases for %q, want %q", name, got, wanted)
		}
	}
}

func localSvc(name, ip string, external string, backends ...string) *renderer.ContivService {
	s := withExternal(svc(name, ip, backends...), external)
	s.TrafficPolicy = renderer.NodeLocal
	return s
}

// Pods, and nobody else, get all backends of a service that has local ones for clients outside.
func TestAliases(t *testing.T) {
	w := newWorld(t)
	w.ev.FrontendIfs = renderer.NewInterfaces("nic", "bvi", "vppend", "pod1")
	w.resync()
	w.set(svc("plain", "10.96.0.1", "10.1.1.2", "10.1.2.2"))
	w.wantAliases("")
	if w.set(localSvc("s", "10.96.0.2", "203.0.113.1", "L10.1.1.2", "10.1.2.2")); len(w.out.host) != 1 {
		t.Errorf("the host has the aliases %v", w.out.host)
	}
	w.wantAliases("pod1", "TCP 203.0.113.1:80")
	w.asResynced()

	two := renderer.NewInterfaces("nic", "bvi", "vppend", "pod1", "pod2")
	before := w.out.ops
	w.must(w.r.UpdateLocalFrontendIfs(w.ev.FrontendIfs, two))
	if n := w.out.ops - before; n != 2 { // NAT and aliases of one
		t.Errorf("%d operations for a pod more", n)
	}
	w.ev.FrontendIfs = two
	w.wantAliases("pod1 pod2", "TCP 203.0.113.1:80")
	w.asResynced()

	more := localSvc("s", "10.96.0.2", "203.0.113.1", "L10.1.1.2", "10.1.2.2", "10.1.2.3")
	if n := w.set(more); n != 1 {
		t.Errorf("%d operations for a backend more", n)
	}
	one := renderer.NewInterfaces("nic", "bvi", "vppend", "pod2")
	w.must(w.r.UpdateLocalFrontendIfs(two, one))
	w.ev.FrontendIfs = one
	w.wantAliases("pod2", "TCP 203.0.113.1:80")
	w.asResynced()

	w.set(localSvc("s", "10.96.0.2", "203.0.113.1")) // nobody serves it
	w.wantAliases("")
	w.asResynced()
	w.set(more)
	w.wantAliases("pod2", "TCP 203.0.113.1:80")
	w.set(withExternal(svc("s", "10.96.0.2", "10.1.2.2"), "203.0.113.1"))
	w.wantAliases("")
	w.set(more)
	w.remove("s")
	w.wantAliases("")
	w.asResynced()
}

// An alias goes with its place, from one service that wants that to another.
func TestAliasClaims(t *testing.T) {
	w := newWorld(t)
	local := localSvc("b", "10.96.0.2", "203.0.113.1", "L10.1.1.2", "10.1.2.2")
	w.set(local)
	w.wantAliases("pod1", "TCP 203.0.113.1:80")
	w.set(withExternal(svc("a", "10.96.0.1", "10.1.2.2"), "203.0.113.1")) // has it now, and for everybody the same
	w.wantAliases("")
	w.asResynced()
	w.set(localSvc("a", "10.96.0.1", "203.0.113.1", "10.1.2.2"))
	w.wantAliases("pod1", "TCP 203.0.113.1:80")
	w.wantDNAT("a", "10.96.0.1:80 TCP SELF 10.1.2.2:8080@1", "254.203.61.54:80 TCP SELF 10.1.2.2:8080@1")
	w.wantDNAT("b", "10.96.0.2:80 TCP SELF 10.1.1.2:8080@1 10.1.2.2:8080@1")
	w.asResynced()
	w.remove("a")
	w.wantAliases("pod1", "TCP 203.0.113.1:80")
	w.wantDNAT("b", "10.96.0.2:80 TCP SELF 10.1.1.2:8080@1 10.1.2.2:8080@1", "203.0.113.1:80 TCP SELF 10.1.1.2:8080@1",
		"254.203.61.54:80 TCP SELF 10.1.1.2:8080@1 10.1.2.2:8080@1")
	w.asResynced()
}

// Who may not use a place may not use its alias either.
func TestAliasSourceRanges(t *testing.T) {
	w := newWorld(t)
	w.set(withRanges(localSvc("s", "10.96.0.2", "203.0.113.1", "10.1.2.2"), "10.1.0.0/16"))
	w.wantAliases("pod1", "TCP 203.0.113.1:80")
	w.wantACL("!0.0.0.0/0 > 203.0.113.1/32 TCP 80",
		"10.1.0.0/16 > 254.203.61.54/32 TCP 80", "!0.0.0.0/0 > 254.203.61.54/32 TCP 80")
	w.asResynced()
	w.set(withRanges(localSvc("s", "10.96.0.2", "203.0.113.1", "10.1.2.2"), "fd00::/8"))
	w.wantAliases("")
	w.asResynced()
}

func TestMostAliases(t *testing.T) {
	w := newWorld(t)
	for n := range mostAliases + 10 {
		tail := fmt.Sprintf("%d.%d", n/250, n%250+1)
		w.set(localSvc(fmt.Sprint("s", n), "10.96."+tail, "203.0."+tail, "10.1.2.2"))
	}
	if n := len(w.aliases("pod1")); n != mostAliases {
		t.Errorf("%d aliases", n)
	}
	if !strings.Contains(w.log.String(), "get local backends only") {
		t.Error("nobody was told")
	}
	w.asResynced()
}

// TestAliasOf: the same sum of 16-bit words, whatever the address.
func TestAliasOf(t *testing.T) {
	sum := func(a netip.Addr) uint32 {
		b := a.As4()
		return (uint32(b[0])<<8 + uint32(b[1]) + uint32(b[2])<<8 + uint32(b[3])) % 0xffff
	}
	seen := map[netip.Addr]netip.Addr{}
	for _, start := range []string{
		"0.0.0.1", "10.0.0.0", "10.255.255.0", "172.30.1.0", "192.168.16.0", "203.0.113.0", "255.255.254.0",
	} {
		addr := netip.MustParseAddr(start)
		for range 300 {
			alias := aliasOf(addr)
			if sum(alias) != sum(addr) || alias.As4()[0] != aliasNet {
				t.Errorf("%s has the alias %s", addr, alias)
			}
			if other, taken := seen[alias]; taken && other != addr {
				t.Errorf("%s and %s have the alias %s", addr, other, alias)
			}
			seen[alias], addr = addr, addr.Next()
		}
	}
}
