package intdataplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// progress holds the results of the applies so far.
type progress struct {
	log       *slog.Logger
	prepared  bool             // the namespace's own parameters have been written since the last resync
	router    bool             // they have been written at least once
	essential map[string]bool  // chains without which nothing is protected
	broken    map[string]error // objects that the kernel does not have as desired
	isolated  []error          // other errors of the last apply, each of which concerns single objects
	reported  string           // the text about broken and isolated that was logged last
	writes    int
	gauge     prometheus.Gauge
}

func (p *progress) init(metrics prometheus.Registerer, prefix string, log *slog.Logger) {
	p.log = log
	p.essential = map[string]bool{}
	p.gauge = prometheus.NewGauge(prometheus.GaugeOpts{Name: cmp.Or(prefix, "felix_int_dataplane_") + "broken_objects",
		Help: "Objects that cannot be programmed as desired; see the agent's log or its dump."})
	if metrics == nil {
		return
	}
	if err := metrics.Register(p.gauge); err != nil {
		log.Warn("metrics are incomplete", "error", err)
	}
}

// noteEssential records the names of the chains that every packet passes.
func (p *progress) noteEssential(families []*familyManagers, render rules.RuleRenderer) {
	for _, m := range families {
		for _, l := range []table.Layer{table.Raw, table.Mangle, table.Filter} {
			for _, c := range render.StaticChains(m.family, l) {
				p.essential[objectName(m.family, l, c.Name)] = true
			}
			for _, d := range render.HostDispatch(l, nil) {
				p.essential[objectName(m.family, l, d.Name)] = true
			}
		}
		p.essential[objectName(m.family, table.Raw, render.ReversePath(m.family, nil).Name)] = true
		for _, d := range slices.Concat(render.WorkloadDispatch(nil, nil), render.SharedDispatch(nil, nil)) {
			p.essential[objectName(m.family, table.Filter, d.Name)] = true
		}
	}
}

// apply is the end of the second phase: it writes what the managers have recorded, in an order that never lets unfiltered packets through.
func (d *InternalDataplane) apply(ctx context.Context) driver.ApplyResult {
	p := &d.progress
	p.isolated = nil
	again, err := d.applyRules(ctx)
	if err == nil {
		err = d.prepare()
	}
	if err != nil {
		// Without its rules the node must not let traffic pass: forwarding, routes and status wait.
		return driver.ApplyResult{Err: err, Again: again}
	}
	d.recheck.sweep()
	d.loop.Progress()
	again = earliest(again, d.applyServices(ctx))
	if d.parts.passage != nil {
		p.add(d.parts.passage.Apply(ctx))
	}
	d.loop.Progress()
	for _, m := range d.families {
		p.isolate(m.endpoints.configureInterfaces())
		p.writes += m.endpoints.parametersWritten
	}
	for _, m := range d.families {
		err = errors.Join(err, d.applyRoutes(ctx, m))
		again = earliest(again, d.routes[m.family].Again())
	}
	d.loop.Progress()
	p.isolate(d.applyVXLAN(ctx))
	if err != nil {
		return driver.ApplyResult{Err: err, Again: again}
	}
	d.reportStatus()
	if len(p.isolated)+len(p.broken) > 0 {
		again = earliest(again, d.options.RetryInterval)
	}
	p.report()
	return driver.ApplyResult{Again: again}
}

// applyServices writes services. A failure here does not keep pods from getting their routes.
func (d *InternalDataplane) applyServices(ctx context.Context) time.Duration {
	p := &d.progress
	result := d.services.apply(ctx)
	if result.Err != nil {
		p.isolate(fmt.Errorf("services: %w", result.Err))
	}
	p.add(result)
	return result.Again
}

// add adds the writes and broken objects of a result that is not the backend's.
func (p *progress) add(result table.Result) {
	p.writes += result.Writes
	if len(result.Broken) > 0 {
		broken := maps.Clone(result.Broken)
		maps.Copy(broken, p.broken)
		p.broken = broken
		p.gauge.Set(float64(len(p.broken)))
	}
}

// applyRoutes writes a family's routes. An error that names routes concerns only the endpoints of these routes; an error that names no
// route concerns all endpoints and is returned.
func (d *InternalDataplane) applyRoutes(ctx context.Context, m *familyManagers) error {
	err := d.routes[m.family].Apply(ctx)
	m.endpoints.routeFault = ""
	if err == nil {
		return nil
	}
	text := err.Error()
	if !strings.Contains(text, "/") && !strings.Contains(text, " link ") {
		return fmt.Errorf("routes: %w", err)
	}
	m.endpoints.routeFault = text
	d.progress.isolate(err)
	return nil
}

// report logs which objects could not be programmed, if that has changed since the last report.
func (p *progress) report() {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(p.broken)) {
		text += fmt.Sprintf("%s: %v\n", name, p.broken[name])
	}
	if err := errors.Join(p.isolated...); err != nil {
		text += err.Error()
	}
	if text != "" && text != p.reported {
		p.log.Warn("some objects could not be programmed; all other objects are programmed", "error", text)
	}
	p.reported = text
}

