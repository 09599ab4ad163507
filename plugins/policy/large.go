package policy

import (
	"cmp"
	"fmt"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
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
		list = append(list, problem.Problem{Reason: reasonLarge, Message: fmt.Sprintf("a set has more than %d members: %s. Rules that allow by it "+
			"match nothing, and rules that deny or pass by it deny everything; select less, or raise --%s", l.limit, meaning, SetLimitFlag)})
	}
	return list
}

// SetLimitFlag is the flag of the agent that has the limit.
const SetLimitFlag = "policy-set-limit"
