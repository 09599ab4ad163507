package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-init/internal/preflight"
	"contiv.dev/vswitch/cmd/internal/vppsup"
	"contiv.dev/vswitch/dataplane/links"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/plugins/contivconf/uplink"
)

type preflightOptions struct {
	*common
	dataplane string
	config    string
	rest      string
	report    bool
	relay     bool  // the node's account may not list network policies
	limit     int64 // MB
	wants     preflight.Wants
	places    preflight.Places
}

func preflightCommand(c *common) *cobra.Command {
	o := &preflightOptions{common: c, places: preflight.Places{Root: "/"}}
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check whether this node meets the requirements",
		Long: "preflight reports what this node lacks, with the fix. Exit status 0: nothing (there may be warnings); " +
			"3: something without which pods get no network; 1: preflight itself failed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dataplane, "dataplane", "linux", "vpp or linux")
	f.StringVar(&o.config, "config", "", "contiv.conf; without it, all defaults apply")
	f.IntVar(&o.wants.Settings.HeapMB, "heap-mb", 512, "VPP's main heap in MB")
	f.IntVar(&o.wants.Settings.Buffers, "buffers", 65536, "VPP's packet buffers per NUMA node")
	f.StringVar(&o.wants.Hugepages, "hugepages", vppsup.HugepagesAuto, "packet buffers in hugepages: on, off or auto")
	f.Int64Var(&o.limit, "hugepages-limit-mb", -1, "how much of the node's hugepages VPP's container may use; -1: no limit")
	f.StringVar(&o.rest, "http", "127.0.0.1:9999", "address of the agent's REST API")
	f.StringVar(&o.places.CNIConfDir, "cni-conf-dir", "/etc/cni/net.d", "directory of the runtime's CNI configurations")
	f.StringVar(&o.wants.Conflist, "conflist", "10-contiv.conflist", "name of our CNI configuration file")
	f.StringVar(&o.places.AgentSocket, "agent-socket", "/run/contiv/rest.sock", "the agent's socket, to detect a running agent")
	f.StringVar(&o.places.VPPSocket, "vpp-socket", "/run/vpp/api.sock", "VPP's socket, to detect a running VPP")
	f.BoolVar(&o.relay, "relay", false, "the agent reads the state of Kubernetes from contiv-ksr: do not list network policies, because this node's account may not")
	f.BoolVar(&o.report, "report", false, "report to the API server: an Event, and the condition "+conditionPreflight+" of the node")
	return cmd
}

func (o *preflightOptions) run(cmd *cobra.Command) error {
	if err := o.complete(); err != nil {
		return err
	}
	facts := preflight.Gather(o.places)
	var err error
	if facts.Features, err = preflight.Probe(cmd.Context(), o.log); err != nil {
		return err
	}
	if err := o.gatherNetworks(cmd.Context(), &facts); err != nil {
		return err
	}
	facts.Policies = o.anyPolicy(cmd.Context())
	found := preflight.Check(facts, o.wants)
	preflight.Print(cmd.OutOrStdout(), found)
	preflight.PrintPassed(cmd.OutOrStdout(), o.wants, found)
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

// anyPolicy queries whether the API server has network policies. It matters on VPP only. With a relay the node has no right to list them.
func (o *preflightOptions) anyPolicy(ctx context.Context) bool {
	if !o.report || o.relay || !o.wants.VPP {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	client, err := o.client()
	if err != nil {
		return false // report logs it
	}
	any, err := client.AnyPolicy(ctx)
	if err != nil {
		o.log.Debug("whether there are network policies is not known", "error", err)
	}
	return any
}

// complete derives from the flags and contiv.conf what the node must be able to run.
func (o *preflightOptions) complete() error {
	switch o.dataplane {
	case "vpp":
		o.wants.VPP = true
	case "linux":
	default:
		return fmt.Errorf("--dataplane %q: use vpp or linux", o.dataplane)
	}
	name, err := o.nodeName()
	if err != nil {
		return err
	}
	env := contivconf.Env{NodeName: name, HasVhostNet: func() bool {
		_, err := os.Stat(filepath.Join(o.places.Root, "dev/vhost-net"))
		return err == nil
	}}
	conf := contivconf.Default(env)
	if o.config != "" {
		if conf, err = conffile.LoadFile(o.config, env); err != nil {
			return err
		}
	}
	o.wants.Config = conf
	o.wants.HugepageLimit = o.limit << 20
	o.wants.NICs = vppsup.NICsOf(conf.Node())
	o.wants.LinuxNIC = strings.TrimPrefix(conf.Node().MainVPPInterface.InterfaceName, "host-")
	o.wants.VXLAN = conf.Routing().NodeToNodeTransport == contivconf.TransportVXLAN
	rest, err := netip.ParseAddrPort(o.rest)
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	o.wants.Ports = []preflight.Port{{Number: int(rest.Port()), For: "the agent's REST API", Flag: "agent.restPort"}}
	return nil
}

// gatherNetworks reads the node's NICs and networks from the kernel.
func (o *preflightOptions) gatherNetworks(ctx context.Context, f *preflight.Facts) error {
	monitor := links.NewHostMonitor(o.log)
	nics, err := monitor.NICs(ctx)
	if err != nil {
		return err
	}
	for _, n := range nics {
		f.NICsOfHost = append(f.NICsOfHost, uplink.NIC(n))
	}
	networks, err := monitor.Networks(ctx)
	for _, n := range networks {
		f.Networks = append(f.Networks, contivconf.HostNetwork{Interface: n.Link, Address: n.Prefix, Dummy: n.Dummy})
	}
	return err
}
