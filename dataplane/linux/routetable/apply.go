package routetable

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// maxErrors is the maximum number of failed routes that an error names.
const maxErrors = 8

// work holds the state of one Apply.
type work struct {
	errs    []error
	failed  int
	clashes []*entry // routes whose place another route has
	held    []*entry
	flush   []netip.Addr
}

// Apply writes the differences. Routes fail independently: the error names the failed ones, and the next Apply retries them. A link that is
// down or missing is not an error; its routes wait.
func (t *Table) Apply(ctx context.Context) error {
	if t.kernel == nil {
		k, err := t.open()
		if err != nil {
			return err
		}
		t.kernel = k
	}
	err := t.apply(ctx)
	if err != nil {
		var failed failedRoutes
		if !errors.As(err, &failed) {
			t.disconnect()
		}
	}
	return err
}

// failedRoutes means that routes failed although the kernel answered.
type failedRoutes struct{ error }

func (f failedRoutes) Unwrap() error { return f.error }

func (t *Table) apply(ctx context.Context) error {
	t.settleGoals()
	if err := t.readKernel(); err != nil {
		return err
	}
	t.tidyChanged()
	t.wakeResting()
	w := &work{}
	for _, err := range t.invalid {
		w.fail(err)
	}
	p := t.makePlan()
	t.strays, t.resting = p.strays, append(t.resting, p.resting...)
	if t.again.IsZero() || !p.again.IsZero() && p.again.Before(t.again) {
		t.again = p.again
	}
	w.held, w.flush = p.held, p.flush
	err := t.exec(ctx, w, p)
	if err == nil {
		err = t.resolveClashes(ctx, w)
	}
	if t.flush != nil {
		t.flush.add(w.flush) // regardless of failures: these routes are removed
	}
	if err == nil {
		err = t.putHeld(ctx, w)
	}
	if err != nil {
		return err
	}
	t.tidyTodo()
	return w.err()
}

// wakeResting checks the routes in their time of grace again when the first such time is over.
func (t *Table) wakeResting() {
	if t.again.IsZero() || t.now().Before(t.again) {
		return
	}
	for _, e := range t.resting {
		e.resting = false
		if e.differs() {
			t.markTodo(e)
		}
	}
	t.resting, t.again = t.resting[:0], time.Time{}
}

// tidyTodo keeps in the list the entries that still differ.
func (t *Table) tidyTodo() {
	rest := t.todo[:0]
	for _, e := range t.todo {
		if e.differs() && (e.known || !e.resting) {
			rest = append(rest, e)
			continue
		}
		e.todo = false
		t.dropIfIdle(e)
	}
	clear(t.todo[len(rest):])
	t.todo = rest
}

// exec executes a plan and records the resulting state of the kernel.
func (t *Table) exec(ctx context.Context, w *work, p *plan) error {
	if len(p.ops) == 0 {
		return nil
	}
	failed, err := t.kernel.Exec(ctx, t.protocol, p.ops)
	if err != nil {
		return fmt.Errorf("change IPv%d routes: %w", t.cfg.Family, err)
	}
	for i := range p.ops {
		var err error
		if failed != nil {
			err = failed[i]
		}
		o, r := &p.ops[i], p.refs[i]
		switch {
		case r.n != nil:
			t.neighWritten(w, o, r.n, err)
		case o.verb == delRoute:
			t.deleted(w, o, r.e, err)
		default:
			t.put(w, o, r.e, err)
		}
	}
	return nil
}

// isGone reports whether the object to remove, or its link, does not exist.
func isGone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || isLinkGone(err)
}

// isLinkGone reports whether the link was removed or disabled before we were notified.
func isLinkGone(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENXIO)
}

// deleted records the result of a deletion; e is nil for a stray.
func (t *Table) deleted(w *work, o *op, e *entry, err error) {
	if err != nil && !isGone(err) {
		w.fail(fmt.Errorf("remove route %s: %w", t.describe(o.route), err))
		if e == nil {
			t.strays = append(t.strays, o.route)
		}
		return
	}
	if e == nil { // a stray, for a destination that may be wanted: see planStray
		if claimed := t.entries[o.route.dst]; o.route.host() && (claimed == nil || len(claimed.claims) == 0) {
			t.scheduleFlush(&w.flush, o.route.dst.Addr())
		}
		return
	}
	if o.route.host() || e.served {
		t.scheduleFlush(&w.flush, o.route.dst.Addr())
	}
	e.there, e.served = false, false
	if e.wanted {
		w.held = append(w.held, e)
	}
}

// put records the result of adding or replacing a route.
func (t *Table) put(w *work, o *op, e *entry, err error) {
	switch {
	case err == nil:
		e.actual, e.there = o.route, true
		if e.served && !e.goal.host() {
			e.served = false
			t.scheduleFlush(&w.flush, e.dst.Addr())
		}
	case isLinkGone(err):
		t.log.Debug("a route waits for its link", "route", t.describe(o.route), "error", err)
	case errors.Is(err, unix.EEXIST) && o.verb == addRoute:
		w.clashes = append(w.clashes, e)
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		w.fail(fmt.Errorf("add route %s: %w; no route leads to the next hop yet", t.describe(o.route), err))
	case errors.Is(err, unix.EINVAL) && o.route.src.IsValid():
		w.fail(fmt.Errorf("add route %s: %w; is %s an address of this node, and past duplicate detection?",
			t.describe(o.route), err, o.route.src))
	default:
		w.fail(fmt.Errorf("add route %s: %w", t.describe(o.route), err))
	}
}

