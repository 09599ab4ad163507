package nat44

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// changeBalanced changes a mapping in place where VPP can do so without side effects, that is if backends are only added. When VPP removes
// a backend it ends all sessions to the backend's address and port, including those of other protocols and services. But existing TCP
// connections must continue, and only new ones must not use the backend; so the mapping is made again, and its sessions are kept. UDP
// sessions, which would continue for as long as the client sends, are ended one by one.
func (k *descriptors) changeBalanced(op *scheduler.Op, key string, applied, desired *natMapping) {
	before := k.placesOf(key, applied)
	after := k.places(key, before, desired)
	udp := desired.External.Proto == kit.ProtoUDP
	if desired.sameButBackends(applied) && desired.Affinity == 0 && !k.nat.handoff {
		if steps, ok := natSteps(before, after); ok && !lost(steps) {
			k.step(op, desired, steps)
			return
		}
	}
	gone := goneBackends(applied.Backends, desired.Backends)
	k.remake(applied, desired, after, func(err error) {
		if err != nil || !udp || k.nat.handoff {
			op.Done(err)
			return
		}
		k.endSessions(applied, gone, op.Done)
	})
}

// remake makes a mapping again. A packet that arrives while there is no mapping would be rejected. Without workers VPP receives none in
// between, since both requests reach it together. With a worker some arrive, and a bridge translates those to cluster IPs.
func (k *descriptors) remake(applied, desired *natMapping, after []natBackend, done func(error)) {
	if !k.bridges(desired) {
		k.replace(applied, desired, after, done)
		return
	}
	bridge, there := bridgeOf(desired), false
	all := kit.Join(2, func(err error) {
		if !there {
			done(err)
			return
		}
		end := kit.Join(2, done)
		end(err)
		k.deleteKeepingSessions(bridge, end)
	})
	k.addBalanced(bridge, after, func(err error) {
		there = err == nil
		all(err)
	})
	k.replace(applied, desired, after, all)
}

func (k *descriptors) replace(applied, desired *natMapping, after []natBackend, done func(error)) {
	both := kit.Join(2, done)
	k.Lane.WriteAtOnce(requestsSize(applied, after), func() {
		if applied.External.Proto == kit.ProtoUDP && k.nat.handoff {
			k.deleteBalanced(applied, both) // sessions cannot be found individually
		} else {
			k.deleteKeepingSessions(applied, both)
		}
		k.addBalanced(desired, after, both)
	})
}

// requestsSize returns the minimum number of bytes of the requests that delete a mapping and add another one.
func requestsSize(old *natMapping, add []natBackend) int {
	return 128*(len(old.tables())+1) + 11*len(add)
}

// bridges reports whether a mapping needs a bridge, and can have one. Addresses other than cluster IPs cannot: they have ports which are
// not those of services. With several workers VPP would search the backends of the bridge on the wrong worker.
func (k *descriptors) bridges(m *natMapping) bool {
	return k.nat.worker && !k.nat.handoff && slices.ContainsFunc(k.settings.ClusterIPs, func(p netip.Prefix) bool {
		return p.Contains(m.External.Addr)
	})
}

// bridgeOf returns a mapping for all ports of an address: VPP uses it when there is no mapping for the port. It has the same backends and
// ports as the mapping that it replaces.
func bridgeOf(m *natMapping) *natMapping {
	b := *m
	b.External.Port, b.External.Proto, b.Bridge = 0, 0, true
	return &b
}
