package links

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// vethEnd is one end of a VETH pair that is to be created or removed.
type vethEnd struct {
	name, peer string
	v          *iface
	h          *nsHandle // set after its namespace has been entered
}

// runVeth creates or removes an end or, with peer, a pair.
func (b *Backend) runVeth(c class, end, peer *vethEnd) error {
	err := b.changeVeth(c, end, peer)
	for _, e := range []*vethEnd{end, peer} {
		if e != nil && err != nil {
			err = podOnly(b.nsPath(e.v.GetNamespace()), err) // also for the end in the agent's namespace, which shares the failure
		}
	}
	return err
}

func (b *Backend) changeVeth(c class, end, peer *vethEnd) error {
	if c == deletes {
		return b.deleteVeth(end, peer)
	}
	for _, e := range []*vethEnd{end, peer} {
		if e == nil {
			continue
		}
		h, err := b.enter(b.nsPath(e.v.GetNamespace()))
		if err != nil {
			return fmt.Errorf("make the VETH pair of %s and %s: %s: %w", end.name, end.peer, e.name, err)
		}
		e.h = h
	}
	if peer == nil {
		return b.createEnd(end)
	}
	if done, err := b.createFromPool(end, peer); done || err != nil {
		return err
	}
	return b.createPair(end, peer)
}

// createEnd creates one end: it creates the pair with a spare other end or, if the pair exists, uses the pair's spare end.
func (b *Backend) createEnd(end *vethEnd) error {
	host, err := b.enter("")
	if err != nil {
		return err
	}
	spare, err := host.sock.link(spareName(end.name))
	switch {
	case err == nil && spare.kind == "veth" && spare.alias == tagPeer+end.name:
		return b.adoptSpare(end, host, spare)
	case err != nil && !errors.Is(err, errNoLink):
		return fmt.Errorf("look for the spare end of %s: %w", end.name, err)
	}
	if p := b.device(end.peer); p != nil {
		return fmt.Errorf("%s: its peer %s exists as %s, but the other end is out of reach; remove %s too, "+
			"to have the pair made again: %w", end.name, end.peer, p.name, end.peer, errForeign)
	}
	return b.createPair(end, nil)
}

// adoptSpare turns the spare end of a pair into end.
func (b *Backend) adoptSpare(end *vethEnd, host *nsHandle, spare linkInfo) error {
	if err := b.place(end.v, host, spare, deviceName(end.v), end.h, nil); err != nil {
		return fmt.Errorf("%s: %w", end.name, err)
	}
	if err := b.finish(end.h, end.v, deviceName(end.v), false); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", end.name, err), b.releaseEnd(end.name))
	}
	return nil
}

// createPair creates a pair with one message, each end in its namespace. Without peer, the other end becomes a spare one in the agent's
// namespace.
func (b *Backend) createPair(end, peer *vethEnd) error {
	host, err := b.enter("")
	if err != nil {
		return err
	}
	other := &vethEnd{name: end.peer, h: host}
	if peer != nil {
		other = peer
	}
	if err := b.makePair(host, end, other); err != nil {
		return fmt.Errorf("make the VETH pair of %s and %s: %w", end.name, end.peer, err)
	}
	for _, e := range []*vethEnd{end, other} {
		if err := b.adoptNew(e); err != nil {
			b.removeDevice(end.name)
			b.removeDevice(end.peer)
			return errors.Join(fmt.Errorf("%s: %w", e.name, err), b.dropNew(end, other))
		}
	}
	return nil
}

// device returns the desired name of the end: a spare name if it has no value.
func (e *vethEnd) device() string {
	if e.v == nil {
		return spareName(e.name)
	}
	return deviceName(e.v)
}

func (e *vethEnd) spec(group *uint32) linkSpec {
	s := linkSpec{nsFD: e.h.FD(), name: e.device(), group: group}
	if e.v != nil {
		s.mac, s.mtu = macOf(e.v), e.v.GetMtu()
	}
	return s
}

// makePair sends the message. If it fails, makePair removes the remainder of an earlier attempt and sends it again.
func (b *Backend) makePair(host *nsHandle, end, other *vethEnd) error {
	group := uint32(groupNew)
	peer := other.spec(&group)
	req := func() error { return host.sock.exec(newLink("veth", end.spec(&group), &peer)) }
	err := req()
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	for _, e := range []*vethEnd{end, other} {
		l, err := e.h.sock.link(e.device())
		if errors.Is(err, errNoLink) {
			continue
		}
		if err != nil {
			return err
		}
		if !ours(l, e.name) {
			return fmt.Errorf("device %s exists in %s: %w; rename or remove it", l.name, e.h, errForeign)
		}
		if err := unlessGone(e.h.sock.exec(delLink(l.index))); err != nil {
			return fmt.Errorf("remove what is left of %s in %s: %w", l.name, e.h, err)
		}
	}
	return req()
}

// adoptNew tags and indexes an end that has just been created.
func (b *Backend) adoptNew(e *vethEnd) error {
	tag := tagOf(e.name)
	if e.v == nil {
		tag = tagPeer + e.name
	}
	group := uint32(0)
	if err := e.h.sock.exec(setLink(linkSpec{name: e.device(), nsFD: -1, alias: &tag, group: &group})); err != nil {
		return fmt.Errorf("tag %s in %s: %w", e.device(), e.h, err)
	}
	if e.v == nil {
		return nil
	}
	l, err := e.h.sock.link(e.device())
	if err != nil {
		return fmt.Errorf("find %s in %s: %w", e.device(), e.h, err)
	}
	b.addDevice(newDevice(e.v, e.h, l.index, l.name))
	return b.finish(e.h, e.v, l.name, true)
}

