package policy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
)

const (
	allowedPort, deniedPort = 53, 7
	attackPolicy            = `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}], ports: [{protocol: UDP, port: 53}]}]}`
)

// rawSocket opens a socket in a namespace.
func (w *world) rawSocket(ns *testbed.Namespace, family, kind, protocol int) (fd int) {
	w.t.Helper()
	w.must(ns.Do(func() (err error) {
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		return err
	}))
	w.t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// fragment is a piece of a UDP datagram of IPv4; the kernel fills in the header's checksum.
type fragment struct {
	id   uint16
	at   uint16 // in units of 8 bytes
	more bool
	port uint16 // of a first fragment
	size int    // behind the IP header
}

func (f fragment) packet(src, dst netip.Addr) []byte {
	b := make([]byte, 20+f.size)
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], f.id)
	flags := f.at
	if f.more {
		flags |= 0x2000
	}
	binary.BigEndian.PutUint16(b[6:], flags)
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	if f.at == 0 {
		binary.BigEndian.PutUint16(b[20:], 4000)
		binary.BigEndian.PutUint16(b[22:], f.port)
		binary.BigEndian.PutUint16(b[24:], 32) // the datagram's length; no checksum
	}
	return b
}

// TestFragments: fragments do not carry a datagram past a policy, whatever their order, size and overlap: no header arrives that names a port
// which is denied. What is allowed arrives in fragments.
func TestFragments(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("web", attackPolicy)
		w.expect("+ h1 web1 tcp 8080\n- cli1 web1 tcp 8080\n- cli1 web1 udp 8080")
		for _, from := range []string{"cli1", "cli2"} {
			w.fragments(from)
		}
	})
}

func (w *world) fragments(from string) {
	w.t.Helper()
	src, dst := w.addrs[from][0], w.addrs["web1"][0]
	out := w.rawSocket(w.spaces[from], unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	in := w.rawSocket(w.spaces["web1"], unix.AF_PACKET, unix.SOCK_DGRAM, unix.ETH_P_IP>>8)
	w.must(unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 300_000}))
	whole := func(id, port uint16) []fragment {
		return []fragment{{id: id, more: true, port: port, size: 24}, {id: id, at: 3, size: 8}}
	}
	a, d := whole(2, deniedPort), whole(6, deniedPort)
	attacks := []fragment{
		a[0], a[1], // in order
		d[1], d[0], // the last one first
		{id: 3, at: 3, size: 8},                                                  // no first one
		{id: 4, more: true, port: deniedPort, size: 8}, {id: 4, at: 1, size: 24}, // tiny
		{id: 5, more: true, port: allowedPort, size: 24}, {id: 5, more: true, port: deniedPort, size: 24}, {id: 5, at: 3, size: 8}, // two first
		{id: 7, more: true, port: allowedPort, size: 8}, {id: 7, more: true, port: deniedPort, size: 16}, {id: 7, at: 2, size: 16},
		{id: 8, port: deniedPort, size: 32}, // none
	}
	attacks = append(attacks, whole(1, allowedPort)...)
	for _, f := range attacks {
		w.must(unix.Sendto(out, f.packet(src, dst), 0, &unix.SockaddrInet4{Addr: dst.As4()}))
	}
	allowed := 0
	for buf := make([]byte, 2000); ; {
		n, _, err := unix.Recvfrom(in, buf, 0)
		if err != nil {
			break // nothing more comes
		}
		if n < 24 || buf[9] != unix.IPPROTO_UDP || netip.AddrFrom4([4]byte(buf[12:16])) != src || netip.AddrFrom4([4]byte(buf[16:20])) != dst {
			continue
		}
		id, flags, port := binary.BigEndian.Uint16(buf[4:]), binary.BigEndian.Uint16(buf[6:]), binary.BigEndian.Uint16(buf[22:])
		first := flags&0x1fff == 0
		switch {
		case first && port == deniedPort:
			w.t.Errorf("%s: the header of a datagram to port %d arrived (id %d)", from, port, id)
		case first && port == allowedPort && n >= 28 && id != 5 && id != 7:
			allowed++
		}
	}
	if allowed == 0 {
		w.t.Errorf("%s: a datagram in fragments that is allowed did not arrive", from)
	}
}

