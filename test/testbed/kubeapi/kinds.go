package kubeapi

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// Object is an object of the API. Custom resources are encoded only as JSON.
type Object interface {
	metav1.Object
	runtime.Object
}

// protobufObject is an object that can also be encoded as protobuf.
type protobufObject interface {
	Object
	Marshal() ([]byte, error)
}

var definitions = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}

// kind is a resource that the server serves.
type kind struct {
	resource string
	schema.GroupVersionKind
	example Object
}

// kinds returns THE list of the served resources.
func kinds() []kind {
	core, discovery, networking := corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion
	return []kind{
		{"pods", core.WithKind("Pod"), &corev1.Pod{}},
		{"nodes", core.WithKind("Node"), &corev1.Node{}},
		{"namespaces", core.WithKind("Namespace"), &corev1.Namespace{}},
		{"services", core.WithKind("Service"), &corev1.Service{}},
		{"configmaps", core.WithKind("ConfigMap"), &corev1.ConfigMap{}},
		{"endpointslices", discovery.WithKind("EndpointSlice"), &discoveryv1.EndpointSlice{}},
		{"networkpolicies", networking.WithKind("NetworkPolicy"), &networkingv1.NetworkPolicy{}},
		{"servicecidrs", networking.WithKind("ServiceCIDR"), &networkingv1.ServiceCIDR{}},
		{"clusternetworkpolicies", schema.GroupVersion(npapi.GroupVersion).WithKind("ClusterNetworkPolicy"), &npapi.ClusterNetworkPolicy{}},
		{"customresourcedefinitions", definitions.WithKind("CustomResourceDefinition"), &metav1.PartialObjectMetadata{}},
		{"leases", coordinationv1.SchemeGroupVersion.WithKind("Lease"), &coordinationv1.Lease{}},
	}
}

// tableOf returns the table of an object.
func (s *Server) tableOf(obj Object) (*table, bool) {
	for _, t := range s.tables {
		if sameType(t.kind.example, obj) {
			return t, true
		}
	}
	return nil, false
}

// protobuf reports whether objects of the kind can also be encoded as protobuf.
func (k kind) protobuf() bool {
	_, is := k.example.(protobufObject)
	return is
}
