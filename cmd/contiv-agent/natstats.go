package main

import (
	"net/netip"

	"contiv.dev/vswitch/plugins/statscollector"
)

// countNAT makes the metrics of NAT by pod.
func (a *agent) countNAT() error {
	source := statscollector.NATSource{Pods: a.podsByAddress}
	if a.dataplane.counts.translated == nil {
		return nil
	}
	a.dataplane.counts.translated(&source)
	n := statscollector.NewNAT(source, a.dataplane.counts.interfaces, a.opts.countNATByPod(), a.http, a.logger("statscollector"))
	if a.opts.countNATByPod() <= 0 {
		return nil
	}
	return a.registry.Register(n)
}

// podsByAddress maps addresses to the pods of this node.
func (a *agent) podsByAddress() map[netip.Addr]statscollector.PodName {
	out := map[netip.Addr]statscollector.PodName{}
	for _, at := range a.pods.LocalAttachments() {
		for _, prefix := range at.Addresses {
			out[prefix.Addr()] = statscollector.PodName{Namespace: at.Pod.Namespace, Name: at.Pod.Name}
		}
	}
	return out
}
