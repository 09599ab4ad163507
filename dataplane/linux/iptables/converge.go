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
	// A failed write is retried after 1, 2, 4 … ms: about a second in all.
	attempts = 11
	firstGap = time.Millisecond
	// A failed read is retried after 100, 200, 400 ms.
	readAttempts = 4
	readGap      = 100 * time.Millisecond
	// After this number of failed writes in a row, although the kernel's rules were read just before and writes of other programs do not
	// explain it, the faulty chain is searched for.
	suspicious = 2
)

// exitResource is iptables' exit code if the lock cannot be taken or another program has written at the same time; the nft variant uses it
// for other errors too.
const exitResource = 4

// converge writes until the kernel has the desired state. It returns the number of objects written. Chains that the kernel rejects are
// recorded as refused and do not count as failures.
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

// attempt reads the kernel's rules if necessary, and writes the difference.
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
		// Writes that depend on positions in the kernel's chains, and writes of long chains, need the kernel's current state.
		return t.attempt(ctx, true)
	}
	if err := t.write(ctx, r); err != nil {
		return 0, err
	}
	t.removeOldRefusals()
	return r.count(), nil
}

// risky reports whether the input must be based on the kernel's current state.
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

// transient reports whether the failure is temporary, so that a retry may succeed.
func (e *exitError) transient() bool {
	return e.code == exitResource && strings.Contains(e.stderr, "temporarily unavailable")
}

func heldByOthers(err error) bool {
	exit := ended(err)
	return exit != nil && exit.code == exitResource && strings.Contains(exit.stderr, "xtables lock")
}

var lineNumber = regexp.MustCompile(`\bline:? (\d+)`)

// suspect returns the owner of the line that a failure names.
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

// retry retries what has failed before.
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

// retryRefused retries chains that the kernel rejected before: all at once and, if that fails, up to retryEach of them one by one.
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

// retryEach is how many rejected chains are retried singly in one apply.
const retryEach = 4
