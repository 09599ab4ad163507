package iface

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// TrashTagPrefix starts the tags of interfaces that are only waiting to be deleted.
const TrashTagPrefix = "contiv-trash:"

const (
	trashQuiet = time.Second           // no deletion before nothing was done for so long
	trashPace  = 10 * time.Millisecond // between two deletions, for others to get a turn
	trashIdle  = 10 * time.Second
	// On a node where something always happens it is never quiet. A TAP in the trash holds 256 of VPP's packet buffers, of which
	// the default is 16,384: without these limits deleted pods would take the buffers of those that live.
	trashLongest = 5 * time.Second // what has waited so long waits no more
	trashMax     = 16              // what may wait; beyond it the oldest goes at once
)

// Trash deletes TAPs and af_packet interfaces after their owner has gone. Deleting one stops VPP's main thread for 20 to 40 ms, while the
// kernel waits for RCU; taking it down and marking it takes microseconds. So deleting a pod does the latter, and a job the former once
// nothing is waiting. An interface in the trash is down and without effect. The mark is in VPP, so an agent that is restarted finds the
// trash again; a VPP that is restarted has none.
type Trash struct {
	conn *conn.Conn
	lane *conn.Lane // of the goroutine that runs Run
	log  *slog.Logger
	wake chan struct{}
	idle func() time.Duration // how long nothing has wanted anything of VPP

	deleting sync.Mutex // held while one is deleted; taken before mu

	mu      sync.Mutex
	session uint64 // in which items are true
	items   []trashItem
	current trashItem // is being deleted
	thrown  time.Time // the last time
}

type trashItem struct {
	name  string // the logical one
	index uint32
	tap   bool
	dev   string // in Linux
	moved bool   // not in VPP's network namespace
	since time.Time
}

// on reports whether the interface holds the device on which another is to be made.
func (i trashItem) on(name, dev string) bool {
	return i.name == name || (i.dev == dev && dev != "" && !i.moved)
}

func (i trashItem) request() api.Message {
	if i.tap {
		return &tapv2.TapDeleteV2{SwIfIndex: interface_types.InterfaceIndex(i.index)}
	}
	return &af_packet.AfPacketDelete{HostIfName: i.dev}
}

// NewTrash is an empty trash; Run empties it, when nothing has wanted anything of VPP for a while. Without idle only what is thrown away
// counts.
func NewTrash(c *conn.Conn, idle func() time.Duration, log *slog.Logger) *Trash {
	t := &Trash{conn: c, lane: c.Lane(), log: log.With("component", "vpp-trash"), wake: make(chan struct{}, 1), idle: idle}
	c.OnChange(func(conn.State) { t.nudge() })
	return t
}

func (t *Trash) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Waiting is the number of interfaces in the trash.
func (t *Trash) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.items)
}

func (t *Trash) add(i trashItem) {
	i.since = time.Now()
	t.mu.Lock()
	t.items = append(t.items, i)
	t.thrown = i.since
	t.mu.Unlock()
	t.nudge()
}

// takeBack takes out what holds the device on which an interface is to be made. What the trash is just deleting is waited for.
func (t *Trash) takeBack(name, dev string) []trashItem {
	t.deleting.Lock()
	defer t.deleting.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	var taken []trashItem
	t.items = slices.DeleteFunc(t.items, func(i trashItem) bool {
		if !i.on(name, dev) {
			return false
		}
		taken = append(taken, i)
		return true
	})
	return taken
}

// holds reports whether takeBack would find anything, without waiting.
func (t *Trash) holds(name, dev string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current.on(name, dev) || slices.ContainsFunc(t.items, func(i trashItem) bool { return i.on(name, dev) })
}

// clearDevice deletes an interface in the trash whose device is needed again, before the next request. VPP would make a second
// queue of a TAP's device for a second interface, and delete an af_packet interface by the name of its device, whichever it is.
func (k *Kinds) clearDevice(name, dev string) {
	t := k.deps.Trash
	if t == nil || !t.holds(name, dev) {
		return
	}
	for _, i := range t.takeBack(name, dev) {
		k.Lane.Request(i.request(), func(_ api.Message, err error) {
			if err != nil && !isGone(err) {
				k.Log.Warn("an interface that should have been deleted blocks a new one", "interface", name, "device", dev, "error", err)
			}
		})
	}
}

func isGone(err error) bool {
	return kit.IsFine(err, kit.IfGone) || conn.IsRetval(err, api.SYSCALL_ERROR_1)
}

