package nft

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// isolate marks what the kernel refuses as broken, so that the rest can be tried without it; false if nothing more can be
// marked. What fails only because something else does is left alone.
func (r *refusal) isolate() bool {
	var worst []object
	rank := failsBySomething
	for _, o := range r.order {
		if o.failed() {
			continue
		}
		at := rankOf(o, r.objects[o])
		if at > rank {
			rank, worst = at, nil
		}
		if at == rank && (rank != failsByWalk || len(worst) == 0) {
			worst = append(worst, o)
		}
	}
	for _, o := range worst {
		o.fail(fmt.Errorf("the kernel refuses it: %w", r.objects[o]))
		o.touch()
	}
	return len(worst) > 0 || r.giveUp()
}

// Reasons why an object fails, later ones are the causes of earlier ones.
const (
	failsBySomething = iota // that it names and that could not be made
	failsByWalk             // the walk of packets through the chains; every later message then fails too
	failsItself
	setFails
)

func rankOf(o object, err error) int {
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

// giveUp is for chains that the kernel refuses though all they do by now is to drop: they are left out, and what leads to them
// is broken.
func (r *refusal) giveUp() (any bool) {
	for _, o := range r.order {
		if n, ok := o.(*node); ok && !n.hopeless {
			n.setHopeless(true)
			any = true
		}
	}
	return any
}

func (n *node) setHopeless(hopeless bool) {
	n.hopeless = hopeless
	n.touch()
	n.wakeUsers()
}
