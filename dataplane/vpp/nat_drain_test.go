package vpp

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/lifecycle"
)

// drainWorld is natWorld with an agent that looks after backends that have gone.
type drainWorld struct {
	t     *testing.T
	fake  *vppfake.Fake
	a     *agent
	base  values
	drain *NATDrain
}

func newDrainWorld(t *testing.T) *drainWorld {
	w := &drainWorld{t: t}
	settings := NATSettings{TCPTransitory: 30}
	w.fake, w.a, w.base = natWorldBy(t, vppfake.Config{Seed: 1}, func(c *conn.Conn) Deps {
		w.drain = NewNATDrain(c, settings, slog.New(slog.DiscardHandler))
		return Deps{NAT: settings, NATDrain: w.drain}
	})
	jobs := lifecycle.NewGroup(context.Background(), slog.New(slog.DiscardHandler))
	jobs.Go("drain", w.drain.Run)
	t.Cleanup(func() { jobs.Stop(5 * time.Second) }) //nolint:errcheck // the test is over
	return w
}

func (w *drainWorld) commit(services ...values) {
	w.t.Helper()
	w.a.commit(txn.Update, kvs(w.t, all(services...))...)
}

// client and server send a packet of the connection from the port, to the service and back. client says which pod gets it.
func (w *drainWorld) client(service string, port uint16, flags uint8) int {
	w.t.Helper()
	p := natPacket(vppfake.ProtoTCP, port, flags)
	p.Dst = netip.MustParseAddr(service)
	return connect(w.t, w.fake, p)
}

func (w *drainWorld) server(pod int, port uint16, flags uint8) {
	w.t.Helper()
	from := netip.AddrFrom4([4]byte{10, 1, 1, byte(pod + 1)})
	r, err := w.fake.Send("cv:pod"+string(rune('0'+pod)), vppfake.Packet{EthDst: podMAC, Src: from,
		Dst: netip.MustParseAddr("10.1.1.2"), Proto: vppfake.ProtoTCP, SrcPort: 8080, DstPort: port, Flags: flags})
	if err != nil {
		w.t.Fatalf("%v\n%s", err, r)
	}
}

func (w *drainWorld) open(service string, port uint16) (pod int) {
	w.t.Helper()
	pod = w.client(service, port, 0)
	w.server(pod, port, vppfake.FlagSYN|vppfake.FlagACK)
	w.client(service, port, vppfake.FlagACK)
	return pod
}

func (w *drainWorld) close(service string, port uint16, pod int) {
	w.t.Helper()
	w.server(pod, port, vppfake.FlagFIN|vppfake.FlagACK)
	w.client(service, port, vppfake.FlagFIN|vppfake.FlagACK)
	w.server(pod, port, vppfake.FlagACK)
}

func (w *drainWorld) waiting(n int) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); w.drain.Waiting() != n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d wait, want %d; sessions %v", w.drain.Waiting(), n, w.fake.Sessions())
		}
	}
}

const (
	serviceOne = "10.96.0.1"
	serviceTwo = "10.96.0.2"
)

func drained(service string, backends ...string) values {
	return values{dnat(service, with(port(service+":80/tcp", backends...), self))}
}

