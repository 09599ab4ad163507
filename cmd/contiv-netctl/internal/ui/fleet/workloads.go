package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
)

// Workloads holds pods and services.
type Workloads struct {
	NextMs   int       `json:"nextMs"`
	From     string    `json:"from"` // the node that Services is from
	Pods     []Pod     `json:"pods"`
	Services []Service `json:"services"`
	// Missing lists nodes whose pods are not known, with the reason.
	Missing []Problem `json:"missing"`
	// ServicesMissing is why there are no services.
	ServicesMissing string `json:"servicesMissing,omitempty"`
}

// Pod is a connected pod.
type Pod struct {
	Node      string      `json:"node"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Addresses []string    `json:"addresses"`
	Interface string      `json:"interface"`
	Services  []string    `json:"services"` // services that have it as a backend
	Traffic   *state.Rate `json:"traffic,omitempty"`
}

// Service is a service with its backends.
type Service struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Addresses []string      `json:"addresses"` // in the cluster
	External  []string      `json:"external"`
	Ports     []ServicePort `json:"ports"`
	Policy    string        `json:"policy,omitempty"` // difference from "all backends of the cluster"
	Problem   string        `json:"problem,omitempty"`
}

// ServicePort is a port of a service.
type ServicePort struct {
	Name     string    `json:"name,omitempty"`
	Protocol string    `json:"protocol"`
	Port     uint16    `json:"port"`
	NodePort uint16    `json:"nodePort,omitempty"`
	Backends []Backend `json:"backends"`
}

// Backend is a backend of a service's port.
type Backend struct {
	Address string `json:"address"`
	Pod     string `json:"pod,omitempty"` // empty: no connected pod has the address
	Node    string `json:"node,omitempty"`
}

// Workloads returns the pods and services.
func (f *Fleet) Workloads(ctx context.Context) (Workloads, error) {
	w, next, err := f.works.get(ctx, func(ctx context.Context) (Workloads, error) {
		c, err := f.connect(ctx, false)
		if err != nil {
			return Workloads{}, err
		}
		list := state.Pods(ctx, c, nil)
		first, _ := c.First()
		var services []state.Service
		err = first.Get(ctx, state.ServicesPath, &services)
		return f.work(c, list, first.Name, services, err), nil
	})
	w.NextMs = next
	return w, err
}

// work joins pods and services.
func (f *Fleet) work(c *client.Cluster, list state.PodList, from string, services []state.Service, err error) Workloads {
	w := Workloads{From: from, Pods: []Pod{}, Services: []Service{}, Missing: []Problem{}}
	for _, a := range list.Answers {
		if a.Err != nil {
			w.Missing = append(w.Missing, Problem{a.Node, state.Problem{Unready: true, Text: state.NoAnswer(a.Err)}})
		}
	}
	owners := map[netip.Addr]Backend{}
	for _, n := range c.Nodes().Nodes {
		for _, text := range n.VPPIPs {
			if p, err := netip.ParsePrefix(text); err == nil {
				owners[p.Addr()] = Backend{Node: n.Name}
			}
		}
	}
	traffic := map[string]map[state.Series]state.Rate{}
	at := map[string]int{} // index in w.Pods, by namespace/name
	for i := range list.Pods {
		p := &list.Pods[i]
		if !p.Current {
			continue
		}
		pod := Pod{Node: p.Node, Namespace: p.Namespace, Name: p.Name, Addresses: []string{}, Interface: p.Interface, Services: []string{}}
		for _, a := range p.Addresses {
			pod.Addresses = append(pod.Addresses, a.Addr().String())
			owners[a.Addr()] = Backend{Pod: p.ID(), Node: p.Node}
		}
		if traffic[p.Node] == nil {
			traffic[p.Node] = f.rates.Interfaces(p.Node)
		}
		if rate, ok := traffic[p.Node][state.Series{Namespace: p.Namespace, Pod: p.Name}]; ok {
			pod.Traffic = &rate
		}
		at[p.ID()] = len(w.Pods)
		w.Pods = append(w.Pods, pod)
	}
	if err != nil {
		w.ServicesMissing = fmt.Sprintf("the services are not known: %v", err)
	}
	for i := range services {
		s := serviceOf(&services[i], owners)
		w.Services = append(w.Services, s)
		for _, pod := range s.pods() {
			if i, ok := at[pod]; ok {
				w.Pods[i].Services = append(w.Pods[i].Services, s.Namespace+"/"+s.Name)
			}
		}
	}
	slices.SortFunc(w.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(w.Services, func(a, b Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return w
}

// pods returns the pods behind a service, each once.
func (s *Service) pods() []string {
	var out []string
	for _, p := range s.Ports {
		for _, b := range p.Backends {
			if b.Pod != "" && !slices.Contains(out, b.Pod) {
				out = append(out, b.Pod)
			}
		}
	}
	return out
}

func serviceOf(s *state.Service, owners map[netip.Addr]Backend) Service {
	out := Service{
		Namespace: s.Namespace, Name: s.Name, Addresses: append([]string{}, s.ClusterIPs...),
		External: append(slices.Clone(s.ExternalIPs), s.LoadBalancerIPs...), Ports: []ServicePort{}, Problem: s.HealthCheckError,
	}
	if out.External == nil {
		out.External = []string{}
	}
	if s.TrafficPolicy == "Local" {
		out.Policy = "from outside: backends of the node only"
	}
	if s.InternalTrafficPolicy == "Local" {
		out.Policy = "backends of the node only"
	}
	for _, p := range s.Ports {
		port := ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, NodePort: p.NodePort, Backends: []Backend{}}
		for _, text := range p.Backends {
			b := Backend{Address: text}
			if ap, err := netip.ParseAddrPort(text); err == nil {
				owner := owners[ap.Addr()]
				b.Pod, b.Node = owner.Pod, owner.Node
			}
			port.Backends = append(port.Backends, b)
		}
		if len(port.Backends) == 0 && out.Problem == "" {
			out.Problem = fmt.Sprintf("no backend is ready for port %d/%s", p.Port, p.Protocol)
		}
		out.Ports = append(out.Ports, port)
	}
	return out
}
