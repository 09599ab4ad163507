package ipset

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/test/testbed/netns"
)

// namespace is a new namespace, with the ipset program to inspect it.
type namespace struct {
	*netns.Namespace
	ns *nsdo.Namespace
	t  testing.TB
}

func newNS(t testing.TB) *namespace {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root to make network namespaces")
	}
	ns, err := netns.New(context.Background(), fmt.Sprintf("cvips-%d-%d", os.Getpid(), nsCount()))
	if err != nil {
		t.Fatal(err)
	}
	h, err := nsdo.Open(ns.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		if err := ns.Delete(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &namespace{ns, h, t}
}

var nsNumber = make(chan int, 1)

func nsCount() int {
	select {
	case n := <-nsNumber:
		nsNumber <- n + 1
		return n
	default:
		nsNumber <- 1
		return 0
	}
}

func (n *namespace) sh(line string) string {
	n.t.Helper()
	out, err := n.Run(context.Background(), "sh", "-ec", line)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

func (n *namespace) open(t testing.TB) *Sets {
	t.Helper()
	s, err := New(Config{NS: n.ns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// kernelSets returns the output of the ipset program: set → sorted members.
func (n *namespace) kernelSets() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(n.sh("ipset save")) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[0] == "create":
			out[f[1]] = []string{}
		case len(f) > 2 && f[0] == "add":
			out[f[1]] = append(out[f[1]], f[2])
		}
	}
	for _, m := range out {
		slices.Sort(m)
	}
	return out
}

func (n *namespace) expect(want map[string][]string) {
	n.t.Helper()
	got := n.kernelSets()
	if !maps.EqualFunc(got, want, slices.Equal) {
		n.t.Fatalf("kernel has\n%v\nwant\n%v", got, want)
	}
}

func addr(s string) table.Member {
	a := netip.MustParseAddr(s)
	return table.Member{Net: netip.PrefixFrom(a, a.BitLen())}
}

func pfx(s string) table.Member { return table.Member{Net: netip.MustParsePrefix(s)} }

func port(s string, proto uint8, port uint16) table.Member {
	m := addr(s)
	m.Proto, m.Port = proto, port
	return m
}

// apply calls ApplyUpdates and ApplyDestroys, which must succeed.
func apply(t testing.TB, s *Sets) Result {
	t.Helper()
	r := s.ApplyUpdates()
	if r.Err != nil || r.Broken != nil {
		t.Fatalf("apply: %v, broken %v", r.Err, r.Broken)
	}
	d := s.ApplyDestroys()
	if d.Err != nil || d.Broken != nil {
		t.Fatalf("destroy: %v, broken %v", d.Err, d.Broken)
	}
	r.Writes += d.Writes
	return r
}