func (t *Table) neighWritten(w *work, o *op, n *neighbour, err error) {
	switch {
	case o.verb == delNeigh && (err == nil || isGone(err)):
		n.there = false
		t.neighDone(n)
	case o.verb == delNeigh:
		w.fail(fmt.Errorf("remove neighbour %s of link %s: %w", o.neigh.ip, t.linkName(o.neigh.index), err))
	case err == nil:
		n.there, n.actual = true, o.mac
		t.neighDone(n)
	case !isLinkGone(err):
		w.fail(fmt.Errorf("set neighbour %s of link %s: %w", o.neigh.ip, t.linkName(o.neigh.index), err))
	}
}

// resolveClashes determines which routes are in the place of new ones. Routes that are ours, or over the same link, are replaced, since the
// CNI plugin may have added them. All others belong to other programs and are kept.
func (t *Table) resolveClashes(ctx context.Context, w *work) error {
	if len(w.clashes) == 0 {
		return nil
	}
	inWay, err := t.holders(w.clashes)
	if err != nil {
		return err
	}
	p := &plan{}
	for _, e := range w.clashes {
		r, found := inWay[e.dst]
		name := t.names[r.index]
		replaceable := r.protocol == t.protocol || r.index == e.goal.index && r.index > 0 ||
			t.cfg.OwnsIface != nil && name != "" && t.cfg.OwnsIface(name)
		switch {
		case !found:
			p.add = append(p.add, e)
		case !replaceable:
			w.fail(fmt.Errorf("add route %s: routing protocol %d has one for %s over link %s; remove that one",
				t.describe(e.goal), r.protocol, r.dst, t.linkName(r.index)))
		default:
			e.actual, e.there = r, true
			p.add = append(p.add, e)
		}
	}
	w.clashes = nil
	for _, e := range p.add {
		if t.changesHands(e) && e.there {
			p.write(op{verb: delRoute, route: e.actual}, ref{e: e})
		} else {
			p.put(e)
		}
	}
	if err := t.exec(ctx, w, p); err != nil {
		return err
	}
	w.failClashes(t)
	return nil
}

// holders returns the existing routes, of any owner, with the destinations of the given entries.
func (t *Table) holders(of []*entry) (map[netip.Prefix]route, error) {
	wanted := make(map[netip.Prefix]bool, len(of))
	for _, e := range of {
		wanted[e.dst] = true
	}
	routes, err := t.kernel.Routes(0, 0)
	if err != nil {
		return nil, fmt.Errorf("IPv%d: %w", t.cfg.Family, err)
	}
	out := make(map[netip.Prefix]route, len(of))
	for _, r := range routes {
		if _, first := out[r.dst]; wanted[r.dst] && !first && r.metric == t.metric() && r.tos == 0 {
			out[r.dst] = r
		}
	}
	return out, nil
}

// putHeld adds the routes that had to wait until the old connections of their addresses were removed.
func (t *Table) putHeld(ctx context.Context, w *work) error {
	if len(w.held) == 0 {
		return nil
	}
	limit := time.NewTimer(t.cfg.Timeout)
	defer limit.Stop()
	p := &plan{}
	for _, e := range w.held {
		if done := t.flush.pending(e.dst.Addr()); done != nil {
			select {
			case <-done:
			case <-limit.C:
				limit.Reset(0) // do not wait for the others either
				w.fail(fmt.Errorf("add route %s: conntrack entries of the address's last owner are still being deleted",
					t.describe(e.goal)))
				continue
			case <-ctx.Done():
				w.fail(ctx.Err())
				return nil
			}
		}
		p.put(e)
	}
	w.held = nil
	if err := t.exec(ctx, w, p); err != nil {
		return err
	}
	w.failClashes(t)
	return nil
}

// failClashes reports routes whose place was taken again as failed; the next Apply retries them.
func (w *work) failClashes(t *Table) {
	for _, e := range w.clashes {
		w.fail(fmt.Errorf("add route %s: %w; the conflicting route is read before the next attempt", t.describe(e.goal), unix.EEXIST))
	}
	w.clashes = nil
}

func (w *work) fail(err error) {
	w.failed++
	if len(w.errs) < maxErrors {
		w.errs = append(w.errs, err)
	}
}

func (w *work) err() error {
	if w.failed == 0 {
		return nil
	}
	if more := w.failed - len(w.errs); more > 0 {
		w.errs = append(w.errs, fmt.Errorf("and %d more", more))
	}
	return failedRoutes{errors.Join(w.errs...)}
}

func (t *Table) describe(r route) string {
	s := r.dst.String()
	switch r.typ {
	case unix.RTN_BLACKHOLE:
		return s + " blackhole"
	case unix.RTN_THROW:
		return s + " throw"
	}
	if r.gw.IsValid() {
		s += " via " + r.gw.String()
	}
	return s + " over link " + t.linkName(r.index)
}

func (t *Table) linkName(index int) string {
	if name := t.names[index]; name != "" {
		return name
	}
	return fmt.Sprintf("with index %d", index)
}
