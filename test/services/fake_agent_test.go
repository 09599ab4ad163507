package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	vppkinds "contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/nat44"
	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/plugins/controller"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy"
	vpppolicy "contiv.dev/vswitch/plugins/policy/renderer/vpp"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/choice"
	"contiv.dev/vswitch/plugins/service/renderer/hostnat"
	nat44renderer "contiv.dev/vswitch/plugins/service/renderer/nat44"
	"contiv.dev/vswitch/plugins/service/renderer/vppsvc"
)

// fakeAgent is the agent in this process, built from the same parts as in cmd/contiv-agent, except for CNI, REST and the kernel: its VPP is
// vppfake, its Linux is fakeKernel.
type fakeAgent struct {
	node *fakeNode
	jobs *lifecycle.Group
	log  *slog.Logger
	conf contivconf.API

	vpp      *conn.Conn
	sched    *scheduler.Scheduler
	ctl      *controller.Controller
	db       *clusterdb.DB
	locals   []*clusterdb.LocalCopy
	nodesync *nodesync.NodeSync
	pods     *podmanager.PodManager
	ipam     *ipam.IPAM
	ipnet    *ipnet.IPNet
	services *service.Plugin
	policies *policy.Plugin // nil: VPP does not have the plugin
	starts   []func()
	rest     fakeREST
}

// fakeREST keeps the handlers that plugins register.
type fakeREST map[string]http.HandlerFunc

func (r fakeREST) RegisterHTTPHandler(path string, handler http.HandlerFunc, _ ...string) {
	r[path] = handler
}

// get returns the answer of a handler.
func (r fakeREST) get(path string) []byte {
	w := httptest.NewRecorder()
	r[path](w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Body.Bytes()
}

// startFakeAgent starts an agent on a node.
func startFakeAgent(n *fakeNode) (*fakeAgent, error) {
	log := slog.New(slog.DiscardHandler)
	a := &fakeAgent{node: n, log: log, jobs: lifecycle.NewGroup(context.Background(), log), rest: fakeREST{}}
	for _, step := range []func() error{
		a.configure, a.makeDataplane, a.makeController, a.makeState, a.makePlugins, a.makeServices, a.start,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("agent of %s: %w", n.name, err), a.stop())
		}
	}
	return a, nil
}

func (a *fakeAgent) configure() (err error) {
	a.conf, err = conffile.Load([]byte(a.node.config), contivconf.Env{NodeName: a.node.name})
	return err
}

func (a *fakeAgent) makeDataplane() error {
	a.vpp = conn.New(conn.Config{
		Socket: a.node.fake.Socket(), Require: vppkinds.Messages(), RequestTimeout: 20 * time.Second, HealthTimeout: 20 * time.Second,
	}, a.log)
	lane := a.vpp.Lane()
	nat := nat44.Settings{ClusterIPs: a.conf.IPAM().ServiceCIDR}
	a.sched = scheduler.New(scheduler.Config{
		Backends: []scheduler.Backend{lane}, Jobs: a.jobs,
		Report: func(_ *txn.Record, err *txn.Error) {
			_ = a.ctl.DataplaneReconnected(err.Error()) // the loop may have ended
		},
	}, a.log)
	return errors.Join(vppkinds.Register(a.sched, vppkinds.Deps{
		Lane: lane, Index: iface.NewIndex(), NAT: nat,
		Interfaces: iface.Deps{LinuxDevice: a.node.kernel.device, Segments: contiv.NewPlugin(a.vpp, a.log).Has},
	}), a.node.kernel.register(a.sched))
}

func (a *fakeAgent) makeController() (err error) {
	a.ctl, err = controller.New(controller.DefaultConfig(), controller.Deps{Log: a.log, Applier: a.sched, Jobs: a.jobs})
	return err
}

