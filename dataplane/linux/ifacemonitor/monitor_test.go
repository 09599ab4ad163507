package ifacemonitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

const eventTimeout = 20 * time.Second

// start runs a monitor until the test ends.
func start(t *testing.T, m *Monitor) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(eventTimeout):
			t.Error("Run does not end")
		}
	})
}

// await reads updates until the wanted one, and returns those before it.
func await(t *testing.T, m *Monitor, want string) (before []string) {
	t.Helper()
	for {
		select {
		case u := <-m.Updates():
			s := text([]any{u})
			if s == want {
				return before
			}
			before = append(before, s)
		case <-time.After(eventTimeout):
			t.Fatalf("%q did not come, only %q", want, before)
		}
	}
}

func TestKernel(t *testing.T) {
	ns := nettest.New(t)
	m := New(Config{}, ns.Namespace, nil)
	if m.Listed() {
		t.Error("listed before Run")
	}
	start(t, m)
	await(t, m, "lo/1 up")
	await(t, m, "lo [127.0.0.1 ::1]")
	ns.IP("link add name a index 10 type veth peer name b index 11")
	await(t, m, "a/10 down")
	if !m.Listed() {
		t.Error("not listed")
	}
	ns.IP("link set dev a up")
	ns.IP("link set dev b up")
	await(t, m, "a/10 up")
	ns.IP("addr add 10.0.0.1/24 dev lo")
	await(t, m, "lo [10.0.0.1 127.0.0.1 ::1]")
	ns.IP("addr add 10.0.0.1/32 dev lo")
	ns.IP("addr del 10.0.0.1/24 dev lo")
	ns.IP("addr add fd00::1/64 dev lo nodad")
	if got := await(t, m, "lo [10.0.0.1 127.0.0.1 ::1 fd00::1]"); slices.Contains(got, "lo [127.0.0.1 ::1]") {
		t.Error("an address that is still there was said to be gone")
	}
	ns.IP("link set dev b down") // a loses its carrier
	await(t, m, "a/10 down")
	ns.IP("link set dev b up")
	await(t, m, "a/10 up")
	ns.IP("link set dev a down")
	ns.IP("link set dev a name c")
	await(t, m, "a/10 absent")
	await(t, m, "a no more addresses")
	await(t, m, "c/10 down")
	ns.IP("link set dev c up")
	await(t, m, "c/10 up")
	// When a link leaves a bridge, it is reported as deleted in its role as a port.
	ns.IP("link add name br type bridge")
	ns.IP("link set dev c master br")
	ns.IP("link set dev c nomaster")
	ns.IP("link set dev c mtu 1400")
	ns.IP("link del dev br")
	if got := await(t, m, "br no more addresses"); slices.Contains(got, "c/10 absent") {
		t.Error("a link is said to be gone that left a bridge")
	}
	ns.IP("link del dev c")
	await(t, m, "c/10 absent")
	other := nettest.New(t)
	ns.IP("link add name d index 20 type veth peer name e index 21")
	await(t, m, "e/21 down")
	ns.IP("link set dev d netns " + other.Name)
	await(t, m, "d/20 absent")
}

// TestOverflow: flaps are reported.
func TestOverflow(t *testing.T) {
	ns := nettest.New(t)
	m := New(Config{}, nil, nil)
	m.watch.Open = func() (netlink.LinkSource, error) { return netlink.OpenLinks(ns.Namespace, 4096) }
	m.updates = make(chan any) // nothing is kept
	start(t, m)
	await(t, m, "lo [127.0.0.1 ::1]")
	ns.IP("link add name a index 10 type veth peer name b index 11")
	ns.IP("link set dev a up")
	ns.IP("link set dev b up")
	await(t, m, "a/10 up")
	overflow := func() {
		for i := range 100 { // far more than fits
			ns.IP(fmt.Sprintf("addr add 10.0.%d.1/24 dev lo", i))
		}
	}
	overflow()
	ns.IP("link set dev a down")
	ns.IP("link set dev a up")
	await(t, m, "a/10 up") // usually without having been down, as we see it
	ns.IP("addr flush dev lo")
	overflow()
	ns.IP("addr flush dev lo")
	ns.IP("link del dev b") // this also removes a
	if got := await(t, m, "lo []"); !slices.Contains(got, "a/10 absent") {
		await(t, m, "a/10 absent")
	}
}

