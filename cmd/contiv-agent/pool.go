//go:build linux

package main

import (
	"contiv.dev/vswitch/dataplane/links"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/pool"
	"contiv.dev/vswitch/plugins/contivconf"
)

// newPool keeps VETH pairs ready with VPP attached to them. Nil: there is no pool, because pods have TAPs, or because the operator wants none.
func newPool(a *agent, c *conn.Conn) *pool.Pool {
	ifc := a.conf.Interface()
	// The pool's interfaces are in interrupt mode. If they exist beside polled interfaces, VPP's af_packet input stops polling, and packets that the
	// polled interfaces receive are not processed.
	if a.opts.warmPool == 0 || ifc.UseTAPInterfaces || ifc.InterfaceRxMode == contivconf.RxModePolling {
		return nil
	}
	return pool.New(c, pool.Config{
		Size: a.opts.warmPool, Veths: veths{links.NewPairs(ifc.MTUSize)}, Log: a.log,
		Busy: func() bool { return a.dataplane != nil && a.dataplane.scheduler.Busy() },
	})
}

// veths makes pairs for the pool.
type veths struct{ pairs *links.Pairs }

// List implements pool.Veths.
func (v veths) List() ([]pool.Veth, error) {
	pairs, err := v.pairs.List()
	out := make([]pool.Veth, len(pairs))
	for i, p := range pairs {
		out[i] = pool.Veth(p)
	}
	return out, err
}

// Make implements pool.Veths.
func (v veths) Make() (pool.Veth, error) {
	p, err := v.pairs.Make()
	return pool.Veth(p), err
}

// Delete implements pool.Veths.
func (v veths) Delete(p pool.Veth) error { return v.pairs.Delete(links.Pair(p)) }

// vppPool and vethPool return the pool for the descriptors: a nil interface if there is no pool.
func (m *vppPlane) vppPool() iface.Pool {
	if m.pool == nil {
		return nil
	}
	return m.pool
}

func (m *vppPlane) vethPool() links.VethPool {
	if m.pool == nil {
		return nil
	}
	return m.pool
}
