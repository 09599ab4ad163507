package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// fill creates connections between addresses, one of which is translated.
func fill(t *testing.T, ns *nettest.NS) {
	t.Helper()
	for i, args := range []string{
		"-s 10.0.0.1 -d 10.0.0.9 -p tcp --sport 1000 --dport 80 --state ESTABLISHED",
		"-s 10.0.0.9 -d 10.0.0.1 -p udp --sport 1001 --dport 53",
		"-s 10.0.0.7 -d 10.96.0.1 -p tcp --sport 1002 --dport 80 --state ESTABLISHED --dst-nat 10.0.0.1",
		"-s 10.0.0.2 -d 10.0.0.9 -p tcp --sport 1000 --dport 80 --state ESTABLISHED",
		"-s 10.0.0.3 -d 10.0.0.9 -p udp --sport 1000 --dport 80",
		"-s 10.0.0.3 -d 10.0.0.9 -p udp --sport 1001 --dport 80",
		"-s fd00::1 -d fd00::9 -p tcp --sport 1000 --dport 80 --state ESTABLISHED",
		"-s fd00::2 -d fd00::9 -p tcp --sport 1000 --dport 80 --state ESTABLISHED",
		"-s fd00::9 -d fd00::1 -p udp --sport 1000 --dport 80",
	} {
		out := ns.Run("conntrack -I -t 300 " + args)
		if !strings.Contains(out, "1 flow entries have been created") && out != "" {
			t.Fatalf("connection %d: %s", i, out)
		}
	}
}

func list(ns *nettest.NS) string {
	var out []string
	for _, f := range []string{"ipv4", "ipv6"} {
		for _, line := range strings.Split(ns.Run("conntrack -L -f "+f), "\n") {
			if _, rest, ok := strings.Cut(line, "src="); ok {
				src, _, _ := strings.Cut(rest, " ")
				_, port, _ := strings.Cut(rest, "sport=")
				port, _, _ = strings.Cut(port, " ")
				out = append(out, src+":"+port)
			}
		}
	}
	return strings.Join(sorted(out), " ")
}

func TestDelete(t *testing.T) {
	const (
		all = "10.0.0.1:1000 10.0.0.2:1000 10.0.0.3:1000 10.0.0.3:1001 10.0.0.7:1002 10.0.0.9:1001 " +
			"fd00::1:1000 fd00::2:1000 fd00::9:1000"
		rest   = "10.0.0.2:1000 10.0.0.3:1000 10.0.0.3:1001 fd00::2:1000"
		others = "10.0.0.2:1000 fd00::2:1000"
	)
	ns := nettest.New(t)
	fill(t, ns)
	if got := list(ns); got != all {
		t.Fatalf("at first: %s", got)
	}
	ctx := context.Background()
	for _, step := range []struct {
		addrs []netip.Addr
		left  string
	}{
		{nil, all},
		{[]netip.Addr{netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("fd00::8"), {}}, all},
		{[]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}, rest},
		{[]netip.Addr{netip.MustParseAddr("10.0.0.1")}, rest}, // none of its connections is left
		{[]netip.Addr{netip.MustParseAddr("::ffff:10.0.0.3")}, others},
	} {
		if err := Delete(ctx, ns.Namespace, step.addrs...); err != nil {
			t.Fatal(err)
		}
		if got := list(ns); got != step.left {
			t.Fatalf("after %v:\n got %s\nwant %s", step.addrs, got, step.left)
		}
	}
}

