package windataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
)

// driverName is the name of the health reporter, and part of metrics' names.
const driverName = "win_dataplane"

// healthTimeout is how long the loop may go without a report. Calls of HNS are slow if it has many endpoints.
const healthTimeout = 90 * time.Second

// Manager is the logic for one kind of object. OnUpdate is called for each message, in order, and may record the work to do;
// CompleteDeferredWork is called before each write of the batch. See dataplane/driver.
type Manager = driver.Manager

// WindowsDataplane implements an in-process Felix dataplane driver that applies network policy by the Host Network Service (HNS)
// of Windows. It communicates with the datastore-facing part via the Send/RecvMessage methods, which operate on the
// protobuf-defined API objects. Its methods may be called from any goroutine; RegisterManager before Start.
type WindowsDataplane struct {
	config  Config
	options Options
	log     *slog.Logger
	front   *driver.Front

	// The following fields are nil if the driver does not work. The fields below loop belong to the loop's goroutine once Start was called.
	loop      *driver.Driver
	statuses  *statuses
	hosts     *hostWatch
	calls     *hnscall.Caller
	ended     chan any // of *callEnded
	sets      *ipSetsManager
	policies  *policyManager
	endpoints *endpointManager
	vxlan     *vxlanManager // nil: VXLAN is off
	isolated  []error       // errors of the current pass that concern single objects
	reported  string
	waiters   atomic.Int32 // callers of Expedite
}

// NewWinDataplaneDriver makes a driver of this machine, which does nothing before Start. If it cannot work (because the configuration is
// invalid, or there is no HNS), its health is neither live nor ready, and SendMessage returns the reason.
func NewWinDataplaneDriver(hns hns.API, config Config) *WindowsDataplane {
	log := slog.Default()
	d, err := New(hns, config, Options{Log: log})
	if err != nil {
		d = &WindowsDataplane{config: config, log: log, front: driver.NewFront("Windows dataplane", driverName, log, config.HealthAggregator)}
		d.front.Fail(err)
	}
	return d
}

// New makes a driver. The error names the invalid field of the configuration, or what is missing.
func New(api hns.API, config Config, options Options) (*WindowsDataplane, error) {
	options = options.withDefaults()
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("configuration of the Windows dataplane: %w", err)
	}
	if api == nil {
		return nil, errors.New("Windows dataplane: there is no HNS: hns.Open gives this machine's")
	}
	if config.VXLANEnabled && options.HCN == nil {
		if options.HCN, err = hcn.Open(); err != nil {
			return nil, fmt.Errorf("Windows dataplane: VXLANEnabled: %w", err)
		}
	}
	d := &WindowsDataplane{config: config, options: options, log: options.Log,
		front: driver.NewFront("Windows dataplane", driverName, options.Log, config.HealthAggregator)}
	d.loop = driver.New(d.loopConfig())
	d.front.Loop = d.loop
	d.statuses = newStatuses(d.loop.QueueStatus)
	d.ended = make(chan any)
	d.calls = hnscall.New(hnscall.Config{Jobs: d.front.Jobs, Clock: options.Clock, Timeout: options.CallTimeout, MaxGivenUp: maxGivenUp,
		Ended: d.callEnded})
	d.hosts = &hostWatch{query: options.HostAddresses, interval: options.HostInterval, clock: options.Clock, log: d.log,
		updates: make(chan any)}
	d.assemble(api)
	return d, nil
}

