package healthcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/test/testbed/poll"
)

// address returns a loopback address that only this process uses: on 127.0.0.1, another process may take a port that is free now.
func address() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&0x3f, pid>>8&0xff, pid&0xff)
}

// at returns the address with a port.
func at(port uint16) string { return net.JoinHostPort(address(), fmt.Sprint(port)) }

// freePort returns a port that is currently unused.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", at(0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// get sends requests until a server responds.
func get(t *testing.T, port uint16) (*http.Response, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		resp, err := client.Get("http://" + at(port) + "/")
		if err == nil {
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp, string(body)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestAnswers(t *testing.T) {
	var sick atomic.Bool
	s := New(Config{Address: address(), Healthy: func() bool { return !sick.Load() }})
	id, port := svcmodel.ID{Namespace: "ns", Name: "web"}, freePort(t)
	for _, c := range []struct {
		local  int
		sick   bool
		status int
	}{
		{2, false, 200}, {0, false, 503}, {1, true, 503}, {1, false, 200},
	} {
		s.Set(id, port, c.local)
		sick.Store(c.sick)
		resp, body := get(t, port)
		if resp.StatusCode != c.status || resp.Header.Get(weightHeader) != fmt.Sprint(c.local) {
			t.Errorf("%+v: status %d, headers %v", c, resp.StatusCode, resp.Header)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("map[localEndpoints:%d service:map[name:web namespace:ns] serviceProxyHealthy:%t]", c.local, !c.sick)
		if fmt.Sprint(got) != want {
			t.Errorf("body %v, want %s", got, want)
		}
	}
	other := freePort(t)
	s.Set(id, other, 1) // the port changes
	get(t, other)
	refused(t, port)
	s.Delete(id)
	s.Delete(id)
	refused(t, other)
	s.Set(id, port, 1)
	get(t, port)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	refused(t, port)
	s.Set(id, port, 1)
	refused(t, port)
}

func refused(t *testing.T, port uint16) {
	t.Helper()
	if c, err := net.Dial("tcp", at(port)); err == nil {
		c.Close()
		t.Errorf("port %d is still served", port)
	}
}

// TestPortTaken checks that a port that another program uses is reported, and served as soon as it is free.
func TestPortTaken(t *testing.T) {
	port := freePort(t)
	l, err := net.Listen("tcp", at(port))
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Address: address()})
	defer func() { _ = s.Close() }()
	id := svcmodel.ID{Namespace: "ns", Name: "web"}
	s.Set(id, port, 1)
	poll.Await(t, "reported failure", 20*time.Second, func() bool { return s.Failing()[id] != nil })
	if err := s.Failing()[id]; !strings.Contains(err.Error(), "address already in use") {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if resp, _ := get(t, port); resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := s.Failing()[id]; err != nil {
		t.Error(err)
	}
}

// slowLog blocks at errors until it is released.
type slowLog struct {
	slog.Handler
	entered, release chan struct{}
}

func (l slowLog) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		l.entered <- struct{}{}
		<-l.release
	}
	return nil
}

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }

// TestSlowJobs checks that services change at once although the jobs of their previous ports do not end, and that Close waits for all jobs
// together.
func TestSlowJobs(t *testing.T) {
	log := slowLog{slog.DiscardHandler, make(chan struct{}, 8), make(chan struct{})}
	s := New(Config{Address: address(), Log: slog.New(log)})
	var taken []uint16
	for i := range 4 {
		l, err := net.Listen("tcp", at(0))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		taken = append(taken, uint16(l.Addr().(*net.TCPAddr).Port))
		s.Set(svcmodel.ID{Name: fmt.Sprint(i)}, taken[i], 1)
		<-log.entered
	}
	begun, other := time.Now(), freePort(t)
	s.Set(svcmodel.ID{Name: "0"}, other, 1)
	s.Delete(svcmodel.ID{Name: "1"})
	if took := time.Since(begun); took > time.Second {
		t.Errorf("a change took %s", took)
	}
	get(t, other)
	begun = time.Now()
	err := s.Close()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("Close took %s", took)
	}
	for _, port := range taken {
		if want := fmt.Sprintf("job healthcheck-%d did not stop", port); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	refused(t, other)
	close(log.release)
}

// TestPortOfAnother checks that a port that one service gives up serves another one at once, also with an open connection to the first.
func TestPortOfAnother(t *testing.T) {
	s := New(Config{Address: address()})
	t.Cleanup(func() { _ = s.Close() })
	port := freePort(t)
	for i := range 50 {
		id := svcmodel.ID{Namespace: "ns", Name: fmt.Sprint(i)}
		s.Set(id, port, 1)
		if _, body := get(t, port); !strings.Contains(body, fmt.Sprintf(`"name": "%d"`, i)) {
			t.Fatalf("service %d: %s", i, body)
		}
		c, err := net.Dial("tcp", at(port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := s.Failing()[id]; err != nil {
			t.Fatal(err)
		}
		if s.Delete(id); i%10 == 0 {
			refused(t, port)
		}
	}
}

// TestLargeRequest checks that a client cannot make the agent store the data that it sends.
func TestLargeRequest(t *testing.T) {
	s := New(Config{Address: address()})
	t.Cleanup(func() { _ = s.Close() })
	port := freePort(t)
	s.Set(svcmodel.ID{Namespace: "ns", Name: "web"}, port, 1)
	get(t, port) // the server listens now
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at(port)+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("x", 64<<10))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return // the connection was closed during the write
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %s", resp.Status)
	}
}
