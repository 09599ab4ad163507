package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/plugins/nodesync"
)

// The types of the agents' answers are in cmd/contiv-netctl/internal/state, which the page shares.
type (
	podRow     = state.Pod
	podList    = state.PodList
	ipamRow    = state.IPAM
	serviceRow = state.Service
)

const (
	podsPath     = state.PodsPath
	servicesPath = state.ServicesPath
)

func get[T any](path string) func(context.Context, *client.Agent) (T, error) {
	return state.Get[T](path)
}

// allPods requests the pods of nodes; of all nodes, if none is given.
func allPods(ctx context.Context, c *client.Cluster, nodes []string) podList {
	return state.Pods(ctx, c, nodes)
}

// nodeFlag adds the flag --node to a command that queries one node or all.
func (n *netctl) nodeFlag(cmd *cobra.Command, into *string, help string) {
	cmd.Flags().StringVar(into, "node", "", help)
	_ = cmd.RegisterFlagCompletionFunc("node", n.completeNodes) // fails only for a flag that does not exist
}

// nodeRow is a node as the cluster and as its own agent report it.
type nodeRow struct {
	nodesync.NodeReport
	Agent *diag.AgentInfo `json:"agent,omitempty"`
	Error string          `json:"error,omitempty"`
}

func (n *netctl) nodes() *cobra.Command {
	return n.watchable(&cobra.Command{
		Use: "nodes", Short: "List the nodes with the state of their agents", Args: cobra.NoArgs,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, _ []string) error {
			infos := map[string]client.Answer[diag.AgentInfo]{}
			for _, a := range client.Each(ctx, c, nil, get[diag.AgentInfo](diag.AgentPath)) {
				infos[a.Node] = a
			}
			t := table.Table{Header: []string{"ID", "NAME", "STATE", "VPP-IP", "MGMT-IP", "DATAPLANE", "TRANSPORT", "READY", "VERSION",
				"+STARTED", "+COMMIT"}}
			var rows []nodeRow
			for _, node := range c.Nodes().Nodes {
				row := nodeRow{NodeReport: node}
				cells := []string{fmt.Sprint(node.ID), node.Name, node.State, strings.Join(node.VPPIPs, ","), strings.Join(node.MgmtIPs,
					",")}
				a, queried := infos[node.Name]
				switch {
				case !queried:
					cells = append(cells, "", "", "", node.Version)
				case a.Err != nil:
					row.Error = a.Err.Error()
					cells = append(cells, "", "", "no: "+state.NoAnswer(a.Err), node.Version)
				default:
					row.Agent = &a.Value
					ready := "yes"
					if len(a.Value.Problems) > 0 {
						ready = "no: " + strings.Join(a.Value.Problems, "; ")
					}
					cells = append(cells, a.Value.Dataplane, a.Value.Transport, ready, a.Value.Version, a.Value.Started, a.Value.Commit)
				}
				rows = append(rows, row)
				t.Add(cells...)
			}
			if err := n.print(cmd, rows, t); err != nil {
				return err
			}
			if stale := c.Nodes().Stale; stale != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "contiv-netctl: "+stale)
			}
			for key, problem := range c.Nodes().Broken {
				fmt.Fprintf(cmd.ErrOrStderr(), "contiv-netctl: record %s: %s\n", key, problem)
			}
			return nil
		}),
	})
}

func (n *netctl) pods() *cobra.Command {
	return n.watchable(&cobra.Command{
		Use: "pods [NODE]", Short: "List the pods that are " +
			"connected", Args: cobra.MaximumNArgs(1), ValidArgsFunction: n.completeNodes,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			if err := c.Check(args); err != nil {
				return err
			}
			list := allPods(ctx, c, args)
			t := table.Table{Header: []string{"NAMESPACE", "NAME", "NODE", "IP", "INTERFACE", "CONTAINER", "+NETNS", "+CURRENT"}}
			for _, p := range list.Pods {
				var ips []string
				for _, a := range p.Addresses {
					ips = append(ips, a.Addr().String())
				}
				t.Add(p.Namespace, p.Name, p.Node, strings.Join(ips, ","), p.Interface, p.ContainerID[:min(13, len(p.ContainerID))],
					p.Netns, fmt.Sprint(p.Current))
			}
			if err := n.print(cmd, list.Pods, t); err != nil {
				return err
			}
			return warn(cmd, list.Answers)
		}),
	})
}

