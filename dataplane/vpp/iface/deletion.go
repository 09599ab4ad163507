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

// DeletedTagPrefix is the prefix of the tags of interfaces that wait to be deleted. Earlier versions of the agent wrote the same tags: do
// not change the value.
const DeletedTagPrefix = "contiv-trash:"

const (
	deletionQuiet = time.Second           // VPP must have been idle for this long before a deletion
	deletionPace  = 10 * time.Millisecond // pause between two deletions, so that other requests are served
	deletionIdle  = 10 * time.Second
	// A busy node may never be idle. A TAP in the queue holds 256 of VPP's packet buffers, of which the default is 16,384: without these
	// limits deleted pods would hold the buffers that running pods need.
	deletionLongest = 5 * time.Second // the longest wait
	deletionMax     = 16              // number of interfaces that may wait; with more, the oldest is deleted immediately
	deletionFull    = 32              // with so many, an interface is deleted with its value: pods may come and go faster than this queue deletes
)

// DeletionQueue deletes TAPs and af_packet interfaces after their owner has gone. Deleting one stops VPP's main thread for 20 to 40 ms,
// while the kernel waits for RCU; taking it down and marking it takes microseconds. So deleting a pod only takes its interface down and
// marks it, and a job deletes the interface once no request waits. An interface in the queue is down and without effect. The mark is in
// VPP, so a restarted agent finds the interfaces again; a restarted VPP has none.
type DeletionQueue struct {
	conn *conn.Conn
	lane *conn.Lane // of the goroutine that runs Run
	log  *slog.Logger
	wake chan struct{}
	idle func() time.Duration // time since VPP's last request

	deleting sync.Mutex // held while one is deleted; taken before mu

	mu      sync.Mutex
	session uint64 // for which items are valid
	items   []deletion
	coming  int       // interfaces that have been admitted and not been added yet
	current deletion  // the item that is being deleted
	added   time.Time // time of the last addition
}

type deletion struct {
	name  string // logical name
	index uint32
	tap   bool
	dev   string // Linux device
	moved bool   // not in VPP's network namespace
	since time.Time
}

// on reports whether the interface is called name or holds the device dev, so that it is in the way of a new interface.
func (i deletion) on(name, dev string) bool {
	return i.name == name || (i.dev == dev && dev != "" && !i.moved)
}

func (i deletion) request() api.Message {
	if i.tap {
		return &tapv2.TapDeleteV2{SwIfIndex: interface_types.InterfaceIndex(i.index)}
	}
	return &af_packet.AfPacketDelete{HostIfName: i.dev}
}

// NewDeletionQueue returns an empty queue; Run empties it when VPP has had no requests for a while. If idle is nil, only additions to the
// queue count as requests.
func NewDeletionQueue(c *conn.Conn, idle func() time.Duration, log *slog.Logger) *DeletionQueue {
	t := &DeletionQueue{conn: c, lane: c.Lane(), log: log.With("component", "vpp-deletions"), wake: make(chan struct{}, 1), idle: idle}
	c.OnChange(func(conn.State) { t.signal() })
	return t
}

func (t *DeletionQueue) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Waiting returns the number of interfaces in the queue.
func (t *DeletionQueue) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.items)
}

// admit reports whether the queue takes one more interface; add or reject must follow.
func (t *DeletionQueue) admit() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.items)+t.coming >= deletionFull {
		return false
	}
	t.coming++
	return true
}

// reject takes back an admission.
func (t *DeletionQueue) reject() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coming--
}

// add adds an interface that was admitted.
func (t *DeletionQueue) add(i deletion) {
	i.since = time.Now()
	t.mu.Lock()
	t.coming--
	t.items = append(t.items, i)
	t.added = i.since
	t.mu.Unlock()
	t.signal()
}

// remove takes out of the queue the interfaces that hold the name or the device of a new interface. If one is being deleted, remove waits
// for that.
func (t *DeletionQueue) remove(name, dev string) []deletion {
	t.deleting.Lock()
	defer t.deleting.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	var taken []deletion
	t.items = slices.DeleteFunc(t.items, func(i deletion) bool {
		if !i.on(name, dev) {
			return false
		}
		taken = append(taken, i)
		return true
	})
	return taken
}

// holds reports whether remove would find any interface, without waiting.
func (t *DeletionQueue) holds(name, dev string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current.on(name, dev) || slices.ContainsFunc(t.items, func(i deletion) bool { return i.on(name, dev) })
}

