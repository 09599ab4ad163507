package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/lifecycle"
)

// driverName is the name of the health reporter and a part of the metrics' names.
const driverName = "int_dataplane"

// Manager handles one kind of object, see dataplane/driver.
type Manager = driver.Manager

// InternalDataplane implements an in-process Felix dataplane driver on the Linux kernel's packet filter. It communicates with
// the datastore-facing part via the Send/RecvMessage methods, which operate on the protobuf-defined API objects. Its methods
// may be called from any goroutine; RegisterManager before Start.
type InternalDataplane struct {
	config  Config
	options Options
	log     *slog.Logger
	jobs    *lifecycle.Group
	front   *driver.Front

	// The fields below are nil if New has failed. Once Start was called, the fields below loop belong to the loop's goroutine.
	loop     *driver.Driver
	parts    parts
	backend  *recorder
	tables   map[table.Family]*Tables
	routes   map[table.Family]routeTable
	families []*familyManagers
	vxlan    *vxlanManager
	combiner *statusCombiner
	services *serviceManager
	flows    *flowSweeper
	recheck  *recheck
	progress progress

	closeBackend, closeRest sync.Once
}

// NewIntDataplaneDriver returns a driver of the process's own network namespace. It reads the kernel's capabilities and writes nothing. If
// the driver cannot work (invalid configuration, no packet filter), its health is neither live nor ready and SendMessage returns the
// reason.
func NewIntDataplaneDriver(config Config) *InternalDataplane {
	log := slog.Default()
	d, err := New(config, Options{Log: log})
	if err != nil {
		d = &InternalDataplane{config: config, log: log, front: driver.NewFront("Linux dataplane", driverName, log, config.HealthAggregator)}
		d.front.Fail(err)
	}
	return d
}

// New returns a driver. The error names the configuration field that is wrong, or the feature that the kernel lacks.
func New(config Config, options Options) (*InternalDataplane, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	orElse(&options.RetryInterval, defaultRetry)
	config, err := config.withDefaults()
	if err == nil {
		err = config.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("configuration of the Linux dataplane: %w", err)
	}
	p, err := realParts(context.Background(), config, options)
	if err != nil {
		return nil, fmt.Errorf("Linux dataplane: %w", err)
	}
	return assemble(config, options, p)
}

// assemble builds a driver from its parts. config is complete and valid.
func assemble(config Config, options Options, p parts) (*InternalDataplane, error) {
	render := config.RuleRendererOverride
	if render == nil {
		config.RulesConfig.SharePolicies = config.RulesConfig.SharePolicies || p.backend.Name() == "nftables"
		var err error
		if render, err = rules.NewRenderer(config.RulesConfig); err != nil {
			return nil, err
		}
	}
	d := &InternalDataplane{config: config, options: options, log: options.Log, parts: p,
		front: driver.NewFront("Linux dataplane", driverName, options.Log, config.HealthAggregator), backend: newRecorder(p.backend),
		routes: map[table.Family]routeTable{}}
	d.jobs = d.front.Jobs
	d.tables = newTables(config, d.backend)
	d.loop = driver.New(d.loopConfig())
	d.front.Loop = d.loop
	d.combiner = newStatusCombiner(d.loop.QueueStatus)
	d.progress.init(options.Metrics, options.MetricPrefix, d.log)
	d.recheck = newRecheck(p.flows, newRuleRecord(config.RulesConfig), d.loop.Inspect, d.log)
	for _, f := range config.families() {
		d.routes[f] = p.routes(f, config.RulesConfig.IsWorkloadIface)
		managers := newFamilyManagers(f, config, render, d)
		managers.programStatic(d.backend, render)
		managers.register(d.loop)
		d.families = append(d.families, managers)
	}
	d.progress.noteEssential(d.families, render)
	d.vxlan = newVXLANManager(config.RulesConfig, p.vxlan, d.log)
	d.loop.RegisterManager(d.vxlan)
	d.flows = newFlowSweeper(p.flows, d.log)
	d.services = newServiceManager(config.families(), d.serviceProgrammer(render), d.flows, d.log)
	d.loop.RegisterManager(d.services)
	d.loop.RegisterManager(&ipvsCheck{enabled: config.RulesConfig.KubeIPVSSupportEnabled,
		restart: config.ConfigChangedRestartCallback, log: d.log})
	d.loop.RegisterManager(routeLinks{d.routes})
	d.loop.RegisterManager(d.recheck)
	d.loop.AddSource("interfaces", p.monitor.Updates())
	if p.removed != nil {
		d.loop.AddSource("removed routes", p.removed.updates)
	}
	return d, nil
}

