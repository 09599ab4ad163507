package vpp

import (
	"testing"

	"go.fd.io/govpp/adapter"
)

// TestInterfaceCountersOfAllWorkersAreAddedUp: workers count apart, and the numbers of interfaces that are gone have no name.
func TestInterfaceCountersOfAllWorkersAreAddedUp(t *testing.T) {
	entry := func(name string, data adapter.Stat) adapter.StatEntry {
		return adapter.StatEntry{StatIdentifier: adapter.StatIdentifier{Name: []byte(name)}, Data: data}
	}
	got := sumIfCounters([]adapter.StatEntry{
		entry("/if/rx", adapter.CombinedCounterStat{{{1, 10}, {9, 9}, {2, 20}}, {{3, 30}, {9, 9}, {4, 40}}}),
		entry("/if/tx", adapter.CombinedCounterStat{{{5, 50}}}),
		entry("/if/drops", adapter.SimpleCounterStat{{1, 9, 2}, {3, 9, 4}}),
		entry("/if/names", adapter.NameStat{[]byte("local0"), nil, []byte("tap1")}),
		entry("/sys/other", adapter.SimpleCounterStat{{7, 7, 7}}),
	})
	want := []IfCounters{
		{Index: 0, RxPackets: 4, RxBytes: 40, TxPackets: 5, TxBytes: 50, Drops: 4}, {Index: 2, RxPackets: 6, RxBytes: 60, Drops: 6},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := ReadIfCounters("/nothing/stats.sock"); err == nil {
		t.Error("counters of a VPP that is not there")
	}
}
