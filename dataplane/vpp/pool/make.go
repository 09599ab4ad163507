package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const all = interface_types.InterfaceIndex(^uint32(0))

// tag returns the tag of the pool's interfaces. It contains their configuration, so that one made for another
// configuration is recognised.
func tag() string {
	r := iface.DefaultAfPacketRings()
	return fmt.Sprintf("%safpacket-v2:%d:%d", kit.PoolTagPrefix, r.RxFrames, r.TxFrames)
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

// make makes an af_packet interface on a pair.
func (p *Pool) make(ctx context.Context) (item, error) {
	v, err := p.freePair()
	if err != nil {
		return item{}, err
	}
	reply, err := p.call(ctx, iface.AfPacketRequest(v.Host, nb.MaxVethMTU, iface.DefaultAfPacketRings()))
	if conn.IsRetval(err, api.IF_ALREADY_EXISTS) { // a leftover without our tag
		if err = p.deleteAfPacket(ctx, v.Host); err == nil {
			reply, err = p.call(ctx, iface.AfPacketRequest(v.Host, nb.MaxVethMTU, iface.DefaultAfPacketRings()))
		}
	}
	if err != nil {
		return item{}, fmt.Errorf("make the af_packet interface on %s: %w", v.Host, err)
	}
	i := item{index: uint32(reply.(*af_packet.AfPacketCreateV3Reply).SwIfIndex), host: v.Host, pod: v.Pod}
	_, err = p.call(ctx, &interfaces.SwInterfaceTagAddDel{
		IsAdd: true, SwIfIndex: interface_types.InterfaceIndex(i.index), Tag: tag(),
	})
	if err != nil {
		return item{}, fmt.Errorf("mark the af_packet interface on %s: %w", v.Host, err)
	}
	return i, nil
}

// freePair returns a pair that has no interface yet, or a new one.
func (p *Pool) freePair() (Veth, error) {
	used := p.used() // before the list: a pod may take and claim a pair meanwhile
	pairs, err := p.cfg.Veths.List()
	if err != nil {
		return Veth{}, fmt.Errorf("list veth pairs: %w", err)
	}
	for _, v := range pairs {
		if !used[v.Host] {
			return v, nil
		}
	}
	v, err := p.cfg.Veths.Make()
	if err != nil {
		return Veth{}, fmt.Errorf("make a veth pair: %w", err)
	}
	return v, nil
}

// used returns the host ends of pairs that have an interface.
func (p *Pool) used() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	hosts := make(map[string]bool, len(p.ready)+len(p.taken))
	for _, i := range p.ready {
		hosts[i.host] = true
	}
	for host := range p.taken {
		hosts[host] = true
	}
	return hosts
}

// delete removes an interface, and its pair if no pod has taken it.
func (p *Pool) delete(ctx context.Context, i item) error {
	if err := p.deleteAfPacket(ctx, i.host); err != nil || i.pod == "" {
		return err
	}
	return p.cfg.Veths.Delete(Veth{Pod: i.pod, Host: i.host})
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
	index uint32
	tag   string
	host  string // the device that it is on
}

// adopt finds the pool's interfaces in VPP. Interfaces made for another configuration are deleted.
func (p *Pool) adopt(ctx context.Context, session uint64) error {
	list, err := p.find(ctx)
	if err != nil {
		return err
	}
	known, err := p.cfg.Veths.List()
	if err != nil {
		return fmt.Errorf("list veth pairs: %w", err)
	}
	pairs := map[string]Veth{} // by host end
	for _, v := range known {
		pairs[v.Host] = v
	}
	var ready []item
	taken := map[string]takenItem{}
	var errs []error
	for _, f := range list {
		v, waiting := pairs[f.host]
		switch {
		case f.tag != tag():
			errs = append(errs, p.deleteAfPacket(ctx, f.host))
		case waiting:
			ready = append(ready, item{index: f.index, host: v.Host, pod: v.Pod})
		default: // the pair was taken, and its interface not claimed yet
			taken[f.host] = takenItem{item{index: f.index, host: f.host}, time.Now()}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.mu.Lock()
	p.session, p.ready, p.taken, p.surplus = session, ready, taken, nil
	p.mu.Unlock()
	return nil
}

func (p *Pool) find(ctx context.Context) ([]found, error) {
	var list []found
	var errs []error
	devices := map[uint32]string{}
	end := func(err error) { errs = append(errs, err) }
	conn.Dump(p.lane, &interfaces.SwInterfaceDump{SwIfIndex: all}, func(d *interfaces.SwInterfaceDetails) {
		if strings.HasPrefix(d.Tag, kit.PoolTagPrefix) {
			list = append(list, found{index: uint32(d.SwIfIndex), tag: d.Tag})
		}
	}, end)
	conn.Dump(p.lane, &af_packet.AfPacketDump{},
		func(d *af_packet.AfPacketDetails) { devices[uint32(d.SwIfIndex)] = d.HostIfName }, end)
	p.lane.Flush(ctx)
	for i := range list {
		list[i].host = devices[list[i].index]
	}
	list = slices.DeleteFunc(list, func(f found) bool { return f.host == "" })
	return list, errors.Join(errs...)
}
