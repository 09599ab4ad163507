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

	"contiv.dev/vswitch/dataplane/hostports"
	"contiv.dev/vswitch/dataplane/links"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/nat44"
	"contiv.dev/vswitch/dataplane/vpp/pool"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/policy"
	policyrenderer "contiv.dev/vswitch/plugins/policy/renderer"
	vpppolicy "contiv.dev/vswitch/plugins/policy/renderer/vpp"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/choice"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
	nat44renderer "contiv.dev/vswitch/plugins/service/renderer/nat44"
	"contiv.dev/vswitch/plugins/service/renderer/vppsvc"
)

// vppMover is VPP, or its fake.
type vppMover struct {
	conn    *conn.Conn
	lane    *conn.Lane
	fake    *vppfake.Fake // nil with a real VPP
	socket  string
	trash   *iface.Trash
	buffers *vpp.Buffers
	pool    *pool.Pool // nil: none
	index   *iface.Index
	leases  *iface.Leases
	nics    *vpp.NICs
	plugin  *contiv.Plugin
	nat     nat44.Settings
	natUsed *nat44.Sessions
	trace   *vpp.PacketTrace // nil: none
	kernel  *hostKernel
	// hostPorts: nil where there is no Kubernetes, or no packets move.
	hostPorts *hostports.Tables
}

