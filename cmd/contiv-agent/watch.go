package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/plugins/pathwatch"
)

// watchOptions holds the flags for the watch of the data path.
type watchOptions struct {
	on   bool
	heal bool
}

func (o *watchOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "datapath-watch", true, "check whether packets get through; without it, readiness only means that the processes run")
	f.BoolVar(&o.heal, "datapath-repair", true, "repair the problems that the watch finds; without it, they are only reported")
}

// conditionDataPath is the type of the node condition in Kubernetes.
const conditionDataPath = "ContivDataPath"

// newWatch makes the watch of the data path; nil if the dataplane moves no packets.
func (a *agent) newWatch() (*pathwatch.Plugin, error) {
	if !a.opts.watch.on {
		return nil, nil
	}
	deps := pathwatch.Deps{
		PluginDeps: a.pluginDeps("pathwatch"), NodeName: a.opts.nodeName, Nodes: a.nodesync, Addresses: a.ipam,
		HTTP: a.http, Metrics: a.registry,
	}
	if a.dataplane.watch == nil {
		return nil, nil
	}
	a.dataplane.watch(&deps)
	if a.opts.watch.heal {
		deps.Repair = pathRepair{a}
	}
	if client := a.kube.writer(); client != nil {
		deps.Reporter = nodeReporter{a.kube.conditions, client, a.opts.nodeName}
	}
	return pathwatch.New(deps)
}

// pathRepair repairs the data path.
type pathRepair struct{ a *agent }

// Recreate implements pathwatch.Repair. The controller is not involved, because the desired state stays the same.
func (r pathRepair) Recreate(ctx context.Context, key, why string) error {
	_, err := r.a.dataplane.scheduler.Commit(ctx, &txn.Txn{Description: "created again: " + why, Recreate: []string{key}})
	var failed *txn.Error
	if errors.As(err, &failed) && failed.Escalate() {
		return errors.Join(err, r.Resync("the repair of the data path failed"))
	}
	return err
}

// Resync implements pathwatch.Repair.
func (r pathRepair) Resync(why string) error {
	return r.a.controller.DataplaneReconnected("data path: " + why)
}

// pathWarnings returns the faults that do not make the node unready.
func (a *agent) pathWarnings() []diag.Warning {
	var out []diag.Warning
	for _, c := range a.path.Warnings() {
		out = append(out, diag.Warning{Object: c.Object, Text: c.String()})
	}
	if err := a.ipnet.SourcesChecked(); err != nil {
		out = append(out, diag.Warning{Object: "VPP", Text: err.Error()})
	}
	return out
}

// nodeReporter writes conditions and Events of the node to the API server.
type nodeReporter struct {
	conditions *nodeConditions
	client     *kube.Client
	node       string
}

// Condition implements pathwatch.Reporter.
func (t nodeReporter) Condition(ctx context.Context, ok bool, reason, message string) error {
	return t.conditions.Set(ctx, kube.NodeCondition{Type: conditionDataPath, Status: ok, Reason: reason, Message: message})
}

// Event implements pathwatch.Reporter.
func (t nodeReporter) Event(ctx context.Context, warning bool, reason, message string) error {
	return t.client.WriteEvent(ctx, kube.NodeEvent{
		Node: t.node, Component: "contiv-agent", Reason: reason, Message: message, Warning: warning,
	})
}

// writer returns a client for single requests; nil if there is no API server to write to.
func (k *kubeState) writer() *kube.Client {
	if k == nil {
		return nil
	}
	return k.client
}

// relayWriter returns the client of an agent that watches etcd instead of the API server; nil if the agent has no service account.
func (a *agent) relayWriter() (*kube.Client, error) {
	if _, err := os.Stat(serviceAccountToken); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	client, err := kube.NewClient(kube.Config{UserAgent: "contiv-agent/" + a.opts.nodeName})
	if err != nil {
		return nil, fmt.Errorf("API server, for conditions and Events: %w", err)
	}
	return client, nil
}
