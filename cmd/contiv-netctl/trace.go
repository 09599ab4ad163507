package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/trace"
	"contiv.dev/vswitch/internal/diag"
)

// traceReport is the answer of trace.
type traceReport struct {
	Flow    trace.Flow        `json:"flow"`
	From    string            `json:"from"`
	To      string            `json:"to"`
	Service *trace.Service    `json:"service,omitempty"`
	Probe   *diag.ProbeResult `json:"probe,omitempty"`
	Policy  []policyStep      `json:"policy,omitempty"`
	Sides   []trace.Side      `json:"nodes"`
	Verdict trace.Verdict     `json:"verdict"`
}

func (n *netctl) trace() *cobra.Command {
	f, raw, all, packets := probeFlags{}, false, false, defaultPackets
	cmd := &cobra.Command{
		Use: "trace FROM TO", Short: "Follow a packet from a pod to a pod, node, service or address, and show where it is " +
			"lost", Args: cobra.ExactArgs(2),
		ValidArgsFunction: n.completePods,
		Example: "  contiv-netctl trace web-1 default/db-0 --port 5432\n  contiv-netctl trace web-1 svc/db\n  contiv-netctl trace " +
			"web-1 10.96.0.10:53 --proto udp",
		Long: "trace records packets on the nodes of both ends, sends one from the first end, and shows what each node did with " +
			"it and with its reply, and which network policy allows or denies it.\nFor a service, it shows the chosen backend, and follows the packet to the node of the backend.\n" +
			placesHelp + "\nThe exit status is 1 if there was no reply.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			rep, err := follow(ctx, c, f, args, packets)
			if err != nil {
				return err
			}
			if err := n.printTrace(cmd.OutOrStdout(), rep, all || raw, raw); err != nil {
				return err
			}
			if !rep.Verdict.Answered {
				return errFound
			}
			return nil
		}),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "also print the records of the dataplanes")
	cmd.Flags().BoolVar(&all, "all", false, "Linux: also show our rules that only jump to other chains")
	cmd.Flags().IntVar(&packets, "packets", packets, "VPP: number of packets of each input to record; use more on a busy node")
	return cmd
}

func sourceOf(from, to place, ipv6 bool) (src, dst netip.Addr, err error) {
	if from.pod == nil {
		return src, dst, fmt.Errorf("the trace source must be a pod; %s is not one. contiv-netctl ping accepts nodes, too", from.text)
	}
	return pair(from, to, ipv6)
}

func (n *netctl) printTrace(w io.Writer, rep *traceReport, all, raw bool) error {
	if n.format.Structured() {
		return table.Value(w, n.format, rep)
	}
	f := rep.Flow
	fmt.Fprintf(w, "%s (%s) → %s (%s), %s\n", rep.From, f.Source, rep.To, f.Dest, protoText(probeFlags{proto: f.Proto,
		port: f.Port}))
	if s := rep.Service; s != nil {
		fmt.Fprintf(w, "service %s, %s, %d endpoints\n", s.Service, s.As, len(s.Backends))
	}
	for _, s := range rep.Policy {
		fmt.Fprintln(w, "policy, "+s.text())
	}
	for _, s := range rep.Sides {
		printPath(w, "node "+s.Node, s.There, all)
	}
	for _, s := range slices.Backward(rep.Sides) {
		if s.Back.Outcome != trace.NotSeen {
			printPath(w, "the reply, on node "+s.Node, s.Back, all)
		}
	}
	for _, s := range rep.Sides {
		for _, fact := range s.Facts {
			mark := " "
			if fact.Problem {
				mark = "!"
			}
			fmt.Fprintf(w, "%s %s: %s of the %s %s\n", mark, s.Node, fact.What, fact.Where, fact.Text)
		}
		for _, d := range s.Drops {
			if !rep.Verdict.Answered {
				fmt.Fprintf(w, "  %s: counter %s: %s +%d\n", s.Node, d.Where, d.Reason, d.Count)
			}
		}
		for _, note := range s.Notes {
			fmt.Fprintf(w, "  %s: %s\n", s.Node, note)
		}
		if raw {
			fmt.Fprintf(w, "--- recorded on %s\n%s\n", s.Node, s.Capture.Text)
		}
	}
	if rep.Service != nil && rep.Service.Missing != "" && rep.Verdict.Answered {
		fmt.Fprintln(w, "nothing was recorded on the backend's node: "+rep.Service.Missing)
	}
	fmt.Fprintln(w, "result: "+rep.Verdict.Text)
	return nil
}

func printPath(w io.Writer, title string, p trace.Path, all bool) {
	fmt.Fprintf(w, "%s\n", title)
	left := 0
	for _, h := range p.Hops {
		if h.Minor && !all {
			left++
			continue
		}
		fmt.Fprintf(w, "  %-28s %s\n", h.Stage, h.What)
	}
	if left > 0 {
		fmt.Fprintf(w, "  %-28s %d more rules of ours; --all shows them\n", "…", left)
	}
	if p.Came != p.Left {
		fmt.Fprintf(w, "  %-28s %s → %s became %s → %s\n", "translated", p.Came.Source, p.Came.Dest, p.Left.Source, p.Left.Dest)
	}
	switch p.Outcome {
	case trace.NotSeen:
		fmt.Fprintln(w, "  not seen")
	case trace.Dropped:
		fmt.Fprintln(w, "  DROPPED: "+p.Reason)
	}
}
