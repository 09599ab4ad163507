package kube

import (
	"context"
	"encoding/json"
	"time"
)

// absentRetry is how long a resource that the server does not have counts as absent, unless its definition appears. absentPause is the
// first pause after the definition has appeared without the resource, absentPauseMax the longest one: the definition may be of another
// version.
const (
	absentRetry    = 10 * time.Minute
	absentPause    = time.Second
	absentPauseMax = time.Minute
)

// absence waits for a resource that the server does not have.
type absence struct {
	client *Client
	kind   *kind
	pause  time.Duration // 0: the definition did not exist
}

// wait returns when the resource may exist. Meanwhile it watches the definition of the resource. If this watch is forbidden or fails, or
// the resource has no definition, it waits for absentRetry.
func (a *absence) wait(ctx context.Context) error {
	if a.pause > 0 {
		if err := pause(ctx, jitter(a.pause)); err != nil {
			return err
		}
	}
	round, cancel := context.WithTimeout(ctx, jitter(absentRetry))
	defer cancel()
	if a.kind.definition != "" && a.defined(round) {
		a.pause = min(max(2*a.pause, absentPause), absentPauseMax)
		return ctx.Err()
	}
	a.pause = 0
	<-round.Done()
	return ctx.Err()
}

// defined waits until the server reports an event of the definition. It returns false if the definition cannot be watched, or round ends.
func (a *absence) defined(round context.Context) bool {
	body, err := a.client.groups[definitions].Get().Resource("customresourcedefinitions").
		Param("watch", "true").Param("fieldSelector", "metadata.name="+a.kind.definition).
		SetHeader("Accept", "application/json").Stream(round)
	if err != nil {
		return false
	}
	defer body.Close() // closing the body ends the watch
	for events := json.NewDecoder(body); ; {
		var event struct{ Type string }
		if events.Decode(&event) != nil {
			return false
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			return true
		case "ERROR":
			return false
		}
	}
}
