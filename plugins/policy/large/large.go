package large

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
)

// Flag is the flag that has the limit.
const Flag = "policy-set-limit"

// CheckLimit says what is wrong with a value of the flag.
func CheckLimit(limit int) error {
	if limit < 0 || limit > model.MaxMembers {
		return fmt.Errorf("--%s: %d is not between 0 and %d", Flag, limit, model.MaxMembers)
	}
	return nil
}

// Message says what happens to a policy with a set that is over the limit, and what to do.
func Message(limit int, meaning string) string {
	return fmt.Sprintf("a set has more than %d members: %s. Rules that allow by it match nothing, and rules that deny or pass by it deny everything; "+
		"select less, or raise --%s", limit, meaning, Flag)
}

// Finder finds such policies. A set that was too large is small again at a sixteenth below the limit, as in the dataplane.
type Finder struct {
	mu       sync.Mutex
	reported map[string]string // guarded by mu; what Find returned last
}

// Find is what is wrong with policies, by name. all makes a compiler that makes the sets of all policies, and has none; nil: no set can be over the
// limit. A limit of zero stands for the most that fit.
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

// Networks is how many networks policies name.
func Networks(policies map[string]*kube.ClusterPolicy) (n int) {
	for _, p := range policies {
		for _, r := range slices.Concat(p.GetIngressRules(), p.GetEgressRules()) {
			n += len(r.GetPeers())
		}
	}
	return n
}

// State is where the state of Kubernetes can be read.
type State interface {
	// Count is how many objects of a resource there are.
	Count(keyword string) int
	// Objects are those of resources.
	Objects(keywords ...string) api.KubeStateData
}

// FindIn is Find for what has the state of Kubernetes in another form: it reads no more of it than it needs, and keeps nothing.
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

// addressesOfPod is how many a pod has at most: one of each family.
const addressesOfPod = 2
