package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/feed"
	"contiv.dev/vswitch/dataplane/scheduler"
	windataplane "contiv.dev/vswitch/dataplane/windows"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/wiring"
	"contiv.dev/vswitch/internal/atomicfile"
	"contiv.dev/vswitch/internal/health"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipnet"
	policymodel "contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hnssvc"
	"contiv.dev/vswitch/plugins/service/renderer/hostsvc"
)

// windowsNode holds the interfaces by which the agent programs and observes a Windows node.
type windowsNode struct {
	v1     hns.API
	v2     hcnAPI
	routes wiring.HostRoutes
	host   hostMonitor
}

// hcnAPI is the subset of version 2 of HNS that the agent uses.
type hcnAPI interface {
	wiring.HCN
	windataplane.RemoteSubnets
}

// hnsPlane is the dataplane of Windows' Host Network Service. Networks, endpoints and load balancers have descriptors in the scheduler
// (dataplane/windows/wiring); the in-process driver (dataplane/windows) programs policies and the overlay's routes.
type hnsPlane struct {
	node   windowsNode
	driver *windataplane.WindowsDataplane
	feed   *feed.Feed
	wiring *wiring.Wiring
	health *health.HealthAggregator
}

// refreshHNS is the interval at which the driver compares all rules with HNS.
const refreshHNS = 90 * time.Second

// minWindowsVNI is the least VNI that Windows accepts for an overlay, maxWindowsVNI the greatest that its API can hold.
const minWindowsVNI, maxWindowsVNI = 4096, 65535

// newHNS makes the parts for Windows' network service, and registers their handler; nothing is programmed before open.
func newHNS(a *agent, node windowsNode) (parts, error) {
	routing := a.conf.Routing()
	overlay := routing.NodeToNodeTransport == contivconf.TransportVXLAN
	if overlay && (routing.VxlanVNI < minWindowsVNI || routing.VxlanVNI > maxWindowsVNI) {
		return parts{}, fmt.Errorf("vxlanVNI %d: Windows takes %d to %d; set vxlanVNI in the contiv.conf of all nodes, for example to %d",
			routing.VxlanVNI, minWindowsVNI, maxWindowsVNI, minWindowsVNI)
	}
	if err := checkWindowsIPv6(a.conf.IPAM().PodSubnetCIDR, overlay); err != nil {
		return parts{}, err
	}
	m := &hnsPlane{node: node, health: health.NewHealthAggregator()}
	addresses := func() ([]netip.Addr, error) { return node.host.IPs(context.Background()) }
	config := windataplane.Config{
		IPv6Enabled: hasIPv6(a.conf), HealthAggregator: m.health, Hostname: a.opts.nodeName, VXLANEnabled: overlay,
		Networks: regexp.MustCompile("^" + ipnet.HNSNetwork + "$"), RefreshInterval: refreshHNS,
		NodeExempt: true, TiersForNode: []string{policymodel.TierAdmin, policymodel.TierBaseline},
	}
	if overlay {
		config.VXLANID = int(routing.VxlanVNI)
	}
	var err error
	m.driver, err = windataplane.New(node.v1, config, windataplane.Options{
		Log: a.log.With("component", "windows"), Metrics: a.registry, HCN: node.v2, HostAddresses: addresses,
	})
	if err != nil {
		return parts{}, err
	}
	m.feed = feed.New(feed.Config{
		Driver: observed{m.driver, m}, Log: a.log.With("component", "feed"), LinkKey: ipnet.HNSEndpointKey, NoServices: true, Condition: m.driver.Connected,
	})
	m.wiring = wiring.New(wiring.Deps{
		HCN: node.v2, Routes: node.routes, NodeAddresses: addresses, Network: ipnet.HNSNetwork, Log: a.log.With("component", "hns"),
		Closed: func() ([]hcn.Policy, error) {
			rules, err := windataplane.ClosedRulesOn(node.v1)
			if err != nil {
				return nil, err
			}
			return hcn.ACLPolicies(rules)
		},
		Record: atomicfile.Lines(filepath.Join(a.opts.dataDir, "load-balancers")),
	})
	a.http.RegisterHTTPHandler("/windows/dataplane", m.serveDump)
	return m.parts(a), nil
}

