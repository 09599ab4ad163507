package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
)

// reasonLarge is the reason of Events about sets that are over their limit. Each node that has such a set writes them: others may not need it. Events of
// one message are one Event.
const reasonLarge = "SetTooLarge"

// largeSets are the sets that are over their limit.
type largeSets struct {
	limit   int
	version int                 // of the compiler's answer
	meaning map[string][]string // by the key of the policy

	mu       sync.Mutex
	reported map[string]string // guarded by mu; what LargeClusterPolicies returned last
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
	p.tellStatuses()
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

// of lists the problems of a policy that has a key.
func (l *largeSets) of(key string) (list []problem.Problem) {
	for _, meaning := range l.meaning[key] {
		list = append(list, problem.Problem{Reason: reasonLarge, Message: largeMessage(l.limit, meaning)})
	}
	return list
}

func largeMessage(limit int, meaning string) string {
	return fmt.Sprintf("a set has more than %d members: %s. Rules that allow by it match nothing, and rules that deny or pass by it deny everything; "+
		"select less, or raise --%s", limit, meaning, SetLimitFlag)
}

// LargeClusterPolicies is what is wrong with ClusterNetworkPolicies that have sets over the limit, by name, whether or not they select pods of this
// node: the pods that they mean are the same on all nodes. Nodes that have such a set take it back when it is some members smaller; so does this.
// It costs a compilation of all ClusterNetworkPolicies if the cluster has as many addresses as a set may have members, else next to nothing.
func (p *Plugin) LargeClusterPolicies() map[string]string {
	limit := cmp.Or(p.SetLimit, model.MaxMembers)
	p.mu.RLock()
	var all *compiler.Compiler
	cluster := maps.Clone(p.cluster)
	if p.Renderer != nil && len(cluster) > 0 && p.compiler.MayExceed(compiler.Room(limit), networksOf(cluster)) {
		all = p.compiler.CopyForAll()
	}
	p.mu.RUnlock()
	l := &p.problems.large
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.reported
	l.reported = map[string]string{}
	if all == nil {
		return l.reported
	}
	for _, policy := range cluster {
		all.SetClusterPolicy(policy.GetName(), policy)
	}
	all.Flush()
	over := all.Larger(limit)
	for id, meaning := range all.Larger(compiler.Room(limit)) {
		if len(over[id]) == 0 && before[id.Name] == "" {
			continue
		}
		if len(over[id]) > 0 {
			meaning = over[id]
		}
		texts := make([]string, len(meaning))
		for i, m := range meaning {
			texts[i] = largeMessage(limit, m)
		}
		l.reported[id.Name] = strings.Join(texts, "; ")
	}
	return l.reported
}

// networksOf is how many networks policies name.
func networksOf(policies map[string]*kube.ClusterPolicy) (n int) {
	for _, p := range policies {
		for _, r := range slices.Concat(p.GetIngressRules(), p.GetEgressRules()) {
			n += len(r.GetPeers())
		}
	}
	return n
}

// SetLimitFlag is the flag of the agent that has the limit.
const SetLimitFlag = "policy-set-limit"
