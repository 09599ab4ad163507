package iptables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"contiv.dev/vswitch/dataplane/linux/ipset"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// env holds what all layers share.
type env struct {
	cfg     Config
	log     *slog.Logger
	runner  runner
	tools   tools
	metrics *metrics
	sets    *ipset.Sets
	grace   func()        // waits until all packets being processed by the rules have left them; nil: chains are removed at once
	slowest time.Duration // longest run of a program so far
}

// took records how long a program ran. Checks are at least twice the longest run apart, otherwise the agent would do nothing else.
func (e *env) took(d time.Duration) { e.slowest = max(e.slowest, d) }

// save runs iptables-save.
func (e *env) save(ctx context.Context, f table.Family, line func([]byte), args ...string) error {
	e.metrics.saveCalls.Inc()
	began := e.cfg.Clock.Now()
	defer func() { e.took(e.cfg.Clock.Now().Sub(began)) }()
	return e.runner.run(ctx, command{program: e.tools.program(f, "-save"), args: args, env: e.lockEnv(), line: line})
}

// layer is one table of iptables in one family: the desired state, and the recorded state of the kernel.
type layer struct {
	*env
	family table.Family
	name   layerName
	lower  lowerer

	chains map[string]*source
	hooks  map[table.Hook][]table.Rule
	dirty  bool // the desired state has changed since it was last written

	have    *kernelState       // nil: unknown
	plan    *plan              // the last plan
	refused map[string]refused // chains that the kernel rejected
	removals
	reading
	checks  checks
	looking bool // this apply must check whether another program has changed the table
}

// reading is the state of reading the kernel's table.
type reading struct {
	ahead bool // have was read for this apply by readAhead
	// lookedAround is true after the table was read: chains that could not be removed may have become free.
	lookedAround bool
	before       *kernelState // have before it was discarded to read the table again
	foreign      bool         // another program had changed our part of the table when it was last read
}

func newLayer(e *env, f table.Family, l table.Layer) *layer {
	t := &layer{
		env: e, family: f, name: layerNames[l],
		lower: lowerer{
			family: f, layer: l, scratch: e.cfg.ScratchMarks, random: e.tools.version.atLeast(restoreLocks),
			helpers: e.cfg.ChainPrefixes[0],
			setName: func(id string) string { return e.sets.Name(f, id) },
		},
		chains: map[string]*source{}, hooks: map[table.Hook][]table.Rule{}, dirty: true,
		refused: map[string]refused{}, removals: removals{stuck: map[string]error{}},
	}
	t.checks = checks{refresh: e.cfg.RefreshInterval, first: e.cfg.PostWriteCheckInterval}
	return t
}

func (t *layer) set(name string, s *source) {
	t.chains[name] = s
	t.dirty = true
}

func (t *layer) remove(name string) {
	if _, ok := t.chains[name]; ok {
		delete(t.chains, name)
		t.dirty = true
	}
}

func (t *layer) setHook(h table.Hook, rules []table.Rule) {
	if len(rules) == 0 {
		delete(t.hooks, h)
	} else {
		t.hooks[h] = slices.Clone(rules)
	}
	t.dirty = true
}

// pending reports whether apply would have something to do.
func (t *layer) pending(now time.Time) bool {
	return t.dirty || t.have == nil || t.checks.due(now) || len(t.leaving) > 0
}

// troubled reports whether something could not be programmed and must be retried.
func (t *layer) troubled() bool {
	return t.plan != nil && len(t.plan.broken)+len(t.plan.badHooks)+len(t.refused)+len(t.stuck) > 0
}

// object returns the name of a chain in results.
func (t *layer) object(kind, name string) string {
	return fmt.Sprintf("%s v%d %s %s", kind, t.family, t.name, name)
}

// apply writes the desired state to the kernel's table.
func (t *layer) apply(ctx context.Context, res *table.Result) error {
	now := t.cfg.Clock.Now()
	defer func() { t.foreign = t.foreign && t.have == nil }() // until it is repaired
	if !t.ahead && !t.pending(now) && !t.troubled() {
		return nil
	}
	if t.unused() {
		t.have, t.dirty = newKernelState(), false
		t.checks.seen(now)
		return nil
	}
	wrote, err := t.converge(ctx)
	res.Writes += wrote
	res.Repaired = res.Repaired || t.foreign && wrote > 0 && err == nil
	now = t.cfg.Clock.Now()
	if err != nil {
		t.have = nil
		return fmt.Errorf("program %s %s: %w", t.program(""), t.name, err)
	}
	t.dirty = false
	t.checks.done(now, wrote > 0, t.looking, 2*t.slowest)
	if t.looking && wrote > 0 {
		t.log.Warn("rules were changed by another program; repaired", "table", t.name, "family", t.family, "writes", wrote)
	}
	t.report(res)
	t.count(wrote)
	return nil
}

// prepare discards the recorded state of the kernel's table if a check is due.
func (t *layer) prepare(now time.Time) {
	due := t.checks.due(now)
	t.looking = due && !t.dirty && t.have != nil
	t.checks.scheduled = false
	if due {
		t.discard()
	}
}

// discard makes the next apply read the kernel's table.
func (t *layer) discard() {
	if t.have != nil {
		t.before = t.have
	}
	t.have = nil
}

