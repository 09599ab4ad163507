package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/httpapi"
	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/internal/version"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/idalloc"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/kubepods"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/proxyhealth"
)

// agent holds the parts of the agent in the order of their construction. Stop closes them in the opposite order.
type agent struct {
	opts     *options
	log      *slog.Logger
	ring     *logs.Ring
	jobs     *lifecycle.Group
	registry *prometheus.Registry
	http     *httpapi.Server
	conf     contivconf.API
	control  controller.Config // controller.conf
	host     *hostLinks
	uplinks  *uplinks // nil: contiv.conf does not select the uplink by its properties
	label    servicelabel.Label

	windows    *windowsNode // an HNS in memory, in tests on Linux; else nil
	dataplane  *dataplane
	db         *clusterDB
	controller *controller.Controller
	nodesync   *nodesync.NodeSync
	pods       *podmanager.PodManager
	idalloc    *idalloc.IDAlloc
	ipam       *ipam.IPAM
	ipnet      *ipnet.IPNet
	services   *service.Plugin
	kubePods   *kubepods.Plugin
	diag       *diag.Service
	path       *pathwatch.Plugin // nil: packets are not watched
	kube       *kubeState        // nil: no Kubernetes
	problems   *problem.Reporter
	statuses   *policyStatuses // nil: this agent writes no conditions of policies
	policies   *policy.Plugin

	proxyHealth *proxyhealth.Server
}

// restSocket is the name of the REST socket in --run-dir.
const restSocket = "rest.sock"

// driverStop is the time limit for a driver's last apply when the agent stops.
const driverStop = 2 * time.Second

// run makes the agent, runs it until ctx ends or a part of it fails, and stops it.
func run(ctx context.Context, opts *options) error {
	if err := opts.complete(); err != nil {
		return err
	}
	log, ring, err := daemon.NewLogger("contiv-agent", opts.logLevel, "node", opts.nodeName, "dataplane", opts.dataplane)
	if err != nil {
		return err
	}
	kube.UseLogger(log)
	// Jobs end when Stop ends them, in order, and not all at once with ctx.
	a := newAgent(ctx, opts, log, ring)
	return daemon.Run(ctx, log, a, a.jobs, func() {
		log.Info("agent started", "node", opts.nodeName, "dataplane", opts.dataplane, "cni", opts.cniSocket,
			"rest", opts.http.Address)
	})
}

func newAgent(ctx context.Context, opts *options, log *slog.Logger, ring *logs.Ring) *agent {
	return &agent{
		opts: opts, log: log, ring: ring, jobs: lifecycle.NewGroup(context.WithoutCancel(ctx), log), registry: daemon.NewRegistry(),
		label: servicelabel.Label(opts.nodeName),
	}
}

