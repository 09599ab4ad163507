package pathwatch

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/rest"
)

// Path is the REST path of the state.
const Path = "/contiv/v1/datapath"

// Report is the response to GET Path.
type Report struct {
	State
	Repairs []RepairRecord `json:"repairs"` // the last ones
	Paths   []PeerPath     `json:"paths"`   // to the addresses of other nodes that have been probed
}

// RepairRecord is a repair attempt.
type RepairRecord struct {
	At    time.Time `json:"at"`
	What  string    `json:"what"` // a key of a link, or "resync"
	Why   string    `json:"why"`
	Took  string    `json:"took"`
	Error string    `json:"error,omitempty"`
}

// keptRepairs is the number of repairs that are kept.
const keptRepairs = 20

// repairs stores the last repair attempts.
type repairs struct {
	mu   sync.Mutex
	list []RepairRecord // guarded by mu
}

func (r *repairs) add(a action, start time.Time, err error) {
	rec := RepairRecord{At: start, What: what(a), Why: a.Why.String(), Took: time.Since(start).Round(time.Millisecond).String()}
	if err != nil {
		rec.Error = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, rec)
	if len(r.list) > keptRepairs {
		r.list = slices.Delete(r.list, 0, 1)
	}
}

func (r *repairs) all() []RepairRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]RepairRecord{}, r.list...)
}

func what(a action) string {
	if a.Resync {
		return "resync"
	}
	return a.Recreate
}

func (p *Plugin) serve(w http.ResponseWriter, _ *http.Request) {
	rest.WriteJSON(w, http.StatusOK, Report{State: p.State(), Repairs: p.repairs.all(), Paths: p.book.list()})
}

// metrics holds the values for Prometheus.
type metrics struct {
	state   func() State
	probes  *prometheus.CounterVec
	rtt     prometheus.Histogram
	repairs *prometheus.CounterVec
}

var (
	descReady   = prometheus.NewDesc("contiv_datapath_ready", "1 while the data path of this node serves its pods.", nil, nil)
	descProblem = prometheus.NewDesc("contiv_datapath_problem", "1 while this is wrong with the data path.", []string{"cause"}, nil)
	descPeers   = prometheus.NewDesc("contiv_datapath_peer_addresses", "Addresses of other nodes by their state.",
		[]string{"state"}, nil)
)

func newMetrics(reg prometheus.Registerer, state func() State) (*metrics, error) {
	m := &metrics{
		state: state,
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "contiv_datapath_probes_total", Help: "Echo requests to other nodes through the overlay.",
		}, []string{"result"}),
		rtt: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "contiv_datapath_probe_seconds", Help: "Round trip times of echo requests to other nodes through the overlay.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5},
		}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "contiv_datapath_repairs_total", Help: "Attempts to heal the data path.",
		}, []string{"action", "cause", "result"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.probes, m.rtt, m.repairs, m} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// queried counts a probe of a peer.
func (m *metrics) queried(rtt time.Duration) {
	if rtt < 0 {
		m.probes.WithLabelValues("silent").Inc()
		return
	}
	m.probes.WithLabelValues("answered").Inc()
	m.rtt.Observe(rtt.Seconds())
}

func (m *metrics) repaired(a action, err error) {
	action, result := "recreate", "done"
	if a.Resync {
		action = "resync"
	}
	if err != nil {
		result = "failed"
	}
	m.repairs.WithLabelValues(action, string(a.Why.Kind), result).Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	out <- descReady
	out <- descProblem
	out <- descPeers
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	s := m.state()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	truth := map[bool]float64{true: 1}
	gauge(descReady, truth[s.Ready() == nil])
	for _, k := range causeKinds() {
		gauge(descProblem, truth[slices.ContainsFunc(s.Causes, func(c Cause) bool { return c.Kind == k })], string(k))
	}
	gauge(descPeers, float64(s.Peers.Answering), "answering")
	gauge(descPeers, float64(s.Peers.Silent), "silent")
	gauge(descPeers, float64(s.Peers.Unknown), "unknown")
}
