package compiler

import (
	"net/netip"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// cluster is a set of objects, and the oracle: allowed reads NetworkPolicy's definition literally, with loops over everything. It
// shares no code with the compiler.
type cluster struct {
	namespaces map[string]*kube.Namespace
	pods       map[model.EndpointID]*kube.Pod
	policies   map[model.PolicyID]*kube.Policy
	locals     map[model.EndpointID]Local
}

func newCluster() *cluster {
	return &cluster{map[string]*kube.Namespace{}, map[model.EndpointID]*kube.Pod{}, map[model.PolicyID]*kube.Policy{},
		map[model.EndpointID]Local{}}
}

// compile is a new compiler's output.
func (c *cluster) compile() (*verdict.State, error) {
	k := New()
	for name, n := range c.namespaces {
		k.SetNamespace(name, n)
	}
	for id, p := range c.pods {
		k.SetPod(id, p)
	}
	for id, p := range c.policies {
		k.SetPolicy(id.Namespace, id.Name, p)
	}
	for _, l := range c.locals {
		k.SetEndpoint(l)
	}
	s := verdict.NewState()
	return s, s.Apply(k.Flush())
}

// allowed reports whether the oracle lets a packet through.
func (c *cluster) allowed(from, to model.EndpointID, p verdict.Packet) bool {
	if from == to && p.Source == p.Dest {
		return true
	}
	return c.direction(from, p, false) && c.direction(to, p, true)
}

func (c *cluster) direction(id model.EndpointID, p verdict.Packet, ingress bool) bool {
	local, is := c.locals[id]
	if !is {
		return true
	}
	own := c.pods[id]
	if own == nil || own.HostNetwork || local.UID != "" && own.Uid != "" && local.UID != own.Uid {
		return false
	}
	isolated := false
	for _, pol := range c.policies {
		isolates, rules := pol.Egress, pol.EgressRules
		if ingress {
			isolates, rules = pol.Ingress, pol.IngressRules
		}
		if !isolates || pol.Namespace != own.Namespace || !selects(pol.Pods, own.Labels) {
			continue
		}
		isolated = true
		for _, r := range rules {
			far := p.Dest
			if ingress {
				far = p.Source
			}
			if c.anyPeer(pol.Namespace, r.Peers, far) && c.anyPort(r.Ports, p) {
				return true
			}
		}
	}
	return !isolated
}

// podAt is the pod that has an address; nil if none has, or more than one says so.
func (c *cluster) podAt(a netip.Addr) *kube.Pod {
	var found []*kube.Pod
	for id, pod := range c.pods {
		if pod.HostNetwork {
			continue
		}
		ips := pod.Ips
		if l, is := c.locals[id]; is && len(l.Addresses) > 0 && (l.UID == "" || pod.Uid == "" || l.UID == pod.Uid) {
			ips = nil
			for _, x := range l.Addresses {
				ips = append(ips, x.String())
			}
		}
		if slices.Contains(ips, a.String()) {
			found = append(found, pod)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return nil
}

func (c *cluster) anyPeer(namespace string, peers []*kube.PolicyPeer, far netip.Addr) bool {
	pod := c.podAt(far)
	for _, peer := range peers {
		if b := peer.IpBlock; b != nil {
			inside := netip.MustParsePrefix(b.Cidr).Contains(far)
			for _, e := range b.Except {
				inside = inside && !netip.MustParsePrefix(e).Contains(far)
			}
			if inside {
				return true
			}
			continue
		}
		if pod == nil || peer.Pods != nil && !selects(peer.Pods, pod.Labels) {
			continue
		}
		if peer.Namespaces == nil {
			if pod.Namespace == namespace {
				return true
			}
			continue
		}
		everything := len(peer.Namespaces.MatchLabels)+len(peer.Namespaces.MatchExpressions) == 0
		if ns := c.namespaces[pod.Namespace]; everything || ns != nil && selects(peer.Namespaces, ns.Labels) {
			return true
		}
	}
	return len(peers) == 0
}

func (c *cluster) anyPort(ports []*kube.PolicyPort, p verdict.Packet) bool {
	for _, port := range ports {
		if number(port.Protocol) != p.Protocol {
			continue
		}
		switch {
		case port.Name != "":
			pod := c.podAt(p.Dest)
			for _, cp := range pod.GetPorts() {
				if cp.Name == port.Name && cp.Protocol == port.Protocol && cp.ContainerPort == uint32(p.Port) {
					return true
				}
			}
		case port.Port == 0, port.Port == uint32(p.Port), port.Port < uint32(p.Port) && uint32(p.Port) <= port.EndPort:
			return true
		}
	}
	return len(ports) == 0
}

func number(p kube.Protocol) model.Protocol {
	return map[kube.Protocol]model.Protocol{kube.Protocol_TCP: 6, kube.Protocol_UDP: 17, kube.Protocol_SCTP: 132}[p]
}

func selects(s *kube.LabelSelector, labels map[string]string) bool {
	for k, v := range s.GetMatchLabels() {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	for _, e := range s.GetMatchExpressions() {
		have, ok := labels[e.Key]
		in := ok && slices.Contains(e.Values, have)
		holds := map[kube.LabelExpression_Operator]bool{
			kube.LabelExpression_IN: in, kube.LabelExpression_NOT_IN: !in, kube.LabelExpression_EXISTS: ok,
			kube.LabelExpression_DOES_NOT_EXIST: !ok,
		}
		if !holds[e.Operator] {
			return false
		}
	}
	return true
}
