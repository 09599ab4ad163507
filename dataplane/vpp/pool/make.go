package pool

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const (
	tapPrefix = "cvp-" // prefix of the Linux devices of the pool's TAPs
	all       = interface_types.InterfaceIndex(^uint32(0))
)

// tag returns the tag of the pool's interfaces. It contains their configuration, so that one made for another
// configuration is recognised.
func (p *Pool) tag() string {
	if p.cfg.Veths != nil {
		r := p.cfg.AfPacket
		return fmt.Sprintf("%safpacket-v2:%d:%d", kit.PoolTagPrefix, r.RxFrames, r.TxFrames)
	}
	t := p.cfg.Tap
	return fmt.Sprintf("%stap:%d:%d:%t:%t", kit.PoolTagPrefix, t.RxRing, t.TxRing, t.Tunnel, t.GSO)
}

// call makes one request. Most callers do not need the type of the reply.
func (p *Pool) call(ctx context.Context, req api.Message) (reply api.Message, err error) {
	p.lane.Request(req, func(r api.Message, e error) { reply, err = r, e })
	p.lane.Flush(ctx)
	return reply, err
}

// add makes one interface and returns how long VPP was busy with it.
func (p *Pool) add(ctx context.Context, session uint64) (time.Duration, error) {
	start := time.Now()
	i, err := p.make(ctx)
	if err != nil {
		return 0, err
	}
	p.put(session, i)
	return time.Since(start), nil
}

func (p *Pool) make(ctx context.Context) (item, error) {
	if p.cfg.Veths != nil {
		return p.makeAfPacket(ctx)
	}
	dev, err := p.freeDevice(ctx)
	if err != nil {
		return item{}, err
	}
	reply, err := p.call(ctx, iface.TapRequest(p.cfg.Tap, dev, p.tag()))
	if err != nil {
		return item{}, fmt.Errorf("make TAP %s: %w", dev, err)
	}
	i := item{index: uint32(reply.(*tapv2.TapCreateV3Reply).SwIfIndex), dev: dev}
	// VPP polls a new TAP, even if it is down.
	_, err = p.call(ctx, &interfaces.SwInterfaceSetRxMode{
		SwIfIndex: interface_types.InterfaceIndex(i.index), Mode: interface_types.RX_MODE_API_INTERRUPT,
	})
	if err != nil {
		return item{}, errors.Join(fmt.Errorf("set the receive mode of TAP %s: %w", dev, err), p.remove(ctx, i))
	}
	return i, nil
}

// freeDevice returns the name of a device that a previous VPP process has left, or else a new name. TAPs are
// persistent, so the pool's devices outlive VPP.
func (p *Pool) freeDevice(ctx context.Context) (string, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("list network devices: %w", err)
	}
	used := map[string]bool{}
	conn.Dump(p.lane, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: all},
		func(d *tapv2.SwInterfaceTapV2Details) { used[d.HostIfName] = true }, func(e error) { err = e })
	p.lane.Flush(ctx)
	if err != nil {
		return "", fmt.Errorf("list TAPs: %w", err)
	}
	for _, d := range devices {
		if strings.HasPrefix(d.Name, tapPrefix) && !used[d.Name] {
			return d.Name, nil
		}
		used[d.Name] = true
	}
	for {
		var b [5]byte
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		if name := tapPrefix + hex.EncodeToString(b[:]); !used[name] {
			return name, nil
		}
	}
}

func (p *Pool) makeAfPacket(ctx context.Context) (item, error) {
	v, err := p.freePair()
	if err != nil {
		return item{}, err
	}
	reply, err := p.call(ctx, iface.AfPacketRequest(v.Host, nb.MaxVethMTU, p.cfg.AfPacket))
	if conn.IsRetval(err, api.IF_ALREADY_EXISTS) { // a leftover without our tag
		if err = p.deleteAfPacket(ctx, v.Host); err == nil {
			reply, err = p.call(ctx, iface.AfPacketRequest(v.Host, nb.MaxVethMTU, p.cfg.AfPacket))
		}
	}
	if err != nil {
		return item{}, fmt.Errorf("make the af_packet interface on %s: %w", v.Host, err)
	}
	i := item{index: uint32(reply.(*af_packet.AfPacketCreateV3Reply).SwIfIndex), dev: v.Host, pod: v.Pod}
	_, err = p.call(ctx, &interfaces.SwInterfaceTagAddDel{
		IsAdd: true, SwIfIndex: interface_types.InterfaceIndex(i.index), Tag: p.tag(),
	})
	if err != nil {
		return item{}, fmt.Errorf("mark the af_packet interface on %s: %w", v.Host, err)
	}
	return i, nil
}

