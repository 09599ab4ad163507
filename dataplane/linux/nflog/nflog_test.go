package nflog

import (
	"context"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// TestWatch: packets that a rule sends arrive with their prefix, and with the requested number of bytes. A second program gets an error.
func TestWatch(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("there is no nft here")
	}
	ns := nettest.New(t)
	w, err := Open(ns.Namespace, 77, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := Open(ns.Namespace, 77, 64); err == nil {
		t.Error("a group is bound twice")
	}
	ns.IP("link set lo up")
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command("nsenter", append([]string{"--net=/run/netns/" + ns.Name, name}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	run("nft", `table inet t { chain c { type filter hook output priority 0; meta l4proto icmp log prefix "a prefix" group 77 snaplen 64; }; }`)
	run("ping", "-c3", "-i0.01", "-s500", "127.0.0.9")
	var got atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.Watch(ctx, func(p Packet) {
		if f, ok := denied.Parse(p.Data); !ok || p.Prefix != "a prefix" || len(p.Data) != 64 || f.Protocol != 1 {
			t.Errorf("prefix %q, %d bytes, %+v", p.Prefix, len(p.Data), f)
		}
		if got.Add(1) == 3 {
			cancel()
		}
	}); err != nil {
		t.Error(err)
	}
	if got.Load() < 3 {
		t.Errorf("%d packets", got.Load())
	}
}