// clearDevice deletes an interface in the queue whose device is needed again, before the next request. Otherwise VPP would add a second
// queue to a TAP's device for a second interface, and would delete an af_packet interface by the name of its device, whether it is the old
// one or the new one.
func (k *Descriptors) clearDevice(name, dev string) {
	t := k.deps.DeletionQueue
	if t == nil || !t.holds(name, dev) {
		return
	}
	for _, i := range t.remove(name, dev) {
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

// deferDeletion takes the interface down, removes what other interfaces may need (its addresses, its tables) and marks it. It returns false
// for interface types that are fast to delete, and if the queue is full.
func (k *Descriptors) deferDeletion(e *ifEntry, v *vpp_interfaces.Interface, done func(error)) bool {
	if k.deps.DeletionQueue == nil {
		return false
	}
	item := deletion{name: e.name, index: e.Index, tap: e.kind == vpp_interfaces.Interface_TAP, dev: e.hostDev, moved: e.moved}
	if !item.tap && e.kind != vpp_interfaces.Interface_AF_PACKET || !k.deps.DeletionQueue.admit() {
		return false
	}
	index := interface_types.InterfaceIndex(e.Index)
	reqs := []api.Message{
		&interfaces.SwInterfaceSetFlags{SwIfIndex: index},
		&interfaces.SwInterfaceSetUnnumbered{UnnumberedSwIfIndex: index},
		&interfaces.SwInterfaceAddDelAddress{SwIfIndex: index, DelAll: true},
		tagRequest(e.Index, DeletedTagPrefix+kit.ShortName(e.name, DeletedTagPrefix)),
	}
	if v.Vrf != 0 {
		reqs = append(reqs, &interfaces.SwInterfaceSetTable{SwIfIndex: index},
			&interfaces.SwInterfaceSetTable{SwIfIndex: index, IsIPv6: true})
	}
	all := kit.Join(len(reqs), func(err error) {
		if err == nil {
			k.deps.DeletionQueue.add(item)
		} else {
			k.deps.DeletionQueue.reject()
		}
		done(err)
	})
	for _, req := range reqs {
		k.Lane.Request(req, func(_ api.Message, err error) { all(err) })
	}
	return true
}

// Run empties the queue until ctx ends.
func (t *DeletionQueue) Run(ctx context.Context) error {
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
			if wait < deletionIdle { // an interface waits already, with its own delay
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

// step deletes one interface, if one is due, and returns when to check again.
func (t *DeletionQueue) step(ctx context.Context) (time.Duration, error) {
	s := t.conn.State()
	if !s.Connected() {
		return deletionIdle, nil
	}
	if err := t.adopt(ctx, s.Session); err != nil {
		return deletionQuiet, err
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
	t.current = deletion{}
	if err != nil {
		t.items = append(t.items, item)
		return deletionQuiet, err
	}
	return deletionPace, nil
}

// next takes out the oldest item, or returns how long to wait.
func (t *DeletionQueue) next() (deletion, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.items) == 0 {
		return deletion{}, deletionIdle
	}
	quiet := time.Since(t.added)
	if t.idle != nil {
		quiet = min(quiet, t.idle())
	}
	wait := min(deletionQuiet-quiet, deletionLongest-time.Since(t.items[0].since))
	if wait > 0 && len(t.items) <= deletionMax {
		return deletion{}, wait
	}
	t.current = t.items[0]
	t.items = t.items[1:]
	return t.current, 0
}

// delete deletes an interface if it is still the one that was put into the queue.
func (t *DeletionQueue) delete(ctx context.Context, i deletion) error {
	var err error
	marked := false
	look := &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(i.index)}
	conn.Dump(t.lane, look, func(d *interfaces.SwInterfaceDetails) {
		marked = marked || (uint32(d.SwIfIndex) == i.index && strings.HasPrefix(d.Tag, DeletedTagPrefix))
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

// adopt finds the marked interfaces of a session that is new to this agent: an earlier agent may have left them.
func (t *DeletionQueue) adopt(ctx context.Context, session uint64) error {
	t.mu.Lock()
	known := t.session == session
	t.mu.Unlock()
	if known {
		return nil
	}
	start := time.Now()
	found := map[uint32]string{}
	devices := map[uint32]string{}
	taps := map[uint32]*tapv2.SwInterfaceTapV2Details{}
	var errs []error
	end := func(err error) { errs = append(errs, err) }
	all := interface_types.InterfaceIndex(kit.None)
	conn.Dump(t.lane, &interfaces.SwInterfaceDump{SwIfIndex: all}, func(d *interfaces.SwInterfaceDetails) {
		if name, ok := strings.CutPrefix(d.Tag, DeletedTagPrefix); ok {
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
	left := make([]deletion, 0, len(found))
	for index, name := range found {
		i := deletion{name: name, index: index, dev: devices[index], since: time.Now()}
		if tap := taps[index]; tap != nil {
			i.tap, i.dev, i.moved = true, tap.HostIfName, tap.HostNamespace != ""
		}
		left = append(left, i)
	}
	t.begin(session, start, left)
	return nil
}

// begin begins a session in which VPP has these marked interfaces, according to dumps that began at start. An interface that was added since may not
// be in the dumps; those added before are of an earlier session, or in the dumps.
func (t *DeletionQueue) begin(session uint64, start time.Time, marked []deletion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.items {
		if !i.since.Before(start) && !slices.ContainsFunc(marked, func(m deletion) bool { return m.index == i.index }) {
			marked = append(marked, i)
		}
	}
	t.session, t.items = session, marked
}
