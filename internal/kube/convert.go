package kube

import (
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"contiv.dev/vswitch/internal/kube/model"
)

// autoscalerTaint marks a node that the cluster autoscaler is about to remove.
const autoscalerTaint = "ToBeDeletedByClusterAutoscaler"

// intern returns one shared string for equal texts, because a cluster has many equal ones.
func intern(s string) string { return unique.Make(s).Value() }

// labels returns the labels whose key begins with one of prefixes.
func labels(in map[string]string, prefixes ...string) map[string]string {
	var out map[string]string
	for k, v := range in {
		for _, prefix := range prefixes {
			if strings.HasPrefix(k, prefix) {
				if out == nil {
					out = make(map[string]string, len(in))
				}
				out[intern(k)] = intern(v)
				break
			}
		}
	}
	return out
}

func protocol(p corev1.Protocol) (out model.Protocol, known bool) {
	switch p {
	case corev1.ProtocolTCP, "":
		return model.Protocol_TCP, true
	case corev1.ProtocolUDP:
		return model.Protocol_UDP, true
	case corev1.ProtocolSCTP:
		return model.Protocol_SCTP, true
	}
	return 0, false
}

func convertNode(n *corev1.Node) *model.Node {
	out := &model.Node{
		Name: n.Name, PodCidrs: prefixTexts(n.Spec.PodCIDRs), Labels: labels(n.Labels, ""),
		Leaving: n.DeletionTimestamp != nil,
	}
	var addrs []string
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			if a.Type == kind {
				addrs = append(addrs, a.Address)
			}
		}
	}
	out.Addresses = addrTexts(addrs)
	for _, t := range n.Spec.Taints {
		out.Leaving = out.Leaving || t.Key == autoscalerTaint
	}
	return out
}

func convertNamespace(n *corev1.Namespace) *model.Namespace {
	return &model.Namespace{Name: n.Name, Labels: labels(n.Labels, "")}
}

// convertPod returns nil for a pod that has ended: its address may already belong to another pod.
func convertPod(p *corev1.Pod, annotations []string) *model.Pod {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return nil
	}
	out := &model.Pod{
		Name: p.Name, Namespace: intern(p.Namespace), Uid: string(p.UID), Labels: labels(p.Labels, ""),
		NodeName: intern(p.Spec.NodeName), HostNetwork: p.Spec.HostNetwork, Terminating: p.DeletionTimestamp != nil,
		Annotations: labels(p.Annotations, annotations...),
	}
	out.StaticUid = p.Annotations[corev1.MirrorPodAnnotationKey]
	ips := []string{p.Status.PodIP}
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	out.Ips = addrTexts(ips)
	for i := range p.Spec.InitContainers { // init containers with restartPolicy Always are sidecars and have ports, too
		if r := p.Spec.InitContainers[i].RestartPolicy; r != nil && *r == corev1.ContainerRestartPolicyAlways {
			out.Ports = appendPorts(out.Ports, p.Spec.InitContainers[i].Ports)
		}
	}
	for i := range p.Spec.Containers {
		out.Ports = appendPorts(out.Ports, p.Spec.Containers[i].Ports)
	}
	return out
}

// appendPorts appends the ports to which a Service can refer: by name, or through the host.
func appendPorts(out []*model.ContainerPort, ports []corev1.ContainerPort) []*model.ContainerPort {
	for _, port := range ports {
		proto, known := protocol(port.Protocol)
		if !known || (port.Name == "" && port.HostPort == 0) {
			continue
		}
		cp := &model.ContainerPort{
			Name: intern(port.Name), Protocol: proto, ContainerPort: uint32(port.ContainerPort), HostPort: uint32(port.HostPort),
		}
		if port.HostIP != "" && port.HostPort != 0 {
			addr, ok := parseAddr(port.HostIP)
			if !ok {
				continue // no port is better than a port on every address
			}
			cp.HostIp = addr.String()
		}
		out = append(out, cp)
	}
	return out
}

func convertServiceCIDR(c *networkingv1.ServiceCIDR) *model.ServiceCIDR {
	return &model.ServiceCIDR{Name: c.Name, Cidrs: prefixTexts(c.Spec.CIDRs)}
}
