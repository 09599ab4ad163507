package policy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// stream is a TCP connection on which the server sends continuously, and the client reads.
type stream struct {
	bytes atomic.Int64 // number of bytes read
	close func()
}

// stream starts a server and a client. The server continues to send, even after errors.
func (w *world) stream(from, to string, addr netip.Addr, port int) *stream {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	var work sync.WaitGroup
	var l net.Listener
	w.must(w.spaces[to].Do(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		return err
	}))
	work.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		for buf := make([]byte, 1000); err == nil; time.Sleep(time.Millisecond) {
			_, err = c.Write(buf)
		}
	})
	var c net.Conn
	w.must(w.spaces[from].Do(func() (err error) {
		c, err = net.DialTimeout("tcp", netip.AddrPortFrom(addr, uint16(port)).String(), time.Minute)
		return err
	}))
	s := &stream{}
	work.Go(func() {
		for buf := make([]byte, 1000); ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			s.bytes.Add(int64(n))
		}
	})
	s.close = func() {
		cancel()
		_, _ = l.Close(), c.Close()
		work.Wait()
	}
	w.t.Cleanup(s.close)
	w.within("the stream begins", time.Minute, func() error {
		if s.bytes.Load() == 0 {
			return fmt.Errorf("nothing was read")
		}
		return nil
	})
	return s
}

// goOn waits until each client has read as many bytes as the server sends in half a second.
func (w *world) goOn(streams []*stream) {
	w.t.Helper()
	for i, before := range arrived(streams) {
		w.within(fmt.Sprintf("stream %d goes on", i), time.Minute, func() error {
			if moved := streams[i].bytes.Load() - before; moved < 500_000 {
				return fmt.Errorf("%d bytes", moved)
			}
			return nil
		})
	}
}

func arrived(streams []*stream) (bytes []int64) {
	for _, s := range streams {
		bytes = append(bytes, s.bytes.Load())
	}
	return bytes
}

// flap changes the label of a pod 50 times a second until it is stopped, so that rules change all the time.
func (w *world) flap(node, name string) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-tick.C
			o := w.object(node, name)
			o.Labels["app"] = []string{"flap", "flop"}[n%2]
			if err := w.api.Put(o); err != nil {
				w.t.Error(err)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// TestCut checks that a change of policy cuts the connections that it no longer allows, although the server continues to send and another pod's
// labels change all the time, and does not affect the others.
func TestCut(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("flap", `{podSelector: {matchExpressions: [{key: app, operator: In, values: [oth, cli]}]}, ingress: [{from: [{podSelector: {matchLabels: {app: flap}}}]}]}`)
		for _, test := range []struct{ name, closes, policy string }{
			{"by ingress of the server", "web1", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: oth}}}]}]}`},
			{"by egress of the client", "cli2", `{podSelector: {matchLabels: {app: cli}}, policyTypes: [Egress], egress: [{ports: [{port: 1}]}]}`},
		} {
			t.Run(test.name, func(t *testing.T) {
				w.t = t
				defer func() { w.t = t }()
				var cut, kept []*stream
				for f, a := range w.addrs["web1"] {
					cut = append(cut, w.stream("cli1", "web1", a, 9000+f), w.stream("cli2", "web1", a, 9010+f))
					kept = append(kept, w.stream("oth1", "web1", a, 9020+f))
				}
				w.predicted(test.policy, test.closes, "9000", "9001", "9010", "9011")
				defer w.flap(w.Nodes[1].Name, "web2")()
				begin := time.Now()
				w.policy("cut", test.policy)
				w.within("what is not allowed is cut", time.Minute, func() error {
					before := arrived(cut)
					w.goOn(kept)
					if after := arrived(cut); !slices.Equal(before, after) {
						return fmt.Errorf("meanwhile the streams move from %v to %v bytes", before, after)
					}
					return nil
				})
				t.Logf("cut within %v", time.Since(begin))
				for _, s := range append(cut, kept...) {
					s.close()
				}
				w.policy("cut", "")
				w.expect("+ cli1 web1 tcp 8080\n+ cli2 web1 tcp 8080")
			})
		}
	}, onVPP)
}

func listenUDP(ns *netns.Namespace, port int) (conn net.PacketConn, err error) {
	err = ns.Do(func() (err error) {
		conn, err = net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		return err
	})
	return conn, err
}

// flood sends UDP packets to an address from a pod until it is stopped.
func (w *world) flood(from *netns.Namespace, to netip.AddrPort) (stop func()) {
	w.t.Helper()
	conn, err := listenUDP(from, 0)
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			_, _ = conn.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(to)) // there may be no route yet
			time.Sleep(200 * time.Microsecond)
		}
	})
	return func() {
		cancel()
		work.Wait()
		_ = conn.Close()
	}
}
