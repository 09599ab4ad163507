package vppfake

import (
	"reflect"
	"strings"
	"testing"
)

// TestCountsAreGuarded: for a request with a list whose length is a u32, the generated decoder allocates as many elements as a client writes
// there. Such an entry needs counted().
func TestCountsAreGuarded(t *testing.T) {
	tab := newTable()
	for _, kind := range objectKinds() {
		kind.register(tab)
	}
	for _, e := range tab.rows() {
		if e.handle != nil && e.guard == nil && bigList(reflect.TypeOf(e.msg).Elem()) {
			t.Errorf("%s has a list with a u32 count and no guard", e.name())
		}
	}
}

// bigList reports whether the type has a slice whose count field is a u32.
func bigList(typ reflect.Type) bool {
	counts := map[string]bool{}
	for i := range typ.NumField() {
		tag := typ.Field(i).Tag.Get("binapi")
		kind, rest, _ := strings.Cut(tag, ",")
		name, _, _ := strings.Cut(strings.TrimPrefix(rest, "name="), ",")
		if kind == "u32" {
			counts[name] = true
		}
		if open := strings.IndexByte(kind, '['); open >= 0 && counts[strings.Trim(kind[open:], "[]")] {
			return true
		}
		if f := typ.Field(i).Type; f.Kind() == reflect.Struct && bigList(f) {
			return true
		}
	}
	return false
}

func TestIDsDifferBetweenBoots(t *testing.T) {
	f := New(Config{})
	defer f.Close()
	before := f.st.table.byName["control_ping"].id
	same := 0
	for range 10 {
		f.Crash()
		if f.st.table.byName["control_ping"].id == before {
			same++
		}
	}
	if same > 3 {
		t.Errorf("control_ping had the same id after %d of 10 crashes", same)
	}
	if f.st.table.byName["sockclnt_create"].id != sockclntCreateID {
		t.Error("sockclnt_create has moved")
	}
}