// assemble makes the managers: sets, policies, endpoints, VXLAN.
func (d *WindowsDataplane) assemble(api hns.API) {
	c := d.config
	d.sets = newIPSetsManager(c.MaxIPSetSize, d.log)
	d.policies = newPolicyManager(c.families(), d.sets.lookup, d.log)
	d.endpoints = &endpointManager{api: api, calls: d.calls, clock: d.options.Clock, networks: c.Networks, families: c.families(),
		exempt: nodeExempt{c.NodeExempt, c.TiersForNode}, policies: d.policies, log: d.log, progress: d.loop.Progress,
		workloads: map[epstate.WorkloadID]*workload{}, dirty: map[epstate.WorkloadID]bool{}, changed: map[listKey]bool{},
		unknown: map[epstate.WorkloadID]bool{}, conditions: map[any]Condition{}, relist: true}
	d.sets.changed = d.policies.setChanged
	d.policies.changed = d.endpoints.listChanged
	d.loop.RegisterManager(d.sets)
	d.loop.RegisterManager(d.policies)
	d.loop.RegisterManager(isolating{d.endpoints, d})
	if c.VXLANEnabled {
		d.vxlan = &vxlanManager{api: d.options.HCN, calls: d.calls, hostname: c.Hostname, vni: uint16(c.VXLANID),
			port: uint16(c.VXLANPort), networks: c.Networks, log: d.log, progress: d.loop.Progress,
			routes: map[string]*proto.RouteUpdate{}, vteps: map[string]*proto.VXLANTunnelEndpointUpdate{}, dirty: true}
		d.loop.RegisterManager(isolating{d.vxlan, d})
	}
	d.loop.AddSource("host addresses", d.hosts.updates)
	d.loop.AddSource("late calls", d.ended)
}

// maxGivenUp is how many calls of HNS may time out in one pass.
const maxGivenUp = 2

// callEnded is an internal message: a call that had timed out has ended.
type callEnded struct{}

// callEnded wakes the loop.
func (d *WindowsDataplane) callEnded(ctx context.Context) {
	select {
	case d.ended <- &callEnded{}:
	case <-ctx.Done():
	}
}

// isolating collects those of a manager's errors that concern single objects: they neither make the driver unready nor fail a Flush. They are
// logged, shown in the endpoints' status, and retried after RetryInterval.
type isolating struct {
	Manager
	d *WindowsDataplane
}

func (i isolating) String() string { return fmt.Sprintf("%T", i.Manager) }

func (i isolating) CompleteDeferredWork() error {
	err := i.Manager.CompleteDeferredWork()
	if err == nil {
		return nil
	}
	for _, single := range []error{ErrorUnknownEndpoint, ErrorUpdateFailed, ErrUpdatesFailed} {
		if errors.Is(err, single) {
			i.d.isolated = append(i.d.isolated, err)
			return nil
		}
	}
	return err
}

func (d *WindowsDataplane) loopConfig() driver.Config {
	c := d.config
	return driver.Config{
		Name: driverName, Log: d.log, Clock: d.options.Clock, RetryInterval: d.options.RetryInterval, HealthTimeout: healthTimeout,
		StatusReportingInterval: c.StatusReportingInterval, Health: c.HealthAggregator, PostInSync: c.PostInSyncCallback,
		HangAfter: c.DebugSimulateDataplaneHangAfter, Metrics: d.options.Metrics, MetricPrefix: d.options.MetricPrefix,
		Refresh: []driver.Refresh{{Name: "HNS", Interval: c.RefreshInterval, Fire: d.resync}},
		Gates:   []func() bool{d.hostsKnown},
		Apply:   d.apply,
	}
}

// hurriedRetry is the delay until HNS is queried again while a caller waits for an endpoint.
const hurriedRetry = 250 * time.Millisecond

// hostsKnown reports whether the node's own addresses are known. Without them, probes of its pods would fail after the first write.
func (d *WindowsDataplane) hostsKnown() bool { return d.hosts.reported.Load() }

// resync requests a full comparison with HNS.
func (d *WindowsDataplane) resync() {
	d.endpoints.resync()
	if d.vxlan != nil {
		d.vxlan.dirty = true
	}
}

// apply is the end of phase two: it reports the status after managers have written. Registered managers run after the driver's own, so apply
// first writes what they have changed in their deferred work.
func (d *WindowsDataplane) apply(context.Context) driver.ApplyResult {
	if len(d.endpoints.changed) > 0 {
		if err := (isolating{d.endpoints, d}).CompleteDeferredWork(); err != nil {
			return driver.ApplyResult{Err: err}
		}
	}
	d.statuses.report(d.endpoints.conditions)
	err := errors.Join(d.isolated...)
	d.isolated = nil
	d.calls.Pass()
	if err == nil {
		d.reported = ""
		return driver.ApplyResult{}
	}
	if text := err.Error(); text != d.reported {
		d.log.Warn("some objects could not be programmed; all other objects are programmed", "retryIn", d.options.RetryInterval, "error", err)
		d.reported = text
	}
	again := d.options.RetryInterval
	if d.waiters.Load() > 0 {
		again = min(again, hurriedRetry)
	}
	return driver.ApplyResult{Again: again}
}