// makeState creates the agent's sources of the cluster's state: etcd and the API server, with the node's copies of both.
func (a *fakeAgent) makeState() (err error) {
	state := kube.NewJoin(a.ctl)
	cfg := clusterdb.Config{Endpoints: []string{"unix://" + a.node.net.etcdSocket()}}
	if a.db, err = clusterdb.Open(context.Background(), cfg, a.log); err != nil {
		return err
	}
	local, err := a.openLocal("cluster-state.db")
	if err != nil {
		return err
	}
	watcher := clusterdb.NewWatcher(clusterdb.WatcherDeps{
		DB: a.db, Events: state.NewPart(true), Local: local, Log: a.log, Resources: []clusterdb.Resource{{
			Keyword: "allocatedIDs", KeyPrefix: "allocatedIDs/", New: func() proto.Message { return &vppnode.VppNode{} },
		}},
	})
	a.nodesync = nodesync.NewPlugin(nodesync.UseDeps(func(d *nodesync.Deps) {
		d.Log, d.ServiceLabel, d.EventLoop, d.DB = a.log, a.label(), a.ctl, a.db
	}), nodesync.UseIdentity(local))
	if err := a.nodesync.Init(); err != nil {
		return err
	}
	client, err := kube.NewClient(kube.Config{Kubeconfig: a.node.net.kubeconfig})
	if err != nil {
		return err
	}
	if local, err = a.openLocal("kube.db"); err != nil {
		return err
	}
	source, err := kube.NewSource(kube.Deps{
		Client: client, Events: state.NewPart(false), Local: local, Log: a.log, LocalDelay: 500 * time.Millisecond,
		SaveInterval: 5 * time.Millisecond,
	})
	a.starts = append(a.starts, func() { a.jobs.Go("cluster database", watcher.Run) }, func() { source.Start(a.jobs) })
	return err
}

func (a *fakeAgent) openLocal(name string) (*clusterdb.LocalCopy, error) {
	local, err := clusterdb.OpenLocalCopy(filepath.Join(a.node.dir, name), a.log)
	if err == nil {
		a.locals = append(a.locals, local)
	}
	return local, err
}

func (a *fakeAgent) label() servicelabel.Label { return servicelabel.Label(a.node.name) }

func (a *fakeAgent) deps(name string) infra.PluginDeps {
	return infra.PluginDeps{PluginName: name, Log: a.log}
}

func (a *fakeAgent) makePlugins() (err error) {
	if a.pods, err = podmanager.New(podmanager.Config{StoreDir: filepath.Join(a.node.dir, "pods")}, podmanager.Deps{
		PluginDeps: a.deps("podmanager"), EventLoop: a.ctl,
	}); err != nil {
		return err
	}
	a.ipam = ipam.NewPlugin(ipam.Deps{
		PluginDeps: a.deps("ipam"), ContivConf: a.conf, NodeSync: a.nodesync, PodManager: a.pods,
	})
	a.ipnet = ipnet.NewPlugin(ipnet.UseDeps(func(d *ipnet.Deps) {
		d.Log, d.EventLoop, d.ServiceLabel, d.ContivConf = a.log, a.ctl, a.label(), a.conf
		d.IPAM, d.NodeSync, d.PodManager = a.ipam, a.nodesync, a.pods
		d.LinuxNsPlugin, d.MgmtIPs, d.ServesServices = a.node, a.nodesync, true
		plugin := contiv.NewPlugin(a.vpp, a.log)
		plugin.UseStore(a.locals[0])
		d.VPPPlugin, d.PluginNAT, d.Policy = plugin, true, a.node.plugin
	}))
	if a.node.plugin {
		a.policies = policy.New(policy.Deps{
			PluginDeps: a.deps("policy"), ServiceLabel: a.label(), Problems: problem.NewReporter(nil, a.log), PodManager: a.pods,
			Renderer: vpppolicy.New(vpppolicy.Deps{HasPlugin: a.ipnet.HasPlugin, Interface: a.ipnet.AttachmentInterface, Log: a.log}), Kubernetes: true,
			SetLimit: a.node.setLimit,
		})
	}
	return a.ipnet.Init()
}

