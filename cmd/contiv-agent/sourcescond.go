package main

import (
	"context"
	"log/slog"
	"time"

	"contiv.dev/vswitch/internal/kube"
)

// Conditions of the node: whether pods send under their own addresses only, and whether packets of pods' MTU fit into the uplink's.
const (
	conditionSources = "ContivSourcesChecked"
	conditionMTU     = "ContivMTUFits"
)

const (
	conditionEvery   = 5 * time.Second
	conditionTimeout = 5 * time.Second
	conditionMax     = time.Minute
)

// conditionReporter keeps a condition of the node as it is. Its answer may change at any time: with each start of VPP, or when an operator
// changes the uplink.
type conditionReporter struct {
	good    kube.NodeCondition                              // while checked has no error
	bad     string                                          // the reason while it has one
	checked func() error                                    // nil: as it should be
	known   func() bool                                     // checked has an answer
	set     func(context.Context, kube.NodeCondition) error // informs the API server
	log     *slog.Logger
	told    *kube.NodeCondition // what the API server was reported last
}

// conditionReporters are none where there is no API server to tell.
func (a *agent) conditionReporters(client *kube.Client) map[string]*conditionReporter {
	if client == nil || a.opts.dataplane == dataplaneFake {
		return nil
	}
	reporter := func(r conditionReporter) *conditionReporter {
		r.good.Status, r.log = true, a.logger("conditions")
		r.known = func() bool { ok, _ := a.controller.Ready(); return ok }
		r.set = func(ctx context.Context, c kube.NodeCondition) error {
			return client.SetNodeCondition(ctx, a.opts.nodeName, c)
		}
		return &r
	}
	return map[string]*conditionReporter{
		"sources condition": reporter(sourcesCondition(a.ipnet.SourcesChecked)), "MTU condition": reporter(mtuCondition(a.ipnet.MTUFits)),
	}
}

// sourcesCondition: a VPP without our plugin checks no sources.
func sourcesCondition(checked func() error) conditionReporter {
	return conditionReporter{
		good: kube.NodeCondition{Type: conditionSources, Reason: "SourcesChecked", Message: "pods send under their own addresses only"},
		bad:  "VPPWithoutPlugin", checked: checked,
	}
}

// mtuCondition: an uplink whose MTU has become smaller than pods' MTU allows.
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

// step reports what has changed.
func (t *conditionReporter) step(ctx context.Context) error {
	if !t.known() {
		return nil
	}
	want := t.good
	if err := t.checked(); err != nil {
		want.Status, want.Reason, want.Message = false, t.bad, err.Error()
	}
	if t.told != nil && *t.told == want {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	if err := t.set(ctx, want); err != nil {
		return err
	}
	t.told = &want
	return nil
}
