//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/hostports"
	"contiv.dev/vswitch/dataplane/links"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/nat44"
	"contiv.dev/vswitch/dataplane/vpp/pool"
	"contiv.dev/vswitch/dataplane/vpp/traffic"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/plugins/policy"
	policyrenderer "contiv.dev/vswitch/plugins/policy/renderer"
	vpppolicy "contiv.dev/vswitch/plugins/policy/renderer/vpp"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/choice"
	"contiv.dev/vswitch/plugins/service/renderer/hostnat"
	nat44renderer "contiv.dev/vswitch/plugins/service/renderer/nat44"
	"contiv.dev/vswitch/plugins/service/renderer/vppsvc"
	"contiv.dev/vswitch/plugins/statscollector"
)

// vppPlane is the dataplane VPP, or its fake.
type vppPlane struct {
	conn      *conn.Conn
	lane      *conn.Lane
	fake      *vppfake.Fake // nil with a real VPP
	socket    string
	deletions *iface.DeletionQueue
	buffers   *vpp.Buffers
	pool      *pool.Pool // nil: none
	index     *iface.Index
	leases    *iface.Leases
	nics      *vpp.NICs
	plugin    *contiv.Plugin
	nat       nat44.Settings
	natUsed   *nat44.Sessions
	trace     *vpp.PacketTrace // nil: none
	kernel    *hostKernel
	// hostPorts is nil without Kubernetes, and where no packets move.
	hostPorts *hostports.Tables
}

// newVPP makes the parts for VPP, or for its fake; nothing is connected before open. It detects which tool the host uses for packet filtering.
func newVPP(a *agent) parts {
	m := &vppPlane{socket: a.opts.vppSocket, index: iface.NewIndex(), nat: a.opts.nat.settings(), kernel: newHostKernel(a.log)}
	m.nat.ClusterIPs = a.conf.IPAM().ServiceCIDR
	if a.opts.dataplane == dataplaneFake {
		m.socket = filepath.Join(a.opts.runDir, "vpp-fake.sock")
		m.fake = vppfake.New(vppfake.Config{Log: a.log})
	}
	m.conn = conn.New(conn.Config{
		Socket: m.socket, Require: vpp.Messages(), Accept: contiv.Accept, RequestTimeout: vppSilence, HealthTimeout: vppSilence,
	}, a.log)
	m.lane = m.conn.Lane()
	m.pool, m.buffers = newPool(a, m.conn), vpp.NewBuffers(m.conn, a.log)
	m.nics = vpp.NewNICs(m.conn)
	m.plugin = contiv.NewPlugin(m.conn, a.log)
	m.leases = iface.NewLeases(m.conn, m.index, a.log)
	m.natUsed = nat44.NewSessions(statsSocket(m.socket), a.log)
	if m.fake == nil && a.conf.Node().EnablePacketTrace {
		m.trace = vpp.NewPacketTrace(m.conn, a.log)
	}
	if m.fake == nil && a.opts.kubernetes.mode != kubernetesOff {
		m.hostPorts = hostports.New(hostports.Command, hostports.Choose(context.Background(), hostports.Command), a.log)
	}
	m.deletions = iface.NewDeletionQueue(m.conn, func() time.Duration { return a.dataplane.scheduler.Idle() }, a.log)
	return m.parts(a)
}

// parts returns what VPP gives the agent. The fake moves no packets.
func (m *vppPlane) parts(a *agent) parts {
	p := parts{
		backends: []scheduler.Backend{m.lane, m.kernel.backend}, kinds: m.register,
		wire:     func(d *ipnet.Deps) { m.wire(a, d) },
		services: func(p *service.Plugin) []renderer.ServiceRendererAPI { return m.services(a, p) },
		policy: policyParts{
			renderer: func() policyrenderer.Renderer { return m.policies(a) }, notEnforced: a.withoutPlugin,
			denied: traffic.NewDenied(m.conn), connections: m.connections(),
		},
		counts: countParts{interfaces: noCounters},
		open:   func() error { return m.open(a) }, jobs: m.jobs(a),
		collectors: []prometheus.Collector{
			natCollector{m.natUsed}, connectionCollector{statsSocket(m.socket)},
			newRuleCollector(a.nodePolicies, vppRules(traffic.NewRuleCounts(m.conn).Read)),
			vppCollector{m.conn, m.buffers, m.pool, func() error { return a.ipnet.SourcesChecked() }},
		},
		health: healthParts{await: m.await, alive: m.alive, roomForPods: m.buffers.Low},
		close:  m.close,
	}
	if m.fake == nil {
		p.counts = countParts{interfaces: func() ([]statscollector.Counters, error) { return m.counters(a) }, translated: m.translated}
		p.watch = func(d *pathwatch.Deps) { m.watch(a, d) }
		p.diagnose = func(d *diag.Deps) { m.diagnose(a, d) }
	}
	return p
}

