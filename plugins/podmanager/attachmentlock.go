package podmanager

import (
	"context"
	"fmt"

	"contiv.dev/vswitch/plugins/controller/api"
)

// attachmentLock is the exclusive right to change one attachment. The request that acquires it holds it, and so does every event that the request
// pushes, until the event is done: the lock outlives a caller that times out.
type attachmentLock struct {
	id      AttachmentID
	holders int           // protected by PodManager.mu
	free    chan struct{} // closed when the last holder has released it
}

// acquire waits until no other operation on the attachment is in progress.
func (p *PodManager) acquire(ctx context.Context, id AttachmentID) (*attachmentLock, error) {
	for {
		o, busy := p.tryAcquire(id)
		if busy == nil {
			return o, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("an earlier request for attachment %s is still being handled: %w", id, ctx.Err())
		}
	}
}

// tryAcquire returns a channel to wait for if another operation is in progress.
func (p *PodManager) tryAcquire(id AttachmentID) (o *attachmentLock, busy <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.locks[id]; o != nil {
		return nil, o.free
	}
	o = &attachmentLock{id: id, holders: 1, free: make(chan struct{})}
	p.locks[id] = o
	return o, nil
}

func (p *PodManager) hold(o *attachmentLock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.holders++
}

func (p *PodManager) release(o *attachmentLock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.holders--; o.holders == 0 {
		delete(p.locks, o.id)
		close(o.free)
	}
}

// push queues ev, which holds o until it is done.
func (p *PodManager) push(o *attachmentLock, ev api.Event) error {
	p.hold(o)
	err := p.EventLoop.PushEvent(ev)
	if err != nil {
		p.release(o) // Done will not be called
	}
	return err
}

// wait waits for the outcome of a pushed event.
func wait(ctx context.Context, result <-chan error) error {
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not finished in time, the agent continues in the background: %w", ctx.Err())
	}
}

// runAdd handles a in the event loop; the returned event contains the result.
func (p *PodManager) runAdd(ctx context.Context, o *attachmentLock, a *Attachment) (*AddPod, error) {
	ev := NewAddPod(a)
	ev.onDone = func(error) {
		p.metrics.stage(stageHandle, ev)
		p.release(o)
	}
	p.metrics.stage("", ev)
	if err := p.push(o, ev); err != nil {
		return nil, err
	}
	return ev, wait(ctx, ev.Result())
}

// startDelete starts to delete a.
func (p *PodManager) startDelete(o *attachmentLock, a *Attachment) (*DeletePod, error) {
	ev := NewDeletePod(a)
	ev.onDone = func(error) { p.release(o) }
	return ev, p.push(o, ev)
}

// finishDelete waits for the deletion. It has succeeded when the attachment is no longer wanted: state that the dataplane could not remove,
// for example because the namespace has disappeared, does not concern the runtime.
func (p *PodManager) finishDelete(ctx context.Context, ev *DeletePod) error {
	err := wait(ctx, ev.Result())
	if err == nil {
		p.Logger().Info("pod removed", "pod", ev.Attachment.Pod.String())
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if known := p.lookup(ev.Attachment.ID); known != nil && known.Seq == ev.Attachment.Seq {
		return err
	}
	p.Logger().Warn("pod deleted, but not everything of it could be removed", "pod", ev.Attachment.Pod.String(),
		"attachment", ev.Attachment.ID.String(), "error", err)
	return nil
}
