package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
)

// triedPolicy is what a policy would change, as reported by one node or by all of them.
type triedPolicy struct {
	Policy      string            `json:"policy"`
	Problems    []string          `json:"problems,omitempty"`
	Selects     []string          `json:"selects"`
	Changes     []triedChange     `json:"changes"`
	Connections []triedConnection `json:"connections"`
	Unknown     string            `json:"unknown,omitempty"`
	More        bool              `json:"more,omitempty"`
}

type triedChange struct {
	Pod       string   `json:"pod"`
	Direction string   `json:"direction"`
	Ports     []string `json:"ports"`
	Peers     []string `json:"peers"`
	Before    string   `json:"before"`
	After     string   `json:"after"`
}

type triedConnection struct {
	Protocol string `json:"protocol"`
	Client   string `json:"client"`
	Server   string `json:"server"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
}

func (n *netctl) policyTry() *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use: "try -f FILE", Short: "Show what a policy would change, without applying it", Args: cobra.NoArgs,
		Long: "try reports what a NetworkPolicy or ClusterNetworkPolicy would change: which pods, ports and peers would be denied or\n" +
			"allowed, and which open connections would end. Nothing changes. A policy of the same name is replaced in the comparison.\n" +
			"Not listed are connections that VPP does not track, and single peers outside of the cluster: the nodes have no data about them.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, _ []string) error {
			text, err := readPolicy(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			answers := client.Each(ctx, c, nil, func(ctx context.Context, a *client.Agent) (out triedPolicy, err error) {
				return out, a.Post(ctx, "/contiv/v1/policies/try", map[string]string{"policy": text}, &out)
			})
			if i := slices.IndexFunc(answers, func(a client.Answer[triedPolicy]) bool { return a.Err == nil }); i < 0 && len(answers) > 0 {
				return answers[0].Err // all nodes return the same error: the policy cannot be parsed
			}
			all := joinTried(answers)
			if err := n.print(cmd, all, triedTable(all)); err != nil {
				return err
			}
			if !n.format.Structured() {
				triedNotes(cmd.ErrOrStderr(), all)
			}
			return warn(cmd, answers)
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "YAML or JSON of one policy; - reads standard input")
	if err := cmd.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag exists
	}
	return cmd
}

// maxPolicy is more than the size that the API server stores.
const maxPolicy = 1 << 20

func readPolicy(stdin io.Reader, file string) (string, error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPolicy+1))
	if err != nil {
		return "", fmt.Errorf("read the policy from %s: %w", file, err)
	}
	if len(text) > maxPolicy {
		return "", fmt.Errorf("%s is larger than 1 MiB, the limit for a policy", file)
	}
	return string(text), nil
}

// joinTried joins the nodes' answers. Each node reports its own pods; a connection is reported by the nodes of both ends.
func joinTried(answers []client.Answer[triedPolicy]) triedPolicy {
	out := triedPolicy{Selects: []string{}, Changes: []triedChange{}, Connections: []triedConnection{}}
	for _, a := range answers {
		if a.Err != nil {
			continue
		}
		out.Policy, out.Problems = a.Value.Policy, a.Value.Problems
		out.Selects = append(out.Selects, a.Value.Selects...)
		out.Changes = append(out.Changes, a.Value.Changes...)
		for _, c := range a.Value.Connections {
			if !slices.Contains(out.Connections, c) {
				out.Connections = append(out.Connections, c)
			}
		}
		if a.Value.Unknown != "" {
			out.Unknown = "node " + a.Node + ": " + a.Value.Unknown
		}
		out.More = out.More || a.Value.More
	}
	slices.Sort(out.Selects)
	slices.SortStableFunc(out.Changes, func(a, b triedChange) int {
		return cmp.Or(strings.Compare(a.Pod, b.Pod), -strings.Compare(a.Direction, b.Direction))
	})
	return out
}

// shownPeers is how many peers a row of the table shows.
const shownPeers = 4

func triedTable(p triedPolicy) table.Table {
	t := table.Table{Header: []string{"POD", "DIRECTION", "PORT", "PEER", "CHANGE"}, Whole: []string{"PORT", "PEER"}}
	for _, c := range p.Changes {
		peers := strings.Join(c.Peers[:min(len(c.Peers), shownPeers)], ", ")
		if more := len(c.Peers) - shownPeers; more > 0 {
			peers += fmt.Sprintf(" and %d more", more)
		}
		t.Add(c.Pod, c.Direction, strings.Join(c.Ports, ", "), peers, c.Before+" -> "+c.After)
	}
	for _, c := range p.Connections {
		if c.To != "" {
			t.Add(c.To, "ingress", c.Protocol+" "+c.Server, cmp.Or(c.From, c.Client)+" ("+c.Client+")", "open connection ends")
		} else {
			t.Add(c.From, "egress", c.Protocol+" "+c.Client, c.Server, "open connection ends")
		}
	}
	return t
}

// triedNotes prints what the table does not contain.
func triedNotes(w io.Writer, p triedPolicy) {
	fmt.Fprintf(w, "%s selects %d pods; %d changes, %d open connections end. Nothing was applied.\n", p.Policy, len(p.Selects), len(p.Changes),
		len(p.Connections))
	for _, problem := range p.Problems {
		fmt.Fprintf(w, "not understood: %s\n", problem)
	}
	if p.Unknown != "" {
		fmt.Fprintf(w, "open connections are not known: %s\n", p.Unknown)
	}
	if p.More {
		fmt.Fprintln(w, "there are more changes than these")
	}
}
