package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Options configure a Backend.
type Options struct {
	NS    *nsdo.Namespace // nil: that of the process
	Log   *slog.Logger    // nil: no log
	Table string          // name of the tables; default "contiv"
	// Append gives our base chains priorities after those of other tables with the usual priorities; otherwise they have the usual ones.
	Append bool
	// Watch is the interval at which an Apply is requested, to check whether another program has changed the tables; default 1 s, negative:
	// never. Such an Apply takes a few microseconds.
	Watch time.Duration
}

// Backend is a table.Backend on nf_tables. It is used by one goroutine.
type Backend struct {
	view     *wire.View
	watch    time.Duration
	families [2]*family
	retried  time.Time // last retry of objects that the kernel rejected
	maxBatch int       // size in bytes of a transaction above which members of new sets are written ahead in separate ones
}

var _ table.Backend = (*Backend)(nil)

// defaultTable is the name of our tables, one in family ip and one in ip6.
const defaultTable = "contiv"

// Open opens a backend. Nothing is read or written before the first Apply. The error reports that nf_tables is not available.
func Open(opts Options) (*Backend, error) {
	if opts.Table == "" {
		opts.Table = defaultTable
	}
	v, err := wire.Open(opts.NS, opts.Log, opts.Table, nil)
	if err != nil {
		return nil, err
	}
	b := &Backend{view: v, watch: wire.WatchInterval(opts.Watch), maxBatch: maxBatch,
		families: [2]*family{newFamily(table.IPv4), newFamily(table.IPv6)}}
	if opts.Append {
		for _, f := range b.families {
			f.behind = 1
		}
	}
	return b, nil
}

// Close closes the sockets. The kernel's rules remain.
func (b *Backend) Close() error {
	b.view.Close()
	return nil
}

// View returns the view that the backend uses; other views of the same goroutine may share its sockets.
func (b *Backend) View() *wire.View { return b.view }

// Name implements table.Backend.
func (b *Backend) Name() string { return "nftables" }

func (b *Backend) family(f table.Family) *family {
	if f == table.IPv6 {
		return b.families[1]
	}
	return b.families[0]
}

// SetChains implements table.Backend.
func (b *Backend) SetChains(f table.Family, l table.Layer, chains ...table.Chain) {
	for _, c := range chains {
		b.family(f).node(l, c.Name).setRules(c.Rules)
	}
}

// SetDispatch implements table.Backend.
func (b *Backend) SetDispatch(f table.Family, l table.Layer, d table.Dispatch) {
	b.family(f).node(l, d.Name).setDispatch(d)
}

// DeleteChains implements table.Backend.
func (b *Backend) DeleteChains(f table.Family, l table.Layer, names ...string) {
	fam := b.family(f)
	for _, name := range names {
		if n := fam.nodes[layerName(l)+"-"+name]; n != nil {
			n.unwant()
		}
	}
}

// SetHook implements table.Backend.
func (b *Backend) SetHook(f table.Family, l table.Layer, h table.Hook, rules ...table.Rule) {
	b.family(f).hook(l, h).setRules(rules)
}

// ReplaceSet implements table.Backend.
func (b *Backend) ReplaceSet(f table.Family, spec table.Set, members []table.Member) {
	fam := b.family(f)
	s := fam.set(spec.ID)
	s.replace(spec, members)
	s.Touch()
}

// ChangeSet implements table.Backend.
func (b *Backend) ChangeSet(f table.Family, id string, add, remove []table.Member) {
	fam := b.family(f)
	if s := fam.sets[id]; s != nil && s.wanted {
		s.change(add, remove)
		s.Touch()
	}
}

// DeleteSet implements table.Backend.
func (b *Backend) DeleteSet(f table.Family, id string) {
	fam := b.family(f)
	if s := fam.sets[id]; s != nil {
		s.wanted = false
		s.Touch()
	}
}

// Resync implements table.Backend. Chains and sets are compared together, since the table is read as a whole in either case.
func (b *Backend) Resync(sets, chains bool) { b.view.Resync = b.view.Resync || sets || chains }

// Pending implements table.Backend. It also returns true if another program has changed the tables.
func (b *Backend) Pending() bool {
	for _, f := range b.families {
		if len(f.dirtyNodes)+len(f.dirtySets) > 0 {
			return true
		}
	}
	return b.view.Resync || b.view.Pending() || b.due()
}

// due reports whether an object can be removed because its grace period is over.
func (b *Backend) due() bool {
	over := b.view.Grace.Over()
	return b.families[0].leaving.due(over) || b.families[1].leaving.due(over)
}

