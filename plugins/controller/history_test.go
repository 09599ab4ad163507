package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

func TestHistoryKeepsTheInitialPeriodAndTheNewest(t *testing.T) {
	begin := time.Unix(1000, 0)
	h := newHistory(HistoryConfig{RecordEventHistory: true, EventHistoryLimit: 6,
		EventHistoryAgeLimit: Minutes(10 * time.Minute), PermanentlyRecordedInitPeriod: Minutes(time.Minute)})
	h.start(begin)
	add := func(seqNum uint64, after time.Duration) {
		at := begin.Add(after)
		h.add(&EventRecord{SeqNum: seqNum, ProcessingStart: at, ProcessingEnd: at})
	}
	expect := func(after time.Duration, want string) {
		t.Helper()
		var got []uint64
		for _, r := range h.snapshot(begin.Add(after)) {
			got = append(got, r.SeqNum)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("after %s: %v, want %s", after, got, want)
		}
	}
	for i := range uint64(4) { // one more than the limit of the initial period
		add(i+1, time.Duration(i)*time.Second)
	}
	expect(time.Minute, "[1 2 3 4]")
	for i := range uint64(5) {
		add(i+10, 2*time.Minute+time.Duration(i)*time.Second)
	}
	expect(3*time.Minute, "[1 2 3 12 13 14]")
	add(20, 5*time.Minute)
	expect(12*time.Minute+3*time.Second, "[1 2 3 13 14 20]")
	expect(12*time.Minute+4*time.Second, "[1 2 3 14 20]")
	expect(24*time.Hour, "[1 2 3]")
	add(30, 25*time.Hour)
	expect(25*time.Hour, "[1 2 3 30]")
}

// TestHistoryBoundsOperations: many records with large transactions keep their text, but not all of their operations.
func TestHistoryBoundsOperations(t *testing.T) {
	begin := time.Unix(1000, 0)
	h := newHistory(HistoryConfig{RecordEventHistory: true, EventHistoryLimit: 100,
		EventHistoryAgeLimit: Minutes(time.Hour), PermanentlyRecordedInitPeriod: Minutes(time.Minute)})
	if h.maxOps != 200_000 {
		t.Errorf("the limit is %d operations", h.maxOps)
	}
	h.start(begin)
	add := func(seqNum uint64, ops int, after time.Duration) *EventRecord {
		at := begin.Add(after)
		r := &EventRecord{SeqNum: seqNum, ProcessingStart: at, ProcessingEnd: at, Error: "stays",
			Txn: &txn.Record{Description: "resync", Planned: make([]txn.Op, ops/2), Executed: make([]txn.Op, ops-ops/2)}}
		h.add(r)
		return r
	}
	expect := func(after time.Duration, want string) {
		t.Helper()
		var got []string
		sum := 0
		for _, r := range h.snapshot(begin.Add(after)) {
			got = append(got, fmt.Sprintf("%d:%d", r.SeqNum, r.ops()))
			sum += r.ops()
			if r.Error != "stays" || r.ops()+r.Txn.OpsDropped == 0 {
				t.Errorf("#%d has lost more than its operations: %+v", r.SeqNum, r)
			}
			if r.ops() == 0 && !strings.Contains(r.String(), "80000 operations are no longer stored") {
				t.Errorf("text of a short record: %s", r)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
		if sum != h.initialOps+h.recentOps {
			t.Errorf("%d operations, counted %d", sum, h.initialOps+h.recentOps)
		}
	}
	add(1, 80_000, 0)
	second := add(2, 80_000, time.Second) // of the initial period, but half of the limit is for later records
	expect(time.Second, "[1:80000 2:80000]")
	add(3, 80_000, 2*time.Minute)
	expect(2*time.Minute, "[1:80000 2:0 3:80000]")
	if second.ops() != 80_000 {
		t.Error("a published record has changed")
	}
	add(4, 80_000, 3*time.Minute)
	add(5, 300_000, 4*time.Minute) // the newest record is complete
	expect(4*time.Minute, "[1:80000 2:0 3:0 4:0 5:300000]")
	h.maxOps = 400_000
	for i := range uint64(50) {
		add(6+i, 2_000, 62*time.Minute+30*time.Second)
	}
	all := h.snapshot(begin.Add(62*time.Minute + 30*time.Second)) // 2 and 3 are too old
	if len(all) != 53 || all[1].SeqNum != 4 || all[2].ops() != 0 || all[3].ops() != 2_000 {
		t.Errorf("%d records, %v", len(all), all[1])
	}
	if h.initialOps+h.recentOps != 180_000 {
		t.Errorf("%d operations", h.initialOps+h.recentOps)
	}
}

func TestHistoryOff(t *testing.T) {
	h := newHistory(HistoryConfig{EventHistoryLimit: 6})
	h.add(&EventRecord{SeqNum: 1})
	if got := h.snapshot(time.Unix(0, 0)); len(got) != 0 {
		t.Errorf("recorded %v", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := newSim(t, func(c *Config) { c.EventHistoryLimit = 10; c.EnableVerification = false }, "alpha")
	s.push(dbResync(nil))
	for i := range 100 {
		s.push(kubeChange("a", fmt.Sprint(i)))
	}
	all := s.records()
	if len(all) != 10 || all[0].SeqNum != 1 || all[9].SeqNum != 101 {
		t.Errorf("%d records, from #%d to #%d", len(all), all[0].SeqNum, all[len(all)-1].SeqNum)
	}
}
