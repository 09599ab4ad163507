package daemon

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"contiv.dev/vswitch/internal/httpapi"
)

// NewRegistry has the metrics of the process and of Go.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// ServeHealth serves /metrics, and /liveness and /readiness, which say what is wrong.
func ServeHealth(server *httpapi.Server, registry *prometheus.Registry, live, ready func() error) {
	server.RegisterHTTPHandler("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP)
	server.RegisterHTTPHandler(httpapi.LivenessPath, probe(live))
	server.RegisterHTTPHandler(httpapi.ReadinessPath, probe(ready))
}

func probe(problem func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := problem(); err != nil {
			httpapi.WriteError(w, http.StatusServiceUnavailable, err)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // the client is gone
	}
}
