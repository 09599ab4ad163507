package iface

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// Interfaces are deleted even on a node that is never idle: they hold packet buffers.
func TestDeferredDeletionOnABusyNode(t *testing.T) {
	busy := func() time.Duration { return 0 }
	item := func(age time.Duration) deletion { return deletion{name: age.String(), since: time.Now().Add(-age)} }
	few := &DeletionQueue{idle: busy, items: []deletion{item(time.Second), item(0)}}
	if i, wait := few.next(); wait <= 0 || wait > deletionQuiet || len(few.items) != 2 {
		t.Errorf("new ones: %v goes, or %s is waited", i.name, wait)
	}
	old := &DeletionQueue{idle: busy, items: []deletion{item(deletionLongest), item(0)}}
	if i, wait := old.next(); wait > 0 || i.name != deletionLongest.String() {
		t.Errorf("an old one has to wait for %s", wait)
	}
	if _, wait := old.next(); wait <= 0 {
		t.Error("a new one goes behind the old one")
	}
	many := &DeletionQueue{idle: busy}
	for range deletionMax + 1 {
		many.items = append(many.items, item(0))
	}
	if _, wait := many.next(); wait > 0 {
		t.Errorf("with %d the oldest has to wait for %s", deletionMax+1, wait)
	}
	if _, wait := many.next(); wait <= 0 {
		t.Errorf("with %d the oldest goes at once", deletionMax)
	}
}

// Interfaces that an earlier version of the agent has marked must be found after an upgrade.
func TestDeletedTagPrefix(t *testing.T) {
	if DeletedTagPrefix != "contiv-trash:" {
		t.Errorf("interfaces with the tags of earlier versions, contiv-trash:, are not found any more; the prefix is %s", DeletedTagPrefix)
	}
}

// TestDeletionDuringAdopt: an interface that is added while the queue reads VPP's interfaces stays in the queue, once.
func TestDeletionDuringAdopt(t *testing.T) {
	q := NewDeletionQueue(conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, slog.New(slog.DiscardHandler)), nil, slog.New(slog.DiscardHandler))
	q.coming = 3
	q.add(deletion{name: "of an earlier VPP", index: 1})
	start := time.Now()
	q.add(deletion{name: "after the dump", index: 2})
	q.add(deletion{name: "in the dump", index: 3})
	q.begin(7, start, []deletion{{name: "in the dump", index: 3}, {name: "of an earlier agent", index: 4}})
	var names []string
	for _, i := range q.items {
		names = append(names, i.name)
	}
	slices.Sort(names)
	if want := []string{"after the dump", "in the dump", "of an earlier agent"}; !slices.Equal(names, want) || q.session != 7 {
		t.Errorf("session %d, queue %q, want %q", q.session, names, want)
	}
}

// TestDeletionQueueIsFull: the queue admits a limited number of interfaces, including those whose requests are in flight.
func TestDeletionQueueIsFull(t *testing.T) {
	q := NewDeletionQueue(conn.New(conn.Config{Socket: filepath.Join(t.TempDir(), "none")}, slog.New(slog.DiscardHandler)), nil, slog.New(slog.DiscardHandler))
	for i := range deletionFull {
		if !q.admit() {
			t.Fatalf("not admitted with %d", i)
		}
		if i%2 == 0 {
			q.add(deletion{index: uint32(i)})
		}
	}
	if q.admit() {
		t.Error("admitted more")
	}
	q.reject()
	if !q.admit() || q.admit() {
		t.Error("a rejected one does not make room for one other")
	}
	q.begin(1, time.Now().Add(time.Hour), nil)
	if n := deletionFull - deletionFull/2; q.coming != n {
		t.Errorf("%d are coming, want %d", q.coming, n)
	}
}