// A client's port that is used again leads to one of the backends of now, once the connection that had it is closed: before its
// backend has left the service, or after. A connection that is open goes on.
func TestNATDrain(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t)
	w.a.resync(all(w.base, drained(serviceOne, "10.1.1.3:8080"))...)
	for port := uint16(1000); port < 1003; port++ {
		if pod := w.open(serviceOne, port); pod != 2 {
			t.Fatalf("pod %d", pod)
		}
	}
	w.client(serviceOne, 1003, 0) // is never answered
	w.close(serviceOne, 1000, 2)
	w.commit(drained(serviceOne, "10.1.1.4:8080"))
	w.waiting(1)
	ends := func(port uint16) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(1500 * time.Millisecond) {
			pod := w.client(serviceOne, port, 0)
			if pod == 3 {
				return
			}
			if pod != 2 || time.Now().After(deadline) {
				t.Fatalf("port %d: pod %d", port, pod)
			}
		}
	}
	time.Sleep(drainAfter + 3*drainQuiet*time.Second)
	for port, want := range map[uint16]int{1000: 3, 1003: 3, 1001: 2, 1002: 2} {
		flags := uint8(0)
		if want == 2 {
			flags = vppfake.FlagACK
		}
		if pod := w.client(serviceOne, port, flags); pod != want {
			t.Errorf("port %d: pod %d, want %d", port, pod, want)
		}
	}
	w.close(serviceOne, 1001, 2)
	ends(1001)
	w.waiting(1)
	w.close(serviceOne, 1002, 2)
	w.waiting(0)
	ends(1002)
	w.mustHaveTimeout(30)
	sent := w.a.conn.Writes()
	time.Sleep(3 * drainEvery)
	if now := w.a.conn.Writes(); now != sent {
		t.Errorf("%d requests with nothing to look after", now-sent)
	}
}

func (w *drainWorld) mustHaveTimeout(seconds uint32) {
	w.t.Helper()
	lane := w.a.conn.Lane()
	var got uint32
	conn.Call(lane, &nat44_ed.Nat44ShowRunningConfig{}, func(r *nat44_ed.Nat44ShowRunningConfigReply, err error) {
		if err == nil {
			got = r.Timeouts.TCPTransitory
		}
	})
	lane.Flush(w.t.Context())
	if got != seconds {
		w.t.Errorf("tcp-transitory is %d, want %d", got, seconds)
	}
}

// Of two services with the same client's port and backend, the closed connection of one would take the answers of the other's
// with it.
func TestNATDrainSparesAnswers(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t)
	w.a.resync(all(w.base, drained(serviceOne, "10.1.1.3:8080"), drained(serviceTwo, "10.1.1.3:8080"))...)
	w.close(serviceOne, 1000, w.open(serviceOne, 1000))
	w.open(serviceTwo, 1000)
	w.commit(drained(serviceOne, "10.1.1.4:8080"))
	time.Sleep(drainAfter + 4*drainEvery)
	if n := len(w.fake.Sessions()); n != 2 {
		t.Errorf("sessions: %v", w.fake.Sessions())
	}
	w.close(serviceTwo, 1000, 2)
	w.waiting(0)
	if n := len(w.fake.Sessions()); n != 1 { // of service two, whose backend is there
		t.Errorf("sessions: %v", w.fake.Sessions())
	}
}

// Two closed connections that look alike behind NAT both end, though VPP finds only one of them there.
func TestNATDrainTwins(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t)
	w.a.resync(all(w.base, drained(serviceOne, "10.1.1.3:8080"), drained(serviceTwo, "10.1.1.3:8080"))...)
	for _, s := range []string{serviceOne, serviceTwo} {
		w.close(s, 1000, w.open(s, 1000))
	}
	w.commit(drained(serviceOne, "10.1.1.4:8080"), drained(serviceTwo, "10.1.1.4:8080"))
	w.waiting(0)
	if left := w.fake.Sessions(); len(left) > 0 {
		t.Error(left)
	}
}

// A backend that comes back is looked after no more, nor one whose service is made anew; one of a deleted service is.
func TestNATDrainBackends(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t)
	w.a.resync(all(w.base, drained(serviceOne, "10.1.1.3:8080"), drained(serviceTwo, "10.1.1.3:8080"))...)
	for _, s := range []string{serviceOne, serviceTwo} {
		for port := uint16(1000); port < 1010; port++ {
			w.open(s, port+uint16(s[len(s)-1])*100)
		}
	}
	w.commit(drained(serviceOne, "10.1.1.4:8080", "10.1.1.5:8080"))
	w.waiting(1)
	w.commit(drained(serviceOne, "10.1.1.4:8080", "10.1.1.5:8080", "10.1.1.3:8080"))
	w.waiting(0)
	w.a.commit(txn.Update, deletions(t, drained(serviceTwo))...)
	w.waiting(1)
	w.commit(drained(serviceTwo, "10.1.1.3:8080"))
	w.waiting(0)
}
