package links

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/nb"
	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_namespace "contiv.dev/vswitch/dataplane/nb/linux/namespace"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/nsdo"
)

// snapshot holds what one flush has read from the kernel; all dumps of the flush share it.
type snapshot struct {
	b      *Backend
	byPath map[string]*space // nil: gone
	byID   map[nsdo.ID]*space
	order  []*space
}

// space holds what was read from one namespace.
type space struct {
	h       *nsHandle
	ref     *namespace // a reference to this namespace; nil for the agent's own
	links   []linkInfo
	byNames bool // links has only those that were looked up by name: the list could not be read
	addrs   []addrInfo
	routes  []routeInfo
	neighs  []neighInfo
	read    map[listed]error // the results of the listings
}

// listed is a list of objects that was read: of one device, or of all devices if index is 0.
type listed struct {
	what  string
	index int32
}

func newSnapshot(b *Backend) *snapshot {
	return &snapshot{b: b, byPath: map[string]*space{}, byID: map[nsdo.ID]*space{}}
}

// space reads the links of the namespace at path; it returns nil when the namespace is gone. A namespace that cannot be entered for another reason is
// an error: a pod cannot cause that, and it does not mean that the pod's interface is missing.
func (s *snapshot) space(path string, ref *namespace) (*space, error) {
	sp, err := s.enter(path, ref)
	if errors.Is(err, nsdo.ErrGone) {
		s.byPath[path] = nil
		return nil, nil
	}
	if sp == nil || err != nil {
		return nil, err
	}
	err = sp.list(listed{what: "links"}, func(sp *space, _ int32) (err error) { sp.links, err = sp.h.sock.links(); return err })
	switch {
	case err != nil && (sp.h.path == "" || lacksResources(err)):
		return nil, fmt.Errorf("list the links of %s: %w", sp.h, err)
	case err != nil && !sp.byNames: // a pod with very many links, or with links that change all the time
		s.b.log.Warn("the links in a pod's network namespace cannot be listed; only those of the agent are looked up", "namespace", path, "error", err)
		sp.byNames = true
	}
	return sp, nil
}

// enter returns the namespace at path, nil if it is known to be gone. It reads nothing.
func (s *snapshot) enter(path string, ref *namespace) (*space, error) {
	if sp, ok := s.byPath[path]; ok {
		return sp, nil
	}
	h, err := s.b.enter(path)
	if err != nil {
		return nil, err
	}
	sp := s.byID[h.ID()]
	if sp == nil {
		sp = &space{h: h, ref: ref, read: map[listed]error{}}
		if h.path == "" {
			sp.ref = nil
		}
		s.byID[h.ID()] = sp
		s.order = append(s.order, sp)
	}
	s.byPath[path] = sp
	return sp, nil
}

// look reads one link, by name, unless it was read already.
func (sp *space) look(name string) error {
	l, err := sp.h.sock.link(name)
	if errors.Is(err, errNoLink) {
		return nil
	}
	if err == nil && !slices.ContainsFunc(sp.links, func(o linkInfo) bool { return o.index == l.index }) {
		sp.links = append(sp.links, l)
	}
	return err
}

// of returns the namespace of a device after read has read the further objects that the caller needs; nil when it is gone. read gets the index of
// the device whose objects it reads, or 0 for those of all devices. It gets an index if those of all devices cannot be listed: a pod may have very
// many objects at devices of its own.
func (s *snapshot) of(d *device, what string, read func(sp *space, index int32) error) (*space, error) {
	sp, err := s.space(d.path, &namespace{Type: linux_namespace.NetNamespace_FD, Reference: d.path})
	if sp == nil || err != nil {
		return nil, err
	}
	if d.id != sp.h.ID() {
		return nil, nil // the path refers to another namespace now
	}
	err = sp.list(listed{what: what}, read)
	if err != nil && sp.h.path != "" {
		err = sp.list(listed{what, d.index}, read)
	}
	if err != nil {
		return nil, fmt.Errorf("list the %s of %s: %w", what, sp.h, err)
	}
	return sp, nil
}

