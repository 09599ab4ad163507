package nat44

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// changeBalanced changes a mapping in place where VPP can without harm, that is where backends come. When it takes one away VPP ends all
// sessions to its address and port, those of other protocols and services included. But connections of TCP are to go on, only to get no new
// ones; so the mapping is made again, and its sessions are kept. Those of UDP, which would go on for as long as the client sends, are ended
// one by one.
func (k *kinds) changeBalanced(op *scheduler.Op, key string, applied, desired *natMapping) {
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

// remake makes a mapping again. A packet that comes when it is not there would be rejected. Without workers VPP sees none, since both
// requests reach it together. Otherwise some come, and a bridge takes those to cluster IPs.
func (k *kinds) remake(applied, desired *natMapping, after []natBackend, done func(error)) {
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
		k.forgetBalanced(bridge, end)
	})
	k.addBalanced(bridge, after, func(err error) {
		there = err == nil
		all(err)
	})
	k.replace(applied, desired, after, all)
}

func (k *kinds) replace(applied, desired *natMapping, after []natBackend, done func(error)) {
	both := kit.Join(2, done)
	k.Lane.Together(requestsSize(applied, after), func() {
		if applied.External.Proto == kit.ProtoUDP && k.nat.handoff {
			k.deleteBalanced(applied, both) // sessions cannot be found by themselves
		} else {
			k.forgetBalanced(applied, both)
		}
		k.addBalanced(desired, after, both)
	})
}

// requestsSize is at least how many bytes it takes to forget a mapping and to add another one.
func requestsSize(forget *natMapping, add []natBackend) int {
	return 128*(len(forget.tables())+1) + 11*len(add)
}

// bridges reports whether a mapping can be bridged, and needs it. Addresses other than cluster IPs cannot: they have ports which are not
// those of services. With several workers VPP would look for backends of the bridge on the wrong one.
func (k *kinds) bridges(m *natMapping) bool {
	return k.nat.worker && !k.nat.handoff && slices.ContainsFunc(k.settings.ClusterIPs, func(p netip.Prefix) bool {
		return p.Contains(m.External.Addr)
	})
}

// bridgeOf is a mapping for all ports of an address: VPP takes it when there is none for the port. It leads to the backends'
// ports, as the mapping does that it stands in for.
func bridgeOf(m *natMapping) *natMapping {
	b := *m
	b.External.Port, b.External.Proto, b.Bridge = 0, 0, true
	return &b
}
