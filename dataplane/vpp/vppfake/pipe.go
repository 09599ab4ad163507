package vppfake

import (
	"fmt"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pipe"
)

// maxPipe is PIPE_MAX_INSTANCE.
const maxPipe = 16 * 1024

// pipePair is the state of a pipe's parent: its number and its two ends, which are sub-interfaces of their own kind. Packets that leave through
// one end are received on the other.
type pipePair struct {
	instance uint32
	ends     [2]*iface
}

func registerPipes(t *table) {
	on(t, writes, createPipe)
	on(t, writes, deletePipe)
	dump(t, func(c *call, _ *pipe.PipeDump, send func(*pipe.PipeDetails)) {
		for _, i := range c.live() {
			if p, ok := i.hw.driver.detail.(*pipePair); ok && i.sub == nil {
				send(&pipe.PipeDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), PipeSwIfIndex: p.indexes(),
					Instance: p.instance})
			}
		}
	})
}

func (p *pipePair) indexes() [2]interface_types.InterfaceIndex {
	return [2]interface_types.InterfaceIndex{
		interface_types.InterfaceIndex(p.ends[0].index), interface_types.InterfaceIndex(p.ends[1].index),
	}
}

func createPipe(c *call, q *pipe.PipeCreate) *pipe.PipeCreateReply {
	p := &pipePair{instance: q.UserInstance}
	switch {
	case !q.IsSpecified:
		p.instance = c.pipes.lowest()
	case p.instance >= maxPipe || !c.pipes.take(p.instance):
		return &pipe.PipeCreateReply{Retval: rvRegistration}
	}
	parent := c.create(&iface{name: fmt.Sprintf("pipe%d", p.instance), hw: &hardware{
		devType: "Pipe", mac: mac{5: byte(p.instance)}, ethernet: true, driver: driver{
			linkFollowsAdmin: true, detail: p, remove: func(st *state, _ *iface) { st.pipes.free(p.instance) },
		},
	}})
	for n := range p.ends {
		p.ends[n] = c.create(&iface{
			name: fmt.Sprintf("%s.%d", parent.name, n), hw: parent.hw, sub: &subInterface{id: uint32(n), pipe: true},
		})
	}
	return &pipe.PipeCreateReply{SwIfIndex: interface_types.InterfaceIndex(parent.index), PipeSwIfIndex: p.indexes()}
}

// deletePipe deletes a pipe. VPP accepts any interface whose number is that of a pipe; the fake accepts only pipes.
func deletePipe(c *call, q *pipe.PipeDelete) *pipe.PipeDeleteReply {
	i := c.iface(q.SwIfIndex)
	if i == nil {
		return &pipe.PipeDeleteReply{Retval: rvInvalidSwIfIndex}
	}
	if _, ok := i.hw.driver.detail.(*pipePair); !ok {
		return &pipe.PipeDeleteReply{Retval: rvInvalidSwIfIndex}
	}
	c.delete(i.hw.owner)
	return &pipe.PipeDeleteReply{}
}

// pipeOf returns the pipe of which the interface is an end.
func (i *iface) pipeOf() *pipePair {
	if i.sub == nil || !i.sub.pipe {
		return nil
	}
	p, _ := i.hw.driver.detail.(*pipePair)
	return p
}

// other returns the other end.
func (p *pipePair) other(i *iface) *iface {
	if i == p.ends[0] {
		return p.ends[1]
	}
	return p.ends[0]
}
