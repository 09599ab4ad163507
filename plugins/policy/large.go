package policy

import (
	"cmp"
	"maps"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/large"
	"contiv.dev/vswitch/plugins/policy/model"
)

// reasonLarge is the reason of Events about sets that are over their limit. Each node that has such a set writes these Events, since other
// nodes may not need the set. Events with the same message are one Event.
const reasonLarge = "SetTooLarge"

// largeSets holds the sets that are over their limit.
type largeSets struct {
	limit   int
	version int                 // of the result of the compiler
	meaning map[string][]string // by the key of the policy
	finder  large.Finder        // computes the result of LargeClusterPolicies
}

// reportLarge reports sets that are over their limit as problems of the policies that refer to them.
func (p *Plugin) reportLarge() {
	l := &p.problems.large
	if p.compiler.LargeVersion() == l.version {
		return
	}
	before := l.meaning
	byPolicy, version := p.compiler.Large()
	l.version, l.limit, l.meaning = version, cmp.Or(p.SetLimit, model.MaxMembers), map[string][]string{}
	for id, meaning := range byPolicy {
		keyword := kube.PolicyKeyword
		if id.Kind != model.KindNetworkPolicy {
			keyword = kube.ClusterPolicyKeyword
		}
		l.meaning[kube.Key(keyword, id.Namespace, id.Name)] = meaning
	}
	p.reportStatuses()
	for _, keys := range []map[string][]string{before, l.meaning} {
		for key := range keys {
			if slices.Equal(before[key], l.meaning[key]) {
				continue
			}
			if policy := p.objects[key]; policy != nil {
				p.problems.set(key, sourceOf(policy))
			} else {
				p.problems.set(key, sourceOfCluster(p.cluster[key]))
			}
		}
	}
}

// of returns the problems of the policy with a key.
func (l *largeSets) of(key string) (list []problem.Problem) {
	for _, meaning := range l.meaning[key] {
		list = append(list, problem.Problem{Reason: reasonLarge, Message: large.Message(l.limit, meaning)})
	}
	return list
}

// LargeClusterPolicies returns the problems of ClusterNetworkPolicies that have sets over the limit, by name, whether or not they select
// pods of this node: the pods to which they refer are the same on all nodes. Nodes use such a set again when it has become some members
// smaller than the limit; this method does the same. It compiles all ClusterNetworkPolicies if the cluster has as many addresses as a set
// may have members; otherwise it costs almost nothing.
func (p *Plugin) LargeClusterPolicies() map[string]string {
	p.mu.RLock()
	var all func() *compiler.Compiler
	cluster := maps.Clone(p.cluster)
	if p.Renderer != nil && len(cluster) > 0 && p.compiler.MayExceed(compiler.Room(cmp.Or(p.SetLimit, model.MaxMembers)), large.Networks(cluster)) {
		copied := p.compiler.CopyForAll()
		all = func() *compiler.Compiler { return copied }
	}
	p.mu.RUnlock()
	return p.problems.large.finder.Find(p.SetLimit, cluster, all)
}
