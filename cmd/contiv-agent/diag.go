package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/version"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/kubepods"
	"contiv.dev/vswitch/plugins/statscollector"
)

// diagOptions holds the flags for troubleshooting.
type diagOptions struct {
	cliWrite bool
	caFile   string
}

func (o *diagOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.cliWrite, "vpp-cli-write", false, "authorised callers of the REST API may change VPP through its command line")
	f.StringVar(&o.caFile, "http-ca", "", "CA certificate by which contiv-netctl on this node verifies the agents of other nodes "+
		"(default: --http-cert)")
}

// registerDiagnosis registers the handlers for contiv-netctl, and the metrics of interfaces.
func (a *agent) registerDiagnosis() error {
	a.kubePods = kubepods.New(a.opts.nodeName, a.kube != nil, a.http)
	build := version.Get()
	deps := diag.Deps{
		Log: a.log.With("component", "diag"), HTTP: a.http, Ready: a.ready, Pods: a.diagPods, Check: a.dataplane.checkAll,
		PodTable: a.conf.Routing().PodVRFID, Configuration: a.configuration, Dir: a.opts.runDir,
		Info: diag.AgentInfo{
			Node: a.opts.nodeName, Dataplane: a.opts.dataplane, Version: build.Version, Commit: build.Commit, Go: build.Go, Started: time.Now().UTC().Format(time.RFC3339),
			Transport: string(a.conf.Routing().NodeToNodeTransport), CLIWrite: a.opts.diag.cliWrite,
			Access: diag.Access{
				Address: a.opts.http.Address, TLS: a.opts.http.CertFile != "", CAFile: a.opts.diag.caFile,
				TokenFile: a.opts.http.TokenFile, ReadTokenFile: a.opts.http.ReadTokenFile,
			},
		},
	}
	if deps.Info.Access.CAFile == "" {
		deps.Info.Access.CAFile = a.opts.http.CertFile
	}
	if a.dataplane.diagnose != nil {
		a.dataplane.diagnose(&deps)
	}
	if a.path != nil {
		deps.Warnings = a.pathWarnings
	}
	a.diag = diag.New(deps)
	interfaces := statscollector.NewInterfaces(a.dataplane.counts.interfaces, statscollector.DefaultMaxPods, a.opts.dataplane == dataplaneVPP,
		a.logger("statscollector"))
	missing := ""
	if a.opts.dataplane == dataplaneFake {
		missing = "no packet moves: VPP is simulated (--dataplane=fake)"
	}
	statscollector.ServeTraffic(a.dataplane.counts.interfaces, missing, statscollector.DefaultMaxPods, a.http, a.logger("statscollector"))
	return errors.Join(a.countNAT(), a.registry.Register(interfaces), a.registry.Register(nodeCollector{a.ipam.Usage, a.db.Connected}))
}

// measureProgramming measures the time from a service event until the dataplane has the service.
func (a *agent) measureProgramming() (func(api.Event, time.Time, time.Time, error), error) {
	p, err := statscollector.NewProgramming(a.registry, time.Now())
	if err != nil {
		return nil, err
	}
	return p.EventHandled, nil
}

// configuration returns the arguments and files that this agent was started with, for a support bundle.
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

// diagPods returns the current attachments.
func (a *agent) diagPods() []diag.Pod {
	var devices map[string]string
	if a.dataplane.devices != nil {
		devices = a.dataplane.devices()
	}
	var out []diag.Pod
	for _, at := range slices.Backward(a.pods.LocalAttachments()) { // the newest attachment of a pod comes first
		p := diag.Pod{Namespace: at.Pod.Namespace, Name: at.Pod.Name, Netns: at.Netns,
			Device: devices[at.Pod.Namespace+"/"+at.Pod.Name]}
		for _, prefix := range at.Addresses {
			p.Addresses = append(p.Addresses, prefix.Addr())
		}
		out = append(out, p)
	}
	return out
}

// checkAll compares all values of the scheduler with the dataplane.
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
