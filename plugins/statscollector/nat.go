package statscollector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/rest"
)

// NATPath lists NAT sessions and translated packets by pod.
const NATPath = "/contiv/v1/nat"

const (
	// maxSessions is up to how many sessions are counted by pod: VPP forwards nothing while it counts (10 ms for so many), and
	// the kernel lists all of them (a second).
	maxSessions = 200_000
	// natGap is the least time between two countings, for all requests together.
	natGap = 5 * time.Second
	// natTimeout bounds a counting.
	natTimeout = 5 * time.Second
)

// NATSource is the source of data about NAT.
type NATSource struct {
	// Total reports how many sessions there are, cheaply.
	Total func() (int, error)
	// ByAddress counts them by who is behind NAT: the backend of a service, or who sends to the outside; with our VPP plugin by who has
	// opened them.
	ByAddress func(ctx context.Context) (map[netip.Addr]int, error)
	// Pods are those of this node by address.
	Pods func() map[netip.Addr]PodName
	// ByFrontend counts connections to services by what their clients use; packets: and their packets. Nil: they are not counted.
	ByFrontend func(ctx context.Context) (list map[Frontend]Flows, packets bool, err error)
}

// PodName names a pod.
type PodName struct{ Namespace, Name string }

// NATSessions are those of a pod; of a pod elsewhere, which is named by nothing, if Pod is empty.
type NATSessions struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Sessions  int    `json:"sessions"`
}

// NATReport is the answer to GET NATPath.
type NATReport struct {
	Sampled  time.Time     `json:"sampled"`
	TookMs   float64       `json:"tookMs"`
	Sessions []NATSessions `json:"sessions"`
	// Packets are those of interfaces with NAT, which only VPP counts.
	Packets []NATPackets `json:"packets"`
	Error   string       `json:"error,omitempty"`
}

// NATPackets are the packets that came from a pod and were translated.
type NATPackets struct {
	Namespace  string `json:"namespace,omitempty"`
	Pod        string `json:"pod,omitempty"`
	Interface  string `json:"interface"`
	ToServices uint64 `json:"toServices"`
	AsBackend  uint64 `json:"asBackend"`
	Drops      uint64 `json:"drops"`
}

// NAT counts NAT sessions by pod, on request and not too often. It is a prometheus.Collector.
type NAT struct {
	source  NATSource
	packets Source
	log     *slog.Logger
	gap     time.Duration
	now     func() time.Time

	sessions, sampled, took *prometheus.Desc

	mu    sync.Mutex
	tried time.Time // guarded by mu: when it was last counted, with or without success
	last  NATReport // guarded by mu

	frontsTried time.Time       // guarded by mu
	fronts      FrontendsReport // guarded by mu
}

// NewNAT counts for metrics at most once in every; zero: not for metrics, only for GET NATPath.
func NewNAT(source NATSource, packets Source, every time.Duration, handlers rest.HTTPHandlers, log *slog.Logger) *NAT {
	n := &NAT{
		source: source, packets: packets, log: log, gap: max(every, natGap), now: time.Now,
		sessions: prometheus.NewDesc("contiv_nat_sessions", "NAT sessions by the pod behind NAT: the backend of a service, or who "+
			"sends to the outside; without a pod: on other nodes.", []string{"namespace", "pod"}, nil),
		sampled: prometheus.NewDesc("contiv_nat_sessions_sampled_timestamp_seconds", "When NAT sessions were last counted by pod "+
			"with success.", nil, nil),
		took: prometheus.NewDesc("contiv_nat_sessions_sample_seconds", "How long that took.", nil, nil),
	}
	handlers.RegisterHTTPHandler(NATPath, n.serve)
	handlers.RegisterHTTPHandler(FrontendsPath, n.serveFrontends)
	return n
}

// Describe implements prometheus.Collector.
func (n *NAT) Describe(out chan<- *prometheus.Desc) {
	out <- n.sessions
	out <- n.sampled
	out <- n.took
}

