package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/netctl/client"
	"contiv.dev/vswitch/internal/netctl/table"
	"contiv.dev/vswitch/internal/netctl/trace"
)

// place is an end of a way: a pod, a node, or an address of something else.
type place struct {
	text  string
	node  string // where it is; empty when not known
	pod   *podRow
	addrs []netip.Addr
}

// find reads [NAMESPACE/]POD, a node's name or an address.
func find(c *client.Cluster, pods []podRow, text string) (place, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		p := place{text: text, addrs: []netip.Addr{addr.Unmap()}}
		for i := range pods {
			if pods[i].Current && slices.ContainsFunc(pods[i].Addresses, func(a netip.Prefix) bool { return a.Addr() == addr }) {
				p.node, p.pod = pods[i].Node, &pods[i]
			}
		}
		return p, nil
	}
	for _, n := range c.Nodes().Nodes {
		if n.Name == text && n.State == "claimed" {
			return nodePlace(n.Name, append(slices.Clone(n.MgmtIPs), n.VPPIPs...)), nil
		}
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = "default", text
	}
	for i := range pods {
		if p := &pods[i]; p.Current && p.Namespace == namespace && p.Name == name {
			out := place{text: namespace + "/" + name, node: p.Node, pod: p}
			for _, a := range p.Addresses {
				out.addrs = append(out.addrs, a.Addr())
			}
			return out, nil
		}
	}
	return place{}, fmt.Errorf("%q is no connected pod (NAMESPACE/NAME), no node and no address; contiv-netctl pods lists "+
		"the pods", text)
}

func nodePlace(name string, texts []string) place {
	p := place{text: name, node: name}
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			p.addrs = append(p.addrs, prefix.Addr())
		} else if addr, err := netip.ParseAddr(text); err == nil {
			p.addrs = append(p.addrs, addr)
		}
	}
	return p
}

// pair picks addresses of one family: IPv4 before IPv6, unless ipv6 is wanted.
func pair(from, to place, ipv6 bool) (src, dst netip.Addr, err error) {
	for _, want6 := range []bool{ipv6, !ipv6} {
		for _, d := range to.addrs {
			if d.Is6() != want6 {
				continue
			}
			for _, s := range from.addrs {
				if s.Is6() == want6 {
					return s, d, nil
				}
			}
		}
		if ipv6 {
			break
		}
	}
	return src, dst, fmt.Errorf("%s %v and %s %v have no addresses of one family", from.text, from.addrs, to.text, to.addrs)
}

// probeFlags are what ping and trace have in common.
type probeFlags struct {
	proto string
	port  uint16
	ipv6  bool
}

func (f *probeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.proto, "proto", "icmp", "icmp, tcp or udp")
	cmd.Flags().Uint16Var(&f.port, "port", 0, "destination port, for tcp and udp")
	cmd.Flags().BoolVarP(&f.ipv6, "ipv6", "6", false, "use the IPv6 addresses")
}

// ends finds both ends.
func ends(ctx context.Context, c *client.Cluster, args []string) (from, to place, err error) {
	list := allPods(ctx, c, nil)
	from, errFrom := find(c, list.pods, args[0])
	to, errTo := find(c, list.pods, args[1])
	if err := errors.Join(errFrom, errTo); err != nil {
		return from, to, errors.Join(err, client.Failed(list.answers))
	}
	if from.node == "" {
		return from, to, fmt.Errorf("%s is neither a pod nor a node: there is nowhere to send from", args[0])
	}
	return from, to, nil
}

// request is the probe from one end to the other.
func (f *probeFlags) request(from place, to netip.Addr) diag.ProbeRequest {
	req := diag.ProbeRequest{To: to, Proto: f.proto, Port: f.port}
	if from.pod != nil {
		req.Namespace, req.Pod = from.pod.Namespace, from.pod.Name
	}
	return req
}

func (n *netctl) ping() *cobra.Command {
	f, count, interval, size := probeFlags{}, 3, 200, 56
	cmd := &cobra.Command{
		Use: "ping FROM TO", Short: "Send probes from a pod or node to a pod, node or address", Args: cobra.ExactArgs(2),
		ValidArgsFunction: n.completePods,
		Example: "  contiv-netctl ping web-1 kube-system/coredns-abc --proto udp --port 53\n  contiv-netctl ping " +
			"worker-1 10.96.0.1 --proto tcp --port 443",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			from, to, err := ends(ctx, c, args)
			if err != nil {
				return err
			}
			_, dst, err := pair(from, to, f.ipv6)
			if err != nil {
				return err
			}
			agent, err := c.Agent(from.node)
			if err != nil {
				return err
			}
			req := f.request(from, dst)
			req.Count, req.PauseMs, req.Size = count, interval, size
			var res diag.ProbeResult
			if err := agent.Post(ctx, diag.ProbePath, req, &res); err != nil {
				return err
			}
			if err := n.printPing(cmd.OutOrStdout(), from, to, dst, f, &res); err != nil {
				return err
			}
			if res.Received < res.Sent {
				return errFound
			}
			return nil
		}),
	}
	f.register(cmd)
	cmd.Flags().IntVarP(&count, "count", "c", count, "how many probes")
	cmd.Flags().IntVar(&interval, "interval", interval, "milliseconds between probes")
	cmd.Flags().IntVar(&size, "size", size, "payload of echo requests in bytes")
	return cmd
}

