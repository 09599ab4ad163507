//go:build linux

package main

import (
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/nat44"
)

// natOptions holds the limits of VPP's NAT; 0 means VPP's default.
type natOptions struct {
	sessions                uint32
	udp, tcp, opening, icmp time.Duration
	byPod                   time.Duration
}

func (o *natOptions) register(f *pflag.FlagSet) {
	f.Uint32Var(&o.sessions, "nat-sessions", 0, "limit of NAT sessions for each worker of VPP; applied when VPP starts "+
		"(0: VPP's default)")
	f.DurationVar(&o.udp, "nat-udp-timeout", 0, "idle time after which VPP may remove a UDP session (0: VPP's default)")
	f.DurationVar(&o.tcp, "nat-tcp-timeout", 0, "idle time of an established TCP connection (0: VPP's default)")
	// VPP's default of 240 s would break clients that reuse a port: VPP finds the session of an answer by backend, client and port, so a closed
	// connection to a service would take the answers of a new direct connection to the same backend.
	f.DurationVar(&o.opening, "nat-tcp-transitory-timeout", 30*time.Second, "idle time of a TCP connection that opens or closes")
	f.DurationVar(&o.icmp, "nat-icmp-timeout", 0, "idle time of a ping session (0: VPP's default)")
	f.DurationVar(&o.byPod, "nat-sessions-by-pod", 0, "minimum interval between two counts of NAT sessions by pod, for metrics "+
		"(0: no counts). During a count VPP forwards no packets, about 3 ms for 50,000 sessions; the kernel needs about 250 ms of a CPU")
}

func (o *natOptions) settings() nat44.Settings {
	seconds := func(d time.Duration) uint32 { return uint32(d / time.Second) }
	return nat44.Settings{
		Sessions: o.sessions, UDP: seconds(o.udp), TCPEstablished: seconds(o.tcp), TCPTransitory: seconds(o.opening),
		ICMP: seconds(o.icmp),
	}
}

// statsSocket returns VPP's statistics socket, which is beside its API socket.
func statsSocket(apiSocket string) string {
	return filepath.Join(filepath.Dir(apiSocket), "stats.sock")
}

// connectionCollector exports the usage of our plugin's tables.
type connectionCollector struct{ statsSocket string }

var (
	descConnections = prometheus.NewDesc("contiv_vpp_connections", "Connections in the tables of VPP's contiv plugin.", []string{"family"}, nil)
	descConnLimit   = prometheus.NewDesc("contiv_vpp_connections_limit", "Maximum number of connections in the tables, in each family.", nil, nil)
	descConnRefused = prometheus.NewDesc("contiv_vpp_connections_refused_total",
		"Packets dropped because there was no room for a connection: in the table, or within the limit of the sender.", []string{"limit"}, nil)
)

// Describe implements prometheus.Collector.
func (c connectionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descConnections
	out <- descConnLimit
	out <- descConnRefused
}

// Collect implements prometheus.Collector. While VPP is not connected, or without our plugin, it exports nothing.
func (c connectionCollector) Collect(out chan<- prometheus.Metric) {
	counters, err := vpp.ReadPathCounters(c.statsSocket)
	if err != nil || counters.Connections == nil {
		return
	}
	n := counters.Connections
	put := func(d *prometheus.Desc, t prometheus.ValueType, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, t, float64(v), labels...)
	}
	put(descConnections, prometheus.GaugeValue, n.IPv4, "IPv4")
	put(descConnections, prometheus.GaugeValue, n.IPv6, "IPv6")
	put(descConnLimit, prometheus.GaugeValue, n.Max)
	put(descConnRefused, prometheus.CounterValue, n.TableRefused, "table")
	put(descConnRefused, prometheus.CounterValue, n.EndpointRefused, "endpoint")
}

// natCollector exports the number of NAT sessions.
type natCollector struct{ sessions *nat44.Sessions }

var (
	descNATSessions = prometheus.NewDesc("contiv_vpp_nat_sessions", "NAT sessions of VPP, of all its workers.", nil, nil)
	descNATLimit    = prometheus.NewDesc("contiv_vpp_nat_sessions_limit", "NAT sessions that each worker of VPP may have.",
		nil, nil)
)

// Describe implements prometheus.Collector.
func (c natCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descNATSessions
	out <- descNATLimit
}

// Collect implements prometheus.Collector.
func (c natCollector) Collect(out chan<- prometheus.Metric) {
	used, limit := c.sessions.Counts()
	out <- prometheus.MustNewConstMetric(descNATSessions, prometheus.GaugeValue, float64(used))
	out <- prometheus.MustNewConstMetric(descNATLimit, prometheus.GaugeValue, float64(limit))
}
