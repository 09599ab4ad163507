package podmanager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/plugins/controller/api"
)

// Handle handles one CNI request. An error is always a *cniapi.Error.
func (p *PodManager) Handle(ctx context.Context, checks Checks, req *cniapi.Request) (*cniapi.Result, error) {
	start := time.Now()
	res, err := p.dispatch(ctx, checks, req)
	if err != nil {
		err = cniError(req, err)
	}
	took := time.Since(start)
	p.metrics.request(req.Command, err, took)
	switch {
	case err == nil:
		p.logDone(req, res, took)
	case req.Command == cniapi.Status: // sent every few seconds; the runtime reports the result
		p.Logger().Debug("CNI request failed", "request", req.String(), "took", took, "error", err)
	default:
		p.Logger().Warn("CNI request failed", "error", strings.TrimPrefix(err.Error(), req.String()+": "), "command", req.Command, "pod", requestPod(req).String(),
			"took", took.Round(time.Millisecond))
	}
	return res, err
}

// logDone logs one line for each pod that was connected or disconnected.
func (p *PodManager) logDone(req *cniapi.Request, res *cniapi.Result, took time.Duration) {
	switch {
	case req.Command == cniapi.Add && res != nil:
		addresses := make([]string, 0, len(res.IPs))
		for _, ip := range res.IPs {
			addresses = append(addresses, ip.Address.Addr().String())
		}
		p.Logger().Info("pod added", "pod", requestPod(req).String(), "addresses", strings.Join(addresses, ","),
			"took", took.Round(time.Millisecond))
	default:
		p.Logger().Debug("CNI request done", "request", req.String(), "took", took)
	}
}

func (p *PodManager) dispatch(ctx context.Context, checks Checks, req *cniapi.Request) (*cniapi.Result, error) {
	switch req.Command {
	case cniapi.Add:
		return p.add(ctx, checks, req)
	case cniapi.Del:
		return nil, p.del(ctx, req)
	case cniapi.Check:
		return nil, p.check(ctx, checks, req)
	case cniapi.GC:
		return nil, p.collect(ctx, checks, req)
	case cniapi.Status:
		return nil, p.status(ctx, checks)
	}
	return nil, cniapi.Errorf(cniapi.CodeProtocol, "unknown command %q", req.Command)
}

// cniError adds a code and the failed request to err.
func cniError(req *cniapi.Request, err error) *cniapi.Error {
	var e *cniapi.Error
	if errors.As(err, &e) {
		return e
	}
	e = cniapi.Errorf(cniapi.CodeInternal, "%s: %s", req, err.Error())
	switch {
	case errors.Is(err, api.ErrClosed), errors.Is(err, context.Canceled):
		e.Code, e.Retry = cniapi.CodeTryAgain, true
		e.Details = "contiv-agent is stopping"
	case errors.Is(err, ErrTryAgain), errors.Is(err, api.ErrQueueFull), errors.Is(err, context.DeadlineExceeded), retriable(err):
		e.Code = cniapi.CodeTryAgain
	}
	return e
}

// retriable reports whether, according to the dataplane, the same operation may succeed later, for example when VPP is not running.
func retriable(err error) bool {
	var r interface{ Retriable() bool }
	return errors.As(err, &r) && r.Retriable()
}

func requestID(req *cniapi.Request) AttachmentID {
	return AttachmentID{ContainerID: req.ContainerID, IfName: req.IfName}
}

func requestPod(req *cniapi.Request) PodID {
	if req.Pod.Name == "" {
		return PodID{Name: req.ContainerID}
	}
	return PodID{Namespace: req.Pod.Namespace, Name: req.Pod.Name}
}

// add connects a pod. A repeated ADD returns the same result. The same ID for another sandbox or pod means that the runtime has abandoned
// the previous one without a DEL.
func (p *PodManager) add(ctx context.Context, checks Checks, req *cniapi.Request) (*cniapi.Result, error) {
	o, err := p.acquire(ctx, requestID(req))
	if err != nil {
		return nil, err
	}
	defer p.release(o)
	inode, state := p.sys.netns(req.Netns)
	if err := p.checkSandbox(req, inode, state); err != nil {
		return nil, err
	}
	a := p.lookup(o.id)
	if a != nil && !sameSandbox(a, req, inode) {
		p.Logger().Warn("attachment replaced: its ID is used for another sandbox", "attachment", a.ID.String(),
			"pod", a.Pod.String(), "newPod", requestPod(req).String(), "newNetns", req.Netns)
		ev, err := p.startDelete(o, a)
		if err == nil {
			err = p.finishDelete(ctx, ev)
		}
		if err != nil {
			return nil, fmt.Errorf("delete the earlier attachment with this ID: %w", err)
		}
		a = nil
	}
	repeated := a != nil
	if a == nil {
		if checks.AwaitPod != nil {
			checks.AwaitPod(ctx, requestPod(req), req.Pod.UID)
		}
		a = &Attachment{
			ID: o.id, Pod: requestPod(req), PodUID: req.Pod.UID, Netns: req.Netns, NetnsInode: inode,
			MTU: req.Network.MTU, Network: req.Network.Name, DNS: req.Network.DNS, Seq: p.nextSeq(),
		}
	}
	ev, err := p.runAdd(ctx, o, a)
	if err != nil {
		return nil, p.explainUnready(ctx, checks, err)
	}
	if repeated {
		if err := repair(ctx, checks, ev.Attachment); err != nil {
			return nil, err
		}
	}
	return buildResult(ev, req.Network.DNS)
}

