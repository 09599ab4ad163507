package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/linux/ipset"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// Backend is a table.Backend that programs iptables. It is used by one goroutine.
type Backend struct {
	env    *env
	log    *slog.Logger
	sets   *ipset.Sets
	layers []*layer // family by family, in the order of table.Layer
	names  int      // sets.Names at the time when the layers were last applied
	// others are the layers of the variant that is not in use, until the objects of an earlier process there are removed.
	others []*layer
}

// New finds the iptables programs and opens the socket for sets. It reads the kernel's state, but writes nothing.
func New(ctx context.Context, cfg Config) (*Backend, error) {
	b, err := newBackend(ctx, cfg, system{cfg.NS})
	if err == nil && b.Variant() == VariantNFT {
		b.env.grace = wire.WaitForReaders
	}
	return b, err
}

func newBackend(ctx context.Context, cfg Config, r runner) (*Backend, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	t, other, err := findTools(ctx, r, cfg.Variant)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Metrics, cfg.MetricPrefix)
	if err != nil {
		return nil, fmt.Errorf("register iptables metrics: %w", err)
	}
	sets, err := ipset.New(ipset.Config{NS: cfg.NS, Log: cfg.Log, Metrics: cfg.Metrics, MetricPrefix: cfg.MetricPrefix,
		Now: cfg.Clock.Now})
	if err != nil {
		return nil, err
	}
	b := &Backend{log: cfg.Log, sets: sets}
	b.env = &env{cfg: cfg, log: cfg.Log, runner: r, tools: t, metrics: m, sets: sets}
	b.layers = allLayers(b.env)
	if other.base != "" {
		env := *b.env
		env.tools = other
		if env.metrics, err = newMetrics(nil, ""); err != nil { // removals there do not count as ours
			return nil, err
		}
		b.others = allLayers(&env)
	}
	return b, nil
}

// allLayers returns the layers, family by family.
func allLayers(e *env) []*layer {
	var out []*layer
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		for l := range layerNames {
			out = append(out, newLayer(e, f, table.Layer(l)))
		}
	}
	return out
}

// Name returns "iptables".
func (b *Backend) Name() string { return "iptables" }

// Variant returns the variant in use, nft or legacy.
func (b *Backend) Variant() Variant { return b.env.tools.variant }

// Close closes the socket for sets.
func (b *Backend) Close() error { return b.sets.Close() }

// layer returns the layer's state, or nil for an unknown family or layer.
func (b *Backend) layer(f table.Family, l table.Layer) *layer {
	i := int(l)
	if f == table.IPv6 {
		i += len(layerNames)
	}
	if f != table.IPv4 && f != table.IPv6 || int(l) >= len(layerNames) {
		b.log.Error("unknown layer of rules; report this as a bug", "family", f, "layer", l)
		return nil
	}
	return b.layers[i]
}

// SetChains adds chains or replaces them completely.
func (b *Backend) SetChains(f table.Family, l table.Layer, chains ...table.Chain) {
	if t := b.layer(f, l); t != nil {
		for _, c := range chains {
			c.Rules = slices.Clone(c.Rules)
			t.set(c.Name, &source{chain: c})
		}
	}
}

// SetDispatch adds a dispatch chain or changes it.
func (b *Backend) SetDispatch(f table.Family, l table.Layer, d table.Dispatch) {
	if t := b.layer(f, l); t != nil {
		d.Chains = maps.Clone(d.Chains)
		d.Default = slices.Clone(d.Default)
		t.set(d.Name, &source{dispatch: &d})
	}
}

// DeleteChains removes chains and dispatch chains.
func (b *Backend) DeleteChains(f table.Family, l table.Layer, names ...string) {
	if t := b.layer(f, l); t != nil {
		for _, n := range names {
			t.remove(n)
		}
	}
}

// SetHook replaces the rules at a hook.
func (b *Backend) SetHook(f table.Family, l table.Layer, h table.Hook, rules ...table.Rule) {
	if t := b.layer(f, l); t != nil && int(h) < len(hookNames) {
		t.setHook(h, rules)
	}
}

// ReplaceSet adds a set or replaces all of its members.
func (b *Backend) ReplaceSet(f table.Family, s table.Set, members []table.Member) {
	b.sets.Replace(f, s, members)
}

// ChangeSet adds and removes members of a set.
func (b *Backend) ChangeSet(f table.Family, id string, add, remove []table.Member) {
	b.sets.Change(f, id, add, remove)
}

// DeleteSet removes a set.
func (b *Backend) DeleteSet(f table.Family, id string) { b.sets.Delete(f, id) }

// Resync makes the next Apply compare the recorded state with the kernel.
func (b *Backend) Resync(sets, chains bool) {
	if sets {
		b.sets.Resync()
	}
	if chains {
		for _, t := range b.layers {
			t.discard()
		}
	}
}

// Pending reports whether Apply would have something to do.
func (b *Backend) Pending() bool {
	now := b.env.cfg.Clock.Now()
	return b.sets.Pending() || slices.ContainsFunc(b.layers, func(t *layer) bool { return t.pending(now) })
}

