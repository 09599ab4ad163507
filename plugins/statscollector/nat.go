package statscollector

import (
	"cmp"
	"context"
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

// NATPath is the path of NAT sessions and translated packets by pod.
const NATPath = "/contiv/v1/nat"

const (
	// maxSessions is the maximum number of sessions that are counted by pod: VPP forwards nothing while it counts (10 ms for this number),
	// and the kernel lists all of them (1 s).
	maxSessions = 200_000
	// natGap is the minimum time between two counts, for all requests together.
	natGap = 5 * time.Second
	// natTimeout bounds a count.
	natTimeout = 5 * time.Second
)

// NATSource is the source of data about NAT.
type NATSource struct {
	// Total returns the number of sessions, at low cost.
	Total func() (int, error)
	// ByAddress counts the sessions by the address behind NAT: the backend of a service, or the sender to the outside; with our VPP plugin
	// by the address that has opened the session.
	ByAddress func(ctx context.Context) (map[netip.Addr]int, error)
	// Pods returns the pods of this node by address.
	Pods func() map[netip.Addr]PodName
	// ByFrontend counts connections to services by frontend; packets is true if it also counts their packets. nil: they are not counted.
	ByFrontend func(ctx context.Context) (list map[Frontend]Flows, packets bool, err error)
}

// PodName is the name of a pod.
type PodName struct{ Namespace, Name string }

// NATSessions holds the sessions of a pod. If Pod is empty, these are the sessions of all pods on other nodes.
type NATSessions struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Sessions  int    `json:"sessions"`
}

// NATReport is the response to GET NATPath.
type NATReport struct {
	Sampled  time.Time     `json:"sampled"`
	TookMs   float64       `json:"tookMs"`
	Sessions []NATSessions `json:"sessions"`
	// Packets are the translated packets of interfaces with NAT; only VPP counts them.
	Packets []NATPackets `json:"packets"`
	Error   string       `json:"error,omitempty"`
}

// NATPackets counts the packets that came from a pod and were translated.
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
	tried time.Time // guarded by mu; the time of the last count, successful or not
	last  NATReport // guarded by mu

	frontsTried time.Time       // guarded by mu
	fronts      FrontendsReport // guarded by mu
}

// NewNAT returns a NAT, and registers its handlers. It counts for metrics at most once per every; if every is zero, it counts only for GET NATPath.
func NewNAT(source NATSource, packets Source, every time.Duration, handlers rest.HTTPHandlers, log *slog.Logger) *NAT {
	n := &NAT{
		source: source, packets: packets, log: log, gap: max(every, natGap), now: time.Now,
		sessions: prometheus.NewDesc("contiv_nat_sessions", "NAT sessions by the pod behind NAT: the backend of a service, or the "+
			"sender of packets to the outside; without a pod: on other nodes.", []string{"namespace", "pod"}, nil),
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

// Collect implements prometheus.Collector. A failed count is not reported: an old number would look like a new one.
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

// sample counts the sessions, unless they were counted less than n.gap ago.
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

// byPod adds up the sessions of a pod's addresses, and those of all addresses that are not on this node. At most DefaultMaxPods pods are
// listed, as for interfaces.
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

// serve serves GET /contiv/v1/nat.
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
	rest.WriteJSON(w, http.StatusOK, report)
}
