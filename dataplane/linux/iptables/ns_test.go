package iptables

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/test/testbed/netns"
)

// namespace is a new namespace.
type namespace struct {
	*netns.Namespace
	ns *nsdo.Namespace
	t  testing.TB
}

var nsNumber atomic.Int32

func newNS(t testing.TB) *namespace {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root to make network namespaces")
	}
	ctx := context.Background()
	ns, err := netns.New(ctx, fmt.Sprintf("cvipt-%d-%d", os.Getpid(), nsNumber.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	h, err := nsdo.Open(ns.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		if err := ns.Delete(ctx); err != nil {
			t.Error(err)
		}
	})
	return &namespace{ns, h, t}
}

func (n *namespace) sh(line string) string {
	n.t.Helper()
	out, err := n.Run(context.Background(), "sh", "-ec", line)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

var testMarks = [2]uint32{0x10000, 0x20000}

func (n *namespace) open(cfg Config) *Backend {
	n.t.Helper()
	cfg.NS, cfg.ScratchMarks = n.ns, testMarks
	b, err := New(context.Background(), cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { b.Close() })
	return b
}

// variants runs f with each installed variant.
func variants(t *testing.T, f func(t *testing.T, v Variant)) {
	for _, v := range []Variant{VariantNFT, VariantLegacy} {
		t.Run(string(v), func(t *testing.T) {
			if !(system{}).has("iptables-" + string(v) + "-restore") {
				t.Skipf("SKIPPED: iptables-%s-restore is not installed", v)
			}
			f(t, v)
		})
	}
}

// apply calls Apply, which must succeed with everything in place.
func apply(t testing.TB, b *Backend) table.Result {
	t.Helper()
	r := b.Apply(context.Background())
	if r.Err != nil || len(r.Broken) > 0 {
		t.Fatalf("apply: %v, broken %v", r.Err, r.Broken)
	}
	return r
}
