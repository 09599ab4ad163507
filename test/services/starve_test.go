package services

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// podLimit is the default limit of a pod's connections (dataplane/vpp/plugin/README.md).
const podLimit = 16384

// TestStarvation checks that a pod that opens connections as fast as it can, by UDP, TCP and ICMP, to services and to machines
// outside, fills only its own share of the node's table of connections. Other pods of the node, and the tunnels between nodes, are
// not affected.
func TestStarvation(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if m != vppPlugin {
			t.Skipf("%s: skipped: connections are limited by our VPP plugin", m)
		}
		w := newWorld(t, m)
		svc := w.service("busy", 200, nil)
		w.put(svc, "c")
		w.waitEverywhere(svc, "p1,b any cluster -> c")
		for name, flood := range map[string]func(ctx context.Context, to [2]netip.Addr) (int, error){
			"UDP to outside": floodUDP, "TCP to outside": floodTCP, "ICMP to outside": floodICMP,
		} {
			t.Run(name, func(t *testing.T) { w.in(t).starve(flood, outAddrs) })
		}
		vip := [2]netip.Addr{at(svc, 0).Addr(), at(svc, 1).Addr()}
		t.Run("UDP to a service", func(t *testing.T) {
			w.in(t).starve(func(ctx context.Context, _ [2]netip.Addr) (int, error) { return floodService(ctx, vip[0]) }, vip)
		})
		// A pod of the same node, and one of the other node.
		for _, client := range []string{"b", "p2"} {
			for f := range families {
				if _, err := w.queryOnce(client, "tcp", at(svc, f), answered); err != nil {
					t.Errorf("%s after the floods: %v", client, err)
				}
			}
		}
	})
}

// starve floods from p1, and at the same time connects from b, a pod of the same node, to a pod of the other node: directly, which
// uses the tunnel, and by a service.
func (w *world) starve(flood func(context.Context, [2]netip.Addr) (int, error), to [2]netip.Addr) {
	w.t.Helper()
	svc := w.service("beside", 210, nil)
	w.put(svc, "c")
	w.waitEverywhere(svc, "b tcp cluster -> c")
	ctx, cancel := context.WithTimeout(w.ctx, 6*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	var sent int
	var floodErr error
	wait.Add(1)
	go func() {
		defer wait.Done()
		floodErr = w.spaces["p1"].Do(func() (err error) {
			sent, err = flood(ctx, to)
			return err
		})
	}()
	tries := 0
	for ctx.Err() == nil {
		for f := range families {
			for _, place := range []netip.AddrPort{at(svc, f), netip.AddrPortFrom(w.addrs["c"][f], targetPort)} {
				if _, err := w.queryOnce("b", "tcp", place, answered); err != nil {
					w.t.Errorf("b to %s during the flood: %v", place, err)
				}
				tries++
			}
		}
	}
	wait.Wait()
	w.must(floodErr)
	most := w.connections("p1")
	w.t.Logf("%d packets sent, %d connections of p1; %d connections of b", sent, most, tries)
	if sent < 2*podLimit || most > podLimit {
		w.t.Errorf("%d packets sent, %d connections of p1; the limit is %d", sent, most, podLimit)
	}
}

// connections returns the number of connections of a pod in the family that has more, as VPP of its node reports.
func (w *world) connections(pod string) (most int) {
	w.t.Helper()
	out, err := w.Nodes[0].VPP.CLI("show contiv endpoints")
	w.must(err)
	for line := range strings.Lines(out) {
		_, numbers, found := strings.Cut(line, "connections ")
		if !found || !strings.Contains(line, " "+w.addrs[pod][0].String()+" ") {
			continue
		}
		var v4, v6 int
		if _, err := fmt.Sscanf(numbers, "%d + %d,", &v4, &v6); err != nil {
			w.t.Fatalf("%q: %v", line, err)
		}
		return max(v4, v6)
	}
	w.t.Fatalf("VPP tells nothing of %s:\n%s", pod, out)
	return 0
}

// bounded calls send with numbers from 0 until ctx ends, at most 130 000 times.
func bounded(ctx context.Context, send func(n int) error) (sent int, err error) {
	for n := range 130000 {
		if n%256 == 0 && ctx.Err() != nil {
			break
		}
		err := send(n)
		if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ECONNREFUSED) {
			return sent, fmt.Errorf("packet %d: %w", n, err)
		}
		sent++
	}
	return sent, nil
}

func rawSocket(kind, proto int) (fd int, closeIt func(), err error) {
	if fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, proto); err != nil {
		return 0, nil, fmt.Errorf("socket: %w", err)
	}
	return fd, func() { _ = unix.Close(fd) }, nil
}

// floodUDP sends from one socket to all ports of two addresses.
func floodUDP(ctx context.Context, to [2]netip.Addr) (int, error) {
	fd, done, err := rawSocket(unix.SOCK_DGRAM, 0)
	if err != nil {
		return 0, err
	}
	defer done()
	return bounded(ctx, func(n int) error {
		addr := to[0].As4()
		addr[3] -= byte(n / 65000)
		return unix.Sendto(fd, []byte("flood"), 0, &unix.SockaddrInet4{Port: n%65000 + 1, Addr: addr})
	})
}

// floodTCP sends SYNs to all ports, by a raw socket.
func floodTCP(ctx context.Context, to [2]netip.Addr) (int, error) {
	fd, done, err := rawSocket(unix.SOCK_RAW, unix.IPPROTO_TCP)
	if err != nil {
		return 0, err
	}
	defer done()
	syn := make([]byte, 20)
	syn[12], syn[13] = 5<<4, 2
	return bounded(ctx, func(n int) error {
		binary.BigEndian.PutUint16(syn, uint16(20000+n/65000))
		binary.BigEndian.PutUint16(syn[2:], uint16(n%65000+1))
		return unix.Sendto(fd, syn, 0, &unix.SockaddrInet4{Addr: to[0].As4()})
	})
}

// floodICMP sends echo requests with all identifiers.
func floodICMP(ctx context.Context, to [2]netip.Addr) (int, error) {
	fd, done, err := rawSocket(unix.SOCK_RAW, unix.IPPROTO_ICMP)
	if err != nil {
		return 0, err
	}
	defer done()
	return bounded(ctx, func(n int) error {
		echo := []byte{8, 0, 0, 0, byte(n >> 8), byte(n), 0, 0}
		sum := uint32(8<<8) + uint32(n&0xffff)
		binary.BigEndian.PutUint16(echo[2:], ^uint16(sum+sum>>16))
		addr := to[0].As4()
		addr[3] -= byte(n >> 16)
		return unix.Sendto(fd, echo, 0, &unix.SockaddrInet4{Addr: addr})
	})
}

// floodService sends from all ports to a service.
func floodService(ctx context.Context, vip netip.Addr) (int, error) {
	fd, done, err := rawSocket(unix.SOCK_RAW, unix.IPPROTO_UDP)
	if err != nil {
		return 0, err
	}
	defer done()
	datagram := make([]byte, 8) // without a checksum
	binary.BigEndian.PutUint16(datagram[2:], 80)
	binary.BigEndian.PutUint16(datagram[4:], 8)
	return bounded(ctx, func(n int) error {
		binary.BigEndian.PutUint16(datagram, uint16(n%65000+1))
		return unix.Sendto(fd, datagram, 0, &unix.SockaddrInet4{Addr: vip.As4()})
	})
}
