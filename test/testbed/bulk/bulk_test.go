package bulk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

const port = 5201

// place returns a new namespace with a server.
func place(t *testing.T) (*netns.Namespace, netip.AddrPort) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ns, err := netns.New(t.Context(), fmt.Sprintf("cvbulk%d", os.Getpid()%100000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Delete(context.Background()) })
	s, err := Serve(ns, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return ns, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
}

func TestLoad(t *testing.T) {
	ns, to := place(t)
	r, err := Load{Up: 3, Down: 3, Length: 5<<20 + 7}.Run(t.Context(), ns, to)
	if err != nil || r.Bytes != 6*(5<<20+7) {
		t.Errorf("%v, %v", r, err)
	}
}

// TestCorruption checks that one wrong byte, at any position, is found on either side.
func TestCorruption(t *testing.T) {
	const length = 3 << 20
	for _, at := range []int{0, 1, patternSize - 1, patternSize, length - 1} {
		sender, receiver := net.Pipe()
		go func() {
			c := cursor{5}
			for sent := 0; sent < length; {
				piece := append([]byte(nil), c.next(min(1000, length-int64(sent)))...)
				if i := at - sent; i >= 0 && i < len(piece) {
					piece[i] ^= 1
				}
				n, err := sender.Write(piece)
				if err != nil {
					return
				}
				sent += n
				c.advance(n)
			}
		}()
		err := receive(receiver, order{Start: 5, Length: length})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("offset %d ", at+5)) {
			t.Errorf("a wrong byte at %d: %v", at, err)
		}
		sender.Close()
	}
}

// TestCut checks that a stream that ends early is an error.
func TestCut(t *testing.T) {
	sender, receiver := net.Pipe()
	go func() {
		_ = send(sender, order{Length: 1000})
		sender.Close()
	}()
	if err := receive(receiver, order{Length: 1001}); err == nil {
		t.Error("a stream that lacks a byte is taken for a whole one")
	}
}

func TestEcho(t *testing.T) {
	ns, to := place(t)
	if err := Echo(t.Context(), ns, to, 1400, time.Second); err != nil {
		t.Error(err)
	}
	if _, err := ns.Run(t.Context(), "ip", "link", "set", "lo", "mtu", "1300"); err != nil {
		t.Fatal(err)
	}
	if err := Echo(t.Context(), ns, to, 1300, time.Second); err != nil {
		t.Error(err)
	}
	if err := Echo(t.Context(), ns, to, 1301, time.Second); !errors.Is(err, ErrTooLong) {
		t.Errorf("a packet longer than the MTU: %v", err)
	}
}