// freePair returns a pair that has no interface yet, or a new one.
func (p *Pool) freePair() (Veth, error) {
	pairs, err := p.cfg.Veths.List()
	if err != nil {
		return Veth{}, fmt.Errorf("list veth pairs: %w", err)
	}
	p.mu.Lock()
	for _, v := range pairs {
		_, taken := p.taken[v.Host]
		if !taken && !slices.ContainsFunc(p.ready, func(i item) bool { return i.dev == v.Host }) {
			p.mu.Unlock()
			return v, nil
		}
	}
	p.mu.Unlock()
	v, err := p.cfg.Veths.Make()
	if err != nil {
		return Veth{}, fmt.Errorf("make a veth pair: %w", err)
	}
	return v, nil
}

// delete removes an interface that was never taken, and its devices.
func (p *Pool) delete(ctx context.Context, i item) error {
	err := p.remove(ctx, i)
	if err == nil && i.pod != "" {
		err = p.cfg.Veths.Delete(Veth{Pod: i.pod, Host: i.dev})
	}
	return err
}

// remove removes an interface from VPP. The device of a TAP is removed with it.
func (p *Pool) remove(ctx context.Context, i item) error {
	if p.cfg.Veths != nil {
		return p.deleteAfPacket(ctx, i.dev)
	}
	_, err := p.call(ctx, &tapv2.TapDeleteV2{SwIfIndex: interface_types.InterfaceIndex(i.index)})
	if conn.IsRetval(err, api.INVALID_SW_IF_INDEX) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("delete TAP %s: %w", i.dev, err)
	}
	return nil
}

func (p *Pool) deleteAfPacket(ctx context.Context, dev string) error {
	_, err := p.call(ctx, &af_packet.AfPacketDelete{HostIfName: dev})
	if err != nil && !conn.IsRetval(err, api.SYSCALL_ERROR_1) {
		return fmt.Errorf("delete the af_packet interface on %s: %w", dev, err)
	}
	return nil
}

// found is an interface in VPP with one of the pool's tags.
type found struct {
	index      uint32
	tag        string
	tap        *tapv2.SwInterfaceTapV2Details
	hostDevice string // of an af_packet interface
}

// adopt finds the pool's interfaces in VPP. Interfaces made for another configuration are deleted.
func (p *Pool) adopt(ctx context.Context, session uint64) error {
	list, err := p.find(ctx)
	if err != nil {
		return err
	}
	pairs := map[string]Veth{}
	if p.cfg.Veths != nil {
		known, err := p.cfg.Veths.List()
		if err != nil {
			return fmt.Errorf("list veth pairs: %w", err)
		}
		for _, v := range known {
			pairs[v.Host] = v
		}
	}
	var ready []item
	taken := map[string]takenItem{}
	var errs []error
	for _, f := range list {
		v, waiting := pairs[f.hostDevice]
		switch {
		case f.tag != p.tag() || (f.tap != nil && f.tap.HostNamespace != ""):
			errs = append(errs, p.discard(ctx, f))
		case f.tap != nil:
			ready = append(ready, item{index: f.index, dev: f.tap.HostIfName})
		case waiting:
			ready = append(ready, item{index: f.index, dev: v.Host, pod: v.Pod})
		default: // the pair was taken, and its interface not claimed yet
			taken[f.hostDevice] = takenItem{item{index: f.index, dev: f.hostDevice}, time.Now()}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.mu.Lock()
	p.session, p.ready, p.taken = session, ready, taken
	p.mu.Unlock()
	return nil
}

func (p *Pool) discard(ctx context.Context, f found) error {
	if f.tap == nil {
		return p.deleteAfPacket(ctx, f.hostDevice)
	}
	_, err := p.call(ctx, &tapv2.TapDeleteV2{SwIfIndex: interface_types.InterfaceIndex(f.index)})
	return err
}

func (p *Pool) find(ctx context.Context) ([]found, error) {
	var list []found
	var errs []error
	taps := map[uint32]*tapv2.SwInterfaceTapV2Details{}
	devices := map[uint32]string{}
	end := func(err error) { errs = append(errs, err) }
	conn.Dump(p.lane, &interfaces.SwInterfaceDump{SwIfIndex: all}, func(d *interfaces.SwInterfaceDetails) {
		if strings.HasPrefix(d.Tag, kit.PoolTagPrefix) {
			list = append(list, found{index: uint32(d.SwIfIndex), tag: d.Tag})
		}
	}, end)
	conn.Dump(p.lane, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: all},
		func(d *tapv2.SwInterfaceTapV2Details) { taps[d.SwIfIndex] = d }, end)
	conn.Dump(p.lane, &af_packet.AfPacketDump{},
		func(d *af_packet.AfPacketDetails) { devices[uint32(d.SwIfIndex)] = d.HostIfName }, end)
	p.lane.Flush(ctx)
	for i := range list {
		list[i].tap, list[i].hostDevice = taps[list[i].index], devices[list[i].index]
	}
	list = slices.DeleteFunc(list, func(f found) bool { return f.tap == nil && f.hostDevice == "" })
	return list, errors.Join(errs...)
}
