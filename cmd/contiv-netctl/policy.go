package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/table"
)

// policy returns the commands about network policies.
func (n *netctl) policy() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "List network policies, and explain what they allow"}
	cmd.AddCommand(n.policyList(), n.policyShow(), n.policyWhy(), n.policyDrops(), n.policyTry())
	return cmd
}

// policyRow is a policy as one node enforces it.
type policyRow struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Tier      string   `json:"tier,omitempty"`
	Priority  *uint32  `json:"priority,omitempty"`
	Types     []string `json:"types"`
	Enforced  bool     `json:"enforced"`
	Endpoints []string `json:"endpoints"`
	Problems  []string `json:"problems,omitempty"`
}

func (n *netctl) policyList() *cobra.Command {
	return &cobra.Command{
		Use: "ls [NAMESPACE]", Short: "List policies with the pods that they select", Args: cobra.MaximumNArgs(1),
		Long: "ls lists NetworkPolicies and ClusterNetworkPolicies. The latter are in no namespace; the column TIER has their tier and priority.",
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			answers := client.Each(ctx, c, nil, get[[]policyRow]("/contiv/v1/policies"))
			rows := joinPolicies(answers)
			if len(args) > 0 {
				rows = slices.DeleteFunc(rows, func(r policyRow) bool { return r.Namespace != args[0] })
			}
			t := table.Table{Header: []string{"NAMESPACE", "NAME", "TIER", "TYPES", "PODS", "ENFORCED", "PROBLEMS"}}
			for _, r := range rows {
				t.Add(r.Namespace, r.Name, r.tier(), strings.Join(r.Types, ","), fmt.Sprint(len(r.Endpoints)), fmt.Sprint(r.Enforced),
					strings.Join(r.Problems, "; "))
			}
			if err := n.print(cmd, rows, t); err != nil {
				return err
			}
			return warn(cmd, answers)
		}),
	}
}

// tier returns the tier of a policy, with the priority for a ClusterNetworkPolicy.
func (r policyRow) tier() string {
	if r.Priority == nil {
		return r.Tier
	}
	return fmt.Sprintf("%s/%d", r.Tier, *r.Priority)
}

// path returns the identity of a policy.
func (r policyRow) path() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// joinPolicies joins the nodes' views: a policy selects pods of several nodes, and is enforced if all nodes enforce it.
func joinPolicies(answers []client.Answer[[]policyRow]) []policyRow {
	rows := []policyRow{}
	at := map[string]int{}
	for _, a := range answers {
		for _, r := range a.Value {
			i, known := at[r.path()]
			if !known {
				at[r.path()] = len(rows)
				rows = append(rows, r)
				continue
			}
			rows[i].Endpoints = append(rows[i].Endpoints, r.Endpoints...)
			rows[i].Enforced = rows[i].Enforced && r.Enforced
		}
	}
	slices.SortFunc(rows, func(a, b policyRow) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return rows
}

// policyDetail is a policy with the rules of one node.
type policyDetail struct {
	policyRow
	Node    string       `json:"node"`
	Ingress []policyRule `json:"ingress"`
	Egress  []policyRule `json:"egress"`
}

type policyRule struct {
	Origin string `json:"origin"`
	Text   string `json:"text"`
	Sets   []struct {
		ID      string   `json:"id"`
		Meaning string   `json:"meaning"`
		Members []string `json:"members"`
	} `json:"sets,omitempty"`
}

func (n *netctl) policyShow() *cobra.Command {
	return &cobra.Command{
		Long: "show takes a NetworkPolicy with its namespace, or a ClusterNetworkPolicy by its name. Without a namespace, and if\n" +
			"there is no such ClusterNetworkPolicy, it shows the NetworkPolicy of that name in namespace default.",
		Use: "show [NAMESPACE/]NAME", Short: "Show the rules of a policy on each node with pods that it selects", Args: cobra.ExactArgs(1),
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			path := "/contiv/v1/policies/show?policy=" + url.QueryEscape(args[0])
			answers := client.Each(ctx, c, nil, get[policyDetail](path))
			list := []policyDetail{}
			t := table.Table{Header: []string{"NODE", "RULE", "TEXT", "MEMBERS"}, Whole: []string{"RULE", "TEXT", "MEMBERS"}}
			for _, a := range answers {
				a.Value.Node = a.Node
				if a.Err != nil || len(a.Value.Endpoints) == 0 {
					continue
				}
				list = append(list, a.Value)
				for _, r := range slices.Concat(a.Value.Ingress, a.Value.Egress) {
					t.Add(a.Node, r.Origin, r.Text, membersOf(r))
				}
			}
			if err := n.print(cmd, list, t); err != nil {
				return err
			}
			return warn(cmd, answers)
		}),
	}
}

