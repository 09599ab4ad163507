package policy

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

const (
	policiesPath = "/contiv/v1/policies"
	policyPath   = "/contiv/v1/policies/show"
	whyPath      = "/contiv/v1/policies/why"
)

func (p *Plugin) serve() {
	if p.HTTPHandlers == nil {
		return
	}
	p.HTTPHandlers.RegisterHTTPHandler(policiesPath, p.servePolicies)
	p.HTTPHandlers.RegisterHTTPHandler(policyPath, p.servePolicy)
	p.HTTPHandlers.RegisterHTTPHandler(whyPath, p.serveWhy)
	p.HTTPHandlers.RegisterHTTPHandler(dropsPath, p.serveDrops)
	p.HTTPHandlers.RegisterHTTPHandler(tryPath, p.serveTry, http.MethodPost)
}

// policyRow is a policy in a list.
type policyRow struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"` // empty for policies without a namespace
	Name      string   `json:"name"`
	Tier      string   `json:"tier,omitempty"`     // of a ClusterNetworkPolicy: Admin or Baseline
	Priority  *uint32  `json:"priority,omitempty"` // of a ClusterNetworkPolicy
	Types     []string `json:"types"`
	Enforced  bool     `json:"enforced"`  // by this dataplane
	Endpoints []string `json:"endpoints"` // pods of this node that it selects
	Problems  []string `json:"problems,omitempty"`
}

// policyDetail is a policy with its rules, as this node enforces it. If it selects no pod of this node, it has no rules here.
type policyDetail struct {
	policyRow
	Ingress []ruleDetail `json:"ingress"`
	Egress  []ruleDetail `json:"egress"`
}

type ruleDetail struct {
	Origin string     `json:"origin"`
	Text   string     `json:"text"`
	Sets   []setEntry `json:"sets,omitempty"`
}

type setEntry struct {
	ID      string   `json:"id"`
	Meaning string   `json:"meaning"`
	Members []string `json:"members"`
}

// whyRow is the decision of policy on a connection between two addresses. A direction is missing if its pod is not on this node.
type whyRow struct {
	Source  netip.Addr `json:"source"`
	Dest    netip.Addr `json:"dest"`
	Egress  *decision  `json:"egress,omitempty"`
	Ingress *decision  `json:"ingress,omitempty"`
}

