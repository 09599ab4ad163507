package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/trace"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/ui"
	"contiv.dev/vswitch/internal/version"
)

func (n *netctl) ui() *cobra.Command {
	listen, allowTrace := "", false
	cmd := &cobra.Command{
		Use: "ui", Short: "Serve a page that shows the cluster: topology, pods, services, drops, events and traces", Args: cobra.NoArgs,
		Long: "ui serves a page on a loopback address of this machine and prints its address, with a key, for a browser. The page runs for as long\n" +
			"as the command; nothing is installed in the cluster. The page sends only requests that read. --allow-trace lets it send a packet, as\n" +
			"contiv-netctl trace does.\nFrom another machine: ssh -L 8080:127.0.0.1:8080 NODE contiv-netctl ui --listen 127.0.0.1:8080",
		Example: "  contiv-netctl ui\n  contiv-netctl ui --listen 127.0.0.1:8080 --allow-trace\n  contiv-netctl ui --server 10.99.0.101:9999 --ca ca.crt " +
			"--token-file read-token",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := ui.Config{Listen: listen, Version: version.Get().String(), Open: func(ctx context.Context) (*client.Cluster, error) {
				opts := n.opts
				opts.ReadOnly = true
				return client.Open(ctx, opts)
			}}
			if allowTrace {
				cfg.Trace = n.tracePage
			}
			server, err := ui.New(cfg)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Open %s\nThe address has the key to the page; Ctrl-C ends it.\n", server.URL())
			return server.Serve(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback address and port of the page; port 0: a random one")
	cmd.Flags().BoolVar(&allowTrace, "allow-trace", false, "the page may trace: send a packet from a pod and record it (needs full access to the agents)")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("listen", cobra.FixedCompletions([]string{"127.0.0.1:0", "127.0.0.1:8080", "[::1]:8080"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// tracePage traces for the page, like the command trace.
func (n *netctl) tracePage(ctx context.Context, req ui.TraceRequest) (any, error) {
	f := probeFlags{proto: req.Proto, port: req.Port, ipv6: req.IPv6}
	if f.proto != "" && f.proto != "icmp" && f.proto != "tcp" && f.proto != "udp" {
		return nil, fmt.Errorf("protocol %q: use icmp, tcp or udp", req.Proto)
	}
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	c, err := client.Open(ctx, n.opts)
	if err != nil {
		return nil, err
	}
	return follow(ctx, c, f, []string{req.From, req.To}, defaultPackets)
}

// defaultPackets is how many packets of each input VPP records.
const defaultPackets = 200

// follow sends a packet from the first end to the second, records it on its path, and explains the result.
func follow(ctx context.Context, c *client.Cluster, f probeFlags, ends []string, packets int) (*traceReport, error) {
	w, err := f.ends(ctx, c, ends)
	if err != nil {
		return nil, err
	}
	src, dst, err := sourceOf(w.from, w.to, f.ipv6)
	if err != nil {
		return nil, err
	}
	t := &tracer{cluster: c, way: w, flags: f, packets: packets}
	t.report.From, t.report.To = w.from.text, w.to.text
	t.report.Flow = trace.Flow{Source: src, Dest: dst, Proto: f.proto, Port: f.port}
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	return &t.report, nil
}
