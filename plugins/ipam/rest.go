package ipam

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/podmanager"
)

// allocationsPath is documented, as is the part of the response that contiv has: Pods, PodID, MainIP.
const allocationsPath = "/contiv/v1/ipam/allocations"

type allocationsReport struct {
	Pods    []podReport
	Subnets []subnetReport
}

type podReport struct {
	PodID     podIDReport
	MainIP    string   // the first of IPs
	IPs       []string // one per family, IPv4 before IPv6
	Container string
	Interface string
}

type podIDReport struct {
	Name      string
	Namespace string
}

type subnetReport struct {
	Subnet netip.Prefix
	Used   int
	Free   int
}

func (p *IPAM) report() allocationsReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := allocationsReport{Pods: []podReport{}, Subnets: []subnetReport{}}
	for id, addrs := range p.alloc.byID {
		r.Pods = append(r.Pods, newPodReport(id, p.pods[id], addrs))
	}
	slices.SortFunc(r.Pods, func(a, b podReport) int {
		return strings.Compare(a.sortKey(), b.sortKey())
	})
	for _, pool := range p.alloc.pools {
		r.Subnets = append(r.Subnets, subnetReport{Subnet: pool.subnet, Used: pool.used, Free: pool.size - pool.used})
	}
	return r
}

func newPodReport(id podmanager.AttachmentID, pod podmanager.PodID, addrs []netip.Addr) podReport {
	r := podReport{
		PodID:     podIDReport{Name: pod.Name, Namespace: pod.Namespace},
		Container: id.ContainerID,
		Interface: id.IfName,
		IPs:       make([]string, 0, len(addrs)),
	}
	for _, a := range addrs {
		r.IPs = append(r.IPs, a.String())
	}
	if len(r.IPs) > 0 {
		r.MainIP = r.IPs[0]
	}
	return r
}

func (r podReport) sortKey() string {
	return strings.Join([]string{r.PodID.Namespace, r.PodID.Name, r.Container, r.Interface}, "\x00")
}

func (p *IPAM) serveAllocations(w http.ResponseWriter, _ *http.Request) {
	rest.WriteJSON(w, http.StatusOK, p.report())
}