type decision struct {
	Pod     string `json:"pod"`
	Action  string `json:"action"`
	Policy  string `json:"policy,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Because string `json:"because"`
}

func (p *Plugin) servePolicies(w http.ResponseWriter, _ *http.Request) {
	p.mu.RLock()
	rows := p.rows()
	p.mu.RUnlock()
	rest.WriteJSON(w, http.StatusOK, rows)
}

func (p *Plugin) servePolicy(w http.ResponseWriter, r *http.Request) {
	p.mu.RLock()
	detail, err := p.detail(r.URL.Query().Get("policy"))
	p.mu.RUnlock()
	if err != nil {
		rest.WriteError(w, http.StatusNotFound, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, detail)
}

func (p *Plugin) serveWhy(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	packet, err := packetOf(q.Get("protocol"), q.Get("port"))
	if err != nil {
		rest.WriteError(w, http.StatusBadRequest, err)
		return
	}
	p.mu.RLock()
	rows, err := p.why(q.Get("from"), q.Get("to"), packet)
	p.mu.RUnlock()
	if err != nil {
		rest.WriteError(w, http.StatusNotFound, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, rows)
}

// splitName splits namespace/name; without a namespace it is "default".
func splitName(text string) (namespace, name string) {
	namespace, name, full := strings.Cut(text, "/")
	if !full {
		return "default", namespace
	}
	return namespace, name
}

func packetOf(protocol, port string) (p verdict.Packet, err error) {
	numbers := map[string]model.Protocol{"": model.TCP, "tcp": model.TCP, "udp": model.UDP, "sctp": model.SCTP, "icmp": 1}
	number, known := numbers[strings.ToLower(protocol)]
	if !known {
		return p, fmt.Errorf("protocol %q is not tcp, udp, sctp or icmp", protocol)
	}
	p.Protocol = number
	if port == "" {
		return p, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return p, fmt.Errorf("port %q is not in 1..65535", port)
	}
	p.Port = uint16(n)
	return p, nil
}

func (p *Plugin) rows() []policyRow {
	selected := map[model.PolicyID][]string{}
	for id, e := range p.endpoints {
		seen := map[model.PolicyID]bool{}
		for _, t := range slices.Concat(e.Ingress.Tiers, e.Egress.Tiers) {
			for _, policy := range t.Policies {
				if !seen[policy] {
					seen[policy] = true
					selected[policy] = append(selected[policy], id.String())
				}
			}
		}
	}
	rows := []policyRow{}
	add := func(row policyRow, ingress, egress bool) {
		row.Enforced = p.problems.notEnforced == ""
		if ingress {
			row.Types = append(row.Types, "Ingress")
		}
		if egress {
			row.Types = append(row.Types, "Egress")
		}
		row.Endpoints = append([]string{}, selected[row.id()]...)
		slices.Sort(row.Endpoints)
		rows = append(rows, row)
	}
	for _, obj := range p.objects {
		add(policyRow{Kind: model.KindNetworkPolicy, Namespace: obj.GetNamespace(), Name: obj.GetName(),
			Problems: slices.Concat(obj.GetProblems(), compiler.NotUnderstood(obj))},
			obj.GetIngress(), obj.GetEgress())
	}
	for _, obj := range p.cluster {
		tier, priority := "Admin", obj.GetPriority()
		if obj.GetTier() == kube.ClusterPolicy_BASELINE {
			tier = "Baseline"
		}
		add(policyRow{Kind: clusterKind, Name: obj.GetName(), Tier: tier, Priority: &priority,
			Problems: slices.Concat(obj.GetProblems(), compiler.NotUnderstoodCluster(obj))},
			len(obj.GetIngressRules()) > 0, len(obj.GetEgressRules()) > 0)
	}
	slices.SortFunc(rows, func(a, b policyRow) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return rows
}

// id returns the compiler's ID of a policy.
func (r policyRow) id() model.PolicyID {
	id := model.PolicyID{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	switch r.Tier {
	case "Admin":
		id.Kind = model.KindAdminPolicy
	case "Baseline":
		id.Kind = model.KindBaselinePolicy
	}
	return id
}

// detail finds a policy by namespace/name, or by a name alone: that of a ClusterNetworkPolicy, or of a policy in namespace default.
func (p *Plugin) detail(text string) (*policyDetail, error) {
	rows := p.rows()
	i := slices.IndexFunc(rows, func(r policyRow) bool { return r.Kind == clusterKind && r.Name == text })
	if i < 0 {
		namespace, name := splitName(text)
		i = slices.IndexFunc(rows, func(r policyRow) bool { return r.Kind != clusterKind && r.Namespace == namespace && r.Name == name })
		if i < 0 && !strings.Contains(text, "/") {
			return nil, fmt.Errorf("there is neither a ClusterNetworkPolicy %s nor a NetworkPolicy %s/%s", text, namespace, name)
		} else if i < 0 {
			return nil, fmt.Errorf("there is no NetworkPolicy %s/%s", namespace, name)
		}
	}
	policy := p.policies[rows[i].id()]
	return &policyDetail{rows[i], p.rules(policy.Ingress), p.rules(policy.Egress)}, nil
}

func (p *Plugin) rules(list []model.Rule) []ruleDetail {
	out := []ruleDetail{}
	for i := range list {
		r := ruleDetail{Origin: list[i].Origin, Text: p.text(&list[i])}
		for id := range list[i].Sets {
			entry := setEntry{ID: string(id), Meaning: p.sets[id].Meaning, Members: []string{}}
			for _, m := range p.compiler.Members(id) {
				entry.Members = append(entry.Members, memberText(m))
			}
			r.Sets = append(r.Sets, entry)
		}
		out = append(out, r)
	}
	return out
}

func memberText(m model.Member) string {
	switch {
	case m.Port != 0:
		return fmt.Sprintf("%s %s", netip.AddrPortFrom(m.Net.Addr(), m.Port), m.Protocol)
	case m.Net.IsSingleIP():
		return m.Net.Addr().String()
	}
	return m.Net.String()
}

// text describes a rule in words.
func (p *Plugin) text(r *model.Rule) string {
	text := r.Action.String()
	if r.Protocol != model.AnyProtocol {
		text += " " + r.Protocol.String()
	}
	for i, x := range r.Ports {
		text += []string{" ", ","}[min(i, 1)] + strconv.Itoa(int(x.First))
		if x.Last != x.First {
			text += "-" + strconv.Itoa(int(x.Last))
		}
	}
	for _, c := range []struct {
		word string
		set  model.SetID
	}{{"from", r.Source}, {"to", r.Dest}, {"to", r.DestPort}} {
		if c.set != "" {
			text += " " + c.word + " " + p.sets[c.set].Meaning
		}
	}
	return text
}

// why explains the decision on a connection. from and to are pods (namespace/name) or addresses.
func (p *Plugin) why(from, to string, packet verdict.Packet) ([]whyRow, error) {
	sender, sources, err := p.place(from)
	if err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	receiver, dests, err := p.place(to)
	if err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	rows := []whyRow{}
	for _, src := range sources {
		for _, dst := range dests {
			if src.Is4() != dst.Is4() {
				continue
			}
			packet.Source, packet.Dest = src, dst
			rows = append(rows, whyRow{src, dst, p.decide(sender, sender == receiver, false, packet),
				p.decide(receiver, sender == receiver, true, packet)})
		}
	}
	return rows, nil
}

// place returns a pod with its addresses, or an address with its pod.
func (p *Plugin) place(text string) (id model.EndpointID, addrs []netip.Addr, err error) {
	if a, err := netip.ParseAddr(text); err == nil {
		id, _ = p.compiler.Owner(a.Unmap())
		return id, []netip.Addr{a.Unmap()}, nil
	}
	id.Namespace, id.Name = splitName(text)
	if addrs = p.compiler.Addresses(id); len(addrs) == 0 {
		return id, nil, fmt.Errorf("pod %s is unknown or has no own address; network policy applies to pods of Kubernetes", id)
	}
	return id, addrs, nil
}

func (p *Plugin) decide(pod model.EndpointID, itself, ingress bool, packet verdict.Packet) *decision {
	e, local := p.endpoints[pod]
	if !local {
		return nil
	}
	d := &decision{Pod: pod.String(), Action: model.Allow.String()}
	direction := e.Egress
	if ingress {
		direction = e.Ingress
	}
	far := packet.Dest
	if ingress {
		far = packet.Source
	}
	switch {
	case itself:
		d.Because = "a pod always reaches itself"
		return d
	case slices.Contains(p.nodeAddrs, far.String()):
		packet.OwnNode = true
	}
	v := verdict.Evaluate(compiled{p}, direction, ingress, packet)
	d.Action = v.Action.String()
	switch {
	case v.Rule != "":
		d.Policy, d.Rule = v.Policy.Path(), v.Rule
		d.Because = "this rule " + ruleSays(v.Action) + " it"
	case packet.OwnNode && ingress:
		d.Because = "a node always reaches its own pods"
	case packet.OwnNode:
		d.Because = "a pod reaches its own node unless a ClusterNetworkPolicy denies it"
	case v.Tier != "":
		d.Because = "policies select the pod in this direction, and no rule of theirs allows it: " + policyNames(direction, v.Tier)
	case v.Action == model.Allow && len(direction.Tiers) > 0:
		d.Because = "no rule of the policies that select the pod decides about it: " + policyNames(direction, "")
	case v.Action == model.Allow:
		d.Because = "no policy selects the pod in this direction"
	case len(p.compiler.Blocked(pod.Namespace)) > 0:
		d.Because = "the labels of the pod's namespace are not known, so only its own node reaches it: " +
			strings.Join(p.compiler.Blocked(pod.Namespace), "; ")
	default:
		d.Because = "the agent does not have the pod's object: only its own node reaches it"
	}
	return d
}

func ruleSays(a model.Action) string {
	if a == model.Allow {
		return "allows"
	}
	return "denies"
}

// policyNames returns the policies of a tier; an empty tier means all tiers.
func policyNames(d model.Direction, tier string) string {
	var names []string
	for _, t := range d.Tiers {
		if tier != "" && t.Name != tier {
			continue
		}
		for _, id := range t.Policies {
			names = append(names, id.Path())
		}
	}
	return strings.Join(names, ", ")
}

// compiled implements verdict.Compiled with the plugin's data.
type compiled struct{ *Plugin }

func (c compiled) Policy(id model.PolicyID) (model.Policy, bool) {
	policy, known := c.policies[id]
	return policy, known
}

func (c compiled) Contains(id model.SetID, m model.Member) bool { return c.compiler.Contains(id, m) }

// Policies returns the policies that this node enforces, sorted.
func (p *Plugin) Policies() []model.Policy {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.SortedFunc(maps.Values(p.policies), func(a, b model.Policy) int { return a.ID.Compare(b.ID) })
}
