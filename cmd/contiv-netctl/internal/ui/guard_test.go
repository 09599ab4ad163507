package ui

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/ui/fleet"
)

// TestGuard: requests without the key, with another host name, with other methods, and for paths outside of the page get the right answers.
func TestGuard(t *testing.T) {
	c := newCluster(t, 1)
	s := serve(t, c, nil)
	base := "http://" + s.listener.Addr().String()
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	cookie := "contiv-ui-" + port + "=" + s.secret
	for _, tc := range []struct {
		name, method, path string
		header             map[string]string
		status             int
		text               string
	}{
		{"with the key", "GET", "/api/overview", map[string]string{"Cookie": cookie}, 200, "worker-1"},
		{"the page", "GET", "/", map[string]string{"Cookie": cookie}, 200, "<!doctype html>"},
		{"a port of ssh -L", "GET", "/api/session", map[string]string{"Cookie": cookie, "Host": "localhost:8080"}, 200, "version"},
		{"IPv6", "GET", "/api/session", map[string]string{"Cookie": cookie, "Host": "[::1]:8080"}, 200, "version"},
		{"no key", "GET", "/", nil, 403, "needs the address that contiv-netctl ui has printed"},
		{"no key for data", "GET", "/api/overview", nil, 403, "needs the address"},
		{"no key for files", "GET", "/app.js", nil, 403, "needs the address"},
		{"another key", "GET", "/api/overview", map[string]string{"Cookie": "contiv-ui-" + port + "=x"}, 403, "needs the address"},
		{"an empty key", "GET", "/api/overview", map[string]string{"Cookie": "contiv-ui-" + port + "="}, 403, "needs the address"},
		{"a wrong key in the address", "GET", "/?key=abc", nil, 403, "needs the address"},
		{"a wrong key beside the cookie", "GET", "/?key=abc", map[string]string{"Cookie": cookie}, 403, "needs the address"},
		{"DNS rebinding", "GET", "/api/overview", map[string]string{"Cookie": cookie, "Host": "attacker.example"}, 403, "attacker.example"},
		{"DNS rebinding with the port", "GET", "/api/overview", map[string]string{"Cookie": cookie, "Host": "attacker.example:" + port}, 403, "are rejected"},
		{"a name that begins well", "GET", "/", map[string]string{"Cookie": cookie, "Host": "127.0.0.1.attacker.example"}, 403, "are rejected"},
		{"another address", "GET", "/", map[string]string{"Cookie": cookie, "Host": "192.0.2.1"}, 403, "are rejected"},
		{"no host", "GET", "/", map[string]string{"Cookie": cookie, "Host": ""}, 403, "are rejected"},
		{"another site's request", "GET", "/api/overview", map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}, 403, "other sites"},
		{"POST", "POST", "/api/overview", map[string]string{"Cookie": cookie}, 405, "only reads"},
		{"POST of a trace", "POST", "/api/trace", map[string]string{"Cookie": cookie, "Origin": base, "Content-Type": "application/json"}, 405, "only reads"},
		{"PUT", "PUT", "/", map[string]string{"Cookie": cookie}, 405, "only reads"},
		{"DELETE", "DELETE", "/api/overview", map[string]string{"Cookie": cookie}, 405, "only reads"},
		{"path traversal", "GET", "/../../../etc/passwd", map[string]string{"Cookie": cookie}, 404, ""},
		{"escaped path traversal", "GET", "/%2e%2e/%2e%2e/etc/passwd", map[string]string{"Cookie": cookie}, 404, ""},
		{"traversal with slashes escaped", "GET", "/..%2f..%2fetc%2fpasswd", map[string]string{"Cookie": cookie}, 404, ""},
		{"the source of the server", "GET", "/web/index.html", map[string]string{"Cookie": cookie}, 404, ""},
		{"a path of an agent", "GET", "/contiv/v1/configuration", map[string]string{"Cookie": cookie}, 404, ""},
		{"an agent's path as a node", "GET", "/api/events?node=../../vpp/cli", map[string]string{"Cookie": cookie}, 400, "there is no node"},
		{"more than a number", "GET", "/api/event?node=worker-1&number=1%26last=5", map[string]string{"Cookie": cookie}, 400, "a number is needed"},
	} {
		status, text, header := query(t, s.listener.Addr().String(), tc.method, tc.path, tc.header)
		if status != tc.status || !strings.Contains(text, tc.text) || strings.Contains(text, "root:") {
			t.Errorf("%s: status %d, want %d with %q:\n%s", tc.name, status, tc.status, tc.text, text)
		}
		if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no content security policy", tc.name)
		}
	}
	c.set(func() {
		if c.posts > 0 {
			t.Errorf("%d requests other than GET reached an agent", c.posts)
		}
	})
}

