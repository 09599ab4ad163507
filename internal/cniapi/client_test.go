package cniapi

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

func TestClientWithoutAgent(t *testing.T) {
	client := &Client{Socket: socketPath(t), RetryFor: 150 * time.Millisecond}
	start := time.Now()
	_, err := client.Do(timeout(t, 10*time.Second), addRequest("a"))
	var away *UnreachableError
	if !errors.As(err, &away) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestClientSurvivesARestart(t *testing.T) {
	socket := socketPath(t)
	if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	// The listener acts as an agent that dies during the request.
	dying, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := dying.Accept()
		if err == nil {
			_, _ = readLine(conn)
			_ = dying.Close()
			_ = conn.Close()
		}
	}()
	got := make(chan error, 1)
	go func() {
		_, err := (&Client{Socket: socket, RetryFor: 10 * time.Second}).Do(timeout(t, 10*time.Second), addRequest("a"))
		got <- err
	}()
	for {
		if _, err := os.Lstat(socket); err != nil {
			break
		}
	}
	var adds atomic.Int32
	serve(t, ServerConfig{Socket: socket}, func(_ context.Context, req *Request) (*Result, error) {
		if req.Command == Add && adds.Add(1) == 1 {
			return nil, &Error{Code: CodeTryAgain, Msg: "stopping", Retry: true}
		}
		return nil, nil
	})
	if err := <-got; err != nil {
		t.Error(err)
	}
	if adds.Load() != 2 {
		t.Errorf("%d requests, want 2", adds.Load())
	}
}

func TestClientDoesNotRepeatAnswers(t *testing.T) {
	socket := socketPath(t)
	var n atomic.Int32
	serve(t, ServerConfig{Socket: socket}, func(_ context.Context, req *Request) (*Result, error) {
		if req.Command == Add {
			n.Add(1)
			return nil, Errorf(CodeTryAgain, "no address left")
		}
		return nil, nil
	})
	_, err := (&Client{Socket: socket, RetryFor: 5 * time.Second}).Do(timeout(t, 5*time.Second), addRequest("a"))
	wantCode(t, err, CodeTryAgain)
	if n.Load() != 1 {
		t.Errorf("asked %d times", n.Load())
	}
}

func TestClientKeepsItsDeadline(t *testing.T) {
	socket := socketPath(t)
	stop := serve(t, ServerConfig{Socket: socket, Grace: time.Millisecond}, func(ctx context.Context, req *Request) (*Result, error) {
		if req.Command == Add {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, nil
	})
	start := time.Now()
	_, err := (&Client{Socket: socket, RetryFor: 5 * time.Second}).Do(timeout(t, 3*time.Second), addRequest("a"))
	wantCode(t, err, CodeTryAgain) // the agent's answer, not our timeout
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestClientGetsGarbage(t *testing.T) {
	socket := socketPath(t)
	if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n"))
			_ = conn.Close()
		}
	}()
	_, err = (&Client{Socket: socket}).Do(timeout(t, 5*time.Second), addRequest("a"))
	wantCode(t, err, CodeDecode)
}
