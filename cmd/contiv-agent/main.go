// Command contiv-agent is the node agent: it wires pods, connects nodes and programs the dataplane.
//
// main.go has the command; wire.go lists the parts of the agent in the order of their construction.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/daemon"
)

func main() {
	cmd := newCommand()
	cmd.SetArgs(contivArgs(os.Args[1:]))
	daemon.Main(cmd)
}

func newCommand() *cobra.Command {
	opts := defaultOptions()
	cmd := daemon.Command("contiv-agent", "Kubernetes networking on VPP: the agent of one node",
		"contiv-agent connects the pods of a node to the network and programs the node's dataplane: VPP, the Linux kernel or Windows.",
		func(ctx context.Context) error { return run(ctx, opts) }, clusterdb.CheckFlags)
	opts.register(cmd.Flags())
	return cmd
}