// list reads a list of objects, once.
func (sp *space) list(l listed, read func(sp *space, index int32) error) error {
	err, done := sp.read[l]
	if !done {
		err = read(sp, l.index)
		sp.read[l] = err
	}
	return err
}

// queueDump queues run as a dump for op; links is set for dumps of links, which run first.
func (b *Backend) queueDump(op *scheduler.DumpOp, links bool, run func(s *snapshot) error) {
	b.dumps = append(b.dumps, &dumpTask{links: links, run: run, done: op.Done})
}

// eachDevice visits the devices that a dump covers, by name: all devices in the index or, for a partial dump, those of the requested values. In a
// full dump, the objects of a pod that cannot be read count as absent: they are created again, and only that fails if there is a reason.
func (b *Backend) eachDevice(requested map[string]bool, visit func(d *device) error) error {
	b.mu.RLock()
	links := maps.Clone(b.links)
	b.mu.RUnlock()
	if requested != nil {
		maps.DeleteFunc(links, func(name string, _ *device) bool { return !requested[name] })
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		d := links[name]
		err := visit(d)
		if err != nil && requested == nil && d.path != "" && !lacksResources(err) {
			b.log.Warn("the state of a pod's interface cannot be read; it is configured again", "interface", name, "error", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) dumpLinks(op *scheduler.DumpOp, emit func(key string, v *iface)) {
	desired := map[string]*iface{}
	op.EachDesired(func(_ string, v any) {
		if i, ok := v.(*iface); ok {
			desired[i.GetName()] = i
		}
	})
	if op.Partial() {
		b.queueDump(op, true, func(s *snapshot) error { return b.lookAtLinks(s, desired, emit) })
		return
	}
	b.queueDump(op, true, func(s *snapshot) error {
		found, err := b.findLinks(s, desired)
		if err != nil {
			return err
		}
		devices := make(map[string]*device, len(found))
		for name, f := range found {
			devices[name] = f.device(name, desired[name])
		}
		b.replaceIndex(devices)
		for _, name := range slices.Sorted(maps.Keys(found)) {
			f := found[name]
			v, err := b.linkValue(name, f, desired[name], s)
			if err != nil && f.in.h.path == "" {
				return err
			}
			if err != nil {
				b.log.Warn("the offloads of a pod's interface cannot be read, because the pod is changing it", "interface", name, "error", err)
			}
			emit(nb.LinuxInterfaceKey(name), v)
		}
		return nil
	})
}

// foundLink is a link of ours and its location.
type foundLink struct {
	link linkInfo
	in   *space
	typ  linux_interfaces.Interface_Type
}

func (f foundLink) device(logical string, desired *iface) *device {
	return &device{
		logical: logical, typ: f.typ, path: f.in.h.path, id: f.in.h.ID(), index: f.link.index, name: f.link.name,
		peer: desired.GetVeth().GetPeerIfName(), vppTap: desired.GetTap().GetVppTapIfName(),
		pooled: f.link.group == groupPooled, mac: f.link.mac,
	}
}

// findLinks finds our links in the agent's namespace and in the namespaces of desired interfaces.
func (b *Backend) findLinks(s *snapshot, desired map[string]*iface) (map[string]foundLink, error) {
	host, err := s.space("", nil)
	if err != nil {
		return nil, err
	}
	found := map[string]foundLink{}
	wanted := map[string]*space{} // namespaces of the desired interfaces
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		v := desired[name]
		sp, err := s.space(b.nsPath(v.GetNamespace()), v.GetNamespace())
		if err != nil {
			return nil, err
		}
		wanted[name] = sp
		if sp != nil && sp.byNames {
			if err := sp.look(deviceName(v)); err != nil {
				return nil, fmt.Errorf("look up interface %s in %s: %w", name, sp.h, err)
			}
		}
		markless := v.GetType() == linux_interfaces.Interface_EXISTING ||
			v.GetType() == linux_interfaces.Interface_LOOPBACK && sp == host
		if sp == nil || !markless {
			continue
		}
		for _, l := range sp.links {
			if l.name == deviceName(v) {
				found[name] = foundLink{l, sp, v.GetType()}
			}
		}
	}
	b.lookAside(s)
	b.sweepAside(s)
	for _, sp := range s.order {
		for _, l := range sp.links {
			if sp == host && l.kind == "veth" && l.alias == "" && l.group == groupNew {
				b.dropOrphan(sp.h, l)
				continue
			}
			name, ok := logicalOf(l)
			if !ok {
				continue
			}
			if _, twice := found[name]; !twice || wanted[name] == sp {
				found[name] = foundLink{l, sp, typeOf(l)}
			}
		}
	}
	return found, nil
}

// dropOrphan removes a pair that an agent created and did not tag before it ended.
func (b *Backend) dropOrphan(h *nsHandle, l linkInfo) {
	if err := unlessGone(h.sock.exec(delLink(l.index))); err != nil {
		b.log.Warn("incomplete VETH could not be removed", "device", l.name, "error", err)
		return
	}
	b.log.Info("removed an incomplete VETH", "device", l.name)
}

// linkValue returns the northbound value of a link, as close to the desired value as the actual state allows. The value is also complete if there is
// an error: its offloads, which could not be read, are the desired ones.
func (b *Backend) linkValue(name string, f foundLink, desired *iface, s *snapshot) (*iface, error) {
	v := &iface{
		Name: name, Type: f.typ, Namespace: f.in.ref, HostIfName: f.link.name, Enabled: enabledUp(f.link),
		Mtu: f.link.mtu, PhysAddress: f.link.mac.String(), LinkOnly: false,
	}
	if desired != nil {
		if sp := s.byPath[b.nsPath(desired.GetNamespace())]; sp == f.in {
			v.Namespace = desired.GetNamespace()
		}
		if f.link.group == groupPooled && f.in.h.path == "" {
			v.HostIfName = deviceName(desired)
		}
		if f.typ == linux_interfaces.Interface_EXISTING || f.typ == linux_interfaces.Interface_LOOPBACK {
			v.IpAddresses = desired.GetIpAddresses()
		}
	}
	switch f.typ {
	case linux_interfaces.Interface_TAP_TO_VPP:
		tap := &linux_interfaces.TapLink{VppTapIfName: desired.GetTap().GetVppTapIfName()}
		v.Link = &linux_interfaces.Interface_Tap{Tap: tap}
	case linux_interfaces.Interface_VETH:
		o, err := readOffloads(f.in.h, f.link.name)
		if err != nil {
			o = offloadsOf(desired)
		}
		v.Link = &linux_interfaces.Interface_Veth{Veth: &linux_interfaces.VethLink{
			PeerIfName:           s.peerName(f, desired.GetVeth().GetPeerIfName()),
			RxChecksumOffloading: offloadSetting(o.rx),
			TxChecksumOffloading: offloadSetting(o.tx),
		}}
		return v, err
	}
	return v, nil
}

// peerName returns the logical name of the other end of a VETH. An index does not identify the namespace of the peer, so the expected peer is
// returned if it is among those that match.
func (s *snapshot) peerName(f foundLink, expected string) string {
	peer := ""
	for _, sp := range s.order {
		for _, l := range sp.links {
			if l.kind != "veth" || l.index != f.link.parent || l.parent != f.link.index {
				continue
			}
			name, ok := strings.CutPrefix(l.alias, tagPeer)
			if !ok {
				name, ok = strings.CutPrefix(l.alias, tagPrefix)
			}
			if ok && (peer == "" || name == expected) {
				peer = name
			}
		}
	}
	return peer
}
