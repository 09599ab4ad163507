package kube

import (
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"contiv.dev/vswitch/internal/kube/model"
)

// kind is a resource of the API and its conversion.
type kind struct {
	keyword  string // the keyword in events
	resource string // plural name in the API
	group    schema.GroupVersion
	// The selectors filter out, at the server, the objects that are not needed.
	labelSelector, fieldSelector string
	// optional is true if the server may be too old to have the resource.
	optional bool
	// definition is the name of the CustomResourceDefinition of an optional resource; empty: it has none.
	definition string
	// object is an empty object of the type of the resource.
	object runtime.Object
	// convert returns nil for an object that is not needed.
	convert func(obj any) proto.Message
}

// kinds returns THE list of the watched resources. annotations are the prefixes of the pod annotations that are kept.
func kinds(annotations []string, in *interner) []*kind {
	const notForeign = "!" + proxyNameLabel
	return []*kind{
		{keyword: model.NodeKeyword, resource: "nodes", group: corev1.SchemeGroupVersion, object: &corev1.Node{},
			convert: convertWith(func(o *corev1.Node) *model.Node { return convertNode(o) })},
		{keyword: model.NamespaceKeyword, resource: "namespaces", group: corev1.SchemeGroupVersion, object: &corev1.Namespace{},
			convert: convertWith(func(o *corev1.Namespace) *model.Namespace { return convertNamespace(o) })},
		{keyword: model.PodKeyword, resource: "pods", group: corev1.SchemeGroupVersion, object: &corev1.Pod{},
			fieldSelector: "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed),
			convert:       convertWith(func(o *corev1.Pod) *model.Pod { return convertPod(o, annotations) })},
		{keyword: model.PolicyKeyword, resource: "networkpolicies", group: networkingv1.SchemeGroupVersion,
			object: &networkingv1.NetworkPolicy{}, convert: convertWith(ConvertPolicy)},
		{keyword: model.ClusterPolicyKeyword, resource: "clusternetworkpolicies", group: schema.GroupVersion(npapi.GroupVersion), optional: true,
			definition: "clusternetworkpolicies." + npapi.GroupName, object: &npapi.ClusterNetworkPolicy{},
			convert: convertWith(ConvertClusterPolicy)},
		{keyword: model.ServiceKeyword, resource: "services", group: corev1.SchemeGroupVersion, object: &corev1.Service{},
			labelSelector: notForeign, convert: convertWith(convertService)},
		{keyword: model.EndpointSliceKeyword, resource: "endpointslices", group: discoveryv1.SchemeGroupVersion,
			object:        &discoveryv1.EndpointSlice{},
			labelSelector: discoveryv1.LabelServiceName + "," + notForeign + ",!" + headlessLabel,
			convert:       convertWith(in.convertSlice)},
		{keyword: model.ServiceCIDRKeyword, resource: "servicecidrs", group: networkingv1.SchemeGroupVersion, optional: true,
			object: &networkingv1.ServiceCIDR{}, convert: convertWith(convertServiceCIDR)},
	}
}

// message is a pointer to a generated message.
type message[M any] interface {
	*M
	proto.Message
}

// convertWith turns a conversion between two types into a conversion from any object; objects of another type give nil.
func convertWith[O, M any, P message[M]](convert func(O) P) func(any) proto.Message {
	return func(obj any) proto.Message {
		o, ok := obj.(O)
		if !ok {
			return nil
		}
		if m := convert(o); m != nil {
			return m
		}
		return nil
	}
}

// object is a converted API object, which a reflector keeps until its list is complete, and then passes on. The embedded
// metadata implements metav1.Object, which reflectors require.
type object struct {
	metav1.ObjectMeta
	msg proto.Message // nil: the object is not needed
}

// transform converts an object when the reflector receives it, so that even the first list is never held as API objects.
func (k *kind) transform(obj any) (any, error) {
	meta, ok := obj.(metav1.Object)
	if _, done := obj.(*object); done || !ok {
		return obj, nil
	}
	return &object{
		ObjectMeta: metav1.ObjectMeta{
			Name: meta.GetName(), Namespace: meta.GetNamespace(), ResourceVersion: meta.GetResourceVersion(),
		},
		msg: k.convert(obj),
	}, nil
}
