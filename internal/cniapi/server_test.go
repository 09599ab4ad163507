package cniapi

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func answer(res *Result, err error) Handler {
	return func(context.Context, *Request) (*Result, error) { return res, err }
}

func TestRoundTrip(t *testing.T) {
	want := &Result{
		Interfaces: []Interface{{Name: "eth0", MAC: "02:fe:00:00:00:01", MTU: 1450, Sandbox: "/run/netns/a"}, {Name: "tap0"}},
		IPs: []IP{
			{Interface: 0, Address: netip.MustParsePrefix("10.1.1.5/32"), Gateway: netip.MustParseAddr("10.1.1.1")},
			{Interface: 0, Address: netip.MustParsePrefix("fd00::5/128")},
		},
		Routes: []Route{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: netip.MustParseAddr("10.1.1.1")}, {Dst: netip.MustParsePrefix("::/0")}},
		DNS:    DNS{Nameservers: []string{"10.96.0.10"}, Search: []string{"svc.cluster.local"}},
	}
	var seen *Request
	socket := socketPath(t)
	serve(t, ServerConfig{Socket: socket}, func(ctx context.Context, req *Request) (*Result, error) {
		if req.Command == Status {
			return nil, nil
		}
		seen = req
		if _, ok := ctx.Deadline(); !ok {
			t.Error("no deadline")
		}
		return want, nil
	})
	req := addRequest("a")
	req.Pod = Pod{Namespace: "default", Name: "web", UID: "u"}
	req.Network = Network{Name: "contiv", MTU: 1400}
	res, err := (&Client{Socket: socket}).Do(timeout(t, 5*time.Second), req)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(res, want) {
		t.Errorf("got %+v, want %+v", res, want)
	}
	if seen.Pod != req.Pod || seen.Network.MTU != 1400 || seen.Netns != req.Netns {
		t.Errorf("server saw %+v", seen)
	}
	if seen.TimeoutMS <= 0 || seen.TimeoutMS >= 5000 {
		t.Errorf("timeout %d ms leaves no time for the reply", seen.TimeoutMS)
	}
}

func TestErrorsReachTheClient(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code uint
	}{
		{Errorf(CodeTryAgain, "later"), CodeTryAgain},
		{errors.New("boom"), CodeInternal},
		{context.DeadlineExceeded, CodeTryAgain},
	} {
		socket := socketPath(t)
		stop := serve(t, ServerConfig{Socket: socket}, func(_ context.Context, req *Request) (*Result, error) {
			if req.Command == Status {
				return nil, nil
			}
			return nil, tc.err
		})
		_, err := (&Client{Socket: socket}).Do(timeout(t, 5*time.Second), addRequest("a"))
		wantCode(t, err, tc.code)
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestPanicIsAnErrorOfTheRequest(t *testing.T) {
	socket := socketPath(t)
	serve(t, ServerConfig{Socket: socket}, func(_ context.Context, req *Request) (*Result, error) {
		if req.Command == Add {
			panic("oops")
		}
		return nil, nil
	})
	client := &Client{Socket: socket}
	_, err := client.Do(timeout(t, 5*time.Second), addRequest("a"))
	wantCode(t, err, CodeInternal)
	if _, err := client.Do(timeout(t, 5*time.Second), &Request{Command: Status}); err != nil {
		t.Errorf("server is gone: %v", err)
	}
}

func TestFilesAreForRootOnly(t *testing.T) {
	socket := socketPath(t)
	stop := serve(t, ServerConfig{Socket: socket}, answer(nil, nil))
	for path, want := range map[string]fs.FileMode{socket: 0o600, filepath.Dir(socket): 0o700, socket + ".lock": 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, error %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket is left behind: %v", err)
	}
}

func TestOtherUsersAreRefused(t *testing.T) {
	for _, tc := range []struct {
		uid     int
		known   bool
		own     int
		allowed bool
	}{{0, true, 1000, true}, {1000, true, 1000, true}, {1001, true, 1000, false}, {1001, true, 0, false}, {0, false, 0, true}} {
		if err := allowUID(tc.uid, tc.known, tc.own); (err == nil) != tc.allowed {
			t.Errorf("uid %d (known %v) with agent %d: %v", tc.uid, tc.known, tc.own, err)
		}
	}
}

func TestSharedDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	err := NewServer(ServerConfig{Socket: filepath.Join(dir, "cni.sock")}).Serve(t.Context(), answer(nil, nil))
	if err == nil || !strings.Contains(err.Error(), "writable for others") {
		t.Errorf("got %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	socket := socketPath(t)
	if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	serve(t, ServerConfig{Socket: socket}, answer(nil, nil))
}

func TestLiveSocketIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "cni.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	err = NewServer(ServerConfig{Socket: socket}).Serve(t.Context(), answer(nil, nil))
	if err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the other's socket was removed: %v", err)
	}
}

