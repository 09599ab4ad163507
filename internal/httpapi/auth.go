package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// Probes are the paths that a kubelet asks for without a token.
const (
	LivenessPath  = "/liveness"
	ReadinessPath = "/readiness"
)

// trustedKey marks requests of trusted callers.
type trustedKey struct{}

// Trusted tells whether the caller may change things: it came by the unix socket, or has shown the token.
func Trusted(r *http.Request) bool {
	ok, _ := r.Context().Value(trustedKey{}).(bool)
	return ok
}

func trust(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), trustedKey{}, true)))
	})
}

// authenticate asks for a token when there is one. Who shows the token that only reads is not trusted, and so may look. If
// both are the same, which New refuses and a replaced file may bring about, it only reads.
func (s *Server) authenticate(next http.Handler) http.Handler {
	if s.token == nil && s.readToken == nil {
		return next
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
		case !shown && (r.URL.Path == LivenessPath || r.URL.Path == ReadinessPath):
			next.ServeHTTP(&statusOnly{ResponseWriter: w}, r)
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			WriteError(w, http.StatusUnauthorized, errors.New("missing or wrong bearer token"))
		}
	})
}

// is tells whether a caller has shown this token; where there is none, nobody has.
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
