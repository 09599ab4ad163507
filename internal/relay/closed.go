package relay

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/kube/model"
)

// An object that is too large for etcd must not prevent that the rest of the state counts as complete: any user that may create pods or
// policies could then stop the updates of the whole cluster. Agents get a closed version of it instead, which allows no more than the
// object does: a policy and a namespace block all traffic of their pods, and a node has no labels. Services, endpoint slices and pods have no
// closed version and are left out: a service is not served, or does not use the endpoints of the slice, and a pod without an object is closed
// on its node. The former version does not stay, because it may allow what the object no longer allows.

// form is the form of an object in etcd.
type form struct {
	data    string
	exists  bool   // false: the object is left out
	refused string // why it is not the object itself; empty: it is
}

// prepare returns the form of an object.
func (r *Relay) prepare(key string, value proto.Message) form {
	data, err := encode(value)
	if err == nil {
		return form{data: data, exists: true}
	}
	return r.closed(key, value, err)
}

// closed returns the form of an object that cannot be written because of err.
func (r *Relay) closed(key string, value proto.Message, err error) form {
	f := form{refused: err.Error()}
	closed, effect := closedVersion(value, err)
	if closed != nil {
		data, encodeErr := encode(closed)
		f.data, f.exists = data, encodeErr == nil
	}
	if !f.exists {
		effect = "agents do not get it"
	}
	r.Log.Error("an object cannot be relayed to the agents: make it smaller or split it; until then "+effect, "key", key, "error", err)
	return f
}

// encode encodes an object. Kubernetes stores the same objects, with more fields, in its own etcd, but that one may accept larger values.
func encode(value proto.Message) (string, error) {
	data, err := kube.Encode(value)
	if err == nil && len(data) > maxValue {
		err = fmt.Errorf("it has %d bytes, and the limit is %d", len(data), maxValue)
	}
	return string(data), err
}

// closedVersion returns a version of an object that is small and allows no more than the object, with its effect. It returns nil if the object
// is to be left out.
func closedVersion(value proto.Message, cause error) (closed proto.Message, effect string) {
	problem := []string{fmt.Sprintf("the object cannot be stored in etcd: %v; it allows nothing", cause)}
	const blocks = "it blocks the traffic of its pods"
	switch v := value.(type) {
	case *model.Policy:
		return &model.Policy{
			Name: v.GetName(), Namespace: v.GetNamespace(), Uid: v.GetUid(), Ingress: v.GetIngress(), Egress: v.GetEgress(),
			Pods: smallSelector(v.GetPods()), Problems: problem,
		}, blocks
	case *model.ClusterPolicy:
		return &model.ClusterPolicy{
			Name: v.GetName(), Uid: v.GetUid(), Tier: v.GetTier(), Priority: v.GetPriority(), Problems: problem,
			Namespaces: smallSelector(v.GetNamespaces()), Pods: smallSelector(v.GetPods()),
			IngressRules: denyAll(v.GetIngressRules()), EgressRules: denyAll(v.GetEgressRules()),
		}, blocks
	case *model.Namespace: // one that is left out would have no labels: policies that deny by its labels would not apply to its pods
		return &model.Namespace{Name: v.GetName(), Problems: problem}, blocks
	case *model.Node: // a node that is left out would count as removed from the cluster
		small := proto.CloneOf(v)
		small.Labels = nil
		return small, "it has no labels"
	}
	return nil, ""
}

// smallSelector returns the selector, or one that selects everything if it is a reason why its object is too large.
func smallSelector(s *model.LabelSelector) *model.LabelSelector {
	if data, err := encode(s); s != nil && (err != nil || len(data) > maxValue/4) {
		return &model.LabelSelector{}
	}
	return s
}

// denyAll returns a rule that denies all traffic if there are rules.
func denyAll(rules []*model.PolicyRule) []*model.PolicyRule {
	if len(rules) == 0 {
		return nil
	}
	return []*model.PolicyRule{{Action: model.PolicyRule_DENY}}
}

// tooLarge handles the writes that etcd rejects because they are too large: its limit may be lower than the usual one (--max-request-bytes).
// It returns false if it can do nothing.
func (r *Relay) tooLarge(writes []cas.Write, cause error) bool {
	if len(writes) > 1 {
		r.table.shrink()
		return true
	}
	w := writes[0]
	if w.Value == nil {
		return false
	}
	f := form{refused: cause.Error()}
	if r.table.isRefused(w.Key) { // its closed version is too large, too
		r.Log.Error("an object cannot be relayed to the agents, not even a small version of it; agents do not get it", "key", w.Key, "error", cause)
	} else {
		var decoder kube.Decoder
		value, err := decoder.Decode(model.KeywordOf(strings.TrimPrefix(w.Key, clusterdb.KSRPrefix)), w.Value)
		if err != nil { // our own encoding can be decoded
			return false
		}
		f = r.closed(w.Key, value, cause)
	}
	r.table.replace(w.Key, string(w.Value), f)
	return true
}

// Refused returns the objects that cannot be written, by key, with the reason.
func (r *Relay) Refused() map[string]string { return r.table.refusedKeys() }
