package vppfake

import (
	interfaces_api "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

// rxQueue is one receive queue of an interface: its mode, and the thread that serves it (0 is the main thread).
type rxQueue struct {
	mode   interface_types.RxMode
	thread uint32
}

func registerQueues(t *table) {
	on(t, writes, setRxMode)
	on(t, writes, setRxPlacement)
	dump(t, rxPlacementDump)
}

// newQueues creates at least one queue. VPP assigns queues to the workers in turn, or to the main thread if there are no workers.
func (st *state) newQueues(n int, mode interface_types.RxMode) []rxQueue {
	queues := make([]rxQueue, max(1, n))
	for i := range queues {
		queues[i].mode = mode
		if workers := uint32(st.cfg.Workers); workers > 0 {
			queues[i].thread = 1 + st.queues%workers
			st.queues++
		}
	}
	return queues
}

func setRxMode(c *call, q *interfaces_api.SwInterfaceSetRxMode) *interfaces_api.SwInterfaceSetRxModeReply {
	i := c.iface(q.SwIfIndex)
	switch {
	case i == nil:
		return &interfaces_api.SwInterfaceSetRxModeReply{Retval: rvInvalidSwIfIndex}
	case i.sub != nil:
		return &interfaces_api.SwInterfaceSetRxModeReply{Retval: rvInvalidValue}
	case q.QueueIDValid && int64(q.QueueID) >= int64(len(i.hw.queues)):
		return &interfaces_api.SwInterfaceSetRxModeReply{Retval: rvUnimplemented}
	}
	for n := range i.hw.queues {
		if !q.QueueIDValid || q.QueueID == uint32(n) {
			i.hw.queues[n].mode = q.Mode
		}
	}
	return &interfaces_api.SwInterfaceSetRxModeReply{}
}

// setRxPlacement sets the worker of a queue. The request names workers, while the dump reports threads. Without workers, worker 0 is the main
// thread.
func setRxPlacement(c *call, q *interfaces_api.SwInterfaceSetRxPlacement) *interfaces_api.SwInterfaceSetRxPlacementReply {
	i := c.iface(q.SwIfIndex)
	thread := uint16(q.WorkerID) // VPP's type of a thread index
	switch {
	case q.IsMain:
		thread = 0
	case c.cfg.Workers > 0:
		thread++
	}
	var rv int32
	switch {
	case i == nil:
		rv = rvInvalidSwIfIndex
	case i.sub != nil:
		rv = rvInvalidValue
	case int(thread) > c.cfg.Workers || int64(q.QueueID) >= int64(len(i.hw.queues)):
		rv = rvUnimplemented
	default:
		i.hw.queues[q.QueueID].thread = uint32(thread)
	}
	return &interfaces_api.SwInterfaceSetRxPlacementReply{Retval: rv}
}

func rxPlacementDump(c *call, q *interfaces_api.SwInterfaceRxPlacementDump, send func(*interfaces_api.SwInterfaceRxPlacementDetails)) {
	for _, i := range c.live() {
		if i.sub != nil || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
			continue
		}
		for n, queue := range i.hw.queues {
			send(&interfaces_api.SwInterfaceRxPlacementDetails{SwIfIndex: interface_types.InterfaceIndex(i.index),
				QueueID: uint32(n), WorkerID: queue.thread, Mode: queue.mode})
		}
	}
}
