package kube

import (
	"context"
	"encoding/json"
	"time"
)

// absentRetry is how long a resource that the server does not have is taken for absent, unless its definition appears. absentPause is how
// long its definition may be there at first without the resource, absentPauseMax how long later on: it may be of another version.
const (
	absentRetry    = 10 * time.Minute
	absentPause    = time.Second
	absentPauseMax = time.Minute
)

// absence waits for a resource that the server does not have.
type absence struct {
	client *Client
	kind   *kind
	pause  time.Duration // 0: the definition was not there
}

// wait returns when the resource may be there. Its definition is watched meanwhile. Where that is forbidden or fails, and where the
// resource has no definition, it takes absentRetry.
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

// defined waits until the server says something of the definition. It returns false if it cannot be watched, or round ends.
func (a *absence) defined(round context.Context) bool {
	body, err := a.client.groups[definitions].Get().Resource("customresourcedefinitions").
		Param("watch", "true").Param("fieldSelector", "metadata.name="+a.kind.definition).
		SetHeader("Accept", "application/json").Stream(round)
	if err != nil {
		return false
	}
	defer body.Close() // the watch ends with it
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
