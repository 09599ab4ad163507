// Command kubectl-contiv is the plugin `kubectl contiv`: contiv-netctl for users that have a kubeconfig and no shell on a node. It runs
// contiv-netctl in a pod of an agent, by `kubectl exec`, so it needs no port of the cluster and no rights except pods/exec, and it always has
// the version of the cluster.
//
//	kubectl contiv [--context NAME] [--kubeconfig FILE] [-n kube-system] [--on NODE] COMMAND...
//
// Flags before the command are for kubectl, all others for contiv-netctl. Commands that write a file write it in the pod: `report -f -`
// writes to standard output.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/version"
)

// agentLabel selects the pods of agents (k8s/contiv-vpp/templates/agent.yaml).
const agentLabel = "app.kubernetes.io/name in (contiv-agent-linux, contiv-agent-vpp)"

const usage = `Run contiv-netctl in the cluster of your kubeconfig.

Usage:
  kubectl contiv [--context NAME] [--kubeconfig FILE] [-n NAMESPACE] [--on NODE] COMMAND [ARGUMENTS]

Flags:
      --context NAME      context of the kubeconfig
      --kubeconfig FILE   kubeconfig
  -n, --namespace NAME    namespace of the chart's release (default kube-system)
      --on NODE           run it on this node (default: on a node whose agent is ready)
      --version           version of this plugin; kubectl contiv version has those in the cluster

Commands are those of contiv-netctl: kubectl contiv help. Files are written in the pod: use "report -f - >report.tar.gz".
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		os.Exit(ended.ExitCode()) // contiv-netctl or kubectl has printed the reason
	case err != nil:
		fmt.Fprintln(os.Stderr, "kubectl contiv:", err)
		os.Exit(1)
	}
}

// call is the parsed command line.
type call struct {
	kubectl   []string // flags for kubectl
	namespace string
	node      string
	netctl    []string // command and arguments for contiv-netctl
}

func parse(args []string) (call, error) {
	c := call{namespace: "kube-system"}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, has := strings.Cut(args[0], "=")
		args = args[1:]
		if !slices.Contains([]string{"--context", "--kubeconfig", "-n", "--namespace", "--on"}, name) {
			return c, fmt.Errorf("unknown flag %s before the command; flags of contiv-netctl go behind it (kubectl contiv --help)", name)
		}
		if !has {
			if len(args) == 0 {
				return c, fmt.Errorf("%s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "-n", "--namespace":
			c.namespace = value
		case "--on":
			c.node = value
		default:
			c.kubectl = append(c.kubectl, name+"="+value)
		}
	}
	c.netctl = args
	return c, nil
}

func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"-h", "--help"}, args[0]) {
		_, err := io.WriteString(out, usage)
		return err
	}
	if args[0] == "--version" {
		_, err := fmt.Fprintln(out, "kubectl-contiv", version.Get())
		return err
	}
	c, err := parse(args)
	if err != nil {
		return err
	}
	if len(c.netctl) == 0 {
		return errors.New("name a command, such as status (kubectl contiv --help)")
	}
	pod, err := c.pod(ctx, errs)
	if err != nil {
		return err
	}
	line := append(slices.Clone(c.kubectl), "exec", "-i", "-n", c.namespace, pod, "-c", "agent", "--", "contiv-netctl")
	cmd := exec.CommandContext(ctx, "kubectl", append(line, c.netctl...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return cmd.Run()
}

// podList holds the fields of kubectl's list of pods (core/v1) that are used here.
type podList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// pod returns the agent's pod to use: the one of the named node, or else the first that is ready, or else the first.
func (c call) pod(ctx context.Context, errs io.Writer) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", append(slices.Clone(c.kubectl), "get", "pods", "-n", c.namespace, "-l", agentLabel, "-o", "json")...)
	cmd.Stderr = errs
	data, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("kubectl is not in PATH")
	}
	if err != nil {
		return "", err
	}
	var list podList
	if err := json.Unmarshal(data, &list); err != nil {
		return "", fmt.Errorf("the answer of kubectl get pods: %w", err)
	}
	if len(list.Items) == 0 {
		return "", fmt.Errorf("no pod of an agent (%s) is in namespace %s; name the chart's namespace by -n", agentLabel, c.namespace)
	}
	var nodes []string
	best := ""
	for _, p := range list.Items {
		if c.node != "" && p.Spec.NodeName == c.node {
			return p.Metadata.Name, nil
		}
		nodes = append(nodes, p.Spec.NodeName)
		for _, cond := range p.Status.Conditions {
			if best == "" && cond.Type == "Ready" && cond.Status == "True" {
				best = p.Metadata.Name
			}
		}
	}
	if c.node != "" {
		return "", fmt.Errorf("no agent runs on node %s; agents run on %s", c.node, strings.Join(nodes, ", "))
	}
	if best == "" {
		best = list.Items[0].Metadata.Name
	}
	return best, nil
}
