package service

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// servicesPath is the path of the list of services as renderers receive them.
const servicesPath = "/contiv/v1/services"

// serviceReport is a service in the response.
type serviceReport struct {
	Namespace, Name        string
	ClusterIPs             []netip.Addr
	ExternalIPs            []netip.Addr   `json:",omitempty"`
	LoadBalancerIPs        []netip.Addr   `json:",omitempty"`
	SourceRanges           []netip.Prefix `json:",omitempty"`
	TrafficPolicy          string
	InternalTrafficPolicy  string
	SessionAffinityTimeout uint32 `json:",omitempty"`
	HealthCheckNodePort    uint16 `json:",omitempty"`
	HealthCheckError       string `json:",omitempty"`
	Ports                  []portReport
}

type portReport struct {
	Name     string
	Protocol string
	Port     uint16
	NodePort uint16 `json:",omitempty"`
	Backends []string
}

func (p *Plugin) registerREST(handlers rest.HTTPHandlers) {
	handlers.RegisterHTTPHandler(ResolvePath, p.serveResolve)
	handlers.RegisterHTTPHandler(servicesPath, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		rest.WriteJSON(w, http.StatusOK, p.report(q.Get("namespace"), q.Get("name")))
	})
}

// report returns all services, or those with the given namespace and name if these are not empty.
func (p *Plugin) report(namespace, name string) []serviceReport {
	p.mu.Lock()
	all := p.processor.Services() // immutable values
	p.mu.Unlock()
	failing := p.health.Failing()
	out := []serviceReport{}
	for _, s := range all {
		if (namespace == "" || namespace == s.ID.Namespace) && (name == "" || name == s.ID.Name) {
			r := reportOf(s)
			if err := failing[s.ID]; err != nil {
				r.HealthCheckError = err.Error()
			}
			out = append(out, r)
		}
	}
	return out
}

func reportOf(s *renderer.ContivService) serviceReport {
	r := serviceReport{
		Namespace: s.ID.Namespace, Name: s.ID.Name, ClusterIPs: s.ClusterIPs.Addrs(), ExternalIPs: s.ExternalIPs.Addrs(),
		LoadBalancerIPs: s.LoadBalancerIPs.Addrs(), SourceRanges: s.LoadBalancerSourceRanges,
		TrafficPolicy: s.TrafficPolicy.String(), InternalTrafficPolicy: s.InternalTrafficPolicy.String(),
		SessionAffinityTimeout: s.SessionAffinityTimeout, HealthCheckNodePort: s.HealthCheckNodePort,
	}
	for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
		port := s.Ports[name]
		pr := portReport{
			Name: name, Protocol: port.Protocol.String(), Port: port.Port, NodePort: port.NodePort, Backends: []string{},
		}
		for _, b := range s.Backends[name] {
			pr.Backends = append(pr.Backends, b.String())
		}
		for _, b := range s.LocalPolicyBackends[name] {
			pr.Backends = append(pr.Backends, b.String()+" local-policy-only")
		}
		for _, b := range s.KeptBackends[name] {
			pr.Backends = append(pr.Backends, b.String()+" open-connections-only")
		}
		r.Ports = append(r.Ports, pr)
	}
	return r
}
