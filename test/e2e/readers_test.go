package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/nsdo"
)

// TestSlowReaders checks that callers on the node that request everything and read nothing exhaust neither the agent's memory nor the
// slots for the kubelet, on the loopback address as any user and on the socket as root.
func TestSlowReaders(t *testing.T) {
	eachAlone(t, []mode{fake, linux}, func(t *testing.T, m mode) {
		r := newRig(t, m)
		for range 200 { // creates a long history
			_, err := r.Post(r.ctx, "/controller/resync")
			r.must(err)
		}
		history, err := r.Get(r.ctx, "/controller/event-history")
		r.must(err)
		before := r.memory()
		for _, path := range []string{"/controller/event-history", "/scheduler/dump", "/scheduler/txn-history?format=json", "/metrics"} {
			for _, at := range [][2]string{{"tcp", "127.0.0.1:9999"}, {"unix", r.RESTSocket()}} {
				release := r.slowReaders(at[0], at[1], path)
				for range 3 {
					start := time.Now()
					if answer := r.probe(); !strings.HasPrefix(answer, "HTTP/1.1 200") || time.Since(start) > 2*time.Second {
						t.Errorf("%s %s: the probe got %q after %s", at[0], path, answer, time.Since(start))
					}
				}
				if now := r.memory(); now > before+100 {
					t.Errorf("%s %s: the agent's memory went from %d to %d MB (the history is %d kB)", at[0], path, before, now,
						len(history)>>10)
				}
				release()
			}
		}
		t.Logf("history %d kB, memory %d MB before and %d MB after", len(history)>>10, before, r.memory())
	})
}

// slowReaders makes a thousand callers that read nothing until release is called.
func (r *rig) slowReaders(network, address, path string) (release func()) {
	r.t.Helper()
	var conns []net.Conn
	for range 1000 {
		conn, err := r.dial(network, address)
		if err != nil {
			r.t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: agent\r\n\r\n", path) // the server may have closed the connection
		conns = append(conns, conn)
	}
	return func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

// dial connects from inside the node.
func (r *rig) dial(network, address string) (conn net.Conn, err error) {
	if network == "unix" {
		return net.Dial(network, address)
	}
	ns, err := nsdo.Open("/run/netns/" + r.Name)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	err = ns.Do(func() error {
		conn, err = net.DialTimeout(network, address, 5*time.Second)
		return err
	})
	return conn, err
}

// probe probes as the kubelet does: with a new connection each time.
func (r *rig) probe() string {
	r.t.Helper()
	conn, err := r.dial("tcp", "127.0.0.1:9999")
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = conn.Write([]byte("GET /liveness HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n"))
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil {
		return err.Error()
	}
	return string(buf[:n])
}

// memory returns the resident memory of the agent, in MB.
func (r *rig) memory() int {
	r.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Agent.PID()))
	r.must(err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kb int
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		r.t.Fatal(err)
	}
	return kb >> 10
}
