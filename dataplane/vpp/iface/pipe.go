package iface

import (
	"crypto/sha256"
	"encoding/binary"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pipe"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Our pipes have numbers in the upper half of VPP's range; VPP itself assigns the lowest free number.
const (
	pipeFirst = 8 * 1024
	pipeCount = 8 * 1024
)

// pipeEnd is one end of a pipe: packets sent on it are received on the other end. VPP makes both ends at once, with a parent
// interface that only has to be up.
type pipeEnd struct {
	parent uint32
	ends   [2]uint32
	second bool
}

func pipeType() *ifType {
	return &ifType{
		noMAC:    true,
		validate: validatePipe,
		deps: func(v *vpp_interfaces.Interface, add func(string)) {
			if first := v.GetPipe().GetFirstEnd(); first != "" {
				add(nb.VppInterfaceKey(first))
			}
		},
		create: createPipe,
		equal: func(_ *Descriptors, desired, applied *vpp_interfaces.Interface) bool {
			return desired.GetPipe().GetFirstEnd() == applied.GetPipe().GetFirstEnd()
		},
		read:   readPipe,
		remove: removePipe,
	}
}

func validatePipe(v *vpp_interfaces.Interface, f *kit.Faults) {
	if v.GetPipe().GetFirstEnd() == v.Name && v.Name != "" {
		f.Add("pipe.first_end", "is the interface itself; leave it out in the first end")
	}
	if v.PhysAddress != "" {
		f.Add("phys_address", "not supported for a pipe")
	}
	if len(v.RxModes)+len(v.RxPlacements) > 0 {
		f.Add("rx_modes", "a pipe has no queues")
	}
}

// createPipe makes a pipe for its first end; for the second end it finds the pipe of the first one.
func createPipe(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	first := v.GetPipe().GetFirstEnd()
	if first == "" {
		k.makePipe(v.Name, done)
		return
	}
	index, ok := k.idx.IfIndex(first)
	if !ok {
		done(made{}, kit.MissingInterface(first))
		return
	}
	k.findPipe(func(d *pipe.PipeDetails) bool { return uint32(d.PipeSwIfIndex[0]) == index },
		func(d *pipe.PipeDetails, err error) {
			switch {
			case err != nil:
				done(made{}, err)
			case d == nil:
				done(made{}, kit.MissingInterface(first))
			default:
				done(made{index: uint32(d.PipeSwIfIndex[1])}, nil)
			}
		})
}

// pipeInstance returns a pipe's number in VPP. It is derived from the name, so that a pipe can be found if the reply to its
// creation was lost.
func pipeInstance(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return pipeFirst + binary.BigEndian.Uint32(sum[:])%pipeCount
}

func (k *Descriptors) makePipe(name string, done func(made, error)) {
	req := &pipe.PipeCreate{IsSpecified: true, UserInstance: pipeInstance(name)}
	conn.Call(k.Lane, req, func(r *pipe.PipeCreateReply, err error) {
		switch {
		case conn.IsRetval(err, api.INVALID_REGISTRATION):
			k.adoptPipe(req.UserInstance, err, done)
		case err != nil:
			done(made{}, err)
		default:
			k.pipeUp(uint32(r.SwIfIndex), uint32(r.PipeSwIfIndex[0]), uint32(r.PipeSwIfIndex[1]), done)
		}
	})
}

// pipeUp brings up the parent, without which no end can be up, and takes down the ends, which VPP brings up together with the
// parent.
func (k *Descriptors) pipeUp(parent, first, second uint32, done func(made, error)) {
	all := kit.Join(3, func(err error) { done(made{index: first, broken: err}, nil) })
	conn.Call(k.Lane, flagsRequest(parent, true), func(_ *interfaces.SwInterfaceSetFlagsReply, err error) { all(err) })
	for _, end := range []uint32{first, second} {
		conn.Call(k.Lane, flagsRequest(end, false), func(_ *interfaces.SwInterfaceSetFlagsReply, err error) { all(err) })
	}
}

// adoptPipe takes over a pipe that VPP already has because the reply to its creation was lost.
func (k *Descriptors) adoptPipe(instance uint32, cause error, done func(made, error)) {
	k.findPipe(func(d *pipe.PipeDetails) bool { return d.Instance == instance }, func(d *pipe.PipeDetails, err error) {
		if err == nil && d == nil {
			err = cause
		}
		if err == nil {
			err = k.adoptable(uint32(d.PipeSwIfIndex[0]), cause)
		}
		if err != nil {
			done(made{}, err)
			return
		}
		k.pipeUp(uint32(d.SwIfIndex), uint32(d.PipeSwIfIndex[0]), uint32(d.PipeSwIfIndex[1]), done)
	})
}

// findPipe calls done with the pipe for which meant returns true, or nil if VPP has none.
func (k *Descriptors) findPipe(meant func(*pipe.PipeDetails) bool, done func(*pipe.PipeDetails, error)) {
	var found *pipe.PipeDetails
	conn.Dump(k.Lane, &pipe.PipeDump{}, func(d *pipe.PipeDetails) {
		if meant(d) {
			found = d
		}
	}, func(err error) { done(found, err) })
}

// removePipe deletes the pipe with its first end; for the second end it only clears the configuration. The parent is looked
// up: if the request has any other interface whose instance number is that of a pipe, VPP deletes that interface.
func removePipe(k *Descriptors, e *ifEntry, v *vpp_interfaces.Interface, done func(error)) {
	if v.GetPipe().GetFirstEnd() != "" {
		k.clearPipeEnd(e.Index, done)
		return
	}
	k.findPipe(func(d *pipe.PipeDetails) bool { return uint32(d.PipeSwIfIndex[0]) == e.Index },
		func(d *pipe.PipeDetails, err error) {
			if err != nil || d == nil {
				done(err)
				return
			}
			conn.Call(k.Lane, &pipe.PipeDelete{SwIfIndex: d.SwIfIndex}, func(_ *pipe.PipeDeleteReply, err error) { done(err) })
		})
}

// clearPipeEnd removes the configuration of an end. VPP may have deleted the whole pipe before.
func (k *Descriptors) clearPipeEnd(index uint32, done func(error)) {
	ifx := interface_types.InterfaceIndex(index)
	reqs := []api.Message{
		flagsRequest(index, false),
		&interfaces.SwInterfaceSetUnnumbered{UnnumberedSwIfIndex: ifx},
		&interfaces.SwInterfaceAddDelAddress{SwIfIndex: ifx, DelAll: true},
		&interfaces.SwInterfaceSetTable{SwIfIndex: ifx},
		&interfaces.SwInterfaceSetTable{SwIfIndex: ifx, IsIPv6: true},
		tagRequest(index, ""),
	}
	all := kit.Join(len(reqs), done)
	for _, req := range reqs {
		k.Lane.Request(req, func(_ api.Message, err error) {
			if kit.IsFine(err, kit.IfGone) {
				err = nil
			}
			all(err)
		})
	}
}

func readPipe(k *Descriptors, s *ifState, v *vpp_interfaces.Interface) bool {
	if s.pipe == nil {
		return false
	}
	link := &vpp_interfaces.PipeLink{}
	if s.pipe.second {
		var ok bool
		if link.FirstEnd, ok = k.idx.NameByIndex(s.pipe.ends[0]); !ok {
			return false
		}
	}
	v.Link = &vpp_interfaces.Interface_Pipe{Pipe: link}
	return true
}

// collectPipes dumps pipes: VPP can only dump all.
func (k *Descriptors) collectPipes(s *Snapshot, done func(error)) {
	conn.Dump(k.Lane, &pipe.PipeDump{}, func(d *pipe.PipeDetails) {
		end := pipeEnd{parent: uint32(d.SwIfIndex), ends: [2]uint32{uint32(d.PipeSwIfIndex[0]), uint32(d.PipeSwIfIndex[1])}}
		other := end
		other.second = true
		s.pipes[end.ends[0]], s.pipes[end.ends[1]] = &end, &other
	}, done)
}
