package vpp

import (
	"errors"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pnat"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// pnatLostKey is that of rules which are on no interface.
const pnatLostKey = nb.PnatInterfacePrefix + "/lost"

// pnatFound is what VPP tells of pnat: which interfaces have rules, and which rules there are. It does not tell the rules'
// numbers, nor which of them is on which interface, but it finds the number of an interface's rule by what that matches.
type pnatFound struct {
	ifs     map[uint32]*pnat.PnatInterfacesDetails
	rules   map[pnatRule][]pnatRule // that may be ours, by what they match
	foreign map[pnat.PnatMatchTuple]bool
	total   int
}

func (k *kinds) dumpPnat(op *scheduler.DumpOp, emit func(string, *vpp_pnat.Interface)) {
	end := func(err error) {
		if errors.Is(err, conn.ErrUnknownMessage) {
			err = nil // without the plugin there is nothing
		}
		op.Done(object{"dump", "aliases of interfaces"}.wrap(err))
	}
	k.snapshot(op, func(s *ifSnapshot, err error) {
		if err != nil {
			end(err)
			return
		}
		k.readPnat(func(f *pnatFound, err error) {
			switch {
			case err != nil:
				end(err)
			case op.Partial():
				k.askPnat(s, f, emit, end)
			default:
				clear(k.pnat.ifs)
				k.pnat.lost = nil
				k.askAllPnat(f, emit, end)
			}
		})
	})
}

func (k *kinds) readPnat(done func(*pnatFound, error)) {
	f := &pnatFound{
		ifs: map[uint32]*pnat.PnatInterfacesDetails{}, rules: map[pnatRule][]pnatRule{}, foreign: map[pnat.PnatMatchTuple]bool{},
	}
	both := join(2, func(err error) { done(f, err) })
	conn.Dump(k.lane, &pnat.PnatInterfacesGet{}, func(d *pnat.PnatInterfacesDetails) { f.ifs[uint32(d.SwIfIndex)] = d }, both)
	conn.Dump(k.lane, &pnat.PnatBindingsGet{}, f.add, both)
}

// add takes a rule.
func (f *pnatFound) add(d *pnat.PnatBindingsDetails) {
	f.total++
	r := pnatRule{proto: uint8(d.Match.Proto)}
	switch {
	case d.Match.Mask == pnatMaskIn && d.Rewrite.Mask == pnat.PNAT_DA:
		r.place = netip.AddrPortFrom(netip.AddrFrom4(d.Match.Dst), d.Match.Dport)
		r.alias = netip.AddrFrom4(d.Rewrite.Dst)
	case d.Match.Mask == pnatMaskOut && d.Rewrite.Mask == pnat.PNAT_SA:
		r.place = netip.AddrPortFrom(netip.AddrFrom4(d.Rewrite.Src), d.Match.Sport)
		r.alias, r.output = netip.AddrFrom4(d.Match.Src), true
	default:
		f.foreign[d.Match] = true
		return
	}
	key := r.matched()
	if !slices.Contains(f.rules[key], r) {
		f.rules[key] = append(f.rules[key], r)
	}
}

// askPnat finds out what each interface of ours has, of those that are asked for, and emits it.
func (k *kinds) askPnat(s *ifSnapshot, f *pnatFound, emit func(string, *vpp_pnat.Interface), end func(error)) {
	all := join(1+len(s.ours), end)
	all(nil)
	for _, st := range s.ours {
		delete(k.pnat.ifs, st.name)
		index, ok := k.idx.IfIndex(st.name)
		if d := f.ifs[index]; ok && d != nil {
			k.askPnatRules(st.name, d, f, func(uint32) {}, emit, all)
		} else {
			all(nil)
		}
	}
}

// askAllPnat does it for all interfaces, and finds out how many rules are on none.
func (k *kinds) askAllPnat(f *pnatFound, emit func(string, *vpp_pnat.Interface), end func(error)) {
	used := map[uint32]bool{}
	all := join(1+len(f.ifs)*(1+2*len(f.foreign)), func(err error) {
		if err != nil || f.total <= len(used) {
			end(err)
			return
		}
		l := &lostPnat{k: k, used: used, done: func(err error) {
			if len(k.pnat.lost) > 0 {
				emit(pnatLostKey, &vpp_pnat.Interface{Name: pnatLostKey})
			}
			end(err)
		}}
		l.find(f.total, uint32(f.total))
	})
	all(nil)
	for index, d := range f.ifs {
		name, ours := k.idx.NameByIndex(index)
		if !ours {
			name = ""
		}
		k.askPnatRules(name, d, f, func(id uint32) { used[id] = true }, emit, all)
		for match := range f.foreign {
			for _, hook := range []pnat.PnatAttachmentPoint{pnat.PNAT_IP4_INPUT, pnat.PNAT_IP4_OUTPUT} {
				k.findPnat(d.SwIfIndex, hook, match, func(id uint32) { used[id] = true }, all)
			}
		}
	}
}

// findPnat asks for the number of a rule of an interface.
func (k *kinds) findPnat(
	index interface_types.InterfaceIndex, hook pnat.PnatAttachmentPoint, match pnat.PnatMatchTuple,
	found func(uint32), done func(error),
) {
	conn.Call(k.lane, &pnat.PnatFlowLookup{SwIfIndex: index, Attachment: hook, Match: match},
		func(r *pnat.PnatFlowLookupReply, err error) {
			switch {
			case err == nil:
				found(r.BindingIndex)
			case conn.IsRetval(err): // it is not on this interface
				err = nil
			}
			done(err)
		})
}

// askPnatRules finds out what an interface has, and emits it unless it is somebody else's, which has no name.
func (k *kinds) askPnatRules(
	name string, d *pnat.PnatInterfacesDetails, f *pnatFound, used func(uint32), emit func(string, *vpp_pnat.Interface),
	done func(error),
) {
	have := &pnatRules{ids: map[pnatRule]uint32{}}
	all := join(1+len(f.rules), func(err error) {
		if err == nil && len(have.ids) > 0 && name != "" {
			k.pnat.ifs[name] = have
			emit(nb.PnatInterfaceKey(name), have.value(name))
		}
		done(err)
	})
	for key, rules := range f.rules {
		hook, match := key.hook(), key.asMatch()
		k.findPnat(d.SwIfIndex, hook, match, func(id uint32) {
			used(id)
			have.ids[rules[0]] = id
			have.odd = have.odd || len(rules) > 1 || int(hook) >= len(d.Enabled) || !d.Enabled[hook] ||
				d.LookupMask[hook] != match.Mask
		}, all)
	}
	// An interface that came in the place of one with rules has them, but not the feature.
	conn.Call(k.lane, &feature.FeatureIsEnabled{
		SwIfIndex: d.SwIfIndex, ArcName: "ip4-unicast", FeatureName: "pnat-input",
	}, func(r *feature.FeatureIsEnabledReply, err error) {
		switch {
		case err == nil:
			have.odd = have.odd || !r.IsEnabled
		case isFine(err, ifGone): // the interface has gone, and its rules are still there
			err = nil
		}
		all(err)
	})
}

// reapPnat forgets rules that are on no interface: whoever made them ended before they were.
func (k *kinds) reapPnat(op *scheduler.Op) {
	all := join(1+len(k.pnat.lost), op.Done)
	all(nil)
	for _, id := range k.pnat.lost {
		k.send(object{"forget", "aliases of no interface"}, &pnat.PnatBindingDel{BindingIndex: id}, all)
	}
	k.pnat.lost = nil
}

// lostPnat looks for the numbers of rules that are on no interface. VPP tells all rules from a number on, without the numbers.
type lostPnat struct {
	k    *kinds
	used map[uint32]bool
	done func(error)
	jobs []pnatSpan
}

// pnatSpan are the numbers from lo to before hi, with how many rules there are from lo on, and from hi on.
type pnatSpan struct {
	lo, hi         uint32
	fromLo, fromHi int
}

// find looks where the end is, and then into all halves that have more rules than interfaces do.
func (l *lostPnat) find(total int, end uint32) {
	l.count(end, func(n int) {
		if n > 0 {
			l.find(total, 2*end)
			return
		}
		l.jobs = []pnatSpan{{0, end, total, 0}}
		l.next()
	})
}

func (l *lostPnat) next() {
	if len(l.jobs) == 0 {
		l.done(nil)
		return
	}
	s := l.jobs[len(l.jobs)-1]
	l.jobs = l.jobs[:len(l.jobs)-1]
	lost := s.fromLo - s.fromHi
	for id := s.lo; id < s.hi; id++ {
		if l.used[id] {
			lost--
		}
	}
	switch {
	case lost <= 0:
		l.next()
	case s.hi-s.lo == 1:
		l.k.pnat.lost = append(l.k.pnat.lost, s.lo)
		l.next()
	default:
		mid := s.lo + (s.hi-s.lo)/2
		l.count(mid, func(n int) {
			l.jobs = append(l.jobs, pnatSpan{s.lo, mid, s.fromLo, n}, pnatSpan{mid, s.hi, n, s.fromHi})
			l.next()
		})
	}
}

// count is how many rules there are from a number on.
func (l *lostPnat) count(from uint32, use func(n int)) {
	n := 0
	conn.Dump(l.k.lane, &pnat.PnatBindingsGet{Cursor: from}, func(*pnat.PnatBindingsDetails) { n++ }, func(err error) {
		if err != nil && !isFine(err, []api.VPPApiError{api.INVALID_VALUE}) { // none
			l.done(err)
			return
		}
		use(n)
	})
}

// value is what the rules say, without aliases if they are not as they would be made.
func (h *pnatRules) value(name string) *vpp_pnat.Interface {
	v := &vpp_pnat.Interface{Name: name}
	pairs := 0
	for r := range h.ids {
		other := r
		other.output = !r.output
		if _, ok := h.ids[other]; ok {
			pairs++
		}
		if r.output {
			continue
		}
		a := &vpp_pnat.Interface_Alias{Ip: r.place.Addr().String(), Port: uint32(r.place.Port()), Alias: r.alias.String()}
		if r.proto == protoUDP {
			a.Protocol = vpp_pnat.Interface_UDP
		}
		v.Aliases = append(v.Aliases, a)
	}
	if h.odd = h.odd || pairs != len(h.ids); h.odd {
		v.Aliases = nil
	}
	return v
}
