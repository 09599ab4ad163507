package acl

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// ACLs go before everything else that an interface does, so that nothing is served past them.
const (
	rankACL          = scheduler.RankFeature - 2
	rankACLInterface = scheduler.RankFeature - 1
)

// aclRestTag marks the ACL that ends the lists of interfaces. VPP drops what no ACL of an interface lets through; ours are
// exceptions from letting everything through.
const aclRestTag = "cva:rest"

// aclState is what the kinds of ACLs know of VPP. A dump finds all of it.
type aclState struct {
	ids    map[string]uint32              // of ours, by name
	rest   uint32                         // the one that ends lists; none: there is none
	asked  []func(error)                  // wait for that one, which is being made
	noRoom bool                           // VPP would die of the first one (room.go): there are none
	stray  map[string]uint32              // more of that kind, or that one while there are no others, by name
	denied map[string]map[guardedEnd]bool // what each of ours denies to everybody that no rule before has let through
	lists  map[aclList]map[string]bool    // ours on an interface that are wanted; true: and in place
}

// aclList is what an interface has for packets that come in, or go out.
type aclList struct {
	If  string
	Out bool
}

func newACLState() aclState {
	return aclState{
		ids: map[string]uint32{}, rest: kit.None, stray: map[string]uint32{}, denied: map[string]map[guardedEnd]bool{},
		lists: map[aclList]map[string]bool{},
	}
}

// aclKind is the rules of an ACL; where it is bound are items (interface.go). Other rules are one request, and no packet
// sees anything but the old rules or the new ones.
func (k *kinds) aclKind() scheduler.Kind[*vpp_acl.ACL] {
	return scheduler.Kind[*vpp_acl.ACL]{
		Name: "vpp-acl", Prefix: nb.ACLPrefix, Rank: rankACL,
		Validate: func(_ string, v *vpp_acl.ACL) error {
			k.Names.Add(v.Name)
			return validateACL(v)
		},
		Equal: func(_ string, desired, applied *vpp_acl.ACL) bool {
			return slices.Equal(aclRules(desired), aclRules(applied)) && (k.acl.rest != kit.None || k.acl.noRoom)
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_acl.ACL) { k.putACL(op, "create", v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_acl.ACL) { k.putACL(op, "change", v) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_acl.ACL) { k.deleteACL(op, v.Name) },
		Derive: func(_ string, v *vpp_acl.ACL, put func(string, string, any)) {
			for _, name := range v.GetInterfaces().GetIngress() {
				b := aclBinding{ACL: v.Name, aclList: aclList{If: name}}
				put(kindACLInterface, b.key(), b)
			}
			for _, name := range v.GetInterfaces().GetEgress() {
				b := aclBinding{ACL: v.Name, aclList: aclList{If: name, Out: true}}
				put(kindACLInterface, b.key(), b)
			}
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_acl.ACL)) {
			k.readACLs(func(found []*vpp_acl.ACL, err error) {
				for _, v := range found {
					emit(nb.ACLKey(v.Name), v)
				}
				op.Done(err)
			})
		},
		Leftover: func(_ string, v *vpp_acl.ACL) bool { return strings.HasPrefix(v.Name, aclRestTag) },
	}
}

func aclObject(what, name string) kit.Object { return kit.Named(what, "ACL "+name) }

// putACL makes an ACL, or replaces its rules. Until VPP has said that it has them, nothing that depends on them is served.
func (k *kinds) putACL(op *scheduler.Op, what string, v *vpp_acl.ACL) {
	o := aclObject(what, v.Name)
	delete(k.acl.denied, v.Name)
	k.needRest(func(err error) {
		if err != nil || k.acl.noRoom {
			op.Done(o.Wrap(err))
			return
		}
		id, ok := k.acl.ids[v.Name]
		if !ok {
			id = kit.None
		}
		rules := aclRules(v)
		k.addACL(o, &acl.ACLAddReplace{ACLIndex: id, Tag: kit.TagOf(v.Name), R: rules}, func(id uint32, err error) {
			if err == nil {
				k.acl.ids[v.Name], k.acl.denied[v.Name] = id, deniedBy(rules)
			}
			op.Done(err)
		})
	})
}

func (k *kinds) needRest(done func(error)) {
	if k.acl.rest != kit.None {
		done(nil)
		return
	}
	k.acl.asked = append(k.acl.asked, done)
	if len(k.acl.asked) > 1 {
		return
	}
	o := kit.Named("create", "the ACL that lets the rest through")
	end := func(err error) {
		asked := k.acl.asked
		k.acl.asked = nil
		for _, done := range asked {
			done(err)
		}
	}
	k.aclRoom(func(err error) {
		if err != nil || k.acl.noRoom {
			end(o.Wrap(err))
			return
		}
		k.addACL(o, &acl.ACLAddReplace{ACLIndex: kit.None, Tag: aclRestTag, R: aclRest()}, func(id uint32, err error) {
			if err == nil {
				k.acl.rest = id
			}
			end(err)
		})
	})
}

