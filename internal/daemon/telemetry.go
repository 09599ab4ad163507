package daemon

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/internal/version"
)

// NewRegistry returns a registry with the metrics of the process, of Go and of the build.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version.Get().Metric())
	return r
}

// ServeHealth serves /metrics, and /liveness and /readiness, which report what is wrong.
func ServeHealth(server rest.HTTPHandlers, registry *prometheus.Registry, live, ready func() error) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "contiv_ready", Help: "1 while the program is ready, as /readiness says.",
	}, func() float64 {
		if ready() != nil {
			return 0
		}
		return 1
	}))
	metrics := &metrics{next: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), slots: make(chan struct{}, gatherers)}
	server.RegisterHTTPHandler(rest.MetricsPath, metrics.ServeHTTP)
	server.RegisterHTTPHandler(rest.LivenessPath, probe(live))
	server.RegisterHTTPHandler(rest.ReadinessPath, probe(ready))
}

func probe(problem func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := problem(); err != nil {
			rest.WriteError(w, http.StatusServiceUnavailable, err)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // the client may have disconnected
	}
}

const (
	// gatherers is the number of requests that may gather metrics at once: any process on the node may
	// send requests.
	gatherers = 2
	// gatherWait is the time for which another request waits for a free gatherer.
	gatherWait = 5 * time.Second
)

// metrics limits the requests that gather metrics at once, and does not occupy a gatherer for a client
// that reads slowly.
type metrics struct {
	next  http.Handler
	slots chan struct{}
}

// ServeHTTP implements http.Handler.
func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), gatherWait)
	defer cancel()
	select {
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		rest.WriteError(w, http.StatusServiceUnavailable, errors.New("too many concurrent requests for metrics"))
		return
	}
	answer := &gathered{ResponseWriter: w}
	func() {
		defer func() { <-m.slots }()
		m.next.ServeHTTP(answer, r)
	}()
	if answer.status != 0 {
		w.WriteHeader(answer.status)
	}
	_, _ = w.Write(answer.text.Bytes()) // the client may have disconnected
}

// gathered holds an answer until it is complete; only then is its first byte sent.
type gathered struct {
	http.ResponseWriter // for the header
	status              int
	text                bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (g *gathered) WriteHeader(status int) { g.status = status }

// Write implements io.Writer.
func (g *gathered) Write(b []byte) (int, error) { return g.text.Write(b) }