// Apply writes the differences: sets, then chains and hooks, then deletions of chains, after a grace period, and of sets.
func (b *Backend) Apply(ctx context.Context) table.Result {
	var res table.Result
	if b.addSets(&res, b.sets.ApplyUpdates()); res.Err != nil {
		return res // rules may need missing sets; the kernel's rules remain unchanged
	}
	// A set that cannot be created breaks the chains that need it. A changed name of a set also requires rendering again.
	setsMatter := len(res.Broken) > 0 || b.names != b.sets.Names()
	b.names = b.sets.Names()
	began := b.env.cfg.Clock.Now()
	for _, t := range b.layers {
		t.dirty = t.dirty || setsMatter
		t.prepare(began)
	}
	if b.applyLayers(ctx, b.layers, &res); res.Err == nil && b.env.grace != nil {
		b.removeRest(ctx, &res)
	}
	if res.Err == nil && b.others != nil {
		// Our rules are in place: those of the other variant can be removed.
		if b.applyLayers(ctx, b.others, &res); res.Err == nil {
			b.others = nil
		}
	}
	if res.Err == nil {
		b.addSets(&res, b.sets.ApplyDestroys())
	}
	b.alignChecks(b.env.cfg.Clock.Now().Sub(began))
	b.wakeUp(&res)
	return res
}

// alignChecks sets the checks that this apply has scheduled to the same time if they differ only because the apply took that long: checks at
// the same time need one listing of a family's tables, and others one listing each.
func (b *Backend) alignChecks(took time.Duration) {
	for _, t := range b.layers {
		for _, other := range b.layers {
			if t.checks.scheduled && other.checks.scheduled {
				t.checks.align(other.checks.againAt, took)
			}
		}
	}
}

func (b *Backend) applyLayers(ctx context.Context, layers []*layer, res *table.Result) {
	for _, family := range [][]*layer{layers[:len(layerNames)], layers[len(layerNames):]} {
		readAhead(ctx, family)
	}
	for _, t := range layers {
		if err := t.apply(ctx, res); err != nil && !b.absent(t, err) {
			res.Err = errors.Join(res.Err, err)
		}
	}
}

// readAhead reads a family's layers with one command if more than one must be read. iptables-nft-save loads all of them in any case, which
// takes most of its time. If it fails, each layer is read separately, and reports the error. Tables that the kernel does not have are not
// read.
func readAhead(ctx context.Context, family []*layer) {
	env := family[0].env
	if env.tools.variant != VariantNFT {
		return
	}
	if !slices.ContainsFunc(family, func(t *layer) bool { return t.have == nil }) {
		return
	}
	tables, known := existing(env.runner, VariantNFT, family[0].family)
	parsers := map[string]*saveParser{}
	for _, t := range family {
		switch p := t.parser(); {
		case t.have != nil:
		case known && !tables[t.name]:
			t.ahead = t.setKernelState(p) == nil
		default:
			parsers["*"+string(t.name)] = p
		}
	}
	if len(parsers) < 2 {
		return
	}
	var now *saveParser
	odd := false // some table cannot be shown; it reports the error when it is read separately
	err := env.save(ctx, family[0].family, func(l []byte) {
		switch {
		case len(l) == 0:
		case l[0] == '#':
			odd = odd || bytes.Contains(l, []byte(incompatible))
		case l[0] == '*':
			now = parsers[string(l)]
			fallthrough
		default:
			if now != nil {
				now.line(l)
			}
		}
	})
	if err != nil {
		env.metrics.saveErrors.Inc()
		return
	}
	for _, t := range family {
		// A table that is not in the output does not exist yet. Where this matters, the table is read by its name.
		if p := parsers["*"+string(t.name)]; p != nil && (p.begun || !odd && t.untouched()) && t.setKernelState(p) == nil {
			t.ahead = true
		}
	}
}

// absent reports whether a layer with no desired objects cannot be read, for example on a node without IPv6.
func (b *Backend) absent(t *layer, err error) bool {
	if len(t.chains)+len(t.hooks) > 0 || !errors.Is(err, errRead) {
		return false
	}
	t.have, t.dirty = newKernelState(), false
	b.log.Info("leftovers of an earlier process are not looked for", "error", err)
	return true
}

func (b *Backend) addSets(res *table.Result, r ipset.Result) {
	res.Err = errors.Join(res.Err, r.Err)
	res.Writes += r.Writes
	res.Repaired = res.Repaired || r.Repaired
	again(res, r.Again)
	for name, err := range r.Broken {
		if res.Broken == nil {
			res.Broken = map[string]error{}
		}
		res.Broken[name] = err
	}
}

// wakeUp sets the time of the next check of the kernel's rules.
func (b *Backend) wakeUp(res *table.Result) {
	now := b.env.cfg.Clock.Now()
	for _, t := range b.layers {
		if at := t.checks.next(); !at.IsZero() {
			again(res, max(at.Sub(now), time.Millisecond))
		}
	}
}

func again(res *table.Result, d time.Duration) {
	if d > 0 && (res.Again == 0 || d < res.Again) {
		res.Again = d
	}
}