// TestFlapping: a pod's label changes 50 times a second between two that different policies select. What both deny never passes, and what
// both allow is never lost for long.
func TestFlapping(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		const allow = `{podSelector: {matchLabels: {app: %s}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: oth}}}]}, {ports: [{port: %d}]}]}`
		w.policy("a", fmt.Sprintf(allow, "cli", 1))
		w.policy("b", fmt.Sprintf(allow, "cla", 2))
		w.expect("- cli1 web1 udp 8080\n- cli1 web2 udp 8080\n+ cli1 oth1 udp 8080")
		var counts []func() int
		for _, to := range []string{"web1", "web2", "oth1"} {
			counts = append(counts, receive(t, w.spaces[to], deniedPort))
			defer w.flood(w.spaces["cli1"], netip.AddrPortFrom(w.addrs[to][0], deniedPort))()
		}
		stop := make(chan struct{})
		var work sync.WaitGroup
		var flips atomic.Int64
		work.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for ; ; flips.Add(1) {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				o := w.object(w.Nodes[0].Name, "cli1")
				o.Labels["app"] = []string{"cla", "cli"}[flips.Load()%2]
				if err := w.api.Put(o); err != nil {
					t.Error(err)
				}
			}
		})
		for enough := int64(25); enough <= 150; enough += 25 {
			before := counts[2]()
			w.within("changes", time.Minute, func() error {
				if n := flips.Load(); n < enough {
					return fmt.Errorf("%d", n)
				}
				return nil
			})
			if counts[2]() == before {
				t.Error("nothing that is allowed passed during 25 changes")
			}
		}
		close(stop)
		work.Wait()
		if a, b := counts[0](), counts[1](); a+b > 0 {
			t.Errorf("%d and %d packets passed that both policies deny, in %d changes", a, b, flips.Load())
		}
		t.Logf("%d changes, %d packets passed that are allowed", flips.Load(), counts[2]())
	})
}

// TestAddressOfAnother: the address of a pod that is allowed becomes that of one that is not. The connections of before are cut, and no packet
// passes any more. Then a pod's namespace vanishes without a DEL, and policy goes on to be enforced.
func TestAddressOfAnother(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}]}]}`)
		w.expect("- oth1 web1 tcp 8080\n+ cli1 web1 tcp 8080\n+ cli2 web1 tcp 8080")
		cut := []*stream{w.stream("cli2", "web1", w.addrs["web1"][0], 9000), w.stream("cli2", "web1", w.addrs["web1"][1], 9001)}
		kept := []*stream{w.stream("cli1", "web1", w.addrs["web1"][0], 9002)}
		n := w.Nodes[1].Name
		others := []netip.Addr{netip.MustParseAddr("10.1.2.200"), netip.MustParseAddr("fd10:1:0:2::c8")}
		heir, moved := w.object(n, "cli2"), kubeapi.Pod(n, "cli2", others)
		heir.Name, heir.Labels["app"] = "heir2", "heir"
		moved.Labels = map[string]string{"app": "cli"}
		w.must(w.api.Put(heir))
		w.must(w.api.Put(moved))
		w.within("what is not allowed is cut", time.Minute, func() error {
			before := arrived(cut)
			w.goOn(kept)
			for i, after := range arrived(cut) {
				if after != before[i] {
					return fmt.Errorf("stream %d moved from %d to %d bytes", i, before[i], after)
				}
			}
			return nil
		})
		got := receive(t, w.spaces["web1"], deniedPort)
		stop := w.flood(w.spaces["cli2"], netip.AddrPortFrom(w.addrs["web1"][0], deniedPort))
		w.expect("- cli2 web1 tcp 8080\n- cli2 web1 udp 8080\n+ cli1 web1 tcp 8080")
		stop()
		if n := got(); n > 0 {
			t.Errorf("%d packets passed", n)
		}
		w.must(w.pods["oth1"].Namespace.Delete(w.ctx))
		delete(w.spaces, "oth1")
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: heir}}}]}]}`)
		w.expect("- cli1 web1 tcp 8080\n+ cli2 web1 tcp 8080\n- h2 web1 tcp 8080")
	})
}