// TestListAndDelete tests the method for old kernels and long lists of addresses.
func TestListAndDelete(t *testing.T) {
	ns := nettest.New(t)
	fill(t, ns)
	var addrs []netip.Addr
	for i := range 100 {
		addrs = append(addrs, netip.MustParseAddr(fmt.Sprintf("10.0.1.%d", i)), netip.MustParseAddr(fmt.Sprintf("fd01::%d", i)))
	}
	addrs = append(addrs, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1"))
	if err := Delete(context.Background(), ns.Namespace, addrs...); err != nil {
		t.Fatal(err)
	}
	if got := list(ns); got != "10.0.0.2:1000 10.0.0.3:1000 10.0.0.3:1001 fd00::2:1000" {
		t.Fatal(got)
	}
}

// TestUnknownFilterRefused: a kernel that does not support the filter of a flush must reject it, not flush everything. This kernel supports
// the filter, but not every bit of it.
func TestUnknownFilterRefused(t *testing.T) {
	ns := nettest.New(t)
	fill(t, ns)
	before := list(ns)
	c, err := netlink.Dial(ns.Namespace, unix.NETLINK_NETFILTER, timeout)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := netip.MustParseAddr("10.0.0.1")
	var b netlink.Batch
	b.Begin(msgDelete, 0, nfGenMsg(unix.AF_INET)) // as for a kernel that ignores CTA_FILTER
	b.Nest(ctaTupleOrig|unix.NLA_F_NESTED, func() {
		b.Nest(ctaTupleIP|unix.NLA_F_NESTED, func() { b.Addr(ctaTupleSrc, a) })
	})
	if err := c.One(context.Background(), &b); !isUnsupported(err) {
		t.Errorf("a tuple without filter: %v", err)
	}
	if got := list(ns); got != before {
		t.Errorf("connections are gone:\n got %s\nwant %s", got, before)
	}
}

// TestDeleteUnanswered: of the connections without a reply the selected ones are removed, and no others.
func TestDeleteUnanswered(t *testing.T) {
	ns := nettest.New(t)
	for _, args := range []string{
		"-s 10.0.0.1 -d 10.96.0.1 -p tcp --sport 1000 --dport 80 --state SYN_SENT",
		"-s 10.0.0.2 -d 10.96.0.1 -p tcp --sport 1001 --dport 80 --state SYN_SENT --dst-nat 10.0.0.9",
		"-s 10.0.0.3 -d 10.96.0.1 -p tcp --sport 1002 --dport 80 --state ESTABLISHED --status SEEN_REPLY",
		"-s 10.0.0.4 -d 10.96.0.1 -p udp --sport 1003 --dport 80",
		"-s fd00::1 -d fd96::1 -p tcp --sport 1004 --dport 80 --state SYN_SENT",
		"-s fd00::3 -d fd96::1 -p tcp --sport 1005 --dport 80 --state ESTABLISHED --status SEEN_REPLY",
	} {
		ns.Run("conntrack -I -t 300 " + args)
	}
	requested := 0
	n, err := DeleteFlows(context.Background(), ns.Namespace, Which{Protocols: []uint8{6}, Unanswered: true}, func(f Flow) bool {
		requested++
		return !f.Translated()
	})
	if err != nil || n != 2 || requested != 3 {
		t.Errorf("%d removed of %d that were asked about, %v; want 2 of 3", n, requested, err)
	}
	if got, want := list(ns), "10.0.0.2:1001 10.0.0.3:1002 10.0.0.4:1003 fd00::3:1005"; got != want {
		t.Errorf("left are\n%s, want\n%s", got, want)
	}
}

// TestConfirm: of the stale connections those that are confirmed are removed, in parts of limited size; after an error none are.
func TestConfirm(t *testing.T) {
	ns := nettest.New(t)
	const all = maxFound + 200
	args := make([]string, all)
	for i := range args {
		args[i] = fmt.Sprintf("-I -t 300 -s 10.0.0.1 -d 10.0.0.9 -p udp --sport %d --dport 80", 1000+i)
	}
	file := filepath.Join(t.TempDir(), "connections")
	if err := os.WriteFile(file, []byte(strings.Join(args, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ns.Run("conntrack --load-file " + file)
	var parts []int
	refused := errors.New("refused")
	confirm := func(_ context.Context, found []Flow) ([]bool, error) {
		parts = append(parts, len(found))
		remove := make([]bool, len(found))
		for i, f := range found {
			remove[i] = f.From.Port()%2 == 0
		}
		if len(parts) == 2 {
			return nil, refused
		}
		return remove, nil
	}
	stale := func(f Flow) bool { return f.Proto == 17 }
	which := Which{Protocols: []uint8{17}, Confirm: confirm}
	if n, err := DeleteFlows(context.Background(), ns.Namespace, which, stale); n != 0 || !errors.Is(err, refused) {
		t.Errorf("%d removed, error %v; want 0 and %v", n, err, refused)
	}
	if n, err := DeleteFlows(context.Background(), ns.Namespace, which, stale); n != all/2 || err != nil {
		t.Errorf("%d removed, error %v; want %d", n, err, all/2)
	}
	if want := []int{maxFound, all - maxFound, maxFound, all - maxFound}; !slices.Equal(parts, want) {
		t.Errorf("confirmed in parts of %v, want %v", parts, want)
	}
}

func BenchmarkDelete(b *testing.B) {
	for _, n := range []int{1, 16, 17, 256} {
		b.Run(fmt.Sprintf("addrs=%d", n), func(b *testing.B) {
			ns := nettest.New(b)
			ns.Run("conntrack -I -t 300 -s 10.0.0.1 -d 10.0.0.9 -p udp --sport 1000 --dport 80") // otherwise the table is not read
			var addrs []netip.Addr
			for i := range n {
				addrs = append(addrs, netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}))
			}
			for b.Loop() {
				if err := Delete(context.Background(), ns.Namespace, addrs...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 12, 0, 1, 0x80, 8, 0, 1, 0, 10, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, ok := parseEntry(data); ok && e.orig == nil {
			t.Fatal("an entry without its tuple")
		}
	})
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
