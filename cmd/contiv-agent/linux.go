//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/dataplane/feed"
	"contiv.dev/vswitch/dataplane/links"
	intdataplane "contiv.dev/vswitch/dataplane/linux"
	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/health"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/plugins/policy"
	policymodel "contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostsvc"
)

// linuxPlane is the dataplane of the host's own network stack, programmed by the in-process driver.
type linuxPlane struct {
	driver *intdataplane.InternalDataplane
	feed   *feed.Feed
	health *health.HealthAggregator
	ipv6   bool
	kernel *hostKernel
	// reports: the kernel reports the packets that policies drop.
	reports bool
	writes  atomic.Int64 // the driver's count at the last successful query
}

// linuxNames holds the prefixes of the driver's chains, its metrics and its rules' log messages. Empty ones mean Felix's.
type linuxNames struct{ chains, metrics, logs string }

func linuxNamesOf(o *options) linuxNames {
	if o.linuxNames == linuxNamesFelix {
		return linuxNames{}
	}
	return linuxNames{chains: "contiv-", metrics: "contiv_linux_", logs: "contiv-packet"}
}

// newLinux makes the parts for the host's own stack, and registers their handler; nothing is programmed before open.
func newLinux(a *agent) (parts, error) {
	names := linuxNamesOf(a.opts)
	_, err := os.Stat("/proc/sys/net/ipv6")
	m := &linuxPlane{health: health.NewHealthAggregator(), ipv6: err == nil, kernel: newHostKernel(a.log), reports: a.reportsDenied()}
	m.driver, err = intdataplane.New(intdataplane.Config{
		IPv6Enabled: m.ipv6, HealthAggregator: m.health,
		// Our own rules check a pod's source address, whatever the host's setting.
		IgnoreLooseRPF:                 true,
		IPSetsRefreshInterval:          90 * time.Second,
		RouteRefreshInterval:           90 * time.Second,
		IptablesRefreshInterval:        180 * time.Second,
		IptablesPostWriteCheckInterval: time.Second,
		IptablesLockTimeout:            10 * time.Second,
		RulesConfig:                    linuxRules(a.opts, int(a.conf.Routing().VxlanVNI), m.reports),
	}, intdataplane.Options{Log: a.log.With("component", "linux"), Metrics: a.registry, MetricPrefix: names.metrics,
		NoIPv6Forwarding: !hasIPv6(a.conf)})
	if err != nil {
		return parts{}, fmt.Errorf("Linux driver: %w", err)
	}
	m.feed = feed.New(feed.Config{Driver: m.driver, Log: a.log.With("component", "feed"), LinkKey: ipnet.EndpointLinkKey})
	a.http.RegisterHTTPHandler("/linux/dataplane", m.serveDump)
	return m.parts(a), nil
}

// linuxRules returns the configuration of the driver's packet filter.
func linuxRules(o *options, vni int, reports bool) rules.Config {
	names := linuxNamesOf(o)
	return rules.Config{
		Hostname: o.nodeName, WorkloadIfacePrefixes: []string{ipnet.WorkloadIfPrefix}, Backend: o.filter,
		// Pods can reach their node, as with VPP; the node's own firewall is left to its administrator.
		EndpointToHostAction: "ACCEPT", NodeAndSelfExempt: true, VXLANEnabled: true, VXLANVNI: vni, ReportDenied: reports,
		TiersForNode: []string{policymodel.TierAdmin, policymodel.TierBaseline},
		ChainPrefix:  names.chains, IptablesLogPrefix: names.logs, DisableConntrackInvalid: o.invalidPass,
	}
}

