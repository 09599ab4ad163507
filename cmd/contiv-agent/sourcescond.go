package main

import (
	"context"
	"log/slog"
	"time"

	"contiv.dev/vswitch/internal/kube"
)

// conditionSources is the condition of the node that says whether pods send under their own addresses only.
const conditionSources = "ContivSourcesChecked"

const (
	sourcesEvery   = 5 * time.Second
	sourcesTimeout = 5 * time.Second
	sourcesMax     = time.Minute
)

// sourcesReporter keeps the condition as it is. A VPP without our plugin checks no sources; whether it has the plugin may be another answer
// with each start of VPP.
type sourcesReporter struct {
	checked func() error                                    // nil: sources are checked
	known   func() bool                                     // checked has an answer
	set     func(context.Context, kube.NodeCondition) error // informs the API server
	log     *slog.Logger
	told    *kube.NodeCondition // what the API server was reported last
}

// newSourcesReporter is nil where there is no API server to tell.
func (a *agent) newSourcesReporter(client *kube.Client) *sourcesReporter {
	if client == nil || a.opts.dataplane == dataplaneFake {
		return nil
	}
	return &sourcesReporter{
		checked: a.ipnet.SourcesChecked, log: a.logger("conditions"),
		known: func() bool { ok, _ := a.controller.Ready(); return ok },
		set: func(ctx context.Context, c kube.NodeCondition) error {
			return client.SetNodeCondition(ctx, a.opts.nodeName, c)
		},
	}
}

// Run sends reports until ctx ends.
func (t *sourcesReporter) Run(ctx context.Context) error {
	pause := sourcesEvery
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		if err := t.step(ctx); err != nil {
			t.log.Debug("the node's condition is not set yet", "condition", conditionSources, "error", err)
			pause = min(2*pause, sourcesMax)
		} else {
			pause = sourcesEvery
		}
	}
}

// step reports what has changed.
func (t *sourcesReporter) step(ctx context.Context) error {
	if !t.known() {
		return nil
	}
	want := kube.NodeCondition{
		Type: conditionSources, Status: true, Reason: "SourcesChecked", Message: "pods send under their own addresses only",
	}
	if err := t.checked(); err != nil {
		want.Status, want.Reason, want.Message = false, "VPPWithoutPlugin", err.Error()
	}
	if t.told != nil && *t.told == want {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sourcesTimeout)
	defer cancel()
	if err := t.set(ctx, want); err != nil {
		return err
	}
	t.told = &want
	return nil
}
