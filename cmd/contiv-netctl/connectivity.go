package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/internal/connectivity"
	"contiv.dev/vswitch/internal/diag"
)

// The outcomes of a test.
const (
	passed  = "ok"
	failed  = "failed"
	skipped = "skipped"
)

// testResult is the outcome of one test.
type testResult struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
}

// connectivityReport is the answer of connectivity test.
type connectivityReport struct {
	Nodes   []string     `json:"nodes"`
	Results []testResult `json:"results"`
	Passed  int          `json:"passed"`
	Failed  int          `json:"failed"`
	Skipped int          `json:"skipped"`
}

// connectivityOptions holds the flags of connectivity test.
type connectivityOptions struct {
	nodes   []string
	outside string
	bulkMB  int64
	dns     string
}

func (n *netctl) connectivity() *cobra.Command {
	cmd := &cobra.Command{Use: "connectivity", Short: "Test the network with real packets"}
	o := &connectivityOptions{}
	test := &cobra.Command{
		Use: "test", Short: "Send packets between pods that the test creates", Args: cobra.NoArgs,
		Long: "connectivity test creates pods on up to two nodes, without images, and sends real packets: between pods on one node and on two, " +
			"from pods to nodes and back, to services and DNS, to an address outside of the cluster, packets of the full MTU, and bulk data that is " +
			"compared, in all address families. It removes its pods, even if it is interrupted.\nThe exit status is 1 when a test failed.",
		Example: "  contiv-netctl connectivity test\n  contiv-netctl connectivity test --nodes worker-1,worker-2 --outside 192.0.2.1:443",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("timeout") {
				n.timeout = 3 * time.Minute
			}
			return n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, _ []string) error {
				return n.testConnectivity(ctx, cmd, c, o)
			})(cmd, args)
		},
	}
	test.Flags().StringSliceVar(&o.nodes, "nodes", nil, "one or two nodes (default: this node and another ready one)")
	test.Flags().StringVar(&o.outside, "outside", "", "ADDR:PORT outside of the cluster that accepts TCP connections (default: not tested)")
	test.Flags().Int64Var(&o.bulkMB, "bulk", 20, "MB to transfer in each bulk test; 0: none")
	test.Flags().StringVar(&o.dns, "dns-name", "kubernetes.default.svc.cluster.local.", "name to resolve by the cluster's DNS")
	_ = test.RegisterFlagCompletionFunc("nodes", n.completeNodes) // fails only for a flag that does not exist
	cmd.AddCommand(test)
	return cmd
}

func (n *netctl) testConnectivity(ctx context.Context, cmd *cobra.Command, c *client.Cluster, o *connectivityOptions) (err error) {
	t := &connectivityTest{opts: o, cluster: c, progress: cmd.OutOrStdout(), color: n.colors(cmd.OutOrStdout())}
	if n.format.Structured() {
		t.progress = cmd.ErrOrStderr()
		t.color = n.colors(t.progress)
	}
	// Pods are removed in any case.
	defer func() { err = errors.Join(err, t.clean(context.WithoutCancel(ctx))) }()
	if err := t.prepare(ctx); err != nil {
		return err
	}
	t.run(ctx)
	if n.format.Structured() {
		if err := table.Value(cmd.OutOrStdout(), n.format, t.report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "\n%s: %d passed, %d failed, %d skipped\n", count(len(t.report.Results), "test"), t.report.Passed,
			t.report.Failed, t.report.Skipped)
	}
	if t.report.Failed > 0 {
		return errFound
	}
	return ctx.Err()
}

// side is a test pod and its node.
type side struct {
	agent *client.Agent
	node  place
	pod   connectivity.Pod
}

// addr returns the pod's address of a family, or the zero address.
func (s *side) addr(ipv6 bool) netip.Addr { return ofFamily(s.pod.Addresses, ipv6) }

func ofFamily(list []netip.Addr, ipv6 bool) netip.Addr {
	if i := slices.IndexFunc(list, func(a netip.Addr) bool { return a.Is6() == ipv6 }); i >= 0 {
		return list[i]
	}
	return netip.Addr{}
}

