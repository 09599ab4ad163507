package kit

import (
	"errors"
	"fmt"
	"strings"
)

// Faults collects the faults of a value, field by field.
type Faults struct{ errs []error }

func (f *Faults) Add(field, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

func (f *Faults) Err() error { return errors.Join(f.errs...) }

func (f *Faults) Name(field, name string) {
	switch {
	case name == "":
		f.Add(field, "is empty")
	case strings.ContainsRune(name, 0):
		f.Add(field, "contains a zero byte")
	}
}

// Device checks the name of a Linux device; VPP overwrites its own stack with a longer name.
func (f *Faults) Device(field, name string) {
	if len(name) > 15 {
		f.Add(field, "%q is longer than the 15 characters of a Linux device name", name)
	}
}
