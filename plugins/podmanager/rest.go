package podmanager

import (
	"net/http"
	"net/netip"

	"contiv.dev/vswitch/internal/rest"
)

const podsPath = "/contiv/v1/pods"

// podInfo is an attachment in the response of the REST API.
type podInfo struct {
	Namespace   string         `json:"namespace"`
	Name        string         `json:"name"`
	UID         string         `json:"uid,omitempty"`
	ContainerID string         `json:"containerID"`
	Interface   string         `json:"interface"`
	Netns       string         `json:"netns"`
	Network     string         `json:"network"`
	Addresses   []netip.Prefix `json:"addresses"`
	MTU         int            `json:"mtu,omitempty"`
	Current     bool           `json:"current"` // the newest attachment of its pod
}

// servePods lists the attachments in the order in which they were added.
func (p *PodManager) servePods(w http.ResponseWriter, _ *http.Request) {
	all := p.LocalAttachments()
	newest := map[PodID]*Attachment{}
	for _, a := range all {
		newest[a.Pod] = a
	}
	list := make([]podInfo, len(all))
	for i, a := range all {
		list[i] = podInfo{
			Namespace: a.Pod.Namespace, Name: a.Pod.Name, UID: a.PodUID, ContainerID: a.ID.ContainerID, Interface: a.ID.IfName,
			Netns: a.Netns, Network: a.Network, Addresses: append([]netip.Prefix{}, a.Addresses...), MTU: a.MTU,
			Current: newest[a.Pod] == a,
		}
	}
	rest.WriteJSON(w, http.StatusOK, list)
}