// observed is the driver, and also passes its messages about other nodes to the wiring: load balancers need the nodes' addresses.
type observed struct {
	feed.Driver
	plane *hnsPlane
}

// SendMessage implements feed.Driver.
func (o observed) SendMessage(msg any) error {
	o.plane.wiring.Observe(msg)
	return o.Driver.SendMessage(msg)
}

// parts returns what Windows' network service gives the agent. It has no counters for endpoints and reports no drops, and pods' adapters have
// no names on the host. The endpoint's status lists the parts of a policy that HNS cannot express.
func (m *hnsPlane) parts(a *agent) parts {
	return parts{
		backends: []scheduler.Backend{m.feed, m.wiring}, kinds: m.register,
		wire: func(d *ipnet.Deps) { d.Dataplane = ipnet.DataplaneWindows },
		services: func(p *service.Plugin) []renderer.ServiceRendererAPI {
			return []renderer.ServiceRendererAPI{hnssvc.New(hostsvc.Deps{Txn: p.Txn(), Log: a.logger("service")})}
		},
		policy: policyParts{renderer: a.driverPolicy, notEnforced: func() string { return "" }},
		counts: countParts{interfaces: noCounters},
		open: func() error {
			m.driver.Start()
			return nil
		},
		jobs: []job{{"driver status", func(ctx context.Context) error {
			release := context.AfterFunc(ctx, func() { // reports end with the driver
				if err := m.close(); err != nil {
					a.log.Warn("the Windows driver does not stop", "error", err)
				}
			})
			defer release()
			return m.feed.Run(ctx)
		}}},
		health: healthParts{alive: m.alive},
		close:  m.close,
	}
}

// checkWindowsIPv6 rejects what no version of Windows supports. What this version supports is checked when its network is created.
func checkWindowsIPv6(pods []netip.Prefix, overlay bool) error {
	i := slices.IndexFunc(pods, func(p netip.Prefix) bool { return p.Addr().Is6() })
	switch {
	case i < 0:
		return nil
	case !slices.ContainsFunc(pods, func(p netip.Prefix) bool { return p.Addr().Is4() }):
		return fmt.Errorf("podSubnetCIDR %s: Windows has no networks with IPv6 alone; add an IPv4 network in the contiv.conf of all nodes", pods[i])
	case overlay:
		return fmt.Errorf("podSubnetCIDR %s: Windows has no IPv6 in overlay networks; in the contiv.conf of all nodes, set nodeToNodeTransport to "+
			"nooverlay or remove the IPv6 network", pods[i])
	}
	return nil
}

// hasIPv6 reports whether pods have IPv6 addresses.
func hasIPv6(conf contivconf.API) bool {
	for _, p := range conf.IPAM().PodSubnetCIDR {
		if p.Addr().Is6() {
			return true
		}
	}
	return false
}

// register registers the descriptors.
func (m *hnsPlane) register(s *scheduler.Scheduler) error {
	return errors.Join(wiring.Register(s, m.wiring), feed.Register(s, m.feed))
}

// alive returns why the driver cannot be programmed, or nil.
func (m *hnsPlane) alive() error {
	// Before the driver is in sync, it waits for the first resync, which the controller reports.
	if now := m.health.Summary(); !now.Live || !now.Ready && m.feed.Synced() {
		return errors.New("Windows driver: " + strings.ReplaceAll(now.Detail, "\n", "; "))
	}
	return nil
}

// close closes the agent's side.
func (m *hnsPlane) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), driverStop)
	defer cancel()
	return errors.Join(m.driver.Stop(ctx), m.wiring.Close())
}

// serveDump serves GET /windows/dataplane: the objects that HNS has.
func (m *hnsPlane) serveDump(w http.ResponseWriter, r *http.Request) {
	dump, err := m.wiring.Snapshot(r.Context())
	if err != nil {
		rest.WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, dump)
}
