package diag

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/nsdo"
)

// factBackends is the maximum number of backends of a service for which the kernel is queried.
const factBackends = 16

// podFacts queries the kernel in the sending pod for the route to the receiver, and in the receiving pod for
// the route back.
func podFacts(s *Service, req TraceRequest) []Fact {
	var facts []Fact
	if pod, err := s.pod(req.Namespace, req.Pod); err == nil {
		facts = inPod(pod, "pod", req.Dest)
	}
	for _, to := range receivers(req) {
		for _, pod := range s.Pods() {
			if !slices.Contains(pod.Addresses, to) {
				continue
			}
			for _, f := range inPod(pod, "receiving pod", req.Source) {
				if req.Service {
					f.Backend = to.String()
				}
				facts = append(facts, f)
			}
			break
		}
	}
	return facts
}

// receivers returns the addresses to which the packet may go.
func receivers(req TraceRequest) []netip.Addr {
	if !req.Service {
		return []netip.Addr{req.Dest}
	}
	var out []netip.Addr
	for _, b := range req.Backends[:min(len(req.Backends), factBackends)] {
		if !slices.Contains(out, b.Addr()) {
			out = append(out, b.Addr())
		}
	}
	return out
}

// inPod queries the kernel of a pod's network namespace.
func inPod(pod Pod, where string, to netip.Addr) (facts []Fact) {
	ns, err := nsdo.Open(pod.Netns)
	if err == nil {
		defer ns.Close()
		err = ns.Do(func() error { facts = way(where, to, netip.Addr{}, ""); return nil })
	}
	if err != nil {
		return []Fact{{Where: where, What: "namespace", Text: err.Error(), Problem: true}}
	}
	return facts
}

// nodeFacts queries the kernel for what it does with the packet on this node if no VPP takes the packet.
func nodeFacts(s *Service, req TraceRequest) []Fact {
	in, src := "", netip.Addr{} // the values for a packet that comes from another node
	if pod, err := s.pod(req.Namespace, req.Pod); err == nil {
		in, src = pod.Device, req.Source
	}
	var facts []Fact
	for _, to := range receivers(req) {
		for _, f := range way("node", to, src, in) {
			if req.Service {
				f.Backend = to.String()
			}
			facts = append(facts, f)
		}
	}
	return facts
}
