package main

import (
	"context"
	"log/slog"
	"time"

	"contiv.dev/vswitch/internal/kube"
)

// Conditions of the node: whether pods send under their own addresses only, and whether packets of the pods' MTU fit into the uplink's MTU.
const (
	conditionSources = "ContivSourcesChecked"
	conditionMTU     = "ContivMTUFits"
)

const (
	conditionEvery   = 5 * time.Second
	conditionTimeout = 5 * time.Second
	conditionMax     = time.Minute
)

// conditionReporter keeps a condition of the node up to date. The result of its check may change at any time: with each start of VPP, or when
// an operator changes the uplink.
type conditionReporter struct {
	good     kube.NodeCondition                              // reported while checked returns nil
	bad      string                                          // the reason while checked returns an error
	checked  func() error                                    // returns nil if all is as it should be
	known    func() bool                                     // reports whether checked has a valid result
	set      func(context.Context, kube.NodeCondition) error // writes to the API server
	log      *slog.Logger
	reported *kube.NodeCondition // the condition that was written last; nil: not known
}

// conditionReporters returns the reporters; none without an API server.
func (a *agent) conditionReporters() map[string]*conditionReporter {
	if a.kube.writer() == nil || a.opts.dataplane == dataplaneFake {
		return nil
	}
	reporter := func(r conditionReporter) *conditionReporter {
		r.good.Status, r.log = true, a.logger("conditions")
		r.known = func() bool { ok, _ := a.controller.Ready(); return ok }
		r.set = a.kube.conditions.Set
		return &r
	}
	return map[string]*conditionReporter{
		"sources condition": reporter(sourcesCondition(a.ipnet.SourcesChecked)), "MTU condition": reporter(mtuCondition(a.ipnet.MTUFits)),
	}
}

// sourcesCondition reports whether sources are checked: VPP without our plugin checks none.
func sourcesCondition(checked func() error) conditionReporter {
	return conditionReporter{
		good: kube.NodeCondition{Type: conditionSources, Reason: "SourcesChecked", Message: "pods send under their own addresses only"},
		bad:  "VPPWithoutPlugin", checked: checked,
	}
}

// mtuCondition reports an uplink whose MTU has become too small for the pods' MTU.
func mtuCondition(checked func() error) conditionReporter {
	return conditionReporter{
		good: kube.NodeCondition{Type: conditionMTU, Reason: "MTUFits", Message: "packets of all pods fit into the uplink's MTU"},
		bad:  "UplinkMTUTooSmall", checked: checked,
	}
}

// Run sends reports until ctx ends.
func (t *conditionReporter) Run(ctx context.Context) error {
	pause := conditionEvery
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		if err := t.step(ctx); err != nil {
			t.log.Debug("the node's condition is not set yet", "condition", t.good.Type, "error", err)
			pause = min(2*pause, conditionMax)
		} else {
			pause = conditionEvery
		}
	}
}

// step writes the condition if it has changed.
func (t *conditionReporter) step(ctx context.Context) error {
	if !t.known() {
		return nil
	}
	want := t.good
	if err := t.checked(); err != nil {
		want.Status, want.Reason, want.Message = false, t.bad, err.Error()
	}
	if t.reported != nil && *t.reported == want {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	t.reported = nil // until the API server has answered, it may have either of them
	if err := t.set(ctx, want); err != nil {
		return err
	}
	t.reported = &want
	return nil
}
