package diag

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// inputNodes returns the nodes by which packets enter VPP; which of them exist depends on the plugins.
func inputNodes() []string {
	return []string{"virtio-input", "af-packet-input", "contiv-uplink-input", "memif-input", "dpdk-input", "vhost-user-input", "avf-input", "rdma-input",
		"vmxnet3-input"}
}

// vppTrace is a recording by VPP's packet tracer.
type vppTrace struct {
	s       *Service
	req     TraceRequest
	before  map[errorKey]uint64
	packets int
}

// startVPPTrace empties the trace buffer and makes every input node record its next packets, or those that a filter selects. The client selects
// its packets among them.
func startVPPTrace(ctx context.Context, s *Service, req TraceRequest) (recording, error) {
	t := &vppTrace{s: s, req: req, packets: req.Packets}
	text, err := s.CLI(ctx, "show errors")
	if err != nil {
		return nil, fmt.Errorf("VPP: %w", err)
	}
	t.before = parseErrors(text)
	if err := s.endVPPTrace(ctx); err != nil {
		return nil, err
	}
	if err := s.addVPPTrace(ctx, req); err != nil {
		return nil, errors.Join(err, s.endVPPTrace(context.WithoutCancel(ctx)))
	}
	return t, nil
}

func (s *Service) addVPPTrace(ctx context.Context, req TraceRequest) error {
	filter := ""
	if req.SourcePort != 0 {
		filter = " filter"
		for _, command := range filterCommands(req) {
			if _, err := s.CLI(ctx, command); err != nil {
				return fmt.Errorf("VPP: %w", err)
			}
		}
	}
	var refused []error
	for _, node := range inputNodes() {
		if _, err := s.CLI(ctx, fmt.Sprintf("trace add %s %d%s", node, req.Packets, filter)); err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", node, err))
		}
	}
	if len(refused) == len(inputNodes()) {
		return fmt.Errorf("VPP did not start the trace: %w", errors.Join(refused...))
	}
	return nil
}

// endVPPTrace stops the recording of packets, and removes the recorded packets and the filter. "clear trace" must be first: it stops the use of
// the filter.
func (s *Service) endVPPTrace(ctx context.Context) error {
	for _, command := range []string{"clear trace", "classify filter trace del"} {
		if _, err := s.CLI(ctx, command); err != nil {
			return fmt.Errorf("VPP: %w", err)
		}
	}
	return nil
}

// finish implements recording.
func (t *vppTrace) finish(ctx context.Context) (*Capture, error) {
	text, err := t.s.CLI(ctx, fmt.Sprintf("show trace max %d", len(inputNodes())*t.packets))
	if err != nil {
		err = fmt.Errorf("VPP: %w", err)
	}
	if err = errors.Join(err, t.s.endVPPTrace(ctx)); err != nil {
		return nil, err
	}
	c := &Capture{Dataplane: "vpp", Text: text, Errors: []ErrorCount{}}
	if c.Interfaces, err = t.interfaces(ctx); err != nil {
		return nil, err
	}
	c.Facts = append(podFacts(t.s, t.req), t.fibFacts(ctx)...)
	after, err := t.s.CLI(ctx, "show errors")
	if err != nil {
		return nil, fmt.Errorf("VPP: %w", err)
	}
	for key, n := range parseErrors(after) {
		if n > t.before[key] {
			c.Errors = append(c.Errors, ErrorCount{Where: key.node, Reason: key.reason, Count: n - t.before[key]})
		}
	}
	return c, nil
}

// interfaces returns all interfaces of VPP; those of the agent have the agent's names.
func (t *vppTrace) interfaces(ctx context.Context) ([]Interface, error) {
	text, err := t.s.CLI(ctx, "show interface")
	if err != nil {
		return nil, fmt.Errorf("VPP: %w", err)
	}
	known := map[uint32]Interface{}
	for _, i := range t.s.Interfaces() {
		known[i.Index] = i
	}
	out := []Interface{}
	for index, name := range parseInterfaces(text) {
		i := known[index]
		i.Index, i.Name = index, name
		out = append(out, i)
	}
	return out, nil
}

// parseInterfaces parses name and index from the lines of "show interface" that begin with a name.
func parseInterfaces(text string) map[uint32]string {
	out := map[uint32]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, " ") || len(fields) < 3 {
			continue
		}
		if n, err := strconv.ParseUint(fields[1], 10, 32); err == nil {
			out[uint32(n)] = fields[0]
		}
	}
	return out
}

type errorKey struct{ node, reason string }

// parseErrors parses "show errors": count, node, reason (of several words, cut at 30 characters), severity.
func parseErrors(text string) map[errorKey]uint64 {
	out := map[errorKey]uint64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		n, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			continue
		}
		// Each thread has its own lines.
		out[errorKey{fields[1], strings.Join(fields[2:len(fields)-1], " ")}] += n
	}
	return out
}
