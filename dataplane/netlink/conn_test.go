package netlink_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

var ctx = context.Background()

func dial(t *testing.T, ns *nettest.NS) *netlink.Conn {
	t.Helper()
	c, err := netlink.Dial(ns.Namespace, unix.NETLINK_ROUTE, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var mac = net.HardwareAddr{2, 0, 0, 0, 0, 1}

func ip(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

func neighbours(t *testing.T, c *netlink.Conn, index int) map[netip.Addr]netlink.Neighbour {
	t.Helper()
	var b netlink.Batch
	b.GetNeighbours(unix.AF_INET, index)
	list, err := netlink.List(c, &b, netlink.ParseNeighbour)
	if err != nil {
		t.Fatal(err)
	}
	out := map[netip.Addr]netlink.Neighbour{}
	for _, n := range list {
		out[n.Addr] = n
	}
	return out
}

// TestEachFailureIsFound: of 3000 requests in several sends every third fails, each for its own reason.
func TestEachFailureIsFound(t *testing.T) {
	ns := nettest.New(t)
	ns.IP("link add name a index 10 type veth peer name b")
	ns.IP("link set dev a up")
	c := dial(t, ns)
	const a, n = 10, 3000
	var b netlink.Batch
	for i := range n {
		switch {
		case i%6 == 0:
			b.DelNeighbour(a, ip(i)) // does not exist
		case i%6 == 3:
			b.NewNeighbour(99, ip(i), mac, 202) // no such link
		default:
			b.NewNeighbour(a, ip(i), mac, 202)
		}
	}
	for round := range 2 { // the batch can be sent again
		failed, err := c.Do(ctx, &b)
		if err != nil || len(failed) != n {
			t.Fatalf("%d results, %v", len(failed), err)
		}
		for i, err := range failed {
			want := map[int]error{0: unix.ENOENT, 3: unix.ENODEV}[i%6]
			if !errors.Is(err, want) || err == nil && want != nil {
				t.Fatalf("round %d, request %d: %v, want %v", round, i, err, want)
			}
		}
	}
	if got := len(neighbours(t, c, a)); got != n*2/3 {
		t.Errorf("%d neighbours", got)
	}
	got := neighbours(t, c, a)[ip(1)]
	if got.MAC.String() != mac.String() || got.Protocol != 202 || got.State != unix.NUD_PERMANENT {
		t.Errorf("%+v", got)
	}
	b.Reset()
	for i := range n {
		if i%3 != 0 {
			b.DelNeighbour(a, ip(i))
		}
	}
	if failed, err := c.Do(ctx, &b); err != nil || failed != nil {
		t.Fatal(len(failed), err)
	}
	b.Reset()
	if failed, err := c.Do(ctx, &b); err != nil || failed != nil {
		t.Fatal("an empty batch:", failed, err)
	}
}

// TestErrorIsExplained tests that the error contains the kernel's explanation.
func TestErrorIsExplained(t *testing.T) {
	c := dial(t, nettest.New(t))
	var b netlink.Batch
	b.NewLink()
	b.Text(unix.IFLA_IFNAME, "x")
	b.Nest(unix.IFLA_LINKINFO, func() { b.Text(unix.IFLA_INFO_KIND, "no-such-kind") })
	err := c.One(ctx, &b)
	if !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), "Unknown device type") {
		t.Error(err)
	}
}

func TestContextEnds(t *testing.T) {
	c := dial(t, nettest.New(t))
	var b netlink.Batch
	for i := range 1000 {
		b.NewNeighbour(1, ip(i), mac, 202)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Do(ended, &b); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1000 of 1000") {
		t.Error(err)
	}
	if got := len(neighbours(t, c, 1)); got != 0 {
		t.Errorf("%d neighbours", got)
	}
}

func TestGetAndParse(t *testing.T) {
	ns := nettest.New(t)
	ns.IP("link add name vx type vxlan id 7 dstport 4789 local 10.0.0.1")
	ns.IP("link set dev vx address 02:00:00:00:00:01 mtu 1400 up")
	ns.IP("addr add 10.1.0.1/24 dev vx")
	ns.IP("addr add 10.2.0.1 peer 10.2.0.2/32 dev vx")
	c := dial(t, ns)
	var b netlink.Batch
	var l netlink.Link
	b.GetLink("vx")
	if err := c.Get(&b, func(p []byte) { l, _ = netlink.ParseLink(p) }); err != nil {
		t.Fatal(err)
	}
	if l.Name != "vx" || l.MTU != 1400 || l.MAC.String() != mac.String() || l.Kind != "vxlan" || len(l.Data) == 0 || !l.Up() {
		t.Errorf("%+v", l)
	}
	b.Reset()
	b.GetLink("nothing")
	if err := c.Get(&b, func([]byte) {}); !errors.Is(err, unix.ENODEV) {
		t.Error(err)
	}
	b.Reset()
	b.GetAddresses(l.Index)
	addrs, err := netlink.List(c, &b, netlink.ParseAddress)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, a := range addrs {
		if a.Index != l.Index {
			t.Errorf("an address of link %d", a.Index)
		}
		seen[a.Prefix.String()] = a.Peer.String()
	}
	if seen["10.1.0.1/24"] != "10.1.0.1" || seen["10.2.0.1/32"] != "10.2.0.2" {
		t.Error(seen)
	}
}

// TestNoAnswer tests that a socket that receives no replies returns ErrUnknown.
func TestNoAnswer(t *testing.T) {
	ns := nettest.New(t)
	c, err := netlink.Dial(ns.Namespace, unix.NETLINK_USERSOCK, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b netlink.Batch
	b.DelLink(99)
	if _, err := c.Do(ctx, &b); err == nil {
		t.Error("no error")
	}
	c.Close()
	if _, err := c.Do(ctx, &b); err == nil {
		t.Error("no error from a closed socket")
	}
}

func TestSubscribe(t *testing.T) {
	ns := nettest.New(t)
	e, err := netlink.Subscribe(ns.Namespace, 1<<20, unix.RTNLGRP_LINK)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ns.IP("link add name a type veth peer name b")
	names := map[string]bool{}
	if err := e.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for !names["a"] || !names["b"] {
		if err := e.Receive(func(_ uint16, p []byte) {
			l, _ := netlink.ParseLink(p)
			names[l.Name] = true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Drain(); err != nil {
		t.Fatal(err)
	}
	if err := e.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	err = e.Receive(func(uint16, []byte) { t.Error("after Drain there is something left") })
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// TestLossIsReported tests that the loss of notifications is reported, and that after Drain and a listing no change is missing.
func TestLossIsReported(t *testing.T) {
	ns := nettest.New(t)
	e, err := netlink.Subscribe(ns.Namespace, 2048, unix.RTNLGRP_LINK)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	flap := func() {
		for range 20 {
			ns.IP("link set dev lo down")
			ns.IP("link set dev lo up")
		}
	}
	flap()
	if err := e.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		err = e.Receive(func(uint16, []byte) {})
	}
	if !errors.Is(err, netlink.ErrLost) {
		t.Fatal(err)
	}
	if err := e.Drain(); err != nil {
		t.Fatal(err)
	}
	ns.IP("link set dev lo down")
	got := false
	for !got {
		if err := e.Receive(func(_ uint16, p []byte) {
			l, _ := netlink.ParseLink(p)
			got = got || l.Name == "lo" && l.Flags&unix.IFF_UP == 0
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	var b netlink.Batch
	b.NewNeighbour(1, ip(1), mac, 202)
	b.NewAddress(1, netip.MustParsePrefix("fd00::1/64"))
	b.NewLink()
	b.Nest(unix.IFLA_LINKINFO, func() { b.Text(unix.IFLA_INFO_KIND, "vxlan") })
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		parse := func(p []byte) {
			if l, ok := netlink.ParseLink(p); ok && l.Index <= 0 {
				t.Error(l)
			}
			if a, ok := netlink.ParseAddress(p); ok && !a.Prefix.IsValid() {
				t.Error(a)
			}
			netlink.ParseNeighbour(p)
		}
		parse(data)
		netlink.Messages(data, func(m netlink.Message) {
			parse(m.Payload)
			_ = m.Ack()
		})
	})
}

// TestListingHasALimit: a longer listing than permitted fails, and the Conn can be used afterwards.
func TestListingHasALimit(t *testing.T) {
	ns := nettest.New(t)
	ns.IP("link add name a index 10 type veth peer name b")
	ns.IP("link set dev a up")
	const limit = 100
	c, err := netlink.Open(ns.Namespace, unix.NETLINK_ROUTE, netlink.Options{Timeout: 5 * time.Second, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	add := func(from, to int) {
		t.Helper()
		var b netlink.Batch
		for i := from; i < to; i++ {
			b.NewNeighbour(10, ip(i), mac, 202)
		}
		if failed, err := c.Do(ctx, &b); err != nil || failed != nil {
			t.Fatal(failed, err)
		}
	}
	add(0, limit)
	if got := len(neighbours(t, c, 10)); got != limit {
		t.Errorf("%d neighbours, want %d", got, limit)
	}
	add(limit, 5000)
	for range 3 {
		var b netlink.Batch
		b.GetNeighbours(unix.AF_INET, 10)
		read := 0
		if _, err := c.Dump(&b, func(uint16, []byte) { read++ }); !errors.Is(err, netlink.ErrTooMany) || read != limit {
			t.Fatalf("%d neighbours were read: %v", read, err)
		}
		b.Reset()
		b.GetLink("a")
		found := 0
		if err := c.Get(&b, func([]byte) { found++ }); err != nil || found != 1 {
			t.Fatalf("after that, one link was read %d times: %v", found, err)
		}
	}
}