func (d *InternalDataplane) loopConfig() driver.Config {
	c := d.config
	return driver.Config{
		Name: driverName, Log: d.log, Clock: d.options.Clock, RetryInterval: d.options.RetryInterval,
		StatusReportingInterval: c.StatusReportingInterval, Health: c.HealthAggregator,
		PostInSync: d.inSync, HangAfter: c.DebugSimulateDataplaneHangAfter, Metrics: d.options.Metrics,
		MetricPrefix: d.options.MetricPrefix,
		Refresh: []driver.Refresh{
			{Name: "IP sets", Interval: c.IPSetsRefreshInterval, Fire: func() { d.backend.Resync(true, false) }},
			{Name: "rules", Interval: c.IptablesRefreshInterval, Fire: d.resyncRules},
			{Name: "routes", Interval: c.RouteRefreshInterval, Fire: d.resyncRoutes},
		},
		Gates: []func() bool{d.interfacesKnown},
		Apply: d.apply,
	}
}

// interfacesKnown reports whether the managers have received all interfaces. Only the loop calls it, and only the loop takes updates from
// the monitor: an empty queue means that all were handled.
func (d *InternalDataplane) interfacesKnown() bool {
	return d.parts.monitor.Listed() && len(d.parts.monitor.Updates()) == 0
}

// inSync runs after the first apply.
func (d *InternalDataplane) inSync() {
	if d.parts.ipip != nil {
		d.jobs.Go("IPIP device", d.parts.ipip)
	}
	d.jobs.Go("sweep", func(ctx context.Context) error {
		if err := d.sweepOthers(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("stale rules of the other backend may block traffic; they never allow it", "error", err)
		}
		return nil
	})
	if d.config.PostInSyncCallback != nil {
		d.config.PostInSyncCallback()
	}
}

// sweepOthers removes the objects of backends that are not in use, left from before RulesConfig.Backend was changed. It runs when the rules
// of the current backend are in place. A backend that the machine does not support has no objects.
func (d *InternalDataplane) sweepOthers(ctx context.Context) error {
	var errs []error
	for _, open := range d.parts.others {
		backend, err := open(ctx)
		if err != nil {
			d.log.Debug("a backend that is not selected is not available, so it has nothing to remove", "error", err)
			continue
		}
		result := backend.Apply(ctx)
		errs = append(errs, result.Err, backend.Close())
		if result.Writes > 0 {
			d.log.Info("removed what another backend had left", "backend", backend.Name(), "objects", result.Writes)
		}
	}
	return errors.Join(errs...)
}

// resyncRoutes makes the next apply compare the routes with the kernel, and also the kernel parameters on which routing depends.
func (d *InternalDataplane) resyncRoutes() {
	for _, routes := range d.routes {
		routes.Resync()
	}
	d.vxlan.resync = true
	d.progress.prepared = false
	for _, m := range d.families {
		m.endpoints.resync()
	}
}

func (d *InternalDataplane) resyncRules() {
	d.backend.Resync(false, true)
	if d.services.to != nil {
		d.services.to.Resync()
	}
	if d.parts.passage != nil {
		d.parts.passage.Resync()
	}
}

// serviceProgrammer returns the programmer of services that fits the backend.
func (d *InternalDataplane) serviceProgrammer(render rules.RuleRenderer) serviceProgrammer {
	if d.parts.services != nil {
		return d.parts.services
	}
	return newChainServices(d.config.families(), d.config.RulesConfig, render, d.backend)
}

