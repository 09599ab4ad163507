// Command services shows how to write a renderer of Kubernetes services: it implements ServiceRendererAPI and keeps a cluster-wide table that maps
// frontends to backends, as a load balancer would. It compiles and runs only while that interface stays as documented.
package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
)

func main() {
	r := newTable()
	s := renderer.NewContivService()
	s.ID = renderer.ServiceID{Namespace: "default", Name: "web"}
	s.ClusterIPs = renderer.NewIPAddresses(net.ParseIP("10.96.0.10"))
	s.Ports["http"] = &renderer.ServicePort{Protocol: renderer.TCP, Port: 80}
	s.Backends["http"] = []*renderer.ServiceBackend{
		{IP: net.ParseIP("10.1.1.2"), Port: 8080, Local: true}, {IP: net.ParseIP("10.1.2.2"), Port: 8080},
	}
	if err := r.AddService(s); err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
		os.Exit(1)
	}
	fmt.Print(r)
}

// table is the renderer. The service plugin calls it from the event loop only, so it has no lock.
type table struct {
	services map[renderer.ServiceID]*renderer.ContivService
	nodeIPs  *renderer.IPAddresses
}

var _ renderer.ServiceRendererAPI = (*table)(nil)

func newTable() *table {
	return &table{services: map[renderer.ServiceID]*renderer.ContivService{}, nodeIPs: renderer.NewIPAddresses()}
}

// AddService implements renderer.ServiceRendererAPI.
func (t *table) AddService(s *renderer.ContivService) error {
	t.services[s.ID] = s
	return nil
}

// UpdateService implements renderer.ServiceRendererAPI.
func (t *table) UpdateService(_, s *renderer.ContivService, _ []*renderer.ContivService) error {
	t.services[s.ID] = s
	return nil
}

// DeleteService implements renderer.ServiceRendererAPI.
func (t *table) DeleteService(s *renderer.ContivService, _ []*renderer.ContivService) error {
	delete(t.services, s.ID)
	return nil
}

// UpdateNodePortServices implements renderer.ServiceRendererAPI.
func (t *table) UpdateNodePortServices(nodeIPs *renderer.IPAddresses, _ []*renderer.ContivService) error {
	t.nodeIPs = nodeIPs
	return nil
}

// UpdateLocalFrontendIfs implements renderer.ServiceRendererAPI.
func (t *table) UpdateLocalFrontendIfs(_, _ renderer.Interfaces) error { return nil }

// UpdateLocalBackendIfs implements renderer.ServiceRendererAPI.
func (t *table) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error { return nil }

// Resync implements renderer.ServiceRendererAPI.
func (t *table) Resync(ev *renderer.ResyncEventData) error {
	clear(t.services)
	for _, s := range ev.Services {
		t.services[s.ID] = s
	}
	t.nodeIPs = ev.NodeIPs
	return nil
}

// String lists the table, a line for each address and port.
func (t *table) String() string {
	var lines []string
	for _, s := range t.services {
		for name, port := range s.Ports {
			for _, addr := range s.ClusterIPs.Addrs() {
				lines = append(lines, t.line(s, name, fmt.Sprintf("%s:%d", addr, port.Port), addr.Is6()))
			}
			for _, addr := range t.nodeIPs.Addrs() {
				if port.NodePort != 0 {
					lines = append(lines, t.line(s, name, fmt.Sprintf("%s:%d", addr, port.NodePort), addr.Is6()))
				}
			}
		}
	}
	return fmt.Sprint(joined(lines))
}

func (t *table) line(s *renderer.ContivService, port, at string, ipv6 bool) string {
	backends, verdict := s.Select(port, renderer.ClusterWide, ipv6)
	if verdict != renderer.Balance {
		return fmt.Sprintf("%s %s: %s", s.ID, at, verdict)
	}
	to := map[string]bool{}
	for _, b := range backends {
		to[fmt.Sprintf("%s:%d", b.IP, b.Port)] = true
	}
	return fmt.Sprintf("%s %s: %v", s.ID, at, slices.Sorted(maps.Keys(to)))
}

func joined(lines []string) (text string) {
	slices.Sort(lines)
	for _, l := range lines {
		text += l + "\n"
	}
	return text
}