func (n *netctl) printPing(w io.Writer, from, to place, dst netip.Addr, f probeFlags, res *diag.ProbeResult) error {
	if n.format != table.Text {
		return table.Value(w, n.format, res)
	}
	fmt.Fprintf(w, "%s (%s) → %s (%s), %s\n", from.text, res.Source, to.text, dst, protoText(f))
	fmt.Fprintf(w, "%d sent, %d answered", res.Sent, res.Received)
	if len(res.RTTMs) > 0 {
		sum := 0.0
		for _, ms := range res.RTTMs {
			sum += ms
		}
		fmt.Fprintf(w, ", min/avg/max %.2f/%.2f/%.2f ms", slices.Min(res.RTTMs), sum/float64(len(res.RTTMs)), slices.Max(res.RTTMs))
	}
	fmt.Fprintln(w)
	for _, e := range res.Errors {
		fmt.Fprintln(w, "  "+e)
	}
	return nil
}

func protoText(f probeFlags) string {
	if f.port == 0 {
		return f.proto
	}
	return fmt.Sprintf("%s port %d", f.proto, f.port)
}

// traceReport is the answer of trace.
type traceReport struct {
	Flow    trace.Flow        `json:"flow"`
	From    string            `json:"from"`
	To      string            `json:"to"`
	Probe   *diag.ProbeResult `json:"probe,omitempty"`
	Sides   []trace.Side      `json:"nodes"`
	Verdict trace.Verdict     `json:"verdict"`
}

func (n *netctl) trace() *cobra.Command {
	f, raw, packets := probeFlags{}, false, 200
	cmd := &cobra.Command{
		Use: "trace FROM TO", Short: "Follow a packet from a pod to a pod, node or address, and say where it is " +
			"lost", Args: cobra.ExactArgs(2),
		ValidArgsFunction: n.completePods,
		Long: "trace records packets on the nodes of both ends, sends one from the first end, and shows what each node did with " +
			"it and " +
			"with its answer.\nThe exit status is 1 when there was no answer.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			from, to, err := ends(ctx, c, args)
			if err != nil {
				return err
			}
			src, dst, err := sourceOf(from, to, f.ipv6)
			if err != nil {
				return err
			}
			rep := traceReport{From: from.text, To: to.text, Flow: trace.Flow{Source: src, Dest: dst, Proto: f.proto, Port: f.port}}
			if err := rep.record(ctx, c, from, to, f, packets); err != nil {
				return err
			}
			if err := n.printTrace(cmd.OutOrStdout(), &rep, raw); err != nil {
				return err
			}
			if !rep.Verdict.Answered {
				return errFound
			}
			return nil
		}),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "also print what the dataplanes recorded")
	cmd.Flags().IntVar(&packets, "packets", packets, "VPP: how many packets of each input to record; more on a busy node")
	return cmd
}

func sourceOf(from, to place, ipv6 bool) (src, dst netip.Addr, err error) {
	if from.pod == nil {
		return src, dst, fmt.Errorf("trace begins at a pod: %s is none; contiv-netctl ping begins at nodes too", from.text)
	}
	return pair(from, to, ipv6)
}

// record traces on the nodes of both ends while one probe is sent.
func (rep *traceReport) record(ctx context.Context, c *client.Cluster, from, to place, f probeFlags, packets int) error {
	nodes := []string{from.node}
	if to.node != "" && to.node != from.node {
		nodes = append(nodes, to.node)
	}
	req := diag.TraceRequest{
		Source: rep.Flow.Source, Dest: rep.Flow.Dest, Proto: f.proto, Port: f.port, Packets: packets,
		Namespace: from.pod.Namespace, Pod: from.pod.Name,
	}
	var recordings []*client.Recording
	var errs []error
	for _, node := range nodes {
		agent, err := c.Agent(node)
		if err == nil {
			var r *client.Recording
			if r, err = agent.Trace(ctx, req); err == nil {
				recordings = append(recordings, r)
			}
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err == nil {
		var agent *client.Agent
		if agent, err = c.Agent(from.node); err == nil {
			rep.Probe = &diag.ProbeResult{}
			err = agent.Post(ctx, diag.ProbePath, f.request(from, rep.Flow.Dest), rep.Probe)
		}
		errs = append(errs, err)
	}
	for i, r := range recordings {
		capture, err := r.Stop(ctx)
		errs = append(errs, err)
		if err == nil {
			rep.Sides = append(rep.Sides, trace.Read(nodes[i], capture, rep.Flow))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	rep.Verdict = trace.Explain(rep.Sides[0], rep.Sides[len(rep.Sides)-1], rep.Probe)
	return nil
}

func (n *netctl) printTrace(w io.Writer, rep *traceReport, raw bool) error {
	if n.format != table.Text {
		return table.Value(w, n.format, rep)
	}
	f := rep.Flow
	fmt.Fprintf(w, "%s (%s) → %s (%s), %s\n", rep.From, f.Source, rep.To, f.Dest, protoText(probeFlags{proto: f.Proto,
		port: f.Port}))
	for _, s := range rep.Sides {
		printPath(w, "node "+s.Node, s.There)
	}
	for _, s := range slices.Backward(rep.Sides) {
		if s.Back.Outcome != trace.NotSeen {
			printPath(w, "the answer, on node "+s.Node, s.Back)
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
	fmt.Fprintln(w, "result: "+rep.Verdict.Text)
	return nil
}

func printPath(w io.Writer, title string, p trace.Path) {
	fmt.Fprintf(w, "%s\n", title)
	for _, h := range p.Hops {
		fmt.Fprintf(w, "  %-28s %s\n", h.Stage, h.What)
	}
	switch p.Outcome {
	case trace.NotSeen:
		fmt.Fprintln(w, "  not seen")
	case trace.Dropped:
		fmt.Fprintln(w, "  DROPPED: "+p.Reason)
	}
}
