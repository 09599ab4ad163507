package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

func TestTwoPods(t *testing.T) {
	t.Parallel()
	each(t, []mode{veth, tap, linux, iptables}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name)
		r := newRig(t, m)
		pods := r.add("a", "b")
		a, b := pods[0], pods[1]
		r.reaches(a.Namespace, b.IPs[0].String())
		r.reaches(b.Namespace, a.IPs[0].String())
		r.reaches(a.Namespace, r.hostIP())
		r.reaches(b.Namespace, r.hostIP())
		r.reaches(r.Namespace, a.IPs[0].String())
		r.reaches(r.Namespace, b.IPs[0].String())
		r.packetSizes(a, b)
		for _, leg := range []struct {
			from, to *netns.Namespace
			addr     string
		}{
			{a.Namespace, b.Namespace, b.IPs[0].String()},
			{b.Namespace, a.Namespace, a.IPs[0].String()},
			{a.Namespace, r.Namespace, r.hostIP()},
			{r.Namespace, a.Namespace, a.IPs[0].String()},
		} {
			took, err := transfer(leg.from, leg.to, leg.addr, 1<<20)
			if err != nil {
				t.Errorf("TCP %s -> %s: %v", leg.from.Name, leg.to.Name, err)
				continue
			}
			t.Logf("TCP %s -> %s: 1 MiB there and back in %d ms", leg.from.Name, leg.to.Name, took.Milliseconds())
		}
		for _, p := range pods {
			r.must(r.DeletePod(r.ctx, p))
		}
		r.onlyPods(nil)
	})
}

// packetSizes checks that a packet of the size of the MTU is delivered whole, and that one more
// byte is rejected by the sender.
func (r *rig) packetSizes(a, b *testbed.Pod) {
	r.t.Helper()
	const mtu = 1450
	to := b.IPs[0].String()
	r.within(3*time.Second, "a packet of the MTU arrives", func() error { return a.PingOnce(r.ctx, to, mtu) })
	if err := a.PingOnce(r.ctx, to, mtu+1); err == nil || !strings.Contains(err.Error(), "too long") {
		r.t.Errorf("a packet of %d bytes is not reported as too long: %v", mtu+1, err)
	}
}

// transfer sends n random bytes over TCP, receives them again, and compares.
func transfer(from, to *netns.Namespace, addr string, n int) (time.Duration, error) {
	var l net.Listener
	err := to.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(addr, "0"))
		return err
	})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	echoed := make(chan error, 1)
	go func() { echoed <- echo(l) }()
	start := time.Now()
	var c net.Conn
	err = from.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := exchange(c, n); err != nil {
		return 0, err
	}
	return time.Since(start), <-echoed
}

func echo(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		return err
	}
	_, err = io.Copy(c, c)
	return err
}

func exchange(c net.Conn, n int) error {
	if err := c.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		return err
	}
	data := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(data)
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, bytes.NewReader(data))
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	sum := sha256.New()
	got, err := io.Copy(sum, c)
	if err := errors.Join(err, <-sent); err != nil {
		return fmt.Errorf("%d of %d bytes came back: %w", got, n, err)
	}
	if want := sha256.Sum256(data); !bytes.Equal(sum.Sum(nil), want[:]) {
		return fmt.Errorf("%d of %d bytes came back, and not the same ones", got, n)
	}
	return nil
}

func TestManyPodsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth, fake, linux, iptables}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		n := many(map[mode]int{tap: 100, veth: 30, fake: 100, linux: 100, iptables: 50}[m])
		r := newRig(t, m, room(n))
		start := time.Now()
		pods := r.addMany(n, 10)
		took := time.Since(start)
		t.Logf("%d pods by 10 callers in %.2f s, %.1f ms each", n, took.Seconds(), float64(took.Microseconds())/1000/float64(n))
		seen := map[netip.Addr]string{}
		for _, p := range pods {
			for _, ip := range p.IPs {
				if seen[ip] != "" {
					t.Errorf("%s and %s both have %s", p.Name, seen[ip], ip)
				}
				seen[ip] = p.Name
			}
		}
		r.onlyPods(pods)
		if m.real {
			start = time.Now()
			r.must(r.ring(20*time.Second, pods))
			t.Logf("all pods have pinged their neighbour in %.2f s", time.Since(start).Seconds())
			r.samplePairs(pods, 20)
		}
		start = time.Now()
		r.must(parallel(10, pods, func(p *testbed.Pod) error { return r.CNI.Del(r.ctx, p) }))
		t.Logf("deleted in %.2f s", time.Since(start).Seconds())
		r.onlyPods(nil)
	})
}

// samplePairs pings between random pairs of pods.
func (r *rig) samplePairs(pods []*testbed.Pod, n int) {
	r.t.Helper()
	pairs := make([][2]*testbed.Pod, n)
	for i := range pairs {
		a, b := rand.IntN(len(pods)), rand.IntN(len(pods))
		pairs[i] = [2]*testbed.Pod{pods[a], pods[b]}
	}
	r.check(parallel(4, pairs, func(p [2]*testbed.Pod) error {
		ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
		defer cancel()
		return poll.Until(ctx, 20*time.Millisecond, func() error {
			return p[0].PingOnce(ctx, p[1].IPs[0].String(), 0)
		})
	}))
}
