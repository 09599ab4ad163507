package health

import (
	"io"
	"net/http"
)

// Handler answers GET and HEAD on /liveness and /readiness: 200 if true, 503 if false, with the parts' details as plain
// text.
func (a *HealthAggregator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /liveness", func(w http.ResponseWriter, _ *http.Request) {
		sum := a.Summary()
		answer(w, sum.Live, sum.Detail)
	})
	mux.HandleFunc("GET /readiness", func(w http.ResponseWriter, _ *http.Request) {
		sum := a.Summary()
		answer(w, sum.Ready, sum.Detail)
	})
	return mux
}

func answer(w http.ResponseWriter, yes bool, detail string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !yes {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// The prober may have disconnected.
	_, _ = io.WriteString(w, detail+"\n")
}