// unused reports whether nothing is desired here and the kernel cannot have objects of ours. It is called before the first read, since
// reading makes the kernel create a table of the legacy variant.
func (t *layer) unused() bool {
	return t.have == nil && t.untouched() && t.tools.variant == VariantLegacy && !legacyTables(t.runner, t.family)[t.name]
}

// untouched reports whether nothing is desired here, and nothing was.
func (t *layer) untouched() bool {
	return len(t.hooks) == 0 && (t.plan == nil || len(t.plan.units)+len(t.plan.hooks) == 0)
}

func (t *layer) program(what string) string { return t.tools.program(t.family, what) }

// report adds what could not be programmed to the result.
func (t *layer) report(res *table.Result) {
	note := func(kind string, m map[string]error) {
		for name, err := range m {
			if res.Broken == nil {
				res.Broken = map[string]error{}
			}
			res.Broken[t.object(kind, name)] = err
		}
	}
	note("chain", t.plan.broken)
	note("hook", t.plan.badHooks)
	note("chain", t.stuck)
}

func (t *layer) count(wrote int) {
	labels := []string{strconv.Itoa(int(t.family)), string(t.name)}
	rules := 0
	for _, hashes := range t.have.chains {
		rules += len(hashes)
	}
	t.metrics.chains.WithLabelValues(labels...).Set(float64(len(t.have.chains)))
	t.metrics.rules.WithLabelValues(labels...).Set(float64(rules))
	t.metrics.lines.WithLabelValues(labels...).Add(float64(wrote))
}

// makePlan computes the desired contents of the table; chains for which good returns true are tried although the kernel has rejected them.
func (t *layer) makePlan(good func(chain string) bool) *plan {
	avoid := map[string]refused{}
	for name, r := range t.refused {
		if good == nil || !good(name) {
			avoid[name] = r
		}
	}
	alien := map[string]bool{}
	if t.have != nil {
		alien = t.have.alien
	}
	p := &planner{
		lower: t.lower, layer: t.name, chains: t.chains, alien: alien, refused: avoid,
		usable: func(set string) bool { return t.sets.Usable(t.family, set) },
	}
	return p.run(t.hooks)
}

// removeOldRefusals removes the records of chains that have changed or were removed.
func (t *layer) removeOldRefusals() {
	maps.DeleteFunc(t.refused, func(name string, r refused) bool {
		src := t.chains[name]
		return src == nil || !src.lowered || src.fingerprint() != r.fingerprint || t.plan.pieces[name] == nil
	})
	maps.DeleteFunc(t.stuck, func(name string, _ error) bool {
		_, there := t.have.chains[name]
		return !there || t.plan.pieces[name] != nil
	})
}

// differ returns a comparison of the current plan with the kernel's state.
func (t *layer) differ(fresh bool) *differ {
	return &differ{
		plan: t.plan, have: t.have, fresh: fresh, mode: t.cfg.InsertMode,
		stub: func(chain string) *piece { return stub(t.name, chain) },
		goes: func(chain string) bool { return t.stuck[chain] == nil && t.goes(chain) },
	}
}

// parser returns a parser for this table's part of the output of iptables-save.
func (t *layer) parser() *saveParser {
	known := func(string) bool { return false }
	if t.plan != nil {
		before, leaving := t.plan.pieces, t.leaving
		known = func(chain string) bool { return before[chain] != nil || leaving[chain] }
	}
	return newSaveParser(t.cfg.ChainPrefixes, known)
}

// read reads the table from the kernel.
func (t *layer) read(ctx context.Context) error {
	p := t.parser()
	err := t.save(ctx, t.family, p.line, "-t", string(t.name))
	if err == nil {
		err = t.setKernelState(p)
	}
	if err != nil {
		t.metrics.saveErrors.Inc()
	}
	return err
}

// setKernelState stores the parsed state.
func (t *layer) setKernelState(p *saveParser) (err error) {
	if t.have != nil {
		t.before = t.have
	}
	if t.have, err = p.state(); err != nil {
		return err
	}
	t.foreign = t.foreign || t.before != nil && !t.before.same(t.have)
	t.before = nil
	t.checks.seen(t.cfg.Clock.Now())
	t.lookedAround = true
	return nil
}

// write runs iptables-restore and records the changes.
func (t *layer) write(ctx context.Context, r *restore) error {
	if r == nil {
		return nil
	}
	release, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	t.metrics.restoreCalls.Inc()
	began := t.cfg.Clock.Now()
	err = t.runner.run(ctx, command{
		program: t.program("-restore"), args: append([]string{"--noflush"}, t.lockArgs()...), env: t.lockEnv(),
		input: r.text.Bytes(),
	})
	t.took(t.cfg.Clock.Now().Sub(began))
	if err != nil {
		t.metrics.restoreErrors.Inc()
		if heldByOthers(err) {
			return fmt.Errorf("%w %s: %w", errLocked, t.cfg.LockFilePath, err)
		}
		return err
	}
	r.applyTo(t.have)
	return nil
}

// probe writes an empty change; if it fails, nothing can be written at all.
func (t *layer) probe(ctx context.Context) error {
	r := &restore{}
	r.line(owner{}, "*", string(t.name))
	r.line(owner{}, "COMMIT")
	return t.write(ctx, r)
}

// ended returns the program's failure, or nil if err is another error.
func ended(err error) *exitError {
	var exit *exitError
	errors.As(err, &exit)
	return exit
}
