package intdataplane

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/proto"
)

func TestStatusCombiner(t *testing.T) {
	var sent []string
	c := newStatusCombiner(func(key, msg any) {
		text := fmt.Sprintf("%T", msg)
		if update, is := msg.(*proto.WorkloadEndpointStatusUpdate); is {
			text = update.GetId().GetWorkloadId() + " " + update.GetStatus().GetStatus()
		}
		sent = append(sent, text)
	})
	id := any(wlKey("a"))
	one := func(status string) map[any]condition { return map[any]condition{id: {Status: status}} }
	for _, step := range []struct {
		v4, v6 map[any]condition
		want   string
	}{
		{one("down"), one("up"), "a down"},
		{one("up"), one("up"), "a up"},
		{one("up"), one("up"), ""},
		{one("up"), one("error"), "a error"},
		{one("error"), one("down"), ""},
		{one("up"), nil, "a up"},
		{nil, one("down"), "a down"},
		{nil, nil, "*proto.WorkloadEndpointStatusRemove"},
		{nil, nil, ""},
	} {
		sent = nil
		c.apply(step.v4, step.v6)
		got := ""
		if len(sent) > 0 {
			got = sent[0]
		}
		if got != step.want || len(sent) > 1 {
			t.Errorf("v4 %v, v6 %v: sent %q, want %q", step.v4, step.v6, sent, step.want)
		}
	}
}

func TestMarkPool(t *testing.T) {
	p := newMarkPool(0xf0010000, 0x00010000) // numbers 1..31 except for one
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("cali%d", i))
	}
	marks, err := p.assign(names)
	if err != nil || len(marks) != 30 {
		t.Fatalf("%v, %d marks, want 30", err, len(marks))
	}
	seen := map[uint32]bool{}
	for name, mark := range marks {
		if mark == 0 || mark&^0xf0010000 != 0 || mark == 0x00010000 || seen[mark] {
			t.Errorf("%s has mark %#x", name, mark)
		}
		seen[mark] = true
	}
	again, err := p.assign(append([]string{"caliextra"}, names...))
	if err == nil {
		t.Error("31 names fit into 30 numbers")
	}
	for name, mark := range marks {
		if again[name] != mark {
			t.Errorf("%s had %#x, now %#x", name, mark, again[name])
		}
	}
	left, err := p.assign(names[:1])
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", err, left)
	}
	if other, _ := newMarkPool(0xf0010000, 0x00010000).assign(names[5:6]); other[names[5]] != newPoolMark(names[5]) {
		t.Error("a name's number depends on chance")
	}
}

func newPoolMark(name string) uint32 {
	marks, _ := newMarkPool(0xf0010000, 0x00010000).assign([]string{name})
	return marks[name]
}

func TestSpread(t *testing.T) {
	seen := []uint32{}
	for n := range uint32(16) {
		got := spread(n, 0x80f00000&^0x00100000)
		if bits.OnesCount32(got) != bits.OnesCount32(n) || slices.Contains(seen, got) {
			t.Errorf("spread(%d) = %#x", n, got)
		}
		seen = append(seen, got)
	}
}

func TestKubeIPVSComesAndGoes(t *testing.T) {
	for _, c := range []struct {
		enabled bool
		states  []ifacemonitor.State
		want    int
	}{
		{false, []ifacemonitor.State{ifacemonitor.StateDown}, 0},
		{false, []ifacemonitor.State{ifacemonitor.StateUp}, 1},
		{true, []ifacemonitor.State{ifacemonitor.StateUp}, 0},
		{true, []ifacemonitor.State{ifacemonitor.StateDown}, 0},
		{true, []ifacemonitor.State{ifacemonitor.StateUp, ifacemonitor.StateDown}, 1},
		{true, []ifacemonitor.State{ifacemonitor.StateUp, ifacemonitor.StateAbsent}, 1},
	} {
		calls := 0
		check := &ipvsCheck{enabled: c.enabled, restart: func() { calls++ }, log: newBench(t, both).d.log}
		check.OnUpdate(ifUp("eth0", 1))
		for _, state := range c.states {
			check.OnUpdate(&ifaceState{Name: KubeIPVSInterface, State: state})
		}
		if calls != c.want {
			t.Errorf("enabled %v, states %v: restarted %d times, want %d", c.enabled, c.states, calls, c.want)
		}
	}
}
