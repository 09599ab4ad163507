package statscollector

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// DefaultMaxPods is larger than the usual maximum number of pods on a Kubernetes node.
const DefaultMaxPods = 512

// otherPods is the name for all pods beyond the limit.
const otherPods = "(other)"

// Counters holds the counters of one interface, from the view of the dataplane: received packets were sent by the pod.
type Counters struct {
	// Namespace and Pod are empty for an interface that belongs to no pod; then Interface is its name.
	Namespace, Pod, Interface string
	RxPackets, RxBytes        uint64
	TxPackets, TxBytes        uint64
	Drops, NoBuffer           uint64
	RxErrors, TxErrors        uint64
	// Missed counts packets for which the ring to the dataplane had no room, of a NIC, a TAP or an AF_PACKET socket: they were lost before
	// they reached the dataplane.
	Missed uint64
	// NATOut2In, NATIn2Out and NATDrops count packets from the pod that VPP's NAT44 translated: to services, from a backend, and those that
	// it could not translate. The kernel does not count them.
	NATOut2In, NATIn2Out, NATDrops uint64
}

// Source reads the counters of all interfaces that belong to the agent.
type Source func() ([]Counters, error)

// family is one metric.
type family struct {
	desc  *prometheus.Desc
	value func(*Counters) uint64
}

func named(name, help string, value func(*Counters) uint64) family {
	return family{prometheus.NewDesc(name, help, []string{"namespace", "pod", "interface"}, nil), value}
}

// Interfaces is a prometheus.Collector of interface counters.
type Interfaces struct {
	read     Source
	max      int
	log      *slog.Logger
	families []family
	up       *prometheus.Desc
}

// NewInterfaces returns a collector for a source; pods above max are added up. nat is true if the source counts translated packets.
func NewInterfaces(read Source, max int, nat bool, log *slog.Logger) *Interfaces {
	i := &Interfaces{
		read: read, max: max, log: log,
		families: []family{
			named("contiv_interface_receive_bytes_total", "Bytes received from the pod, or by the node's interface.",
				func(c *Counters) uint64 { return c.RxBytes }),
			named("contiv_interface_receive_packets_total", "Packets received from the pod, or by the node's interface.",
				func(c *Counters) uint64 { return c.RxPackets }),
			named("contiv_interface_transmit_bytes_total", "Bytes sent to the pod, or by the node's interface.",
				func(c *Counters) uint64 { return c.TxBytes }),
			named("contiv_interface_transmit_packets_total", "Packets sent to the pod, or by the node's interface.",
				func(c *Counters) uint64 { return c.TxPackets }),
			named("contiv_interface_drops_total", "Packets dropped that came by the interface.", func(c *Counters) uint64 { return c.Drops }),
			named("contiv_interface_receive_errors_total", "Packets received with an error.", func(c *Counters) uint64 { return c.RxErrors }),
			named("contiv_interface_transmit_errors_total", "Packets that could not be sent; on VPP, because the interface or its link is down.", func(c *Counters) uint64 { return c.TxErrors }),
			named("contiv_interface_missed_total", "Packets lost by the interface because its receive ring was full.",
				func(c *Counters) uint64 { return c.Missed }),
			named("contiv_interface_no_buffer_total", "Packets lost because there was no buffer for them.",
				func(c *Counters) uint64 { return c.NoBuffer }),
		},
		up: prometheus.NewDesc("contiv_interface_counters_up", "1 when the interface counters can be read.", nil, nil),
	}
	if nat {
		i.families = append(i.families,
			named("contiv_vpp_nat_to_services_packets_total", "Packets that the pod sent to services and NAT44 translated.",
				func(c *Counters) uint64 { return c.NATOut2In }),
			named("contiv_vpp_nat_as_backend_packets_total", "Packets that the pod sent as the backend of a service and NAT44 "+
				"translated.", func(c *Counters) uint64 { return c.NATIn2Out }),
			named("contiv_vpp_nat_drops_total", "Packets of the pod that NAT44 dropped.",
				func(c *Counters) uint64 { return c.NATDrops }))
	}
	return i
}

// Describe implements prometheus.Collector.
func (i *Interfaces) Describe(out chan<- *prometheus.Desc) {
	for _, f := range i.families {
		out <- f.desc
	}
	out <- i.up
}

// Collect implements prometheus.Collector.
func (i *Interfaces) Collect(out chan<- prometheus.Metric) {
	list, err := i.read()
	up := 1.0
	if err != nil {
		up = 0
		i.log.Debug("interface counters cannot be read", "error", err)
	}
	out <- prometheus.MustNewConstMetric(i.up, prometheus.GaugeValue, up)
	for _, c := range bounded(list, i.max) {
		for _, f := range i.families {
			out <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(f.value(&c)), c.Namespace, c.Pod, c.Interface)
		}
	}
}

// series is the name of a series.
type series struct{ namespace, pod, ifName string }

// bounded adds up counters with the same name: those of the sandboxes of one pod, and of pods beyond the limit (the last ones by name, so
// that the others keep their series). Nodes have few other interfaces.
func bounded(list []Counters, max int) []Counters {
	byName := map[series]*Counters{}
	add := func(name series, c *Counters) {
		sum := byName[name]
		if sum == nil {
			sum = &Counters{Namespace: name.namespace, Pod: name.pod, Interface: name.ifName}
			byName[name] = sum
		}
		sum.RxPackets, sum.RxBytes = sum.RxPackets+c.RxPackets, sum.RxBytes+c.RxBytes
		sum.TxPackets, sum.TxBytes = sum.TxPackets+c.TxPackets, sum.TxBytes+c.TxBytes
		sum.Drops, sum.NoBuffer, sum.Missed = sum.Drops+c.Drops, sum.NoBuffer+c.NoBuffer, sum.Missed+c.Missed
		sum.RxErrors, sum.TxErrors = sum.RxErrors+c.RxErrors, sum.TxErrors+c.TxErrors
		sum.NATOut2In, sum.NATIn2Out, sum.NATDrops = sum.NATOut2In+c.NATOut2In, sum.NATIn2Out+c.NATIn2Out, sum.NATDrops+c.NATDrops
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Counters) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Interface, b.Interface))
	})
	pods := map[series]struct{}{}
	for _, c := range sorted {
		name := series{c.Namespace, c.Pod, ""}
		switch {
		case c.Pod == "":
			name = series{ifName: c.Interface}
		case len(pods) < max:
			pods[name] = struct{}{}
		default:
			if _, ok := pods[name]; !ok {
				name = series{pod: otherPods}
			}
		}
		add(name, &c)
	}
	out := make([]Counters, 0, len(byName))
	for _, name := range slices.SortedFunc(maps.Keys(byName), compareSeries) {
		out = append(out, *byName[name])
	}
	return out
}

func compareSeries(a, b series) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.pod, b.pod), cmp.Compare(a.ifName, b.ifName))
}