// TestManyLinks: the reports of a monitor whose updates are not read for a while.
func TestManyLinks(t *testing.T) {
	ns := nettest.New(t)
	m := New(Config{ResyncInterval: 50 * time.Millisecond}, ns.Namespace, nil)
	start(t, m)
	var batch strings.Builder
	for i := range 300 {
		fmt.Fprintf(&batch, "link add a%d type veth peer name b%d\nlink set a%d up\nlink set b%d up\n", i, i, i, i)
	}
	file := t.TempDir() + "/links"
	if err := os.WriteFile(file, []byte(batch.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ns.IP("-batch " + file)
	w := &world{t: t, state: map[string]string{}, addrs: map[string]string{}}
	upOnes := func() (n int) {
		for _, s := range w.state {
			if strings.HasPrefix(s, "up/") {
				n++
			}
		}
		return n
	}
	for limit := time.After(eventTimeout); upOnes() != 601; {
		select {
		case u := <-m.Updates():
			w.take([]any{u})
		case <-limit:
			t.Fatalf("%d links are up", upOnes())
		}
	}
}

// script is a kernel that follows a script.
type script struct {
	events   chan error // what Receive returns
	deadline atomic.Int64
	poke     chan struct{}
	links    func() ([]netlink.Link, error)
	closed   atomic.Int64
}

func (s *script) Receive(func(uint16, []byte)) error {
	for {
		var expired <-chan time.Time
		if at := s.deadline.Load(); at != 0 {
			expired = time.After(time.Until(time.Unix(0, at)))
		}
		select {
		case err := <-s.events:
			return err
		case <-expired:
			return os.ErrDeadlineExceeded
		case <-s.poke:
		}
	}
}

func (s *script) Drain() error { return nil }

func (s *script) SetDeadline(t time.Time) error {
	s.deadline.Store(0)
	if !t.IsZero() {
		s.deadline.Store(t.UnixNano())
	}
	select {
	case s.poke <- struct{}{}:
	default:
	}
	return nil
}

func (s *script) List() (netlink.LinkListing, error) {
	l, err := s.links()
	return netlink.LinkListing{Links: l}, err
}

func (s *script) Close() error {
	s.closed.Add(1)
	return nil
}

// TestFaults: after any failure, the monitor restarts and reports again which links are up.
func TestFaults(t *testing.T) {
	errFault := errors.New("injected")
	s := &script{events: make(chan error), poke: make(chan struct{}, 1)}
	var lists atomic.Int64
	s.links = func() ([]netlink.Link, error) {
		if lists.Add(1) == 2 {
			return nil, errFault
		}
		return []netlink.Link{lnk(1, "lo", up)}, nil
	}
	m := New(Config{}, nil, nil)
	m.watch.Pause = time.Millisecond
	opens := 0
	m.watch.Open = func() (netlink.LinkSource, error) {
		if opens++; opens == 1 || opens == 3 {
			return nil, errFault
		}
		return s, nil
	}
	start(t, m)
	await(t, m, "lo/1 up") // the second time of opening
	await(t, m, "lo []")
	s.events <- errFault // the third attempt fails to open, the fourth to list
	await(t, m, "lo/1 up")
	s.events <- netlink.ErrLost
	await(t, m, "lo/1 up")
	if n := s.closed.Load(); n != 2 {
		t.Errorf("%d closed", n)
	}
	if lists.Load() != 4 {
		t.Errorf("%d listings", lists.Load())
	}
}

// TestResync: changes whose notifications were lost undetected are found by periodic listings.
func TestResync(t *testing.T) {
	s := &script{events: make(chan error), poke: make(chan struct{}, 1)}
	var flags atomic.Uint32
	s.links = func() ([]netlink.Link, error) { return []netlink.Link{lnk(1, "lo", flags.Load())}, nil }
	m := New(Config{ResyncInterval: 10 * time.Millisecond}, nil, nil)
	m.watch.Open = func() (netlink.LinkSource, error) { return s, nil }
	start(t, m)
	await(t, m, "lo/1 down")
	flags.Store(up)
	await(t, m, "lo/1 up")
}

func TestStopsWithoutReader(t *testing.T) {
	s := &script{events: make(chan error), poke: make(chan struct{}, 1)}
	s.links = func() ([]netlink.Link, error) { return []netlink.Link{lnk(1, "lo", up)}, nil }
	m := New(Config{}, nil, nil)
	m.updates = make(chan any)
	m.watch.Open = func() (netlink.LinkSource, error) { return s, nil }
	start(t, m) // it ends with the test
}
