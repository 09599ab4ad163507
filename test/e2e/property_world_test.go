package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer/nat44"
)

// world is the agent in this process, from the event loop to VPP's socket, without CNI, etcd and the kernel.
type world struct {
	dir   string
	fake  *vppfake.Fake
	linux *kernel
	jobs  *lifecycle.Group
	vpp   *conn.Conn
	sched *scheduler.Scheduler
	ctl   *controller.Controller
	pods  *podmanager.PodManager
	ipam  *ipam.IPAM
	kube  *objects

	mu         sync.Mutex
	unverified error // set if updates have another result than a resync; guarded by mu
}

// kernel stands in for Linux: it stores the values that it receives.
type kernel struct {
	values map[string]proto.Message
}

// put registers a kind of values that always succeed.
func put[V proto.Message](s *scheduler.Scheduler, k *kernel, name, prefix string, rank int) error {
	return scheduler.Register(s, scheduler.Descriptor[V]{
		Name: name, Prefix: prefix, Rank: rank,
		Equal: func(_ string, a, b V) bool { return proto.Equal(a, b) },
		Create: func(op *scheduler.Op, key string, v V) {
			k.values[key] = v
			op.Done(nil)
		},
		Delete: func(op *scheduler.Op, key string, _ V) {
			delete(k.values, key)
			op.Done(nil)
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, V)) {
			for key, m := range k.values {
				if v, ok := m.(V); ok {
					emit(key, v)
				}
			}
			op.Done(nil)
		},
	})
}

// oneNode is nodesync for a cluster with one node.
type oneNode struct{}

func (oneNode) GetNodeID() uint32 { return 1 }
func (oneNode) PublishNodeIPs(contivconf.IPsWithNetworks, contivconf.IPVersion) error {
	return nil
}
func (oneNode) GetAllNodes() nodesync.Nodes {
	var ips contivconf.IPsWithNetworks
	for _, text := range []string{"192.168.16.1/24", "fd00:192:168:16::1/112"} {
		p := netip.MustParsePrefix(text)
		ips = append(ips, &contivconf.IPWithNetwork{Address: p.Addr(), Network: p.Masked()})
	}
	return nodesync.Nodes{"node": {ID: 1, Name: "node", VppIPAddresses: ips}}
}

// newWorld starts an agent on a fake, with the attachments that are recorded in dir.
func newWorld(dir string, fake *vppfake.Fake, linux *kernel, useTAP bool, kube *objects) (*world, error) {
	log := slog.New(slog.DiscardHandler)
	w := &world{dir: dir, fake: fake, linux: linux, kube: kube, jobs: lifecycle.NewGroup(context.Background(), log)}
	conf, err := contivconf.New(contivconf.File{
		InterfaceOptions: contivconf.InterfaceOptions{UseTAPInterfaces: &useTAP},
		IPAMConfig:       contivconf.IPAMOptions{PodSubnetCIDR: new("10.1.0.0/16,fd10:1::/48")},
	}, contivconf.Env{NodeName: "node"})
	if err != nil {
		return nil, err
	}
	if err := w.makeDataplane(log); err != nil {
		return nil, err
	}
	cfg := controller.DefaultConfig()
	cfg.DelayAfterErrorHealing, cfg.MaxHealingDelay = controller.Duration(5*time.Millisecond), controller.Duration(40*time.Millisecond)
	cfg.EnableVerification = kube != nil
	if w.ctl, err = controller.New(cfg, controller.Deps{
		Log: log, Applier: w.sched, Jobs: w.jobs, OnVerificationError: w.notVerified,
	}); err != nil {
		return nil, err
	}
	if w.pods, err = podmanager.New(podmanager.Config{StoreDir: filepath.Join(dir, "pods")}, podmanager.Deps{EventLoop: w.ctl}); err != nil {
		return nil, err
	}
	w.ipam = ipam.NewPlugin(ipam.Deps{
		PluginDeps: infra.PluginDeps{PluginName: "ipam"}, ContivConf: conf, NodeSync: oneNode{}, PodManager: w.pods,
	})
	net := ipnet.NewPlugin(ipnet.UseDeps(func(d *ipnet.Deps) {
		d.EventLoop, d.ServiceLabel, d.ContivConf = w.ctl, servicelabel.Label("node"), conf
		d.IPAM, d.NodeSync, d.PodManager = w.ipam, oneNode{}, w.pods
		d.ServesServices = kube != nil
	}))
	if err := net.Init(); err != nil {
		return nil, err
	}
	if kube == nil {
		return w, w.start(api.NewDBResync(), net)
	}
	services := service.New(service.Deps{
		PluginDeps: infra.PluginDeps{PluginName: "service"}, ServiceLabel: servicelabel.Label("node"), ContivConf: conf, IPNet: net,
		NodeSync: oneNode{}, PodManager: w.pods, HealthCheckAddress: "127.0.0.1",
	})
	services.RegisterRenderer(nat44.New(nat44.Deps{NodeName: "node", Network: net, Txn: services.Txn(), Log: log}))
	return w, w.start(kube.snapshot(), net, services)
}

