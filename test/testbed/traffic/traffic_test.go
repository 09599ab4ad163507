package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

func newNamespace(t *testing.T) *netns.Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx := context.Background()
	ns, err := netns.New(ctx, fmt.Sprintf("traffic%d", os.Getpid()%100000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Delete(ctx) })
	return ns
}

func newTraffic(t *testing.T, ns *netns.Namespace) *Traffic {
	t.Helper()
	tr := New()
	t.Cleanup(tr.Close)
	if _, err := tr.Serve(ns, 7000); err != nil {
		t.Fatal(err)
	}
	return tr
}

// soon waits until a stream has transferred the number of bytes in each of its directions.
func soon(t *testing.T, s *Stream, bytes int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := poll.Until(ctx, time.Millisecond, func() error {
		if s.StreamOptions.Up && s.Up.Load() < bytes || s.StreamOptions.Down && s.Down.Load() < bytes {
			return fmt.Errorf("%d up, %d down, %v", s.Up.Load(), s.Down.Load(), s.Err())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStreams checks that streams transfer bytes in both directions and both families, over more
// than a period of the pattern.
func TestStreams(t *testing.T) {
	ns := newNamespace(t)
	tr := newTraffic(t, ns)
	for _, o := range []StreamOptions{{Up: true}, {Down: true}, {Up: true, Down: true}, {Up: true, Down: true, Rate: 100 << 20, Burst: 1 << 20}} {
		for _, to := range []string{"127.0.0.1:7000", "[::1]:7000"} {
			o.Name = fmt.Sprintf("%+v to %s", o, to)
			s, err := tr.Stream(ns, netip.MustParseAddrPort(to), o)
			if err != nil {
				t.Fatal(err)
			}
			soon(t, s, 3*period)
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if !o.Up && s.Up.Load() > 0 || !o.Down && s.Down.Load() > 0 {
				t.Errorf("%s: %d up, %d down", o.Name, s.Up.Load(), s.Down.Load())
			}
		}
	}
}

// TestRate checks that a stream keeps its rate.
func TestRate(t *testing.T) {
	ns := newNamespace(t)
	tr := newTraffic(t, ns)
	s, err := tr.Stream(ns, netip.MustParseAddrPort("127.0.0.1:7000"), StreamOptions{Up: true, Rate: 1 << 20, Burst: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if got := s.Up.Load(); got > 1<<20+128<<10 {
		t.Errorf("%d bytes in a second", got)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// TestFaultsAreSeen checks that one wrong byte is detected, and a connection that ends, too.
func TestFaultsAreSeen(t *testing.T) {
	ns := newNamespace(t)
	tr := newTraffic(t, ns)
	for name, relay := range map[string]func(b []byte, offset int) bool{
		"wrong byte": func(b []byte, offset int) bool {
			if at := 100_000; offset <= at && at < offset+len(b) {
				b[at-offset] ^= 1
			}
			return true
		},
		"end": func(_ []byte, offset int) bool { return offset < 100_000 },
	} {
		to := relayTo(t, ns, "127.0.0.1:7000", relay)
		s, err := tr.Stream(ns, to, StreamOptions{Name: name, Up: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_ = poll.Until(ctx, time.Millisecond, func() error {
			if s.Err() == nil {
				return errors.New("not yet")
			}
			return nil
		})
		cancel()
		err = s.Stop()
		if err == nil || (name == "wrong byte") != errors.Is(err, ErrCorrupted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// relayTo returns a relay for one connection; hands receives every piece of the client's data.
func relayTo(t *testing.T, ns *netns.Namespace, to string, hands func(b []byte, offset int) bool) netip.AddrPort {
	t.Helper()
	var l net.Listener
	var onward net.Conn
	err := ns.Do(func() (err error) {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		onward, err = net.Dial("tcp", to)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer l.Close()
		defer onward.Close()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 4096)
		for offset := 0; ; {
			n, err := conn.Read(b)
			if err != nil || !hands(b[:n], offset) {
				return
			}
			if _, err := onward.Write(b[:n]); err != nil {
				return
			}
			offset += n
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// TestQuery checks that requests are answered, and that failed requests are counted.
func TestQuery(t *testing.T) {
	ns := newNamespace(t)
	tr := newTraffic(t, ns)
	for _, to := range []string{"127.0.0.1:7000", "[::1]:7000"} {
		a, err := tr.Query(ns, netip.MustParseAddrPort(to), 100, time.Second)
		if err != nil || len(a.Took) < 100 || a.Percentile(50) > a.Percentile(99) || a.Percentile(50) <= 0 {
			t.Errorf("%s: %d answers, p50 %s, p99 %s: %v", to, len(a.Took), a.Percentile(50), a.Percentile(99), err)
		}
		c := tr.Connect(ns, netip.MustParseAddrPort(to), 4, 100, time.Second)
		if c.Failed > 0 || len(c.Took) < 20 {
			t.Errorf("%s: %d connections, %d failed: %v", to, len(c.Took), c.Failed, c.Err)
		}
		for _, port := range []uint16{0, 20001, 20001} { // a port can be used again at once
			if err := tr.Once(ns, port, netip.MustParseAddrPort(to), 1000, time.Second); err != nil {
				t.Error(err)
			}
		}
	}
	// A client that disconnects in the middle of a message is recorded.
	err := ns.Do(func() error {
		s, err := dial(netip.MustParseAddrPort("127.0.0.1:7000"), 20002, time.Second)
		if err == nil {
			_, err = s.Write(header{kind: once, size: 100}.bytes())
		}
		return errors.Join(err, s.reset())
	})
	if err != nil {
		t.Fatal(err)
	}
	poll.Await(t, "end at the server", 10*time.Second, func() bool { return len(tr.Broken(20002)) > 0 })
	closed := netip.MustParseAddrPort("127.0.0.1:7001")
	if c := tr.Connect(ns, closed, 2, 10, 20*time.Millisecond); c.Failed == 0 || c.Err == nil || len(c.Took) > 0 {
		t.Errorf("a closed port: %+v", c)
	}
	if _, err := tr.Stream(ns, closed, StreamOptions{Up: true}); err == nil {
		t.Error("a stream to a closed port")
	}
}

// TestCPU checks that the processor time of this process grows with its work.
func TestCPU(t *testing.T) {
	before, err := CPU()
	if err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); time.Since(begin) < 100*time.Millisecond; {
		newPattern(1)
	}
	after, err := CPU()
	if err != nil || after <= before {
		t.Errorf("%s, then %s: %v", before, after, err)
	}
}