// Collect implements prometheus.Collector. What cannot be counted is not reported: an old number would look like a new one.
func (n *NAT) Collect(out chan<- prometheus.Metric) {
	r := n.sample(context.Background()) // bounded by natTimeout
	if !r.Sampled.IsZero() {
		out <- prometheus.MustNewConstMetric(n.sampled, prometheus.GaugeValue, seconds(r.Sampled))
	}
	if r.Error != "" {
		n.log.Debug("NAT sessions cannot be counted by pod", "error", r.Error)
		return
	}
	out <- prometheus.MustNewConstMetric(n.took, prometheus.GaugeValue, r.TookMs/1000)
	if !slices.ContainsFunc(r.Sessions, func(s NATSessions) bool { return s.Pod == "" }) {
		out <- prometheus.MustNewConstMetric(n.sessions, prometheus.GaugeValue, 0, "", "")
	}
	for _, s := range r.Sessions {
		out <- prometheus.MustNewConstMetric(n.sessions, prometheus.GaugeValue, float64(s.Sessions), s.Namespace, s.Pod)
	}
}

// sample counts, unless that has been done a moment ago.
func (n *NAT) sample(ctx context.Context) NATReport {
	n.mu.Lock()
	defer n.mu.Unlock()
	start := n.now()
	if start.Sub(n.tried) < n.gap {
		return n.last
	}
	n.tried = start
	ctx, cancel := context.WithTimeout(ctx, natTimeout)
	defer cancel()
	list, err := n.count(ctx)
	if err != nil {
		n.last.Error, n.last.Sessions = err.Error(), []NATSessions{}
		return n.last
	}
	n.last = NATReport{Sampled: start, TookMs: float64(n.now().Sub(start).Microseconds()) / 1000, Sessions: list}
	return n.last
}

func (n *NAT) count(ctx context.Context) ([]NATSessions, error) {
	total, err := n.source.Total()
	if err != nil {
		return nil, err
	}
	if total > maxSessions {
		return nil, fmt.Errorf("there are %d NAT sessions, and more than %d are not counted by pod: it would hold up packets", total,
			maxSessions)
	}
	byAddress, err := n.source.ByAddress(ctx)
	if err != nil {
		return nil, err
	}
	return n.byPod(byAddress), nil
}

// byPod adds up the addresses of a pod, and everybody who is not on this node. There are at most DefaultMaxPods of them, as of
// interfaces.
func (n *NAT) byPod(byAddress map[netip.Addr]int) []NATSessions {
	pods, sum := n.source.Pods(), map[PodName]int{}
	for addr, sessions := range byAddress {
		sum[pods[addr]] += sessions
	}
	out := make([]NATSessions, 0, len(sum))
	for pod, sessions := range sum {
		out = append(out, NATSessions{pod.Namespace, pod.Name, sessions})
	}
	slices.SortFunc(out, func(a, b NATSessions) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	if len(out) > DefaultMaxPods {
		rest := NATSessions{Pod: otherPods}
		for _, s := range out[DefaultMaxPods:] {
			rest.Sessions += s.Sessions
		}
		out = append(out[:DefaultMaxPods:DefaultMaxPods], rest)
	}
	return out
}

// serve: GET /contiv/v1/nat
func (n *NAT) serve(w http.ResponseWriter, r *http.Request) {
	report := n.sample(r.Context())
	report.Packets = []NATPackets{}
	list, err := n.packets()
	for _, c := range list {
		if c.NATOut2In+c.NATIn2Out+c.NATDrops > 0 {
			report.Packets = append(report.Packets, NATPackets{c.Namespace, c.Pod, c.Interface, c.NATOut2In, c.NATIn2Out, c.NATDrops})
		}
	}
	if err != nil {
		report.Error = strings.TrimPrefix(report.Error+"; "+err.Error(), "; ")
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(report); err != nil {
		n.log.Debug("the client went away", "path", NATPath, "error", err)
	}
}
