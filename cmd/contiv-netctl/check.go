package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/validate"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/kubepods"
	"contiv.dev/vswitch/plugins/nodesync"
)

// gather reads an agent's view of the cluster.
func gather(ctx context.Context, a *client.Agent) (*validate.View, error) {
	v := &validate.View{}
	var nodes client.Nodes
	var errs []error
	for _, query := range []func() error{
		func() error { return a.Get(ctx, diag.AgentPath, &v.Info) },
		func() error { return a.Get(ctx, client.NodesPath, &nodes) },
		func() error { return a.Get(ctx, podsPath, &v.Pods) },
		func() error { return a.Get(ctx, "/contiv/v1/ipam/allocations", &v.Allocations) },
		func() error { return a.Get(ctx, kubepods.Path, &v.Kube) },
		func() error { return a.Get(ctx, "/scheduler/dump", &v.Values) },
		func() error { return compare(ctx, a, v) },
	} {
		err := query()
		if client.IsUnreachable(err) {
			return v, err
		}
		errs = append(errs, err)
	}
	v.Nodes, v.Stale = nodes.Nodes, nodes.Stale
	if err := errors.Join(errs...); err != nil || v.Info.Dataplane != "linux" {
		return v, err
	}
	v.Kernel = &diag.Kernel{}
	return v, a.Get(ctx, diag.KernelPath, v.Kernel)
}

// compare requests the differences in the dataplane. A read-only token does not allow this request.
func compare(ctx context.Context, a *client.Agent, v *validate.View) error {
	err := a.Post(ctx, diag.CheckPath, struct{}{}, &v.Check)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		v.NotCompared = "the token gives read access only; use --token-file with the one for full access"
		return nil
	}
	return err
}

// views returns the views of the nodes; the view of a node that did not respond holds the error.
func views(ctx context.Context, c *client.Cluster, nodes []string) []*validate.View {
	var out []*validate.View
	for _, answer := range client.Each(ctx, c, nodes, gather) {
		v := answer.Value
		if v == nil {
			v = &validate.View{}
		}
		v.Node = answer.Node
		switch {
		case client.IsUnreachable(answer.Err):
			v.Error = answer.Err.Error() + lookFor(ctx, c, answer.Node)
		case answer.Err != nil && len(v.Info.Problems) > 0: // the error is a consequence of these problems
			v.Error = "is not ready: " + strings.Join(v.Info.Problems, "; ")
		case answer.Err != nil:
			v.Error = answer.Err.Error()
		}
		out = append(out, v)
	}
	return out
}

// lookFor returns whether a node whose agent does not respond can be reached at all, as far as the first agent's node can determine.
func lookFor(ctx context.Context, c *client.Cluster, node string) string {
	first, info := c.First()
	at := slices.IndexFunc(c.Nodes().Nodes, func(n nodesync.NodeReport) bool { return n.Name == node && n.State == "claimed" })
	if at < 0 || node == info.Node {
		return ""
	}
	n := &c.Nodes().Nodes[at]
	addrs := nodePlace(node, slices.Concat(n.MgmtIPs, n.VPPIPs)).addrs
	if slices.ContainsFunc(addrs, netip.Addr.Is4) { // IPv4 is enough, and each address takes a second
		addrs = slices.DeleteFunc(addrs, netip.Addr.Is6)
	}
	var queried []string
	for _, addr := range addrs {
		if slices.Contains(queried, addr.String()) {
			continue
		}
		var res diag.ProbeResult
		if err := first.Post(ctx, diag.ProbePath, diag.ProbeRequest{To: addr, Proto: "icmp"}, &res); err != nil {
			return "" // read-only access does not allow this probe
		}
		if res.Received > 0 {
			return fmt.Sprintf("; the node replies to a ping of %s at %s: check its agent", info.Node, addr)
		}
		queried = append(queried, addr.String())
	}
	if len(queried) == 0 {
		return ""
	}
	return fmt.Sprintf("; the node does not reply to pings of %s at %s either: it is off, or has no connection to it", info.Node,
		strings.Join(queried, " and "))
}

// checkReport is the answer of check.
type checkReport struct {
	Nodes    int                `json:"nodes"`
	Values   int                `json:"valuesCompared"`
	Findings []validate.Finding `json:"findings"`
	// NotAsked holds nodes that can be queried only from themselves; their state is not known.
	NotAsked []string `json:"notAsked,omitempty"`
	// NotCompared is the reason why dataplanes were not compared.
	NotCompared string `json:"notCompared,omitempty"`
}

func (n *netctl) check() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Compare the nodes with each other, and each dataplane with its configuration", Args: cobra.NoArgs,
		Long: "check compares the data that nodes have about each other (IDs, tunnel ends, ARP and forwarding entries, routes to pods) and " +
			"about their pods " +
			"(runtime, addresses, dataplane, Kubernetes), and each dataplane with its desired state. It changes " +
			"nothing. It lists the nodes that it cannot query, because their agents listen on a loopback address only.\n" +
			"The exit status is 1 if there is a finding.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, _ []string) error {
			queried, local, why := reachable(c)
			all := views(ctx, c, queried)
			rep := checkReport{Nodes: len(all), Findings: validate.Cluster(all), NotAsked: local}
			for _, v := range all {
				rep.Values += v.Check.Checked
				if v.NotCompared != "" {
					rep.NotCompared = v.NotCompared
				}
			}
			for key, problem := range c.Nodes().Broken {
				rep.Findings = append(rep.Findings, validate.Finding{About: "node", Object: key, Text: problem})
			}
			t := table.Table{Header: []string{"NODE", "ABOUT", "OBJECT", "FINDING"}, Whole: []string{"OBJECT", "FINDING"}}
			for _, f := range rep.Findings {
				t.Add(f.Node, f.About, f.Object, f.Text)
			}
			if n.format.Structured() || len(rep.Findings) > 0 {
				if err := n.print(cmd, rep, t); err != nil {
					return err
				}
			}
			if !n.format.Structured() {
				fmt.Fprintf(cmd.OutOrStdout(), "%s, %s compared, %s\n", count(rep.Nodes, "node"), count(rep.Values, "value"),
					count(len(rep.Findings), "finding"))
				notQueried(cmd, local, why)
				if rep.NotCompared != "" {
					fmt.Fprintln(cmd.ErrOrStderr(), "contiv-netctl: dataplanes were not compared: "+rep.NotCompared)
				}
			}
			if len(rep.Findings) > 0 {
				return errFound
			}
			return nil
		}),
	}
}

// notThere reports whether an agent does not have a path, for example because of its dataplane.
func notThere(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusForbidden)
}
