package iptables

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// A failed write is tried again after 1, 2, 4 … ms: about a second in all.
	attempts = 11
	firstGap = time.Millisecond
	// A failed reading is tried again after 100, 200, 400 ms.
	readAttempts = 4
	readGap      = 100 * time.Millisecond
	// When so many writes in a row fail although the kernel was read just before, and others' writes do not explain it, the
	// chain at fault is looked for.
	suspicious = 2
)

// exitResource is iptables' exit code when the lock is not to be had or another program has written at the same time; the nft variant has
// it for other things too.
const exitResource = 4

// converge writes until the kernel has what is desired. It returns the number of objects written. Chains that the kernel does
// not take are noted as refused and do not count as failures.
func (t *layer) converge(ctx context.Context) (int, error) {
	gap := firstGap
	for attempt := 1; ; attempt++ {
		wrote, err := t.attempt(ctx, attempt > 1)
		switch {
		case err == nil:
			more, err := t.retry(ctx)
			return wrote + more, err
		case ctx.Err() != nil:
			return wrote, errors.Join(ctx.Err(), err)
		case errors.Is(err, errLocked), errors.Is(err, errRead):
			return wrote, err
		case attempt >= suspicious && ended(err) != nil && !ended(err).transient():
			return t.isolate(ctx, err)
		case attempt == attempts:
			return wrote, err
		}
		t.log.Debug("iptables-restore failed; reading the kernel's rules and trying again", "table", t.name, "error", err)
		if err := t.cfg.Clock.Sleep(ctx, gap); err != nil {
			return wrote, err
		}
		gap *= 2
	}
}

// attempt reads if need be, and writes the difference.
func (t *layer) attempt(ctx context.Context, read bool) (int, error) {
	fresh := t.ahead && !read
	t.ahead = false
	if read || t.have == nil {
		fresh = true
		if err := t.readWithRetries(ctx); err != nil {
			return 0, err
		}
	}
	t.plan = t.makePlan(nil)
	d := t.differ(fresh)
	r := d.run(t.name)
	if !fresh && r.risky() {
		// Positions in the kernel's chains, and long chains, need the kernel's present state.
		return t.attempt(ctx, true)
	}
	if err := t.write(ctx, r); err != nil {
		return 0, err
	}
	t.forgetOldRefusals()
	return r.count(), nil
}

// risky is true when the input should be made from what the kernel has right now.
func (r *restore) risky() bool {
	if r == nil {
		return false
	}
	for _, hashes := range r.chains {
		if len(hashes) > rewriteMax {
			return true
		}
	}
	return len(r.hooks) > 0
}

func (r *restore) count() int {
	if r == nil {
		return 0
	}
	return r.writes
}

var errRead = errors.New("the rules cannot be read")

func (t *layer) readWithRetries(ctx context.Context) error {
	gap := readGap
	for attempt := 1; ; attempt++ {
		err := t.read(ctx)
		if err == nil {
			return nil
		}
		if attempt == readAttempts || ctx.Err() != nil {
			return errors.Join(errRead, err)
		}
		t.log.Debug("iptables-save failed; trying again", "table", t.name, "error", err)
		if err := t.cfg.Clock.Sleep(ctx, gap); err != nil {
			return err
		}
		gap *= 2
	}
}

// transient is true for failures that time heals.
func (e *exitError) transient() bool {
	return e.code == exitResource && strings.Contains(e.stderr, "temporarily unavailable")
}

func heldByOthers(err error) bool {
	exit := ended(err)
	return exit != nil && exit.code == exitResource && strings.Contains(exit.stderr, "xtables lock")
}

var lineNumber = regexp.MustCompile(`\bline:? (\d+)`)

// suspect is the owner of the line that a failure names.
func (r *restore) suspect(err error) owner {
	exit := ended(err)
	if exit == nil {
		return owner{}
	}
	for _, m := range lineNumber.FindAllStringSubmatch(exit.stderr, -1) {
		n, err := strconv.Atoi(m[1])
		if err == nil && n >= 1 && n <= len(r.owners) && r.owners[n-1] != (owner{}) {
			return r.owners[n-1]
		}
	}
	return owner{}
}

// retry tries again what did not work before.
func (t *layer) retry(ctx context.Context) (int, error) {
	wrote, err := t.retryRefused(ctx)
	if err != nil || len(t.stuck) == 0 || !t.lookedAround {
		return wrote, err
	}
	t.lookedAround = false
	s := &search{layer: t}
	clear(t.stuck)
	err = s.deletions(ctx)
	return wrote + s.wrote, err
}

// retryRefused tries chains that the kernel refused before: all, and if that fails each, a few at a time.
func (t *layer) retryRefused(ctx context.Context) (int, error) {
	if len(t.refused) == 0 {
		return 0, nil
	}
	wrote := 0
	names := sortedKeys(t.refused)
	groups := [][]string{names}
	if len(names) > 1 {
		for _, n := range names[:min(len(names), retryEach)] {
			groups = append(groups, []string{n})
		}
	}
	for _, group := range groups {
		t.plan = t.makePlan(func(chain string) bool { return slices.Contains(group, chain) })
		r := t.differ(false).run(t.name)
		err := t.write(ctx, r)
		if err == nil {
			for _, n := range group {
				delete(t.refused, n)
			}
			wrote += r.count()
			break
		}
		if ended(err) == nil {
			return wrote, err
		}
	}
	t.plan = t.makePlan(nil)
	return wrote, nil
}

// retryEach is how many refused chains are tried singly in one apply.
const retryEach = 4
