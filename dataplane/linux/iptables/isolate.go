package iptables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// isolate finds the chains that make a write fail, replaces them by stubs, and writes the rest. cause is the failure that led to the call.
// The kernel's rules were read just before.
//
// Unlike otherwise, parts of the change are written one after the other here. Chains are written before those that refer to them, and a
// chain that is not written yet is a stub, so at no time does a packet pass that should be blocked.
func (t *layer) isolate(ctx context.Context, cause error) (int, error) {
	if err := t.readWithRetries(ctx); err != nil {
		return 0, err
	}
	t.plan = t.makePlan(nil)
	if err := t.probe(ctx); err != nil {
		return 0, err // nothing can be written: no chain is the cause
	}
	t.log.Info("iptables-restore rejects the rules; searching for the faulty chain", "table", t.name, "error", cause)
	s := &search{layer: t}
	names := make([]string, len(t.plan.units))
	for i, u := range t.plan.units {
		names[i] = u.name
	}
	for _, part := range []func() error{
		func() error { return s.chains(ctx, names) },
		func() error { return s.stubs(ctx) },
		func() error { return s.hooks(ctx) },
		func() error { return s.deletions(ctx) },
	} {
		if err := part(); err != nil {
			t.have = nil
			return s.wrote, err
		}
	}
	return s.wrote, s.err
}

// search is the state of one isolation.
type search struct {
	*layer
	wrote int
	err   error // of hooks
}

// try writes only the given units. The second result is the unit that the kernel's error names, "" if it names none.
func (s *search) try(ctx context.Context, names []string) (failed error, blamed string, err error) {
	d := s.differ(false)
	d.only, d.noHooks = map[string]bool{}, true
	for _, n := range names {
		d.only[n] = true
	}
	d.goes = func(string) bool { return false }
	r := d.run(s.name)
	failed = s.write(ctx, r)
	switch {
	case failed == nil:
		s.wrote += r.count()
		return nil, "", nil
	case ended(failed) == nil:
		return nil, "", failed
	}
	return failed, r.suspect(failed).unit, nil
}

// chains writes all units that the kernel accepts, and records the others as refused.
func (s *search) chains(ctx context.Context, names []string) error {
	failed, blamed, err := s.try(ctx, names)
	switch {
	case err != nil || failed == nil:
		return err
	case len(names) == 1:
		return s.refuse(names[0], failed)
	case slices.Contains(names, blamed):
		rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == blamed })
		if err := s.chains(ctx, rest); err != nil {
			return err
		}
		return s.chains(ctx, []string{blamed})
	}
	if err := s.chains(ctx, names[:len(names)/2]); err != nil {
		return err
	}
	return s.chains(ctx, names[len(names)/2:])
}

func (s *search) refuse(name string, why error) error {
	src := s.layer.chains[name]
	if src == nil || s.plan.broken[name] != nil {
		return fmt.Errorf("%s cannot be programmed, even without rules: %w", name, why)
	}
	s.log.Warn("chain cannot be programmed; it drops all packets", "table", s.name, "chain", name, "error", why)
	s.refused[name] = refused{src.fingerprint(), why}
	return nil
}

// stubs writes stubs in place of the refused chains.
func (s *search) stubs(ctx context.Context) error {
	s.plan = s.makePlan(nil)
	var names []string
	for name := range s.plan.broken {
		names = append(names, name)
	}
	failed, _, err := s.try(ctx, names)
	return errors.Join(err, failed)
}

// hooks writes each hook. A hook that fails remains unchanged: dropping everything would cut off the node.
func (s *search) hooks(ctx context.Context) error {
	all := s.plan.hooks
	for _, name := range hookNames {
		d := s.differ(false)
		d.only, d.goes = map[string]bool{}, func(string) bool { return false }
		only := *s.plan
		only.hooks, only.badHooks = map[string]*piece{}, maps.Clone(s.plan.badHooks)
		for _, other := range hookNames {
			if other != name {
				only.badHooks[other] = errors.New("not now")
			}
		}
		if p := all[name]; p != nil {
			only.hooks[name] = p
		}
		d.plan = &only
		r := d.run(s.name)
		switch err := s.write(ctx, r); {
		case err == nil:
			s.wrote += r.count()
		case ended(err) == nil:
			return err
		default:
			s.plan.badHooks[name] = err
			s.err = errors.Join(s.err, fmt.Errorf("hook %s: %w", name, err))
		}
	}
	return nil
}

// deletions removes unwanted chains if possible: all at once or, if that fails, one by one.
func (s *search) deletions(ctx context.Context) error {
	try := func(which func(string) bool) error {
		d := s.differ(false)
		d.only, d.noHooks = map[string]bool{}, true
		d.goes = func(name string) bool { return s.goes(name) && which(name) }
		r := d.run(s.name)
		err := s.write(ctx, r)
		if err == nil {
			s.wrote += r.count()
		}
		return err
	}
	err := try(func(string) bool { return true })
	if err == nil || ended(err) == nil {
		return err
	}
	for _, name := range (&differ{plan: s.plan, have: s.have, goes: s.goes}).surplus() {
		switch err := try(func(n string) bool { return n == name }); {
		case err == nil:
		case ended(err) == nil:
			return err
		default:
			s.stuck[name] = fmt.Errorf("cannot be removed (does a rule of another program refer to it?): %w", err)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