// isolate records an error that concerns single objects.
func (p *progress) isolate(err error) {
	if err != nil {
		p.isolated = append(p.isolated, err)
	}
}

// earliest returns the shorter of two delays; 0 means never.
func earliest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// applyVXLAN writes the VXLAN device, and makes its check of the reverse path loose: a node of the cluster may send from an address whose
// route does not lead into the tunnel, for example that of its NIC.
func (d *InternalDataplane) applyVXLAN(ctx context.Context) error {
	d.progress.add(table.Result{Broken: d.vxlan.broken()})
	looks := d.vxlan.resync // the device may be a new one
	if err := d.vxlan.apply(ctx); err != nil {
		return err
	}
	if !looks || !d.vxlan.active {
		return nil
	}
	wrote, err := d.parts.sysctls.Ensure("net/ipv4/conf/"+d.vxlan.name+"/rp_filter", looseReversePath)
	if wrote {
		d.progress.writes++
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has just been removed; the next one will be reported
		return fmt.Errorf("VXLAN device: %w", err)
	}
	return nil
}

// prepare makes the node a router. It runs in the first apply, when the rules are in place, and again after each resync.
func (d *InternalDataplane) prepare() error {
	if d.progress.prepared {
		return nil
	}
	list := []parameter{{"net/ipv4/ip_forward", "1"}}
	if d.config.IPv6Enabled && !d.options.NoIPv6Forwarding {
		if err := d.keepRouters(); err != nil {
			return fmt.Errorf("enable forwarding on the node: %w", err)
		}
		list = append(list, parameter{forwardIPv6, "1"})
	}
	for _, p := range list {
		wrote, err := d.parts.sysctls.Ensure(p.path, p.value)
		if err != nil {
			return fmt.Errorf("enable forwarding on the node: %w", err)
		}
		if wrote {
			d.progress.writes++
			d.progress.changedByOthers(p)
		}
	}
	d.progress.prepared, d.progress.router = true, true
	return nil
}

// changedByOthers logs that a parameter was restored. At the first apply it logs nothing, since that apply replaces the kernel's default.
func (p *progress) changedByOthers(changed parameter) {
	if p.router {
		p.log.Warn("another program changed a kernel parameter; it is restored", "sysctl", changed.path, "value", changed.value)
	}
}

// applyRules writes sets, chains and hooks. Rules that need a set that the kernel rejects block; when the kernel accepts the set later,
// they work again. In both cases the rules are rendered and written again at once. A set that the kernel accepts only while nothing refers
// to it takes three rounds.
func (d *InternalDataplane) applyRules(ctx context.Context) (again time.Duration, err error) {
	p := &d.progress
	for range 4 {
		result := d.backend.Apply(ctx)
		p.writes += result.Writes
		again = result.Again
		if result.Repaired {
			d.judgeAgain()
		}
		if result.Err != nil {
			return again, fmt.Errorf("rules: %w", result.Err)
		}
		p.broken = result.Broken
		p.gauge.Set(float64(len(p.broken)))
		if !d.refused(result.Broken) {
			return again, p.essentialFault()
		}
		for _, m := range d.families {
			if err := m.policies.CompleteDeferredWork(); err != nil {
				return again, err
			}
		}
	}
	return earliest(again, d.options.RetryInterval), p.essentialFault() // did not converge; retrying later
}

// judgeAgain makes the jobs check all connections: those that were opened while rules were missing would stay open, since the rules accept
// packets of known connections.
func (d *InternalDataplane) judgeAgain() {
	d.log.Warn("another program had changed or removed rules; they are repaired, and all connections are checked again")
	d.recheck.everything()
	d.services.suspectAll()
}

// refused passes to the set managers which sets the kernel rejected. It reports whether any set's state has changed.
func (d *InternalDataplane) refused(broken map[string]error) bool {
	news := false
	for _, m := range d.families {
		sets := map[string]error{}
		for name, err := range broken {
			if id, is := strings.CutPrefix(name, fmt.Sprintf("set v%d ", m.family)); is {
				sets[id] = err
			}
		}
		news = m.ipsets.refusedByKernel(sets) || news
	}
	return news
}

// essentialFault returns the errors of broken objects that affect all traffic, joined, or nil.
func (p *progress) essentialFault() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.broken)) {
		if p.essential[name] || strings.HasPrefix(name, "hook") {
			errs = append(errs, fmt.Errorf("%s: %w", name, p.broken[name]))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("rules that apply to every packet: %w", errors.Join(errs...))
	}
	return nil
}

func (d *InternalDataplane) reportStatus() {
	var families []map[any]condition
	for _, m := range d.families {
		families = append(families, m.endpoints.conditions(d.progress.broken))
	}
	d.combiner.apply(families...)
}
