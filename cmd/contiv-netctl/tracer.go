package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/trace"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/service"
)

// maxBackendNodes bounds the number of nodes that record a packet that may go to one of many backends.
const maxBackendNodes = 16

// tracer records packets while one probe is sent.
type tracer struct {
	way
	cluster *client.Cluster
	flags   probeFlags
	packets int
	report  traceReport

	// sourcePort distinguishes the probe from other packets between the same ends.
	sourcePort uint16

	nodes    []string // nodes that record, the sender's first
	captures []*diag.Capture
}

// The source ports of probes are above the range from which Linux takes the ports of connections, so that they are usually free. Connections of
// earlier probes hold theirs for a minute.
const (
	firstSourcePort = 61000
	sourcePorts     = 4000
	portAttempts    = 5
)

// nextSourcePort returns the source port to try after port.
func nextSourcePort(port uint16) uint16 {
	return firstSourcePort + (port-firstSourcePort+1)%sourcePorts
}

func (t *tracer) run(ctx context.Context) error {
	t.sourcePort = firstSourcePort + rand.N[uint16](sourcePorts)
	if err := t.resolve(ctx); err != nil {
		return err
	}
	t.chooseNodes()
	for range portAttempts {
		if err := t.record(ctx); err != nil {
			return err
		}
		if !slices.Contains(t.report.Probe.Errors, syscall.EADDRINUSE.Error()) {
			break
		}
		t.sourcePort = nextSourcePort(t.sourcePort)
	}
	t.explain()
	return t.policies(ctx)
}

// resolve queries the sender's node whether the destination belongs to a service.
func (t *tracer) resolve(ctx context.Context) error {
	f := t.report.Flow
	if f.Port == 0 {
		return nil
	}
	query := url.Values{
		"address": {f.Dest.String()}, "port": {strconv.Itoa(int(f.Port))}, "protocol": {f.Proto}, "source": {f.Source.String()},
	}
	s := &trace.Service{}
	err := t.agent.Get(ctx, service.ResolvePath+"?"+query.Encode(), &s.Resolution)
	if notThere(err) {
		return nil
	}
	if err == nil {
		t.report.Service = s
	}
	return err
}

// chooseNodes selects the nodes that record: the sender's, and the receiver's or those of the backends.
func (t *tracer) chooseNodes() {
	t.nodes = []string{t.from.node}
	add := func(node string) {
		if node != "" && !slices.Contains(t.nodes, node) && len(t.nodes) <= maxBackendNodes {
			t.nodes = append(t.nodes, node)
		}
	}
	if t.report.Service == nil {
		add(t.to.node)
		return
	}
	add(t.nodePortAt())
	for _, b := range t.report.Service.Backends {
		node, _ := t.locate(b.Address.Addr())
		add(node)
	}
}

// nodePortAt returns the node whose node port the packet is for: without VPP, that node chooses the backend.
func (t *tracer) nodePortAt() (node string) {
	if s := t.report.Service; s != nil && s.As == service.AsNodePort {
		node, _ = t.locate(t.report.Flow.Dest)
	}
	return node
}

// locate finds the node, and the pod, that has an address.
func (t *tracer) locate(addr netip.Addr) (node, pod string) {
	p, err := find(t.cluster, t.pods, addr.String())
	if err == nil && p.pod != nil {
		return p.node, p.pod.Namespace + "/" + p.pod.Name
	}
	for _, n := range t.cluster.Nodes().Nodes {
		if slices.Contains(t.addrsOf(n.Name), addr) {
			return n.Name, ""
		}
	}
	return "", ""
}

// maxOwn bounds the addresses of nodes in a request.
const maxOwn = 32

// addrsOf returns the addresses of a node.
func (t *tracer) addrsOf(node string) []netip.Addr {
	for _, n := range t.cluster.Nodes().Nodes {
		if n.Name == node && n.State == "claimed" {
			return nodePlace(n.Name, slices.Concat(n.MgmtIPs, n.VPPIPs)).addrs
		}
	}
	return nil
}

// request returns what a node must record.
func (t *tracer) request(node string) diag.TraceRequest {
	f := t.report.Flow
	req := diag.TraceRequest{Source: f.Source, Dest: f.Dest, Proto: f.Proto, Port: f.Port, SourcePort: t.sourcePort, Packets: t.packets}
	if node == t.from.node {
		req.Namespace, req.Pod = t.from.pod.Namespace, t.from.pod.Name
	}
	for _, on := range []string{t.from.node, t.nodePortAt()} { // these nodes may translate the pod's address to their own
		for _, a := range t.addrsOf(on) {
			if a.Is4() == f.Dest.Is4() && len(req.OtherSources) < maxOwn {
				req.OtherSources = append(req.OtherSources, a)
			}
		}
	}
	if t.report.Service == nil {
		return req
	}
	req.Service = true
	for _, b := range t.report.Service.Backends {
		at, _ := t.locate(b.Address.Addr())
		if (node == t.from.node || node == t.nodePortAt() || at == node) && len(req.Backends) < diag.MaxBackends {
			req.Backends = append(req.Backends, b.Address)
		}
	}
	return req
}

