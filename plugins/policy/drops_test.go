package policy

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/plugins/policy/model"
)

// reports holds the reports of a dataplane.
type reports []denied.Flow

func (r reports) WatchDenied(_ context.Context, each func(denied.Flow)) error {
	for _, f := range r {
		each(f)
	}
	return nil
}

// TestDrops checks that reports of the dataplane get pods' names and the denying policy, and are counted by policy and direction.
func TestDrops(t *testing.T) {
	b, h := restBench(t)
	at := time.Now().Add(-time.Second)
	packet := func(seconds int, ingress bool, from, to string, protocol uint8) denied.Flow {
		return denied.Flow{Time: at.Add(time.Duration(seconds) * time.Second), Ingress: ingress, Protocol: protocol,
			Source: netip.MustParseAddrPort(from), Dest: netip.MustParseAddrPort(to), ICMPType: 8}
	}
	b.p.Denied = reports{
		packet(0, true, "10.0.1.1:1000", "10.0.0.1:80", 6), packet(1, true, "10.0.1.1:1001", "10.0.0.1:80", 6),
		packet(2, false, "10.0.0.1:1000", "198.51.100.1:443", 6),
		packet(3, true, "198.51.100.1:0", "10.0.0.1:0", 1),
		packet(4, true, "198.51.100.1:1", "10.0.0.77:1", 17), // of a pod that was removed
	}
	if err := b.p.RunDrops(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rows []dropRow
	h.get(t, dropsPath, 200, &rows)
	if len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	if r := rows[3]; r.Count != 2 || r.Pod != "ns/web" || r.Direction != "ingress" || r.SourcePod != "other/far" || r.DestPod != "ns/web" || r.Port != 80 ||
		r.Protocol != "TCP" || r.Because == "" {
		t.Errorf("%+v", r)
	}
	if r := rows[2]; r.Direction != "egress" || r.Pod != "ns/web" || r.DestPod != "" || r.Dest.String() != "198.51.100.1" {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.ICMPType == nil || *r.ICMPType != 8 || r.Port != 0 || r.Protocol != "ICMP" {
		t.Errorf("%+v", r)
	}
	if r := rows[0]; r.Pod != "" || r.Because == "" {
		t.Errorf("%+v", r)
	}
	if s := (model.EndpointID{}).String(); s != "" {
		t.Errorf("an empty endpoint has the name %q, want an empty one", s)
	}
	h.get(t, dropsPath+"?pod=other/far", 200, &rows)
	if len(rows) != 1 {
		t.Errorf("of other/far: %+v", rows)
	}
	counts := map[string]uint64{}
	for l, n := range b.p.DeniedCounts() {
		counts[l.Policy+" "+direction(l.Ingress)] = n
	}
	if counts["ns/p ingress"] != 3 || counts["ns/p egress"] != 1 || counts["others ingress"] != 1 {
		t.Errorf("%v", counts)
	}
}

// TestDropLines checks that a flood of new flows writes a bounded number of lines, and that later lines contain the number of suppressed
// lines.
func TestDropLines(t *testing.T) {
	now := time.Unix(1700000000, 0)
	l, lines := newLineLimit(now), 0
	for i := range 100000 { // 100 seconds
		if l.allow(now.Add(time.Duration(i) * time.Millisecond)) {
			lines++
		}
	}
	if lines < dropLines || lines > dropLines+20 {
		t.Errorf("%d lines", lines)
	}
	if n := l.skipped(); n != uint64(100000-lines) {
		t.Errorf("%d lines skipped of %d", n, 100000-lines)
	}
}
