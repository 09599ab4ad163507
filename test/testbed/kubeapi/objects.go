package kubeapi

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node returns a node with internal addresses and the networks of its pods.
func Node(name string, addrs []netip.Addr, podCIDRs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Spec.PodCIDRs = podCIDRs
	if len(podCIDRs) > 0 {
		n.Spec.PodCIDR = podCIDRs[0]
	}
	for _, a := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	return n
}

// Pod returns a running pod of the namespace "default".
func Pod(node, name string, addrs []netip.Addr) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	for _, a := range addrs {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	if len(addrs) > 0 {
		p.Status.PodIP = addrs[0].String()
	}
	return p
}

// Service returns a service of the namespace "default" with the defaults of the API server; its families are those
// of its addresses.
func Service(name string, clusterIPs []netip.Addr, ports ...corev1.ServicePort) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	cluster := corev1.ServiceInternalTrafficPolicyCluster
	s.Spec.Type, s.Spec.SessionAffinity = corev1.ServiceTypeClusterIP, corev1.ServiceAffinityNone
	s.Spec.InternalTrafficPolicy = &cluster
	for _, ip := range clusterIPs {
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, ip.String())
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily(FamilyOf(ip)))
	}
	if len(clusterIPs) > 0 {
		s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	}
	policy := corev1.IPFamilyPolicySingleStack
	if len(clusterIPs) > 1 {
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	s.Spec.IPFamilyPolicy = &policy
	s.Spec.Ports = ports
	return s
}

// Port returns a port of a service; its name consists of the protocol and the number.
func Port(protocol corev1.Protocol, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: PortName(protocol, port), Protocol: protocol, Port: port}
}

// PortName returns the name that Port gives to a port.
func PortName(protocol corev1.Protocol, port int32) string {
	return fmt.Sprintf("p%d-%c", port, protocol[0]|0x20)
}

// FamilyOf returns the address type of slices that contain the address.
func FamilyOf(a netip.Addr) discoveryv1.AddressType {
	if a.Is4() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}

// Endpoint returns a ready endpoint on a node.
func Endpoint(node string, addr netip.Addr) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{addr.String()}, NodeName: &node, Conditions: Ready(true, true, false)}
}

// Ready returns the conditions of an endpoint.
func Ready(ready, serving, terminating bool) discoveryv1.EndpointConditions {
	return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
}

// Slice returns an EndpointSlice of a service for one family. The endpoints serve every port of the service at
// target.
func Slice(s *corev1.Service, family discoveryv1.AddressType, target int32, endpoints ...discoveryv1.Endpoint,
) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: fmt.Sprintf("%s-%c", s.Name, family[len(family)-1]),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
			},
		},
		AddressType: family, Endpoints: endpoints,
	}
	for _, p := range s.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &target})
	}
	return slice
}