// register registers the descriptors.
func (m *vppPlane) register(s *scheduler.Scheduler) error {
	backend := m.kernel.backend
	if err := vpp.Register(s, vpp.Deps{
		Lane: m.lane, Index: m.index, NAT: m.nat,
		Interfaces: iface.Deps{
			LinuxDevice: backend.LinuxDevice, LinuxTap: backend.LinuxTap, LinuxTapMAC: backend.LinuxTapMAC,
			MakeTap: backend.MakeTap, DropTap: backend.DropTap, Isolate: links.Isolate, Share: links.Share,
			DeletionQueue: m.deletions, Pool: m.vppPool(), Segments: m.plugin.Has,
		},
	}); err != nil {
		return err
	}
	if m.hostPorts != nil {
		if err := m.hostPorts.Register(s); err != nil {
			return err
		}
	}
	return links.Register(s, links.Deps{
		Backend: backend, TapDevice: m.index.TapPlace, Janitor: m.kernel.janitor, Pool: m.vethPool(),
	})
}

// wire sets how pods are connected.
func (m *vppPlane) wire(a *agent, d *ipnet.Deps) {
	d.GoVPP, d.VPPIfPlugin, d.VPPNICs, d.ServesServices = m.conn, m.leases, m.nics, a.kube != nil
	d.VPPPlugin, d.PluginNAT, d.Policy, d.HostForwards = m.plugin, true, true, m.hostPorts != nil
	d.HostByIPTables = m.hostPorts != nil && m.hostPorts.ByIPTables()
	m.nics.UseStore(a.db.local, a.log)
	m.plugin.UseStore(a.db.local)
}

// withoutPlugin returns what network policy lacks while VPP does not have our plugin.
func (a *agent) withoutPlugin() string {
	if a.ipnet.HasPlugin() {
		return ""
	}
	return "VPP has no contiv plugin: new pods that this policy selects do not start, and pods that run already accept and send what it forbids; " +
		"install contiv_plugin.so with VPP's plugins"
}

// policies returns the renderer for our VPP plugin, which enforces policies. Without the plugin, pods that a policy selects do not start.
func (m *vppPlane) policies(a *agent) policyrenderer.Renderer {
	return vpppolicy.New(vpppolicy.Deps{HasPlugin: a.ipnet.HasPlugin, Interface: a.ipnet.AttachmentInterface, Log: a.logger("policy")})
}

// connections lists the connections of the plugin. Only one request is sent at a time.
func (m *vppPlane) connections() policy.Connections {
	list := traffic.NewConnectionList(m.conn)
	return func(ctx context.Context) ([]policy.Connection, error) {
		all, err := list.List(ctx)
		out := make([]policy.Connection, len(all))
		for i, c := range all {
			out[i] = policy.Connection{Protocol: c.Proto, Client: c.Client, Server: c.Backend}
		}
		return out, err
	}
}

// services returns the renderers. At each resync of the event loop, the features of the connected VPP decide which renderers are used. Our
// plugin serves both families, NAT44 serves IPv4. The host passes node ports at its own addresses to VPP.
func (m *vppPlane) services(a *agent, p *service.Plugin) []renderer.ServiceRendererAPI {
	with := []renderer.ServiceRendererAPI{vppsvc.New(vppsvc.Deps{Network: a.ipnet, Txn: p.Txn()})}
	without := []renderer.ServiceRendererAPI{nat44renderer.New(nat44renderer.Deps{
		NodeName: a.opts.nodeName, Network: a.ipnet, Txn: p.Txn(), Log: a.log.With("component", "nat44"),
	})}
	if m.hostPorts != nil {
		end := hostnat.Deps{
			Network: a.ipnet, Txn: p.Txn(), Families: renderer.FamilyIPv4, Device: ipnet.HostInterconnectTAPinLinuxHostName,
		}
		without = append(without, hostnat.New(end))
		end.Families, end.KeepsClients = renderer.FamilyIPv4|renderer.FamilyIPv6, true
		with = append(with, hostnat.New(end))
	}
	return []renderer.ServiceRendererAPI{choice.New(choice.Deps{HasPlugin: a.ipnet.HasPlugin, With: with, Without: without})}
}

