package plugin_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// Bulk data arrives unchanged through a service, in both directions, for each kind of work that VPP leaves to the interface:
// segmentation, checksums, or nothing.
func TestBulk(t *testing.T) {
	for _, workers := range workerCounts() {
		for _, options := range []string{"", "csum-offload", "gso"} {
			t.Run(fmt.Sprintf("workers=%d,%s", workers, options), func(t *testing.T) {
				bulkByService(newRig(t, vpptest.Options{Workers: workers, Vhostshim: true, Buffers: 16384}), options)
			})
		}
	}
}

func bulkByService(r *rig, options string) {
	a, b := r.pod("a", options), r.pod("b", options)
	r.network("10.1.0.0/16", contiv.CONTIV_CLASS_API_POD)
	r.network("fd00:1::/32", contiv.CONTIV_CLASS_API_POD)
	r.masquerade("10.1.0.1", "fd00:1::1")
	r.echo(b, 8080)
	for n, ends := range [][2]string{{"10.96.0.1:80", netip.AddrPortFrom(b.v4, 8080).String()}, {"[fd00:96::1]:80", netip.AddrPortFrom(b.v6, 8080).String()}} {
		r.service(uint64(n+1), ends[0], tcp, ends[1])
		for _, client := range []*port{a, b} {
			begin := time.Now()
			const size = 16 << 20
			if err := r.through(client, ends[0], size); err != nil {
				r.Errorf("%s to %s: %v", client.Name, ends[0], err)
				r.Log(r.cli("show contiv connections"), r.cli("show errors"))
			}
			r.Logf("%s to %s: %.2f Gb/s each way", client.Name, ends[0], size*8/time.Since(begin).Seconds()/1e9)
		}
	}
	for _, line := range []string{"headers cut off", "source that is not"} {
		if n := r.counter("contiv-ip4-input", line) + r.counter("contiv-ip6-input", line); n != 0 {
			r.Errorf("%s: %d", line, n)
		}
	}
}

// echo starts a TCP echo server on a port of p.
func (r *rig) echo(p *port, number int) {
	r.Helper()
	var l net.Listener
	err := p.Do(func() (err error) {
		l, err = net.ListenTCP("tcp", &net.TCPAddr{Port: number})
		return err
	})
	r.do(nil, err)
	r.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
}

// dial connects to an address of a pod.
func dial(p *port, to string, timeout time.Duration) (c net.Conn, err error) {
	err = p.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", to, timeout)
		return err
	})
	return c, err
}

// through sends size random bytes to an echo server and compares the answer.
func (r *rig) through(p *port, to string, size int) error {
	c, err := dial(p, to, 20*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(3 * time.Minute))
	sent := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		_, _ = io.CopyN(io.MultiWriter(c, h), rand.NewChaCha8([32]byte{1}), int64(size))
		_ = c.(*net.TCPConn).CloseWrite()
		sent <- h.Sum(nil)
	}()
	h := sha256.New()
	n, err := io.Copy(h, c)
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	if n != int64(size) || !bytes.Equal(h.Sum(nil), <-sent) {
		return fmt.Errorf("%d bytes came back, not as sent", n)
	}
	return nil
}