// RegisterManager adds a manager after the driver's own. It must be called before Start. Tables returns the chains and IP sets that the
// manager may write.
func (d *InternalDataplane) RegisterManager(mgr Manager) {
	d.front.RegisterManager(mgr)
}

// Start starts the loop and the interface monitor, and returns. Nothing is written to the kernel before the message InSync.
func (d *InternalDataplane) Start() {
	if d.front.Failed() == nil {
		if err := d.checkReversePath(); err != nil {
			d.front.Fail(err)
		}
	}
	if !d.front.Starting() {
		return
	}
	d.jobs.Go("interface monitor", d.parts.monitor.Run)
	if d.parts.removed != nil {
		d.jobs.Go("removed routes", d.parts.removed.run)
	}
	if d.parts.flows != nil {
		d.jobs.Go("stale connections", d.flows.run)
		d.jobs.Go("connections and policy", d.recheck.run)
	}
	d.loop.Start()
}

// checkReversePath returns an error if the kernel's settings let workloads use each other's addresses.
func (d *InternalDataplane) checkReversePath() error {
	const path = "net/ipv4/conf/all/rp_filter"
	value, err := d.parts.sysctls.Get(path)
	if err != nil {
		return fmt.Errorf("reverse path check: %w", err)
	}
	if value == "0" || value == "1" {
		return nil
	}
	if d.config.IgnoreLooseRPF {
		d.log.Warn("the kernel's reverse path check is loose; the driver starts, as IgnoreLooseRPF says", "sysctl", path)
		return nil
	}
	return fmt.Errorf("%s is %s (loose), so the kernel does not check where packets come from: set it to 0 or 1, "+
		"or set IgnoreLooseRPF", path, value)
}

// SendMessage passes a message of dataplane/proto to the loop. It blocks while 100 messages are queued. It fails only if the driver does
// not work or was stopped.
func (d *InternalDataplane) SendMessage(msg interface{}) error {
	return d.front.SendMessage(msg)
}

// SendMessages passes several messages that are applied together, as one change; otherwise it is like SendMessage.
func (d *InternalDataplane) SendMessages(msgs ...any) error {
	return d.front.SendMessages(msgs...)
}

// RecvMessage waits for the next status message: *proto.ProcessStatusUpdate, or updates and removals of an endpoint's status. An error
// means that there will be no more messages.
func (d *InternalDataplane) RecvMessage() (interface{}, error) {
	return d.front.RecvMessage()
}

// Flush returns when all messages that were sent before are applied, or returns the error of the apply that failed to do so. A fault of a
// single object is not in the error: it is in the endpoint's status, or in Dump. Before InSync, Flush waits for the first apply.
func (d *InternalDataplane) Flush(ctx context.Context) error {
	return d.front.Flush(ctx)
}

// Refresh makes the driver compare all of the kernel's state with the desired state, and repair it. It does not wait for the result.
func (d *InternalDataplane) Refresh() error {
	return d.front.Refresh()
}

// Expedite suspends the throttle until release is called; for callers that wait for an endpoint to come up.
func (d *InternalDataplane) Expedite() (release func()) {
	return d.front.Expedite()
}

// Stop ends the loop after the running apply, if any. The kernel's state is unchanged: filtering and forwarding continue.
func (d *InternalDataplane) Stop(ctx context.Context) error {
	if d.loop == nil {
		return nil
	}
	err := d.halt(ctx)
	d.closeBackend.Do(func() { err = errors.Join(err, d.closeBackends()) })
	return err
}

// closeBackends releases the resources of everything that writes rules.
func (d *InternalDataplane) closeBackends() error {
	err := errors.Join(d.backend.Close(), d.services.close())
	if d.parts.passage != nil {
		err = errors.Join(err, d.parts.passage.Close())
	}
	return err
}

// halt stops all jobs and releases all resources except the backend.
func (d *InternalDataplane) halt(ctx context.Context) error {
	err := d.front.Halt(ctx)
	d.closeRest.Do(func() {
		for _, routes := range d.routes {
			err = errors.Join(err, routes.Close())
		}
		err = errors.Join(err, d.vxlan.close())
	})
	return err
}
