package main

import "testing"

// TestJoin checks that nodes get different IDs, and that a node that joins again keeps its ID.
func TestJoin(t *testing.T) {
	db := newDB()
	for _, step := range []struct {
		name string
		id   uint32
	}{{"a", 1}, {"b", 2}, {"c", 3}} {
		if id, err := join(db, step.name); err != nil || id != step.id {
			t.Errorf("%s: ID %d, %v; want %d", step.name, id, err, step.id)
		}
	}
}
