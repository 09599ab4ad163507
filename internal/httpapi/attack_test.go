package httpapi

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
)

// attacked returns a server whose /list is 8 MB of records, like a long history.
func attacked(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 64<<10)
	s.RegisterHTTPHandler("/list", func(w http.ResponseWriter, _ *http.Request) {
		_ = rest.WriteArray(w, func(yield func(string) bool) { // the reader disconnects
			for i := 0; i < 128 && yield(fmt.Sprint(i, text)); i++ {
			}
		})
	})
	for path, size := range map[string]int{rest.ReadinessPath: 2, rest.MetricsPath: 1 << 20} {
		answer := bytes.Repeat([]byte{'m'}, size)
		s.RegisterHTTPHandler(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	}
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	t.Cleanup(func() { _ = jobs.Stop(time.Minute) })
	if err := s.Start(jobs); err != nil {
		t.Fatal(err)
	}
	return s
}

// rss returns the resident memory of this process, clients included, in MB.
func rss(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var total, resident int
	if _, err := fmt.Sscan(string(text), &total, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize() >> 20
}

// TestSlowReaders checks that a thousand callers that request large answers and read nothing cost little, and do not block others.
func TestSlowReaders(t *testing.T) {
	dir := t.TempDir()
	token, socket := write(t, "token", testToken), filepath.Join(dir, "rest.sock")
	certFile, keyFile := writePair(t, dir, 1)
	plain := func(address string) (net.Conn, error) { return net.Dial("tcp", address) }
	secure := func(address string) (net.Conn, error) {
		return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) // the certificate is made by the test
	}
	for name, tc := range map[string]struct {
		cfg  Config
		dial func(string) (net.Conn, error)
		path string
		each int // of 20 callers
	}{
		"any user on loopback":          {Config{Address: freePort(t)}, plain, "/list", 50},
		"any user on loopback, metrics": {Config{Address: freePort(t)}, plain, rest.MetricsPath, 50},
		"with the token":                {Config{Address: freePort(t), TokenFile: token}, plain, "/list", 50},
		"with TLS and the token": {Config{Address: freePort(t), TokenFile: token, CertFile: certFile, KeyFile: keyFile}, secure,
			"/list", 15},
		"root on the socket": {Config{Socket: socket}, func(string) (net.Conn, error) { return net.Dial("unix", socket) },
			"/list", 50},
	} {
		t.Run(name, func(t *testing.T) {
			attacked(t, tc.cfg)
			before := rss(t)
			var all sync.WaitGroup
			conns := make(chan net.Conn, 1000)
			for range 20 {
				all.Go(func() {
					for range tc.each {
						conn, err := tc.dial(tc.cfg.Address)
						if err != nil {
							continue // the server has rejected it
						}
						conns <- conn
						_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: agent\r\nAuthorization: Bearer %s\r\n\r\n", tc.path, testToken)
					}
				})
			}
			all.Wait()
			for range 5 { // while they hold their connections
				conn, err := tc.dial(tc.cfg.Address)
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				_, err = io.WriteString(conn, "GET "+rest.ReadinessPath+" HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")
				answer, err2 := io.ReadAll(conn)
				if err != nil || err2 != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
					t.Errorf("a probe is not answered: %q, %v, %v", answer, err, err2)
				}
				_ = conn.Close()
			}
			if after := rss(t); after-before > 200 {
				t.Errorf("memory went from %d to %d MB", before, after)
			} else {
				t.Logf("memory went from %d to %d MB", before, after)
			}
			close(conns)
			for conn := range conns {
				_ = conn.Close()
			}
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestAnswersAreTakenInTime checks that a caller that reads nothing of an answer loses its connection and its slot; a caller that reads it
// piece by piece receives all of it.
func TestAnswersAreTakenInTime(t *testing.T) {
	cfg := Config{Address: freePort(t), TokenFile: write(t, "token", testToken)}
	s, err := New(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	s.limits.busy, s.limits.piece, s.limits.wait = 1, 300*time.Millisecond, 10*time.Second
	const size = 16 << 20
	s.RegisterHTTPHandler("/list", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	t.Cleanup(func() { _ = jobs.Stop(time.Minute) })
	if err := s.Start(jobs); err != nil {
		t.Fatal(err)
	}
	query := func() net.Conn {
		conn, err := net.Dial("tcp", cfg.Address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprintf(conn, "GET /list HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", testToken)
		return conn
	}
	query() // without reading the answer
	slow := query()
	total, buf := 0, make([]byte, 1<<20)
	for {
		n, err := slow.Read(buf)
		total += n
		if err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if total < size {
		t.Errorf("a slow reader got %d of %d bytes", total, size)
	}
}

// TestAnswersThatBeginLate checks that a caller receives an answer that the agent begins later than the caller must have received one: the time limit is
// for the caller, and begins with the answer.
func TestAnswersThatBeginLate(t *testing.T) {
	cfg := Config{Address: freePort(t), TokenFile: write(t, "token", testToken)}
	s, err := New(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	s.limits.public, s.limits.answer = 100*time.Millisecond, 100*time.Millisecond
	for _, path := range []string{rest.MetricsPath, "/list"} {
		s.RegisterHTTPHandler(path, func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(300 * time.Millisecond)
			_, _ = io.WriteString(w, "late")
		})
	}
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	t.Cleanup(func() { _ = jobs.Stop(time.Minute) })
	if err := s.Start(jobs); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{rest.MetricsPath, "/list"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+cfg.Address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || string(text) != "late" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
		_ = resp.Body.Close()
	}
}

// TestConnectionLimitDropsTheIdlest checks that, of too many connections, the one that has been inactive longest is closed, idle ones before
// others, and none with a request that changes something.
func TestConnectionLimitDropsTheIdlest(t *testing.T) {
	c := newConnLimiter(3)
	open := func() (net.Conn, *member) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		ctx := c.enter(t.Context(), theirs)
		c.changed(theirs, http.StateNew)
		m, _ := ctx.Value(memberKey{}).(*member)
		return theirs, m
	}
	there := func(conn net.Conn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.members[conn] != nil
	}
	kept, m := open()
	m.kept = true
	second, _ := open()
	idle, _ := open()
	c.changed(idle, http.StateIdle)
	fourth, _ := open()
	if !there(kept) || !there(second) || there(idle) || !there(fourth) {
		t.Error("the idle one is to go")
	}
	fifth, _ := open()
	if !there(kept) || there(second) || !there(fourth) || !there(fifth) {
		t.Error("the one that has waited longest is to go")
	}
	for _, m := range c.members {
		m.kept = true
	}
	if sixth, _ := open(); there(sixth) || !there(fifth) {
		t.Error("the new one is to go, since all others are in work")
	}
}