func (n *netctl) ipam() *cobra.Command {
	return n.watchable(&cobra.Command{
		Use: "ipam [NODE]", Short: "Show the nodes' subnets and their " +
			"usage", Args: cobra.MaximumNArgs(1), ValidArgsFunction: n.completeNodes,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			if err := c.Check(args); err != nil {
				return err
			}
			answers := client.Each(ctx, c, args, state.QueryIPAM)
			t := table.Table{Header: []string{"ID", "NODE", "NODE-IP", "POD-SUBNET", "USED", "FREE", "VPP-HOST-NETWORK"}}
			rows := []ipamRow{}
			for _, a := range answers {
				if a.Err != nil {
					continue
				}
				rows = append(rows, a.Value)
				for _, s := range a.Value.Subnets {
					t.Add(fmt.Sprint(a.Value.NodeID), a.Value.NodeName, a.Value.NodeIP, s.Subnet, fmt.Sprint(s.Used), fmt.Sprint(s.Free),
						a.Value.VppHostNetwork)
				}
			}
			if err := n.print(cmd, rows, t); err != nil {
				return err
			}
			return warn(cmd, answers)
		}),
	})
}

func (n *netctl) services() *cobra.Command {
	node := ""
	cmd := &cobra.Command{
		Use: "services [NAMESPACE[/NAME]]", Short: "List the services in a node's dataplane", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: n.completeServices,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			agent, err := c.Agent(node)
			if err != nil {
				return err
			}
			q := url.Values{}
			if len(args) > 0 {
				namespace, name, _ := strings.Cut(args[0], "/")
				q.Set("namespace", namespace)
				q.Set("name", name)
			}
			var rows []serviceRow
			if err := agent.Get(ctx, servicesPath+"?"+q.Encode(), &rows); err != nil {
				return err
			}
			if len(rows) == 0 && len(args) > 0 {
				return fmt.Errorf("node %s serves no service %s; contiv-netctl services lists those that it serves (headless services have no address)",
					agent.Name, args[0])
			}
			t := table.Table{Header: []string{"NAMESPACE", "NAME", "CLUSTER-IP", "PORT", "NODE-PORT", "BACKENDS", "+EXTERNAL",
				"+EXTERNAL-POLICY", "+INTERNAL-POLICY"}}
			for _, s := range rows {
				for _, p := range s.Ports {
					nodePort := ""
					if p.NodePort != 0 {
						nodePort = fmt.Sprint(p.NodePort)
					}
					t.Add(s.Namespace, s.Name, strings.Join(s.ClusterIPs, ","), fmt.Sprintf("%d/%s", p.Port, p.Protocol), nodePort,
						shortened(p.Backends, n.most(4)), strings.Join(slices.Concat(s.ExternalIPs, s.LoadBalancerIPs), ","), s.TrafficPolicy,
						s.InternalTrafficPolicy)
				}
			}
			return n.print(cmd, rows, t)
		}),
	}
	n.nodeFlag(cmd, &node, "the node to query (default: this one)")
	return n.watchable(cmd)
}

// most returns how many members of a list a table shows.
func (n *netctl) most(narrow int) int {
	if n.format == table.Wide {
		return math.MaxInt
	}
	return narrow
}

// shortened joins the first few members.
func shortened(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ",")
	}
	return fmt.Sprintf("%s,… (%d)", strings.Join(list[:most], ","), len(list))
}

func (n *netctl) vppcli() *cobra.Command {
	write := false
	cmd := &cobra.Command{
		Use: "vppcli NODE COMMAND...", Short: "Run a command of VPP's debug CLI on a node", Args: cobra.MinimumNArgs(2),
		Long: "vppcli runs a command of VPP's debug CLI, one that only reads unless --write is given and the agent allows it " +
			"(--vpp-cli-write). Words have to be written in full.\nNODE may be \"-\" for this node.",
		Example:           "  contiv-netctl vppcli worker-1 show interface\n  contiv-netctl vppcli - show ip fib table 1 10.1.2.0/24",
		ValidArgsFunction: n.completeNodes,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			agent, err := c.Agent(strings.TrimPrefix(args[0], "-"))
			if err != nil {
				return err
			}
			var reply diag.CLIReply
			if err := agent.Post(ctx, diag.CLIPath, diag.CLIRequest{Command: strings.Join(args[1:], " "), Write: write},
				&reply); err != nil {
				return err
			}
			if n.format.Structured() {
				return table.Value(cmd.OutOrStdout(), n.format, reply)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), reply.Output)
			return err
		}),
	}
	cmd.Flags().BoolVar(&write, "write", false, "the command may change VPP's state")
	return cmd
}

