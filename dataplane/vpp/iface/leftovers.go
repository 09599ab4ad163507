package iface

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// An interface that we made and could not mark, because the reply or the connection was lost in between, is a leftover. A dump finds
// leftovers and emits them under a name that is never desired, so that the scheduler removes them. There are two ways to recognise our
// interfaces without a tag: the agent stores for a while what it may have made; and any later agent, too, recognises af_packet
// interfaces on devices of pods, and loopbacks, by their properties. All other interfaces without a tag are foreign.

const (
	// leftoverPrefix is the prefix of the logical names of leftovers. None of our names has a space.
	leftoverPrefix = "left over: "
	// suspectAge is how long the agent searches for an interface that may have been made.
	suspectAge = 10 * time.Second
	// Devices of pods have ipnet's prefix and a hash with this number of hexadecimal digits. No other program makes such names.
	podDevPrefix = "vpp"
	podDevDigits = 12
)

// suspect is an interface that VPP may have without its tag.
type suspect struct {
	v     *vpp_interfaces.Interface
	dev   string // the Linux device of an af_packet interface or of a TAP
	since time.Time
}

func (k *Descriptors) suspect(v *vpp_interfaces.Interface, dev string) {
	k.uncertain[v.Name] = suspect{v: v, dev: dev, since: time.Now()}
}

func isLeftover(name string) bool { return strings.HasPrefix(name, leftoverPrefix) }

// undoCreate removes an interface that could not be set up: a partially configured interface is unusable, and a retry would make a second
// one.
func (k *Descriptors) undoCreate(op *scheduler.Op, v *vpp_interfaces.Interface, e *ifEntry, cause error) {
	k.idx.remove(v.Name)
	k.types[v.Type].remove(k, e, v, func(left error) {
		if left != nil && !kit.IsFine(left, kit.IfGone) {
			k.suspect(v, e.hostDev)
			cause = scheduler.OutcomeUnknown(errors.Join(cause, Named("remove", v.Name).Wrap(left)))
		}
		op.Done(cause)
	})
}

// findLeftovers searches the interfaces that are not marked as ours. The index must already contain the result of the dump.
func (k *Descriptors) findLeftovers(s *Snapshot) {
	seen := map[string]bool{}
	for index, d := range s.all {
		if index == 0 || d.Tag != "" && !strings.HasPrefix(d.Tag, kit.PoolTagPrefix) {
			continue
		}
		st := s.state(leftoverPrefix+d.InterfaceName, index, d)
		if !k.isOurs(st, seen) {
			continue
		}
		k.Log.Warn("VPP has an incomplete interface; it is removed", "interface", d.InterfaceName)
		s.leftovers = append(s.leftovers, st)
		k.idx.add(s.entry(st))
	}
	for name, u := range k.uncertain {
		if !seen[name] && time.Since(u.since) > suspectAge {
			delete(k.uncertain, name)
		}
	}
}

// leftoverGone removes the suspects on a device that other interfaces may use from now on.
func (k *Descriptors) leftoverGone(e *ifEntry) {
	if !isLeftover(e.name) || e.hostDev == "" {
		return
	}
	for name, u := range k.uncertain {
		if u.dev == e.hostDev {
			delete(k.uncertain, name)
		}
	}
}

// isOurs reports whether an interface without our tag is ours nevertheless. It adds the suspects that were found to seen.
func (k *Descriptors) isOurs(st *ifState, seen map[string]bool) bool {
	for name, u := range k.uncertain {
		if u.v.Type == st.kind && k.matches(st, &u) {
			seen[name] = true
			return true
		}
	}
	switch {
	case st.Details.Tag != "":
		return false
	case st.kind == vpp_interfaces.Interface_AF_PACKET:
		return isPodDevice(st.hostDev)
	}
	return st.kind == vpp_interfaces.Interface_SOFTWARE_LOOPBACK && isOurLoopback(st.Details)
}

// matches reports whether an interface is the suspect.
func (k *Descriptors) matches(st *ifState, u *suspect) bool {
	switch st.kind {
	case vpp_interfaces.Interface_AF_PACKET, vpp_interfaces.Interface_TAP:
		return u.dev != "" && st.hostDev == u.dev
	case vpp_interfaces.Interface_SOFTWARE_LOOPBACK:
		return st.Details.Tag == "" && st.Details.L2Address == loopbackMAC(u.v)
	case vpp_interfaces.Interface_MEMIF, vpp_interfaces.Interface_VXLAN_TUNNEL, vpp_interfaces.Interface_SUB_INTERFACE,
		vpp_interfaces.Interface_PIPE:
		found := k.readInterface(st)
		return st.Details.Tag == "" && found != nil && k.sameInterface(u.v, found)
	}
	return false
}

func isPodDevice(dev string) bool {
	digits, ok := strings.CutPrefix(dev, podDevPrefix)
	return ok && len(digits) == podDevDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// Our loopbacks have numbers in the upper half of VPP's range, near a number derived from their hardware address. A foreign loopback is
// mistaken for ours only if a user chose exactly such a number and address.
const (
	loopbackFirst = 8 * 1024
	loopbackCount = 8 * 1024
	loopbackTries = 32
)

// loopbackInstance returns the number of a loopback for the given attempt.
func loopbackInstance(address ethernet_types.MacAddress, attempt uint32) uint32 {
	sum := sha256.Sum256(address[:])
	return loopbackFirst + (binary.BigEndian.Uint32(sum[:])+attempt)%loopbackCount
}

func isOurLoopback(d *interfaces.SwInterfaceDetails) bool {
	number, ok := strings.CutPrefix(d.InterfaceName, "loop")
	instance, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil || instance < loopbackFirst {
		return false
	}
	return (uint32(instance)-loopbackInstance(d.L2Address, 0)+loopbackCount)%loopbackCount < loopbackTries
}

// tryLoopback makes a loopback with the first free number, or with any number after too many attempts.
func (k *Descriptors) tryLoopback(address ethernet_types.MacAddress, attempt uint32, done func(made, error)) {
	req := &interfaces.CreateLoopbackInstance{
		MacAddress: address, IsSpecified: attempt < loopbackTries, UserInstance: loopbackInstance(address, attempt),
	}
	conn.Call(k.Lane, req, func(r *interfaces.CreateLoopbackInstanceReply, err error) {
		switch {
		case req.IsSpecified && conn.IsRetval(err, api.INVALID_REGISTRATION):
			k.tryLoopback(address, attempt+1, done)
		case err != nil:
			done(made{}, err)
		default:
			done(made{index: uint32(r.SwIfIndex), hasMAC: true}, nil)
		}
	})
}
