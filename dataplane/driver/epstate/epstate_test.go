package epstate

import (
	"fmt"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

type reasoned struct{ status, reason string }

func (r reasoned) StatusText() string { return r.status }

// TestReport tests that there is a message for each condition that has changed and for each endpoint that is gone, and no other.
func TestReport(t *testing.T) {
	a, h := WorkloadIDOf(&proto.WorkloadEndpointID{OrchestratorId: "k8s", WorkloadId: "ns/a", EndpointId: "eth0"}), HostID("h")
	if a.String() != "k8s/ns/a/eth0" || WorkloadIDOf(a.Message()) != a {
		t.Errorf("ID %v of %v", a, a.Message())
	}
	var before map[any]reasoned
	for i, step := range []struct {
		now  map[any]reasoned
		want []string
	}{
		{map[any]reasoned{a: {Down, "no link"}, h: {Error, "x"}}, []string{"host h error", "ns/a down"}},
		{map[any]reasoned{a: {Down, "no link"}, h: {Error, "x"}}, nil},
		{map[any]reasoned{a: {Down, "no address"}, h: {Up, ""}}, []string{"host h up", "ns/a down"}},
		{map[any]reasoned{a: {Up, ""}}, []string{"host h gone", "ns/a up"}},
		{nil, []string{"ns/a gone"}},
	} {
		var got []string
		Report(func(_, msg any) {
			switch m := msg.(type) {
			case *proto.WorkloadEndpointStatusUpdate:
				got = append(got, m.GetId().GetWorkloadId()+" "+m.GetStatus().GetStatus())
			case *proto.WorkloadEndpointStatusRemove:
				got = append(got, m.GetId().GetWorkloadId()+" gone")
			case *proto.HostEndpointStatusUpdate:
				got = append(got, "host "+m.GetId().GetEndpointId()+" "+m.GetStatus().GetStatus())
			case *proto.HostEndpointStatusRemove:
				got = append(got, "host "+m.GetId().GetEndpointId()+" gone")
			default:
				got = append(got, fmt.Sprintf("%T", msg))
			}
		}, before, step.now)
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		before = step.now
	}
}

// TestWorse tests that the worse one of two families' statuses counts, and that Gone is never the worse one.
func TestWorse(t *testing.T) {
	order := []string{Error, Down, Up, Gone}
	for i, a := range order {
		for j, b := range order {
			if Worse(a, b) != (i < j) {
				t.Errorf("%q is worse than %q: %v", a, b, Worse(a, b))
			}
		}
	}
}