// value is a value of the scheduler's dump.
type value struct {
	Key     string          `json:"key"`
	Kind    string          `json:"kind"`
	Parent  string          `json:"parent,omitempty"`
	State   string          `json:"state"`
	Desired json.RawMessage `json:"desired,omitempty"`
	Applied json.RawMessage `json:"applied,omitempty"`
}

// compact returns JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

func (n *netctl) dump() *cobra.Command {
	node, q, full := "", map[string]*string{}, false
	cmd := &cobra.Command{
		Use: "dump [KIND]", Short: "Show the values that a node has programmed", Args: cobra.MaximumNArgs(1),
		Example: "  contiv-netctl dump vpp-route --node worker-1\n  contiv-netctl dump --state FAILED,PENDING\n  contiv-netctl " +
			"dump -o yaml --key-prefix config/vpp/v2/interfaces/",
		ValidArgsFunction: n.completeKinds,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			agent, err := c.Agent(node)
			if err != nil {
				return err
			}
			query := url.Values{}
			for name, v := range q {
				query.Set(name, *v)
			}
			if len(args) > 0 {
				query.Set("kind", args[0])
			}
			values := []value{}
			if err := agent.Get(ctx, "/scheduler/dump?"+query.Encode(), &values); err != nil {
				return err
			}
			t := table.Table{Header: []string{"KIND", "STATE", "KEY", "VALUE"}, Whole: []string{"KEY", "VALUE"}}
			for _, v := range values {
				text := compact(v.Applied)
				if text == "" {
					text = compact(v.Desired)
				}
				if !full && n.format != table.Wide {
					text = logs.Short(text, 100)
				}
				t.Add(v.Kind, v.State, v.Key, text)
			}
			return n.print(cmd, values, t)
		}),
	}
	for name, help := range map[string]string{
		"state": "only values in these states (CONFIGURED, PENDING, FAILED, …)", "key-prefix": "only keys with this prefix",
		"view": "desired, applied or both",
	} {
		q[name] = cmd.Flags().String(name, "", help)
	}
	cmd.Flags().BoolVar(&full, "full", false, "do not cut values in the table")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(valueStates(), cobra.ShellCompDirectiveNoFileComp))
	n.nodeFlag(cmd, &node, "which node (default: this one)")
	return n.watchable(cmd)
}

// event is a record of the agent's event history.
type event struct {
	SeqNum          uint64
	ProcessingStart time.Time
	ProcessingEnd   time.Time
	Name            string
	Description     string
	Method          string
	Error           string `json:",omitempty"`
}

func (n *netctl) events() *cobra.Command {
	node, last, detail := "", 20, false
	cmd := &cobra.Command{
		Use: "events [NUMBER]", Short: "Show the events that a node's agent has processed", Args: cobra.MaximumNArgs(1),
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			agent, err := c.Agent(node)
			if err != nil {
				return err
			}
			query := "last=" + strconv.Itoa(last)
			if len(args) > 0 {
				query, detail = "seq-num="+url.QueryEscape(args[0]), true
			}
			path := "/controller/event-history?" + query
			if detail && !n.format.Structured() {
				text, err := agent.GetText(ctx, path+"&format=text")
				if err != nil {
					return err
				}
				_, err = io.WriteString(cmd.OutOrStdout(), text)
				return err
			}
			var raw json.RawMessage
			if err := agent.Get(ctx, path, &raw); err != nil {
				return err
			}
			if n.format.Structured() {
				return table.Value(cmd.OutOrStdout(), n.format, raw)
			}
			return n.printEvents(cmd, raw)
		}),
	}
	cmd.Flags().IntVar(&last, "last", last, "maximum number of events")
	cmd.Flags().BoolVar(&detail, "detail", false, "also show the work of each plugin, and the operations")
	n.nodeFlag(cmd, &node, "which node (default: this one)")
	return n.watchable(cmd)
}

func (n *netctl) printEvents(cmd *cobra.Command, raw json.RawMessage) error {
	var records []event
	if err := json.Unmarshal(raw, &records); err != nil {
		return fmt.Errorf("event history: %w", err)
	}
	t := table.Table{Header: []string{"NUMBER", "TIME", "TOOK", "METHOD", "EVENT", "ERROR"}, Whole: []string{"EVENT"}}
	for _, r := range records {
		took := r.ProcessingEnd.Sub(r.ProcessingStart).Round(10 * time.Microsecond)
		problem, _, _ := strings.Cut(r.Error, "\n")
		t.Add(fmt.Sprint(r.SeqNum), r.ProcessingStart.Local().Format("15:04:05.000"), took.String(), r.Method, r.Description, problem)
	}
	return n.print(cmd, nil, t)
}
