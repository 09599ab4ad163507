package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/version"
)

// versionRow holds the versions on a node.
type versionRow struct {
	Node      string        `json:"node"`
	Agent     string        `json:"agent,omitempty"`
	Commit    string        `json:"commit,omitempty"`
	Go        string        `json:"go,omitempty"`
	Dataplane string        `json:"dataplane,omitempty"`
	VPP       *diag.VPPInfo `json:"vpp,omitempty"`
	Error     string        `json:"error,omitempty"`
}

// versionReport is the answer of the command version.
type versionReport struct {
	Netctl version.Info `json:"netctl"`
	Nodes  []versionRow `json:"nodes"`
	// Skew lists the components that have more than one version.
	Skew []string `json:"skew"`
}

func (n *netctl) version() *cobra.Command {
	clientOnly := false
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of all components, and where they differ", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if clientOnly {
				return n.printVersions(cmd, versionReport{Netctl: version.Get(), Nodes: []versionRow{}, Skew: []string{}})
			}
			return n.run(n.queryVersions)(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "only the version of contiv-netctl; queries no agent")
	return cmd
}

func (n *netctl) queryVersions(ctx context.Context, cmd *cobra.Command, c *client.Cluster, _ []string) error {
	rep := versionReport{Netctl: version.Get(), Nodes: []versionRow{}}
	recorded := map[string]string{}
	for _, node := range c.Nodes().Nodes {
		recorded[node.Name] = node.Version
	}
	answers := client.Each(ctx, c, nil, get[diag.AgentInfo](diag.AgentPath))
	for _, a := range answers {
		row := versionRow{Node: a.Node, Agent: a.Value.Version, Commit: a.Value.Commit, Go: a.Value.Go, Dataplane: a.Value.Dataplane,
			VPP: a.Value.VPP}
		if a.Err != nil {
			// The version that the agent wrote into its record when it last started.
			row.Agent, row.Commit, _ = strings.Cut(recorded[a.Node], " (")
			row.Commit, row.Error = strings.TrimSuffix(row.Commit, ")"), state.NoAnswer(a.Err)
		}
		rep.Nodes = append(rep.Nodes, row)
	}
	rep.Skew = skew(rep)
	if err := n.printVersions(cmd, rep); err != nil {
		return err
	}
	return warn(cmd, answers)
}

// skew returns the components that have more than one version, with the nodes of each version.
func skew(rep versionReport) []string {
	components := []struct {
		name string
		of   func(versionRow) string
	}{
		{"contiv-agent", func(r versionRow) string { return version.Info{Version: r.Agent, Commit: r.Commit}.String() }},
		{"VPP", func(r versionRow) string {
			if r.VPP == nil {
				return ""
			}
			return r.VPP.Version
		}},
		{"VPP's contiv plugin", func(r versionRow) string {
			if r.VPP == nil {
				return ""
			}
			return cmp.Or(r.VPP.Plugin, "none")
		}},
	}
	out := []string{}
	for _, component := range components {
		nodes := map[string][]string{}
		for _, r := range rep.Nodes {
			if v := component.of(r); v != "" {
				nodes[v] = append(nodes[v], r.Node)
			}
		}
		if len(nodes) < 2 {
			continue
		}
		var parts []string
		for _, v := range slices.Sorted(maps.Keys(nodes)) {
			parts = append(parts, fmt.Sprintf("%s on %s", v, shortened(nodes[v], 4)))
		}
		out = append(out, component.name+": "+strings.Join(parts, "; "))
	}
	return out
}

func (n *netctl) printVersions(cmd *cobra.Command, rep versionReport) error {
	if n.format.Structured() {
		return table.Value(cmd.OutOrStdout(), n.format, rep)
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "contiv-netctl %s\n", rep.Netctl)
	if len(rep.Nodes) == 0 {
		return nil
	}
	t := table.Table{Header: []string{"NODE", "AGENT", "COMMIT", "DATAPLANE", "VPP", "CONTIV-PLUGIN"}}
	for _, r := range rep.Nodes {
		vpp, plugin := "", ""
		if r.VPP != nil {
			vpp, plugin = r.VPP.Version, cmp.Or(r.VPP.Plugin, "none")
		}
		t.Add(r.Node, r.Agent, r.Commit, r.Dataplane, vpp, plugin)
	}
	if err := n.print(cmd, nil, t); err != nil {
		return err
	}
	for _, s := range rep.Skew {
		fmt.Fprintln(w, "versions differ: "+s)
	}
	return nil
}
