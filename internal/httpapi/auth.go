package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// What callers without a token may ask for. The probes are a kubelet's. The others are public on a loopback address that has no
// token: every process of the node reaches it, of whatever user, and the rest of the API is about other pods.
const (
	LivenessPath  = "/liveness"
	ReadinessPath = "/readiness"
	MetricsPath   = "/metrics"
	IPAMPath      = "/contiv/v1/ipam"
)

func isProbe(r *http.Request) bool { return r.URL.Path == LivenessPath || r.URL.Path == ReadinessPath }

// looks reports whether the request changes nothing.
func looks(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// isPublic reports whether the request needs no token where there is none. The answers are short.
func isPublic(r *http.Request) bool {
	return looks(r) && (isProbe(r) || r.URL.Path == MetricsPath || r.URL.Path == IPAMPath)
}

// trustedKey marks requests of trusted callers.
type trustedKey struct{}

// trusted reports whether the caller may change things: it came by the unix socket, or has shown the token.
func trusted(r *http.Request) bool {
	ok, _ := r.Context().Value(trustedKey{}).(bool)
	return ok
}

func trust(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !looks(r) {
			defer keep(r.Context())()
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), trustedKey{}, true)))
	})
}

// authenticate asks for a token when there is one, and serves only what is public when there is none. Who shows the token that only reads
// is not trusted, and so may look. If both are the same, which New refuses and a replaced file may bring about, it only reads.
func (s *Server) authenticate(next http.Handler) http.Handler {
	if s.token == nil && s.readToken == nil {
		return s.publicOnly(next)
	}
	trusted := trust(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		reads, writes := s.readToken.is(got), s.token.is(got)
		switch {
		case shown && reads:
			next.ServeHTTP(w, r)
		case shown && writes:
			trusted.ServeHTTP(w, r)
		case !shown && isProbe(r):
			next.ServeHTTP(&statusOnly{ResponseWriter: w}, r)
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			WriteError(w, http.StatusUnauthorized, errors.New("missing or wrong bearer token"))
		}
	})
}

// publicOnly is for a loopback address without a token.
func (s *Server) publicOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPublic(r) {
			next.ServeHTTP(w, r)
			return
		}
		WriteError(w, http.StatusForbidden, fmt.Errorf("%s %s is only for root, on the unix socket %s (contiv-netctl, or curl "+
			"--unix-socket), or with a token where %s is set; public here are GET %s, %s, %s and %s", r.Method, r.URL.Path,
			s.cfg.Socket, flagToken, LivenessPath, ReadinessPath, MetricsPath, IPAMPath))
	})
}

// is reports whether a caller has shown this token; where there is none, nothing has.
func (t *tokenFile) is(got string) bool { return t != nil && sameToken(got, t.current()) }

// sameToken takes the same time whatever the caller has shown, of whatever length.
func sameToken(got, want string) bool {
	g, w := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(g[:], w[:]) == 1
}

// statusOnly gives a probe the status and keeps the reason, which names addresses and files, to itself.
type statusOnly struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