// query sends a request exactly as given: HTTP clients would correct path or host.
func query(t *testing.T, at, method, path string, header map[string]string) (int, string, http.Header) {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	host := at
	if own, ok := header["Host"]; ok {
		host = own
	}
	text := method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nContent-Length: 0\r\n"
	for name, value := range header {
		if name != "Host" {
			text += name + ": " + value + "\r\n"
		}
	}
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

// TestKey: the address that the command prints opens the page, and the redirect removes the key from the address.
func TestKey(t *testing.T) {
	s := serve(t, newCluster(t, 1), nil)
	jar, _ := cookiejar.New(nil)
	client := http.Client{Jar: jar}
	resp, err := client.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.RawQuery != "" {
		t.Errorf("status %d at %s", resp.StatusCode, resp.Request.URL)
	}
	at, _ := url.Parse(s.URL())
	if list := jar.Cookies(at); len(list) != 1 {
		t.Errorf("cookies %v", list)
	}
	first, second := newSecret(), newSecret()
	if first == second || len(first) < 32 {
		t.Errorf("keys %q and %q", first, second)
	}
}

// TestListenOnLoopbackOnly: other addresses are rejected, because the page has no TLS.
func TestListenOnLoopbackOnly(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "[::]:0", "example.com:80", "127.0.0.1"} {
		if _, err := New(Config{Listen: listen}); err == nil || !strings.Contains(err.Error(), "--listen") {
			t.Errorf("%s: %v", listen, err)
		}
	}
	s, err := New(Config{Listen: "localhost:0"})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	if _, err := New(Config{Listen: "127.0.0.1:" + port}); err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("a port that is taken: %v", err)
	}
	_ = s.listener.Close()
}

// TestTraceIsAllowedOnRequest: with --allow-trace one POST exists, for the page's own origin.
func TestTraceIsAllowedOnRequest(t *testing.T) {
	got := TraceRequest{}
	s := serve(t, newCluster(t, 1), func(_ context.Context, req TraceRequest) (any, error) {
		got = req
		if req.From == "nobody" {
			return nil, errors.New(`"nobody" is no connected pod`)
		}
		return map[string]string{"done": "yes"}, nil
	})
	base := "http://" + s.listener.Addr().String()
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	cookie := "contiv-ui-" + port + "=" + s.secret
	post := func(body string, header map[string]string) (int, string) {
		req, _ := http.NewRequest("POST", base+"/api/trace", strings.NewReader(body))
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	own := map[string]string{"Cookie": cookie, "Origin": base, "Content-Type": "application/json"}
	with := func(name, value string) map[string]string {
		out := map[string]string{}
		for k, v := range own {
			out[k] = v
		}
		out[name] = value
		return out
	}
	good := `{"from": "a", "to": "svc/db", "port": 5432}`
	for _, tc := range []struct {
		name   string
		body   string
		header map[string]string
		status int
		text   string
	}{
		{"of the page", good, own, 200, "yes"},
		{"of another site", good, with("Origin", "http://attacker.example"), 403, "other sites"},
		{"of another port", good, with("Origin", "http://127.0.0.1:1"), 403, "other sites"},
		{"without origin", good, with("Origin", ""), 403, "other sites"},
		{"as a form", good, with("Content-Type", "text/plain"), 415, "application/json"},
		{"without key", good, with("Cookie", ""), 403, "needs the address"},
		{"without ends", `{}`, own, 400, "give a pod"},
		{"with more", `{"from": "a", "to": "b", "write": true}`, own, 400, "write"},
		{"too large", `{"from": "` + strings.Repeat("a", maxBody) + `"}`, own, 400, "body"},
		{"of an unknown pod", `{"from": "nobody", "to": "b"}`, own, 502, "no connected pod"},
	} {
		if status, text := post(tc.body, tc.header); status != tc.status || !strings.Contains(text, tc.text) {
			t.Errorf("%s: status %d, want %d with %q: %s", tc.name, status, tc.status, tc.text, text)
		}
	}
	if got.From != "nobody" {
		t.Errorf("the last trace that was asked for: %+v", got)
	}
}

// TestManyPagesQueryOnce: however many pages are open, the agents are queried once.
func TestManyPagesQueryOnce(t *testing.T) {
	c := newCluster(t, 2)
	f := fleet.New(c.open)
	done := make(chan error)
	for range 50 {
		go func() {
			_, err := f.Overview(t.Context())
			done <- err
		}()
	}
	for range 50 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	c.set(func() {
		if c.queried > 25 {
			t.Errorf("50 pages made %d requests of 2 agents", c.queried)
		}
	})
}
