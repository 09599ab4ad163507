package contivconf

import (
	"errors"
	"fmt"
)

// FieldError is one fault of the configuration.
type FieldError struct {
	// Field is the option, e.g. "ipamConfig.podSubnetCIDR" or "nodeConfig[1].mainVPPInterface.ip".
	Field string
	// Problem describes the fault and its fix.
	Problem string
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// faults collects all faults, so that the operator gets them together.
type faults struct{ errs []error }

func (f *faults) add(field, format string, args ...any) {
	f.errs = append(f.errs, &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

func (f *faults) unsupported(field, what, fix string) {
	f.add(field, "%s is not supported yet; %s", what, fix)
}

func (f *faults) err() error { return errors.Join(f.errs...) }
