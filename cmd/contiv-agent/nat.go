package main

import (
	"net/netip"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"contiv.dev/vswitch/dataplane/hostports"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
	"contiv.dev/vswitch/plugins/service/renderer/nat44"
)

// natOptions are the limits of VPP's NAT; zeros are VPP's own.
type natOptions struct {
	sessions                uint32
	udp, tcp, opening, icmp time.Duration
	byPod                   time.Duration
}

func (o *natOptions) register(f *pflag.FlagSet) {
	f.Uint32Var(&o.sessions, "nat-sessions", 0, "limit of NAT sessions for each worker of VPP; applied when VPP starts "+
		"(0: VPP's default)")
	f.DurationVar(&o.udp, "nat-udp-timeout", 0, "idle time after which VPP may remove a UDP session (0: VPP's default)")
	f.DurationVar(&o.tcp, "nat-tcp-timeout", 0, "the same for an established TCP connection")
	// VPP's own 240 s would be in the way of clients that use a port again: an answer is known by backend, client and port, so
	// that a closed connection to a service takes the answers of a new one directly to the same backend.
	f.DurationVar(&o.opening, "nat-tcp-transitory-timeout", 30*time.Second, "the same for a TCP connection that opens or closes")
	f.DurationVar(&o.icmp, "nat-icmp-timeout", 0, "the same for pings")
	f.DurationVar(&o.byPod, "nat-sessions-by-pod", 0, "count NAT sessions by pod for metrics, at most this often (0: not at "+
		"all). VPP forwards nothing meanwhile, about 3 ms for 50,000 sessions; the kernel needs about 250 ms of a CPU")
}

func (o *natOptions) settings() vpp.NATSettings {
	seconds := func(d time.Duration) uint32 { return uint32(d / time.Second) }
	return vpp.NATSettings{
		Sessions: o.sessions, UDP: seconds(o.udp), TCPEstablished: seconds(o.tcp), TCPTransitory: seconds(o.opening),
		ICMP: seconds(o.icmp),
	}
}

// statsSocket is VPP's statistics socket: where its API socket is.
func statsSocket(apiSocket string) string {
	return filepath.Join(filepath.Dir(apiSocket), "stats.sock")
}

// nat44Renderers makes VPP's NAT serve services, and translate what pods send to the outside.
func (a *agent) nat44Renderers(p *service.Plugin, host *hostPorts) []renderer.ServiceRendererAPI {
	deps := nat44.Deps{NodeName: a.opts.nodeName, Network: a.ipnet, Txn: p.Txn(), Log: a.log.With("component", "nat44")}
	if host != nil {
		deps.HostPorts, deps.HostAliases = host, host
	}
	return []renderer.ServiceRendererAPI{nat44.New(deps)}
}

// hostPorts passes on what the host's own stack has to do for services.
type hostPorts struct{ *hostports.Keeper }

// newHostPorts is nil where no services are served, or no packets move.
func (a *agent) newHostPorts() *hostPorts {
	if a.kube == nil || a.opts.dataplane != dataplaneVPP {
		return nil
	}
	k := hostports.New(a.log)
	a.jobs.Go("host node ports", k.Run)
	return &hostPorts{k}
}

// SetNodePorts implements nat44.HostPorts.
func (h *hostPorts) SetNodePorts(tcp, udp []uint16, at []netip.Addr, to netip.Addr) {
	h.setEnd(false, hostend.End{TCP: tcp, UDP: udp, At: at, To: to})
}

// SetAliases implements nat44.HostAliases.
func (h *hostPorts) SetAliases(list []nat44.HostAlias) {
	out := make([]hostend.Alias, 0, len(list))
	for _, a := range list {
		out = append(out, hostend.Alias{At: a.At, UDP: a.Proto == renderer.UDP, To: netip.AddrPortFrom(a.To, a.At.Port())})
	}
	h.setAliases(false, out)
}

func (h *hostPorts) setAliases(ipv6 bool, list []hostend.Alias) {
	wanted := hostports.Aliases{Link: ipnet.HostInterconnectTAPinLinuxHostName}
	for _, a := range list {
		proto := "tcp"
		if a.UDP {
			proto = "udp"
		}
		wanted.Aliases = append(wanted.Aliases, hostports.Alias{At: a.At, Proto: proto, To: a.To})
	}
	h.Keeper.SetAliases(ipv6, wanted)
}

// setNodePorts is setEnd without the alias of the host's own address, which cnat alone needs.
func (h *hostPorts) setNodePorts(ipv6 bool, end hostend.End) {
	end.Own, end.Alias = netip.Addr{}, netip.Addr{}
	h.setEnd(ipv6, end)
}

// withdraw takes back the aliases and places that only NAT44 and cnat need.
func (h *hostPorts) withdraw() {
	if h == nil {
		return
	}
	for _, ipv6 := range []bool{false, true} {
		h.setAliases(ipv6, nil)
		h.setPlaces(ipv6, hostend.Places{})
	}
}

func (h *hostPorts) setEnd(ipv6 bool, end hostend.End) {
	wanted := hostports.Ports{
		At: end.At, To: end.To, Link: ipnet.HostInterconnectTAPinLinuxHostName, Own: end.Own, Alias: end.Alias,
	}
	for _, port := range end.TCP {
		wanted.Ports = append(wanted.Ports, hostports.Port{Proto: "tcp", Port: port})
	}
	for _, port := range end.UDP {
		wanted.Ports = append(wanted.Ports, hostports.Port{Proto: "udp", Port: port})
	}
	h.Set(ipv6, wanted)
}

func (h *hostPorts) setPlaces(ipv6 bool, places hostend.Places) {
	wanted := hostports.Places{Link: ipnet.HostInterconnectTAPinLinuxHostName, Via: places.Via}
	for _, p := range places.List {
		proto := "tcp"
		if p.UDP {
			proto = "udp"
		}
		wanted.Places = append(wanted.Places, hostports.Place{At: p.At, Proto: proto, To: p.To, From: p.From, Own: p.Own})
	}
	h.SetPlaces(ipv6, wanted)
}

// connectionCollector exports how full our plugin's tables are.
type connectionCollector struct{ statsSocket string }

var (
	descConnections = prometheus.NewDesc("contiv_vpp_connections", "Connections that VPP's contiv plugin knows.", []string{"family"}, nil)
	descConnLimit   = prometheus.NewDesc("contiv_vpp_connections_limit", "Connections that it may know, in each family.", nil, nil)
	descConnRefused = prometheus.NewDesc("contiv_vpp_connections_refused_total",
		"Packets dropped because there was no room for a connection: in the table, or within the limit of the sender.", []string{"limit"}, nil)
)

// Describe implements prometheus.Collector.
func (c connectionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- descConnections
	out <- descConnLimit
	out <- descConnRefused
}

// Collect implements prometheus.Collector. A VPP that is away, or without the plugin, has none.
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

// natCollector exports how many NAT sessions there are.
type natCollector struct{ sessions *vpp.NATSessions }

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
