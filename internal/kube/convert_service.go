package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/internal/kube/model"
)

const (
	proxyNameLabel    = "service.kubernetes.io/service-proxy-name"
	headlessLabel     = corev1.IsHeadlessService
	triggerAnnotation = corev1.EndpointsLastChangeTriggerTime
)

// convertService copies all parts of a service that load balancing needs.
func convertService(s *corev1.Service) *model.Service {
	out := &model.Service{
		Name: s.Name, Namespace: intern(s.Namespace), Type: serviceType(s.Spec.Type), ProxyName: s.Labels[proxyNameLabel],
		ExternalIps:   addrTexts(s.Spec.ExternalIPs),
		ExternalLocal: s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		InternalLocal: s.Spec.InternalTrafficPolicy != nil &&
			*s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
		HealthCheckNodePort: uint32(s.Spec.HealthCheckNodePort),
		SourceRanges:        prefixTexts(s.Spec.LoadBalancerSourceRanges),
		SourceRangesSet:     len(s.Spec.LoadBalancerSourceRanges) > 0,
		Uid:                 string(s.UID),
	}
	if !s.CreationTimestamp.IsZero() {
		out.Created = s.CreationTimestamp.Unix()
	}
	if _, labelled := s.Labels[proxyNameLabel]; labelled && out.ProxyName == "" {
		out.ProxyName = "(empty)" // the label, with any value, marks a service that another proxy serves
	}
	_, out.Headless = s.Labels[headlessLabel]
	out.Headless = out.Headless || s.Spec.ClusterIP == corev1.ClusterIPNone
	if s.Spec.TrafficDistribution != nil {
		out.TrafficDistribution = *s.Spec.TrafficDistribution
	}
	if !out.Headless {
		out.ClusterIps = addrTexts(append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...))
	}
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		out.SessionAffinityTimeout = uint32(corev1.DefaultClientIPServiceAffinitySeconds)
		if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			out.SessionAffinityTimeout = uint32(max(1, *c.ClientIP.TimeoutSeconds))
		}
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		if addr, ok := parseAddr(in.IP); ok {
			proxy := in.IPMode != nil && *in.IPMode != corev1.LoadBalancerIPModeVIP
			out.Ingress = append(out.Ingress, &model.Ingress{Ip: addr.String(), Proxy: proxy})
		}
	}
	for _, port := range s.Spec.Ports {
		if proto, known := protocol(port.Protocol); known {
			out.Ports = append(out.Ports, &model.ServicePort{
				Name: intern(port.Name), Protocol: proto, Port: uint32(port.Port), NodePort: uint32(port.NodePort),
			})
		}
	}
	return out
}

func serviceType(t corev1.ServiceType) model.Service_Type {
	switch t {
	case corev1.ServiceTypeNodePort:
		return model.Service_NODE_PORT
	case corev1.ServiceTypeLoadBalancer:
		return model.Service_LOAD_BALANCER
	case corev1.ServiceTypeExternalName:
		return model.Service_EXTERNAL_NAME
	}
	return model.Service_CLUSTER_IP
}

// convertSlice returns nil for slices that do not belong to a load-balanced service.
func (in *interner) convertSlice(s *discoveryv1.EndpointSlice) *model.EndpointSlice {
	service := s.Labels[discoveryv1.LabelServiceName]
	ipv6 := s.AddressType == discoveryv1.AddressTypeIPv6
	_, foreign := s.Labels[proxyNameLabel]
	_, headless := s.Labels[headlessLabel]
	if service == "" || foreign || headless || (!ipv6 && s.AddressType != discoveryv1.AddressTypeIPv4) {
		return nil
	}
	out := &model.EndpointSlice{
		Name: s.Name, Namespace: intern(s.Namespace), Service: intern(service), Ipv6: ipv6,
	}
	if t, err := time.Parse(time.RFC3339Nano, s.Annotations[triggerAnnotation]); err == nil {
		out.TriggerMs = t.UnixMilli()
	}
	for _, port := range s.Ports {
		var p corev1.Protocol
		if port.Protocol != nil {
			p = *port.Protocol
		}
		proto, known := protocol(p)
		if !known || port.Port == nil || *port.Port <= 0 { // no number means "all ports", to which a service cannot refer
			continue
		}
		ep := &model.EndpointPort{Protocol: proto, Port: uint32(*port.Port)}
		if port.Name != nil {
			ep.Name = intern(*port.Name)
		}
		out.Ports = append(out.Ports, ep)
	}
	b := model.NewSliceBuilder(out, len(s.Endpoints))
	for i := range s.Endpoints {
		in.addEndpoint(b, &s.Endpoints[i])
	}
	return out
}

// addEndpoint adds an endpoint under its first address; the API defines that further addresses have
// no meaning.
func (in *interner) addEndpoint(b *model.SliceBuilder, ep *discoveryv1.Endpoint) {
	if len(ep.Addresses) == 0 {
		return
	}
	addr, ok := parseAddr(ep.Addresses[0])
	if !ok {
		return
	}
	place := &model.Place{}
	if ep.NodeName != nil {
		place.Node = *ep.NodeName
	}
	if ep.Zone != nil {
		place.Zone = *ep.Zone
	}
	if ep.Hints != nil {
		for _, zone := range ep.Hints.ForZones {
			place.ForZones = append(place.ForZones, zone.Name)
		}
		for _, node := range ep.Hints.ForNodes {
			place.ForNodes = append(place.ForNodes, node.Name)
		}
	}
	b.Add(addr, conditions(&ep.Conditions), in.place(place))
}

// conditions applies the defaults of the API: an unknown condition counts as good.
func conditions(c *discoveryv1.EndpointConditions) (out byte) {
	if c.Ready == nil || *c.Ready {
		out |= model.CondReady
	}
	if c.Serving == nil || *c.Serving {
		out |= model.CondServing
	}
	if c.Terminating != nil && *c.Terminating {
		out |= model.CondTerminating
	}
	return out
}
