// Command contiv-ksr writes the state of Kubernetes to etcd, where agents with --kubernetes=relay read it. Two or three replicas are enough
// for any number of nodes; one of them is the leader.
//
// main.go has the command; wire.go lists its parts in the order of their construction.
package main

import (
	"context"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/daemon"
)

func main() { daemon.Main(newCommand()) }

func newCommand() *cobra.Command {
	opts := defaultOptions()
	cmd := daemon.Command("contiv-ksr", "Kubernetes networking on VPP: brings the state of Kubernetes to etcd",
		"contiv-ksr watches the Kubernetes API server and writes what agents need of it to etcd, so that agents with\n"+
			"--kubernetes=relay need not watch the API server themselves. Run two or three of it; one of them leads.",
		func(ctx context.Context) error { return run(ctx, opts) }, clusterdb.CheckFlags)
	opts.register(cmd.Flags())
	return cmd
}
