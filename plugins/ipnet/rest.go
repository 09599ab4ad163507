package ipnet

import (
	"errors"
	"net/http"

	"contiv.dev/vswitch/internal/rest"
)

// ipamReport is the documented response of GET /contiv/v1/ipam. With two address families it contains the first one (IPv4); GET
// /contiv/v1/ipam/allocations contains both.
type ipamReport struct {
	NodeID            uint32 `json:"nodeId"`
	NodeName          string `json:"nodeName"`
	NodeIP            string `json:"nodeIP"`
	PodSubnetThisNode string `json:"podSubnetThisNode"`
	VppHostNetwork    string `json:"vppHostNetwork"`
}

func (s *settings) ipamReport() *ipamReport {
	r := &ipamReport{NodeID: s.nodeID, NodeName: s.nodeName}
	if len(s.nodeIPs) > 0 {
		r.NodeIP = s.nodeIPs[0].Addr().String()
	}
	if len(s.podSubnets) > 0 {
		r.PodSubnetThisNode = s.podSubnets[0].Subnet.String()
	}
	if len(s.hostLinks) > 0 {
		r.VppHostNetwork = s.hostLinks[0].Subnet.String()
	}
	return r
}

func (n *IPNet) serveIPAM(w http.ResponseWriter, _ *http.Request) {
	report := n.report.Load()
	if report == nil {
		rest.WriteError(w, http.StatusServiceUnavailable, errors.New("the start-up resync has not run yet; check that the cluster database is reachable"))
		return
	}
	rest.WriteJSON(w, http.StatusOK, report)
}
