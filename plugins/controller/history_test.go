package controller

import (
	"fmt"
	"testing"
	"time"
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
