package renderer

import (
	"errors"
	"fmt"

	"contiv.dev/vswitch/internal/kube/svcmodel"
)

// Refusal is the error for a service that a renderer cannot serve while it serves all others. It is not part of the documented API: any
// other error means that the call as a whole has failed, and a resync follows. After a Refusal no resync follows; the service's problem is
// reported to users.
type Refusal struct {
	ID  svcmodel.ID
	Err error
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("service %s: %v", r.ID, r.Err) }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Refuse wraps an error in a Refusal; nil stays nil.
func Refuse(id svcmodel.ID, err error) error {
	if err == nil {
		return nil
	}
	return &Refusal{ID: id, Err: err}
}

// Refusals separates refusals from other errors.
func Refusals(err error) (refused []*Refusal, rest error) {
	var one *Refusal
	joined, many := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case many:
		var others []error
		for _, e := range joined.Unwrap() {
			r, other := Refusals(e)
			refused, others = append(refused, r...), append(others, other)
		}
		return refused, errors.Join(others...)
	case errors.As(err, &one):
		return []*Refusal{one}, nil
	default:
		return nil, err
	}
	return refused, nil
}
