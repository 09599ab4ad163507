package idalloc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/plugins/idalloc/idallocation"
)

const (
	// candidatesPerTry is the number of IDs that one transaction tries; each needs three of the cas.MaxOps operations. The cost in etcd
	// grows faster than the number.
	candidatesPerTry = 6
	// Between transactions that found no free ID, a node waits for a random part of a window, which grows up to a limit.
	minWindow = 20 * time.Millisecond
	maxWindow = time.Second
)

// store changes pools and allocations in the cluster database. Its methods wait for the database, and are safe for concurrent use.
type store struct {
	db         cas.Store
	owner      string
	quarantine time.Duration
	log        *slog.Logger
}

// ensure makes sure that the database has the pool, and moves contiv's allocations in it to their own keys.
func (s *store) ensure(ctx context.Context, p *pool) error {
	for {
		v, err := s.db.Get(ctx, poolKey(p.name))
		if err != nil {
			return err
		}
		have := &idallocation.Entry{}
		if v.Rev != 0 {
			if have, err = decode(v.Key, v.Value); err != nil {
				return err
			}
			if !p.same(have) {
				return fmt.Errorf("pool %s: %w: it is %v, this node has %v; give all nodes one configuration", p.name, ErrOtherRange,
					have.GetRange(), p.entry().GetRange())
			}
			if len(have.GetIdAllocations()) == 0 {
				return nil
			}
		}
		for label, old := range have.GetIdAllocations() {
			if err := s.put(ctx, p, Allocation{Label: label, ID: old.GetId(), Owner: old.GetOwner()}); err != nil {
				return err
			}
		}
		// If the process ends before this write, the next call moves them again, which changes nothing.
		value, err := encode(p.entry())
		if err != nil {
			return err
		}
		i, _, err := s.db.CommitFirst(ctx, cas.Change{
			If: []cas.Cond{{Key: poolKey(p.name), Rev: v.Rev}}, Do: []cas.Write{{Key: poolKey(p.name), Value: value}},
		})
		if err != nil || i == 0 {
			return err
		}
	}
}

// put writes an allocation if label and ID are free. If they are not, another program owns them.
func (s *store) put(ctx context.Context, p *pool, a Allocation) error {
	change, err := allocateChange(p, a, 0)
	if err != nil {
		return err
	}
	if _, _, err = s.db.CommitFirst(ctx, change); err != nil {
		return fmt.Errorf("pool %s: label %s: %w", p.name, a.Label, err)
	}
	return nil
}

// allocateChange returns the change that writes both keys, if neither exists and the quarantine key has the revision guard.
func allocateChange(p *pool, a Allocation, guard int64) (cas.Change, error) {
	value, err := a.encode()
	byLabel, byID := labelKey(p.name, a.Label), idKey(p.name, a.ID)
	return cas.Change{
		If: []cas.Cond{{Key: byLabel}, {Key: byID}, {Key: guardKey(p.name, a.ID), Rev: guard}},
		Do: []cas.Write{{Key: byLabel, Value: value}, {Key: byID, Value: value}},
	}, err
}

// get returns the allocation of a label and its revision; the revision is zero if there is none.
func (s *store) get(ctx context.Context, p *pool, label string) (Allocation, int64, error) {
	v, err := s.db.Get(ctx, labelKey(p.name, label))
	if err != nil || v.Rev == 0 {
		return Allocation{}, 0, err
	}
	e, err := decode(v.Key, v.Value)
	if err != nil {
		return Allocation{}, 0, err
	}
	if e.GetLabel() != label || !p.ids.has(e.GetId()) {
		return Allocation{}, 0, fmt.Errorf("%s is broken: label %q, ID %d; delete it", v.Key, e.GetLabel(), e.GetId())
	}
	return allocationOf(e), v.Rev, nil
}

// allocate returns the allocation of a label, and makes it if there is none. If the label had an ID that the database has lost, this ID is
// tried first, even if it is in quarantine because of this label.
func (s *store) allocate(ctx context.Context, p *pool, label string, had uint32) (Allocation, error) {
	if err := s.ensure(ctx, p); err != nil {
		return Allocation{}, err
	}
	var taken map[uint32]bool // empty at first: most likely the candidates are free
	for window := minWindow; ; window = min(2*window, maxWindow) {
		a, rev, err := s.get(ctx, p, label)
		if err != nil || rev != 0 {
			return a, err
		}
		claims, changes, err := s.tries(ctx, p, label, had, taken)
		if err != nil {
			return Allocation{}, err
		}
		i, _, err := s.db.CommitFirst(ctx, changes...)
		if err != nil {
			return Allocation{}, fmt.Errorf("pool %s: label %s: %w", p.name, label, err)
		}
		if i != cas.None {
			return claims[i], nil
		}
		if err := pause(ctx, rand.N(window)); err != nil {
			return Allocation{}, fmt.Errorf("pool %s: label %s: other nodes allocated IDs at the same time; retrying: %w", p.name, label, err)
		}
		if taken, err = s.taken(ctx, p); err != nil {
			return Allocation{}, err
		}
	}
}

