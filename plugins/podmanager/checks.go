package podmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/cniapi"
)

// ErrLimitedConnectivity is wrapped by the error of a health check if existing pods are affected, too (CNI error code 51), for example when
// VPP is not running.
var ErrLimitedConnectivity = errors.New("existing pods may have limited connectivity")

// Checks holds the functions of other parts that STATUS, CHECK and GC call. They are passed to Serve, since those parts are created after
// podmanager. Each of them may be nil. They are not called from the goroutine of the event loop.
type Checks struct {
	// Health is called by STATUS; it must be fast.
	Health []HealthCheck
	// Verifier is called by CHECK.
	Verifier Verifier
	// AwaitPod is called by an ADD that connects a pod, before any other step: it may wait a short time for the pod's object.
	AwaitPod func(ctx context.Context, pod PodID, uid string)
	// Prune is called by GC after stale attachments have been deleted. It removes objects without an owner from the dataplane, by a
	// downstream resync.
	Prune func(ctx context.Context) error
}

// HealthCheck reports whether pods can be added.
type HealthCheck struct {
	Name  string
	Check func(ctx context.Context) error
}

// Verifier compares an attachment with the dataplane and with the state in the sandbox.
type Verifier interface {
	CheckAttachment(ctx context.Context, a *Attachment) error
}

// status returns an error with all reasons why pods cannot be added.
func (p *PodManager) status(ctx context.Context, checks Checks) error {
	var reasons []string
	code := uint(cniapi.CodeNotAvailable)
	if !p.isResynced() {
		reasons = append(reasons, "contiv-agent is starting and has not configured this node yet")
	}
	for _, h := range checks.Health {
		err := h.Check(ctx)
		if err == nil {
			continue
		}
		reasons = append(reasons, h.Name+": "+err.Error())
		if errors.Is(err, ErrLimitedConnectivity) {
			code = cniapi.CodeLimitedConnectivity
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return cniapi.Errorf(code, "pods cannot be added: %s", strings.Join(reasons, "; "))
}

// check compares the result of the ADD with the attachment, and the attachment with the dataplane.
func (p *PodManager) check(ctx context.Context, checks Checks, req *cniapi.Request) error {
	if !p.isResynced() {
		return fmt.Errorf("contiv-agent is starting and has not configured this node yet: %w", ErrTryAgain)
	}
	o, err := p.acquire(ctx, requestID(req))
	if err != nil {
		return err
	}
	defer p.release(o)
	a := p.lookup(o.id)
	if a == nil {
		return cniapi.Errorf(cniapi.CodeUnknownContainer, "%s: there is no such attachment on this node; delete the pod's sandbox", req)
	}
	inode, state := p.sys.netns(req.Netns)
	if state == netnsGone {
		return cniapi.Errorf(cniapi.CodeInvalidNetns, "%s: network namespace %s does not exist", req, req.Netns)
	}
	if !sameSandbox(a, req, inode) {
		return fmt.Errorf("the attachment belongs to pod %s in %s, not to %s in %s", a.Pod, a.Netns, requestPod(req), req.Netns)
	}
	if err := comparePrevResult(a, req.PrevResult); err != nil {
		return err
	}
	if checks.Verifier == nil {
		return nil
	}
	if err := checks.Verifier.CheckAttachment(ctx, a); err != nil {
		return fmt.Errorf("pod %s: dataplane: %w", a.Pod, err)
	}
	return nil
}

// comparePrevResult compares only the parts that later plugins of the chain have no reason to change.
func comparePrevResult(a *Attachment, prev *cniapi.Result) error {
	if prev == nil {
		return nil
	}
	index := slices.IndexFunc(prev.Interfaces, func(i cniapi.Interface) bool {
		return i.Name == a.ID.IfName && i.Sandbox == a.Netns
	})
	if index < 0 {
		return cniapi.Errorf(cniapi.CodeInvalidConfig, "prevResult.interfaces has no %s in %s", a.ID.IfName, a.Netns)
	}
	for _, addr := range a.Addresses {
		if !slices.ContainsFunc(prev.IPs, func(ip cniapi.IP) bool { return ip.Address == addr }) {
			return fmt.Errorf("prevResult.ips lacks %s, which is the address of pod %s", addr, a.Pod)
		}
	}
	for _, ip := range prev.IPs {
		if ip.Interface == index && !slices.Contains(a.Addresses, ip.Address) {
			return fmt.Errorf("prevResult.ips has %s, which is not an address of pod %s", ip.Address, a.Pod)
		}
	}
	return nil
}

// collect deletes all attachments of the network except the valid ones. Attachments with an operation in progress are skipped.
func (p *PodManager) collect(ctx context.Context, checks Checks, req *cniapi.Request) error {
	valid := map[AttachmentID]bool{}
	for _, ref := range req.ValidAttachments {
		valid[AttachmentID(ref)] = true
	}
	var pending []*DeletePod
	var errs []error
	for _, a := range p.LocalAttachments() {
		if a.Network != req.Network.Name || valid[a.ID] {
			continue
		}
		ev, err := p.collectOne(a)
		if err != nil {
			errs = append(errs, err)
		} else if ev != nil {
			pending = append(pending, ev)
		}
	}
	for _, ev := range pending {
		if err := p.finishDelete(ctx, ev); err != nil {
			errs = append(errs, fmt.Errorf("delete attachment %s of pod %s: %w", ev.Attachment.ID, ev.Attachment.Pod, err))
		}
	}
	if checks.Prune != nil && len(errs) == 0 {
		if err := checks.Prune(ctx); err != nil {
			errs = append(errs, fmt.Errorf("prune dataplane: %w", err))
		}
	}
	return errors.Join(errs...)
}

// collectOne starts to delete a; it returns nil if there is nothing to do.
func (p *PodManager) collectOne(a *Attachment) (*DeletePod, error) {
	o, busy := p.tryAcquire(a.ID)
	if busy != nil {
		return nil, nil
	}
	defer p.release(o)
	if now := p.lookup(a.ID); now == nil || now.Seq != a.Seq {
		return nil, nil // replaced meanwhile
	}
	p.Logger().Info("stale attachment deleted", "attachment", a.ID.String(), "pod", a.Pod.String())
	ev, err := p.startDelete(o, a)
	if err != nil {
		return nil, fmt.Errorf("delete attachment %s of pod %s: %w", a.ID, a.Pod, err)
	}
	return ev, nil
}
