package service

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// TestReservedNodePorts checks that ports are parsed, and that invalid ones are rejected.
func TestReservedNodePorts(t *testing.T) {
	if ports, err := ParseNodePorts(DefaultReservedNodePorts()); err != nil || len(ports) == 0 {
		t.Errorf("the default: %v, %v", ports, err)
	}
	got, err := ParseNodePorts([]string{"tcp:22", "udp:5000-5010"})
	want := []processor.NodePort{{Protocol: renderer.TCP, First: 22, Last: 22}, {Protocol: renderer.UDP, First: 5000, Last: 5010}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "22", "tcp:", "tcp:0", "tcp:65536", "tcp:9-8", "icmp:1", "tcp:1-", "tcp:1-2-3"} {
		if got, err := ParseNodePorts([]string{bad}); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}
