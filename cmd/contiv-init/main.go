// Command contiv-init has the commands that the manifests run beside VPP and the agent: pre-flight, the CNI installer, etcd's certificates,
// and the starters of etcd and of the agent. The starters look up each other's addresses through the API server, because neither services nor
// DNS work before the network does.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/internal/environ"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/internal/version"
)

// errLacking means that the node lacks something; the output above it says what.
var errLacking = errors.New("this node lacks what the vswitch needs; see above")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "contiv-init:", err)
	if errors.Is(err, errLacking) {
		os.Exit(3)
	}
	os.Exit(1)
}

// common holds the options of all commands.
type common struct {
	kubeconfig string
	server     string
	node       string
	namespace  string
	log        *slog.Logger
}

func newCommand() *cobra.Command {
	c := &common{log: logs.New(os.Stderr, slog.LevelInfo, nil)}
	cmd := &cobra.Command{
		Use: "contiv-init", Short: "Prepares a node for the vswitch: pre-flight checks, CNI plugin, etcd", SilenceUsage: true, SilenceErrors: true,
		Version: version.Get().String(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() == "agent" { // this command becomes the agent, and has the agent's variables, too: the agent checks them
				return nil
			}
			return environ.Check(nil, os.Environ())
		},
	}
	cmd.SetVersionTemplate(version.Template)
	f := cmd.PersistentFlags()
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file for the API server (default: the pod's service account)")
	f.StringVar(&c.server, "kubernetes-server", os.Getenv("CONTIV_KUBERNETES_SERVER"),
		"URL of the API server, for a node on which "+
			"service addresses do not work yet")
	f.StringVar(&c.node, "node-name", os.Getenv("CONTIV_NODE_NAME"), "name of this node")
	f.StringVar(&c.namespace, "namespace", os.Getenv("CONTIV_NAMESPACE"), "namespace of the vswitch")
	cmd.AddCommand(preflightCommand(c), cniCommand(c), uninstallCommand(c), certsCommand(c), etcdCommand(c), agentCommand(c),
		copyCommand())
	return cmd
}

// client makes a client of the API server.
func (c *common) client() (*kube.Client, error) {
	return kube.NewClient(kube.Config{Kubeconfig: c.kubeconfig, Server: c.server, UserAgent: "contiv-init"})
}

// nodeName returns the node's name; the default is the host name.
func (c *common) nodeName() (string, error) {
	if c.node != "" {
		return c.node, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("host name: %w; set --node-name", err)
	}
	return name, nil
}
