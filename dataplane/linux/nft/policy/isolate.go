package policy

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// isolate marks objects that the kernel rejects as broken, so that the rest can be tried without them. It returns false if no further
// object can be marked. Objects that fail only because another one fails are not marked.
func isolate(r *wire.Refusal) bool {
	var worst []wire.Object
	rank := failsBySomething
	for _, o := range r.Order {
		if o.Failed() {
			continue
		}
		at := rankOf(o, r.Objects[o])
		if at > rank {
			rank, worst = at, nil
		}
		if at == rank && (rank != failsByWalk || len(worst) == 0) {
			worst = append(worst, o)
		}
	}
	for _, o := range worst {
		o.Fail(fmt.Errorf("the kernel rejects it: %w", r.Objects[o]))
		o.Touch()
	}
	return len(worst) > 0 || giveUp(r)
}

// Reasons why an object fails; later ones are the causes of earlier ones.
const (
	failsBySomething = iota // it names an object that could not be created
	failsByWalk             // the kernel's check of the paths of packets through the chains; every later message then fails too
	failsItself
	setFails
)

func rankOf(o wire.Object, err error) int {
	if _, isSet := o.(*set); isSet {
		return setFails
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return failsBySomething
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK), errors.Is(err, unix.EOPNOTSUPP):
		return failsByWalk
	}
	return failsItself
}

// giveUp handles chains that the kernel rejects although they only drop: they are left out, and the chains that refer to them become
// broken.
func giveUp(r *wire.Refusal) (any bool) {
	for _, o := range r.Order {
		if n, ok := o.(*node); ok && !n.hopeless {
			n.setHopeless(true)
			any = true
		}
	}
	return any
}

func (n *node) setHopeless(hopeless bool) {
	n.hopeless = hopeless
	n.Touch()
	n.wakeUsers()
}
