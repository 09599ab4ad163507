package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"contiv.dev/vswitch/internal/rest"
)

// policy is what the page may load and do: its own files, and requests to this server. Trusted Types disable all ways to convert text to HTML,
// so that a name in the cluster is never executed as code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// keyParameter is the name of the secret in the URL that the terminal shows.
const keyParameter = "key"

// guard decides which requests are answered.
type guard struct {
	secret string
	cookie string // name
	posts  map[string]bool
	next   http.Handler
}

// newSecret returns a secret of 192 random bits.
func newSecret() string {
	b := make([]byte, 24)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// rejection is the status and the error for a request that is not served.
type rejection struct {
	status int
	err    error
}

func reject(status int, format string, args ...any) *rejection {
	return &rejection{status, fmt.Errorf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if no := g.check(r); no != nil {
		if no.status == http.StatusMethodNotAllowed {
			h.Set("Allow", "GET, HEAD")
		}
		rest.WriteError(w, no.status, no.err)
		return
	}
	if key := r.URL.Query().Get(keyParameter); r.URL.Path == "/" && key != "" {
		if !same(key, g.secret) {
			rest.WriteError(w, http.StatusForbidden, errKey)
			return
		}
		// The redirect removes the secret from the address bar, from the history and from what the page could send to other servers.
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if c, err := r.Cookie(g.cookie); err != nil || !same(c.Value, g.secret) {
		rest.WriteError(w, http.StatusForbidden, errKey)
		return
	}
	g.next.ServeHTTP(w, r)
}

var errKey = errors.New("this page needs the address that contiv-netctl ui has printed, with its key: open that one")

// check checks everything except the secret.
func (g *guard) check(r *http.Request) *rejection {
	if !loopbackHost(r.Host) {
		// If an attacker's DNS server resolves a name to 127.0.0.1, the browser takes this server for the attacker's.
		return reject(http.StatusForbidden, "requests with the host name %q are rejected: use 127.0.0.1, [::1] or localhost", r.Host)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); strings.HasPrefix(r.URL.Path, apiPrefix) && site != "" && site != "same-origin" {
		return reject(http.StatusForbidden, "requests of other sites are rejected")
	}
	if path.Clean(r.URL.Path) != r.URL.Path {
		return reject(http.StatusNotFound, "there is no %s", r.URL.Path)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if r.Method != http.MethodPost || !g.posts[r.URL.Path] {
		return reject(http.StatusMethodNotAllowed, "%s is not allowed: this server only reads", r.Method)
	}
	if origin, err := url.Parse(r.Header.Get("Origin")); err != nil || origin.Host != r.Host || origin.Scheme != "http" {
		return reject(http.StatusForbidden, "requests of other sites are rejected")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return reject(http.StatusUnsupportedMediaType, "the body must be application/json")
	}
	return nil
}

// loopbackHost reports whether a Host header names this machine. The port may be any: ssh -L and kubectl port-forward choose their own.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback()
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
