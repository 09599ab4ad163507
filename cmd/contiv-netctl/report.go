package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/bundle"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/validate"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/internal/version"
	"contiv.dev/vswitch/plugins/statscollector"
)

// reportPaths returns the paths that a report requests from each agent. None of them shows secrets; the bundle removes secrets in any case.
func reportPaths() map[string]string {
	return map[string]string{
		"agent.json": diag.AgentPath, "nodes.json": client.NodesPath, "pods.json": podsPath, "ipam.json": "/contiv/v1/ipam",
		"allocations.json": "/contiv/v1/ipam/allocations", "services.json": "/contiv/v1/services",
		"kubernetes-pods.json": "/contiv/v1/kubernetes/pods", "nat.json": statscollector.NATPath,
		"events.txt":          "/controller/event-history?format=text",
		"scheduler-dump.json": "/scheduler/dump", "scheduler-status.json": "/scheduler/status",
		"transactions.txt": "/scheduler/txn-history", "metrics.txt": "/metrics", "readiness.txt": "/readiness",
		"linux-dataplane.json": "/linux/dataplane", "kernel.json": diag.KernelPath, "logs.txt": logs.Path,
		"configuration.json": diag.ConfigPath, "nft-ruleset.txt": diag.RulesetPath,
	}
}

// reportCommands returns the VPP commands whose output a report contains.
func reportCommands() []string {
	return []string{
		"show version", "show interface", "show interface " +
			"address", "show hardware-interfaces", "show errors", "show runtime", "show buffers",
		"show memory main-heap", "show threads", "show plugins", "show ip fib summary", "show ip6 fib summary", "show ip neighbors",
		"show ip6 neighbors", "show vxlan tunnel", "show bridge-domain", "show l2fib all", "show nat44 " +
			"summary",
		"show logging", "show api clients",
	}
}

// material maps file names to a node's texts. If a request fails, its file contains the error.
type material map[string]string

func collect(ctx context.Context, a *client.Agent) (material, error) {
	m := material{}
	for file, path := range reportPaths() {
		text, err := a.GetText(ctx, path)
		if client.IsUnreachable(err) {
			return nil, err
		}
		if notThere(err) {
			continue
		}
		if err != nil {
			m[file+".error"] = err.Error() + "\n"
			continue
		}
		m[file] = text
	}
	for _, command := range reportCommands() {
		var reply diag.CLIReply
		err := a.Post(ctx, diag.CLIPath, diag.CLIRequest{Command: command}, &reply)
		if notThere(err) {
			break // the node has no VPP
		}
		file := "vpp/" + strings.ReplaceAll(strings.TrimPrefix(command, "show "), " ", "-")
		if err != nil {
			m[file+".error"] = err.Error() + "\n"
			continue
		}
		m[file+".txt"] = reply.Output
	}
	return m, nil
}

func (n *netctl) report() *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use: "report [NODE...]", Short: "Collect a support bundle of all nodes", ValidArgsFunction: n.completeNodes,
		Long: "report writes the state of agents and VPP, and the findings of check, into a tar.gz. Tokens, passwords and keys are not " +
			"in it: " +
			"agents do not return them, and text that looks like one is redacted.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			if err := c.Check(args); err != nil {
				return err
			}
			r := report{folder: "contiv-report-" + time.Now().UTC().Format("20060102-150405"), progress: cmd.ErrOrStderr()}
			if file == "-" {
				failed, err := r.write(ctx, cmd.OutOrStdout(), c, args)
				return errors.Join(err, failed)
			}
			if file == "" {
				file = r.folder + ".tar.gz"
			}
			out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("report: %w; choose another file with --file", err)
			}
			failed, err := r.write(ctx, out, c, args)
			if err = errors.Join(err, out.Close()); err != nil {
				return fmt.Errorf("report: %w", err)
			}
			if n.format.Structured() {
				return errors.Join(table.Value(cmd.OutOrStdout(), n.format, map[string]string{"file": file}), failed)
			}
			fmt.Fprintln(cmd.OutOrStdout(), file)
			return failed
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "output file; -: standard output (default: contiv-report-<time>.tar.gz in the current directory)")
	return cmd
}

// report is a support bundle that is being written.
type report struct {
	folder   string    // the folder of all files
	progress io.Writer // a line for each node

	mu sync.Mutex // guards progress
}

// collect collects a node's files and prints a line about the node.
func (r *report) collect(ctx context.Context, a *client.Agent) (material, error) {
	begun := time.Now()
	m, err := collect(ctx, a)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		fmt.Fprintf(r.progress, "node %s: %v\n", a.Name, state.NoAnswer(err))
	} else {
		fmt.Fprintf(r.progress, "node %s: %s, %s\n", a.Name, count(len(m), "file"), time.Since(begun).Round(time.Millisecond))
	}
	return m, err
}

// write also reports the nodes that are missing: a report of the other nodes is still useful.
func (r *report) write(ctx context.Context, out io.Writer, c *client.Cluster, nodes []string) (failed, err error) {
	b := bundle.New(out, time.Now())
	answers := client.Each(ctx, c, nodes, r.collect)
	for _, a := range answers {
		if a.Err != nil {
			a.Value = material{"error.txt": a.Err.Error() + "\n"}
		}
		for file, text := range a.Value {
			if err := b.Add(r.folder+"/nodes/"+a.Node+"/"+file, text); err != nil {
				return nil, err
			}
		}
	}
	findings, err := json.MarshalIndent(validate.Cluster(views(ctx, c, nodes)), "", "  ")
	if err != nil {
		return nil, err
	}
	versions, err := json.MarshalIndent(map[string]any{"netctl": version.Get(), "made": time.Now().UTC()}, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := b.Add(r.folder+"/netctl.json", string(versions)+"\n"); err != nil {
		return nil, err
	}
	if err := b.Add(r.folder+"/check.json", string(findings)+"\n"); err != nil {
		return nil, err
	}
	return client.Failed(answers), b.Close()
}
