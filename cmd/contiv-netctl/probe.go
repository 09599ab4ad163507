package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/internal/diag"
)

// probeFlags holds the flags that ping and trace share.
type probeFlags struct {
	proto string
	port  uint16
	ipv6  bool
}

func (f *probeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.proto, "proto", "", "icmp, tcp or udp (default: the service's, tcp with a port, icmp without)")
	cmd.Flags().Uint16Var(&f.port, "port", 0, "destination port, for tcp and udp")
	cmd.Flags().BoolVarP(&f.ipv6, "ipv6", "6", false, "use the IPv6 addresses")
}

// way holds the resolved arguments of ping and trace.
type way struct {
	from, to place
	agent    *client.Agent // of the sender's node
	pods     []podRow
	missing  error // why the pods of some nodes are not known
}

// elsewhere extends the error for a name that was not found: the name may be a pod on a node that has not answered.
func elsewhere(err error, name string, answers []client.Answer[[]podRow]) error {
	missing := client.Failed(answers)
	if missing == nil || !errors.Is(err, errNoPlace) {
		return err
	}
	failed := 0
	for _, a := range answers {
		if a.Err != nil {
			failed++
		}
	}
	return fmt.Errorf("%q was not found on the %d of %d nodes that respond, and may be a pod on another node: %w; repeat this when that agent runs, or "+
		"give the address of the pod as the destination", name, len(answers)-failed, len(answers), missing)
}

// ends resolves both ends, and sets port and protocol.
func (f *probeFlags) ends(ctx context.Context, c *client.Cluster, args []string) (w way, err error) {
	list := allPods(ctx, c, nil)
	w.pods = list.Pods
	if w.from, err = find(c, list.Pods, args[0]); err != nil {
		return w, elsewhere(err, args[0], list.Answers)
	}
	w.missing = client.Failed(list.Answers)
	if w.from.node == "" {
		return w, fmt.Errorf("%s is neither a pod nor a node: it cannot be the source", args[0])
	}
	if w.agent, err = c.Agent(w.from.node); err != nil {
		return w, err
	}
	if w.to, err = f.destination(ctx, c, w.agent, list.Pods, args[1]); err != nil {
		return w, elsewhere(err, args[1], list.Answers)
	}
	switch {
	case f.proto == "" && f.port != 0:
		f.proto = "tcp"
	case f.proto == "":
		f.proto = "icmp"
	}
	return w, nil
}

// request returns the probe from one end to the other.
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
		Use: "ping FROM TO", Short: "Send probes from a pod or node to a pod, node, service or " +
			"address", Args: cobra.ExactArgs(2),
		Long:              placesHelp,
		ValidArgsFunction: n.completePods,
		Example: "  contiv-netctl ping web-1 kube-system/coredns-abc --proto udp --port 53\n  contiv-netctl ping " +
			"worker-1 10.96.0.1:443\n  contiv-netctl ping web-1 svc/db",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			w, err := f.ends(ctx, c, args)
			if err != nil {
				return err
			}
			_, dst, err := pair(w.from, w.to, f.ipv6)
			if err != nil {
				return err
			}
			req := f.request(w.from, dst)
			req.Count, req.PauseMs, req.Size = count, interval, size
			var res diag.ProbeResult
			if err := w.agent.Post(ctx, diag.ProbePath, req, &res); err != nil {
				return err
			}
			if err := n.printPing(cmd.OutOrStdout(), w.from, w.to, dst, f, &res); err != nil {
				return err
			}
			if res.Received < res.Sent {
				return errFound
			}
			return nil
		}),
	}
	f.register(cmd)
	cmd.Flags().IntVarP(&count, "count", "c", count, "number of probes")
	cmd.Flags().IntVar(&interval, "interval", interval, "milliseconds between probes")
	cmd.Flags().IntVar(&size, "size", size, "payload of echo requests in bytes")
	return cmd
}

func (n *netctl) printPing(w io.Writer, from, to place, dst netip.Addr, f probeFlags, res *diag.ProbeResult) error {
	if n.format.Structured() {
		return table.Value(w, n.format, res)
	}
	source := "no source address"
	if res.Source.IsValid() {
		source = res.Source.String()
	}
	fmt.Fprintf(w, "%s (%s) → %s (%s), %s\n", from.text, source, to.text, dst, protoText(f))
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