func (w *world) notVerified(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unverified = errors.Join(w.unverified, err)
}

func (w *world) verified() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unverified
}

func (w *world) makeDataplane(log *slog.Logger) error {
	w.vpp = conn.New(conn.Config{
		Socket: w.fake.Socket(), RequestTimeout: 100 * time.Millisecond, HealthInterval: 20 * time.Millisecond,
		HealthTimeout: 100 * time.Millisecond, Reconnect: time.Millisecond, ReconnectMax: 5 * time.Millisecond,
	}, log)
	lane := w.vpp.Lane()
	w.sched = scheduler.New(scheduler.Config{
		Backends: []scheduler.Backend{lane}, Jobs: w.jobs,
		Retry: scheduler.RetryPolicy{First: 2 * time.Millisecond, Max: 20 * time.Millisecond},
		Report: func(*txn.Record, *txn.Error) {
			_ = w.ctl.DataplaneReconnected("gave up") // the loop may have ended
		},
	}, log)
	return errors.Join(
		vpp.Register(w.sched, vpp.Deps{
			Lane: lane, Index: iface.NewIndex(),
			Interfaces: iface.Deps{LinuxDevice: func(logical string) (string, bool) {
				v, ok := w.linux.values[nb.LinuxInterfaceKey(logical)].(*linux_interfaces.Interface)
				return v.GetHostIfName(), ok
			}},
		}),
		put[*linux_interfaces.Interface](w.sched, w.linux, "linux-interface", nb.LinuxInterfacePrefix, scheduler.RankHostLink),
		put[*linux_l3.ARPEntry](w.sched, w.linux, "linux-arp", nb.LinuxARPPrefix, scheduler.RankPodRoute),
		put[*linux_l3.Route](w.sched, w.linux, "linux-route", nb.LinuxRoutePrefix, scheduler.RankPodRoute),
	)
}

func (w *world) start(snapshot *api.DBResync, plugins ...api.EventHandler) error {
	w.vpp.OnChange(func(s conn.State) {
		if s.Connected() {
			_ = w.ctl.DataplaneReconnected("VPP") // the loop may have ended
		}
	})
	w.vpp.Start(w.jobs)
	if err := w.sched.Start(); err != nil {
		return err
	}
	plugins = append([]api.EventHandler{w.pods, w.ipam}, plugins...)
	return errors.Join(w.ctl.Start(plugins...), w.ctl.PushEvent(snapshot))
}

// stop ends the agent; the fake and the records stay.
func (w *world) stop() error {
	err := errors.Join(w.ctl.Close(), w.jobs.Stop(time.Minute))
	w.sched.Close()
	w.vpp.Close()
	return err
}

// firstPID plus the number of the boot is the fake's process ID.
const firstPID = 1000

// settled returns why the node is not in the wanted state, or nil.
func (w *world) settled() error {
	if s := w.vpp.State(); !s.Connected() || int(s.PID) != firstPID+w.fake.Boots() {
		return errors.New("the present VPP is not connected")
	}
	// Events that the connection to VPP has queued come first. This resync itself trusts the known state, so it heals
	// nothing in VPP.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := w.ctl.Resync(ctx, api.UpstreamResync); err != nil {
		return err
	}
	if ok, why := w.ctl.Ready(); !ok {
		return errors.New(why)
	}
	for _, s := range w.sched.Status(scheduler.Filter{}) {
		if s.State != scheduler.Configured && s.State != scheduler.Obtained {
			return fmt.Errorf("%s is %s %s (waits for %v)", s.Key, s.State, s.Error, s.Waits)
		}
	}
	return nil
}

// addresses returns those of all attachments; two must not have the same one.
func (w *world) addresses() (map[podmanager.AttachmentID][]netip.Prefix, error) {
	owner := map[netip.Prefix]podmanager.AttachmentID{}
	all := map[podmanager.AttachmentID][]netip.Prefix{}
	for _, a := range w.pods.LocalAttachments() {
		all[a.ID] = a.Addresses
		for _, ip := range a.Addresses {
			if other, taken := owner[ip]; taken {
				return nil, fmt.Errorf("%s belongs to %s and to %s", ip, other, a.ID)
			}
			owner[ip] = a.ID
		}
	}
	return all, nil
}
