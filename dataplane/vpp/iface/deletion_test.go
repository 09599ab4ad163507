package iface

import (
	"testing"
	"time"
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
