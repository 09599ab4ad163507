package nat44_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed/poll"
)

// portsVariable makes TestPortsInTurn longer: seconds.
const portsVariable = "CONTIV_NAT_PORTS"

const (
	one, two = "10.96.0.10:80", "10.96.0.11:80"
)

// dialFrom connects from a port. The connection's end leaves nothing that would keep the port from being used again.
func (s *server) dialFrom(port int, to string) (c *call, err error) {
	return c, s.Do(func() error {
		dialer := &net.Dialer{Timeout: 1500 * time.Millisecond, LocalAddr: &net.TCPAddr{IP: s.ip.AsSlice(), Port: port}}
		var (
			conn   net.Conn
			dialed error
		)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := poll.Until(ctx, 5*time.Millisecond, func() error {
			if conn, dialed = dialer.Dial("tcp", to); errors.Is(dialed, unix.EADDRINUSE) {
				return dialed // a process that another test has just forked may still have the socket that was closed
			}
			return nil
		})
		if err != nil || dialed != nil {
			return dialed
		}
		c = &call{conn, bufio.NewReader(conn)}
		return conn.(*net.TCPConn).SetLinger(0)
	})
}

// TestFaults shows what is wrong with VPP 25.10's NAT44 when a client uses a port again (docs/adr/0009). When VPP is mended,
// rejoice.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, "")
	a, c := w.pod(0, "a"), w.pod(0, "c")
	w.service("one", "10.96.0.10", nil, a)
	w.service("two", "10.96.0.11", nil, a)
	w.reaches(c, "tcp", one, a)
	w.reaches(c, "tcp", two, a)
	direct := a.at(servePort)
	for n, s := range []struct {
		use  []string
		lost bool
	}{
		{[]string{one, one, one}, false},
		{[]string{one, two}, false},
		{[]string{one, two, one}, true},
		{[]string{one, direct}, true},
		{[]string{direct, one}, false},
	} {
		port := 21000 + n // not one that the kernel chooses
		for i, to := range s.use {
			conn, err := c.dialFrom(port, to)
			if err == nil {
				_, _, err = conn.query()
				_ = conn.Close()
			}
			if last := i == len(s.use)-1; (err != nil) != (last && s.lost) {
				t.Errorf("port %d for %v, number %d: %v; known is that the last one is lost: %t", port, s.use, i+1, err, s.lost)
			}
		}
	}
	t.Run("a session's end", func(t *testing.T) { w.sessionEnds(t, a, c) })
}

// sessionEnds: when VPP forgets a closed connection it forgets the answers of the one that has used its port since.
func (w *world) sessionEnds(t *testing.T, a, c *server) {
	if _, err := w.Nodes[0].VPP.CLI("set nat timeout tcp-transitory 2"); err != nil {
		t.Fatal(err)
	}
	first, err := c.dialFrom(21100, one)
	w.must(err)
	w.must(first.Close())
	second, err := c.dialFrom(21100, two)
	w.must(err)
	defer second.Close()
	if _, _, err := second.query(); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(15 * time.Second); time.Now().Before(limit); time.Sleep(200 * time.Millisecond) {
		w.reaches(c, "tcp", one, a) // VPP forgets sessions when it makes others
		if _, _, err := second.query(); err != nil {
			return
		}
	}
	t.Error("the connection is still there")
}

// TestPortsInTurn: clients in two pods use two services with the same four backends in turn, with ports that the kernel chooses.
func TestPortsInTurn(t *testing.T) {
	s := os.Getenv(portsVariable)
	if s == "" {
		t.Skipf("skipped: takes %s seconds three times, and logs how many connections were lost", portsVariable)
	}
	seconds, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", portsVariable, err)
	}
	for _, timeout := range []int{240, 30, 5} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) { portsInTurn(t, timeout, seconds) })
	}
}

func portsInTurn(t *testing.T, timeout, seconds int) {
	w := newWorld(t, 1, "")
	var backends, clients []*server
	for n := range 4 {
		backends = append(backends, w.pod(0, fmt.Sprint("b", n)))
	}
	for n := range 2 {
		clients = append(clients, w.pod(0, fmt.Sprint("c", n)))
	}
	w.service("one", "10.96.0.10", nil, backends...)
	w.service("two", "10.96.0.11", nil, backends...)
	for _, c := range clients {
		w.reaches(c, "tcp", one, backends...)
		w.reaches(c, "tcp", two, backends...)
	}
	if _, err := w.Nodes[0].VPP.CLI(fmt.Sprint("set nat timeout tcp-transitory ", timeout)); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	var mu sync.Mutex
	done, lost := 0, 0
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	for n := range 4 {
		work.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				_, _, err := queryOnce(clients[n%2].Namespace, "tcp", []string{one, two}[i%2])
				mu.Lock()
				done++
				if err != nil {
					lost++
					t.Logf("%v before the end, after %d: %v", time.Until(end).Round(time.Millisecond), done, err)
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	sessions, err := w.Nodes[0].VPP.CLI("show nat44 summary")
	w.must(err)
	t.Logf("transitory timeout %d s: %d of %d connections lost in %d s\n%s", timeout, lost, done, seconds, sessions)
}
