package large

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
)

// flag is the name of the flag that sets the limit.
const flag = "policy-set-limit"

// RegisterFlag registers the flag; its default is the maximum.
func RegisterFlag(f *pflag.FlagSet, limit *int, usage string) {
	f.IntVar(limit, flag, model.MaxMembers, usage)
}

// CheckLimit returns an error if a value of the flag is invalid.
func CheckLimit(limit int) error {
	if limit < 0 || limit > model.MaxMembers {
		return fmt.Errorf("--%s: %d is not between 0 and %d", flag, limit, model.MaxMembers)
	}
	return nil
}

// Message describes the effect on a policy with a set that is over the limit, and the fix.
func Message(limit int, meaning string) string {
	return fmt.Sprintf("a set has more than %d members: %s. Rules that allow by it match nothing, and rules that deny or pass by it deny everything; "+
		"select less, or raise --%s", limit, meaning, flag)
}

// Finder finds such policies. A set that was too large counts as small again at a sixteenth below the limit, as in the dataplane.
type Finder struct {
	mu       sync.Mutex
	reported map[string]string // guarded by mu; the last result of Find
}

// Find returns the problems of policies, by name. all returns a compiler without policies that compiles the sets of all policies; nil means
// that no set can be over the limit. A limit of zero means the maximum.
func (f *Finder) Find(limit int, policies map[string]*kube.ClusterPolicy, all func() *compiler.Compiler) map[string]string {
	limit = cmp.Or(limit, model.MaxMembers)
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.reported
	f.reported = map[string]string{}
	if all == nil {
		return f.reported
	}
	c := all()
	for _, policy := range policies {
		c.SetClusterPolicy(policy.GetName(), policy)
	}
	c.Flush()
	over := c.Larger(limit)
	for id, meaning := range c.Larger(compiler.Room(limit)) {
		if len(over[id]) == 0 && before[id.Name] == "" {
			continue
		}
		if len(over[id]) > 0 {
			meaning = over[id]
		}
		texts := make([]string, len(meaning))
		for i, m := range meaning {
			texts[i] = Message(limit, m)
		}
		f.reported[id.Name] = strings.Join(texts, "; ")
	}
	return f.reported
}

// Networks returns the number of networks in policies.
func Networks(policies map[string]*kube.ClusterPolicy) (n int) {
	for _, p := range policies {
		for _, r := range slices.Concat(p.GetIngressRules(), p.GetEgressRules()) {
			n += len(r.GetPeers())
		}
	}
	return n
}

// State gives access to the state of Kubernetes.
type State interface {
	// Count returns the number of objects of a resource.
	Count(keyword string) int
	// Objects returns the objects of resources.
	Objects(keywords ...string) api.KubeStateData
}

// FindIn is Find for callers that have the state of Kubernetes in another form: it reads only the part of the state that it needs, and
// keeps nothing.
func (f *Finder) FindIn(s State, limit int) map[string]string {
	if s.Count(kube.ClusterPolicyKeyword) == 0 {
		return f.Find(limit, nil, nil)
	}
	some := s.Objects(kube.ClusterPolicyKeyword, kube.NodeKeyword)
	policies, nodes := kube.Values[*kube.ClusterPolicy](some, kube.ClusterPolicyKeyword), kube.Values[*kube.Node](some, kube.NodeKeyword)
	most := Networks(policies) + addressesOfPod*s.Count(kube.PodKeyword)
	for _, node := range nodes {
		most += len(node.GetAddresses())
	}
	if most <= compiler.Room(cmp.Or(limit, model.MaxMembers)) {
		return f.Find(limit, policies, nil)
	}
	return f.Find(limit, policies, func() *compiler.Compiler {
		c, rest := compiler.NewForAll(), s.Objects(kube.NamespaceKeyword, kube.PodKeyword)
		for _, node := range nodes {
			c.SetNode(node.GetName(), node)
		}
		for _, ns := range kube.Values[*kube.Namespace](rest, kube.NamespaceKeyword) {
			c.SetNamespace(ns.GetName(), ns)
		}
		for _, pod := range kube.Values[*kube.Pod](rest, kube.PodKeyword) {
			c.SetPod(model.EndpointID{Namespace: pod.GetNamespace(), Name: pod.GetName()}, pod)
		}
		return c
	})
}

// addressesOfPod is the maximum number of addresses of a pod: one of each family.
const addressesOfPod = 2
