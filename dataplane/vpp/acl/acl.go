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

// ACLs are applied before all other features of an interface, so that no service is reachable without its ACL.
const (
	rankACL          = scheduler.RankFeature - 2
	rankACLInterface = scheduler.RankFeature - 1
)

// aclRestTag marks the ACL at the end of each interface's list. VPP drops packets that no ACL of an interface permits; our
// ACLs are exceptions from permitting everything.
const aclRestTag = "cva:rest"

// aclState is the state of VPP that the descriptors of ACLs keep. A dump restores all of it.
type aclState struct {
	ids       map[string]uint32              // our ACLs, by name
	rest      uint32                         // the ACL at the end of lists; kit.None if there is none
	requested []func(error)                  // callbacks that wait while rest is being made
	noRoom    bool                           // VPP would crash at the first ACL (room.go): there are none
	stray     map[string]uint32              // surplus ACLs with aclRestTag, or the only one if there are no other ACLs, by name
	denied    map[string]map[guardedEnd]bool // addresses and ports that each of our ACLs denies to all senders except those that an earlier rule permits
	lists     map[aclList]map[string]bool    // our desired ACLs on an interface; true: in place
}

// aclList identifies an interface's list for received packets, or for sent ones.
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

// aclDescriptor returns the descriptor of ACLs with their rules; bindings to interfaces are items (interface.go). A change of the rules is
// one request: every packet is matched against either the old rules or the new ones.
func (k *descriptors) aclDescriptor() scheduler.Descriptor[*vpp_acl.ACL] {
	return scheduler.Descriptor[*vpp_acl.ACL]{
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

// putACL makes an ACL, or replaces its rules. Until VPP has confirmed the rules, no service that depends on them is served.
func (k *descriptors) putACL(op *scheduler.Op, what string, v *vpp_acl.ACL) {
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

func (k *descriptors) needRest(done func(error)) {
	if k.acl.rest != kit.None {
		done(nil)
		return
	}
	k.acl.requested = append(k.acl.requested, done)
	if len(k.acl.requested) > 1 {
		return
	}
	o := kit.Named("create", "the ACL that permits all other packets")
	end := func(err error) {
		requested := k.acl.requested
		k.acl.requested = nil
		for _, done := range requested {
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

func (k *descriptors) addACL(o kit.Object, req *acl.ACLAddReplace, done func(id uint32, err error)) {
	k.Invalidate()
	conn.Call(k.Lane, req, func(r *acl.ACLAddReplaceReply, err error) {
		if err != nil {
			done(kit.None, o.Wrap(err))
			return
		}
		done(r.ACLIndex, nil)
	})
}

// deleteACL deletes an ACL. The ACL at the end of the lists is deleted together with the last of our ACLs.
func (k *descriptors) deleteACL(op *scheduler.Op, name string) {
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

// readACLs reads our ACLs from VPP.
func (k *descriptors) readACLs(done func([]*vpp_acl.ACL, error)) {
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

// deniedBy returns the addresses and ports that rules deny to all senders: earlier rules permit the allowed senders.
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

// Guarded returns an error if an address and port that an ACL guards must not be served yet.
func (k *descriptors) Guarded(name string, address netip.AddrPort, proto uint8) error {
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

// Unguarded returns an error if an ACL that an interface should have on received packets is not in place. An ACL that was
// deleted in the meantime does not count.
func (k *descriptors) Unguarded(ifName string) error {
	for name, inPlace := range k.acl.lists[aclList{If: ifName}] {
		if _, there := k.acl.ids[name]; there && !inPlace {
			return &openError{"interface " + ifName, "ACL " + name + " is not in place"}
		}
	}
	return nil
}

// openError is the reason why a service is not served: its ACL is not in place yet.
type openError struct{ what, why string }

func (e *openError) Error() string {
	return e.what + " is not served until all other clients are denied: " + e.why + " (see its own error)"
}

// Retriable returns true: the ACL's own retry puts it in place.
func (e *openError) Retriable() bool { return true }
