package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/version"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/statscollector"
)

// diagOptions are for whoever looks for faults.
type diagOptions struct {
	cliWrite bool
	caFile   string
}

func (o *diagOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.cliWrite, "vpp-cli-write", false, "authorised callers of the REST API may change VPP through its command line")
	f.StringVar(&o.caFile, "http-ca", "", "CA certificate by which contiv-netctl on this node verifies the agents of other nodes "+
		"(default: --http-cert)")
}

// registerDiagnosis serves contiv-netctl and makes the metrics of interfaces.
func (a *agent) registerDiagnosis() error {
	a.stats = statscollector.NewPlugin(a.opts.nodeName, a.kube != nil, a.http, a.logger("statscollector"))
	build := version.Get()
	deps := diag.Deps{
		Log: a.log.With("component", "diag"), HTTP: a.http, Ready: a.ready, Pods: a.diagPods, Check: a.dataplane.checkAll,
		PodTable: a.conf.Routing().PodVRFID, Configuration: a.configuration,
		Info: diag.AgentInfo{
			Node: a.opts.nodeName, Dataplane: a.opts.dataplane, Version: build.Version, Commit: build.Commit, Go: build.Go, Started: time.Now().UTC().Format(time.RFC3339),
			Transport: string(a.conf.Routing().NodeToNodeTransport), CLIWrite: a.opts.diag.cliWrite,
			Access: diag.Access{
				Address: a.opts.http.Address, TLS: a.opts.http.CertFile != "", CAFile: a.opts.diag.caFile,
				TokenFile: a.opts.http.TokenFile,
			},
		},
	}
	if deps.Info.Access.CAFile == "" {
		deps.Info.Access.CAFile = a.opts.http.CertFile
	}
	if m, ok := a.dataplane.mover.(*vppMover); ok && m.fake == nil {
		deps.CLI = func(ctx context.Context, command string) (string, error) { return vpp.CLI(ctx, m.conn, command) }
		deps.VPP = func(ctx context.Context) *diag.VPPInfo { return a.vppVersion(ctx, m) }
		deps.Interfaces = func() []diag.Interface { return a.vppInterfaces(m) }
		deps.Check = a.checkVPP(vpp.NewTypedRoutes(m.conn))
	}
	if a.path != nil {
		deps.Warnings = a.pathWarnings
	}
	diag.New(deps)
	interfaces := statscollector.NewInterfaces(a.readCounters, statscollector.DefaultMaxPods, a.opts.dataplane == dataplaneVPP,
		a.logger("statscollector"))
	return errors.Join(a.countNAT(), a.registry.Register(interfaces), a.registry.Register(nodeCollector{a.ipam.Usage, a.db.Connected}))
}

// measureProgramming measures how long services take to the dataplane.
func (a *agent) measureProgramming() (func(api.Event, time.Time, time.Time, error), error) {
	p, err := statscollector.NewProgramming(a.registry, time.Now())
	if err != nil {
		return nil, err
	}
	return p.EventHandled, nil
}

// configuration is how this agent was started, for a support bundle.
func (a *agent) configuration() (diag.Configuration, error) {
	c := diag.Configuration{Arguments: os.Args[1:], Files: map[string]string{}}
	for name, file := range map[string]string{"contiv.conf": a.opts.config, "controller.conf": a.opts.controllerConfig} {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return c, err
		}
		c.Files[name] = string(text)
	}
	return c, nil
}

// vppVersion says which VPP is connected; nil while there is none.
func (a *agent) vppVersion(ctx context.Context, m *vppMover) *diag.VPPInfo {
	state := m.conn.State()
	if !state.Connected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	plugin, err := m.plugin.Version(ctx)
	if err != nil {
		a.log.Debug("the version of VPP's plugin is unknown", "error", err)
	}
	return &diag.VPPInfo{Version: state.Version, Plugin: plugin}
}