// Apply implements table.Backend: all changes are written in one transaction. Chains that no rule refers to any more are removed in a later
// Apply, after a grace period.
func (b *Backend) Apply(ctx context.Context) table.Result {
	res := table.Result{Broken: map[string]error{}}
	b.retryBroken()
	for attempt := 0; ; attempt++ {
		writes, err := b.attempt(ctx)
		if err == nil {
			res.Writes, res.Repaired = writes, b.view.Repaired(writes)
			break
		}
		if attempt < wire.MaxAttempts && ctx.Err() == nil && b.handleFailure(err) {
			continue
		}
		res.Err = fmt.Errorf("program nf_tables tables %s in %s: %w", b.view.Table, b.view.NS, err)
		break
	}
	b.finish(&res)
	return res
}

// retryBroken clears the errors of objects that the kernel rejected earlier, so that they are retried.
func (b *Backend) retryBroken() {
	if !b.Pending() && time.Since(b.retried) < wire.RetryAfter {
		return
	}
	b.retried = time.Now()
	for _, f := range b.families {
		for n := range f.brokenNodes {
			n.kernelErr = nil
			if n.hopeless {
				n.setHopeless(false)
			}
		}
		for s := range f.brokenSets {
			s.kernelErr = nil
		}
	}
}

// attempt tries once to bring the kernel up to date.
func (b *Backend) attempt(ctx context.Context) (writes int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := b.view.Connect(); err != nil {
		return 0, err
	}
	if err := b.view.Sync(b.load); err != nil {
		return 0, err
	}
	var affected [2]map[*node]struct{}
	var plans [2]*plan
	over := b.view.Grace.Over()
	for i, f := range b.families {
		affected[i] = f.resolve()
		plans[i] = f.plan(affected[i], over)
	}
	writes, err = b.transact(plans)
	if err != nil {
		b.keepDirty(affected)
		return 0, err
	}
	for i, f := range b.families {
		plans[i].done()
		plans[i].left(&b.view.Grace)
		f.tidy(affected[i])
	}
	return writes, nil
}

// keepDirty marks the chains that this attempt has processed, so that the next attempt processes them again.
func (b *Backend) keepDirty(affected [2]map[*node]struct{}) {
	for _, nodes := range affected {
		for n := range nodes {
			n.Touch()
		}
	}
}

// handleFailure handles a failure; it returns false if a retry does not make sense.
func (b *Backend) handleFailure(err error) bool {
	var refused *wire.Refusal
	if errors.As(err, &refused) {
		return isolate(refused)
	}
	return b.view.Again(err)
}

// finish reports broken objects, and when to call Apply again.
func (b *Backend) finish(res *table.Result) {
	for _, f := range b.families {
		for s := range f.brokenSets {
			res.Broken[s.Key()] = s.broken
		}
		for n := range f.brokenNodes {
			res.Broken[n.Key()] = n.why()
		}
	}
	if len(res.Broken) == 0 {
		res.Broken = nil
	}
	if res.Err != nil {
		return
	}
	res.Again = b.watch
	if b.families[0].leaving.staying() || b.families[1].leaving.staying() {
		res.Again = wire.GraceLook
	}
}

// maxBatch is the maximum size of a datagram in bytes, so that the kernel can allocate memory for it.
const maxBatch = 128 << 20

// transact sends the plans as one transaction, followed by a second one for elements that packets must not see before the first is
// complete. If the transaction is too large, it is split: new sets, which no rule uses yet, are written first.
func (b *Backend) transact(plans [2]*plan) (writes int, err error) {
	t := b.view.NewBatch()
	t.B = slices.Grow(t.B, plans[0].size()+plans[1].size())
	for _, p := range plans {
		p.write(t)
	}
	if t.Empty() {
		return b.later(plans, 0)
	}
	if len(t.B) > b.maxBatch {
		if ahead, err := b.ahead(plans); ahead > 0 || err != nil {
			if err != nil {
				return 0, err
			}
			rest, err := b.transact(plans)
			return ahead + rest, err
		}
	}
	if err := b.view.Commit(t); err != nil {
		return 0, err
	}
	return b.later(plans, t.Writes)
}

// later adds the map elements that refer to new chains, after these chains exist.
func (b *Backend) later(plans [2]*plan, writes int) (int, error) {
	t := b.view.NewBatch()
	for _, p := range plans {
		p.writeLater(t)
	}
	if t.Empty() {
		return writes, nil
	}
	if err := b.view.Commit(t); err != nil {
		b.view.Invalidate() // the first transaction is done, but not recorded
		return writes, err
	}
	return writes + t.Writes, nil
}