// tries returns the allocations to try in one transaction.
func (s *store) tries(ctx context.Context, p *pool, label string, had uint32, taken map[uint32]bool) (
	[]Allocation, []cas.Change, error) {
	ids := p.candidates(label, candidatesPerTry, taken)
	guards := map[uint32]int64{}
	if had != 0 && p.ids.has(had) && !taken[had] {
		v, err := s.db.Get(ctx, guardKey(p.name, had))
		if err != nil {
			return nil, nil, err
		}
		if string(v.Value) == label {
			guards[had] = v.Rev
		}
		ids = append([]uint32{had}, ids...)
	}
	if len(ids) == 0 {
		return nil, nil, fmt.Errorf("pool %s: label %s: %w", p.name, label, ErrExhausted)
	}
	var claims []Allocation
	var changes []cas.Change
	for _, id := range ids {
		a := Allocation{Label: label, ID: id, Owner: s.owner}
		change, err := allocateChange(p, a, guards[id])
		if err != nil {
			return nil, nil, err
		}
		claims, changes = append(claims, a), append(changes, change)
	}
	return claims, changes, nil
}

// taken returns the IDs that are not available.
func (s *store) taken(ctx context.Context, p *pool) (map[uint32]bool, error) {
	out := map[uint32]bool{}
	for _, dir := range []string{idDir(p.name), guardDir(p.name)} {
		keys, _, err := s.db.Keys(ctx, dir, 0)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", p.name, err)
		}
		for _, key := range keys {
			out[idOf(key.Key)] = true
		}
	}
	return out, nil
}

// release releases the ID of a label, if owner owns it. It is not an error if there is none.
func (s *store) release(ctx context.Context, p *pool, label, owner string) error {
	for {
		a, rev, err := s.get(ctx, p, label)
		if err != nil || rev == 0 {
			return err
		}
		if a.Owner != owner {
			return fmt.Errorf("pool %s: label %s: %w: %s", p.name, label, ErrNotOwner, a.Owner)
		}
		change, err := s.releaseChange(ctx, p, a, rev)
		if err != nil {
			return err
		}
		if i, _, err := s.db.CommitFirst(ctx, change); err != nil || i == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// releaseChange returns the change that deletes both keys and starts the quarantine. If another program has assigned the ID's key to
// another label, that key stays.
func (s *store) releaseChange(ctx context.Context, p *pool, a Allocation, rev int64) (cas.Change, error) {
	change := cas.Change{
		If: []cas.Cond{{Key: labelKey(p.name, a.Label), Rev: rev}}, Do: []cas.Write{{Key: labelKey(p.name, a.Label)}},
	}
	v, err := s.db.Get(ctx, idKey(p.name, a.ID))
	if err != nil {
		return change, err
	}
	if v.Rev != 0 {
		e, err := decode(v.Key, v.Value)
		if err != nil || e.GetLabel() != a.Label {
			s.log.Error("label and ID of an allocation do not agree; only the label is released", "pool", p.name, "label", a.Label,
				"id", a.ID, "labelOfID", e.GetLabel())
			return change, nil
		}
		change.If = append(change.If, cas.Cond{Key: v.Key, Rev: v.Rev})
		change.Do = append(change.Do, cas.Write{Key: v.Key})
	}
	if s.quarantine > 0 {
		change.Do = append(change.Do, cas.Write{Key: guardKey(p.name, a.ID), Value: []byte(a.Label), TTL: s.quarantine})
	}
	return change, nil
}

// list returns the allocations of a pool, sorted by label. Invalid ones are skipped and reported in err.
func (s *store) list(ctx context.Context, p *pool) (list []Allocation, err error) {
	values, _, err := s.db.List(ctx, labelDir(p.name))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, v := range values {
		e, err := decode(v.Key, v.Value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, allocationOf(e))
	}
	return list, errors.Join(errs...)
}

// pause waits for d.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