// parts returns what the host's own stack gives the agent.
func (m *linuxPlane) parts(a *agent) parts {
	p := parts{
		backends: []scheduler.Backend{m.feed, m.kernel.backend}, kinds: m.register,
		wire: func(d *ipnet.Deps) { d.Dataplane = ipnet.DataplaneLinux },
		services: func(p *service.Plugin) []renderer.ServiceRendererAPI {
			return []renderer.ServiceRendererAPI{hostsvc.New(hostsvc.Deps{Txn: p.Txn(), Log: a.logger("service")})}
		},
		policy: policyParts{renderer: a.driverPolicy, notEnforced: func() string { return "" }, connections: hostConnections},
		counts: countParts{interfaces: a.linkCounters, translated: trackedBy},
		watch: func(d *pathwatch.Deps) {
			d.Echo, d.Dataplane, d.Table = pathwatch.NewPinger(), &linuxPath{a: a}, tracked{}
		},
		devices: m.devices,
		open:    m.open,
		jobs: []job{{"netlink janitor", m.kernel.janitor.Run}, {"driver status", func(ctx context.Context) error {
			// The status reports end with the driver.
			release := context.AfterFunc(ctx, func() {
				if err := m.stop(); err != nil {
					a.log.Warn("the Linux driver does not stop", "error", err)
				}
			})
			defer release()
			return m.feed.Run(ctx)
		}}},
		collectors: []prometheus.Collector{prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "contiv_linux_writes_total", Help: "Objects (rules, chains, sets, members, routes) written to the kernel.",
		}, m.countWrites), newRuleCollector(a.nodePolicies, kernelRules(m.driver.PolicyCounts))},
		health: healthParts{alive: m.alive},
		close:  m.close,
	}
	if m.reports {
		p.policy.denied = kernelReports{}
	}
	return p
}

// register registers the descriptors.
func (m *linuxPlane) register(s *scheduler.Scheduler) error {
	if err := feed.Register(s, m.feed); err != nil {
		return err
	}
	return links.Register(s, links.Deps{Backend: m.kernel.backend, Janitor: m.kernel.janitor})
}

// hostConnections lists the connections of the agent's own network namespace.
func hostConnections(ctx context.Context) ([]policy.Connection, error) {
	all, err := conntrack.List(ctx, nil, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6)
	out := make([]policy.Connection, len(all))
	for i, f := range all {
		out[i] = policy.Connection{Protocol: f.Proto, Client: f.From, Server: f.Answers}
	}
	return out, err
}

// kernelReports implements policy.Denied.
type kernelReports struct{}

// WatchDenied implements policy.Denied.
func (kernelReports) WatchDenied(ctx context.Context, each func(denied.Flow)) error {
	return intdataplane.WatchDenied(ctx, each)
}

// reportsDenied reports whether the kernel reports the packets that policies drop.
func (a *agent) reportsDenied() bool {
	err := intdataplane.ReportsSupported()
	if err != nil {
		a.log.Warn("packets that network policy denies are not recorded, but policies are enforced; load the kernel module nfnetlink_log", "error", err)
	}
	return err == nil
}

// open starts the driver, which also makes the node a router when its rules are in place.
func (m *linuxPlane) open() error {
	m.driver.Start()
	return nil
}

// alive returns why the driver cannot be programmed, or nil.
func (m *linuxPlane) alive() error {
	// Before the driver is in sync, it waits for the first resync, which the controller reports.
	if now := m.health.Summary(); !now.Live || !now.Ready && m.feed.Synced() {
		return errors.New("Linux driver: " + strings.ReplaceAll(now.Detail, "\n", "; "))
	}
	return nil
}

// close closes the agent's side.
func (m *linuxPlane) close() error {
	defer m.kernel.backend.Close()
	return m.stop()
}

// stop ends the driver. An apply that exceeds driverStop is cut off; the first apply of the next agent completes it.
func (m *linuxPlane) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), driverStop)
	defer cancel()
	return m.driver.Stop(ctx)
}

// countWrites returns the driver's count of writes, or the last count read while the driver is stopped.
func (m *linuxPlane) countWrites() float64 {
	if dump, err := m.driver.Dump(); err == nil {
		m.writes.Store(int64(dump.Writes))
	}
	return float64(m.writes.Load())
}

func (m *linuxPlane) serveDump(w http.ResponseWriter, _ *http.Request) {
	dump, err := m.driver.Dump()
	if err != nil {
		rest.WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, dump)
}