func newVPPMover(a *agent) *vppMover {
	m := &vppMover{socket: a.opts.vppSocket, index: iface.NewIndex(), nat: a.opts.nat.settings(), kernel: newHostKernel(a.log)}
	m.nat.ClusterIPs = a.conf.IPAM().ServiceCIDR
	if a.opts.dataplane == dataplaneFake {
		m.socket = filepath.Join(a.opts.runDir, "vpp-fake.sock")
		m.fake = vppfake.New(vppfake.Config{Log: a.log})
	}
	m.conn = conn.New(conn.Config{
		Socket: m.socket, Require: vpp.Messages(), RequestTimeout: vppSilence, HealthTimeout: vppSilence,
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
	m.trash = iface.NewTrash(m.conn, func() time.Duration { return a.dataplane.scheduler.Idle() }, a.log)
	return m
}

// backends implements mover.
func (m *vppMover) backends() []scheduler.Backend {
	return []scheduler.Backend{m.lane, m.kernel.backend}
}

// register implements mover.
func (m *vppMover) register(s *scheduler.Scheduler) error {
	backend := m.kernel.backend
	if err := vpp.Register(s, vpp.Deps{
		Lane: m.lane, Index: m.index, NAT: m.nat,
		Interfaces: iface.Deps{
			LinuxDevice: backend.LinuxDevice, LinuxTap: backend.LinuxTap, LinuxTapMAC: backend.LinuxTapMAC,
			MakeTap: backend.MakeTap, DropTap: backend.DropTap, Isolate: links.Isolate, Share: links.Share,
			Trash: m.trash, Pool: m.vppPool(), Segments: m.plugin.Has,
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

// wire implements mover.
func (m *vppMover) wire(a *agent, d *ipnet.Deps) {
	d.GoVPP, d.VPPIfPlugin, d.VPPNICs, d.ServesServices = m.conn, m.leases, m.nics, a.kube != nil
	d.VPPPlugin, d.PluginNAT, d.Policy, d.HostForwards = m.plugin, true, true, m.hostPorts != nil
	d.HostByIPTables = m.hostPorts != nil && m.hostPorts.ByIPTables()
	m.nics.Remember(a.db.local, a.log)
	m.plugin.Remember(a.db.local)
}

// notEnforced implements mover: VPP enforces policy by our plugin.
func (m *vppMover) notEnforced(a *agent) string {
	if a.ipnet.HasPlugin() {
		return ""
	}
	return "VPP has no contiv plugin: new pods that this policy selects do not start, and pods that run already accept and send what it forbids; " +
		"install contiv_plugin.so with VPP's plugins"
}

// policyRenderer implements mover: our VPP plugin enforces policies. Without it pods that a policy selects do not start.
func (m *vppMover) policyRenderer(a *agent) policyrenderer.Renderer {
	return vpppolicy.New(vpppolicy.Deps{HasPlugin: a.ipnet.HasPlugin, Interface: a.ipnet.AttachmentInterface, Log: a.logger("policy")})
}

// denied implements mover.
func (m *vppMover) denied(*agent) policy.Denied { return contiv.NewDenied(m.conn) }

// connections implements mover: those that the plugin has. It is asked for one request at a time.
func (m *vppMover) connections() policy.Connections {
	list := contiv.NewConnectionList(m.conn)
	return func(ctx context.Context) ([]policy.Connection, error) {
		all, err := list.List(ctx)
		out := make([]policy.Connection, len(all))
		for i, c := range all {
			out[i] = policy.Connection{Protocol: c.Proto, Client: c.Client, Server: c.Backend}
		}
		return out, err
	}
}

// renderServices implements mover: what VPP has, when the event loop resyncs, decides about the renderers. Our plugin serves both
// families, NAT44 serves IPv4. Node ports at the host's own addresses are handed to VPP by the host.
func (m *vppMover) renderServices(a *agent, p *service.Plugin) error {
	with := []renderer.ServiceRendererAPI{vppsvc.New(vppsvc.Deps{Network: a.ipnet, Txn: p.Txn()})}
	without := []renderer.ServiceRendererAPI{nat44renderer.New(nat44renderer.Deps{
		NodeName: a.opts.nodeName, Network: a.ipnet, Txn: p.Txn(), Log: a.log.With("component", "nat44"),
	})}
	if m.hostPorts != nil {
		end := hostend.Deps{
			Network: a.ipnet, Txn: p.Txn(), Families: renderer.FamilyIPv4, Device: ipnet.HostInterconnectTAPinLinuxHostName,
		}
		without = append(without, hostend.New(end))
		end.Families, end.KeepsClients = renderer.FamilyIPv4|renderer.FamilyIPv6, true
		with = append(with, hostend.New(end))
	}
	p.RegisterRenderer(choice.New(choice.Deps{HasPlugin: a.ipnet.HasPlugin, With: with, Without: without}))
	return nil
}

// watchHost removes what agents before this one left on the host, and looks after what this one writes there.
func (m *vppMover) watchHost(a *agent) {
	if m.hostPorts == nil {
		return
	}
	a.jobs.Go("host leftovers", func(ctx context.Context) error {
		if m.hostPorts.ByIPTables() {
			a.log.Warn("the host has no nft: node ports at the host's own addresses are not served, and network policy takes only what the " +
				"host's own processes send for the node's; install nft")
			<-ctx.Done()
			return ctx.Err()
		}
		if err := hostports.Leftovers(ctx, hostports.Command, hostports.IPTablesCommand); err != nil && ctx.Err() == nil {
			a.log.Warn("the host is as an agent before this one left it; is the nft command there?", "error", err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	a.jobs.Go("host node ports", func(ctx context.Context) error {
		return m.hostPorts.Watch(ctx, func(why string) {
			if err := a.controller.DataplaneReconnected(why); err != nil {
				a.log.Warn("repair of the host's node ports not queued", "error", err)
			}
		})
	})
}

// start implements mover: whenever it is a new VPP, or one whose state is in doubt, the controller repairs it.
func (m *vppMover) start(a *agent) error {
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
			a.log.Warn("resync after VPP came back not queued", "error", err)
		}
	})
	a.jobs.Go("netlink janitor", m.kernel.janitor.Run)
	m.conn.Start(a.jobs)
	m.watchHost(a)
	a.jobs.Go("vpp trash", m.trash.Run)
	a.jobs.Go("vpp buffers", m.buffers.Run)
	a.jobs.Go("vpp DHCP leases", m.leases.Run)
	a.jobs.Go("vpp NICs", m.nics.Run)
	a.jobs.Go("vpp plugin", m.plugin.Run)
	a.jobs.Go("vpp memif modes", iface.NewRxModeKeeper(m.conn, m.index, a.log).Run)
	if m.trace != nil {
		a.jobs.Go("vpp packet trace", m.trace.Run)
	}
	if m.pool != nil {
		a.jobs.Go("warm pool", m.pool.Run)
	}
	a.jobs.Go("vpp NAT sessions", m.natUsed.Run)
	if err := a.registry.Register(natCollector{m.natUsed}); err != nil {
		return err
	}
	if err := a.registry.Register(connectionCollector{statsSocket(m.socket)}); err != nil {
		return err
	}
	if err := a.registry.Register(newRuleCollector(a.policies.Policies, vppRules(contiv.NewRuleCounts(m.conn).Read))); err != nil {
		return err
	}
	return a.registry.Register(vppCollector{m.conn, m.buffers, m.pool, a.ipnet.SourcesChecked})
}

// vppSilence is how long VPP may say nothing before it counts as frozen. Its main thread stands still while the kernel makes
// the rings of af_packet interfaces, for seconds on a loaded machine.
const vppSilence = 10 * time.Second

// vppPatience is how long the start-up waits for VPP. Without VPP the agent starts too, but says a lot about what fails.
const vppPatience = 2 * time.Second

// await implements mover.
func (m *vppMover) await(log *slog.Logger) {
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
	case <-time.After(vppPatience):
		log.Warn("VPP is not running yet; starting without it", "error", m.alive())
	}
}

// alive implements mover.
func (m *vppMover) alive() error {
	if s := m.conn.State(); !s.Connected() {
		return fmt.Errorf("VPP at %s is %s: %w", m.socket, s.Status, cause(s.Err))
	}
	return nil
}

// cause is the operating system's word, where it has one, without what was tried; the socket is named beside it.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// roomForPods implements mover.
func (m *vppMover) roomForPods() error { return m.buffers.Low() }

// close implements mover.
func (m *vppMover) close() error {
	defer m.kernel.backend.Close()
	m.conn.Close()
	if m.fake != nil {
		return m.fake.Close()
	}
	return nil
}
