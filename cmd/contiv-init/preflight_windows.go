package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/windows"

	"contiv.dev/vswitch/cmd/contiv-init/internal/preflight"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
)

type preflightOptions struct {
	*common
	config, confDir, conflist string
	report                    bool
}

func preflightCommand(c *common) *cobra.Command {
	o := &preflightOptions{common: c}
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check whether this node meets the requirements",
		Long: "preflight reports what this node lacks, with the fix. Exit status 0: nothing (there may be warnings); " +
			"3: something without which pods get no network; 1: preflight itself failed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "", "contiv.conf; without it, all defaults apply")
	f.StringVar(&o.confDir, "cni-conf-dir", `C:\Program Files\containerd\cni\conf`, "directory of the runtime's CNI configurations")
	f.StringVar(&o.conflist, "conflist", "10-contiv.conflist", "name of our CNI configuration file")
	f.BoolVar(&o.report, "report", false, "report to the API server: an Event, and the condition "+conditionPreflight+" of the node")
	return cmd
}

func (o *preflightOptions) run(cmd *cobra.Command) error {
	facts, err := o.gather(cmd.Context())
	if err != nil {
		return err
	}
	found := preflight.CheckWindows(facts)
	preflight.Print(cmd.OutOrStdout(), found)
	if o.report {
		// A failure to write to the API server must not stop the node from serving pods.
		if err := report(cmd.Context(), o.common, found); err != nil {
			o.log.Warn("the result cannot be reported to the API server", "error", err)
		}
	}
	if preflight.Failed(found) {
		return errLacking
	}
	return nil
}

func (o *preflightOptions) gather(ctx context.Context) (preflight.WindowsFacts, error) {
	f := preflight.WindowsFacts{Build: windows.RtlGetVersion().BuildNumber, Conflist: o.conflist, Uplink: uplink()}
	name, err := o.nodeName()
	if err != nil {
		return f, err
	}
	conf := contivconf.Default(contivconf.Env{NodeName: name})
	if o.config != "" {
		if conf, err = conffile.LoadFile(o.config, contivconf.Env{NodeName: name}); err != nil {
			return f, err
		}
	}
	f.Overlay, f.VNI = conf.Routing().NodeToNodeTransport == contivconf.TransportVXLAN, conf.Routing().VxlanVNI
	for _, p := range conf.IPAM().PodSubnetCIDR {
		f.IPv4, f.IPv6 = f.IPv4 || p.Addr().Is4(), f.IPv6 || p.Addr().Is6()
	}
	f.Features, f.HNS = preflight.QueryHNS(lifecycle.NewGroup(ctx, o.log), preflight.HNSTimeout, func() (preflight.HNS, error) { return hcn.Open() })
	entries, err := os.ReadDir(o.confDir)
	if err != nil && !os.IsNotExist(err) {
		return f, fmt.Errorf("CNI configurations: %w", err)
	}
	for _, e := range entries {
		f.Conflists = append(f.Conflists, e.Name())
	}
	return f, nil
}

// uplink returns the adapter that has the route to the outside; "": none.
func uplink() string {
	conn, err := net.Dial("udp", "192.0.2.1:9") // sends nothing
	if err != nil {
		return ""
	}
	defer conn.Close()
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	adapters, err := net.Interfaces()
	if !ok || err != nil {
		return ""
	}
	for _, a := range adapters {
		addrs, _ := a.Addrs()
		for _, addr := range addrs {
			if ip, _, err := net.ParseCIDR(addr.String()); err == nil && ip.Equal(local.IP) {
				return a.Name
			}
		}
	}
	return ""
}
