package drivertest

import (
	"reflect"
	"testing"
	"time"
)

// Proof shows that a field of a configuration has an effect. Set gives the field a value, and Has says whether the effect is there. It
// must be there with the value, and must not be there without: a driver that ignores the field is like one without.
type Proof[C any] struct {
	Set func(c *C)
	Has func(t *testing.T, c C) bool
}

// ProveFields runs the proofs of all fields of a configuration. The list of fields comes from the type: a field without a proof fails.
func ProveFields[C any](t *testing.T, proofs map[string]Proof[C]) {
	t.Helper()
	fields := reflect.TypeFor[C]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		p, is := proofs[name]
		if !is {
			t.Errorf("%s.%s has no proof that it has an effect: add one", fields.Name(), name)
			continue
		}
		delete(proofs, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prove(t, p, i)
		})
	}
	for name := range proofs {
		t.Errorf("there is no field %s", name)
	}
}

// effectTimeout is the longest time that an effect may take, on a loaded machine.
const effectTimeout = time.Minute

func prove[C any](t *testing.T, p Proof[C], field int) {
	t.Helper()
	var with, without C
	p.Set(&with)
	value := reflect.ValueOf(with).Field(field)
	if value.Kind() != reflect.Func && reflect.DeepEqual(value.Interface(), reflect.ValueOf(without).Field(field).Interface()) {
		t.Fatal("the proof does not set the field")
	}
	for end := time.Now().Add(effectTimeout); !p.Has(t, with); {
		if time.Now().After(end) {
			t.Fatal("it has no effect")
		}
	}
	// The mutant: all as before, but for the field.
	mutant := with
	reflect.ValueOf(&mutant).Elem().Field(field).SetZero()
	if p.Has(t, mutant) {
		t.Error("the proof holds without the field, too")
	}
}