// repair makes sure that a pod that was connected before is still connected: another program may have removed its interface.
func repair(ctx context.Context, checks Checks, a *Attachment) error {
	if checks.Verifier == nil || checks.Prune == nil || checks.Verifier.CheckAttachment(ctx, a) == nil {
		return nil
	}
	failed := checks.Prune(ctx) // the error may be about an object of another pod
	if err := checks.Verifier.CheckAttachment(ctx, a); err != nil {
		return fmt.Errorf("pod %s: it was connected before and cannot be repaired; delete its sandbox: %w", a.Pod,
			errors.Join(err, failed))
	}
	return nil
}

// checkSandbox rejects namespaces in which a pod cannot run, before anything is changed. The dataplane finds faults that cannot be detected
// here.
func (p *PodManager) checkSandbox(req *cniapi.Request, inode uint64, state netnsState) error {
	switch {
	case state == netnsGone:
		return cniapi.Errorf(cniapi.CodeInvalidNetns, "%s: network namespace %s does not exist", req, req.Netns)
	case state == netnsSeen && inode == p.sys.ownNetns:
		return cniapi.Errorf(cniapi.CodeInvalidNetns, "%s: network namespace %s is contiv-agent's own, the host's; give the pod one "+
			"of its own, or no CNI (hostNetwork)", req, req.Netns)
	}
	return nil
}

func sameSandbox(a *Attachment, req *cniapi.Request, inode uint64) bool {
	return a.Pod == requestPod(req) && a.Netns == req.Netns &&
		(a.NetnsInode == inode || a.NetnsInode == 0 || inode == 0)
}

// explainWaiting adds the reason why no request is handled while the agent starts.
func (p *PodManager) explainWaiting(err error) error {
	if p.isResynced() || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("contiv-agent is starting and has not configured this node yet: %w", err)
}

// explainUnready adds the reason why the node is not ready, as in STATUS, if there is no other reason why an ADD has timed out.
func (p *PodManager) explainUnready(ctx context.Context, checks Checks, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTimeout)
	defer cancel()
	var status *cniapi.Error
	if !errors.As(p.status(ctx, checks), &status) {
		return err
	}
	return fmt.Errorf("%s: %w", status.Msg, err)
}

// explainTimeout bounds the search for the reason: the runtime is waiting.
const explainTimeout = 500 * time.Millisecond

func (p *PodManager) isResynced() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resynced
}

// del disconnects a pod. An unknown attachment is not connected.
func (p *PodManager) del(ctx context.Context, req *cniapi.Request) error {
	o, err := p.acquire(ctx, requestID(req))
	if err != nil {
		return err
	}
	defer p.release(o)
	a := p.lookup(o.id)
	if a == nil {
		return nil
	}
	ev, err := p.startDelete(o, a)
	if err != nil {
		return err
	}
	return p.explainWaiting(p.finishDelete(ctx, ev))
}

// buildResult returns the CNI result of an ADD.
func buildResult(ev *AddPod, dns cniapi.DNS) (*cniapi.Result, error) {
	a := ev.Attachment
	res := &cniapi.Result{DNS: dns}
	inSandbox := false
	for _, i := range ev.Interfaces {
		inSandbox = inSandbox || i.Sandbox != ""
		res.Interfaces = append(res.Interfaces, cniapi.Interface{Name: i.Name, MAC: i.MAC, MTU: i.MTU, Sandbox: i.Sandbox})
	}
	if !inSandbox {
		return nil, fmt.Errorf("pod %s: no plugin has given it an interface; report this as a bug", a.Pod)
	}
	for _, ip := range ev.IPs {
		if ip.Interface < 0 || ip.Interface >= len(res.Interfaces) || !ip.Address.IsValid() {
			return nil, fmt.Errorf("pod %s: address %s has no interface %d; report this as a bug", a.Pod, ip.Address, ip.Interface)
		}
		res.IPs = append(res.IPs, cniapi.IP{Interface: ip.Interface, Address: ip.Address, Gateway: ip.Gateway})
	}
	for _, r := range ev.Routes {
		if !r.Dst.IsValid() {
			return nil, fmt.Errorf("pod %s: a route has no destination; report this as a bug", a.Pod)
		}
		res.Routes = append(res.Routes, cniapi.Route{Dst: r.Dst, GW: r.GW})
	}
	return res, nil
}
