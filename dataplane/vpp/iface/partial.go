package iface

import (
	"errors"
	"fmt"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/binapi/vxlan"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// interfaceOf returns the name of the interface that a value describes or belongs to.
func interfaceOf(v any) string {
	switch v := v.(type) {
	case *vpp_interfaces.Interface:
		return v.Name
	case ifTable:
		return v.If
	case ifPlace:
		return v.If
	case ifAddress:
		return v.If
	case ifHasIP:
		return v.If
	case ifUnnumbered:
		return v.If
	case ifMTU:
		return v.If
	case ifRxModes:
		return v.If
	case ifPlacement:
		return v.If
	case ifUp:
		return v.If
	case ifDHCP:
		return v.If
	case interface{ GetInterface() string }: // messages of other features
		return v.GetInterface()
	case interface{ OfInterface() string }: // their items
		return v.OfInterface()
	}
	return ""
}

// partialSnapshot takes a snapshot of the interfaces that a partial dump requests. It changes neither the index nor the shared
// snapshot: a dump of some interfaces must not change the data of all.
func (k *Descriptors) partialSnapshot(op *scheduler.DumpOp, done func(*Snapshot, error)) {
	s := newIfSnapshot()
	var entries []*ifEntry
	seen := map[string]bool{}
	op.EachDesired(func(_ string, v any) {
		name := interfaceOf(v)
		if e := k.idx.Entry(name); e != nil && !seen[name] {
			entries = append(entries, e)
		}
		seen[name] = true
	})
	if len(entries) == 0 {
		done(s, nil)
		return
	}
	part := kit.Join(len(entries)+1, func(err error) {
		if err != nil {
			done(nil, fmt.Errorf("vpp: dump single interfaces: %w", err))
			return
		}
		for _, e := range entries {
			k.recognise(s, e)
		}
		k.collectEach(s, func(err error) { done(s, err) })
	})
	k.collectDHCP(s, func(err error) {
		if errors.Is(err, conn.ErrUnknownMessage) {
			err = nil
		}
		part(err)
	})
	for _, e := range entries {
		k.collectOne(s, e, part)
	}
}

// recognise adds an interface to a snapshot if VPP has that interface under the same number as the index.
func (k *Descriptors) recognise(s *Snapshot, e *ifEntry) {
	d := s.all[e.Index]
	if d == nil {
		return
	}
	if short, ours := kit.NameOfTag(d.Tag); !ours || k.Names.Full(short) != e.name {
		return
	}
	st := s.state(e.name, e.Index, d)
	if from, ok := s.unnumbered[e.Index]; ok {
		st.unnumbered, _ = k.idx.NameByIndex(from)
	}
	s.ByIndex[e.Index] = st
	s.Ours = append(s.Ours, st)
}

// collectOne dumps the data of a single interface. For af_packet interfaces, memifs and pipes VPP can only dump all.
func (k *Descriptors) collectOne(s *Snapshot, e *ifEntry, done func(error)) {
	index := interface_types.InterfaceIndex(e.Index)
	var queries []func(done func(error))
	query := func(f func(done func(error))) { queries = append(queries, f) }
	query(func(done func(error)) {
		conn.Dump(k.Lane, &interfaces.SwInterfaceDump{SwIfIndex: index},
			func(d *interfaces.SwInterfaceDetails) { s.all[uint32(d.SwIfIndex)] = d }, done)
	})
	query(func(done func(error)) {
		conn.Dump(k.Lane, &ip.IPUnnumberedDump{SwIfIndex: index},
			func(d *ip.IPUnnumberedDetails) { s.unnumbered[uint32(d.SwIfIndex)] = uint32(d.IPSwIfIndex) }, done)
	})
	query(func(done func(error)) {
		conn.Dump(k.Lane, &interfaces.SwInterfaceRxPlacementDump{SwIfIndex: index},
			func(d *interfaces.SwInterfaceRxPlacementDetails) {
				s.queues[uint32(d.SwIfIndex)] = append(s.queues[uint32(d.SwIfIndex)], d)
			}, done)
	})
	switch e.kind {
	case kindTap:
		query(func(done func(error)) {
			conn.Dump(k.Lane, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: index},
				func(d *tapv2.SwInterfaceTapV2Details) { s.taps[d.SwIfIndex] = d }, done)
		})
	case vpp_interfaces.Interface_AF_PACKET:
		query(func(done func(error)) { k.collectAfPackets(s, done) })
	case vpp_interfaces.Interface_MEMIF:
		query(func(done func(error)) {
			conn.Dump(k.Lane, &memif.MemifDump{}, func(d *memif.MemifDetails) { s.memifs[uint32(d.SwIfIndex)] = d }, done)
		})
		query(func(done func(error)) {
			conn.Dump(k.Lane, &memif.MemifSocketFilenameDump{},
				func(d *memif.MemifSocketFilenameDetails) { s.sockets[d.SocketID] = d.SocketFilename }, done)
		})
	case vpp_interfaces.Interface_PIPE:
		query(func(done func(error)) { k.collectPipes(s, done) })
	case vpp_interfaces.Interface_VXLAN_TUNNEL:
		query(func(done func(error)) {
			conn.Dump(k.Lane, &vxlan.VxlanTunnelV2Dump{SwIfIndex: index},
				func(d *vxlan.VxlanTunnelV2Details) { s.vxlans[uint32(d.SwIfIndex)] = d }, done)
		})
	}
	part := kit.Join(len(queries), done)
	for _, f := range queries {
		f(func(err error) {
			if kit.IsFine(err, kit.IfGone) || errors.Is(err, conn.ErrUnknownMessage) {
				err = nil // then the object does not exist
			}
			part(err)
		})
	}
}
