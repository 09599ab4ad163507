package httpapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
)

// TestBodyThatNeverComes checks that a caller that announces a body and does not send it cannot hold resources, and that a handler that
// takes long after it has received the body is not interrupted.
func TestBodyThatNeverComes(t *testing.T) {
	s, err := New(Config{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	s.bodyTimeout = 200 * time.Millisecond
	outcome := make(chan error, 1)
	s.RegisterHTTPHandler("/long", func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		time.Sleep(3 * s.bodyTimeout)
		outcome <- errors.Join(err, r.Context().Err())
	}, http.MethodPost)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	defer func() { _ = jobs.Stop(time.Minute) }()
	s.serve(jobs, "test", l, trust)
	for _, path := range []string{rest.LivenessPath, "/long"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: agent\r\nContent-Length: 1000\r\n\r\nsome")
		if err == nil {
			_, err = io.ReadAll(conn) // until the server closes it
		}
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Errorf("%s: the connection stays open", path)
		}
		_ = conn.Close()
	}
	<-outcome // outcome of the request that never arrived
	resp, err := http.Post("http://"+l.Addr().String()+"/long", "text/plain", strings.NewReader("all of it"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-outcome; err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a request that takes long: %d %v", resp.StatusCode, err)
	}
}