// dropNew removes a pair that could not be completed.
func (b *Backend) dropNew(end, other *vethEnd) error {
	for _, e := range []*vethEnd{end, other} {
		l, err := e.h.sock.link(e.device())
		if err != nil || !ours(l, e.name) {
			continue
		}
		return unlessGone(e.h.sock.exec(delLink(l.index)))
	}
	return nil
}

// createFromPool turns a pair of the pool into a pair of one end in the agent's namespace and one elsewhere.
func (b *Backend) createFromPool(end, peer *vethEnd) (done bool, err error) {
	pod, host := end, peer
	if pod.h.path == "" {
		pod, host = peer, end
	}
	if b.pool == nil || pod.h.path == "" || host.h.path != "" {
		return false, nil
	}
	podEnd, hostEnd, ok := b.pool.TakeVeth()
	if !ok {
		return false, nil
	}
	agent := host.h
	hostLink, err := agent.sock.link(hostEnd)
	if err != nil {
		b.log.Warn("pooled VETH is missing; creating a new one", "device", hostEnd, "error", err)
		return false, nil
	}
	podLink, err := agent.sock.link(podEnd)
	if err == nil {
		err = b.completePooled(pod, host, podLink, hostLink)
	}
	if err == nil {
		return true, nil
	}
	b.removeDevice(pod.name)
	b.removeDevice(host.name)
	// The pool removes its pairs when VPP stops. If another object blocks the pod's pair, creating a new pair fails with the same error.
	b.log.Warn("pooled VETH cannot be used; creating a new one", "interface", pod.name, "device", hostEnd, "peer", podEnd, "error", err)
	return false, unlessGone(agent.sock.exec(delLink(hostLink.index)))
}

func (b *Backend) completePooled(pod, host *vethEnd, podLink, hostLink linkInfo) error {
	group := uint32(groupPooled)
	if err := b.place(host.v, host.h, hostLink, hostLink.name, host.h, &group); err != nil {
		return err
	}
	if err := b.finish(host.h, host.v, hostLink.name, false); err != nil {
		return err
	}
	group = 0
	if err := b.place(pod.v, host.h, podLink, deviceName(pod.v), pod.h, &group); err != nil {
		return err
	}
	return b.finish(pod.h, pod.v, deviceName(pod.v), false)
}

// removePairs removes all whole pairs among the deletes together: the kernel waits as long for many links as for one (20 ms where RCU is lazy).
// This is only an optimization: each delete is still carried out afterwards and reports its result.
func (b *Backend) removePairs(tasks []*task, ends map[endKey]*task) {
	var doomed []*device
	for _, t := range tasks {
		if t.class != deletes || t.veth == nil {
			continue
		}
		peer, d := ends[endKey{deletes, t.veth.peer}], b.device(t.veth.name)
		if peer != nil && d != nil && d.path == "" && d.peer == t.veth.peer {
			doomed = append(doomed, d)
		}
	}
	host, err := b.enter("")
	if err == nil && b.janitor != nil && len(doomed) > 0 {
		b.deferDeletion(host, doomed)
		return
	}
	if err != nil || len(doomed) < 2 {
		return
	}
	group := uint32(groupDoomed)
	for _, d := range doomed {
		if h, d, err := b.locate(d.logical); err == nil && h == host {
			err = host.sock.exec(setLink(linkSpec{index: d.index, nsFD: -1, group: &group}))
			if err != nil {
				b.log.Debug("link is removed on its own", "device", d.name, "error", err)
			}
		}
	}
	if err := host.sock.exec(delGroup(group)); err != nil {
		b.log.Debug("links are removed one by one", "error", err)
	}
}

// deleteVeth removes a pair, or turns one end of it into a spare one while the other end is in use.
func (b *Backend) deleteVeth(end, peer *vethEnd) error {
	if peer == nil {
		if p := b.device(end.peer); p != nil && p.peer == end.name {
			return b.releaseEnd(end.name)
		}
	}
	// Both ends disappear together. The end in the agent's namespace is always reachable.
	order := []*vethEnd{end, peer}
	if d := b.device(end.name); d != nil && d.path != "" && peer != nil {
		order = []*vethEnd{peer, end}
	}
	var failed error
	for _, e := range order {
		if e == nil {
			continue
		}
		err := b.onDevice(e.name, func(h *nsHandle, d *device) error { return h.sock.exec(delLink(d.index)) })
		if err == nil {
			failed = nil
			break
		}
		failed = errors.Join(failed, unlessGone(err))
	}
	if failed != nil {
		return fmt.Errorf("remove the VETH pair of %s and %s: %w", end.name, end.peer, failed)
	}
	for _, e := range order {
		if e != nil {
			b.removeDevice(e.name)
		}
	}
	return nil
}

// releaseEnd turns an end into a spare one in the agent's namespace.
func (b *Backend) releaseEnd(name string) error {
	err := b.onDevice(name, func(h *nsHandle, d *device) error {
		return b.moveBack(h, d.index, tagPeer+name, spareName(name))
	})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("move the unused end %s of a VETH pair to the agent's namespace: %w", name, err)
	}
	b.removeDevice(name)
	return nil
}
