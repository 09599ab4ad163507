package vpp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestInterfaceCountersOfAllWorkersAreAddedUp checks that the separate counts of workers are summed; numbers of deleted interfaces
// have no name.
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

// TestInterfaceErrorsOfRealVPP checks on a real VPP that packets to an interface that is down are transmit errors of this interface,
// which become contiv_interface_transmit_errors_total, and that packets that no node accepts are drops of the interface on which they
// were received.
func TestInterfaceErrorsOfRealVPP(t *testing.T) {
	const packets = 25
	v := vpptest.Start(t, vpptest.Options{})
	for _, command := range []string{
		"create loopback interface", "create packet-generator interface pg0", "set interface state pg0 up",
		// To the output of loop0, which is down.
		fmt.Sprintf("packet-generator new { name lost limit %d size 64-64 interface pg0 node loop0-output data { incrementing 64 } }", packets),
		"packet-generator enable-stream lost",
	} {
		if out, err := v.CLI(command); err != nil || strings.Contains(out, "unknown") {
			t.Fatalf("%s: %v %s", command, err, out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []IfCounters
	if err := poll.Until(ctx, 20*time.Millisecond, func() (err error) {
		if got, err = ReadIfCounters(v.StatsSocket()); err != nil {
			return err
		}
		if sent := counted(got, func(c *IfCounters) uint64 { return c.TxErrors }); sent != packets {
			return fmt.Errorf("%d transmit errors, want %d: %+v", sent, packets, got)
		}
		if dropped := counted(got, func(c *IfCounters) uint64 { return c.Drops }); dropped != packets {
			return fmt.Errorf("%d drops, want %d: %+v", dropped, packets, got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("after %d packets to an interface that is down: %+v", packets, got)
}

func counted(list []IfCounters, value func(*IfCounters) uint64) (sum uint64) {
	for i := range list {
		sum += value(&list[i])
	}
	return sum
}