func (k *kinds) addACL(o kit.Object, req *acl.ACLAddReplace, done func(id uint32, err error)) {
	k.Forget()
	conn.Call(k.Lane, req, func(r *acl.ACLAddReplaceReply, err error) {
		if err != nil {
			done(kit.None, o.Wrap(err))
			return
		}
		done(r.ACLIndex, nil)
	})
}

// deleteACL: with the last one goes the one that ended their lists.
func (k *kinds) deleteACL(op *scheduler.Op, name string) {
	if id, stray := k.acl.stray[name]; stray {
		delete(k.acl.stray, name)
		k.Do(op, aclObject("delete", name), &acl.ACLDel{ACLIndex: id}, api.NO_SUCH_ENTRY)
		return
	}
	id, ok := k.acl.ids[name]
	if !ok {
		kit.Gone(op)
		return
	}
	delete(k.acl.ids, name)
	delete(k.acl.denied, name)
	reqs := []api.Message{&acl.ACLDel{ACLIndex: id}}
	if len(k.acl.ids) == 0 && k.acl.rest != kit.None {
		reqs = append(reqs, &acl.ACLDel{ACLIndex: k.acl.rest})
		k.acl.rest = kit.None
	}
	k.SendAll(op, aclObject("delete", name), reqs, api.NO_SUCH_ENTRY)
}

// readACLs finds our ACLs.
func (k *kinds) readACLs(done func([]*vpp_acl.ACL, error)) {
	state := newACLState()
	state.lists = k.acl.lists
	var found []*vpp_acl.ACL
	var rest []uint32
	conn.Dump(k.Lane, &acl.ACLDump{ACLIndex: kit.None}, func(d *acl.ACLDetails) {
		tag := strings.TrimRight(d.Tag, "\x00")
		short, ours := strings.CutPrefix(tag, kit.TagPrefix)
		name := k.Names.Full(short)
		_, twice := state.ids[name]
		switch {
		case tag == aclRestTag:
			rest = append(rest, d.ACLIndex)
		case ours && !twice:
			state.ids[name], state.denied[name] = d.ACLIndex, deniedBy(d.R)
			found = append(found, fromACLRules(name, d.R))
		}
	}, func(err error) {
		if err != nil {
			done(nil, fmt.Errorf("vpp: dump ACLs: %w", err))
			return
		}
		if len(found) > 0 && len(rest) > 0 {
			state.rest, rest = rest[0], rest[1:]
		}
		for _, id := range rest {
			name := fmt.Sprint(aclRestTag, "-", id)
			state.stray[name] = id
			found = append(found, &vpp_acl.ACL{Name: name})
		}
		k.acl = state
		done(found, nil)
	})
}

// deniedBy are the addresses and ports that rules close to all senders: rules before them allow the senders that may use them.
func deniedBy(rules []acl_types.ACLRule) map[guardedEnd]bool {
	out := map[guardedEnd]bool{}
	for _, r := range rules {
		src, dst := kit.FromPrefix(r.SrcPrefix), kit.FromPrefix(r.DstPrefix)
		if r.IsPermit == acl_types.ACL_ACTION_API_DENY && src.Bits() == 0 && dst.IsSingleIP() && allPorts(r.SrcportOrIcmptypeFirst,
			r.SrcportOrIcmptypeLast) && r.DstportOrIcmpcodeFirst == r.DstportOrIcmpcodeLast && r.TCPFlagsMask == 0 {
			out[guardedEnd{netip.AddrPortFrom(dst.Addr(), r.DstportOrIcmpcodeFirst), uint8(r.Proto)}] = true
		}
	}
	return out
}

// Guarded says what is missing until an address and port may be served that an ACL guards.
func (k *kinds) Guarded(name string, address netip.AddrPort, proto uint8) error {
	e := guardedEnd{address, proto}
	if !k.acl.denied[name][e] {
		return &openError{e.String(), "ACL " + name + " has no rule for it"}
	}
	for list, names := range k.acl.lists {
		if inPlace, wanted := names[name]; wanted && !inPlace {
			return &openError{e.String(), "ACL " + name + " is not on interface " + list.If}
		}
	}
	return nil
}

// guardedEnd is an address and port of a service.
type guardedEnd struct {
	netip.AddrPort
	proto uint8
}

func (s guardedEnd) String() string {
	return s.Addr().String() + " port " + strconv.Itoa(int(s.Port())) + " protocol " + strconv.Itoa(int(s.proto))
}

// Unguarded says which ACL an interface should have for what comes in and does not. One that has gone in the meantime does not
// count.
func (k *kinds) Unguarded(ifName string) error {
	for name, inPlace := range k.acl.lists[aclList{If: ifName}] {
		if _, there := k.acl.ids[name]; there && !inPlace {
			return &openError{"interface " + ifName, "ACL " + name + " is not in place"}
		}
	}
	return nil
}

// openError is why something is not served: not everybody may use it.
type openError struct{ what, why string }

func (e *openError) Error() string {
	return e.what + " is not served before it is closed to those who may not use it: " + e.why + " (see its own error)"
}

// Retriable is true: the ACL's retry brings what is missing.
func (e *openError) Retriable() bool { return true }