// jobs returns the jobs that run beside the connection.
func (m *vppPlane) jobs(a *agent) []job {
	list := []job{
		{"netlink janitor", m.kernel.janitor.Run},
		{"vpp deletions", m.deletions.Run},
		{"vpp buffers", m.buffers.Run},
		{"vpp DHCP leases", m.leases.Run},
		{"vpp NICs", m.nics.Run},
		{"vpp plugin", m.plugin.Run},
		{"vpp memif modes", iface.NewRxModeKeeper(m.conn, m.index, a.log).Run},
		{"vpp NAT sessions", m.natUsed.Run},
	}
	if m.trace != nil {
		list = append(list, job{"vpp packet trace", m.trace.Run})
	}
	if m.pool != nil {
		list = append(list, job{"warm pool", m.pool.Run})
	}
	if m.hostPorts != nil {
		list = append(list, job{"host leftovers", func(ctx context.Context) error { return m.cleanHost(ctx, a.log) }},
			job{"host node ports", func(ctx context.Context) error { return m.watchHost(ctx, a) }})
	}
	return list
}

// cleanHost removes what previous agents left on the host.
func (m *vppPlane) cleanHost(ctx context.Context, log *slog.Logger) error {
	if m.hostPorts.ByIPTables() {
		log.Warn("the host has no nft command: node ports at the host's own addresses are not served, and network policy treats only packets " +
			"of the host's own processes as packets of the node; install nft")
		<-ctx.Done()
		return ctx.Err()
	}
	if err := hostports.Leftovers(ctx, hostports.Command, hostports.IPTablesCommand); err != nil && ctx.Err() == nil {
		log.Warn("objects of an earlier agent could not be removed from the host; check that the nft command is installed", "error", err)
	}
	<-ctx.Done()
	return ctx.Err()
}

// watchHost watches the rules that this agent writes on the host.
func (m *vppPlane) watchHost(ctx context.Context, a *agent) error {
	return m.hostPorts.Watch(ctx, func(why string) {
		if err := a.controller.DataplaneReconnected(why); err != nil {
			a.log.Warn("the repair of the host's node ports could not be queued", "error", err)
		}
	})
}

// open connects to VPP. Whenever VPP is a new process, or its state is in doubt, the controller repairs it.
func (m *vppPlane) open(a *agent) error {
	if m.fake != nil {
		if err := m.fake.Listen(m.socket); err != nil {
			return fmt.Errorf("fake: %w", err)
		}
	}
	m.conn.OnChange(func(s conn.State) {
		if !s.Connected() {
			return
		}
		if err := a.controller.DataplaneReconnected(fmt.Sprintf("VPP %s, pid %d", s.Version, s.PID)); err != nil {
			a.log.Warn("the resync after the reconnection to VPP could not be queued", "error", err)
		}
	})
	m.conn.Start(a.jobs)
	return nil
}

// vppSilence is how long VPP may send nothing before it counts as frozen. Its main thread is blocked while the kernel creates the rings of
// af_packet interfaces, for seconds on a loaded machine.
const vppSilence = 10 * time.Second

// vppConnectTimeout is how long the start-up waits for VPP. Without VPP the agent starts too, but logs many failures.
const vppConnectTimeout = 2 * time.Second

// await waits up to vppConnectTimeout for the connection to VPP before the first resync.
func (m *vppPlane) await(log *slog.Logger) {
	connected := make(chan struct{}, 1)
	m.conn.OnChange(func(s conn.State) {
		if s.Connected() {
			select {
			case connected <- struct{}{}:
			default:
			}
		}
	})
	if m.alive() == nil {
		return
	}
	select {
	case <-connected:
	case <-time.After(vppConnectTimeout):
		log.Warn("VPP is not running yet; starting without it", "error", m.alive())
	}
}

// alive returns why VPP cannot be programmed, or nil.
func (m *vppPlane) alive() error {
	if s := m.conn.State(); !s.Connected() {
		return fmt.Errorf("VPP at %s is %s: %w", m.socket, s.Status, cause(s.Err))
	}
	return nil
}

// cause returns the operating system's error, if there is one, without the operation, or why VPP's plugin is rejected; the caller's message
// names the socket.
func cause(err error) error {
	var foreign *contiv.ForeignPluginError
	if errors.As(err, &foreign) {
		return foreign
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// close closes the agent's side.
func (m *vppPlane) close() error {
	defer m.kernel.backend.Close()
	m.conn.Close()
	if m.fake != nil {
		return m.fake.Close()
	}
	return nil
}
