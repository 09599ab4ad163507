package acl

import (
	"maps"
	"slices"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// aclBinding is an ACL on an interface.
type aclBinding struct {
	ACL string
	aclList
}

// OfInterface returns the name of the interface, for partial dumps.
func (b aclBinding) OfInterface() string { return b.If }

const kindACLInterface = "vpp-acl-interface"

func (b aclBinding) key() string {
	direction := nb.Ingress
	if b.Out {
		direction = nb.Egress
	}
	return nb.ACLInterfaceKey(b.ACL, direction, b.If)
}

func (b aclBinding) object(what string) kit.Object {
	return kit.Named(what+" ACL "+b.ACL+" on", "interface "+b.If)
}

// aclInterfaceDescriptor returns the descriptor of bindings. VPP has one list per interface for both directions, which is written as a whole: first
// our ACLs in the order of their names, then those of other programs, or if there are none the ACL that permits the rest.
func (k *descriptors) aclInterfaceDescriptor() scheduler.Descriptor[aclBinding] {
	desc := kit.Item[aclBinding](kindACLInterface, rankACLInterface)
	desc.ImpliedByParent = false // VPP does not delete an ACL that is in use
	desc.Parent = func(_ string, b aclBinding) string { return nb.ACLKey(b.ACL) }
	desc.Deps = func(_ string, b aclBinding, add func(string)) { add(nb.VppInterfaceKey(b.If)) }
	desc.Create = func(op *scheduler.Op, _ string, b aclBinding) {
		if k.acl.noRoom {
			op.Done(nil)
			return
		}
		index, ok := k.idx.IfIndex(b.If)
		if !ok {
			k.Missing(op, b.object("put"), b.If)
			return
		}
		if k.acl.lists[b.aclList] == nil {
			k.acl.lists[b.aclList] = map[string]bool{}
		}
		k.acl.lists[b.aclList][b.ACL] = false
		k.writeACLs(index, b, func(err error) {
			if err == nil {
				k.acl.lists[b.aclList][b.ACL] = true
			}
			op.Done(b.object("put").Wrap(err))
		})
	}
	desc.Delete = func(op *scheduler.Op, _ string, b aclBinding) {
		delete(k.acl.lists[b.aclList], b.ACL)
		index, ok := k.idx.IfIndex(b.If)
		if !ok || k.acl.noRoom {
			kit.Gone(op)
			return
		}
		k.writeACLs(index, b, func(err error) {
			if kit.IsFine(err, kit.IfGone) {
				err = nil
			}
			op.Done(b.object("remove").Wrap(err))
		})
	}
	desc.Dump = k.dumpACLInterfaces
	return desc
}

// writeACLs sets the desired ACLs on an interface.
func (k *descriptors) writeACLs(index uint32, b aclBinding, done func(error)) {
	ifx := interface_types.InterfaceIndex(index)
	now := &acl.ACLInterfaceListDetails{}
	conn.Dump(k.Lane, &acl.ACLInterfaceListDump{SwIfIndex: ifx},
		func(d *acl.ACLInterfaceListDetails) { now = d },
		func(err error) {
			if err != nil {
				done(err)
				return
			}
			in, out := k.aclsOf(b.If, now)
			k.Invalidate()
			conn.Call(k.Lane, &acl.ACLInterfaceSetACLList{SwIfIndex: ifx, NInput: uint8(len(in)), Acls: slices.Concat(in, out)},
				func(_ *acl.ACLInterfaceSetACLListReply, err error) { done(err) })
		})
}

// aclsOf returns the ACLs that an interface should have, given those that it has now.
func (k *descriptors) aclsOf(ifName string, now *acl.ACLInterfaceListDetails) (in, out []uint32) {
	n := min(int(now.NInput), len(now.Acls))
	return k.aclOrder(aclList{If: ifName}, now.Acls[:n]), k.aclOrder(aclList{If: ifName, Out: true}, now.Acls[n:])
}

func (k *descriptors) aclOrder(list aclList, now []uint32) []uint32 {
	var ours []uint32
	for _, name := range slices.Sorted(maps.Keys(k.acl.lists[list])) {
		if id, ok := k.acl.ids[name]; ok {
			ours = append(ours, id)
		}
	}
	others := slices.DeleteFunc(slices.Clone(now), func(id uint32) bool { return id == k.acl.rest || k.isOurACL(id) })
	if len(ours) > 0 && len(others) == 0 && k.acl.rest != kit.None {
		others = []uint32{k.acl.rest}
	}
	return append(ours, others...)
}

func (k *descriptors) isOurACL(id uint32) bool {
	for _, set := range []map[string]uint32{k.acl.ids, k.acl.stray} {
		for _, ours := range set {
			if ours == id {
				return true
			}
		}
	}
	return false
}

// dumpACLInterfaces emits our ACLs on our interfaces. A list that differs from the one that would be written counts as missing.
func (k *descriptors) dumpACLInterfaces(op *scheduler.DumpOp, emit func(string, aclBinding)) {
	end := func(err error) { op.Done(kit.Named("dump", "ACLs of interfaces").Wrap(err)) }
	k.ifs.Snapshot(op, func(s *iface.Snapshot, err error) {
		if err != nil {
			end(err)
			return
		}
		k.readACLs(func(_ []*vpp_acl.ACL, err error) {
			if err != nil {
				end(err)
				return
			}
			query := []uint32{kit.None}
			if op.Partial() {
				query = nil
				for _, st := range s.Ours {
					if index, ok := k.idx.IfIndex(st.Name); ok {
						query = append(query, index)
					}
				}
			} else {
				k.acl.lists = map[aclList]map[string]bool{}
			}
			done := kit.Join(len(query)+1, end)
			for _, index := range query {
				conn.Dump(k.Lane, &acl.ACLInterfaceListDump{SwIfIndex: interface_types.InterfaceIndex(index)},
					func(d *acl.ACLInterfaceListDetails) { k.readACLList(d, emit) }, done)
			}
			done(nil)
		})
	})
}

func (k *descriptors) readACLList(d *acl.ACLInterfaceListDetails, emit func(string, aclBinding)) {
	name, ours := k.idx.NameByIndex(uint32(d.SwIfIndex))
	if !ours {
		return
	}
	n := min(int(d.NInput), len(d.Acls))
	for out, ids := range map[bool][]uint32{false: d.Acls[:n], true: d.Acls[n:]} {
		list := aclList{If: name, Out: out}
		names := map[string]bool{}
		for acl, id := range k.acl.ids {
			if slices.Contains(ids, id) {
				names[acl] = true
			}
		}
		delete(k.acl.lists, list)
		if len(names) == 0 {
			continue
		}
		k.acl.lists[list] = names
		if !slices.Equal(k.aclOrder(list, ids), ids) {
			delete(k.acl.lists, list)
			continue
		}
		for acl := range names {
			b := aclBinding{acl, list}
			emit(b.key(), b)
		}
	}
}