// Make calls the constructors of all parts, in order.
func (a *agent) Make(ctx context.Context) (err error) {
	web := a.opts.http
	web.Socket = filepath.Join(a.opts.runDir, restSocket)
	if a.http, err = httpapi.New(web, a.log); err != nil {
		return err
	}
	a.host = newHostLinks(a.newHostMonitor(), a.log)
	if err := errors.Join(a.loadConfig(ctx), a.loadControllerConfig()); err != nil {
		return err
	}
	if a.dataplane, err = newDataplane(ctx, a); err != nil {
		return fmt.Errorf("dataplane: %w", err)
	}
	if err := a.http.Listen(); err != nil {
		return err
	}
	if a.controller, err = a.newController(); err != nil {
		return err
	}
	// The updates of the cluster database and of Kubernetes become one stream of events.
	state := kube.NewJoin(a.controller)
	if a.db, err = a.newDB(context.WithoutCancel(ctx), state.NewPart(true)); err != nil {
		return fmt.Errorf("cluster database: %w", err)
	}
	if a.kube, err = a.newKube(state); err != nil {
		return fmt.Errorf("Kubernetes: %w", err)
	}
	if client := a.kube.writer(); client != nil {
		a.kube.conditions = newNodeConditions(client, a.opts.nodeName, a.logger("conditions"))
	}
	a.newUplinks()
	a.nodesync = nodesync.NewPlugin(nodesync.UseDeps(func(d *nodesync.Deps) {
		d.Log, d.ServiceLabel, d.EventLoop, d.DB = a.logger("nodesync"), a.label, a.controller, a.db
	}), nodesync.UsePreferredID(func() (uint32, bool) { return nodesync.StoredID(a.db.before, a.opts.nodeName) }),
		nodesync.UseIdentity(a.db.local), nodesync.UseHTTP(a.http), nodesync.UseKubernetes(a.kube.current),
		nodesync.UseVersion(version.Get().String()))
	if err := a.nodesync.Init(); err != nil {
		return err
	}
	a.idalloc = idalloc.NewPlugin(idalloc.Deps{
		PluginDeps: a.pluginDeps("idalloc"), Node: a.opts.nodeName, EventLoop: a.controller, DB: a.db, HTTPHandlers: a.http,
	})
	if err := a.idalloc.Init(); err != nil {
		return err
	}
	if a.pods, err = podmanager.New(podmanager.Config{
		Socket: a.opts.cniSocket, StoreDir: filepath.Join(a.opts.runDir, "pods"),
	}, podmanager.Deps{
		PluginDeps: a.pluginDeps("podmanager"), EventLoop: a.controller, HTTPHandlers: a.http, Metrics: a.registry,
	}); err != nil {
		return err
	}
	a.ipam = ipam.NewPlugin(ipam.Deps{
		PluginDeps: a.pluginDeps("ipam"), ContivConf: a.conf, NodeSync: a.nodesync, PodManager: a.pods, HTTPHandlers: a.http,
		Node: a.opts.nodeName,
	})
	a.ipnet = ipnet.NewPlugin(ipnet.UseDeps(func(d *ipnet.Deps) {
		d.Log, d.EventLoop, d.ServiceLabel, d.ContivConf = a.logger("ipnet"), a.controller, a.label, a.conf
		d.IPAM, d.NodeSync, d.PodManager, d.HTTPHandlers = a.ipam, a.nodesync, a.pods, a.http
		d.LinuxNsPlugin, d.MgmtIPs = a.host, a.nodesync
		if a.uplinks != nil {
			d.Uplinks = a.uplinks
		}
		a.dataplane.wire(d)
	}))
	if err := a.ipnet.Init(); err != nil {
		return err
	}
	if err := a.makeServices(ctx); err != nil {
		return err
	}
	return a.makeDiagnosis()
}

// makeServices makes the parts for services and network policy, and those that inform users about them.
func (a *agent) makeServices(ctx context.Context) (err error) {
	if a.proxyHealth, err = a.newProxyHealth(); err != nil {
		return err
	}
	if a.problems, err = a.newProblems(); err != nil {
		return err
	}
	a.statuses = a.newPolicyStatuses()
	if a.policies, err = a.newPolicies(); err != nil {
		return err
	}
	a.services = a.newServices(ctx)
	return nil
}

// makeDiagnosis makes the watch of the data path, and the parts for contiv-netctl.
func (a *agent) makeDiagnosis() (err error) {
	if a.path, err = a.newWatch(); err != nil {
		return fmt.Errorf("watch of the data path: %w", err)
	}
	return a.registerDiagnosis()
}

// handlers returns the plugins in the order in which they handle events.
func (a *agent) handlers() []api.EventHandler {
	list := []api.EventHandler{a.nodesync, a.pods, a.idalloc, a.ipam, a.ipnet, a.services, a.policies, a.kubePods}
	if a.path != nil {
		list = append(list, a.path)
	}
	return list
}