// diagPods are the current attachments.
func (a *agent) diagPods() []diag.Pod {
	devices := map[string]string{}
	if m, ok := a.dataplane.mover.(*linuxMover); ok {
		devices = m.devices()
	}
	var out []diag.Pod
	for _, at := range slices.Backward(a.pods.LocalAttachments()) { // the newest of a pod first
		p := diag.Pod{Namespace: at.Pod.Namespace, Name: at.Pod.Name, Netns: at.Netns,
			Device: devices[at.Pod.Namespace+"/"+at.Pod.Name]}
		for _, prefix := range at.Addresses {
			p.Addresses = append(p.Addresses, prefix.Addr())
		}
		out = append(out, p)
	}
	return out
}

// vppInterfaces are the interfaces of ours that VPP has.
func (a *agent) vppInterfaces(m *vppMover) []diag.Interface {
	var out []diag.Interface
	for name, index := range m.index.Interfaces() {
		i := diag.Interface{Index: index, Logical: name}
		if namespace, pod, ok := a.ipnet.GetPodByIf(name); ok {
			i.Pod = namespace + "/" + pod
		}
		out = append(out, i)
	}
	return out
}

// readCounters are those of all interfaces that are ours.
func (a *agent) readCounters() ([]statscollector.Counters, error) {
	m, ok := a.dataplane.mover.(*vppMover)
	if !ok {
		return a.kernelCounters()
	}
	if m.fake != nil {
		return nil, nil // no packet moves
	}
	counters, err := vpp.ReadIfCounters(statsSocket(m.socket))
	if err != nil {
		return nil, err
	}
	nat, err := natCounters(statsSocket(m.socket))
	if err != nil {
		return nil, err
	}
	var out []statscollector.Counters
	for _, c := range counters {
		name, ours := m.index.NameByIndex(c.Index)
		if !ours {
			continue
		}
		s := statscollector.Counters{
			Interface: name, RxPackets: c.RxPackets, RxBytes: c.RxBytes, TxPackets: c.TxPackets, TxBytes: c.TxBytes,
			Drops: c.Drops, Errors: c.RxErrors + c.TxErrors, NoBuffer: c.RxNoBuffer + c.RxMiss,
			NATOut2In: nat[c.Index].Out2In, NATIn2Out: nat[c.Index].In2Out, NATDrops: nat[c.Index].Drops,
		}
		s.Namespace, s.Pod, _ = a.ipnet.GetPodByIf(name)
		out = append(out, s)
	}
	return out, nil
}

// devices are the devices of workload endpoints by namespace/name of the pod.
func (m *linuxMover) devices() map[string]string {
	out := map[string]string{}
	dump, err := m.driver.Dump()
	if err != nil {
		return out // stopped, or not started yet
	}
	for _, e := range dump.Endpoints {
		if parts := strings.SplitN(e.ID, "/", 4); len(parts) == 4 { // orchestrator/namespace/pod/sandbox
			out[parts[1]+"/"+parts[2]] = e.Interface
		}
	}
	return out
}

// checkVPP also looks for what the agent must not remove.
func (a *agent) checkVPP(typed *vpp.TypedRoutes) func(context.Context) (diag.CheckReply, error) {
	return func(ctx context.Context) (diag.CheckReply, error) {
		reply, err := a.dataplane.checkAll(ctx)
		if err != nil {
			return reply, err
		}
		list, err := typed.In(ctx, a.conf.Routing().PodVRFID)
		for _, dst := range list {
			reply.TypedRoutes = append(reply.TypedRoutes, dst.String())
		}
		return reply, err
	}
}

// checkAll compares everything that is programmed with what is in the dataplane.
func (d *dataplane) checkAll(ctx context.Context) (diag.CheckReply, error) {
	var keys []string
	for _, v := range d.scheduler.Status(scheduler.Filter{}) {
		keys = append(keys, v.Key)
	}
	reply := diag.CheckReply{Checked: len(keys), Repairs: []diag.Repair{}}
	ops, err := d.scheduler.Check(ctx, keys)
	if err != nil {
		return reply, err
	}
	for _, op := range ops {
		reply.Repairs = append(reply.Repairs, diag.Repair{Key: op.Key, Action: string(op.Action)})
	}
	return reply, nil
}
