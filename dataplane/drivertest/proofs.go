package drivertest

import (
	"reflect"
	"testing"
	"time"
)

// Proof shows that a field of a configuration has an effect. Set sets the field, and Has reports whether the effect is present. Has must return
// true with the field set and false without it: otherwise the driver may ignore the field.
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

// effectTimeout is the time in which an effect must appear, even on a loaded machine.
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
	// The mutant has the same configuration without the field.
	mutant := with
	reflect.ValueOf(&mutant).Elem().Field(field).SetZero()
	if p.Has(t, mutant) {
		t.Error("the proof holds without the field, too")
	}
}
