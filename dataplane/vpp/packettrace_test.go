package vpp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
)

// TestPacketTrace checks that the packets traced by an earlier agent are cleared, that nodes that VPP does not have are
// ignored, and that a VPP that traces nothing is an error.
func TestPacketTrace(t *testing.T) {
	var requested []string
	refuse := ""
	tr := &PacketTrace{log: slog.New(slog.DiscardHandler), cli: func(_ context.Context, command string) (string, error) {
		if requested = append(requested, command); command == refuse || refuse == "all" && command != "clear trace" {
			return "", errors.New("unknown node")
		}
		return "", nil
	}}
	refuse = "trace add dpdk-input 1000"
	if err := tr.begin(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"clear trace", "trace add virtio-input 1000", "trace add af-packet-input 1000",
		"trace add contiv-uplink-input 1000", "trace add memif-input 1000", "trace add dpdk-input 1000"}; !slices.Equal(requested, want) {
		t.Errorf("%q, want %q", requested, want)
	}
	refuse = "all"
	if tr.begin(t.Context()) == nil {
		t.Error("a VPP that traces nothing is fine")
	}
	refuse = "clear trace"
	if tr.begin(t.Context()) == nil {
		t.Error("a VPP that does not clear its trace is fine")
	}
}