func (a *agent) newController() (*controller.Controller, error) {
	observe, err := a.measureProgramming()
	if err != nil {
		return nil, err
	}
	return controller.New(a.control, controller.Deps{
		Log: a.logger("controller"), Applier: a.dataplane.scheduler, Jobs: a.jobs, HTTP: a.http, Metrics: a.registry,
		OnEventHandled: observe,
	})
}

// Start starts all parts, from the dataplane up; CNI requests are accepted last.
func (a *agent) Start() error {
	a.ring.Register(a.http)
	daemon.ServeHealth(a.http, a.registry, a.alive, a.ready)
	if err := a.dataplane.start(a); err != nil {
		return fmt.Errorf("dataplane: %w", err)
	}
	if err := a.controller.Start(a.handlers()...); err != nil {
		return err
	}
	if await := a.dataplane.health.await; await != nil {
		await(a.log)
	}
	a.db.start(a.jobs)
	a.followEtcd()
	a.kube.start(a.jobs)
	a.jobs.Go("problems", a.problems.Run)
	a.jobs.Go("end of an interrupted trace", a.diag.EndInterrupted)
	if a.statuses != nil {
		a.jobs.Go("policy conditions", a.statuses.status.Run)
	}
	a.jobs.Go("denied flows", a.policies.RunDrops)
	if a.uplinks != nil {
		a.jobs.Go("uplink", a.uplinks.run)
	}
	if err := a.http.Start(a.jobs); err != nil {
		return err
	}
	if a.path != nil {
		a.jobs.Go("data path watch", a.path.Run)
		a.jobs.Go("data path conditions", a.path.Report)
	}
	for name, r := range a.conditionReporters() {
		a.jobs.Go(name, r.Run)
	}
	if a.kube.writer() != nil {
		a.jobs.Go("node conditions", a.kube.conditions.Run)
	}
	a.jobs.Go("health port", a.proxyHealth.Run)
	a.jobs.Go("health of services", a.proxyHealth.Watch)
	checks := a.cniChecks()
	a.jobs.Go("test pods", a.newTestPods(checks).Run)
	a.jobs.Go("cni", func(ctx context.Context) error { return a.pods.Serve(ctx, checks) })
	return nil
}

// Stop ends all parts in the opposite order: first those that accept requests, last those that carry them out. A part that hangs is abandoned,
// so that a stop takes no longer than daemon.StepsLimit; the next agent's first resync repairs its unfinished work.
func (a *agent) Stop() error {
	steps := lifecycle.NewSteps(a.log, daemon.StepsLimit)
	closing := func(name string, made bool, end func() error) {
		if made {
			steps.Do(name, time.Second, func(time.Duration) error { return end() })
		}
	}
	if a.controller != nil {
		steps.Do("controller", time.Duration(a.control.ShutdownDeadline), func(time.Duration) error { return a.controller.Close() })
	}
	closing("services", a.services != nil, func() error { return a.services.Close() })
	closing("ipnet", a.ipnet != nil, func() error { return a.ipnet.Close() })
	closing("idalloc", a.idalloc != nil, func() error { return a.idalloc.Close() })
	closing("nodesync", a.nodesync != nil, func() error { return a.nodesync.Close() })
	steps.Do("jobs", 4*time.Second, a.jobs.Stop)
	closing("Kubernetes", a.kube != nil, a.kube.Close)
	closing("cluster database", a.db != nil, func() error { return a.db.Close() })
	if a.dataplane != nil {
		closing("scheduler", true, func() error { a.dataplane.scheduler.Close(); return nil })
		steps.Do("dataplane", driverStop+time.Second, func(time.Duration) error { return a.dataplane.parts.close() })
		closing("node lock", true, a.dataplane.lock.release)
	}
	return steps.Err()
}

func (a *agent) logger(plugin string) *slog.Logger { return a.log.With("plugin", plugin) }

func (a *agent) pluginDeps(name string) infra.PluginDeps {
	return infra.PluginDeps{PluginName: name, Log: a.logger(name)}
}
