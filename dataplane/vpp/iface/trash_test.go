package iface

import (
	"testing"
	"time"
)

// On a node where something always happens, interfaces are deleted all the same: they hold packet buffers.
func TestDeferredDeletionOnABusyNode(t *testing.T) {
	busy := func() time.Duration { return 0 }
	item := func(age time.Duration) trashItem { return trashItem{name: age.String(), since: time.Now().Add(-age)} }
	few := &Trash{idle: busy, items: []trashItem{item(time.Second), item(0)}}
	if i, wait := few.next(); wait <= 0 || wait > trashQuiet || len(few.items) != 2 {
		t.Errorf("new ones: %v goes, or %s is waited", i.name, wait)
	}
	old := &Trash{idle: busy, items: []trashItem{item(trashLongest), item(0)}}
	if i, wait := old.next(); wait > 0 || i.name != trashLongest.String() {
		t.Errorf("an old one has to wait for %s", wait)
	}
	if _, wait := old.next(); wait <= 0 {
		t.Error("a new one goes behind the old one")
	}
	many := &Trash{idle: busy}
	for range trashMax + 1 {
		many.items = append(many.items, item(0))
	}
	if _, wait := many.next(); wait > 0 {
		t.Errorf("with %d the oldest has to wait for %s", trashMax+1, wait)
	}
	if _, wait := many.next(); wait <= 0 {
		t.Errorf("with %d the oldest goes at once", trashMax)
	}
}
