package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// answerTimeout is the timeout of a connection. A lost SYN is sent again after one second: a slower connection has lost packets, but has not
// failed.
const answerTimeout = 5 * time.Second

// query gets a path by HTTP on its own connection. The client is in the calling thread's network namespace.
func query(server, path string) (string, error) {
	conn, err := net.DialTimeout("tcp", server, answerTimeout)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nHost: test\r\n\r\n", path); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	head, body, ok := strings.Cut(string(answer), "\r\n\r\n")
	if status, _, _ := strings.Cut(head, "\r\n"); !ok || !strings.Contains(status, " 200 ") {
		return "", fmt.Errorf("http://%s%s: %q", server, path, status)
	}
	return strings.TrimSpace(body), nil
}

// queryFrom is like query, from a namespace; nil is this machine, outside of the cluster.
func queryFrom(ns *netns.Namespace, server, path string) (answer string, err error) {
	if ns == nil {
		return query(server, path)
	}
	err = ns.Do(func() error {
		answer, err = query(server, path)
		return err
	})
	return answer, err
}

// hostPort joins an address and a port for dialers.
func hostPort(ip string, port int) string { return net.JoinHostPort(ip, fmt.Sprint(port)) }

// load makes connections one after the other, during another action.
type load struct {
	name string
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	ok      int            // guarded by mu, like all fields below
	failed  []string       // reasons
	servers map[string]int // number of answers by server
	slowest time.Duration
}

// startLoad makes a connection every interval from a namespace, and each requests the server's name. A connection that hangs delays only the
// others of its worker: there are several workers.
func (w *world) startLoad(name string, ns *netns.Namespace, server string, interval time.Duration) *load {
	const workers = 4
	ctx, cancel := context.WithCancel(w.ctx)
	l := &load{name: name, stop: cancel, servers: map[string]int{}}
	for i := range workers {
		l.done.Add(1)
		//lint:allow go: ends with the load, which waits for it
		go func() {
			defer l.done.Done()
			work := func() error {
				l.run(ctx, server, interval*workers, interval*time.Duration(i))
				return nil
			}
			if ns == nil {
				_ = work()
			} else if err := ns.Do(work); err != nil {
				l.note("", err, 0)
			}
		}()
	}
	w.t.Cleanup(cancel)
	return l
}

func (l *load) run(ctx context.Context, server string, interval, phase time.Duration) {
	time.Sleep(phase)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		start := time.Now()
		answer, err := query(server, "/hostname")
		l.note(answer, err, time.Since(start))
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (l *load) note(answer string, err error, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	if err != nil {
		l.failed = append(l.failed, time.Now().Format("05.000 ")+err.Error())
		return
	}
	l.ok++
	l.servers[answer]++
}

// end stops the load and prints its results.
func (l *load) end() (failed int) {
	l.stop()
	l.done.Wait()
	return len(l.failed)
}

func (l *load) String() string {
	s := fmt.Sprintf("%s: %d connections to %d servers, %d failed, slowest %d ms",
		l.name, l.ok+len(l.failed), len(l.servers), len(l.failed), l.slowest.Milliseconds())
	if len(l.failed) > 0 {
		s += "; first: " + strings.Join(l.failed[:min(len(l.failed), 8)], ", ")
	}
	return s
}

// ended stops loads, logs them, and fails the test if connections failed.
func (w *world) ended(loads ...*load) {
	w.t.Helper()
	for _, l := range loads {
		l.end()
	}
	for _, l := range loads {
		w.t.Log(l)
		if len(l.failed) > 0 {
			w.t.Errorf("%s: %d connections failed", l.name, len(l.failed))
		}
		if l.ok == 0 {
			w.t.Errorf("%s: no connection at all", l.name)
		}
	}
}

// stream is a series of echo requests in the background.
type stream struct {
	name     string
	interval time.Duration
	stop     context.CancelFunc
	done     chan struct{}
	result   netns.PingResult
	err      error
}

const streamInterval = 5 * time.Millisecond

// startStream pings until the stream is ended.
func (w *world) startStream(name string, from *netns.Namespace, to string) *stream {
	ctx, cancel := context.WithCancel(w.ctx)
	s := &stream{name: name, interval: streamInterval, stop: cancel, done: make(chan struct{})}
	w.t.Cleanup(cancel)
	//lint:allow go: ends with the stream, which waits for it
	go func() {
		defer close(s.done)
		s.result, s.err = from.Ping(ctx, to, 200_000, s.interval)
	}()
	return s
}

// lost ends a stream and returns the number of its lost packets.
func (w *world) lost(s *stream) int {
	w.t.Helper()
	s.stop()
	<-s.done
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		w.t.Errorf("%s: %v", s.name, s.err)
	}
	w.t.Logf("%s: %s", s.name, s.result)
	if s.result.Received == 0 {
		w.t.Errorf("%s: nothing came back", s.name)
	}
	return s.result.Lost()
}

// unhurt ends streams and fails the test if they lost packets.
func (w *world) unhurt(streams ...*stream) {
	w.t.Helper()
	for _, s := range streams {
		s.stop()
	}
	for _, s := range streams {
		if n := w.lost(s); n > 0 {
			w.t.Errorf("%s: %d packets lost", s.name, n)
		}
	}
}

// family returns the address of a family.
func family(ips []string, v6 bool) string {
	i := slices.IndexFunc(ips, func(ip string) bool {
		a, err := netip.ParseAddr(ip)
		return err == nil && a.Is6() == v6
	})
	if i < 0 {
		return ""
	}
	return ips[i]
}