func (a *fakeAgent) makeServices() error {
	a.services = service.New(service.Deps{
		PluginDeps: a.deps("service"), ServiceLabel: a.label(), ContivConf: a.conf, IPNet: a.ipnet, NodeSync: a.nodesync,
		PodManager: a.pods, HTTPHandlers: a.rest, Healthy: func() bool { ok, _ := a.ctl.Ready(); return ok },
		HealthCheckAddress: a.node.healthAddr(),
	})
	end := hostnat.Deps{
		Network: a.ipnet, Txn: a.services.Txn(), Families: renderer.FamilyIPv4, Device: ipnet.HostInterconnectTAPinLinuxHostName,
	}
	endOfPlugin := end
	endOfPlugin.Families, endOfPlugin.KeepsClients = renderer.FamilyIPv4|renderer.FamilyIPv6, true
	a.services.RegisterRenderer(choice.New(choice.Deps{
		HasPlugin: a.ipnet.HasPlugin,
		With: []renderer.ServiceRendererAPI{
			vppsvc.New(vppsvc.Deps{Network: a.ipnet, Txn: a.services.Txn()}), hostnat.New(endOfPlugin),
		},
		Without: []renderer.ServiceRendererAPI{
			nat44renderer.New(nat44renderer.Deps{NodeName: a.node.name, Network: a.ipnet, Txn: a.services.Txn(), Log: a.log}), hostnat.New(end),
		},
	}))
	return nil
}

func (a *fakeAgent) start() error {
	a.vpp.OnChange(func(s conn.State) {
		if s.Connected() {
			_ = a.ctl.DataplaneReconnected("VPP") // the loop may have ended
		}
	})
	a.vpp.Start(a.jobs)
	if err := a.sched.Start(); err != nil {
		return err
	}
	handlers := []api.EventHandler{a.nodesync, a.pods, a.ipam, a.ipnet, a.services}
	if a.policies != nil {
		handlers = append(handlers, a.policies)
	}
	if err := a.ctl.Start(handlers...); err != nil {
		return err
	}
	for _, start := range a.starts {
		start()
	}
	return nil
}

// ready returns why the agent is not ready.
func (a *fakeAgent) ready() error {
	if ok, why := a.ctl.Ready(); !ok {
		return errors.New(why)
	}
	if !a.vpp.State().Connected() {
		return errors.New("VPP is not connected")
	}
	for _, s := range a.sched.Status(scheduler.Filter{}) {
		if s.State != scheduler.Configured && s.State != scheduler.Obtained {
			return fmt.Errorf("%s is %s %s (waits for %v)", s.Key, s.State, s.Error, s.Waits)
		}
	}
	return nil
}

// stop ends the agent as kill does, without a message to VPP; all its configuration stays.
func (a *fakeAgent) stop() error {
	var errs []error
	if a.vpp != nil {
		a.vpp.Close()
	}
	if a.ctl != nil {
		errs = append(errs, a.ctl.Close())
	}
	if a.services != nil {
		errs = append(errs, a.services.Close())
	}
	if a.ipnet != nil {
		errs = append(errs, a.ipnet.Close())
	}
	if a.nodesync != nil {
		errs = append(errs, a.nodesync.Close())
	}
	errs = append(errs, a.jobs.Stop(time.Minute))
	if a.db != nil {
		errs = append(errs, a.db.Close())
	}
	for _, local := range a.locals {
		errs = append(errs, local.Close())
	}
	if a.sched != nil {
		a.sched.Close()
	}
	return errors.Join(errs...)
}

// addPod does a CNI ADD.
func (a *fakeAgent) addPod(ctx context.Context, name string) ([]netip.Addr, error) {
	id := podmanager.AttachmentID{ContainerID: a.node.name + "-" + name, IfName: "eth0"}
	ev := podmanager.NewAddPod(&podmanager.Attachment{
		ID: id, Pod: podmanager.PodID{Namespace: "default", Name: name}, Netns: a.node.netns(name),
	})
	if err := a.ctl.PushEvent(ev); err != nil {
		return nil, err
	}
	select {
	case err := <-ev.Result():
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var ips []netip.Addr
	for _, ip := range ev.IPs {
		ips = append(ips, ip.Address.Addr())
	}
	return ips, nil
}

// hostLinks: fakeNode implements ipnet.HostLinks.
var _ ipnet.HostLinks = (*fakeNode)(nil)

// HostIPs implements ipnet.HostLinks.
func (n *fakeNode) HostIPs() ([]net.IP, error) {
	var ips []net.IP
	for _, addr := range n.mgmt {
		ips = append(ips, addr.AsSlice())
	}
	return ips, nil
}

// NIC implements ipnet.HostLinks.
func (n *fakeNode) NIC(name string) (ipnet.NIC, error) { return ipnet.NIC{Name: name}, nil }

// WatchHostIPs implements ipnet.HostLinks: they do not change.
func (n *fakeNode) WatchHostIPs(func()) {}