// record traces on the nodes while one probe is sent. It continues if a receiver's node cannot record.
func (t *tracer) record(ctx context.Context) error {
	recordings := make([]*client.Recording, len(t.nodes))
	t.captures, t.missing = make([]*diag.Capture, len(t.nodes)), nil
	var errs []error
	for i, node := range t.nodes {
		agent, err := t.cluster.Agent(node)
		if err == nil {
			recordings[i], err = agent.Trace(ctx, t.request(node))
		}
		switch {
		case err != nil && i == 0:
			errs = append(errs, err)
		case err != nil:
			t.missing = errors.Join(t.missing, err)
		}
	}
	if len(errs) == 0 {
		t.report.Probe = &diag.ProbeResult{}
		req := t.flags.request(t.from, t.report.Flow.Dest)
		req.SourcePort = t.sourcePort
		err := t.agent.Post(ctx, diag.ProbePath, req, t.report.Probe)
		errs = append(errs, err)
	}
	for i, r := range recordings {
		if r == nil {
			continue
		}
		capture, err := r.Stop(ctx)
		if i == 0 {
			errs = append(errs, err)
		} else {
			t.missing = errors.Join(t.missing, err)
		}
		t.captures[i] = capture
	}
	return errors.Join(errs...)
}

// explain joins the nodes' parts.
func (t *tracer) explain() {
	rep := &t.report
	from := trace.Read(t.nodes[0], t.captures[0], rep.Flow)
	rep.Sides = []trace.Side{from}
	if rep.Service == nil {
		for i, c := range t.captures[1:] {
			if c == nil {
				rep.Verdict = trace.ExplainHalf(from, rep.To, rep.Probe, t.whyMissing())
				return
			}
			rep.Sides = append(rep.Sides, trace.Read(t.nodes[i+1], c, from.Onward(rep.Flow)))
		}
		rep.Verdict = trace.Explain(rep.Sides[0], rep.Sides[len(rep.Sides)-1], rep.Probe)
		return
	}
	t.explainService()
}

// explainService follows the packet to the node that chooses a backend, and to the node of the backend.
func (t *tracer) explainService() {
	rep, s := &t.report, t.report.Service
	vip := netip.AddrPortFrom(rep.Flow.Dest, rep.Flow.Port)
	chosen, ok := trace.ChosenBy(rep.Sides[0], vip)
	if at := slices.Index(t.nodes, t.nodePortAt()); !ok && at > 0 && t.captures[at] != nil {
		rep.Sides = append(rep.Sides, trace.Read(t.nodes[at], t.captures[at], rep.Sides[0].Onward(rep.Flow)))
		chosen, ok = trace.ChosenBy(rep.Sides[1], vip)
	}
	by := len(rep.Sides) - 1
	to := -1
	if ok {
		s.Chosen = chosen
		s.Node, s.Pod = t.locate(chosen.Addr())
		to = t.side(s, by)
	}
	for i := range rep.Sides {
		rep.Sides[i].Backend(s.Chosen)
	}
	switch v, lost := trace.LostBefore(rep.Sides[0], rep.Probe); {
	case by > 0 && lost:
		rep.Verdict = v
	case to < 0:
		rep.Verdict = trace.ExplainService(s, rep.Sides[by], nil, rep.Probe)
	default:
		rep.Verdict = trace.ExplainService(s, rep.Sides[by], &rep.Sides[to], rep.Probe)
	}
}

// whyMissing returns why nothing was recorded on a node.
func (t *tracer) whyMissing() string {
	if t.missing == nil {
		return "the node is not known"
	}
	return strings.ReplaceAll(t.missing.Error(), "\n", "; ")
}

// side returns the index of the chosen backend's node in the report; -1 if nothing was recorded on that node. by is the index of the node that
// has chosen the backend.
func (t *tracer) side(s *trace.Service, by int) int {
	rep := &t.report
	if s.Node == rep.Sides[by].Node {
		return by
	}
	at := slices.Index(t.nodes, s.Node)
	if at < 0 || t.captures[at] == nil {
		s.Missing = t.whyMissing()
		return -1
	}
	left := rep.Sides[by].There.Left
	rep.Sides = append(rep.Sides, trace.Read(s.Node, t.captures[at], trace.Flow{
		Source: left.Source.Addr(), Dest: s.Chosen.Addr(), Proto: rep.Flow.Proto, Port: s.Chosen.Port(),
	}))
	return len(rep.Sides) - 1
}
