package vpp

import (
	"testing"

	"go.fd.io/govpp/adapter"
)

// TestPathCounters checks that packets that an interface refused are counted by VPP's name of the interface, with any number of workers;
// NAT's errors belong to no interface.
func TestPathCounters(t *testing.T) {
	entry := func(name string, data adapter.Stat) adapter.StatEntry {
		return adapter.StatEntry{StatIdentifier: adapter.StatIdentifier{Name: []byte(name)}, Data: data}
	}
	got := sumPathCounters([]adapter.StatEntry{
		entry("/err/host-eth1-tx/tx frame not ready", adapter.SimpleCounterStat{{3}, {4}}),
		entry("/err/host-eth1-tx/tx ring overrun", adapter.ErrorStat{5}),
		entry("/err/host-eth0-tx/tx ring overrun", adapter.ErrorStat{100}),
		entry("/err/nat44-ed-in2out-slowpath/maximum sessions exceeded", adapter.ErrorStat{7, 1}),
		entry("/err/nat44-ed-out2in-slowpath/maximum sessions exceeded", adapter.ScalarStat(2)),
		entry("/contiv/connections4", adapter.ScalarStat(11)),
		entry("/contiv/connections6", adapter.ScalarStat(12)),
		entry("/contiv/connections-max", adapter.ScalarStat(100)),
		entry("/err/contiv-ip4-input/FULL", adapter.SimpleCounterStat{{1}, {2}}),
		entry("/err/contiv-ip6-input/FULL", adapter.SimpleCounterStat{{4}}),
		entry("/err/contiv-ip6-input/LIMIT", adapter.ErrorStat{9}),
		entry("/if/names", adapter.NameStat{[]byte("local0"), nil, []byte("host-eth1")}),
		entry("/if/rx", adapter.CombinedCounterStat{{{1, 10}, {9, 9}, {2, 20}}, {{3, 30}, {9, 9}, {4, 40}}}),
		entry("/if/tx", adapter.CombinedCounterStat{{{5, 50}, {9, 9}, {8, 80}}}),
	})
	if want := (LinkCounters{Offered: 8, Refused: 12, Taken: 6}); got.Links[2] != want || len(got.Links) != 2 || got.NATRefused != 10 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want := (Connections{IPv4: 11, IPv6: 12, Max: 100, TableRefused: 7, EndpointRefused: 9}); got.Connections == nil || *got.Connections != want {
		t.Errorf("connections %+v, want %+v", got.Connections, want)
	}
	if got := sumPathCounters(nil); got.Connections != nil {
		t.Errorf("connections %+v of a VPP without the plugin", got.Connections)
	}
	if _, err := ReadPathCounters("/nothing/stats.sock"); err == nil {
		t.Error("counters of a VPP that is not there")
	}
}
