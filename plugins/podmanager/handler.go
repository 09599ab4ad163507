package podmanager

import (
	"fmt"
	"strings"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/plugins/controller/api"
)

// HandlesEvent implements api.EventHandler.
func (p *PodManager) HandlesEvent(event api.Event) bool {
	switch event.(type) {
	case *AddPod, *DeletePod:
		return true
	}
	return event.Method().IsResync()
}

// verificationEvent is the name of the controller's event for its verification mode, which must not change what the updates have built.
const verificationEvent = "Verification Resync"

// Resync implements api.EventHandler. The attachments have been loaded by New, and podmanager itself configures nothing. Attachments of sandboxes
// that have ended meanwhile are removed, so that no plugin configures them.
func (p *PodManager) Resync(event api.Event, _ api.KubeStateData, _ int, _ api.ResyncOperations) error {
	if event.GetName() != verificationEvent {
		p.dropGone()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resynced = true
	return nil
}

// Update implements api.EventHandler.
func (p *PodManager) Update(event api.Event, _ api.UpdateOperations) (string, error) {
	switch ev := event.(type) {
	case *AddPod:
		return p.updateAdd(ev)
	case *DeletePod:
		return p.updateDelete(ev)
	}
	return "", nil
}

func (p *PodManager) updateAdd(ev *AddPod) (string, error) {
	a := ev.Attachment
	ev.begun, ev.prev = true, p.lookup(a.ID)
	p.metrics.stage(stageQueue, ev)
	if ev.prev != nil && ev.prev.Seq == a.Seq {
		ev.Attachment = ev.prev // with the addresses that it has got meanwhile
		return "", nil
	}
	if other := p.otherOf(a.ID); other != "" {
		return "", cniapi.Errorf(cniapi.CodeInvalidEnvironment, "CNI_IFNAME: container %s cannot get interface %s: it has interface %s, and Contiv "+
			"connects a container with one interface; remove the second use of Contiv's network, or send the DEL of %s first",
			a.ID.ContainerID, a.ID.IfName, other, other)
	}
	if a.Seq == 0 { // not pushed by Handle
		numbered := *a
		numbered.Seq = p.nextSeq()
		a, ev.Attachment = &numbered, &numbered
	}
	if err := p.store.write(a); err != nil {
		return "", fmt.Errorf("pod %s: record its attachment %s: %w", a.Pod, a.ID, err)
	}
	p.set(a)
	return fmt.Sprintf("record attachment %s of pod %s", a.ID, a.Pod), nil
}

// otherOf returns the name of another interface of the same container; empty if there is none.
func (p *PodManager) otherOf(id AttachmentID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for known := range p.attachments {
		if known.ContainerID == id.ContainerID && known.IfName != id.IfName {
			return known.IfName
		}
	}
	return ""
}

// updateDelete runs after all other handlers. The attachment is removed even if its file cannot be removed: the next agent detects that its
// namespace does not exist.
func (p *PodManager) updateDelete(ev *DeletePod) (string, error) {
	a := ev.Attachment
	if known := p.lookup(a.ID); known == nil || known.Seq != a.Seq {
		return "", nil
	}
	return fmt.Sprintf("remove the record of attachment %s of pod %s", a.ID, a.Pod), p.removeAttachment(a)
}

func (p *PodManager) removeAttachment(a *Attachment) error {
	p.mu.Lock()
	delete(p.attachments, a.ID)
	p.mu.Unlock()
	if err := p.store.remove(a.ID); err != nil {
		return fmt.Errorf("pod %s: remove the record of its attachment %s: %w", a.Pod, a.ID, err)
	}
	return nil
}

// Revert implements api.EventHandler. It removes the state of a failed ADD, unless the ADD repeated an earlier one.
func (p *PodManager) Revert(event api.Event) error {
	ev, ok := event.(*AddPod)
	if !ok || !ev.begun || p.lookup(ev.Attachment.ID) == ev.prev {
		return nil
	}
	if ev.prev == nil {
		return p.removeAttachment(ev.Attachment)
	}
	p.set(ev.prev)
	if err := p.store.write(ev.prev); err != nil {
		return fmt.Errorf("pod %s: restore its attachment %s: %w", ev.prev.Pod, ev.prev.ID, err)
	}
	return nil
}

// DescribeInternalData implements api.DataDescriber.
func (p *PodManager) DescribeInternalData() string {
	var b strings.Builder
	for _, a := range p.LocalAttachments() {
		fmt.Fprintf(&b, "%s pod %s netns %s addresses %v mtu %d seq %d\n", a.ID, a.Pod, a.Netns, a.Addresses, a.MTU, a.Seq)
	}
	return b.String()
}