// shownMembers is how many members of a set a table shows.
const shownMembers = 4

func membersOf(r policyRule) string {
	var texts []string
	for _, s := range r.Sets {
		text := strings.Join(s.Members[:min(len(s.Members), shownMembers)], ",")
		if more := len(s.Members) - shownMembers; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// whyRow is the decision of policy about a connection between two addresses.
type whyRow struct {
	Source  string     `json:"source"`
	Dest    string     `json:"dest"`
	Egress  *whyAnswer `json:"egress,omitempty"`
	Ingress *whyAnswer `json:"ingress,omitempty"`
}

type whyAnswer struct {
	Pod     string `json:"pod"`
	Action  string `json:"action"`
	Policy  string `json:"policy,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Because string `json:"because"`
}

func (n *netctl) policyWhy() *cobra.Command {
	protocol, port := "tcp", 0
	cmd := &cobra.Command{
		Use: "why FROM TO", Short: "Explain which policies allow or deny a connection", Args: cobra.ExactArgs(2),
		Long: "why queries the nodes of both pods for the policies that apply to a connection: egress on the sender's node, ingress on the receiver's.\n" +
			"FROM and TO are pods ([NAMESPACE/]NAME) or addresses. For a service, name a backend. The exit status is 1 if the connection is denied.",
		ValidArgsFunction: n.completePods,
		RunE: n.run(func(ctx context.Context, cmd *cobra.Command, c *client.Cluster, args []string) error {
			q := url.Values{"from": {args[0]}, "to": {args[1]}, "protocol": {protocol}}
			if port != 0 {
				q.Set("port", fmt.Sprint(port))
			}
			answers := client.Each(ctx, c, nil, get[[]whyRow]("/contiv/v1/policies/why?"+q.Encode()))
			rows := joinWhy(answers)
			t, denied := whyTable(rows)
			if err := n.print(cmd, rows, t); err != nil {
				return err
			}
			if err := warn(cmd, answers); err != nil {
				return err
			}
			if denied {
				return errFound
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&protocol, "protocol", protocol, "tcp, udp, sctp or icmp")
	cmd.Flags().IntVar(&port, "port", 0, "destination port")
	return cmd
}

// joinWhy joins both directions. They may come from different nodes.
func joinWhy(answers []client.Answer[[]whyRow]) []whyRow {
	rows := []whyRow{}
	for _, a := range answers {
		for _, r := range a.Value {
			i := slices.IndexFunc(rows, func(x whyRow) bool { return x.Source == r.Source && x.Dest == r.Dest })
			if i < 0 {
				rows = append(rows, r)
				continue
			}
			if rows[i].Egress == nil {
				rows[i].Egress = r.Egress
			}
			if rows[i].Ingress == nil {
				rows[i].Ingress = r.Ingress
			}
		}
	}
	return rows
}

func whyTable(rows []whyRow) (t table.Table, denied bool) {
	t.Header = []string{"FROM", "TO", "DIRECTION", "POD", "ACTION", "POLICY", "RULE", "BECAUSE"}
	for _, r := range rows {
		for _, d := range []struct {
			name   string
			answer *whyAnswer
		}{{"egress", r.Egress}, {"ingress", r.Ingress}} {
			if d.answer == nil {
				t.Add(r.Source, r.Dest, d.name, "", "allow", "", "", "it is not a pod that a node has connected")
				continue
			}
			denied = denied || d.answer.Action != "allow"
			t.Add(r.Source, r.Dest, d.name, d.answer.Pod, d.answer.Action, d.answer.Policy, d.answer.Rule, d.answer.Because)
		}
	}
	return t, denied
}
