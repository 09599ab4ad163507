package validate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// pods checks that the runtime, the address allocation, the dataplane and Kubernetes have the same pods.
func (s *state) pods(n *node) {
	s.allocations(n)
	if n.Info.Dataplane == dataplaneLinux {
		s.linuxPods(n)
	} else {
		s.vppPods(n)
	}
	s.kubernetes(n)
}

func (s *state) allocations(n *node) {
	byContainer := map[string][]netip.Addr{}
	for _, a := range n.Allocations.Pods {
		byContainer[a.Container] = append(byContainer[a.Container], a.IPs...)
	}
	for i := range n.Pods {
		p := &n.Pods[i]
		for _, prefix := range p.Addresses {
			if !slices.Contains(byContainer[p.ContainerID], prefix.Addr()) {
				s.find(n.Node, "address", prefix.Addr().String(), fmt.Sprintf("of pod %s is not allocated: another pod may get it", p.id()))
			}
		}
	}
	attached := map[string]bool{}
	for _, p := range n.Pods {
		attached[p.ContainerID] = true
	}
	for _, a := range n.Allocations.Pods {
		if !attached[a.Container] {
			s.find(n.Node, "address", fmt.Sprint(a.IPs), fmt.Sprintf("is allocated to %s/%s (container %s), which is not connected",
				a.PodID.Namespace,
				a.PodID.Name, a.Container))
		}
	}
}

// podInterface reports whether an interface of VPP belongs to a pod.
func podInterface(name string) bool {
	return strings.HasPrefix(name, "vpp-tap-") || strings.HasPrefix(name, "afpacket-") && name != "afpacket-vpp2"
}

// vppPods checks that each address of a pod has a route to a VPP interface, and an ARP entry on the interface.
func (s *state) vppPods(n *node) {
	byAddr := map[netip.Addr]*Pod{}
	for i := range n.Pods {
		p := &n.Pods[i]
		for _, prefix := range p.Addresses {
			byAddr[prefix.Addr()] = p
			s.vppPod(n, p, prefix)
		}
	}
	for _, r := range n.routes {
		if podInterface(r.Outgoing) && byAddr[addr(r.Dst)] == nil {
			s.find(n.Node, "pod", r.Outgoing, fmt.Sprintf("VPP has a route to %s, which no connected pod has", r.Dst))
		}
	}
	used := map[string]bool{}
	for _, r := range n.routes {
		used[r.Outgoing] = true
	}
	for name := range n.interfaces {
		if podInterface(name) && !used[name] {
			s.find(n.Node, "pod", name, "is an interface of VPP that belongs to no pod")
		}
	}
}

func (s *state) vppPod(n *node, p *Pod, prefix netip.Prefix) {
	at := slices.IndexFunc(n.routes, func(r route) bool { return r.Dst == prefix.String() && podInterface(r.Outgoing) })
	if at < 0 {
		s.find(n.Node, "pod", p.id(), fmt.Sprintf("VPP has no route to its address %s", prefix.Addr()))
		return
	}
	ifName := n.routes[at].Outgoing
	if _, ok := n.interfaces[ifName]; !ok {
		s.find(n.Node, "pod", p.id(), fmt.Sprintf("VPP does not have its interface %s", ifName))
	}
	if !slices.ContainsFunc(n.neighbours, func(e neighbour) bool { return e.Interface == ifName && addr(e.IP) == prefix.Addr() }) {
		s.find(n.Node, "arp", prefix.Addr().String(), fmt.Sprintf("there is no ARP entry for pod %s on %s", p.id(), ifName))
	}
}

// linuxPods checks that each pod has an endpoint of the driver, that the kernel has its device, and that there is a route to the device.
func (s *state) linuxPods(n *node) {
	devices := map[netip.Addr]string{}
	for _, w := range n.workloads {
		for _, ip := range addrs(slices.Concat(w.Endpoint.IP4, w.Endpoint.IP6)) {
			devices[ip] = w.Endpoint.Name
		}
	}
	connected := map[netip.Addr]bool{}
	for i := range n.Pods {
		p := &n.Pods[i]
		for _, prefix := range p.Addresses {
			ip := prefix.Addr()
			connected[ip] = true
			device, ok := devices[ip]
			if !ok {
				s.find(n.Node, "pod", p.id(), fmt.Sprintf("the Linux driver has no endpoint with its address %s", ip))
			} else if n.Kernel != nil {
				s.kernelPod(n, p, prefix, device)
			}
		}
	}
	for ip, device := range devices {
		if !connected[ip] {
			s.find(n.Node, "pod", device, fmt.Sprintf("is the endpoint of %s, which no connected pod has", ip))
		}
	}
}

func (s *state) kernelPod(n *node, p *Pod, prefix netip.Prefix, device string) {
	up := false
	for _, l := range n.Kernel.Links {
		up = up || l.Name == device && l.Up
	}
	if !up {
		s.find(n.Node, "pod", p.id(), fmt.Sprintf("its device %s is not there, or is down", device))
	}
	for _, r := range n.Kernel.Routes {
		if r.Dst == prefix.String() && r.Type == "unicast" {
			if r.Device != device {
				s.find(n.Node, "route", r.Dst, fmt.Sprintf("of pod %s leads to %s, not to its device %s", p.id(), r.Device, device))
			}
			return
		}
	}
	s.find(n.Node, "route", prefix.String(), fmt.Sprintf("there is no route to pod %s in the kernel", p.id()))
}

// kubernetes checks that pods that Kubernetes has on this node are connected, with the same addresses.
func (s *state) kubernetes(n *node) {
	if !n.Kube.Known {
		return
	}
	connected := map[string]*Pod{}
	for i := range n.Pods {
		if n.Pods[i].Current {
			connected[n.Pods[i].id()] = &n.Pods[i]
		}
	}
	known := map[string]bool{}
	for _, k := range n.Kube.Pods {
		id := k.Namespace + "/" + k.Name
		known[id] = true
		p := connected[id]
		switch {
		case k.HostNetwork || k.Terminating || len(k.IPs) == 0:
		case p == nil:
			s.find(n.Node, "pod", id, fmt.Sprintf("has the addresses %v in Kubernetes, and is not connected", k.IPs))
		default:
			for _, ip := range addrs(k.IPs) {
				if !slices.ContainsFunc(p.Addresses, func(a netip.Prefix) bool { return a.Addr() == ip }) {
					s.find(n.Node, "pod", id, fmt.Sprintf("has the address %s in Kubernetes, and is connected with %v", ip, p.Addresses))
				}
			}
		}
	}
	for id := range connected {
		if !known[id] {
			s.find(n.Node, "pod", id, "is connected, and Kubernetes has no such pod on this node")
		}
	}
}

// addresses checks that no address is used twice, and that each is in the subnet of its node.
func (s *state) addresses() {
	owner := map[netip.Addr]string{}
	for _, n := range s.sorted() {
		for i := range n.Pods {
			p := &n.Pods[i]
			for _, prefix := range p.Addresses {
				ip := prefix.Addr()
				if other, taken := owner[ip]; taken {
					s.find(n.Node, "address", ip.String(), fmt.Sprintf("of pod %s on %s is also that of %s", p.id(), n.Node, other))
				}
				owner[ip] = p.id() + " on " + n.Node
				inside := len(n.Allocations.Subnets) == 0
				for _, sub := range n.Allocations.Subnets {
					inside = inside || sub.Subnet.Contains(ip)
				}
				if !inside {
					s.find(n.Node, "address", ip.String(), fmt.Sprintf("of pod %s is not in a subnet of its node: no other node has a "+
						"route to it", p.id()))
				}
			}
		}
	}
}
