package policy

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// isolate marks what the kernel refuses as broken, so that the rest can be tried without it; false if nothing more can be
// marked. What fails only because something else does is left alone.
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
		o.Fail(fmt.Errorf("the kernel refuses it: %w", r.Objects[o]))
		o.Touch()
	}
	return len(worst) > 0 || giveUp(r)
}

// Reasons why an object fails, later ones are the causes of earlier ones.
const (
	failsBySomething = iota // that it names and that could not be made
	failsByWalk             // the walk of packets through the chains; every later message then fails too
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

// giveUp is for chains that the kernel refuses though all they do by now is to drop: they are left out, and what leads to them
// is broken.
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
