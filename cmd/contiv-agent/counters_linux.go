package main

import (
	"errors"

	"github.com/vishvananda/netlink"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/statscollector"
)

// linkCounters returns the counters of the devices of pods, of the overlay and of the main interface.
func (a *agent) linkCounters() ([]statscollector.Counters, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	pods := map[string]diag.Pod{}
	for _, p := range a.diagPods() {
		if p.Device != "" {
			pods[p.Device] = p
		}
	}
	main := uplinkName(a.ipnet.MainInterface(), a.host.NIC)
	return countersOf(links, pods, main), nil
}

// listTries is how often a list is tried again that changed while it was read.
const listTries = 5

// listLinks lists the links of the agent's network namespace. Where pods are added and removed all the time, it returns a list that may lack a
// link: otherwise there would be no counters at all.
func listLinks() (links []netlink.Link, err error) {
	for range listTries {
		if links, err = netlink.LinkList(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return links, err
		}
	}
	return links, nil
}

// uplinkName returns the main interface: the configured one, or the one with the default route; empty if there is none.
func uplinkName(configured string, nic func(name string) (ipnet.NIC, error)) string {
	if configured != "" {
		return configured
	}
	found, err := nic("")
	if err != nil {
		return "" // the counters of pods do not need it
	}
	return found.Name
}

// countersOf selects the links whose counters are exported.
func countersOf(links []netlink.Link, pods map[string]diag.Pod, main string) []statscollector.Counters {
	var out []statscollector.Counters
	for _, l := range links {
		pod, isPod := pods[l.Attrs().Name]
		n := l.Attrs().Statistics
		if n == nil || !isPod && l.Attrs().Name != main && l.Type() != "vxlan" {
			continue
		}
		out = append(out, statscollector.Counters{
			Namespace: pod.Namespace, Pod: pod.Name, Interface: l.Attrs().Name,
			RxPackets: n.RxPackets, RxBytes: n.RxBytes, TxPackets: n.TxPackets, TxBytes: n.TxBytes,
			Drops: n.RxDropped + n.TxDropped, RxErrors: n.RxErrors, TxErrors: n.TxErrors, NoBuffer: n.RxFifoErrors, Missed: n.RxMissedErrors,
		})
	}
	return out
}