// connectivityTest is one run of the tests.
type connectivityTest struct {
	opts     *connectivityOptions
	cluster  *client.Cluster
	progress io.Writer
	color    bool
	report   connectivityReport
	made     []*side // pods that must be removed

	client, same, other *side  // other is nil with one node
	alone               string // why only one node is tested
}

// prepare selects the nodes and makes the pods.
func (t *connectivityTest) prepare(ctx context.Context) error {
	nodes, err := t.pick(ctx)
	if err != nil {
		return err
	}
	t.report.Nodes = nodes
	fmt.Fprintf(t.progress, "making pods on %s\n", strings.Join(nodes, " and "))
	id := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().Unix()%100000)
	if t.client, err = t.make(ctx, nodes[0], "client-"+id); err != nil {
		return err
	}
	if t.same, err = t.make(ctx, nodes[0], "same-"+id); err != nil {
		return err
	}
	if len(nodes) > 1 {
		t.other, err = t.make(ctx, nodes[1], "other-"+id)
	}
	return err
}

// pick returns the given nodes, or this node and another one that is ready.
func (t *connectivityTest) pick(ctx context.Context) ([]string, error) {
	if len(t.opts.nodes) > 2 {
		return nil, fmt.Errorf("--nodes %s: give one or two", strings.Join(t.opts.nodes, ","))
	}
	if t.alone = "--nodes names one node"; len(t.opts.nodes) > 0 {
		return t.opts.nodes, t.cluster.Check(t.opts.nodes)
	}
	_, info := t.cluster.First()
	nodes := []string{info.Node}
	var why error
	for _, a := range client.Each(ctx, t.cluster, nil, get[diag.AgentInfo](diag.AgentPath)) {
		if len(nodes) < 2 && a.Node != info.Node && a.Err == nil && len(a.Value.Problems) == 0 {
			nodes = append(nodes, a.Node)
		}
		if client.IsLocalOnly(a.Err) {
			why = a.Err
		}
	}
	if t.alone = "there is one node"; len(t.cluster.Names()) > 1 {
		t.alone = "no other node is ready and responds"
	}
	if why != nil {
		t.alone = "no other node was queried: " + why.Error()
	}
	return nodes, nil
}

func (t *connectivityTest) make(ctx context.Context, node, name string) (*side, error) {
	agent, err := t.cluster.Agent(node)
	if err != nil {
		return nil, err
	}
	s := &side{agent: agent}
	for _, r := range t.cluster.Nodes().Nodes {
		if r.Name == node && r.State == "claimed" {
			s.node = nodePlace(node, append(slices.Clone(r.MgmtIPs), r.VPPIPs...))
		}
	}
	if err := agent.Post(ctx, connectivity.Path, map[string]string{"name": name}, &s.pod); err != nil {
		return nil, err
	}
	t.made = append(t.made, s)
	return s, nil
}

// clean removes the pods.
func (t *connectivityTest) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var errs []error
	for _, s := range t.made {
		errs = append(errs, s.agent.Post(ctx, connectivity.DeletePath, map[string]string{"name": s.pod.Name}, nil))
	}
	t.made = nil
	return errors.Join(errs...)
}

// add reports the outcome of a test: err is why it failed, text what was measured.
func (t *connectivityTest) add(name, text string, err error) {
	r := testResult{Name: name, Outcome: passed, Text: text}
	mark := "✓"
	switch {
	case errors.Is(err, errSkipped):
		r.Outcome, r.Text, mark = skipped, text, "!"
		t.report.Skipped++
	case err != nil:
		r.Outcome, r.Text, mark = failed, err.Error(), "✗"
		t.report.Failed++
	default:
		t.report.Passed++
	}
	t.report.Results = append(t.report.Results, r)
	if t.color {
		mark = table.Paint(mark)
	}
	fmt.Fprintf(t.progress, "%s %-58s %s\n", mark, r.Name, r.Text)
}

var errSkipped = errors.New("skipped")