func TestFileInThePlaceOfTheSocketIsLeftAlone(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cni.sock")
	if err := os.WriteFile(socket, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewServer(ServerConfig{Socket: socket}).Serve(t.Context(), answer(nil, nil)); err == nil {
		t.Error("no error")
	}
	if data, _ := os.ReadFile(socket); string(data) != "x" {
		t.Error("the file was touched")
	}
}

func TestSecondAgentWaitsForTheFirst(t *testing.T) {
	socket := socketPath(t)
	stop := serve(t, ServerConfig{Socket: socket}, answer(nil, nil))
	err := NewServer(ServerConfig{Socket: socket, TakeOver: 80 * time.Millisecond}).Serve(t.Context(), answer(nil, nil))
	if err == nil || !strings.Contains(err.Error(), "another contiv-agent") {
		t.Fatalf("got %v", err)
	}
	go func() { _ = stop() }()
	serve(t, ServerConfig{Socket: socket}, answer(nil, nil))
}

func TestStopFinishesRunningRequests(t *testing.T) {
	socket := socketPath(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	stop := serve(t, ServerConfig{Socket: socket}, func(_ context.Context, req *Request) (*Result, error) {
		if req.Command == Add {
			close(begun)
			<-finish
		}
		return nil, nil
	})
	got := make(chan error, 1)
	go func() {
		_, err := (&Client{Socket: socket}).Do(timeout(t, 10*time.Second), addRequest("a"))
		got <- err
	}()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			break // the server accepts no more connections
		}
		_ = conn.Close()
	}
	close(finish)
	if err := <-got; err != nil {
		t.Errorf("running request: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopEndsWaitingAfterGrace(t *testing.T) {
	socket := socketPath(t)
	begun := make(chan struct{})
	stop := serve(t, ServerConfig{Socket: socket, Grace: 50 * time.Millisecond}, func(ctx context.Context, req *Request) (*Result, error) {
		if req.Command == Add {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, nil
	})
	got := make(chan error, 1)
	go func() {
		_, err := (&Client{Socket: socket}).Do(timeout(t, 10*time.Second), addRequest("a"))
		got <- err
	}()
	<-begun
	if err := stop(); err != nil {
		t.Error(err)
	}
	if e := wantCode(t, <-got, CodeTryAgain); !e.Retry {
		t.Error("the client is not told to retry")
	}
}

func TestSilentClientDoesNotKeepTheServer(t *testing.T) {
	socket := socketPath(t)
	stop := serve(t, ServerConfig{Socket: socket, IOTimeout: time.Hour}, answer(nil, nil))
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	socket := socketPath(t)
	var now, most atomic.Int32
	serve(t, ServerConfig{Socket: socket, MaxRequests: 3}, func(context.Context, *Request) (*Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			old := most.Load()
			if n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		time.Sleep(time.Millisecond) // so that requests overlap
		return nil, nil
	})
	errs := make(chan error, 50)
	for range cap(errs) {
		go func() {
			_, err := (&Client{Socket: socket, RetryFor: time.Second}).Do(timeout(t, 10*time.Second), &Request{Command: Status})
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 3 {
		t.Errorf("%d requests at a time, want at most 3", most.Load())
	}
}

func TestTooLongRequest(t *testing.T) {
	socket := socketPath(t)
	serve(t, ServerConfig{Socket: socket}, answer(nil, nil))
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err = conn.Write(make([]byte, maxMessage+8192))
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	if _, err := readReply(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		wantCode(t, err, CodeIO)
	}
	req := &Request{Command: GC}
	for range 20000 {
		req.ValidAttachments = append(req.ValidAttachments, AttachmentRef{ContainerID: strings.Repeat("a", 64), IfName: "eth0"})
	}
	if _, err := (&Client{Socket: socket}).Do(timeout(t, time.Second), req); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
}
