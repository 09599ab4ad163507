package model

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/controller/api"
)

// The resource keywords of events and snapshots. They are the same as in contiv, for the resources that contiv
// had.
const (
	NodeKeyword          = "node"
	NamespaceKeyword     = "namespace"
	PodKeyword           = "pod"
	PolicyKeyword        = "policy"
	ClusterPolicyKeyword = "clusterpolicy"
	ServiceKeyword       = "service"
	EndpointSliceKeyword = "endpointslice"
	ServiceCIDRKeyword   = "servicecidr"
)

// KeyPrefix is the prefix of all keys of Kubernetes state.
const KeyPrefix = "k8s/"

// Prefix returns the prefix of the keys of a resource.
func Prefix(keyword string) string { return KeyPrefix + keyword + "/" }

// Key returns the key of an object; namespace is empty for objects that are in no namespace.
func Key(keyword, namespace, name string) string {
	if namespace == "" {
		return Prefix(keyword) + name
	}
	return Prefix(keyword) + name + "/namespace/" + namespace
}

// New returns an empty message of a resource, to decode into; nil for an unknown keyword.
func New(keyword string) proto.Message {
	switch keyword {
	case NodeKeyword:
		return &Node{}
	case NamespaceKeyword:
		return &Namespace{}
	case PodKeyword:
		return &Pod{}
	case PolicyKeyword:
		return &Policy{}
	case ClusterPolicyKeyword:
		return &ClusterPolicy{}
	case ServiceKeyword:
		return &Service{}
	case EndpointSliceKeyword:
		return &EndpointSlice{}
	case ServiceCIDRKeyword:
		return &ServiceCIDR{}
	}
	return nil
}

// Keywords returns the keywords of all resources.
func Keywords() []string {
	return []string{
		NodeKeyword, NamespaceKeyword, PodKeyword, PolicyKeyword, ClusterPolicyKeyword, ServiceKeyword, EndpointSliceKeyword,
		ServiceCIDRKeyword,
	}
}

// Values returns the values of one resource in a resync snapshot, by key. Values of another type are skipped.
func Values[M proto.Message](data api.KubeStateData, keyword string) map[string]M {
	out := make(map[string]M, len(data[keyword]))
	for key, value := range data[keyword] {
		if m, ok := value.(M); ok {
			out[key] = m
		}
	}
	return out
}

// Change returns the previous and the new value of a change; a value is nil if there is none or it has another
// type.
func Change[M proto.Message](ev *api.KubeStateChange) (prev, next M) {
	prev, _ = ev.PrevValue.(M)
	next, _ = ev.NewValue.(M)
	return prev, next
}

// KeywordOf returns the keyword of the resource to which a key belongs; empty if it is not a key of Kubernetes
// state.
func KeywordOf(key string) string {
	rest, ok := strings.CutPrefix(key, KeyPrefix)
	if !ok {
		return ""
	}
	keyword, _, _ := strings.Cut(rest, "/")
	return keyword
}