// throwAway takes the interface down, takes from it what others may want (its addresses, its tables) and marks it. It says
// false for kinds that are deleted fast enough.
func (k *Kinds) throwAway(e *ifEntry, v *vpp_interfaces.Interface, done func(error)) bool {
	if k.deps.Trash == nil {
		return false
	}
	item := trashItem{name: e.name, index: e.Index, tap: e.kind == vpp_interfaces.Interface_TAP, dev: e.hostDev, moved: e.moved}
	if !item.tap && e.kind != vpp_interfaces.Interface_AF_PACKET {
		return false
	}
	index := interface_types.InterfaceIndex(e.Index)
	reqs := []api.Message{
		&interfaces.SwInterfaceSetFlags{SwIfIndex: index},
		&interfaces.SwInterfaceSetUnnumbered{UnnumberedSwIfIndex: index},
		&interfaces.SwInterfaceAddDelAddress{SwIfIndex: index, DelAll: true},
		tagRequest(e.Index, TrashTagPrefix+kit.ShortName(e.name, TrashTagPrefix)),
	}
	if v.Vrf != 0 {
		reqs = append(reqs, &interfaces.SwInterfaceSetTable{SwIfIndex: index},
			&interfaces.SwInterfaceSetTable{SwIfIndex: index, IsIPv6: true})
	}
	all := kit.Join(len(reqs), func(err error) {
		if err == nil {
			k.deps.Trash.add(item)
		}
		done(err)
	})
	for _, req := range reqs {
		k.Lane.Request(req, func(_ api.Message, err error) { all(err) })
	}
	return true
}

// Run empties the trash until ctx ends.
func (t *Trash) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, err := t.step(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, conn.ErrDisconnected) {
			t.log.Warn("an interface of a deleted pod is removed later", "error", err)
			wait = time.Second
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-t.wake:
			if wait < trashIdle { // something is waiting already, and so is its time
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
			}
		}
		timer.Stop()
	}
	return ctx.Err()
}

// step deletes one interface, if its time has come, and says when to look again.
func (t *Trash) step(ctx context.Context) (time.Duration, error) {
	s := t.conn.State()
	if !s.Connected() {
		return trashIdle, nil
	}
	if err := t.adopt(ctx, s.Session); err != nil {
		return trashQuiet, err
	}
	t.deleting.Lock()
	defer t.deleting.Unlock()
	item, wait := t.next()
	if wait > 0 {
		return wait, nil
	}
	err := t.delete(ctx, item)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = trashItem{}
	if err != nil {
		t.items = append(t.items, item)
		return trashQuiet, err
	}
	return trashPace, nil
}

// next takes out the oldest item, or says how long to wait.
func (t *Trash) next() (trashItem, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.items) == 0 {
		return trashItem{}, trashIdle
	}
	quiet := time.Since(t.thrown)
	if t.idle != nil {
		quiet = min(quiet, t.idle())
	}
	wait := min(trashQuiet-quiet, trashLongest-time.Since(t.items[0].since))
	if wait > 0 && len(t.items) <= trashMax {
		return trashItem{}, wait
	}
	t.current = t.items[0]
	t.items = t.items[1:]
	return t.current, 0
}

// delete deletes an interface if it is still what it was when it was thrown away.
func (t *Trash) delete(ctx context.Context, i trashItem) error {
	var err error
	marked := false
	look := &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(i.index)}
	conn.Dump(t.lane, look, func(d *interfaces.SwInterfaceDetails) {
		marked = marked || (uint32(d.SwIfIndex) == i.index && strings.HasPrefix(d.Tag, TrashTagPrefix))
	}, func(e error) { err = e })
	t.lane.Flush(ctx)
	if err == nil && marked {
		t.lane.Request(i.request(), func(_ api.Message, e error) { err = e })
		t.lane.Flush(ctx)
	}
	if err != nil && !isGone(err) {
		return fmt.Errorf("delete interface %d (device %q): %w", i.index, i.dev, err)
	}
	return nil
}

// adopt finds the trash of a session that is new to this agent: an earlier agent may have left it.
func (t *Trash) adopt(ctx context.Context, session uint64) error {
	t.mu.Lock()
	known := t.session == session
	t.mu.Unlock()
	if known {
		return nil
	}
	found := map[uint32]string{}
	devices := map[uint32]string{}
	taps := map[uint32]*tapv2.SwInterfaceTapV2Details{}
	var errs []error
	end := func(err error) { errs = append(errs, err) }
	all := interface_types.InterfaceIndex(kit.None)
	conn.Dump(t.lane, &interfaces.SwInterfaceDump{SwIfIndex: all}, func(d *interfaces.SwInterfaceDetails) {
		if name, ok := strings.CutPrefix(d.Tag, TrashTagPrefix); ok {
			found[uint32(d.SwIfIndex)] = name
		}
	}, end)
	conn.Dump(t.lane, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: all},
		func(d *tapv2.SwInterfaceTapV2Details) { taps[d.SwIfIndex] = d }, end)
	conn.Dump(t.lane, &af_packet.AfPacketDump{},
		func(d *af_packet.AfPacketDetails) { devices[uint32(d.SwIfIndex)] = d.HostIfName }, end)
	t.lane.Flush(ctx)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("find interfaces to delete: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.items = session, nil
	for index, name := range found {
		i := trashItem{name: name, index: index, dev: devices[index], since: time.Now()}
		if tap := taps[index]; tap != nil {
			i.tap, i.dev, i.moved = true, tap.HostIfName, tap.HostNamespace != ""
		}
		t.items = append(t.items, i)
	}
	return nil
}