// RegisterManager registers a manager, which runs after the driver's own. It must be called before Start.
func (d *WindowsDataplane) RegisterManager(mgr Manager) {
	d.front.RegisterManager(mgr)
}

// Start starts the loop and the watch of the node's addresses, and returns. Nothing is written to HNS before the InSync message.
func (d *WindowsDataplane) Start() {
	if !d.front.Starting() {
		return
	}
	d.front.Jobs.Go("host addresses", d.hosts.run)
	d.loop.Start()
}

// SendMessage passes a message of dataplane/proto to the loop. It blocks while 100 messages are waiting. It returns an error only if the
// driver does not work or was stopped.
func (d *WindowsDataplane) SendMessage(msg interface{}) error {
	return d.front.SendMessage(msg)
}

// SendMessages is SendMessage for messages that are applied together, as one change.
func (d *WindowsDataplane) SendMessages(msgs ...any) error {
	return d.front.SendMessages(msgs...)
}

// RecvMessage waits for the next status message: *proto.ProcessStatusUpdate, or updates and removals of an endpoint's status. An error means
// that there will be no more.
func (d *WindowsDataplane) RecvMessage() (interface{}, error) {
	return d.front.RecvMessage()
}

// Flush returns when all previous messages are applied, or with the error of the apply that should have done it. The error does not include
// faults of single objects: those are in the endpoint's Status. Before InSync it waits for the first apply.
func (d *WindowsDataplane) Flush(ctx context.Context) error {
	return d.front.Flush(ctx)
}

// Refresh requests a full comparison of HNS with the desired state, and a repair. It does not wait for it.
func (d *WindowsDataplane) Refresh() error {
	return d.front.Refresh()
}

// Expedite suspends the throttle until release is called, because a caller waits for an endpoint to come up. HNS is queried at once, and then
// again after short intervals, for missing endpoints.
func (d *WindowsDataplane) Expedite() (release func()) {
	if d.loop == nil {
		return func() {}
	}
	d.waiters.Add(1)
	done := d.loop.Expedite()
	if err := d.loop.SendMessage(&lookAgain{}); err != nil {
		d.log.Debug("the driver was stopped", "error", err)
	}
	return sync.OnceFunc(func() {
		d.waiters.Add(-1)
		done()
	})
}

// Status returns a workload's condition as it was last reported, with the reason, for which the status message has no field. It returns false
// for an endpoint without a condition. It never waits.
func (d *WindowsDataplane) Status(id *proto.WorkloadEndpointID) (Condition, bool) {
	if d.statuses == nil {
		return Condition{}, false
	}
	return d.statuses.of(epstate.WorkloadIDOf(id))
}

// Connected reports whether a workload has its rules, even if some of them block more than they specify; otherwise it returns the reason. It
// has the signature of feed.Config.Condition.
func (d *WindowsDataplane) Connected(id *proto.WorkloadEndpointID) (reason string, connected bool) {
	c, _ := d.Status(id)
	return c.Reason, c.Status == epstate.Up || c.Enforced
}

// Stop ends the loop; an apply that is running is completed. HNS is not changed: filtering and forwarding go on. The error names calls of HNS
// that have not ended.
func (d *WindowsDataplane) Stop(ctx context.Context) error {
	return d.front.Halt(ctx)
}

// ClosedRulesOn returns closedRules for an HNS that reports which rules it supports. Windows Server 2019 and later do.
func ClosedRulesOn(api hns.API) ([]hns.ACL, error) {
	features := api.SupportedFeatures()
	if features == (hns.Features{}) {
		return nil, errors.New("HNS does not report the features of its rules: it did not respond, or this Windows is older than Server 2019")
	}
	return closedRules(features), nil
}

// closedRules returns the rules of an endpoint that blocks all packets in both directions. A program that creates an endpoint should create it
// with them, so that it is never open before its policy is known.
func closedRules(features hns.Features) []hns.ACL { return renderer{features}.closed() }
