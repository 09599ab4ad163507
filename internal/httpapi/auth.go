package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"contiv.dev/vswitch/internal/rest"
)

func isProbe(r *http.Request) bool {
	return r.URL.Path == rest.LivenessPath || r.URL.Path == rest.ReadinessPath
}

// looks reports whether the request changes nothing.
func looks(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// isPublic reports whether the request needs no token when none is configured: every process of the node, of any user, can reach a loopback
// address, and the rest of the API is about other pods. The answers are short.
func isPublic(r *http.Request) bool {
	return looks(r) && (isProbe(r) || r.URL.Path == rest.MetricsPath || r.URL.Path == rest.IPAMPath)
}

// trustedKey marks requests of trusted callers.
type trustedKey struct{}

// trusted reports whether the caller may change things: it connected by the unix socket, or has sent the token.
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

// authenticate requires a token when one is configured, and serves only public paths when none is. A caller that sends the read-only
// token is not trusted, and so may only read. If both tokens are the same, which New rejects but a replaced file can cause, the token is
// read-only.
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
			rest.WriteError(w, http.StatusUnauthorized, errors.New("missing or wrong bearer token"))
		}
	})
}

// publicOnly serves only public paths, for a loopback address without a token.
func (s *Server) publicOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPublic(r) {
			next.ServeHTTP(w, r)
			return
		}
		rest.WriteError(w, http.StatusForbidden, fmt.Errorf("%s %s is only for root, on the unix socket %s (contiv-netctl, or curl "+
			"--unix-socket), or with a token where %s is set; public here are GET %s, %s, %s and %s", r.Method, r.URL.Path,
			s.cfg.Socket, flagToken, rest.LivenessPath, rest.ReadinessPath, rest.MetricsPath, rest.IPAMPath))
	})
}

// is reports whether got is this token; false if no token is configured.
func (t *tokenFile) is(got string) bool { return t != nil && sameToken(got, t.current()) }

// sameToken takes the same time for every token that a caller sends, of any length.
func sameToken(got, want string) bool {
	g, w := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(g[:], w[:]) == 1
}

// statusOnly sends a probe the status, without the reason, which names addresses and files.
type statusOnly struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
